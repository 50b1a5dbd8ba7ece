"""Every feature map on vectors of every kind."""

import inspect
from collections.abc import Sequence

import pytest
import torch
from fuzz.strategies import DTYPES, arguments, assert_finite, assert_same, attempt, fuzz, random
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pyg_topomask import feature_maps
from pyg_topomask.feature_maps import FeatureMap
from pyg_topomask.graphs.segments import Segments

FEATURES = {
    'DenseExponentialFeatures': st.fixed_dictionaries({'num_features': st.sampled_from([None, 1, 9])}),
    'EluFeatures': st.just({}),
    'FavorFeatures': st.fixed_dictionaries({'num_features': st.sampled_from([None, 1, 9]), 'orthogonal': st.booleans()}),
    'FocusedFeatures': st.fixed_dictionaries({'power': st.sampled_from([0.5, 1.0, 3.0])}),
    'FourierFeatures': st.fixed_dictionaries({'num_features': st.sampled_from([None, 1, 9])}),
    'IdentityFeatures': st.just({}),
    'PositiveFeatures': st.fixed_dictionaries({'num_features': st.sampled_from([None, 1, 9])}),
    'ReLUFeatures': st.just({}),
    'SimplexFeatures': st.fixed_dictionaries({'num_features': st.sampled_from([None, 1, 9])}),
    'SquareFeatures': st.just({}),
}


def test_every_public_name_is_fuzzed() -> None:
    classes = {name for name in feature_maps.__all__ if inspect.isclass(getattr(feature_maps, name))}
    assert classes == {'FeatureMap', *FEATURES}


def queries_and_keys(data: st.DataObject, dtype: torch.dtype) -> Sequence[Tensor]:
    num_nodes, heads = data.draw(st.integers(0, 6)), data.draw(st.integers(1, 2))
    scale = data.draw(st.sampled_from([0.0, 1e-20, 1.0, 50.0]))
    return [(scale * random(seed, num_nodes, heads, 3)).to(dtype).requires_grad_() for seed in (0, 1)]


@pytest.mark.parametrize('name', FEATURES)
@fuzz(6)
@given(st.data())
def test_features_are_finite_and_separate_and_overwrite_nothing(name: str, data: st.DataObject) -> None:
    make = getattr(feature_maps, name)
    features: FeatureMap = make(3, **data.draw(FEATURES[name]))
    q, k = queries_and_keys(data, data.draw(st.sampled_from(DTYPES)))
    before = q.detach().clone(), k.detach().clone()
    batch = torch.arange(q.size(0)) // 2
    segments = Segments(q.size(0), batch, 4)
    out = features(q, k, segments)
    assert torch.equal(torch.cat(out), torch.cat(features(q, k, segments)))
    assert torch.equal(q, before[0])
    assert torch.equal(k, before[1])
    assert_finite(torch.cat(out), q, k)
    for graph in batch.unique():
        alone = features(q[batch == graph], k[batch == graph])
        assert_same(torch.cat(alone), torch.cat([whole[batch == graph] for whole in out]))


@pytest.mark.parametrize('name', FEATURES)
@fuzz(8)
@given(st.data())
def test_arguments_of_features_are_refused_by_name_or_do(name: str, data: st.DataObject) -> None:
    make = getattr(feature_maps, name)
    given_arguments = data.draw(arguments(make, {'channels': 3}))
    features = attempt(lambda: make(**given_arguments), given_arguments)
    if features is not None:
        x = random(0, 4, 2, features.channels)
        assert_finite(torch.cat(features(x, x)))
