"""What each mask does with the direction of edges, with weights and without edges: as its attributes and its repr say."""

import inspect
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask import masks
from pyg_topomask.masks.base.kinds import DIRECTIONS

#: Every public mask, made for the path 0 -> 1 -> 2 -> 3, and what the matrix shows.
MASKS: dict[str, tuple[str, Callable[[], masks.Mask]]] = {
    'AdjacencyMask': ('followed', masks.AdjacencyMask),
    'PowerSeriesMask': ('followed', masks.PowerSeriesMask),
    'HopMask': ('followed', masks.HopMask),
    'ExpanderMask': ('followed', lambda: masks.ExpanderMask(degree=2)),
    'ExpanderMask with weights': ('followed', lambda: masks.ExpanderMask(degree=2, input_weights=True)),
    'ExpanderMask without input edges': ('unused', lambda: masks.ExpanderMask(input_edges=False)),
    'HeatKernelMask': ('symmetric', masks.HeatKernelMask),
    'HeatKernelMask of random walks': ('followed', lambda: masks.HeatKernelMask(kind='random_walk_laplacian')),
    'HeatKernelMask of the adjacency': ('followed', lambda: masks.HeatKernelMask(kind='adjacency')),
    'GRFMask': ('both ways', lambda: masks.GRFMask(num_walks=64)),
    'GRFMask of pairs': ('both ways', lambda: masks.GRFMask(num_walks=64, asymmetric='pairs')),
    'GRFMask, asymmetric': ('followed', lambda: masks.GRFMask(num_walks=64, asymmetric=True)),
    'RWGNKMask': ('both ways', lambda: masks.RWGNKMask(num_walks=None)),
    'RWGNKMask of walks': ('both ways', lambda: masks.RWGNKMask(num_walks=8)),
    'TreeMask': ('undirected', masks.TreeMask),
    'TreeMask of distances': ('undirected', lambda: masks.TreeMask(kind='distance')),
    'SinDegreeMask': ('counted', masks.SinDegreeMask),
    'BigBirdMask': ('unused', masks.BigBirdMask),
    'CausalMask': ('unused', masks.CausalMask),
    'DenseMask': ('unused', lambda: masks.DenseMask(matrix=torch.rand(4, 4))),
    'HypercubeMask': ('unused', lambda: masks.HypercubeMask(dim=2)),
    'LearnedFeaturesMask': ('unused', lambda: masks.LearnedFeaturesMask(num_nodes=4)),
    'LowRankMask': ('unused', lambda: masks.LowRankMask(left=torch.rand(4, 2), right=torch.rand(4, 2))),
    'PackingMask': ('unused', masks.PackingMask),
    'PaddingMask': ('unused', masks.PaddingMask),
    'StochasticRPEMask': ('unused', masks.StochasticRPEMask),
    'ToeplitzMask': ('unused', lambda: masks.ToeplitzMask(shape_dims=1)),
    'SumMask': ('followed', lambda: masks.HopMask() + masks.PackingMask()),
    'HadamardMask': ('followed', lambda: masks.HopMask() * masks.PackingMask()),
    'MultiHeadMask': ('followed', lambda: masks.MultiHeadMask(masks.AdjacencyMask(), masks.HopMask())),
    'ScaledMask': ('both ways', lambda: 2.0 * masks.GRFMask(num_walks=64)),
    'TransposedMask': ('both ways', lambda: masks.GRFMask(num_walks=64).T),
}
PAGE = Path(__file__).parents[2] / 'docs' / 'masks.md'
PATH = torch.tensor([[0, 1, 2], [1, 2, 3]])
pytestmark = pytest.mark.filterwarnings('ignore:edge_index. got a directed graph')


def matrix(mask: masks.Mask, edge_index: Tensor, weight: Tensor | None = None) -> Tensor:
    data = Data(edge_index=edge_index, edge_weight=weight, num_nodes=4, valid=torch.ones(4, dtype=torch.bool))
    data.grid_shape = torch.tensor([[4]])
    return mask(data).to_dense().detach()[0]


def same(first: Tensor, second: Tensor) -> bool:
    return torch.allclose(first, second, rtol=1e-5, atol=1e-6)


def test_every_public_mask_has_a_case() -> None:
    public = {name for name in masks.__all__ if inspect.isclass(getattr(masks, name))} - {'Mask'}
    assert public == {name.split(' ')[0].rstrip(',') for name in MASKS}


