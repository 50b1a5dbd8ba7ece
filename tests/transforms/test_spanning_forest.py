from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from graphs import GRAPHS, small_weighted_graph, uneven_graphs
from grids import covering
from numpy.typing import NDArray
from oracles import as_numpy
from scipy.sparse.csgraph import shortest_path
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import Compose

from pyg_topomask.apps.diagnostics import edge_stretch
from pyg_topomask.machine import backend
from pyg_topomask.masks import TreeMask
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.testing import assert_mask_operator
from pyg_topomask.transforms import AddForest, AddSpanningForest, KNNGraph

SINGLE = sorted(set(GRAPHS) - {'batch', 'trailing_empty_graph', 'negative_weights', 'no_edge_index'})
F = torch.tensor([[1.0, -0.5, 0.25, 2.0]])
MASKS: dict[str, Callable[[], TreeMask]] = {
    'exp': lambda: TreeMask(2, a=torch.tensor([-0.5, -2.0]), b=0.25),
    'rings': lambda: TreeMask(kind='distance', max_distance=3, f=F, method='rings'),
    'fft': lambda: TreeMask(kind='distance', max_distance=3, f=F, method='fft'),
}


def positive(name: str) -> Data:
    data = GRAPHS[name]()
    return data if data.edge_weight is None else data.update({'edge_weight': data.edge_weight.abs()})


def distances(data: Data, num_trees: int, weighted: bool) -> NDArray[Any]:
    """Along the parents that are stored, through the shortest of parallel edges, [T, N, N]."""
    edges, weight, size, _ = as_numpy(data)
    parents = data.forest_index[0, : num_trees * size].view(num_trees, size).numpy()
    distance = np.full((num_trees, size, size), np.inf)
    for tree, parent in zip(distance, parents, strict=True):
        np.fill_diagonal(tree, 0)
        for (i, j), w in zip(edges.T, weight, strict=True):
            if i != j and (parent[i] == j or parent[j] == i):
                tree[i, j] = tree[j, i] = min(tree[i, j], w if weighted else 1)
        for k in range(size):  # Floyd and Warshall
            np.minimum(tree, tree[:, k, None] + tree[k], out=tree)
    return distance


def expected(mask: TreeMask, data: Data, num_trees: int) -> NDArray[Any]:
    distance = distances(data, num_trees, mask.kind == 'exp')
    if mask.kind == 'exp':
        a, b = mask.a.detach().numpy(), mask.b.detach().numpy()
        return np.exp(a[:, None, None, None] * distance + b[:, None, None, None]).mean(1)
    place = np.minimum(np.where(np.isinf(distance), 0, distance), 3).astype(int)
    return np.where(np.isinf(distance), 0, F.double().numpy()[:, place]).mean(1)


def dense(mask: TreeMask, data: Data) -> Tensor:
    return mask(data).to_dense().detach()


