"""The prototypes of estimates that the package does not have are unbiased, so that their errors are those of the methods."""

import numpy as np
import pytest
import torch
from oracles import confidence, softmax_kernel, standard_scores

from benchmarks.candidates.positions import LOGITS, conv_spe_features, tapered
from benchmarks.candidates.projections import projected
from benchmarks.candidates.softmax import dense_exponential
from pyg_topomask.feature_maps import DenseExponentialFeatures

DRAWS = 500


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize('gated', [False, True])
@pytest.mark.parametrize('name', ['window of 16, gate 0.5', 'exp(-distance / 8)'])
def test_convolutional_encodings_have_the_logits_as_their_mean(name: str, gated: bool) -> None:
    samples = []
    for seed in range(DRAWS):
        left, right = conv_spe_features(LOGITS[name], 10, 3, gated, generator(seed))
        samples.append((left @ right.t()).numpy())
    lags = np.subtract.outer(np.arange(10.0), np.arange(10.0))
    logits = LOGITS[name]
    gate = logits.constant if gated else 0.0  # which is not tapered
    expected = gate + tapered(logits.of(lags) - gate, lags, 10)
    assert np.abs(expected - logits.of(lags)).max() < 0.15
    scores = standard_scores(np.stack(samples), expected)
    assert np.abs(scores).max() < confidence(4 * 100)


@pytest.mark.parametrize('kind', ['scalar', 'symmetric', 'asymmetric'])
def test_dense_exponential_prototypes_estimate_the_softmax_kernel(kind: str) -> None:
    q, k = (scale * torch.randn(5, 4, generator=generator(7), dtype=torch.float64) for scale in (0.9, 0.3))
    samples = []
    for seed in range(DRAWS):
        left, right = dense_exponential(q, k, torch.randn(6, 4, generator=generator(seed), dtype=torch.float64), kind)
        samples.append((left @ right.t()).numpy())
    assert np.abs(standard_scores(np.stack(samples), softmax_kernel(q.numpy(), k.numpy()))).max() < confidence(3 * 25)


def test_the_symmetric_prototype_and_the_feature_map_agree_up_to_a_rotation() -> None:
    q, k = (torch.randn(6, 3, dtype=torch.float64) for _ in range(2))
    layer = DenseExponentialFeatures(3, 5, stabilize=False).double()
    features = [mapped[:, 0] for mapped in layer(q.unsqueeze(1), k.unsqueeze(1))]
    x, y = (vectors * 3**-0.25 for vectors in (q, k))
    _, axes = torch.linalg.eigh((x.unsqueeze(1) + y).flatten(0, 1).t() @ (x.unsqueeze(1) + y).flatten(0, 1))
    for mine, theirs in zip(dense_exponential(q, k, layer.projection @ axes, 'symmetric'), features, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_projections_keep_products_in_the_mean() -> None:
    features = torch.rand(2, 5, 7, generator=generator(3), dtype=torch.float64)
    samples = []
    for seed in range(DRAWS):
        left, right = projected((features[0], features[1]), 4, generator(seed))
        samples.append((left @ right.t()).numpy())
    assert np.abs(standard_scores(np.stack(samples), (features[0] @ features[1].t()).numpy())).max() < confidence(25)
