import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES
from sampled_features import MODULATION, modulated, walks

from pyg_topomask.walks.features import WalkFeatures


def test_visits_to_one_place_add_up() -> None:
    start, visited = torch.tensor([1, 0, 1, 1]), torch.tensor([0, 1, 0, 0])
    length, load = torch.tensor([1, 1, 1, 0]), torch.tensor([1.0, 2.0, 3.0, 4.0])
    features = WalkFeatures.from_visits(start, visited, length, load, 2, 1)
    assert features.start.tolist() == [0, 1, 1]
    assert features.visited.tolist() == [1, 0, 0]
    assert features.length.tolist() == [1, 0, 1]
    assert features.load.tolist() == [2.0, 4.0, 4.0]


@pytest.mark.parametrize('name', GRAPH_NAMES)
def test_values_are_the_modulated_loads(name: str) -> None:
    features, _ = walks(name)
    value, pattern = features.values(MODULATION), features.pattern
    matrix = torch.zeros(2, features.num_nodes, features.num_nodes, dtype=torch.float64)
    matrix[:, pattern.row.long(), pattern.col.long()] = value
    np.testing.assert_allclose(matrix.numpy(), modulated(features), atol=1e-12)


def test_gradient_of_the_modulation() -> None:
    features, _ = walks()
    assert torch.autograd.gradcheck(features.values, MODULATION.clone().requires_grad_())


def test_truncated_walks_are_the_walks_of_fewer_hops() -> None:
    features, _ = walks()
    short = features.truncate(1)
    assert short.max_walk_length == 1
    assert short.length.max() == 1
    assert torch.equal(short.load, features.load[features.length <= 1])
    assert features.truncate(3) is features
    np.testing.assert_allclose(
        short.values(MODULATION[:, :2]).numpy(),
        features.values(torch.cat([MODULATION[:, :2], torch.zeros(2, 2)], 1))[:, np.isin(keys(features), keys(short))].numpy(),
    )


def keys(features: WalkFeatures) -> np.ndarray:
    return (features.pattern.row.long() * features.num_nodes + features.pattern.col).numpy()
