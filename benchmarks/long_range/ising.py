r"""Spins with interactions of long range on a torus: the energy that each spin costs if it turns, as in LRIM (ICLR 2026)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

__all__ = ['load_spins']

#: The side of the torus, the exponent of the decay, the sweeps before spins are taken, and the numbers of graphs.
SIDE, DECAY, SWEEPS = 16, 2.1, 50
_PARTS = {'train': slice(0, 400), 'val': slice(400, 500), 'test': slice(500, 700)}


def load_spins(part: str, most: int | None = None) -> list[Data]:
    r"""Returns the graphs of a part, or the first of them. Features are spins, and labels are
    :math:`\Delta E_i = 2 s_i \sum_j J_{ij} s_j` with :math:`J_{ij} = r_{ij}^{-2.1}`, over the root of their mean square.
    """
    spins, energies = _states()
    edge_index, shape = _torus(), torch.tensor([[SIDE, SIDE]])
    own = range(*_PARTS[part].indices(len(spins)))[:most]
    return [
        Data(
            x=torch.from_numpy(spins[each]).float().unsqueeze(1),
            y=torch.from_numpy(energies[each]).float(),
            edge_index=edge_index,
            grid_shape=shape,
        )
        for each in own
    ]


def couplings() -> np.ndarray:
    r"""Returns the matrix :math:`\mathbf{J}` for Euclidean distances around the torus."""
    place = np.stack(np.divmod(np.arange(SIDE**2), SIDE), axis=1)
    gap = np.abs(place[:, None] - place[None])
    distance = np.sqrt((np.minimum(gap, SIDE - gap) ** 2).sum(2))
    np.fill_diagonal(distance, np.inf)
    return distance**-DECAY


@lru_cache
def _states() -> tuple[np.ndarray, np.ndarray]:
    r"""Returns spins, which a heat bath made at 0.6 to 1.4 of the critical temperature of the mean field, and energies."""
    generator, matrix = np.random.default_rng(0), couplings()
    count, size = _PARTS['test'].stop, len(matrix)
    temperature = generator.uniform(0.6, 1.4, count) * matrix[0].sum()
    spins = generator.choice([-1.0, 1.0], (count, size))
    for _ in range(SWEEPS):
        for site in generator.permutation(size):
            up = 1 / (1 + np.exp(-2 * (spins @ matrix[site]) / temperature))
            spins[:, site] = np.where(generator.random(count) < up, 1.0, -1.0)
    energies = 2 * spins * (spins @ matrix)
    return spins, energies / np.sqrt((energies**2).mean())


def _torus() -> torch.Tensor:
    r"""Returns the edges of the square lattice with periodic boundaries."""
    node = np.arange(SIDE**2).reshape(SIDE, SIDE)
    ends = [np.stack([node.ravel(), np.roll(node, -1, axis).ravel()]) for axis in (0, 1)]
    return to_undirected(torch.from_numpy(np.concatenate(ends, axis=1)))
