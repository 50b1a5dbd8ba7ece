"""The tasks of long range: labels are what their definition says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.long_range import ising


def energy(spins: np.ndarray, side: int) -> float:
    """-1/2 of the sum over pairs of s_i s_j / r_ij^2.1, with the shortest distance around the torus."""
    total = 0.0
    for first in range(side**2):
        for second in range(side**2):
            gaps = [abs(a - b) for a, b in zip(divmod(first, side), divmod(second, side), strict=True)]
            distance = np.hypot(*[min(gap, side - gap) for gap in gaps])
            total += 0 if first == second else spins[first] * spins[second] / distance**2.1
    return -total / 2


def test_energies_of_spins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ising, 'SIDE', 4)
    monkeypatch.setattr(ising, 'SWEEPS', 1)
    monkeypatch.setattr(ising, '_PARTS', {'train': slice(0, 2), 'val': slice(2, 3), 'test': slice(3, 4)})
    ising._states.cache_clear()
    graphs = [data for part in ('train', 'val', 'test') for data in ising.load_spins(part)]
    ising._states.cache_clear()
    changes = []
    for data in graphs:
        spins = data.x.flatten().double().numpy()
        turned = [np.where(np.arange(16) == site, -spins, spins) for site in range(16)]
        changes.append([energy(other, 4) - energy(spins, 4) for other in turned])
        assert torch.bincount(data.edge_index[0]).tolist() == [4] * 16
    root = np.sqrt(np.mean(np.square(changes)))
    np.testing.assert_allclose([data.y.numpy() for data in graphs], np.array(changes) / root, rtol=1e-5, atol=1e-5)
