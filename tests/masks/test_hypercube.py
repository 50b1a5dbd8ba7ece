from itertools import product

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.linalg import expm
from torch_geometric.data import Batch, Data

from pyg_topomask.masks.hypercube import HypercubeMask
from pyg_topomask.masks.toeplitz import ToeplitzMask
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.testing import assert_mask_operator
from pyg_topomask.transforms.geometry import AddGridShape

LAM = [0.2, 1.5]


def cubes(dim: int, count: int = 1) -> Data:
    return Batch.from_data_list([Data(num_nodes=2**dim)] * count) if count > 1 else Data(num_nodes=2**dim)


def hamming(dim: int) -> NDArray[np.int64]:
    return np.array([bin(i ^ j).count('1') for i, j in product(range(2**dim), repeat=2)]).reshape(2**dim, 2**dim)


@pytest.mark.parametrize('dim', [1, 2, 5])
def test_matrix_is_the_heat_kernel_but_for_a_factor(dim: int) -> None:
    distance = hamming(dim)
    adjacency = (distance == 1).astype(float)
    laplacian = np.diag(adjacency.sum(1)) - adjacency
    dense = HypercubeMask(2, dim, LAM).double()(cubes(dim)).to_dense().detach().numpy()
    for lam, matrix in zip(LAM, dense, strict=True):
        kernel = expm(-lam * laplacian)
        np.testing.assert_allclose(matrix, kernel / kernel[0, 0], rtol=1e-6)
        np.testing.assert_allclose(matrix, np.tanh(lam) ** distance, rtol=1e-6)


def test_operator_behaves_as_its_matrix() -> None:
    assert_mask_operator(HypercubeMask(2, 3, LAM), cubes(3, 2))
    assert_mask_operator(HypercubeMask(1, 2), Data(num_nodes=0))
    empty = Batch.from_data_list([Data(num_nodes=4), Data(num_nodes=0), Data(num_nodes=4), Data(num_nodes=0)])
    assert_mask_operator(HypercubeMask(1, 2), empty)


def test_is_the_toeplitz_mask_of_a_grid_of_twos() -> None:
    grid = AddGridShape((2, 2, 2, 2))(Data(num_nodes=16))
    toeplitz = ToeplitzMask(1, 4, 'distance', 4, initial='tanh:0.4').double()
    expected = HypercubeMask(1, 4, 0.4).double()(cubes(4)).to_dense()
    torch.testing.assert_close(toeplitz(grid).to_dense(), expected, atol=1e-6, rtol=0)


def test_a_large_cube() -> None:
    mask, q = HypercubeMask(1, 17), torch.rand(2**17, 1, 2)
    out = masked_linear_attention(q, q, q, mask(cubes(17)))
    out.square().sum().backward()
    assert out.isfinite().all()
    assert mask.raw_lam.grad.any()


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r'^dim: got 0'):
        HypercubeMask(1, 0)
    with pytest.raises(ValueError, match=r'^dim: got 63; accepted: whole numbers from 1 to 62'):
        HypercubeMask(1, 63)
    with pytest.raises(ValueError, match=r'^lam: got \[-1\.0\]'):
        HypercubeMask(1, 2, -1.0)
    with pytest.raises(ValueError, match=r'^dim: got 2 for graph 0 of 5 nodes; accepted: graphs of 4 nodes'):
        HypercubeMask(1, 2)(Data(num_nodes=5))
    with pytest.raises(ValueError, match=r'^dim: got 2 for graph 1 of 8 nodes'):
        HypercubeMask(1, 2)(Batch.from_data_list([Data(num_nodes=4), Data(num_nodes=8)]))