@pytest.mark.parametrize(('case', 'name'), covering(MASKS, SINGLE))
def test_the_mask_is_the_mean_over_the_stored_trees(case: str, name: str) -> None:
    data = AddSpanningForest('random', num_trees=3)(positive(name))
    mask = MASKS[case]().double()
    np.testing.assert_allclose(dense(mask, data).numpy(), expected(mask, data, 3), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize('case', MASKS)
def test_operators_behave_as_their_matrices(case: str) -> None:
    graphs = [AddSpanningForest(num_trees=2)(positive(name)) for name in ('weighted', 'one_node', 'undirected')]
    graphs[0].edge_weight = None
    for data in (AddSpanningForest('random', num_trees=2)(positive('weighted')), Batch.from_data_list(graphs[1:])):
        assert_mask_operator(MASKS[case](), data)


@pytest.mark.parametrize('num_trees', [1, 3])
@pytest.mark.parametrize('case', MASKS)
def test_batches_are_block_diagonal_in_the_masks_of_their_graphs(case: str, num_trees: int) -> None:
    mask, transform = MASKS[case]().double(), Compose([AddSpanningForest('random', num_trees, seed=7)])
    graphs = [transform(data) for data in (*uneven_graphs(), Data(edge_index=torch.empty(2, 0).long(), num_nodes=0))]
    for data in graphs:
        data.edge_weight = None if data.edge_weight is None else data.edge_weight.double()
        data.edge_weight = torch.empty(0, dtype=torch.float64) if data.edge_weight is None else data.edge_weight
    alone = [dense(mask, data) for data in graphs]
    for order in ([0, 1, 2, 3], [4, 3, 2, 4, 1, 0], [2, 2, 4]):
        batch = next(iter(DataLoader([graphs[index] for index in order], batch_size=len(order))))
        for head in range(mask.heads):
            blocks = torch.block_diag(*(alone[index][head] for index in order if graphs[index].num_nodes > 0))
            torch.testing.assert_close(dense(mask, batch)[head], blocks)
        for one, index in zip(batch.to_data_list(), order, strict=True):
            assert torch.equal(one.forest_index, graphs[index].forest_index)


def test_on_forests_all_methods_store_the_forest() -> None:
    data = Data(edge_index=torch.tensor([[0, 0, 1, 5], [1, 2, 3, 4]]), edge_weight=torch.rand(4).double(), num_nodes=6)
    reference = dense(TreeMask().double(), AddForest()(data.clone()))
    for method in ('low_stretch', 'minimum', 'random'):
        torch.testing.assert_close(dense(TreeMask().double(), AddSpanningForest(method)(data.clone())), reference)


def test_gradients_reach_the_lengths_of_the_trees() -> None:
    edge_index, half = positive('weighted').edge_index, positive('weighted').edge_weight[:7]

    def product(weight: Tensor) -> Tensor:
        data = AddSpanningForest('random', num_trees=2)(Data(edge_index=edge_index, edge_weight=weight, num_nodes=6))
        return TreeMask(a=-0.5).double()(data).matmul(torch.arange(12, dtype=torch.float64).view(6, 1, 2))

    weight = torch.cat([half, half + 0.01])  # away from ties
    assert torch.autograd.gradcheck(product, weight.requires_grad_())


@pytest.mark.parametrize('machine_code', [True, False])
@pytest.mark.parametrize('case', MASKS)
def test_gradients_of_attention_are_those_of_its_matrix(case: str, machine_code: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not machine_code:
        monkeypatch.setattr(backend, 'has_numba', lambda: False)
    data = AddSpanningForest('random', num_trees=3)(positive('weighted'))
    mask = MASKS[case]().double()
    torch.manual_seed(0)
    qkv = [torch.rand(6, mask.heads, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    (q, k, v), weight, variables = qkv, torch.rand(6, mask.heads, 3, dtype=torch.float64), (*qkv, *mask.parameters())
    scores = torch.einsum('ihm,jhm->hij', q, k) * mask(data).to_dense()
    expected = torch.einsum('hij,jhd->ihd', scores / scores.sum(2, keepdim=True), v)
    actual = masked_linear_attention(q, k, v, mask(data), route='features')
    torch.testing.assert_close(actual, expected)
    gradients = (torch.autograd.grad((out * weight).sum(), variables) for out in (actual, expected))
    for of_route, of_matrix in zip(*gradients, strict=True):
        torch.testing.assert_close(of_route, of_matrix, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ('name', 'method'),
    covering(
        ['weighted', 'undirected', 'zero_weights', 'parallel_edges', 'self_loop', 'no_edges'],
        ['low_stretch', 'minimum', 'random'],
    ),
)
def test_stretch_is_the_distance_over_the_length(name: str, method: str) -> None:
    data = AddSpanningForest(method, num_trees=2)(positive(name))
    edges, weight, *_ = as_numpy(data)
    distance = distances(data, 2, True)[:, edges[0], edges[1]]
    counted = (edges[0] != edges[1]) & (weight > 0)
    stretch = np.where(counted, distance / np.where(counted, weight, 1), 1)
    np.testing.assert_allclose(edge_stretch(data).numpy(), stretch, rtol=1e-6)
    graph = np.where(counted, weight, 0)
    if graph.all() and len(graph) > 0:  # no tree brings nodes nearer than the graph does
        matrix = np.zeros((data.num_nodes,) * 2)
        matrix[edges[0], edges[1]] = weight
        assert (distances(data, 2, True) >= shortest_path(matrix, directed=False) - 1e-9).all()


def test_changed_data_and_batches_of_different_counts_are_refused() -> None:
    data = AddSpanningForest(num_trees=2)(small_weighted_graph().update({'edge_weight': None}))
    with pytest.raises(ValueError, match=r'^data: got graphs with 1 to 2 stored forests; accepted: equal numbers of them'):
        TreeMask()(Batch.from_data_list([data, AddSpanningForest()(GRAPHS['undirected']())]))
    data.edge_index = data.edge_index[:, 1:]
    with pytest.raises(ValueError, match='run AddForest again, or AddSpanningForest'):
        TreeMask()(data)


def test_seeds_and_representation() -> None:
    assert repr(AddSpanningForest('minimum', 2, 5)) == "AddSpanningForest(method='minimum', num_trees=2, seed=5)"
    first, second, other = (AddSpanningForest('random', 9, seed)(GRAPHS['undirected']()).forest_index for seed in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_what_has_no_single_spanning_forest_is_refused() -> None:
    for arguments, message in (({'method': 'bfs'}, '^method: got'), ({'num_trees': 0}, '^num_trees: got 0; .* from 1')):
        with pytest.raises(ValueError, match=message):
            AddSpanningForest(**arguments)
    for data, message in (
        (GRAPHS['batch'](), '^data: got a batch'),
        (HeteroData(), '^data: got HeteroData'),
        (Data(num_nodes=3), f'^data: got .*{KNNGraph.__name__}'),
        (GRAPHS['negative_weights'](), '^edge_weight: got -'),
    ):
        with pytest.raises(ValueError, match=message):
            AddSpanningForest()(data)
