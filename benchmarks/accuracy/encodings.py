r"""The encodings that GPS adds to the features of nodes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import eigsh
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_scipy_sparse_matrix

from pyg_topomask.graphs.graph import Graph

__all__ = ['EIGENVECTORS', 'STEPS', 'encode_nodes']

STEPS = 20
EIGENVECTORS = 8


def encode_nodes(data: Data) -> Tensor:
    r"""Returns the probabilities that random walks of 1 to :obj:`STEPS` steps end where they began. After them come
    :obj:`EIGENVECTORS` eigenvectors of the normalized Laplacian of each graph, with the smallest eigenvalues but one.
    """
    matrix = csr_array(to_scipy_sparse_matrix(data.edge_index, num_nodes=data.num_nodes))
    bounds = Graph.from_data(data).segments.ptr.tolist()
    vectors = [_eigenvectors(matrix[start:end, start:end]) for start, end in pairwise(bounds)]
    return torch.from_numpy(np.concatenate([_returns(matrix), np.concatenate(vectors)], 1)).float()


def _returns(matrix: csr_array) -> NDArray[np.float64]:
    # The diagonal of a power of a symmetric matrix is that of the product of two powers half as high.
    scale = diags_array(np.maximum(matrix.sum(1), 1.0) ** -0.5)
    step = csr_array(scale @ matrix @ scale)
    before, after = csr_array(eye_array(matrix.shape[0])), step
    returns = []
    for _ in range(STEPS // 2):
        returns += [before.multiply(after).sum(1), after.multiply(after).sum(1)]
        before, after = after, after @ step
    return np.stack(returns, 1)


def _eigenvectors(matrix: csr_array) -> NDArray[np.float64]:
    # The shift makes the matrix invertible, and the nearest eigenvalues are the smallest.
    start = np.random.default_rng(0).standard_normal(matrix.shape[0])
    values, vectors = eigsh(laplacian(matrix, normed=True).tocsc(), EIGENVECTORS + 1, sigma=-0.01, v0=start)
    ascending: NDArray[np.float64] = vectors[:, np.argsort(values)[1:]]
    return ascending
