r"""Dense-exponential random features of softmax, compared with the random features of the package."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import Tensor
from tqdm import tqdm

from benchmarks.candidates.errors import SEEDS, Errors, compared, ratios, relative_error
from benchmarks.harness import interleaved_medians, write_table
from pyg_topomask.feature_maps import DenseExponentialFeatures, FavorFeatures, FeatureMap, FourierFeatures, SimplexFeatures
from pyg_topomask.graphs.segments import Segments

__all__ = ['run']

NODES, CHANNELS, FEATURES, STEPS = 256, 16, (32, 64, 128, 256), 500


def dense_exponential(q: Tensor, k: Tensor, projection: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    r"""Returns dense-exponential random features (Likhosherstov et al., 2023) of queries and keys on a graph,
    :obj:`[N, num_features]`:

    .. math::
        \phi_i(\mathbf{x}) = \frac{|\mathbf{I} - 4 \mathbf{A}|^{1/4}}{\sqrt{m}} \exp \left( \omega_i^{\top} \mathbf{A} \omega_i
        + \omega_i^{\top} (\mathbf{I} - 4 \mathbf{A})^{1/2} \mathbf{P} \mathbf{x} - \tfrac{1}{2} |\mathbf{P} \mathbf{x}|^2
        \right), \qquad \mathbf{P}_k = \mathbf{P}_q^{-\top}

    These are unbiased for any diagonal A with 8 A < I. The logarithm of the second moment, on average over all pairs of queries
    and keys, is smallest if the second moment of P_q q + P_k k is diagonal with entries z, and 16 a^2 - (2 - 4 z) a - z = 0.

    Args:
        kind (str): :obj:`"scalar"`, with P = I and one number a for all axes (OPRF), :obj:`"symmetric"`, with a rotation P
            (SDERF, which has become :class:`DenseExponentialFeatures`), or :obj:`"asymmetric"` (ADERF), with the P of equal
            second moments of P_q q and P_k k.
    """
    x, y = (vectors * q.size(1) ** -0.25 for vectors in (q, k))
    moments = [vectors.t() @ vectors / len(vectors) for vectors in (x, y)]
    to_x = to_y = torch.eye(q.size(1), dtype=q.dtype)
    if kind == 'asymmetric':
        small = 1e-6 * torch.eye(q.size(1), dtype=q.dtype)
        root_x, root_y = (torch.linalg.cholesky(moment + small * moment.trace()) for moment in moments)
        _, singular, right = torch.linalg.svd(root_y.t() @ root_x)
        to_x = singular.sqrt().unsqueeze(1) * right @ torch.linalg.inv(root_x)
        to_y = torch.linalg.inv(to_x).t()
    cross = torch.outer(to_x @ x.mean(0), to_y @ y.mean(0))
    moment = to_x @ moments[0] @ to_x.t() + to_y @ moments[1] @ to_y.t() + cross + cross.t()
    if kind == 'scalar':
        size = moment.diagonal().mean().expand(q.size(1))
    else:
        size, axes = torch.linalg.eigh(moment)
        to_x, to_y = axes.t() @ to_x, axes.t() @ to_y
    diagonal = (1 - 2 * size - ((1 + 2 * size).square() + 8 * size).sqrt()) / 16
    stretch = (1 - 4 * diagonal).sqrt()
    shared = projection.square() @ diagonal + 0.5 * stretch.log().sum() - 0.5 * math.log(len(projection))
    rotated = [vectors @ matrix.t() for vectors, matrix in ((x, to_x), (y, to_y))]
    exponents = [z @ (projection * stretch).t() + shared - 0.5 * z.square().sum(1, keepdim=True) for z in rotated]
    return exponents[0].exp(), exponents[1].exp()


def _draw_inputs(kind: str, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1000 + seed)
    normal = partial(torch.randn, generator=generator, dtype=torch.float64)
    name, _, scale = kind.partition(', ')
    if name == 'trained':
        queries, keys = _trained()
        return queries[seed // 4, seed % 4], keys[seed // 4, seed % 4]
    if name == 'digits':
        images, _ = _digits()
        images = images[torch.randperm(len(images), generator=generator)[:NODES]].double()
        q, k = (images @ normal(64, CHANNELS) / 8 for _ in range(2))
    else:
        q, k = normal(NODES, CHANNELS), normal(NODES, CHANNELS)
    if name == 'few directions':
        size = 0.5 ** torch.arange(CHANNELS, dtype=torch.float64)
        axes = size.mul(CHANNELS / size.sum()).sqrt()
        q, k = q * axes, k * axes
    if name == 'shifted':
        q, k = q + normal(CHANNELS), k + normal(CHANNELS)
    return float(scale) * q, float(scale) * k


def _digits() -> tuple[Tensor, Tensor]:
    digits = load_digits()
    images = torch.from_numpy(digits.data).float()
    return (images - images.mean()) / images.std(), torch.from_numpy(digits.target)


class _PixelAttention(torch.nn.Module):
    r"""Softmax attention between the pixels of an image, in two residual layers of four heads."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = torch.nn.Linear(1, 4 * CHANNELS)
        self.position = torch.nn.Parameter(torch.randn(64, 4 * CHANNELS))
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4 * CHANNELS, 12 * CHANNELS) for _ in range(2))
        self.classify = torch.nn.Linear(4 * CHANNELS, 10)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = self.encode(images.unsqueeze(-1)) + self.position
        for layer in self.layers:
            normed = torch.nn.functional.layer_norm(h, h.shape[-1:])
            q, k, v = layer(normed).view(*h.shape[:2], 3, 4, CHANNELS).permute(2, 0, 3, 1, 4)
            attended = torch.nn.functional.scaled_dot_product_attention(q, k, v)
            h = h + attended.transpose(1, 2).flatten(2)
        return self.classify(h.mean(1)), q, k


