"""The edges route as machine code: beside the dense equation, the plain version, and itself in other threads and parts."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS
from grids import covering
from oracles import masked_attention
from torch import Tensor

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine import backend as numba_backend
from pyg_topomask.machine.threads import in_threads
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.forms import Entries, SparseEntries
from pyg_topomask.operators.sparse import lazy_sparse, sparse_operator
from pyg_topomask.ops import masked_linear_attention

compiled = pytest.importorskip('pyg_topomask.machine.entries', reason='Numba is not installed')


@pytest.fixture(params=[True, False], ids=['compiled', 'plain'])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(numba_backend, 'has_numba', lambda: request.param)
    return request.param


def random_pattern(num_nodes: int, share: float = 0.3, near: int | None = None) -> SparsePattern:
    """Some rows and columns, the first among them, have no entries, and neither have pairs of nodes that are not near."""
    node = torch.arange(num_nodes)
    dense = torch.rand(num_nodes, num_nodes) < share
    dense &= (node - node.unsqueeze(1)).abs() <= (num_nodes if near is None else near)
    dense[::5] = dense[:, 1::7] = False
    return SparsePattern.from_sorted(*dense.nonzero().t(), num_nodes, num_nodes)


def formed_sparse(pattern: SparsePattern, value: Tensor, heads: int) -> MaskOperator:
    graph = Graph.from_tensors(torch.empty(2, 0, dtype=torch.long), pattern.num_rows)
    return sparse_operator(graph, pattern, value, heads)


def numbers(num_nodes: int, heads: int, features: int, channels: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Queries, keys and values, and a tensor to pull at the output."""
    return [torch.randn(num_nodes, heads, width, dtype=dtype) for width in (features, features, channels, channels)]


def results(tensors: list[Tensor], value: Tensor, operator_from: partial[MaskOperator]) -> list[Tensor]:
    """The output, and the gradients of queries, keys, values and mask."""
    *qkv, pull = tensors
    leaves = [each.detach().requires_grad_() for each in (*qkv, value)]
    out = masked_linear_attention(*leaves[:3], operator_from(value=leaves[3]), 'edges')
    return [out.detach(), *torch.autograd.grad((out * pull).sum(), leaves)]


