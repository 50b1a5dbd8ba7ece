import pytest
import torch
from graphs import GRAPHS

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import DenseMask
from pyg_topomask.ops.masked_linear_attention import masked_linear_attention


def test_matrix_may_be_learned() -> None:
    matrix = torch.nn.Parameter(torch.randn(3, 3))
    mask = DenseMask(matrix=matrix)
    assert next(mask.parameters()) is matrix
    mask(GRAPHS['no_edge_index']()).to_dense().sum().backward()
    assert torch.equal(matrix.grad, torch.ones(3, 3))


@pytest.mark.parametrize('learned', [True, False])
def test_reset_restores_the_given_matrix(learned: bool) -> None:
    given = torch.randn(3, 3)
    mask = DenseMask(matrix=torch.nn.Parameter(given.clone()) if learned else given.clone())
    assert list(mask.state_dict()) == ['matrix']
    if learned:
        with torch.no_grad():
            mask.matrix.mul_(2.0)
        assert not torch.equal(mask.matrix, given)
    mask.reset_parameters()
    assert torch.equal(mask.matrix, given)


def test_matrix_that_does_not_fit_is_refused(subtests: pytest.Subtests) -> None:
    for matrix in [None, torch.ones(2, 3), torch.ones(3), torch.ones(3, 2, 2)]:
        with subtests.test(matrix=matrix), pytest.raises(ValueError, match=r'^matrix: got'):
            DenseMask(2, matrix)


@pytest.mark.parametrize('value', [float('nan'), float('inf')])
@pytest.mark.parametrize('learned', [True, False])
def test_matrix_that_is_not_finite_is_refused(learned: bool, value: float) -> None:
    matrix = torch.ones(2, 2)
    matrix[1, 0] = value
    with pytest.raises(ValueError, match=rf'^matrix: got {value} at \[1, 0\]; accepted: finite numbers'):
        DenseMask(matrix=torch.nn.Parameter(matrix) if learned else matrix)


def test_matrix_in_place_of_the_heads_is_refused() -> None:
    with pytest.raises(ValueError, match=r'^heads: got a tensor; accepted: a whole number, and the matrix as matrix='):
        DenseMask(torch.ones(3, 3))


def test_matrix_for_another_number_of_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match=r'^matrix: got 4 rows for 3 nodes'):
        DenseMask(matrix=torch.ones(4, 4))(GRAPHS['no_edge_index']())


def test_whole_numbers_are_a_matrix_of_floating_point_numbers() -> None:
    matrix = torch.tensor([[1, -1, 2, -2], [3, -1, -1, -1], [1, 1, 1, -3], [1, 2, 3, 4]])
    graph = Graph.from_tensors(torch.empty(2, 0, dtype=torch.long), 4)
    q, k, v = torch.rand(4, 1, 3), torch.rand(1, 1, 3).expand(4, 1, 3), torch.rand(4, 1, 2)
    out = masked_linear_attention(q, k, v, DenseMask(matrix=matrix)(graph), route='features')
    # The first three rows add up to 0, so they attend to nothing.
    assert torch.equal(out[:3], torch.zeros(3, 1, 2))
    torch.testing.assert_close(out[3], (matrix[3].view(4, 1, 1) * v).sum(0) / 10)
    assert DenseMask(matrix=matrix > 0).matrix.dtype == torch.float32
    with pytest.raises(ValueError, match=r'^matrix: got numbers of torch.complex64; accepted: real numbers'):
        DenseMask(matrix=torch.ones(2, 2, dtype=torch.complex64))
