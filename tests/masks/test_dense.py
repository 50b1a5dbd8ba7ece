import pytest
import torch
from graphs import GRAPHS

from pyg_topomask.masks import DenseMask


def test_matrix_may_be_learned() -> None:
    matrix = torch.nn.Parameter(torch.randn(3, 3))
    mask = DenseMask(matrix=matrix)
    assert next(mask.parameters()) is matrix
    mask(GRAPHS['no_edge_index']()).to_dense().sum().backward()
    assert torch.equal(matrix.grad, torch.ones(3, 3))


@pytest.mark.parametrize('matrix', [None, torch.ones(2, 3), torch.ones(3), torch.ones(3, 2, 2)])
def test_matrix_that_does_not_fit_is_refused(matrix: torch.Tensor | None) -> None:
    with pytest.raises(ValueError, match=r'^matrix: got'):
        DenseMask(2, matrix)


def test_matrix_for_another_number_of_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match=r'^matrix: got 4 rows for 3 nodes'):
        DenseMask(matrix=torch.ones(4, 4))(GRAPHS['no_edge_index']())