def both(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs of results of machine code and of the plain version."""
    actual = results(*arguments)
    monkeypatch.setattr(numba_backend, 'has_numba', lambda: False)
    return zip(actual, results(*arguments), strict=True)


@pytest.mark.parametrize(('shared', 'heads'), covering([True, False], [1, 3, 4, 6, 9]))
def test_is_the_equation(heads: int, shared: bool, backend: bool) -> None:
    torch.manual_seed(heads)
    pattern = random_pattern(23)
    value = torch.randn(1 if shared else heads, pattern.nnz, dtype=torch.float64)
    q, k, v, _ = numbers(23, heads, 5, 3)
    matrix = torch.zeros(heads, 23, 23, dtype=torch.float64)
    matrix[:, pattern.row.long(), pattern.col.long()] = value
    expected = masked_attention(*(x.numpy() for x in (q, k, v, matrix)))
    out = masked_linear_attention(q, k, v, formed_sparse(pattern, value, heads), 'edges').numpy()
    weighs = pattern.rowptr.diff().numpy() > 0
    assert (out[~weighs] == 0).all()
    np.testing.assert_allclose(out[weighs], expected[weighs], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(('features', 'channels'), [(1, 1), (7, 16), (8, 24), (16, 16), (33, 20), (64, 3)])
@pytest.mark.parametrize(
    ('dtype', 'shared', 'heads'), covering([torch.float32, torch.float64], [True, False], [1, 4, 5]), ids=str
)
def test_agrees_with_the_plain_version(
    features: int, channels: int, heads: int, shared: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(features)
    pattern = random_pattern(31)
    q, k, v, pull = numbers(31, heads, features, channels, dtype)
    value = torch.rand(1 if shared else heads, pattern.nnz, dtype=dtype)
    operator_from = partial(formed_sparse, pattern, heads=heads)
    tolerance = 1e-4 if dtype == torch.float32 else 1e-9
    for actual, expected in both(monkeypatch, [q.abs(), k.abs(), v, pull], value, operator_from):
        assert actual.dtype == dtype
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def test_gradients_are_those_of_finite_differences(backend: bool) -> None:
    torch.manual_seed(0)
    pattern = random_pattern(8)
    for heads, shared in ((2, True), (5, False)):
        value = torch.rand(1 if shared else heads, pattern.nnz, dtype=torch.float64) + 0.1
        leaves = [x.abs().requires_grad_() for x in (*numbers(8, heads, 3, 2)[:3], value)]

        def attend(q: Tensor, k: Tensor, v: Tensor, value: Tensor, heads: int = heads) -> Tensor:
            return masked_linear_attention(q, k, v, formed_sparse(pattern, value, heads), 'edges')

        assert torch.autograd.gradcheck(attend, leaves)


def test_transposed_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    pattern = random_pattern(19)

    def operator_from(value: Tensor) -> MaskOperator:
        return formed_sparse(pattern, value, 4).T

    q, k, v, pull = numbers(19, 4, 6, 6)
    for actual, expected in both(monkeypatch, [q.abs(), k.abs(), v, pull], torch.rand(4, pattern.nnz).double(), operator_from):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize(('heads', 'features', 'channels'), [(4, 16, 16), (2, 3, 0)])
def test_tensors_that_lie_apart(heads: int, features: int, channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    pattern = random_pattern(17)
    tensors = [x.abs().transpose(0, 2).contiguous().transpose(0, 2) for x in numbers(17, heads, features, channels)]
    value = torch.rand(pattern.nnz, heads, dtype=torch.float64).t()
    for actual, expected in both(monkeypatch, tensors, value, partial(formed_sparse, pattern, heads=heads)):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize('num_nodes', [0, 1, 6])
def test_nothing_to_attend_to(num_nodes: int) -> None:
    pattern = SparsePattern.from_sorted(*torch.empty(2, 0, dtype=torch.long), num_nodes, num_nodes)
    tensors = numbers(num_nodes, 2, 3, 4)
    for result in results(tensors, torch.empty(2, 0, dtype=torch.float64), partial(formed_sparse, pattern, heads=2)):
        assert (result == 0).all()


@pytest.mark.parametrize('index', [torch.int32, torch.int64], ids=str)
def test_positions_of_either_type(index: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    pattern = SparsePattern(*(tensor.to(index) for tensor in random_pattern(12).tensors))
    q, k, v, pull = numbers(12, 2, 4, 4)
    value = torch.rand(2, pattern.nnz, dtype=torch.float64)
    for actual, expected in both(monkeypatch, [q.abs(), k.abs(), v, pull], value, partial(formed_sparse, pattern, heads=2)):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize('labelled', [False, True])
@pytest.mark.parametrize('shared', [False, True])
def test_threads_change_only_last_digits(shared: bool, labelled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    pattern, threads = random_pattern(40, 0.6, near=5), torch.get_num_threads()  # parts of the rows reach other columns
    value = torch.rand(1 if shared else 8, 5 if labelled else pattern.nnz)
    label = torch.randint(5, (pattern.nnz,), dtype=torch.int32) if labelled else None
    arguments = numbers(40, 8, 16, 16, torch.float32), value, partial(of_labels, pattern, label, heads=8)
    expected = results(*arguments)
    parts: list[int] = []

    def counted(function: object, *bounds: list[int]) -> list[object]:
        parts.append(len(bounds[0]))
        return in_threads(function, *bounds)

    monkeypatch.setattr('pyg_topomask.machine.threads.in_threads', counted)
    monkeypatch.setattr('pyg_topomask.machine.entries.in_threads', counted)
    monkeypatch.setattr('pyg_topomask.machine.threads.ALONE', 1)
    try:
        torch.set_num_threads(3)
        actual = results(*arguments)
    finally:
        torch.set_num_threads(threads)
    assert parts == [12, 3]
    of_rows = (0, 1) if labelled else (0, 1, 4)
    for place, (each, one) in enumerate(zip(actual, expected, strict=True)):
        assert torch.equal(each, one) if place in of_rows else torch.allclose(each, one, rtol=1e-5, atol=1e-5)


def of_labels(pattern: SparsePattern, label: Tensor | None, value: Tensor, heads: int) -> MaskOperator:
    segments = Graph.from_tensors(torch.empty(2, 0, dtype=torch.long), pattern.num_rows).segments
    return lazy_sparse(segments, heads, SparseEntries(lambda: Entries(pattern, value, label), pattern.nnz))


def test_few_threads_hold_gradients_of_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    monkeypatch.setattr('pyg_topomask.machine.threads.ALONE', 1)
    monkeypatch.setattr(torch, 'get_num_threads', lambda: 16)
    near = SparsePattern.from_sorted(*torch.eye(64).nonzero().t(), 64, 64)
    far = random_pattern(64)
    assert [(first, last) for first, last, *_ in compiled._parts(near, 1)] == [(row, row + 4) for row in range(0, 64, 4)]
    parts = compiled._parts(far, 1)
    assert len(parts) == 4
    assert [parts[0][0], parts[-1][1]] == [0, 64]
    for first, last, origin, end in parts:
        inside = far.col[(far.row >= first) & (far.row < last)]
        assert [origin, end] == [int(inside.min()), int(inside.max()) + 1]


@pytest.mark.parametrize('heads', [1, 6])
@pytest.mark.usefixtures('backend')
def test_labels_are_the_entries_that_they_stand_for(heads: int) -> None:
    torch.manual_seed(0)
    pattern, table = random_pattern(23), torch.randn(heads, 4, dtype=torch.float64)
    label, tensors = torch.randint(4, (pattern.nnz,), dtype=torch.int32), numbers(23, 6, 5, 9)
    *outputs, of_table = results(tensors, table, partial(of_labels, pattern, label, heads=heads))
    *expected, of_entries = results(tensors, table[:, label], partial(formed_sparse, pattern, heads=heads))
    for each, one in zip(outputs, expected, strict=True):
        torch.testing.assert_close(each, one)
    sums = np.stack([of_entries.numpy()[:, label.numpy() == each].sum(1) for each in range(4)], axis=1)
    np.testing.assert_allclose(of_table.numpy(), sums, rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures('backend')
def test_second_derivatives_of_labels() -> None:
    torch.manual_seed(0)
    pattern, table = random_pattern(7, 0.6), torch.rand(2, 3, dtype=torch.float64)
    label = torch.randint(3, (pattern.nnz,), dtype=torch.int32)
    leaves = [each.abs().requires_grad_() for each in (*numbers(7, 2, 3, 2)[:3], table)]

    def attend(q: Tensor, k: Tensor, v: Tensor, table: Tensor) -> Tensor:
        return masked_linear_attention(q, k, v, of_labels(pattern, label, table, heads=2), 'edges')

    assert torch.autograd.gradgradcheck(attend, leaves, fast_mode=True)


def test_nan_and_infinity_stay_in_their_rows(backend: bool) -> None:
    torch.manual_seed(0)
    size = 5
    row, col = torch.ones(size, size).nonzero().t()
    pattern = SparsePattern.from_sorted(torch.cat([row, row + size]), torch.cat([col, col + size]), 2 * size, 2 * size)
    value = torch.rand(4, pattern.nnz, dtype=torch.float64)
    operator_from = partial(formed_sparse, pattern, heads=4)
    for bad in (torch.nan, torch.inf):
        tensors = [x.abs() for x in numbers(2 * size, 4, 7, 7)]
        clean = results(tensors, value, operator_from)
        for spoilt in tensors:
            spoilt[2, 1, 3] = bad
        for after, before in zip(results(tensors, value, operator_from), clean, strict=True):
            if after.size(0) == 4:
                assert torch.equal(after[:, size * size :], before[:, size * size :])
            else:
                assert torch.equal(after[size:], before[size:])
                assert not after[:size].isfinite().all()


def test_heads_do_not_mix(backend: bool) -> None:
    torch.manual_seed(0)
    pattern = random_pattern(11)
    value = torch.rand(5, pattern.nnz, dtype=torch.float64)
    q, k, v, _ = (x.abs() for x in numbers(11, 5, 9, 9))
    together = masked_linear_attention(q, k, v, formed_sparse(pattern, value, 5), 'edges')
    for head in range(5):
        one = slice(head, head + 1)
        alone = masked_linear_attention(q[:, one], k[:, one], v[:, one], formed_sparse(pattern, value[one], 1), 'edges')
        torch.testing.assert_close(alone, together[:, one])


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64], ids=str)
def test_sums_that_cancel_are_no_weight(dtype: torch.dtype, backend: bool) -> None:
    pattern = SparsePattern.from_sorted(*torch.tensor([[0, 0, 1], [0, 1, 1]]), 2, 2)
    value = torch.tensor([[1.0, -1.0, 1e-42 if dtype == torch.float32 else 1e-310]], dtype=dtype)
    ones = torch.ones(2, 2, 3, dtype=dtype)
    for result in results(
        [ones, ones, torch.rand(2, 2, 2, dtype=dtype), ones[..., :2]], value, partial(formed_sparse, pattern, heads=2)
    ):
        assert (result == 0).all()


@pytest.mark.parametrize('graph', GRAPH_NAMES)
def test_graphs_of_all_kinds(graph: str, backend: bool) -> None:
    from pyg_topomask.masks import AdjacencyMask

    data = GRAPHS[graph]()
    mask, num_nodes = AdjacencyMask(4).double()(data), data.num_nodes or 0
    q, k, v, _ = (x.abs() for x in numbers(num_nodes, 4, 3, 2))
    expected = masked_attention(*(x.detach().numpy() for x in (q, k, v, mask.to_dense())))
    actual = masked_linear_attention(q, k, v, mask, 'edges').detach().numpy()
    weighs = np.isfinite(expected)
    np.testing.assert_allclose(actual[weighs], expected[weighs], rtol=1e-8, atol=1e-9)
    assert np.isfinite(actual).all()
