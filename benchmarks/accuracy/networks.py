r"""The network that all models share: layers that add a local layer, an attention and a linear map of each node."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import BatchNorm1d, LayerNorm, Linear, Module, ModuleList
from torch_geometric.nn import MLP, GATConv, GCNConv, GINConv, GPSConv, PNAConv, SAGEConv, global_mean_pool
from torch_geometric.nn.attention import PerformerAttention, PolynormerAttention, SGFormerAttention
from torch_geometric.utils import to_dense_batch

from benchmarks.accuracy.encodings import EIGENVECTORS, STEPS
from pyg_topomask.feature_maps.names import FEATURE_MAPS
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import (
    AdjacencyMask,
    GRFMask,
    HeatKernelMask,
    HopMask,
    Mask,
    MultiHeadMask,
    PackingMask,
    PowerSeriesMask,
    RWGNKMask,
    TreeMask,
)
from pyg_topomask.masks.base.series import nested_balls
from pyg_topomask.nn import MaskedLinearAttention, MaskedSoftmaxAttention
from pyg_topomask.ops import masked_linear_attention

__all__ = ['VARIANTS', 'Network', 'Setting']


class Setting(NamedTuple):
    r"""One model and its training.

    Args:
        local (str): A key of :obj:`LOCAL`.
        attention (str): A key of :obj:`ATTENTIONS`, a mask in :obj:`MASKS`, or :obj:`"mean <mask>"`. The variant "gps" takes
            :obj:`"transformer"` and :obj:`"performer"`.
        layers (int): The number of layers.
        width (int): The number of channels.
        reach (int): The largest number of hops of the mask.
        start (str): How the heads of the mask start: :obj:`"hops"`, each at another hop, or at another time of a heat kernel;
            :obj:`"balls"`, each with a larger neighborhood, for :obj:`"hop"`; or :obj:`"decay"`, all alike.
        epochs (int): The number of epochs.
        rate (float): The learning rate.
        dropout (float): The dropout probability after each layer.
        heads (int): The number of heads.
        variant (str): How the attention enters a layer, a key of :obj:`VARIANTS`.
        decay (float): The weight decay.
        schedule (str): The learning rate over the epochs: :obj:`"one-cycle"`, or :obj:`"constant"`.
    """

    local: str
    attention: str
    layers: int
    width: int
    reach: int = 2
    start: str = 'hops'
    epochs: int = 200
    rate: float = 1e-2
    dropout: float = 0.0
    heads: int = 4
    variant: str = 'sum'
    decay: float = 0.0
    schedule: str = 'one-cycle'

    @property
    def name(self) -> str:
        r"""The model in words."""
        words = [] if self.local == 'none' else [self.local]
        if self.attention != 'none':
            masked = self.attention.split()[-1] in MASKS
            words.append(f'{self.attention} ({self.reach} hops, {self.start})' if masked else self.attention)
        if self.variant != 'sum':
            words.append(self.variant)
        return ' + '.join(words) or 'no graph'


class Example(NamedTuple):
    r"""One graph or batch of graphs: the features, the edges as a sparse matrix, what masks prepare, and encodings."""

    x: Tensor
    adj: Tensor
    graph: Graph
    encodings: Tensor | None = None


#: Local layers, called with the channels and the heads.
LOCAL: dict[str, Callable[[int, int], Module]] = {
    'gcn': lambda width, heads: GCNConv(width, width),
    'sage': lambda width, heads: SAGEConv(width, width, root_weight=False),
    'gat': lambda width, heads: GATConv(width, width // heads, heads, add_self_loops=False),
    'gin': lambda width, heads: GINConv(MLP([width, width, width], norm=None)),
    # Relative to a degree of 2, as in trees.
    'pna': lambda width, heads: PNAConv(
        width, width, ['mean', 'sum', 'max'], ['identity', 'amplification', 'attenuation'], torch.tensor([0, 0, 1])
    ),
}


def _powers(setting: Setting) -> Mask:
    return PowerSeriesMask(setting.heads, setting.reach, 'hops' if setting.start == 'hops' else None)


def _heat(setting: Setting) -> Mask:
    times = 0.5 * 2.0 ** torch.arange(setting.heads) if setting.start == 'hops' else torch.ones(setting.heads)
    return HeatKernelMask(setting.heads, 'normalized_laplacian', times, tolerance=1e-3)


def _hop(setting: Setting) -> Mask:
    return HopMask(setting.heads, setting.reach, setting.start)


def _tree(setting: Setting) -> Mask:
    # Like Hop, but with a small weight for all nodes beyond the reach.
    f = torch.nn.functional.pad(nested_balls(setting.heads, setting.reach + 1), (0, 1), value=0.02)
    return TreeMask(setting.heads, 'distance', max_distance=setting.reach + 1, f=f)


def _half(setting: Setting) -> Mask:
    return MultiHeadMask(_hop(setting._replace(heads=setting.heads // 2)), PackingMask(setting.heads // 2))


def _grf(setting: Setting, walks: int, p_halt: float = 0.5, sampler: str = 'iid') -> Mask:
    modulation = 'hops' if setting.start == 'hops' else None
    hops = setting.reach // 2  # two walks make a path
    return GRFMask(setting.heads, walks, p_halt=p_halt, sampler=sampler, max_walk_length=hops, modulation=modulation)


#: The masks.
MASKS: dict[str, Callable[[Setting], Mask]] = {
    'adjacency': lambda setting: AdjacencyMask(setting.heads),
    'powers': _powers,
    'heat': _heat,
    'hop': _hop,
    'tree': _tree,
    'rwgnk-16': lambda setting: RWGNKMask(setting.heads, 16, max_walk_length=setting.reach // 2),  # two walks make a path
    'half-hop': _half,  # the other half of the heads have no mask
    **{f'grf-{walks}': partial(_grf, walks=walks) for walks in (4, 16, 64)},
    **{f'long-grf-{walks}': partial(_grf, walks=walks, p_halt=0.1, sampler='repelling') for walks in (4, 16)},
}
ATTENTIONS: dict[str, Callable[[Setting], Module]] = {
    'performer': lambda s: PerformerAttention(s.width, s.heads, s.width // s.heads),
    'sgformer': lambda s: SGFormerAttention(s.width, 1, s.width),
    'polynormer': lambda s: PolynormerAttention(s.width, s.heads, s.width // s.heads),
}


#: What differs from the plain layer or its training, in words.
VARIANTS = {
    'sum': 'The attention is added, with the feature map ReLU.',
    'gate': 'The attention is multiplied by a sigmoid of a linear map of the input first, as in Polynormer.',
    'norm': 'The attention passes a layer norm first.',
    'residual': 'The input of the layer is added, too.',
    'bare': 'There is neither a linear map of each node nor a batch norm.',
    'every second': 'The first, third, ... layers have the attention, the others do not.',
    'last': 'The last layer has the attention, the others do not.',
    'mixture': 'Each node weighs this mask, the edges alone and no mask by a softmax of a linear map of its features.',
    'three masks': 'As "mixture", with equal weights.',
    'with sum': 'A linear map of the logarithm of the masked sum of the features is added. A mean loses degrees.',
    'elu': 'The feature map is ELU + 1.',
    'square': 'The feature map is the square.',
    'focused': 'The feature map is that of focused linear attention.',
    'softmax': 'The attention is softmax attention under the same mask.',
    'gps': "The layer is PyG's GPSConv, and encodings by random walks and eigenvectors are added to the features.",
    'clipped': 'The norm of the gradient is clipped to 1.',
    'fast mask': 'The parameters of the mask learn ten times as fast.',
    'slow mask': 'The parameters of the mask learn a tenth as fast.',
}


class DenseBatch(Module):
    r"""An attention of PyG, which takes batches of graphs that are padded to one size."""

    def __init__(self, attention: Module) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        if graph.segments.batch is None:
            out: Tensor = self.attention(x.unsqueeze(0)).squeeze(0)
            return out
        dense, mask = to_dense_batch(x, graph.segments.batch)
        padded: Tensor = self.attention(dense, mask)
        return padded[mask]


class MeanOverMask(Module):
    r"""The control of masked attention: the same mask and heads, with equal scores in place of those of queries and keys."""

    def __init__(self, width: int, mask: Mask) -> None:
        super().__init__()
        self.mask, self.heads = mask, mask.heads
        self.lin_v, self.lin_out = Linear(width, width), Linear(width, width)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        v = self.lin_v(x).view(-1, self.heads, x.size(1) // self.heads)
        ones = v.new_ones(v.size(0), self.heads, 1)
        out: Tensor = self.lin_out(masked_linear_attention(ones, ones, v, self.mask(graph)).flatten(1))
        return out


class Mixture(Module):
    r"""Attentions under several masks, weighed by each node: :math:`\sum_m \mathrm{softmax}(\mathbf{W} \mathbf{x}_i)_m
    \mathrm{attention}_m(\mathbf{x})_i`.
    """

    def __init__(self, width: int, attentions: list[Module], gated: bool) -> None:
        super().__init__()
        self.attentions, self.weights = ModuleList(attentions), Linear(width, len(attentions)) if gated else None

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        mixed = torch.stack([attention(x, graph=graph) for attention in self.attentions], -1)
        return mixed.mean(-1) if self.weights is None else (mixed * self.weights(x).softmax(-1).unsqueeze(1)).sum(-1)


class WithSum(Module):
    r"""An attention, and a linear map of the logarithm of the sum of the features under the same mask."""

    def __init__(self, width: int, attention: MaskedLinearAttention) -> None:
        super().__init__()
        self.attention, self.lin = attention, Linear(width, width)

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        mask: Mask = self.attention.mask
        total = mask(graph).matmul(x.view(len(x), mask.heads, -1)).flatten(1)
        out: Tensor = self.attention(x, graph=graph) + self.lin(torch.sign(total) * total.abs().log1p())
        return out


def _feature_map(setting: Setting) -> str:
    return setting.variant if setting.variant in FEATURE_MAPS else 'relu'


def make_attention(setting: Setting) -> Module | None:
    r"""Makes the attention of a layer."""
    name = setting.attention
    if name == 'none':
        return None
    if name in ATTENTIONS:
        return DenseBatch(ATTENTIONS[name](setting))
    if name == 'linear':
        return MaskedLinearAttention(setting.width, setting.heads, feature_map=_feature_map(setting))
    if name.startswith('mean '):
        return MeanOverMask(setting.width, MASKS[name.removeprefix('mean ')](setting))
    if setting.variant == 'softmax':
        return MaskedSoftmaxAttention(setting.width, setting.heads, MASKS[name](setting))
    masked = MaskedLinearAttention(setting.width, setting.heads, MASKS[name](setting), _feature_map(setting))
    if setting.variant in ('mixture', 'three masks'):
        edges = MaskedLinearAttention(setting.width, setting.heads, AdjacencyMask(setting.heads))
        unmasked = MaskedLinearAttention(setting.width, setting.heads)
        return Mixture(setting.width, [masked, edges, unmasked], setting.variant == 'mixture')
    return WithSum(setting.width, masked) if setting.variant == 'with sum' else masked


class Layer(Module):
    r""":math:`\sigma(\mathrm{BN}(\mathrm{local}(\mathbf{x}) + \mathrm{attention}(\mathbf{x}) + \mathbf{W} \mathbf{x}))`."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.local = None if setting.local == 'none' else LOCAL[setting.local](setting.width, setting.heads)
        self.attention = make_attention(setting)
        self.gate = Linear(setting.width, setting.width) if setting.variant == 'gate' else None
        self.branch_norm = LayerNorm(setting.width) if setting.variant == 'norm' else None
        bare = setting.variant == 'bare'
        self.lin = None if bare else Linear(setting.width, setting.width)
        self.norm = None if bare else BatchNorm1d(setting.width)
        self.dropout, self.residual = setting.dropout, setting.variant == 'residual'

    def forward(self, example: Example, x: Tensor) -> Tensor:
        out = torch.zeros_like(x) if self.lin is None else self.lin(x)
        if self.local is not None:
            out = out + self.local(x, example.adj)
        if self.attention is not None:
            branch = self.attention(x, graph=example.graph)
            if self.gate is not None:
                branch = branch * self.gate(x).sigmoid()
            out = out + (branch if self.branch_norm is None else self.branch_norm(branch))
        if self.residual:
            out = out + x
        out = out if self.norm is None else self.norm(out)
        return torch.nn.functional.dropout(out.relu(), self.dropout, self.training)


