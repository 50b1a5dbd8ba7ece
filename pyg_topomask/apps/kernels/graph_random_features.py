r"""Graph random features as a transformer of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch_geometric.data import Data
from torch_geometric.utils import from_scipy_sparse_matrix, to_scipy_sparse_matrix

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.base.series import named_series
from pyg_topomask.utils.checks import check_whole, is_whole
from pyg_topomask.utils.random import seeds_of_ensembles
from pyg_topomask.walks import WalkSettings, sample_walks


class GraphRandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Sparse features of the nodes of a graph whose inner products estimate a graph kernel, as a transformer of
    `scikit-learn <https://scikit-learn.org>`_, from `"General Graph Random Features" <https://arxiv.org/abs/2310.04859>`_:

    .. math::
        \hat{\Phi} \hat{\Phi}^{\top} \approx \mathbf{K} = \sum_k \alpha_k \mathbf{W}^k

    with the symmetric normalized adjacency matrix :math:`\mathbf{W}`. Linear models on :math:`\hat{\Phi}` (ridge regression,
    support vector machines, k-means) are then kernel methods, and never form the :math:`N \times N` matrix. Estimates are
    unbiased off the diagonal. The diagonal is biased upwards. The features are those of :class:`~pyg_topomask.masks.GRFMask`
    with :obj:`modulation=kernel` and :obj:`seed=random_state`, on one graph without edges of weight 0. Such edges are removed
    here.

    The nodes are the samples. Transform the whole graph first, and then split the rows of :math:`\hat{\Phi}` into training and
    test rows, because walks from training nodes visit test nodes.

    Args:
        kernel (str): A kernel of :func:`~pyg_topomask.masks.kernel_series`, such as :obj:`"heat:2"`. (default: :obj:`"heat"`)
        num_walks (int): Walks per node. (default: :obj:`64`)
        p_halt (float): The probability that a walk halts before a hop, in :math:`[0, 1)`. (default: :obj:`0.1`)
        max_walk_length (int): The largest number of hops. (default: :obj:`10`)
        sampler (str): The dependence between walkers, see :class:`~pyg_topomask.walks.WalkSettings`. (default: :obj:`"iid"`)
        random_state (int, numpy.random.RandomState, optional): The seed. :obj:`None` draws new walks at every call.
            (default: :obj:`0`)

    Raises:
        ValueError: If an argument is outside its range, or the adjacency matrix is not square or not symmetric.

    Shapes:
        - **input:** a :class:`~torch_geometric.data.Data` or a (sparse) adjacency matrix
          :math:`(|\mathcal{V}|, |\mathcal{V}|)`
        - **output:** a sparse matrix :math:`(|\mathcal{V}|, |\mathcal{V}|)` in CSR format

    Example:
        >>> features = GraphRandomFeatures(num_walks=8).fit_transform(np.array([[0.0, 1.0], [1.0, 0.0]]))
        >>> type(features).__name__, features.shape
        ('csr_matrix', (2, 2))
    """

    def __init__(
        self,
        kernel: str = 'heat',
        num_walks: int = 64,
        p_halt: float = 0.1,
        max_walk_length: int = 10,
        sampler: str = 'iid',
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.kernel = kernel
        self.num_walks = num_walks
        self.p_halt = p_halt
        self.max_walk_length = max_walk_length
        self.sampler = sampler
        self.random_state = random_state

    def fit(self, X: Data | Any, y: Any = None) -> GraphRandomFeatures:
        r"""Checks the arguments and the adjacency matrix :obj:`X`. There is nothing to learn."""
        self._settings()
        self._n_features_out = self._graph(X, reset=True).num_nodes
        return self

    def transform(self, X: Data | Any) -> csr_matrix:
        r"""Samples walks on a graph with as many nodes as in :meth:`fit`, and returns the features of the nodes."""
        check_is_fitted(self)
        settings, f = self._settings()
        graph, given = self._graph(X, reset=False), self.random_state
        seed = int(given) if is_whole(given) else check_random_state(given).randint(2**31)
        check_whole(0, random_state=seed)
        walks = sample_walks(graph, settings, seeds_of_ensembles(seed)[0])
        return csr_matrix(walks.pattern.to_scipy(walks.values(f)[0]))

    def _settings(self) -> tuple[WalkSettings, torch.Tensor]:
        settings = WalkSettings(self.num_walks, self.p_halt, self.max_walk_length, sampler=self.sampler)
        if not isinstance(self.kernel, str):
            raise ArgumentError('kernel', repr(self.kernel), 'names of kernels, such as "heat:2"')
        f = named_series('kernel', self.kernel, settings.max_walk_length, 'max_walk_length', factors=2)
        return settings, f.unsqueeze(0)

    def _graph(self, X: Data | Any, reset: bool) -> Graph:
        if isinstance(X, Data):
            graph = Graph.from_data(X)
            X = to_scipy_sparse_matrix(graph.edge_index.flip(0).long(), graph.weight.detach().double(), graph.num_nodes)
        # A copy: SciPy sorts and sums entries in place.
        matrix = csr_array(validate_data(self, X, accept_sparse='csr', dtype=np.float64, reset=reset), copy=True)
        if matrix.shape[0] != matrix.shape[1]:
            remedy = 'transform the whole graph before its nodes are split, as in cross-validation'
            raise ArgumentError('X', f'shape {matrix.shape}', 'square adjacency matrices', remedy)
        gap = abs(matrix - matrix.T)
        if gap.nnz > 0 and gap.max() > 1e-8 * abs(matrix).max():
            raise ArgumentError('X', 'an asymmetric adjacency matrix', 'symmetric ones', 'ToUndirected() of PyG makes data so')
        matrix.eliminate_zeros()
        edge_index, edge_weight = from_scipy_sparse_matrix(matrix)
        return Graph(edge_index.flip(0), matrix.shape[0], edge_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.pairwise = True
        tags.transformer_tags.preserves_dtype = []
        tags.non_deterministic = self.random_state is None
        return tags
