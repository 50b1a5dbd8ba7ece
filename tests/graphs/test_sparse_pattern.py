import pytest
import torch
from grids import covering
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern, stable_argsort

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


def test_pairs_outside_the_matrix_are_refused(subtests: pytest.Subtests) -> None:
    for row, col, message in [
        ([0], [4], 'col: got numbers from 4 to 4; accepted: 0 to 3'),
        ([3, 0], [0, 1], 'row: got numbers from 0 to 3; accepted: 0 to 2'),
        ([0], [-1], 'col: got numbers from -1 to -1; accepted: 0 to 3'),
        ([0, 1], [1], r'row, col: got shape \(2,\) of torch.int64 and shape \(1,\) of torch.int64; accepted: whole numbers'),
        ([0.0], [1.0], r'row, col: got shape \(1,\) of torch.float32'),
    ]:
        with subtests.test(row=row, col=col, message=message):
            for make in (SparsePattern.from_pairs, SparsePattern.from_sorted):
                with pytest.raises(ValueError, match=f'^{message}'):
                    make(torch.tensor(row), torch.tensor(col), 3, 4)


@pytest.mark.parametrize('size', [(0, 0), (3, 0), (2, 5)])
def test_no_entries(size: tuple[int, int]) -> None:
    empty = torch.empty(0, dtype=torch.long)
    sparse_pattern = SparsePattern.from_sorted(empty, empty, *size)
    assert (sparse_pattern.nnz, sparse_pattern.num_rows, sparse_pattern.num_cols) == (0, *size)
    assert (sparse_pattern.T.num_rows, sparse_pattern.T.num_cols) == size[::-1]


@pytest.mark.parametrize(
    ('bound', 'dtype'), covering([1, 5, 2**15, 2**16, 2**16 + 1, 2**31 - 1, 2**32, 2**40], [torch.int32, torch.int64])
)
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


def test_a_union_is_made_once() -> None:
    first, second, third = (SparsePattern.from_sorted(torch.tensor([0, row]), torch.tensor([1, 0]), 3, 3) for row in (1, 2, 1))
    made, slots = SparsePattern.union(first, second)
    assert made.row.tolist() == [0, 1, 2]
    assert [slot.tolist() for slot in slots] == [[0, 1], [0, 2]]
    assert SparsePattern.union(first, second)[0] is made
    assert SparsePattern.union(first, third)[0].row.tolist() == [0, 1]
    assert SparsePattern.union(first, second, third)[0].row.tolist() == [0, 1, 2]
    assert len(SparsePattern.union(first, second)[1]) == 2