@cache
@torch.enable_grad()
def _trained() -> tuple[Tensor, Tensor]:
    r"""Returns the queries and keys of the last layer of a trained model on images that it has not seen,
    :obj:`[images, heads, pixels, channels]`.
    """
    torch.manual_seed(0)
    images, target = _digits()
    model = _PixelAttention()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(STEPS):
        chosen = torch.randint(1500, (64,))
        loss = torch.nn.functional.cross_entropy(model(images[chosen])[0], target[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    _, q, k = model(images[1500:])
    return q.detach().double(), k.detach().double()


INPUTS = (
    'Gaussian, 0.5',
    'Gaussian, 0.7',
    'Gaussian, 1',
    'Gaussian, 2',
    'few directions, 0.5',
    'few directions, 1',
    'shifted, 0.5',
    'shifted, 0.7',
    'shifted, 1',
    'digits, 0.5',
    'digits, 1',
    'trained',
)
FAVOR = 'FAVOR+ (favor)'
PACKAGE: dict[str, Callable[[int], FeatureMap]] = {
    FAVOR: partial(FavorFeatures, CHANNELS),
    'SimRF (simplex)': partial(SimplexFeatures, CHANNELS),
    'fourier': lambda number: FourierFeatures(CHANNELS, number // 2),
    'DERF, symmetric (derf)': partial(DenseExponentialFeatures, CHANNELS),
}
CANDIDATES = {
    'OPRF, one number a': 'scalar',
    'DERF, symmetric (derf)': 'symmetric',
    'DERF, asymmetric (ADERF)': 'asymmetric',
}


def _operations(features: int, kind: str | None) -> int:
    r"""Multiplications and additions per node: projections of queries and keys, sums of keys times values, and queries times
    the sums; of candidates also the second moments, and the rotation where the length changes with it.
    """
    plain = 4 * features * CHANNELS + 4 * features * (CHANNELS + 1)
    return plain + {None: 0, 'scalar': 4 * CHANNELS, 'symmetric': 4 * CHANNELS**2, 'asymmetric': 8 * CHANNELS**2}[kind]


def _affordable(features: int, kind: str) -> int:
    r"""The largest number of features that costs no more than FAVOR+."""
    return max(number for number in range(1, features + 1) if _operations(number, kind) <= _operations(features, None))


def _features(name: str, number: int, q: Tensor, k: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    if name not in PACKAGE:
        made = FavorFeatures(CHANNELS, num_features=number)
        made.redraw(generator)
        return dense_exponential(q, k, made.projection.to(q.dtype), CANDIDATES[name])
    map_of_package = PACKAGE[name](number)
    map_of_package.redraw(generator)
    left, right = map_of_package(q.unsqueeze(1), k.unsqueeze(1))
    return left[:, 0], right[:, 0]


def _normalized(scores: Tensor) -> Tensor:
    return scores / scores.sum(1, keepdim=True)


@torch.no_grad()
def run(quick: bool, folder: Path) -> None:
    rows: list[dict[str, object]] = []
    for inputs in tqdm(INPUTS[:2] if quick else INPUTS, desc='softmax'):
        for features in FEATURES:
            numbers = dict.fromkeys(PACKAGE, features)
            numbers |= {name: _affordable(features, kind) for name, kind in CANDIDATES.items()}
            errors: dict[str, Errors] = {name: [] for name in numbers}
            uniform: Errors = []
            for seed in range(2 if quick else SEEDS):
                q, k = _draw_inputs(inputs, seed)
                exact = (q @ k.t() / math.sqrt(CHANNELS)).softmax(1)
                uniform.append(relative_error(torch.full_like(exact, 1 / len(exact)), exact))
                for name, number in numbers.items():
                    left, right = _features(name, number, q, k, seed)
                    errors[name].append(relative_error(_normalized(left @ right.t()), exact))
            rows += [
                {
                    'queries and keys': inputs,
                    'method': name,
                    'features': number,
                    'operations per node': _operations(number, CANDIDATES.get(name)),
                    'uniform': f'{statistics.mean(uniform):.4f}',
                    **compared(errors[name], errors[FAVOR]),
                }
                for name, number in numbers.items()
            ]
    seconds = _softmax_seconds(1 if quick else 15)
    note = (
        f'Attention with softmax(q k / sqrt(d)), d = {CHANNELS}, on graphs of {NODES} nodes, by random features, in float64. '
        f'Relative error is that of the matrix of coefficients, ||estimate - exact||_F / ||exact||_F. {SEEDS} seeds of '
        f'inputs and projections, mean ± standard error; differences are paired by seed, and below two standard errors "not '
        f'distinguishable". DERF are the dense-exponential features of Likhosherstov et al. (2023, arXiv:2302.00787), with our '
        f'derivation of the matrices, which minimize the average logarithm of the second moment on the graph, and with the '
        f'orthogonal projection of FAVOR+. They have fewer features where second moments of queries and keys cost as much as '
        f'others. "fourier" counts sines and cosines. "Gaussian, s": entries of standard deviation s; "few directions": '
        f'variances that halve from channel to channel, "shifted": random means, "digits": random projections of standardized '
        f'images of scikit-learn, and all times the number s; "trained": those of the last of two layers of softmax attention '
        f'between the 64 pixels of such images, trained for {STEPS} steps, of 4 heads on 5 images that it has not seen. '
        f'"uniform" is the error of equal coefficients: an estimate with a larger one tells nothing. Processor time of '
        f'features and attention to {CHANNELS} channels of 4096 nodes in float32, in turns, divided by that of FAVOR+ with 64 '
        f'features: {"; ".join(f"on {graphs} {ratios(of, FAVOR)}" for graphs, of in seconds.items())}.'
    )
    write_table('candidates_softmax', 'Random features of softmax: dense-exponential features', note, rows, folder)


def _softmax_seconds(repeats: int) -> dict[str, dict[str, float]]:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 4096, CHANNELS)
    ones = torch.cat([v, torch.ones(len(v), 1)], dim=1)
    batch = Segments(len(v), torch.arange(len(v)) // 64)

    def attend(name: str, number: int) -> None:
        left, right = _features(name, number, q, k, 0)
        left @ (right.t() @ ones)

    def attend_in_graphs(name: str, number: int) -> None:
        left, right = PACKAGE[name](number)(q.unsqueeze(1), k.unsqueeze(1), batch)
        left.view(64, 64, -1) @ (right.view(64, 64, -1).mT @ ones.view(64, 64, -1))

    kinds = {FAVOR: 64} | {name: _affordable(64, kind) for name, kind in CANDIDATES.items()}
    one = {name: partial(attend, name, number) for name, number in kinds.items()}
    several = {name: partial(attend_in_graphs, name, number) for name, number in kinds.items() if name in PACKAGE}
    return {
        'one graph': interleaved_medians(one, repeats, time.process_time),
        '64 graphs of 64 nodes': interleaved_medians(several, repeats, time.process_time),
    }
