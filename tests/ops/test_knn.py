import numpy as np
import pytest
import torch
from torch import Tensor

from pyg_topomask.ops import knn
from pyg_topomask.ops.knn import knn_graph

SIZES = [1, 2, 3, 20, 64, 65, 150, 7]


def points(sizes: list[int], dim: int = 3) -> tuple[Tensor, Tensor]:
    batch = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return torch.rand(sum(sizes), dim, dtype=torch.float64), batch


def oracle(pos: Tensor, k: int, batch: Tensor, loop: bool) -> list[tuple[int, int]]:
    """Every node's neighbors in its graph, sorted by distance."""
    edges = []
    for node, point in enumerate(pos.numpy()):
        distance = np.sqrt(((pos.numpy() - point) ** 2).sum(1))
        distance[batch.numpy() != batch[node].item()] = np.inf
        distance[node] = -1.0 if loop else np.inf
        nearest = [int(neighbor) for neighbor in np.argsort(distance)[:k] if distance[neighbor] < np.inf]
        edges += [(neighbor, node) for neighbor in nearest]
    return edges


@pytest.mark.parametrize('loop', [False, True])
@pytest.mark.parametrize(('k', 'dim'), [(1, 3), (3, 3), (10, 1), (100, 5)])
def test_neighbors_of_all_pairs(k: int, dim: int, loop: bool) -> None:
    pos, batch = points(SIZES, dim)
    assert list(map(tuple, knn_graph(pos, k, batch, loop).t().tolist())) == oracle(pos, k, batch, loop)


def test_shape_order_and_direction() -> None:
    edge_index = knn_graph(torch.tensor([[0.0], [1.0], [3.0], [7.0]]), 2)
    assert edge_index.dtype == torch.long
    assert edge_index.tolist() == [[1, 2, 0, 2, 1, 0, 2, 1], [0, 0, 1, 1, 2, 2, 3, 3]]
    reversed_edges = knn_graph(torch.tensor([[0.0], [1.0], [3.0], [7.0]]), 2, flow='target_to_source')
    assert torch.equal(reversed_edges, edge_index.flip(0))


