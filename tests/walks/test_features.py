import numpy as np
import pytest
import torch
from graphs import GRAPHS, small_digraph

import pyg_topomask.walks.features as features_module
from pyg_topomask.graph import Graph
from pyg_topomask.walks import WalkSettings
from pyg_topomask.walks.features import PairLoads, WalkFeatures, count_pairs
from pyg_topomask.walks.walk import sample_ensembles

SETTINGS = WalkSettings(4, 0.3, 3, independent_ensembles=True)
MODULATION = torch.tensor([[1.0, 0.5, 0.3, -0.2], [-0.5, 2.0, 0.0, 1.0]], dtype=torch.float64)


def walks(name: str = 'directed') -> tuple[WalkFeatures, WalkFeatures]:
    return sample_ensembles(Graph.from_data(GRAPHS[name]()), SETTINGS, seed=0)


def dense(features: WalkFeatures, modulation: torch.Tensor = MODULATION) -> np.ndarray:
    loads = np.zeros((4, features.num_nodes, features.num_nodes))
    loads[features.length.numpy(), features.start.numpy(), features.visited.numpy()] = features.load.double().numpy()
    return np.einsum('hl,lij->hij', modulation.numpy(), loads)


def test_visits_to_one_place_add_up() -> None:
    start, visited = torch.tensor([1, 0, 1, 1]), torch.tensor([0, 1, 0, 0])
    length, load = torch.tensor([1, 1, 1, 0]), torch.tensor([1.0, 2.0, 3.0, 4.0])
    features = WalkFeatures.from_visits(start, visited, length, load, 2, 1)
    assert features.start.tolist() == [0, 1, 1]
    assert features.visited.tolist() == [1, 0, 0]
    assert features.length.tolist() == [1, 0, 1]
    assert features.load.tolist() == [2.0, 4.0, 4.0]


@pytest.mark.parametrize('name', GRAPHS)
def test_values_are_the_modulated_loads(name: str) -> None:
    features, _ = walks(name)
    value, pattern = features.values(MODULATION), features.pattern
    matrix = torch.zeros(2, features.num_nodes, features.num_nodes, dtype=torch.float64)
    matrix[:, pattern.row.long(), pattern.col.long()] = value
    np.testing.assert_allclose(matrix.numpy(), dense(features), atol=1e-12)


@pytest.mark.parametrize('name', GRAPHS)
@pytest.mark.parametrize('shared', [True, False])
def test_pair_loads_are_the_product_of_the_features(name: str, shared: bool) -> None:
    query, key = walks(name)
    key = query if shared else key
    pairs, key_modulation = PairLoads(query, key, torch.float64), MODULATION.flip(1)
    matrix = torch.zeros(2, query.num_nodes, query.num_nodes, dtype=torch.float64)
    matrix[:, pairs.pattern.row.long(), pairs.pattern.col.long()] = pairs.values(MODULATION, key_modulation)
    np.testing.assert_allclose(matrix.numpy(), dense(query) @ dense(key, key_modulation).transpose(0, 2, 1), atol=1e-10)
    assert pairs.pattern.nnz <= count_pairs(query, key)


@pytest.mark.parametrize('name', GRAPHS)
def test_pair_loads_of_a_shared_modulation(name: str) -> None:
    query, key = walks(name)
    pairs = PairLoads(query, key, torch.float64, 'unordered')
    matrix = torch.zeros(2, query.num_nodes, query.num_nodes, dtype=torch.float64)
    matrix[:, pairs.pattern.row.long(), pairs.pattern.col.long()] = pairs.values(MODULATION, MODULATION)
    np.testing.assert_allclose(matrix.numpy(), dense(query) @ dense(key).transpose(0, 2, 1), atol=1e-10)


@pytest.mark.parametrize('name', GRAPHS)
@pytest.mark.parametrize('limit', [1, 40])
def test_pair_loads_in_blocks(name: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features_module, 'uses_numba', lambda *arguments: False)
    query, key = walks(name)
    whole = PairLoads(query, key, torch.float64)
    for constant in ('_MEETINGS', '_MEETINGS_GPU'):
        monkeypatch.setattr(features_module, constant, limit)
    pairs = PairLoads(query, key, torch.float64)
    for block_tensor, whole_tensor in zip(pairs.pattern.tensors, whole.pattern.tensors, strict=True):
        assert torch.equal(block_tensor, whole_tensor)
    assert torch.equal(pairs.values(MODULATION, MODULATION), whole.values(MODULATION, MODULATION))


def test_gradient_of_the_modulation() -> None:
    query, key = sample_ensembles(Graph.from_data(small_digraph()), SETTINGS, seed=0)
    pairs, modulation = PairLoads(query, key, torch.float64), MODULATION.clone().requires_grad_()
    assert torch.autograd.gradcheck(query.values, modulation)
    assert torch.autograd.gradcheck(lambda f: pairs.values(f, f * 2), modulation)


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
