"""Draws a picture of each mask and each attention layer, from the masks and layers themselves: python docs/pictures.py"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path

import networkx as nx
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import from_networkx

from pyg_topomask import masks, nn
from pyg_topomask.apps.viz.drawing import color_scale
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask
from pyg_topomask.ops import masked_linear_attention, masked_softmax_attention
from pyg_topomask.transforms import AddGridShape

WALKS = {'p_halt': 0.1, 'max_walk_length': 8, 'modulation': 'heat:3'}


def grid(rows: int = 6, columns: int = 9) -> Data:
    """A grid of streets, cut by a river with one bridge."""
    streets = nx.grid_2d_graph(rows, columns)
    cut = columns // 2
    streets.remove_edges_from([((row, cut), (row, cut + 1)) for row in range(rows) if row != 1])
    data = AddGridShape((rows, columns))(from_networkx(streets))
    data.pos = torch.tensor([[column + 0.5 * (column > cut), -row] for row, column in streets], dtype=torch.float)
    return data


def streets() -> Data:
    """The grid under weights of its edges that are high along a row and low between rows."""
    data, weights = grid(), nn.EdgeWeights(1)
    for parameter, number in zip(weights.parameters(), (1.0, 0.0, 6 / 32, -3.0), strict=True):
        torch.nn.init.constant_(parameter, number)
    source, target = data.pos[data.edge_index]
    data.edge_weight = weights((source[:, 1:] == target[:, 1:]).float(), data.edge_index).detach()
    return data


def line(num_nodes: int = 24) -> Data:
    """A sequence."""
    data = AddGridShape((num_nodes,))(from_networkx(nx.path_graph(num_nodes)))
    angle = torch.linspace(-0.85, 0.85, num_nodes) * torch.pi
    data.pos = torch.stack([angle.sin(), angle.cos()], dim=1)
    data.valid = torch.arange(num_nodes) < 18
    return data


def ring(num_nodes: int = 24) -> Data:
    data = from_networkx(nx.cycle_graph(num_nodes))
    angle = torch.arange(num_nodes) * (2 * torch.pi / num_nodes)
    data.pos = torch.stack([angle.sin(), angle.cos()], dim=1)
    return data


def tree() -> Data:
    """A binary tree of depth 4, its nodes numbered level by level."""
    binary = nx.balanced_tree(2, 4)
    data = from_networkx(binary)
    data.pos = torch.tensor(
        [[(i + 1 - 2**level + 0.5) * 2.0 ** (4 - level), -3.0 * level] for i in binary for level in [(i + 1).bit_length() - 1]]
    )
    return data


def hubs() -> Data:
    """A graph with a few nodes of large degree."""
    graph = nx.barabasi_albert_graph(40, 1, seed=3)
    data = from_networkx(graph)
    data.pos = torch.from_numpy(np.stack([*nx.kamada_kawai_layout(graph).values()])).float()
    return data


def cube(dim: int = 4) -> Data:
    """The hypercube, its nodes numbered by the bits of their coordinates."""
    bits = (torch.arange(2**dim)[:, None] >> torch.arange(dim)) & 1
    differ = (bits[:, None] != bits).sum(-1) == 1
    axes = torch.tensor([[2.0, 0.0], [0.0, 2.0], [0.7, 0.6], [3.2, 0.9]])
    return Data(edge_index=differ.nonzero().t(), num_nodes=2**dim, pos=bits.float() @ axes)


def batch() -> Data:
    """Three rings in one batch."""
    rings = nx.disjoint_union_all([nx.cycle_graph(n) for n in (5, 8, 12)])
    data = from_networkx(rings)
    sizes = torch.tensor([5, 8, 12])
    data.batch = torch.arange(3).repeat_interleave(sizes)
    angle = torch.cat([torch.arange(n) * (2 * torch.pi / n) for n in (5, 8, 12)])
    radius = (sizes / 5.0)[data.batch]
    center = torch.tensor([0.0, 4.0, 9.5])[data.batch]
    data.pos = torch.stack([center + radius * angle.sin(), radius * angle.cos()], dim=1)
    return data


@dataclass(frozen=True)
class Picture:
    """What a picture shows, and how to draw it."""

    caption: str
    make: Callable[[], Figure]


def trained(mask: Mask) -> Mask:
    """Gives the degrees of a mask of degrees different weights, as training does."""
    for parameter in mask.parameters():
        torch.nn.init.normal_(parameter)
    return mask


def matrix(axis: Axes, values: Tensor, title: str, label: str = 'entry') -> AxesImage:
    values = values.detach().double().cpu()
    # The diagonal of a mask may be so large that all other entries would look alike.
    largest = float((values - values.diagonal().diag()).abs().max()) or 1.0
    image = axis.imshow(values, **color_scale(largest, bool((values < 0).any())))
    axis.set_title(title, fontsize='medium')
    axis.set(xticks=[], yticks=[], xlabel='node j', ylabel='node i')
    # Few ticks, below the matrix, stay readable where a page shows two pictures side by side.
    axis.figure.colorbar(image, ax=axis, location='bottom', label=label, ticks=MaxNLocator(3), shrink=0.8)
    return image


def row(axis: Axes, values: Tensor, node: int, data: Data, title: str, colors: AxesImage) -> None:
    """A row of a matrix on the graph, in the colours of the matrix."""
    values, pos = values.detach().double().cpu(), data.pos
    rest = torch.arange(values.numel()) != node
    if data.edge_index is not None:
        axis.add_collection(LineCollection(list(pos[data.edge_index.t()].numpy()), colors='0.6', linewidths=0.8, zorder=1))
    empty, seen = rest & (values == 0), rest & (values != 0)
    axis.scatter(*pos[empty].t(), s=22, facecolors='white', edgecolors='0.7', linewidths=0.8, zorder=2)
    scale = {'cmap': colors.get_cmap(), 'norm': colors.norm}
    axis.scatter(*pos[seen].t(), s=40, c=values[seen], edgecolors='0.4', linewidths=0.6, zorder=3, **scale)
    axis.scatter(*pos[node], s=130, marker='*', color='C3', edgecolors='black', linewidths=0.5, zorder=4)
    axis.set_title(title, fontsize='medium')
    axis.set_aspect('equal')
    axis.set_axis_off()


def mask_figure(make: Callable[[], Mask], graph: Callable[[], Data], node: int, head: int = 0) -> Figure:
    """The matrix of a mask, and one of its rows on the graph."""
    torch.manual_seed(0)
    data = graph()
    dense = make()(Graph.from_data(data)).to_dense()[head]
    figure = Figure(figsize=(5, 2.9), layout='constrained')
    left, right = figure.subplots(1, 2)
    image = matrix(left, dense, 'the matrix', 'entry $M_{ij}$')
    row(right, dense[node], node, data, 'the row of the star', image)
    return figure


def attention_figure(make: Callable[[], Mask], graph: Callable[[], Data], node: int, softmax: bool = False) -> Figure:
    """Mask, scores and coefficients of attention, and one row of these on the graph."""
    torch.manual_seed(0)
    data = graph()
    operator = make()(Graph.from_data(data))
    q, k = torch.randn(2, data.num_nodes, 1, 8)
    values = torch.eye(data.num_nodes)[:, None]
    if softmax:
        q, k = q / 2, k / 2
        scores = (q[:, 0] @ k[:, 0].t() / 8**0.5).exp()
        alpha = masked_softmax_attention(q, k, values, operator)[:, 0]
    else:
        q, k = q.relu(), k.relu()
        scores = q[:, 0] @ k[:, 0].t()
        alpha = masked_linear_attention(q, k, values, operator)[:, 0]
    figure = Figure(figsize=(5, 5.6), layout='constrained')
    (first, second), (third, fourth) = figure.subplots(2, 2)
    matrix(first, operator.to_dense()[0], 'mask')
    matrix(second, scores, 'scores', 'score')
    image = matrix(third, alpha, 'coefficients', 'coefficient')
    row(fourth, alpha[node], node, data, 'the row of the star', image)
    return figure


def kmip_figure() -> Figure:
    """All scores, and the coefficients of the chosen keys."""
    torch.manual_seed(0)
    data = hubs()
    layer = nn.KMIPAttention(8)
    x = torch.randn(40, 8)
    _, ((source, target), alpha) = layer(x, data.edge_index, return_attention_weights=True)
    chosen = torch.zeros(40, 40)
    chosen[target, source] = alpha[:, 0].detach()
    figure = Figure(figsize=(5, 5.6), layout='constrained')
    (first, second), (third, fourth) = figure.subplots(2, 2)
    fourth.remove()
    matrix(first, layer.lin_q(x) @ layer.lin_k(x).t(), 'inner products', 'inner product')
    image = matrix(second, chosen, 'coefficients', 'coefficient')
    row(third, chosen[0], 0, data, 'the row of the star', image)
    return figure


def gates_figure() -> Figure:
    """The normalized gates of a gated graph convolution."""
    torch.manual_seed(0)
    data = hubs()
    layer = nn.GatedGCNConv(8)
    x, edge_attr = torch.randn(40, 8), torch.randn(data.num_edges, 8)
    j, i = data.edge_index
    gate = (layer.lin_target(x)[i] + layer.lin_source(x)[j] + layer.lin_edge(edge_attr)).sigmoid()[:, 0].detach()
    share = torch.zeros(40, 40)
    share[i, j] = gate
    share /= share.sum(1, keepdim=True).clamp(min=1e-6)
    figure = Figure(figsize=(5, 2.9), layout='constrained')
    left, right = figure.subplots(1, 2)
    image = matrix(left, share, 'the gates of one channel', 'share')
    row(right, share[0], 0, data, 'the row of the star', image)
    return figure


def gps_figure() -> Figure:
    """The two branches of a GPS layer."""
    figure = Figure(figsize=(5.6, 2.4), layout='constrained')
    axis = figure.subplots()
    box = {'boxstyle': 'round,pad=0.5', 'edgecolor': '0.3', 'facecolor': 'white'}
    texts = {
        (0.0, 0.0): 'x',
        (2.2, 0.8): 'conv:\nmessage passing',
        (2.2, -0.8): 'attn:\nmasked attention',
        (4.6, 0.8): 'add x,\nnorm',
        (4.6, -0.8): 'add x,\nnorm',
        (6.2, 0.0): '+',
        (7.5, 0.0): 'MLP,\nadd,\nnorm',
        (9.2, 0.0): 'output',
    }
    for (x, y), text in texts.items():
        color = {'conv': '#dcebf7', 'attn': '#c7e9b4'}.get(text[:4], 'white')
        axis.text(x, y, text, ha='center', va='center', bbox={**box, 'facecolor': color}, zorder=2)
    places = list(texts)
    for start, end in ((0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5), (5, 6), (6, 7)):
        axis.annotate('', places[end], places[start], arrowprops={'arrowstyle': '-', 'color': '0.4'}, zorder=1)
    axis.set(xlim=(-0.6, 10), ylim=(-1.5, 1.5))
    axis.set_axis_off()
    return figure


def of_mask(caption: str, make: Callable[[], Mask], graph: Callable[[], Data] = grid, node: int = 12, head: int = 0) -> Picture:
    return Picture(caption, partial(mask_figure, make, graph, node, head))


def of_attention(caption: str, make: Callable[[], Mask], graph: Callable[[], Data], softmax: bool = False) -> Picture:
    scores = 'The scores of random queries and keys' + (' are multiplied by the mask' if not softmax else '')
    text = f'{caption} {scores}, and each row of coefficients sums to 1.'
    return Picture(text, partial(attention_figure, make, graph, 12, softmax))


GRF_SYMMETRIC = partial(masks.GRFMask, num_walks=64, **WALKS)
RWGNK = partial(masks.RWGNKMask, num_walks=None, max_walk_length=3)

MASKS = {
    'AdjacencyMask': of_mask('Neighbors, and the node itself.', masks.AdjacencyMask),
    'BigBirdMask': of_mask(
        'The nearest nodes of a sequence, its ends, and a few random nodes.',
        partial(masks.BigBirdMask, window=2, ends=1, degree=2),
        line,
    ),
    'CausalMask': of_mask('The nodes of a sequence up to the star.', masks.CausalMask, line),
    'DenseMask': of_mask('Any matrix: here one of random numbers.', lambda: masks.DenseMask(matrix=torch.randn(24, 24)), ring),
    'ExpanderMask': of_mask(
        'The edges of a ring and of a random graph in which each node has 4 neighbors.',
        lambda: masks.ExpanderMask(degree=4),
        ring,
    ),
    'GRFMask': of_mask('A heat kernel on a street grid with one bridge, estimated by 64 walks per node.', GRF_SYMMETRIC),
    'HadamardMask': of_mask(
        'Neighborhoods of three hops on a sequence, times a mask that leaves the padded nodes out.',
        lambda: masks.HopMask(max_hops=3, f='decay') * masks.PaddingMask(),
        line,
    ),
    'HeatKernelMask': of_mask('Heat from the star passes the bridge.', partial(masks.HeatKernelMask, lam=2.0)),
    'HopMask': of_mask(
        'The weight halves with each hop. The way over the bridge counts.', partial(masks.HopMask, max_hops=5, f='decay')
    ),
    'HypercubeMask': of_mask(
        'The hypercube of 16 nodes: the entry depends on how many bits differ.',
        partial(masks.HypercubeMask, dim=4, lam=0.5),
        cube,
        5,
    ),
    'LearnedFeaturesMask': of_mask(
        'Features of each position, before training.', partial(masks.LearnedFeaturesMask, num_nodes=24, rank=4), ring
    ),
    'LowRankMask': of_mask(
        'Two given factors of rank 1: a cosine along the ring, and a constant.',
        lambda: masks.LowRankMask(left=ring().pos[:, 1:] + 1.2, right=ring().pos[:, :1] + 1.2),
        ring,
    ),
    'MultiHeadMask': of_mask(
        'The second of two heads: the first is a heat kernel, the second sees neighbors.',
        lambda: masks.MultiHeadMask(masks.HeatKernelMask(), masks.AdjacencyMask()),
        head=1,
    ),
    'PackingMask': of_mask('Three graphs of a batch: nodes attend within their graph.', masks.PackingMask, batch, 7),
    'PaddingMask': of_mask('A sequence whose last six nodes are padding.', masks.PaddingMask, line),
    'PowerSeriesMask': of_mask(
        'A heat kernel up to the fourth power. It ends after four hops.',
        partial(masks.PowerSeriesMask, coefficients='heat:1.5'),
    ),
    'RWGNKMask': of_mask('Nodes whose walks of three hops visit the same nodes.', RWGNK),
    'ScaledMask': of_mask('A negative multiple of the neighbors.', lambda: -0.5 * masks.AdjacencyMask(self_loop=None)),
    'SinDegreeMask': of_mask(
        'The degrees of both nodes decide, and not where they are. The embeddings of the degrees are random.',
        lambda: trained(masks.SinDegreeMask()),
        hubs,
        0,
    ),
    'StochasticRPEMask': of_mask(
        'Relative positions on a sequence, estimated by 2,048 random features.',
        partial(masks.StochasticRPEMask, num_features=2048, gain=0.5),
        line,
    ),
    'SumMask': of_mask('Neighbors, plus a little of all nodes.', lambda: masks.AdjacencyMask() + 0.2 * masks.PackingMask()),
    'ToeplitzMask': of_mask(
        'The distance on the grid. Relative positions ignore the river.',
        partial(masks.ToeplitzMask, kind='distance', window=6, initial=0.6 ** torch.arange(7)),
    ),
    'TransposedMask': of_mask(
        'The transpose of a causal mask: the star and the nodes after it.', lambda: masks.CausalMask().T, line
    ),
    'TreeMask': of_mask('The exponential of the distance in a tree.', partial(masks.TreeMask, a=-0.5), tree, 9),
}

# Each layer as it is by default.
LAYERS = {
    'AsymmetricGRFAttention': of_attention(
        'Rows of the mask hold the nodes that 4 walks visit.', partial(masks.GRFMask, asymmetric=True), grid
    ),
    'EdgeWeights': of_mask(
        'A heat kernel under weights that are high on edges along a row, and low on those between rows.',
        partial(masks.HeatKernelMask, lam=2.0),
        streets,
    ),
    'GRFAttention': of_attention('The mask is a power series, estimated by 4 walks per node.', masks.GRFMask, grid),
    'GRFSoftmaxAttention': of_attention('The softmax runs over the nodes whose walks meet.', masks.GRFMask, grid, softmax=True),
    'GatedGCNConv': Picture('How the gates share out one channel among the neighbors of each node.', gates_figure),
    'HopAttention': of_attention('The nodes within 2 edges.', masks.HopMask, grid),
    'KMIPAttention': Picture(
        'Each query attends to the 10 keys with the largest inner products, wherever they are in the graph.', kmip_figure
    ),
    'MaskEncoding': of_mask(
        'A feature of all pairs within 4 edges, here a mix of four distances.',
        partial(masks.HopMask, max_hops=4, f='decay'),
        grid,
    ),
    'MaskedLinearAttention': of_attention(
        'Any mask works, and without one a node attends to its whole graph. This mask is HopMask.',
        partial(masks.HopMask, max_hops=4, f='decay'),
        grid,
    ),
    'MaskedSoftmaxAttention': of_attention(
        'The softmax runs over the entries of any mask. This mask is HopMask.',
        partial(masks.HopMask, f='decay'),
        grid,
        softmax=True,
    ),
    'RWGNKAttention': of_attention('The mask compares the nodes that walks visit.', masks.RWGNKMask, grid),
    'SinDegreeAttention': of_attention(
        'The mask depends on the degrees of both nodes. The embeddings of the degrees are random, as after training.',
        lambda: trained(masks.SinDegreeMask()),
        hubs,
    ),
    'ToeplitzAttention': of_attention(
        'The mask is a function of the relative position on a sequence. It starts at 1 for all positions.',
        partial(masks.ToeplitzMask, shape_dims=1),
        line,
    ),
    'TopoGPSConv': Picture('Message passing and attention side by side, and an MLP after their sum.', gps_figure),
}

#: The pictures by the names of the classes.
DRAWN: dict[str, Picture] = {**MASKS, **LAYERS}


#: A picture on the page of all pictures: module, name and caption.
CARD = """:::{{grid-item-card}} {1}
:img-bottom: _pictures/{1}.svg
:link: pyg_topomask.{0}.{1}
:link-type: any

{2}
:::"""


def draw(folder: Path) -> None:
    """Writes all pictures, unless those there are newer than this file, and the lists that docs/gallery.md includes."""
    folder.mkdir(exist_ok=True)
    changed = Path(__file__).stat().st_mtime
    for name, picture in DRAWN.items():
        path = folder / f'{name}.svg'
        if not path.exists() or path.stat().st_mtime < changed:
            picture.make().savefig(path)
    for module, drawn in (('masks', MASKS), ('nn', LAYERS)):
        cards = '\n'.join(map(CARD.format, repeat(module), drawn, (picture.caption for picture in drawn.values())))
        (folder / f'{module}.md').write_text(f'::::{{grid}} 1 1 2 2\n:gutter: 3\n\n{cards}\n::::\n')


if __name__ == '__main__':
    draw(Path(__file__).parent / '_pictures')