class GPSLayer(Module):
    r"""The layer of GPS in PyG, whose attention has no mask."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        kind = {'transformer': 'multihead', 'performer': 'performer'}[setting.attention]
        self.layer = GPSConv(
            setting.width,
            LOCAL[setting.local](setting.width, setting.heads),
            setting.heads,
            setting.dropout,
            attn_type=kind,
            attn_kwargs={'head_channels': setting.width // setting.heads} if kind == 'performer' else None,
        )

    def forward(self, example: Example, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x, example.adj, example.graph.segments.batch)
        return out


class Encoder(Module):
    r"""Appends normalized encodings to the features. In training, the signs of eigenvectors are random."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = BatchNorm1d(STEPS + EIGENVECTORS)

    def forward(self, x: Tensor, encodings: Tensor) -> Tensor:
        returns, vectors = self.norm(encodings).split([STEPS, EIGENVECTORS], 1)
        if self.training:
            vectors = vectors * (1 - 2 * torch.randint(2, (EIGENVECTORS,)))
        return torch.cat([x, returns, vectors], 1)


class Network(Module):
    r"""Layers between two linear maps, and, for answers of graphs, the mean over their nodes."""

    def __init__(self, setting: Setting, features: int, classes: int, graphs: bool = False) -> None:
        super().__init__()
        self.graphs = graphs
        gps = setting.variant == 'gps'
        self.encoder = Encoder() if gps else None
        self.lin_in = Linear(features + (STEPS + EIGENVECTORS if gps else 0), setting.width)
        without, layers = setting._replace(attention='none'), range(setting.layers)
        attending = {'every second': layers[::2], 'last': layers[-1:]}.get(setting.variant, layers)
        make = GPSLayer if gps else Layer
        self.layers = ModuleList(make(setting if index in attending else without) for index in layers)
        self.lin_out = Linear(setting.width, classes)

    def forward(self, example: Example) -> Tensor:
        x: Any = self.lin_in(example.x if self.encoder is None else self.encoder(example.x, example.encodings))
        for layer in self.layers:
            x = layer(example, x)
        if self.graphs:
            x = global_mean_pool(x, example.graph.segments.batch)
        out: Tensor = self.lin_out(x)
        return out