@pytest.mark.parametrize('name', MASKS)
def test_the_direction_is_what_the_matrix_shows_and_the_repr_says(name: str) -> None:
    direction, make = MASKS[name]
    mask = make()
    assert mask.direction == direction
    assert f', edges {direction})' in repr(mask)
    assert direction in DIRECTIONS
    both = torch.cat([PATH, PATH.flip(0)], dim=1)
    if direction == 'symmetric':
        with pytest.raises(ValueError, match=r'^edge_index: got edges whose weights differ between'):
            matrix(mask, PATH)
        return
    along, against, undirected = (matrix(mask, edges) for edges in (PATH, PATH.flip(0), both))
    if direction == 'followed':
        # Node 0 has no incoming edge. Random edges of the expander are the same in both directions.
        assert along[1, 0] > 0
        assert (along != along.T).any()
        assert (along[0, 1:] == matrix(mask, PATH[:, :0])[0, 1:]).all()
    elif direction == 'both ways':
        assert along[0, 1] > 0
        assert along[1, 0] > 0  # the walks of nodes 0 and 1 meet in node 0
        assert same(along, along.T) or 'pairs' in name
        assert not same(along, against)
    elif direction == 'undirected':
        assert same(along, undirected)
        assert same(along, against)
    elif direction == 'counted':
        assert same(along, along.T)
        assert same(along[1], along[2])  # of in-degree 1, as node 0 is not
        assert same(along[2], along[3])
        assert not same(along[0], along[1])
        assert same(matrix(mask, PATH)[[1, 2, 3]], matrix(mask, torch.tensor([[0, 1, 1], [1, 2, 3]]))[[1, 2, 3]])
    else:
        assert same(along, matrix(mask, PATH[:, :0]))
        assert same(along, undirected)


@pytest.mark.parametrize('name', MASKS)
def test_weights_and_components_are_read_as_the_attributes_say(name: str) -> None:
    direction, make = MASKS[name]
    mask = make()
    apart = matrix(mask, torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]))[2:, :2] == 0
    assert bool(apart.all()) == mask.local
    if direction == 'symmetric':
        return
    edges = torch.cat([PATH, PATH.flip(0)], dim=1)
    weight = torch.tensor([0.5, 2.0, 1.0])
    changed = not same(matrix(mask, edges, weight.repeat(2)), matrix(mask, edges, torch.ones(6)))
    assert changed == mask.weighted


#: What the docstring of a class says, by the word.
PHRASES = {
    'followed': r'edges .* are followed|edges are followed',
    'both ways': 'has no direction',
    'undirected': 'Edges are undirected',
    'symmetric': 'need symmetric edges',
    'counted': 'follows no edge',
    'unused': 'ignores edges',
}


def test_compositions_show_the_flow_of_their_attention(subtests: pytest.Subtests) -> None:
    hop, outgoing = masks.HopMask(), masks.HopMask(flow='target_to_source')
    for mask, shown in [
        (hop + hop, 'heads=1, edges followed\n'),
        (hop.T, "heads=1, flow='target_to_source', edges followed\n"),
        (outgoing.T, 'heads=1, edges followed\n'),
        (hop + outgoing, 'heads=1\n'),
    ]:
        with subtests.test(mask=mask):
            assert shown in repr(mask).split('(masks)')[0]


COMPOSED = ('SumMask', 'HadamardMask', 'MultiHeadMask', 'ScaledMask', 'TransposedMask')


def test_the_docstrings_and_the_page_say_it() -> None:
    page = PAGE.read_text().splitlines()
    for name in (name for name in MASKS if name not in COMPOSED):
        direction, kind = MASKS[name][0], name.split(' ')[0].rstrip(',')
        text = ' '.join((getattr(masks, kind).__doc__ or '').split())
        assert re.search(PHRASES[direction], text, re.IGNORECASE), name
        rows = [line.split('|') for line in page if line.startswith(f'| `edges {direction}`')]
        assert len(rows) == 1, direction
        assert re.search(rf'`{kind.removesuffix("Mask")}(Mask)?[`(]', rows[0][3]) or 'without input edges' in name, name


@pytest.mark.parametrize(('mask', 'instead'), [(masks.GRFMask, 'asymmetric=True'), (masks.RWGNKMask, 'asymmetric=True')])
def test_masks_without_direction_warn_once_of_a_directed_graph(mask: type[masks.Mask], instead: str) -> None:
    both = torch.cat([PATH, PATH.flip(0)], dim=1)
    each = mask()
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter('always')
        matrix(each, both)
        assert record == []
        matrix(each, PATH)
        matrix(each, PATH.flip(0))
        matrix(masks.GRFMask(asymmetric=True), PATH)
    assert len(record) == 1
    assert str(record[0].message).startswith(f'edge_index: got a directed graph for {mask.__name__}, whose attention has no')
    assert instead in str(record[0].message)
    assert record[0].filename == __file__
