import pytest
import torch
from torch import Tensor

from pyg_topomask.sparse_pattern import SparsePattern, stable_argsort

MATRIX = torch.tensor([[0, 1, 0, 2], [0, 0, 0, 0], [3, 4, 0, 5]])


def pattern() -> SparsePattern:
    row, col = MATRIX.nonzero().unbind(1)
    return SparsePattern.from_sorted(row, col, 3, 4)


def dense(sparse_pattern: SparsePattern, value: Tensor) -> Tensor:
    matrix = torch.zeros(sparse_pattern.num_rows, sparse_pattern.num_cols, dtype=torch.long)
    matrix[sparse_pattern.row.long(), sparse_pattern.col.long()] = value
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
    sparse_pattern = SparsePattern.from_sorted(empty, empty, *size)
    assert (sparse_pattern.nnz, sparse_pattern.num_rows, sparse_pattern.num_cols) == (0, *size)
    assert (sparse_pattern.T.num_rows, sparse_pattern.T.num_cols) == size[::-1]


@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
@pytest.mark.parametrize('bound', [1, 5, 2**15, 2**16, 2**16 + 1, 2**31 - 1, 2**32, 2**40])
def test_sort_keeps_the_order_of_equal_keys(bound: int, dtype: torch.dtype) -> None:
    if bound > 2**31 and dtype == torch.int32:
        bound = 2**31 - 1
    generator = torch.Generator().manual_seed(0)
    few = torch.randint(bound, (20,), generator=generator)
    random = torch.cat([few[torch.randint(20, (300,), generator=generator)], torch.tensor([0, bound - 1])])
    for key in (random, random.sort().values, random.flip(0), torch.cat([random.sort().values] * 2), random[:0]):
        expected = torch.tensor(sorted(range(key.numel()), key=key.tolist().__getitem__), dtype=torch.long)
        assert torch.equal(stable_argsort(key.to(dtype)), expected)
        assert torch.equal(stable_argsort(key.to(dtype), bound), expected)
