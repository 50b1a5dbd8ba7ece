import torch
from graphs import small_graph, uneven_graphs, with_features

from pyg_topomask.nn import SinDegreeAttention
from pyg_topomask.testing import assert_batch_invariant, assert_permutation_equivariant


def test_batch_invariance() -> None:
    assert_batch_invariant(SinDegreeAttention(8, 2), with_features(uneven_graphs()), tolerance=1e-5)


def test_permutation_equivariance() -> None:
    data = small_graph()
    assert_permutation_equivariant(SinDegreeAttention(8, 2, feature_map='elu'), torch.randn(6, 8), data.edge_index)
