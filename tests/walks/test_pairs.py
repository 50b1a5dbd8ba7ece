import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES
from grids import covering
from sampled_features import MODULATION, modulated, walks

import pyg_topomask.walks.pairs as pairs_module
from pyg_topomask.walks.pairs import PairLoads, count_pairs, estimate_pairs


@pytest.mark.parametrize('name', GRAPH_NAMES)
@pytest.mark.parametrize('shared', [True, False])
def test_pair_loads_are_the_product_of_the_features(name: str, shared: bool) -> None:
    query, key = walks(name)
    key = query if shared else key
    pairs, key_modulation = PairLoads(query, key, torch.float64), MODULATION.flip(1)
    matrix = torch.zeros(2, query.num_nodes, query.num_nodes, dtype=torch.float64)
    matrix[:, pairs.pattern.row.long(), pairs.pattern.col.long()] = pairs.values(MODULATION, key_modulation)
    np.testing.assert_allclose(matrix.numpy(), modulated(query) @ modulated(key, key_modulation).transpose(0, 2, 1), atol=1e-10)
    assert pairs.pattern.nnz <= count_pairs(query, key)


@pytest.mark.parametrize('name', GRAPH_NAMES)
@pytest.mark.parametrize('compiled', [True, False])
def test_estimated_entries_of_few_nodes(name: str, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    query, key = walks(name)
    assert query.num_nodes <= 64, 'all rows are in the sample'
    if not compiled:  # a bound
        monkeypatch.setattr('pyg_topomask.machine.backend.has_numba', lambda: False)
    seen, by = np.zeros((2, query.num_nodes, query.num_nodes))
    seen[query.start, query.visited], by[key.start, key.visited] = 1, 1  # also visits with a load of 0
    meet = seen @ by.T
    assert estimate_pairs(query, key) == (np.count_nonzero(meet) if compiled else count_pairs(query, key))


@pytest.mark.parametrize('name', GRAPH_NAMES)
def test_pair_loads_of_a_shared_modulation(name: str) -> None:
    query, key = walks(name)
    pairs = PairLoads(query, key, torch.float64, 'unordered')
    matrix = torch.zeros(2, query.num_nodes, query.num_nodes, dtype=torch.float64)
    matrix[:, pairs.pattern.row.long(), pairs.pattern.col.long()] = pairs.values(MODULATION, MODULATION)
    np.testing.assert_allclose(matrix.numpy(), modulated(query) @ modulated(key).transpose(0, 2, 1), atol=1e-10)


@pytest.mark.parametrize(('limit', 'name'), covering([1, 40], GRAPH_NAMES))
def test_pair_loads_in_chunks(name: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('pyg_topomask.machine.backend.has_numba', lambda: False)
    query, key = walks(name)
    whole = PairLoads(query, key, torch.float64)
    for constant in ('_MEETINGS', '_MEETINGS_GPU'):
        monkeypatch.setattr(pairs_module, constant, limit)
    pairs = PairLoads(query, key, torch.float64)
    for chunk_tensor, whole_tensor in zip(pairs.pattern.tensors, whole.pattern.tensors, strict=True):
        assert torch.equal(chunk_tensor, whole_tensor)
    assert torch.equal(pairs.values(MODULATION, MODULATION), whole.values(MODULATION, MODULATION))


def test_gradient_of_the_modulations() -> None:
    pairs = PairLoads(*walks(), torch.float64)
    assert torch.autograd.gradcheck(lambda f: pairs.values(f, f * 2), MODULATION.clone().requires_grad_())
