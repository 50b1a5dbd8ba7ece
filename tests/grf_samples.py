"""GRF masks drawn many times, for statistical tests."""

import numpy as np
import torch
from numpy.typing import NDArray
from oracles import power_series, standard_scores, weight_matrix
from torch_geometric.data import Data

from pyg_topomask.masks import GRFMask

SEEDS = 600
COMPARISONS = 40 * 36  # an upper bound of the entries that the tests below compare
F = [1.0, 0.8, -0.3]
DIAGONAL = np.eye(6, dtype=bool)


def samples(mask: GRFMask, data: Data, counter: bool) -> NDArray[np.float64]:
    graphs = []
    for seed in range(SEEDS):
        if counter:
            mask.seed = seed
            operator = mask(data)
        else:
            operator = mask(data, torch.Generator().manual_seed(seed))
        graphs.append(operator.to_dense()[0].detach().double().numpy())
    return np.stack(graphs)


def scores(mask: GRFMask, data: Data, expected: NDArray[np.float64], counter: bool) -> NDArray[np.float64]:
    return standard_scores(samples(mask, data, counter), expected)


def make(**settings: object) -> GRFMask:
    return GRFMask(**{'num_walks': 3, 'p_halt': 0.3, 'max_walk_length': 2, 'modulation': torch.tensor(F)} | settings)


def expected_mask(
    data: Data, normalization: str | None = 'sym', flow: str = 'source_to_target', **settings: object
) -> NDArray[np.float64]:
    feature = power_series(weight_matrix(data, normalization, flow), np.array(F))
    return feature @ feature.T
