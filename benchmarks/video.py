r"""What a mask of the patch grid is worth to a video Transformer: softmax attention with and without graph random features."""

from __future__ import annotations

from pathlib import Path

import torch
from tqdm import tqdm

from benchmarks.harness import compare, each, show, write_table
from benchmarks.images import fit, measure_accuracy
from pyg_topomask.apps.datasets.images import moving_digits
from pyg_topomask.masks import GRFMask
from pyg_topomask.nn.models import ViViT

__all__ = ['run']

CHANNELS, DEPTH, TEMPORAL_DEPTH, HEADS, MLP_CHANNELS, BASE_RATE = 48, 2, 1, 4, 96, 2e-3
SIZE, PATCH, FRAMES, TUBELET = 16, 2, 8, 2


def run(quick: bool, folder: Path) -> None:
    epochs, seeds = (1, 2) if quick else (20, 3)
    variants = ('softmax', 'softmax + GRF')
    bar = tqdm([(variant, seed) for seed in range(seeds) for variant in variants], desc='video')
    accuracy = {(variant, seed): _train(variant, seed, epochs, 64 if quick else None) for variant, seed in bar}
    rows: list[dict[str, object]] = []
    for variant, paper in zip(variants, (0.754, 0.758), strict=True):
        values, reference = ([accuracy[name, seed] for seed in range(seeds)] for name in (variant, variants[0]))
        rows.append(
            {
                'attention': variant,
                'test accuracy': show(values, 4),
                **compare(values, reference, 'minus softmax, paired by seed', variant == variants[0], 4),
                'paper (Kinetics 400)': f'{paper:.3f}',
                'seeds': each(values, 4),
            }
        )
    note = (
        f'Factorised-encoder ViViT ({DEPTH} spatial and {TEMPORAL_DEPTH} temporal layers, {CHANNELS} channels, {HEADS} heads; '
        f'the paper: 12, 4, 768, 12) on generated videos of {FRAMES} frames of {SIZE}x{SIZE} pixels in which a digit of '
        f'scikit-learn moves, tubelets of {PATCH}x{PATCH}x{TUBELET}, 40 classes (digit and direction), {epochs} epochs '
        f'(the paper: 30), {seeds} seeds, test accuracy after the last epoch, mean ± standard error. A difference below two '
        f'standard errors is "not distinguishable". GRF: 20 walks, p_halt 0.1, at most 10 hops, frozen per layer, positive '
        f'modulation.'
    )
    write_table('video', 'Video Transformers: softmax attention with GRF masks', note, rows, folder)


def _train(variant: str, seed: int, epochs: int, limit: int | None) -> float:
    torch.manual_seed(seed)
    splits = moving_digits(FRAMES, SIZE, 'both')
    (videos, labels), test = ([tensor[:limit] for tensor in splits[name]] for name in ('train', 'test'))

    def mask(layer: int) -> GRFMask:
        return GRFMask(HEADS, 20, 0.1, 10, seed=DEPTH * seed + layer, positive=True)

    model = ViViT(
        SIZE,
        PATCH,
        FRAMES,
        TUBELET,
        1,
        40,
        CHANNELS,
        DEPTH,
        TEMPORAL_DEPTH,
        HEADS,
        MLP_CHANNELS,
        mask=mask if variant == 'softmax + GRF' else None,
    )
    fit(model, videos, labels, epochs, BASE_RATE)
    return measure_accuracy(model.eval(), *test)
