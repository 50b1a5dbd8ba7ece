import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.operators.sparse import Sparse
from pyg_topomask.operators.sparse_matmul import multiply, sddmm, spmm


def random_pattern(rows: int, cols: int, seed: int = 0) -> SparsePattern:
    generator = torch.Generator().manual_seed(seed)
    row, col = (torch.rand(rows, cols, generator=generator) < 0.4).nonzero().unbind(1)
    return SparsePattern.from_sorted(row, col, rows, cols)


def matrix(pattern: SparsePattern, value: Tensor, heads: int) -> Tensor:
    dense = torch.zeros(heads, pattern.num_rows, pattern.num_cols, dtype=value.dtype)
    dense[:, pattern.row.long(), pattern.col.long()] = value.expand(heads, -1)
    return dense


def numbers(*size: int) -> Tensor:
    return torch.randn(*size, dtype=torch.float64)


@settings(deadline=None, max_examples=30, derandomize=True)
@given(
    rows=st.integers(0, 6),
    cols=st.integers(0, 6),
    heads=st.integers(1, 3),
    channels=st.integers(0, 4),
    shared=st.booleans(),
    transpose=st.booleans(),
    seed=st.integers(0, 50),
)
def test_products_are_those_of_dense_matrices(
    rows: int, cols: int, heads: int, channels: int, shared: bool, transpose: bool, seed: int
) -> None:
    pattern = random_pattern(rows, cols, seed)
    value = numbers(1 if shared else heads, pattern.nnz)
    dense = matrix(pattern, value, heads)
    dense = dense.transpose(1, 2) if transpose else dense
    x = numbers(dense.size(2), heads, channels)
    torch.testing.assert_close(spmm(pattern, value, x, transpose), torch.einsum('hnk,khc->nhc', dense, x))
    a, b = numbers(rows, heads, channels), numbers(cols, heads, channels)
    scores = torch.einsum('nhc,khc->hnk', a, b)[:, pattern.row.long(), pattern.col.long()]
    torch.testing.assert_close(sddmm(pattern, a, b), scores)


@pytest.mark.parametrize('layout', ['rows', 'columns', 'every other column'])
@pytest.mark.parametrize('channels', [1, 3, 16])
def test_products_do_not_depend_on_what_is_written_over(channels: int, layout: str) -> None:
    pattern = random_pattern(40, 30)
    rowptr = torch.cat([pattern.rowptr, pattern.rowptr[-1:]])  # the last row is empty
    value, x = numbers(pattern.nnz), numbers(30, channels)
    given = torch.full((41, 2 * channels), float('nan'), dtype=x.dtype)
    out = {'rows': given[:, :channels], 'columns': given.t().reshape(2 * channels, 41)[:channels].t()}.get(
        layout, given[:, ::2]
    )
    result = multiply(rowptr, pattern.col, value, x, out=out)
    expected = torch.cat([matrix(pattern, value, 1)[0], torch.zeros(1, 30, dtype=x.dtype)]) @ x
    assert result is out
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize('transpose', [False, True])
@pytest.mark.parametrize('shared', [False, True])
def test_gradients_of_the_sparse_product(shared: bool, transpose: bool) -> None:
    pattern = random_pattern(4, 5)
    value = numbers(1 if shared else 2, pattern.nnz).requires_grad_()
    x = numbers(4 if transpose else 5, 2, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda value, x: spmm(pattern, value, x, transpose), (value, x))


def test_gradients_of_the_sampled_product() -> None:
    pattern = random_pattern(4, 5)
    a, b = numbers(4, 2, 3).requires_grad_(), numbers(5, 2, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: sddmm(pattern, a, b), (a, b))


def test_rows_that_are_not_contiguous() -> None:
    pattern = random_pattern(5, 5)
    value, x = numbers(pattern.nnz, 2).t(), numbers(3, 2, 5).permute(2, 1, 0)
    expected = torch.einsum('hnk,khc->nhc', matrix(pattern, value, 2), x)
    torch.testing.assert_close(spmm(pattern, value, x), expected)


def test_not_a_number_stays_in_its_rows() -> None:
    pattern = random_pattern(6, 6, seed=3)
    x = numbers(6, 1, 1)
    x[2] = float('nan')
    touched = set(pattern.row[pattern.col == 2].tolist())
    rows = spmm(pattern, numbers(1, pattern.nnz), x).isnan().flatten().nonzero().flatten().tolist()
    assert set(rows) == touched


@pytest.mark.parametrize('shared', [False, True])
def test_operator_multiplies_by_the_matrix_and_its_transpose(shared: bool) -> None:
    pattern = random_pattern(5, 5)
    value, x = numbers(1 if shared else 2, pattern.nnz), numbers(5, 2, 3)
    dense, operator = matrix(pattern, value, 2), Sparse(value, pattern)
    torch.testing.assert_close(operator.apply(x), torch.einsum('hnk,khc->nhc', dense, x))
    torch.testing.assert_close(operator.T.apply(x), torch.einsum('hkn,khc->nhc', dense, x))
    magnitude = torch.einsum('hnk,khc->nhc', dense.abs(), x.abs())
    torch.testing.assert_close(operator.magnitude(x.abs()), magnitude)