@pytest.mark.parametrize('block', [1, 1000, 50000])
def test_blocks_of_any_size_are_the_tree(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pos, batch = points([130, *SIZES])
    expected = knn_graph(pos, 5, batch)
    monkeypatch.setattr(knn, '_SMALL', 1000)
    monkeypatch.setattr(knn, '_BLOCK', block)
    assert torch.equal(knn_graph(pos, 5, batch), expected)


@pytest.mark.parametrize('ties', [False, True])
@pytest.mark.parametrize('loop', [False, True])
def test_graph_has_the_same_neighbors_alone_and_in_a_batch(ties: bool, loop: bool) -> None:
    pos, batch = points(SIZES)
    if ties:
        pos = (3 * pos).round()
    edge_index, first = knn_graph(pos, 4, batch, loop), 0
    for graph, size in enumerate(SIZES):
        alone = knn_graph(pos[first : first + size], 4, loop=loop)
        assert torch.equal(edge_index[:, batch[edge_index[0]] == graph] - first, alone)
        first += size


@pytest.mark.parametrize('size', [10, 200])
def test_coincident_nodes_are_neighbors_but_not_of_themselves(size: int) -> None:
    edge_index = knn_graph(torch.ones(size, 3), 4)
    assert edge_index.unique(dim=1).shape == (2, 4 * size)
    assert (edge_index[0] != edge_index[1]).all()
    assert torch.equal(edge_index, knn_graph(torch.ones(size, 3), 4))
    assert torch.equal(knn_graph(torch.ones(size, 3), 1, loop=True), torch.arange(size).expand(2, -1))


@pytest.mark.parametrize('loop', [False, True])
def test_ties_leave_distances_sorted(loop: bool) -> None:
    pos = torch.stack(torch.meshgrid(torch.arange(12.0), torch.arange(12.0), indexing='ij'), dim=-1).view(-1, 2)
    batch = torch.zeros(144, dtype=torch.long)
    source, target = knn_graph(pos, 6, loop=loop)
    expected = np.array(oracle(pos, 6, batch, loop))
    distance = (pos[source] - pos[target]).norm(dim=1).numpy()
    np.testing.assert_allclose(distance, np.linalg.norm(pos.numpy()[expected[:, 0]] - pos.numpy()[expected[:, 1]], axis=1))


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize('size', [5, 80])
def test_data_types(dtype: torch.dtype, size: int) -> None:
    pos = torch.randperm(size).to(dtype).view(-1, 1) ** 2  # half precision rounds some to the same number
    exact = pos.double()
    edges = torch.tensor(oracle(exact, 3, torch.zeros(size, dtype=torch.long), False)).t()
    actual = knn_graph(pos, 3)
    assert torch.equal(actual[1], edges[1])
    assert torch.equal(exact[actual].diff(dim=0).abs(), exact[edges].diff(dim=0).abs())


def test_no_nodes_no_neighbors_and_empty_graphs() -> None:
    assert knn_graph(torch.empty(0, 3), 2).shape == (2, 0)
    assert knn_graph(torch.empty(0, 3), 2, torch.empty(0, dtype=torch.long), loop=True).shape == (2, 0)
    assert knn_graph(torch.ones(1, 3), 2).shape == (2, 0)
    assert knn_graph(torch.ones(1, 3), 2, loop=True).tolist() == [[0], [0]]
    assert knn_graph(torch.tensor([[0.0], [1.0], [2.0]]), 2, torch.tensor([3, 3, 8])).tolist() == [[1, 0], [0, 1]]


def test_positions_that_require_a_gradient() -> None:
    assert not knn_graph(torch.rand(100, 3, requires_grad=True), 2).requires_grad


def test_large_coordinates_do_not_blur_small_distances() -> None:
    pos = torch.tensor([[1e9], [1e9 + 1], [1e9 + 3], [-1e9]], dtype=torch.float64)
    assert knn_graph(pos, 1)[0].tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize('size', [10, 200])
def test_large_coordinates_do_not_reorder_neighbors(size: int) -> None:
    """Squares of sums of products would lose the distances."""
    pos = 1000.0 + torch.randperm(size, generator=torch.Generator().manual_seed(0)).float().view(-1, 1).repeat(1, 3) / 64
    order = pos[:, 0].argsort()
    source, target = knn_graph(pos, k=2)
    inside = order[1:-1]
    expected = torch.stack([order[:-2], order[2:]], dim=1)
    for node, both in zip(inside.tolist(), expected.tolist(), strict=True):
        assert sorted(source[target == node].tolist()) == sorted(both)


def test_many_graphs_are_searched_together(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(pos: Tensor, first: Tensor, *args: object) -> None:
        calls.append(first.numel())
        original(pos, first, *args)

    calls: list[int] = []
    original = knn._search_pairs
    monkeypatch.setattr(knn, '_search_pairs', search)
    monkeypatch.setattr(knn, '_search_tree', lambda *args: pytest.fail('a tree for a small graph'))
    pos, batch = points([20, 3] * 2500)
    assert knn_graph(pos, 2, batch).shape == (2, 115_000)
    assert calls == [2500, 2500]


def test_bad_arguments_are_named(subtests: pytest.Subtests) -> None:
    for name, arguments in [
        ('pos', {'pos': torch.ones(3)}),
        ('pos', {'pos': torch.ones(3, 0)}),
        ('pos', {'pos': torch.ones(3, 2, dtype=torch.long)}),
        ('pos', {'pos': torch.tensor([[0.0], [float('nan')]])}),
        ('pos', {'pos': torch.tensor([[0.0], [-1e30]])}),
        ('k', {'k': 0}),
        ('batch', {'batch': torch.zeros(2, dtype=torch.long)}),
        ('batch', {'batch': torch.zeros(3)}),
        ('batch', {'batch': torch.tensor([0, 1, 0])}),
        ('batch', {'batch': torch.tensor([-1, 0, 0])}),
    ]:
        with subtests.test(name=name, arguments=arguments), pytest.raises(ValueError, match=f'^{name}: got'):
            knn_graph(**{'pos': torch.rand(3, 2), 'k': 2} | arguments)
