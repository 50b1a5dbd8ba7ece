"""Graph random features in scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from graphs import small_digraph, small_graph, small_weighted_graph
from oracles import weight_matrix
from scipy.linalg import expm
from scipy.sparse import coo_matrix, csr_array

pytest.importorskip('gpytorch')

from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from pyg_topomask.apps.kernels import GraphRandomFeatures
from pyg_topomask.masks import GRFMask

#: Checks that take some rows of the matrix, or in another order than its columns: that is no adjacency matrix.
ROWS = {
    f'check_{name}': 'the samples are the nodes of one graph'
    for name in ('methods_sample_order_invariance', 'methods_subset_invariance', 'fit_idempotent')
}


def test_estimator():
    check_estimator(GraphRandomFeatures(num_walks=4), expected_failed_checks=ROWS, on_skip=None)


def test_mean_of_estimates_is_the_kernel():
    """Off the diagonal. Data, and matrices of all kinds, are the same graph."""
    data = small_weighted_graph()
    adjacency = weight_matrix(data, None)
    weight = weight_matrix(data, 'sym')
    estimates = []
    for seed in range(60):
        features = GraphRandomFeatures('heat:0.8', num_walks=16, p_halt=0.2, max_walk_length=12, random_state=seed)
        phi = features.fit_transform(data)
        estimates.append((phi @ phi.T).toarray())
    mean, error = np.mean(estimates, 0), np.std(estimates, 0) / np.sqrt(60)
    off = ~np.eye(6, dtype=bool)
    assert (np.abs(mean - expm(-0.8 * (np.eye(6) - weight)))[off] < 5 * error[off] + 1e-6).all()
    for same in (adjacency, csr_array(adjacency), coo_matrix(adjacency)):
        np.testing.assert_allclose(features.fit_transform(same).toarray(), phi.toarray(), rtol=1e-5)


def test_features_are_those_of_the_mask():
    walks = {'num_walks': 8, 'p_halt': 0.3, 'max_walk_length': 6, 'sampler': 'antithetic'}
    phi = GraphRandomFeatures('heat:1', random_state=3, **walks).fit_transform(small_graph())
    with torch.no_grad():
        dense = GRFMask(modulation='heat:1', seed=3, **walks).double()(small_graph()).to_dense()[0]
    np.testing.assert_allclose((phi @ phi.T).toarray(), dense, rtol=1e-6)


def test_edges_of_weight_zero_are_none():
    adjacency = csr_array(weight_matrix(small_graph(), None))
    features = GraphRandomFeatures(random_state=0).fit_transform(adjacency)
    coo = adjacency.tocoo()
    row, col, weight = (np.append(values, more) for values, more in ((coo.row, [0, 5]), (coo.col, [5, 0]), (coo.data, [0, 0])))
    stored = csr_array((weight, (row, col)), shape=(6, 6))
    for array in (stored.data, stored.indices, stored.indptr):  # as joblib shares them
        array.flags.writeable = False
    assert (GraphRandomFeatures(random_state=0).fit_transform(stored) != features).nnz == 0
    assert stored.nnz == adjacency.nnz + 2
    coo = adjacency.tocsr()
    twice = csr_array((np.repeat(coo.data / 2, 2), np.repeat(coo.indices, 2), 2 * coo.indptr), shape=(6, 6))
    assert (GraphRandomFeatures(random_state=0).fit_transform(twice) != features).nnz == 0
    assert twice.nnz == 2 * adjacency.nnz


def test_parameters_clone_pipeline_and_new_walks():
    features = clone(GraphRandomFeatures(num_walks=8).set_params(random_state=None, kernel='random_walk:2:p=2'))
    assert features.get_params() == {
        'kernel': 'random_walk:2:p=2',
        'max_walk_length': 10,
        'num_walks': 8,
        'p_halt': 0.1,
        'random_state': None,
        'sampler': 'iid',
    }
    adjacency = csr_array(weight_matrix(small_graph(), None))
    first, second = (features.fit_transform(adjacency) for _ in range(2))
    assert (first != second).nnz > 0
    assert features.get_feature_names_out().shape == (6,)
    model = make_pipeline(GraphRandomFeatures(), Ridge()).fit(adjacency, np.arange(6.0))
    assert np.isfinite(model.predict(adjacency)).all()


def test_weights_with_a_gradient():
    data = small_graph()
    features = GraphRandomFeatures(random_state=0).fit_transform(data)
    data.edge_weight = torch.ones(data.num_edges, requires_grad=True)
    assert (GraphRandomFeatures(random_state=0).fit_transform(data) != features).nnz == 0


def test_errors_name_the_argument(subtests: pytest.Subtests) -> None:
    for arguments, graph, error in [
        ({}, np.ones((2, 3)), r'X: got shape \(2, 3\); accepted: square adjacency matrices; transform the whole graph'),
        ({}, small_digraph(), 'X: got an asymmetric adjacency matrix; accepted: symmetric ones; ToUndirected'),
        ({}, np.array([[0.0, 1.0], [1.0001, 0.0]]), 'X: got an asymmetric adjacency matrix'),
        ({'num_walks': 0}, small_graph(), 'num_walks: got 0'),
        ({'kernel': 'heatt'}, small_graph(), "kernel: got 'heatt'"),
        ({'kernel': 1}, small_graph(), 'kernel: got 1; accepted: names of kernels'),
        ({'random_state': -1}, small_graph(), 'random_state: got -1'),
    ]:
        with subtests.test(arguments=arguments, graph=graph, error=error), pytest.raises(ValueError, match=f'^{error}'):
            GraphRandomFeatures(**arguments).fit_transform(graph)


def test_another_graph_of_another_size_is_refused():
    features = GraphRandomFeatures().fit(small_graph())
    with pytest.raises(ValueError, match='X has 3 features, but GraphRandomFeatures is expecting 6'):
        features.transform(np.ones((3, 3)))
