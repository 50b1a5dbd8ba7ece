"""Machine code that prepares graphs, beside the plain versions and dense computations in NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from graphs import random_tree
from torch import Tensor

from pyg_topomask.graphs.edges import check_edges
from pyg_topomask.graphs.forest import Forest
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine import backend
from pyg_topomask.masks import AdjacencyMask
from pyg_topomask.masks.power_series import _listed, count_within
from pyg_topomask.operators.exponential import GlobalReductions, spectral_bound
from pyg_topomask.walks.features import WalkFeatures

patterns = pytest.importorskip('pyg_topomask.machine.patterns', reason='Numba is not installed')

SIZES = [(0, 0), (1, 0), (1, 3), (9, 4), (30, 90), (700, 900)]


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], list[Tensor]]], tuple[list[Tensor], list[Tensor]]]:
    """Returns results of machine code, and of the plain version."""

    def results(compute: Callable[[], list[Tensor]]) -> tuple[list[Tensor], list[Tensor]]:
        compiled = compute()
        with monkeypatch.context() as patch:
            patch.setattr(backend, 'has_numba', lambda: False)
            return compiled, compute()

    return results


def pairs(size: int, number: int) -> Tensor:
    return torch.randint(max(size, 1), (2, number), generator=torch.Generator().manual_seed(size))


def equal(results: tuple[list[Tensor], list[Tensor]]) -> bool:
    return all(one.dtype == two.dtype and torch.equal(one, two) for one, two in zip(*results, strict=True))


@pytest.mark.parametrize(('size', 'number'), SIZES)
def test_patterns(size: int, number: int, both: Callable) -> None:
    row, col = pairs(size, number)

    def tensors() -> list[Tensor]:
        pattern, slot = SparsePattern.from_pairs(row, col, size, size + 2)
        return [*pattern.tensors, slot]

    compiled, plain = both(tensors)
    assert equal((compiled, plain))
    dense = np.zeros((size, size + 2), dtype=bool)
    dense[row.numpy(), col.numpy()] = True
    expected_row, expected_col = np.nonzero(dense)
    np.testing.assert_array_equal(compiled[1].numpy(), expected_col)
    np.testing.assert_array_equal(expected_row[compiled[-1].numpy()], row.numpy())


@pytest.mark.parametrize(('size', 'number'), SIZES)
def test_powers(size: int, number: int, both: Callable) -> None:
    for order in (0, 1, 3):
        assert_powers(size, number, order, both)


def assert_powers(size: int, number: int, order: int, both: Callable) -> None:
    pattern, _ = SparsePattern.from_pairs(*pairs(size, number), size, size)
    value = torch.randn(pattern.nnz, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def visits() -> list[Tensor]:
        walks = _listed(pattern, value, order)
        features, loads = walks._slots
        counted = torch.tensor(count_within(pattern, order))
        return [walks.load, *walks.visits()[:3], *features.tensors, *loads.tensors, counted]

    (load, *compiled), (other, *plain) = both(visits)
    assert equal((compiled, plain))
    torch.testing.assert_close(load, other, rtol=1e-12, atol=1e-12)
    dense, start, visited, length = pattern.to_scipy(value).toarray(), *(each.numpy() for each in compiled[:3])
    for power in range(order + 1):
        actual, of_power = np.zeros((size, size)), length == power
        actual[start[of_power], visited[of_power]] = load[torch.from_numpy(of_power)].numpy()
        np.testing.assert_allclose(actual, np.linalg.matrix_power(dense, power), rtol=1e-9, atol=1e-9)


def test_visits_of_one_length_have_patterns() -> None:
    walks = WalkFeatures(*torch.tensor([[0, 0, 2], [0, 1, 1], [0, 1, 1]], dtype=torch.int32), torch.ones(3), 4, 1)
    features, loads = walks._slots
    assert features.to_scipy().toarray().tolist() == [[1, 1, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert loads.to_scipy().toarray().tolist() == [[1, 0], [0, 1], [0, 1]]


@pytest.mark.parametrize(('size', 'number'), SIZES[1:])
@pytest.mark.parametrize(('weighted', 'normalization'), [(False, 'sym'), (True, 'rw')])
def test_hashes_weights_and_bounds(size: int, number: int, weighted: bool, normalization: str, both: Callable) -> None:
    edges = pairs(size, number)
    weight = torch.randn(2 * number, generator=torch.Generator().manual_seed(0)) if weighted else None
    if weight is not None:
        weight[::3] = 1
    graph = Graph(torch.cat([edges, edges.flip(0)], 1), size, weight)
    state = AdjacencyMask(1).prepare(graph)
    nodes = GlobalReductions(state.pattern)

    assert equal(both(lambda: [graph.fingerprint, graph.structure]))
    entries = state.weight.double().abs() + state.loop
    expected = state.pattern.to_scipy(entries).toarray()
    for component, count in (nodes.components(), (torch.zeros(size, dtype=torch.long), 1)):

        def numbers(component: Tensor = component, count: int = count) -> list[Tensor]:
            bounds = spectral_bound(nodes, entries, component, count)
            return [*bounds, graph.normalized_weight(normalization)]

        compiled, plain = both(numbers)
        for one, two in zip(compiled, plain, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)
        radius = np.abs(np.linalg.eigvals(expected)).max()
        assert radius * (1 - 1e-9) <= compiled[0].max() <= radius * 1.2


@pytest.mark.parametrize(
    ('shape', 'size'),
    [('random', 0), ('random', 1), ('path', 2), ('random', 5), ('random', 60), ('path', 60), ('forest', 5), ('forest', 60)],
)
def test_forests(size: int, shape: str, both: Callable) -> None:
    node = torch.arange(1, max(size, 1))
    edges = torch.stack([node - 1, node]) if shape == 'path' or size < 2 else random_tree(size)
    if shape == 'forest':
        edges = edges[:, ::2]
    edges = torch.randperm(size, generator=torch.Generator().manual_seed(0))[edges] if edges.numel() > 0 else edges
    edges = torch.cat([edges, edges.flip(0)[:, 1:], edges[:, :2], torch.zeros(2, min(size, 1), dtype=torch.long)], 1)

    def forest() -> list[Tensor]:
        made = Forest.from_edges(edges, size)
        hops = made.hops(Segments(size, torch.zeros(size, dtype=torch.long), min(size, 1)))
        return [*map(torch.from_numpy, (made.parent, made.up, made.down, made.round, made.depth)), hops]

    compiled, plain = both(forest)
    assert equal((compiled, plain))
    distance = np.full((size, size), np.inf)
    distance[edges[0], edges[1]] = distance[edges[1], edges[0]] = 1
    np.fill_diagonal(distance, 0)
    for middle in range(size):
        distance = np.minimum(distance, distance[:, [middle]] + distance[[middle]])
    distance[np.isinf(distance)] = -1
    np.testing.assert_array_equal(compiled[-1].view(size, size), distance)


@pytest.mark.parametrize('edges', [[[0, 1, 2], [1, 2, 0]], [[0, 1, 2, 3], [1, 2, 3, 0]], [[4, 5, 6, 0], [5, 6, 4, 1]]])
def test_cycles_are_refused(edges: list[list[int]]) -> None:
    with pytest.raises(ValueError, match=r'^edge_index: got a graph with a cycle'):
        Forest.from_edges(torch.tensor(edges), 8)


def test_wrong_edges_are_refused(subtests: pytest.Subtests) -> None:
    for edges, batch in [
        ([[0, 1], [1, 4]], None),
        ([[0, -1], [1, 0]], None),
        ([[0, 1], [1, 2]], [0, 0, 1, 1]),
        ([[0, 1], [1, 0]], [0, 0, 1, 0]),
        ([[0, 1], [1, 0]], [-1, 0, 1, 1]),
    ]:
        with subtests.test(edges=edges, batch=batch):
            given = None if batch is None else torch.tensor(batch)
            check_edges(torch.tensor([[0, 3], [0, 3]]), 4, None, torch.tensor([0, 0, 1, 1]))
            with pytest.raises(ValueError, match=r'^(edge_index|batch): got'):
                check_edges(torch.tensor(edges), 4, None, given)


def test_no_entry_leads_across_the_ends_of_blocks() -> None:
    torch.manual_seed(0)
    blocks = [torch.rand(size, size) < 0.4 for size in (9, 5, 1, 12, 30, 2)]
    for block in blocks[::2]:
        block[::3] = block[:, ::4] = False
    dense = torch.block_diag(*blocks)
    pattern = SparsePattern.from_sorted(*dense.nonzero().t(), *dense.shape)
    closed = [end for end in range(1, 60) if not dense[:end, end:].any() and not dense[end:, :end].any()]
    assert patterns.closed_ends(pattern).tolist() == closed
    assert {9, 14, 15, 27, 57, 59} <= set(closed)
