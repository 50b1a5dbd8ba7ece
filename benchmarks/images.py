r"""What masks are worth to vision Transformers: the comparison and the ablations of the GRF paper, on small images."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.harness import Unavailable, compare, data_folder, each, kept_runs, new_figure, run_all, show, write_table
from pyg_topomask import masks
from pyg_topomask.apps.datasets.images import load_images
from pyg_topomask.apps.runs.compare import mean_error
from pyg_topomask.nn.models import TopologicalViT

__all__ = ['fit', 'measure_accuracy', 'run']

CHANNELS, DEPTH, HEADS, MLP_CHANNELS = 64, 2, 4, 128
BATCH, BASE_RATE, FINAL_RATE, LARGEST_GRADIENT = 32, 3e-3, 1e-5, 1.0
# Position embeddings that start small, as is usual, do not grow in so few steps.
POSITION_SCALE = 1.0
PATCH = {'digits': 1, 'mnist': 4, 'cifar10': 4}
SEEDS = 5


@dataclass(frozen=True)
class Variant:
    r"""A kind of attention: the paper's accuracy on ImageNet, whether it is trained on more than the digits, and what makes
    the settings of a model from the number of patches and the seed of the run.
    """

    paper: float | None
    everywhere: bool
    settings: Callable[[int, int], dict[str, Any]]


def _grf(
    num_walks: int,
    p_halt: float,
    max_walk_length: int,
    feature_map: str = 'relu',
    positive: bool = False,
    importance: bool = True,
) -> Callable[[int, int], dict[str, Any]]:
    r"""Masks whose walks differ between layers and runs; as in the paper, their modulations may turn negative."""

    def make(patches: int, seed: int) -> dict[str, Any]:
        def mask(layer: int) -> masks.Mask:
            layer_seed, walks = DEPTH * seed + layer, (num_walks, p_halt, max_walk_length)
            return masks.GRFMask(HEADS, *walks, seed=layer_seed, importance=importance, positive=positive)

        return {'mask': mask, 'feature_map': feature_map}

    return make


def _power_series(positive: bool) -> Callable[[int, int], dict[str, Any]]:
    r"""The limit of GRF masks of 10 hops for many walks, from the same start: the series is the convolution of theirs."""
    power = torch.arange(11)
    alpha = (power + 1) * 0.5**power
    return lambda patches, seed: {'mask': lambda layer: masks.PowerSeriesMask(HEADS, 20, alpha, 'f', positive=positive)}


def _toeplitz(patches: int, seed: int) -> dict[str, Any]:
    side = round(patches**0.5)
    return {'mask': lambda layer: masks.ToeplitzMask(HEADS, window=side - 1)}


UNMASKED, EXACT = 'linear, ReLU', 'exact power series'
WALKERS = (1, 3, 10, 30, 100)
VARIANTS = {
    'softmax': Variant(0.741, True, lambda patches, seed: {'attention': 'softmax'}),
    EXACT: Variant(0.741, True, _power_series(False)),
    f'{EXACT}, positive f': Variant(None, True, _power_series(True)),
    'Toeplitz': Variant(0.733, True, _toeplitz),
    UNMASKED: Variant(0.693, True, lambda patches, seed: {}),
    'linear, FAVOR+': Variant(0.693, True, lambda patches, seed: {'feature_map': 'favor'}),
    'GRF, n=20, 10 hops': Variant(0.730, True, _grf(20, 0.1, 10)),
    'GRF, n=100, 100 hops': Variant(0.730, False, _grf(100, 0.1, 100)),
    'GRF, n=20, 10 hops, positive f': Variant(None, True, _grf(20, 0.1, 10, positive=True)),
    'GRF, n=20, 10 hops, FAVOR+': Variant(0.734, True, _grf(20, 0.1, 10, feature_map='favor')),
    'heat kernel, fixed': Variant(
        None, True, lambda patches, seed: {'mask': lambda layer: masks.PowerSeriesMask(1, 20, 'heat', learnable=False)}
    ),
    'ad-hoc, n=100, p_halt=0.5': Variant(0.689, False, _grf(100, 0.5, 10, importance=False)),
    'learned features': Variant(
        0.696, False, lambda patches, seed: {'mask': lambda layer: masks.LearnedFeaturesMask(HEADS, patches)}
    ),
    **{f'GRF, n={n}, p_halt=0.5': Variant(None, False, _grf(n, 0.5, 10)) for n in WALKERS},
}


@dataclass(frozen=True)
class Training:
    r"""The epochs on each data set, and how many images are used at most."""

    digits: int
    mnist: int
    cifar10: int
    images: int | None = None


def run(quick: bool, folder: Path) -> None:
    training, seeds = (Training(1, 1, 1, images=64), 2) if quick else (Training(15, 3, 15), SEEDS)
    jobs = [
        (data, variant, seed)
        for seed in range(seeds)
        for data in _sets()
        for variant, options in VARIANTS.items()
        if data == 'digits' or options.everywhere
    ]
    settings = {
        **asdict(training),
        'model': [CHANNELS, DEPTH, HEADS, MLP_CHANNELS, POSITION_SCALE],
        'training': [BATCH, BASE_RATE, FINAL_RATE, LARGEST_GRADIENT],
    }
    path = kept_runs(folder, 'images', quick)
    accuracy = run_all(jobs, partial(_train, training=training), settings, path)
    rows = [row for data in PATCH for row in _rows(data, [job for job in jobs if job[0] == data], accuracy)]
    note = (
        f'A vision Transformer of {DEPTH} layers, {CHANNELS} channels, {HEADS} heads, MLPs of {MLP_CHANNELS} channels, learned '
        f'position embeddings (standard deviation {POSITION_SCALE} at the start), batches of {BATCH}, Adam, gradients of norm '
        f'{LARGEST_GRADIENT} at most, learning rate {BASE_RATE} down to {FINAL_RATE} by the schedule of the GRF paper (Table '
        f'2; warm-up for a tenth of the steps, constant until the half, cosine). digits: 8x8 images of scikit-learn, patches '
        f'of one pixel (64), 1,257 for training and 270 for testing, {training.digits} epochs; mnist: 28x28, patches of 4x4 '
        f'pixels (49), 9,000 for training and 2,000 for testing, {training.mnist} epochs; cifar10: 32x32 in colour, patches of '
        f'4x4 pixels (64), 900 for training and 500 for testing, {training.cifar10} epochs'
        f'{f"; a smoke run on {training.images} images" if training.images else ""}. {seeds} seeds (weights, batches and '
        f'walks), test accuracy after the last epoch, mean ± standard error. A difference below two standard errors is "not '
        f'distinguishable". Features are ReLU and p_halt is 0.1 where nothing else is said; walks are frozen for each layer. '
        f'"paper" is the accuracy on ImageNet of a 12-layer, 768-channel model (Table 1, Table 3 and App. C.2; GRF there with '
        f'n = 100 and 100 hops); walker counts of Fig. 6 have no printed figure.'
    )
    write_table('images', 'Vision Transformers: what masks of the patch grid are worth', note, rows, folder)
    _plot(jobs, accuracy, folder / 'images.png')


Job = tuple[str, str, int]


def _sets() -> list[str]:
    r"""All data sets, or where their folder is missing the digits, which come with scikit-learn."""
    try:
        data_folder('images')
    except Unavailable:
        return ['digits']
    return list(PATCH)


def _train(job: Job, training: Training) -> float:
    r"""Trains one model, and returns its test accuracy after the last epoch."""
    data, variant, seed = job
    torch.manual_seed(seed)
    splits = load_images(data, None if data == 'digits' else data_folder('images'))
    (images, labels), test = ([tensor[: training.images] for tensor in splits[name]] for name in ('train', 'test'))
    size, patch, epochs = images.size(-1), PATCH[data], getattr(training, data)
    settings = VARIANTS[variant].settings((size // patch) ** 2, seed)
    model = TopologicalViT(size, patch, images.size(1), 10, CHANNELS, DEPTH, HEADS, MLP_CHANNELS, **settings)
    torch.nn.init.normal_(model.encoder.position, std=POSITION_SCALE)
    fit(model, images, labels, epochs, BASE_RATE)
    return measure_accuracy(model.eval(), *test)


def fit(model: torch.nn.Module, images: Tensor, labels: Tensor, epochs: int, largest_rate: float) -> None:
    r"""Trains a model on images or videos, in batches of 32."""
    optimizer = torch.optim.Adam(model.parameters(), largest_rate)
    steps = epochs * math.ceil(len(labels) / BATCH)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, partial(_rate, steps=steps))
    for _ in range(epochs):
        for chosen in torch.randperm(len(labels)).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(model(images[chosen]), labels[chosen]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), LARGEST_GRADIENT)
            optimizer.step()
            scheduler.step()


def _rate(step: int, steps: int) -> float:
    r"""The learning rate as a share of the largest one: linear warm-up, constant, cosine decay."""
    warmup = steps // 10 + 1
    if step < warmup:
        return (step + 1) / warmup
    progress = max(0.0, 2 * step / steps - 1)
    return (FINAL_RATE + (BASE_RATE - FINAL_RATE) * (1 + math.cos(math.pi * progress)) / 2) / BASE_RATE


@torch.no_grad()
def measure_accuracy(model: torch.nn.Module, images: Tensor, labels: Tensor) -> float:
    r"""Returns the share of images, or videos, whose label a model predicts."""
    predicted = torch.cat([model(batch).argmax(1) for batch in images.split(BATCH)])
    return float((predicted == labels).double().mean())


def _rows(data: str, jobs: list[Job], accuracy: dict[Job, float]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    reference = [accuracy[job] for job in jobs if job[1] == UNMASKED]
    for variant in dict.fromkeys(variant for _, variant, _ in jobs):
        values = [accuracy[job] for job in jobs if job[1] == variant]
        paper, base = VARIANTS[variant].paper, VARIANTS[UNMASKED].paper
        rows.append(
            {
                'data': data,
                'attention': variant,
                'test accuracy': show(values, 4),
                **compare(values, reference, f'minus {UNMASKED}, paired by seed', variant == UNMASKED, 4),
                'paper': '' if paper is None else f'{paper:.3f}',
                'paper, minus unmasked linear': '' if paper is None or base is None else f'{paper - base:+.3f}',
                'seeds': each(values, 4),
            }
        )
    return rows


def _plot(jobs: list[Job], accuracy: dict[Job, float], path: Path) -> None:
    def summary(data: str, variant: str) -> tuple[float, float]:
        return mean_error([accuracy[job] for job in jobs if job[:2] == (data, variant)])

    kinds = {data: [name for name in VARIANTS if (data, name, 0) in accuracy] for data in PATCH}
    figure = new_figure(12, 8.5)
    axes = figure.subplots(2, 2)
    for axis, (data, names) in zip(axes.flat, kinds.items(), strict=False):
        means, errors = zip(*(summary(data, name) for name in names), strict=True) if names else ((), ())
        axis.errorbar(means, range(len(names)), xerr=errors, fmt='o', capsize=3)
        axis.set_yticks(range(len(names)), names)
        axis.invert_yaxis()
        axis.set(title=f'{data}: test accuracy ± standard error')
        axis.grid(alpha=0.3)
    means, errors = zip(*(summary('digits', f'GRF, n={n}, p_halt=0.5') for n in WALKERS), strict=True)
    axes[1, 1].errorbar(WALKERS, means, yerr=errors, fmt='o-', capsize=3, label='GRF, p_halt=0.5')
    for name, style in ((UNMASKED, 'k:'), (EXACT, 'k--')):
        axes[1, 1].plot(WALKERS, [summary('digits', name)[0]] * len(WALKERS), style, label=name)
    axes[1, 1].set(title='digits: test accuracy', xlabel='walkers per node', xscale='log')
    axes[1, 1].legend()
    axes[1, 1].grid(alpha=0.3)
    figure.savefig(path, dpi=120)
