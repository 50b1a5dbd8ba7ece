r"""Convolutional stochastic encodings of positions, compared with those by sines and with Toeplitz masks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import nnls
from torch import Tensor
from torch_geometric.data import Data
from tqdm import tqdm

from benchmarks.candidates.errors import SEEDS, compared, ratios, relative_error
from benchmarks.harness import interleaved_medians, write_table
from pyg_topomask.masks import LowRankMask, Mask, StochasticRPEMask, ToeplitzMask

__all__ = ['run']

Lags = NDArray[np.float64]
POSITIONS, SINES, LAGS, COLUMNS, RANKS = 256, 4, 16, 16, (16, 64)
#: The length of the filters, in numbers of positions.
TAPS = 8


class Logits(NamedTuple):
    r"""Logits :math:`N(i - j) = c + P(i - j)` of relative positions: the constant and :math:`P`, by lag."""

    constant: float
    rest: Callable[[Lags], Lags]

    def of(self, lags: Lags) -> Lags:
        values: Lags = self.constant + self.rest(lags)
        return values


#: The first is what :class:`StochasticRPEMask` starts with, and N(0) = 1 in all but the last.
LOGITS = {
    'four sines': Logits(0.0, lambda lag: sum(0.25 * np.cos(2 * np.pi * lag / (4 * 2**k)) for k in range(SINES))),
    'window of 16, gate 0.5': Logits(0.5, lambda lag: 0.5 * np.maximum(0.0, 1 - abs(lag) / LAGS)),
    'window of 16': Logits(0.0, lambda lag: np.maximum(0.0, 1 - abs(lag) / LAGS)),
    'exp(-distance / 8)': Logits(0.0, lambda lag: np.exp(-abs(lag) / 8)),
    '2 exp(-distance / 8)': Logits(0.0, lambda lag: 2 * np.exp(-abs(lag) / 8)),
}


def correlated_noise(covariance: Lags, size: int, columns: int, generator: torch.Generator) -> Tensor:
    r"""Returns white noise through a filter :math:`\phi` with :math:`\phi \star \phi` equal to the covariance by lag, which is
    given for the lags :math:`-L, \dots, L - 1` from lag 0 on, as in a Fourier transform, :obj:`[size, columns]`.
    """
    spectrum = np.fft.fft(covariance).real.clip(min=0.0)
    noise = torch.randn(len(covariance), columns, generator=generator, dtype=torch.float64)
    filtered = torch.fft.ifft(torch.fft.fft(noise, dim=0) * torch.from_numpy(np.sqrt(spectrum)).unsqueeze(1), dim=0).real
    return filtered[:size]


def _lags(size: int) -> Lags:
    return np.fft.fftfreq(2 * TAPS * size, 1 / (2 * TAPS * size)).astype(np.float64)


def tapered(values: Lags, lags: Lags, size: int) -> Lags:
    r"""Returns a covariance that falls to 0 at the length of the filter, and stays positive definite."""
    result: Lags = values * (1 - abs(lags) / (TAPS * size))
    return result


def conv_spe_features(
    logits: Logits, size: int, realizations: int, gated: bool, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    r"""Returns factors whose product has the expectation :math:`N`: the convolutional stochastic encoding of Liutkus et al.
    (2021), with their gate, which is a constant column, :obj:`[size, realizations + 1]` or :obj:`[size, realizations]`.
    """
    covariance = logits.rest(_lags(size)) if gated else logits.of(_lags(size))
    noise = correlated_noise(tapered(covariance, _lags(size), size), size, realizations, generator)
    encoding = noise / math.sqrt(realizations)
    if gated:
        encoding = torch.cat([encoding, torch.full((size, 1), math.sqrt(logits.constant), dtype=torch.float64)], dim=1)
    return encoding, encoding


def positive_features(vectors: Tensor, projection: Tensor) -> Tensor:
    r"""Returns FAVOR+ features of the exponential of inner products."""
    exponent = vectors @ projection.t() - 0.5 * vectors.square().sum(1, keepdim=True)
    return exponent.exp() / math.sqrt(projection.size(0))


def _fitted_sines(logits: Logits, size: int, sines: int) -> tuple[Lags, Lags]:
    r"""Returns the frequencies and squared gains of the sines, and a constant, that come closest to logits."""
    lags = np.arange(size, dtype=float)
    weight = np.sqrt((size - lags) / size)
    frequencies = np.concatenate([[0.0], np.linspace(1 / (4 * size), 0.5, 2 * size)])
    basis, target = np.cos(2 * np.pi * np.outer(lags, frequencies)) * weight[:, None], logits.of(lags) * weight
    gains, _ = nnls(basis, target)
    kept = np.argsort(-gains[1:], kind='stable')[:sines] + 1
    kept = np.concatenate([[0], kept])
    gains, _ = nnls(basis[:, kept], target)
    return frequencies[kept], gains


def _sine_mask(logits: Logits, sines: int, features: int, seed: int) -> Tensor:
    mask = StochasticRPEMask(1, sines + 1, features, seed=seed).double()
    frequencies, gains = _fitted_sines(logits, POSITIONS, sines)
    mask.frequency.copy_(torch.from_numpy(frequencies))
    mask.gain.copy_(torch.from_numpy(np.sqrt(gains)))
    mask.redraw(torch.Generator().manual_seed(seed))
    return mask(Data(num_nodes=POSITIONS)).to_dense()[0]


def _sines_of_the_mask(logits: Logits, features: int, seed: int) -> Tensor:
    # A constant takes one column, and a sine two.
    mask = Logits(0.0, lambda lag: np.exp(logits.of(lag)))
    frequencies, gains = _fitted_sines(mask, POSITIONS, (features - 1) // 2)
    angle = 2 * np.pi * np.outer(np.arange(POSITIONS), frequencies)
    factor = torch.from_numpy(np.concatenate([np.cos(angle), np.sin(angle)], axis=1) * np.sqrt(np.tile(gains, 2)))
    return LowRankMask(left=factor, right=factor)(Data(num_nodes=POSITIONS)).to_dense()[0]


def _toeplitz_mask(logits: Logits, seed: int) -> Tensor:
    table = torch.from_numpy(np.exp(logits.of(np.arange(POSITIONS, dtype=float))))
    mask = ToeplitzMask(1, 1, 'distance', POSITIONS - 1, initial=table).double()
    product: Tensor = mask(Data(num_nodes=POSITIONS)).apply(torch.eye(POSITIONS, dtype=torch.float64).unsqueeze(1))
    return product[:, 0]


def _position_seconds(nodes: int, repeats: int) -> dict[str, float]:
    data, x = Data(num_nodes=nodes), torch.randn(nodes, 1, COLUMNS)
    masks: dict[str, Mask] = {'Toeplitz': ToeplitzMask(1, 1, 'distance', nodes - 1, initial=torch.rand(nodes))}
    masks |= {f'rank {rank}': LowRankMask(left=torch.rand(nodes, rank), right=torch.rand(nodes, rank)) for rank in RANKS}
    return interleaved_medians({name: partial(mask(data).apply, x) for name, mask in masks.items()}, repeats, time.process_time)


def _conv_mask(logits: Logits, realizations: int, features: int, gated: bool, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    left, right = conv_spe_features(logits, POSITIONS, realizations, gated, generator)
    projection = torch.randn(features, left.size(1), generator=generator, dtype=torch.float64)
    return positive_features(left, projection) @ positive_features(right, projection).t()


def _conv_mask_itself(logits: Logits, features: int, gated: bool, seed: int) -> Tensor:
    # The exponential is a function of the lag as well. What it is far away is the gate.
    constant = math.exp(logits.constant) if gated else 0.0
    mask = Logits(constant, lambda lag: np.exp(logits.of(lag)) - constant)
    left, right = conv_spe_features(mask, POSITIONS, features - gated, gated, torch.Generator().manual_seed(seed))
    return left @ right.t()


@torch.no_grad()
def run(quick: bool, folder: Path) -> None:
    index = np.arange(POSITIONS)
    fourier = round(10 * math.log2(2 * POSITIONS) + 6)
    rows: list[dict[str, object]] = []
    for name, logits in tqdm(LOGITS.items(), desc='positions'):
        exact = torch.from_numpy(np.exp(logits.of((index[:, None] - index[None, :]).astype(float))))
        for features in RANKS:
            methods: dict[str, Callable[[int], Tensor]] = {
                'sineSPE of 4 sines (StochasticRPEMask)': partial(_sine_mask, logits, SINES, features),
                'sineSPE of 16 sines (StochasticRPEMask)': partial(_sine_mask, logits, 4 * SINES, features),
                'sines of the mask itself (LowRankMask)': partial(_sines_of_the_mask, logits, features),
                'ToeplitzMask': partial(_toeplitz_mask, logits),
            }
            for gated in (False, True):
                kind = 'convSPE with gate' if gated else 'convSPE'
                for realizations in (features, 16 * features):
                    methods[f'{kind}, {realizations} realizations of the logits'] = partial(
                        _conv_mask, logits, realizations, features, gated
                    )
                methods[f'{kind} of the mask itself'] = partial(_conv_mask_itself, logits, features, gated)
            errors = {
                method: [relative_error(make(seed), exact) for seed in range(2 if quick else SEEDS)]
                for method, make in methods.items()
            }
            reference = errors['sineSPE of 4 sines (StochasticRPEMask)']
            rows += [
                {
                    'logits': name,
                    'rank': features,
                    'method': method,
                    'operations per node and column': fourier if method == 'ToeplitzMask' else 4 * features,
                    **compared(values, reference),
                }
                for method, values in errors.items()
            ]
    seconds = {nodes: _position_seconds(nodes, 1 if quick else 31) for nodes in (POSITIONS, 16 * POSITIONS)}
    times = '; '.join(f'at {nodes} positions {ratios(of, "Toeplitz")}' for nodes, of in seconds.items())
    note = (
        f'The mask exp(N(i - j)) of {POSITIONS} positions, estimated by a product of two factors of a rank, in float64. '
        f'sineSPE and convSPE are the encodings of Liutkus et al. (2021, arXiv:2105.08399) by sines and by filtered white '
        f'noise. The sines and their gains, with a constant, are fitted to the logits by least squares. The filters of convSPE '
        f'come from the square root of the spectrum, and have {TAPS} times as many taps as there are positions, up to which '
        f'the autocorrelation falls linearly. The gate is a constant column. "Of the logits": N is estimated by noise, and its '
        f'exponential by positive random features, as in the mask of sineSPE. "Of the mask itself": exp(N) is the '
        f'autocorrelation, so that the estimate is unbiased, with entries of both signs. {SEEDS} seeds; relative error is '
        f'||estimate - exact||_F / ||exact||_F, mean ± standard error; differences are paired by seed, and below two standard '
        f'errors "not distinguishable". A product costs the same operations at equal rank; those of a Toeplitz mask are two '
        f'Fourier transforms of twice the length. Processor time of a product with {COLUMNS} columns in float32, in turns, '
        f'divided by that of a Toeplitz mask: {times}.'
    )
    write_table('candidates_positions', 'Stochastic encodings of positions: sines and convolutions', note, rows, folder)
