import pytest
import torch
from torch import Tensor

from pyg_topomask.sparse_pattern import SparsePattern, stable_argsort

MATRIX = torch.tensor([[0, 1, 0, 2], [0, 0, 0, 0], [3, 4, 0, 5]])


def pattern() -> SparsePattern:
    row, col = MATRIX.nonzero().unbind(1)
    return SparsePattern.from_sorted(row, col, 3, 4)


def dense(own: SparsePattern, value: Tensor) -> Tensor:
    matrix = torch.zeros(own.num_rows, own.num_cols, dtype=torch.long)
    matrix[own.row.long(), own.col.long()] = value
    return matrix


def test_rows_and_columns() -> None:
    value = MATRIX[MATRIX != 0]
    assert torch.equal(dense(pattern(), value), MATRIX)
    assert (pattern().nnz, pattern().num_rows, pattern().num_cols) == (5, 3, 4)


def test_transpose() -> None:
    value = MATRIX[MATRIX != 0]
    transposed = pattern().T
    assert torch.equal(dense(transposed, value[pattern().perm_t.long()]), MATRIX.t())
    assert all(torch.equal(*pair) for pair in zip(transposed.T.tensors, pattern().tensors, strict=True))


@pytest.mark.parametrize('size', [(0, 0), (3, 0), (2, 5)])
def test_no_entries(size: tuple[int, int]) -> None:
    empty = torch.empty(0, dtype=torch.long)
    own = SparsePattern.from_sorted(empty, empty, *size)
    assert (own.nnz, own.num_rows, own.num_cols) == (0, *size)
    assert (own.T.num_rows, own.T.num_cols) == size[::-1]


def test_sort_keeps_the_order_of_equal_keys() -> None:
    key = torch.randint(5, (200,))
    assert torch.equal(stable_argsort(key), torch.argsort(key, stable=True))
