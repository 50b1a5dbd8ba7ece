"""Masks on a common graph: what they share, and that those that differ give what they give on a graph of their own."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from graphs import undirected
from torch_geometric.data import Batch, Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import (
    AdjacencyMask,
    BigBirdMask,
    CausalMask,
    ExpanderMask,
    GRFMask,
    HeatKernelMask,
    HopMask,
    Mask,
    PaddingMask,
    PowerSeriesMask,
    RWGNKMask,
    SinDegreeMask,
    ToeplitzMask,
    TreeMask,
)
from pyg_topomask.ops import masked_linear_attention

ARGUMENTS: dict[type[Mask], list[dict[str, Any]]] = {
    AdjacencyMask: [{'self_loop': None}, {'normalization': 'sym'}, {'flow': 'target_to_source'}],
    BigBirdMask: [{'window': 2}, {'ends': 1}, {'degree': 4}, {'seed': 1}],
    CausalMask: [{'strict': True}, {'order': 'time'}],
    ExpanderMask: [
        {'degree': 4},
        {'input_edges': False},
        {'seed': 1},
        {'flow': 'target_to_source'},
        {'input_weights': True},
    ],
    GRFMask: [
        *({name: value} for name, value in {'num_walks': 8, 'p_halt': 0.2, 'max_walk_length': 1, 'seed': 1}.items()),
        *({name: value} for name, value in {'stitch': 2, 'sampler': 'antithetic', 'transition': 'weight'}.items()),
        *({name: value} for name, value in {'normalization': 'rw', 'walk_length': 'poisson:1', 'importance': False}.items()),
        *({name: value} for name, value in {'independent_ensembles': True, 'flow': 'target_to_source'}.items()),
    ],
    HeatKernelMask: [{'kind': 'random_walk_laplacian'}, {'kind': 'adjacency'}, {'tolerance': 1e-2}, {'lam': 3.0}],
    HopMask: [
        {'max_hops': 1},
        {'max_hops': 3},
        {'f': 'decay'},
        {'flow': 'target_to_source'},
        {'path_weights': 'mean'},
        {'path_weights': 'mean', 'flow': 'target_to_source'},
    ],
    PaddingMask: [{'valid': 'other'}],
    PowerSeriesMask: [{'order': 2}, {'normalization': 'rw'}, {'parameterization': 'f'}, {'flow': 'target_to_source'}],
    RWGNKMask: [
        *({name: value} for name, value in {'num_walks': 8, 'p_halt': 0.2, 'max_walk_length': 2, 'seed': 1}.items()),
        *({name: value} for name, value in {'num_walks': None, 'sampler': 'antithetic', 'transition': 'weight'}.items()),
        *({name: value} for name, value in {'walk_length': 'fixed:2', 'alpha': 0.0, 'independent_ensembles': True}.items()),
    ],
    SinDegreeMask: [{'flow': 'target_to_source'}, {'flow': None}, {'degree_attr': 'degree'}],
    ToeplitzMask: [{'kind': 'distance'}, {'window': 1}, {'periodic': True}, {'window': 1, 'beyond': 'zero'}],
    TreeMask: [{'a': -0.5}, {'kind': 'distance'}, {'kind': 'distance', 'max_distance': 1}, {'kind': 'distance', 'unit': 0.5}],
}
#: Where the defaults would be as good as the changed arguments on small graphs.
BASES: dict[type[Mask], dict[str, Any]] = {
    BigBirdMask: {'window': 1, 'ends': 0, 'degree': 2},
    ExpanderMask: {'degree': 2},
    GRFMask: {'p_halt': 0.1},
    RWGNKMask: {'p_halt': 0.1},
    ToeplitzMask: {'initial': 'tanh'},
}
#: What changes the parameters alone, which begin as the same numbers.
EQUAL_AT_FIRST = {PowerSeriesMask: 'parameterization', ToeplitzMask: 'kind'}
UNDIRECTED = (HeatKernelMask, RWGNKMask)


def graph(directed: bool = True) -> Graph:
    """Two trees with weights, with all that the masks look up."""
    graphs = []
    for size in (8, 4):
        child = torch.arange(1, size)
        edges = torch.stack([child, (child - 1 - child % 2).clamp(min=0)]) * 3 % size  # ends are in different orders
        edges = edges if directed else undirected(edges.t().tolist())
        weight = 0.25 * edges.sum(0)
        node = torch.arange(size)
        graphs.append(Data(edge_index=edges, edge_weight=weight, num_nodes=size, time=node.flip(0), degree=node))
        graphs[-1].update({'valid': node > 0, 'other': node < 3, 'grid_shape': torch.tensor([[2, size // 2]])})
    return Graph.from_data(Batch.from_data_list(graphs))


@pytest.mark.filterwarnings('ignore:max_walk_length is', 'ignore:edge_weight. got weights that require')
@pytest.mark.parametrize('weights', ['of the graph', 'others', 'learned'])  # the last two share what others prepared
@pytest.mark.parametrize('kind', ARGUMENTS, ids=lambda kind: kind.__name__)
def test_one_argument_makes_a_mask_of_its_own(kind: type[Mask], weights: str) -> None:
    def make() -> Graph:
        made = graph(kind not in UNDIRECTED)
        if weights == 'of the graph':
            return made
        return made.with_weights((2 * made.weight).requires_grad_(weights == 'learned'))

    base = BASES.get(kind, {})
    shared, results = make(), list[list[list[torch.Tensor]]]()
    for each in (lambda: shared, make):
        torch.manual_seed(0)
        masks = [kind(2, **{**base, **arguments}) for arguments in ({}, *ARGUMENTS[kind], {})]
        results.append([numbers(mask, each) for mask in masks])
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-7)
    first, *changed, _ = results[1]
    for arguments, one in zip(ARGUMENTS[kind], changed, strict=True):
        assert EQUAL_AT_FIRST.get(kind) in arguments or not torch.allclose(one[0], first[0], rtol=1e-4), arguments


def numbers(mask: Mask, make: Callable[[], Graph]) -> list[torch.Tensor]:
    """The matrix, and attention through prepared blocks."""
    operator = mask(make())
    q, k, v = torch.rand(3, 12, 2, 3, generator=torch.Generator().manual_seed(0))
    attended = [] if operator.blocks is None else [masked_linear_attention(q, k, v, operator, 'blocks').detach()]
    return [operator.to_dense().detach(), *attended]


@pytest.mark.filterwarnings('ignore:max_walk_length is')
def test_masks_that_differ_in_their_parameters_share_what_they_prepare(subtests: pytest.Subtests) -> None:
    for first, second, shared in [
        (GRFMask(2), GRFMask(4, modulation=torch.ones(5)), True),
        (HeatKernelMask(2, lam=0.1), HeatKernelMask(1, lam=2.0, tolerance=1e-3), True),
        (HeatKernelMask(), HeatKernelMask(kind='adjacency'), False),
        (PowerSeriesMask(1, 2), PowerSeriesMask(3, 5, 'heat:0.1'), True),
        (PowerSeriesMask(1, 2), PowerSeriesMask(1, 2, normalization='rw'), False),
        (RWGNKMask(), RWGNKMask(2, lam=0.1, alpha=0.0), True),
        (RWGNKMask(), RWGNKMask(seed=1), False),
        (RWGNKMask(num_walks=None), RWGNKMask(2, None, lam=0.1, alpha=2.0), True),
        (RWGNKMask(num_walks=None), RWGNKMask(num_walks=None, alpha=0.0), False),
        (RWGNKMask(num_walks=None), RWGNKMask(num_walks=2), False),
        (SinDegreeMask(1, 3), SinDegreeMask(2, 9), True),
        (SinDegreeMask(), SinDegreeMask(flow='target_to_source'), False),
        (ToeplitzMask(2), ToeplitzMask(1, 2, 'distance', 3, 'zero', True), True),
        (TreeMask(), TreeMask(2, a=-3.0), True),
        (TreeMask(), TreeMask(kind='distance'), True),
    ]:
        with subtests.test(first=first, second=second, shared=shared):
            common = graph(directed=False)
            assert (common.state(first) is common.state(second)) == shared
