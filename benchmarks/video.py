r"""What a mask of the patch grid is worth to a video Transformer: softmax attention with and without graph random features."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm

from benchmarks.harness import mean_error, verdict, write_table
from benchmarks.images import rate
from pyg_topomask.datasets.moving_digits import moving_digits
from pyg_topomask.masks import GRFMask
from pyg_topomask.nn.models import ViViT

__all__ = ['run']

CHANNELS, DEPTH, TEMPORAL_DEPTH, HEADS, MLP_CHANNELS, BATCH, BASE_RATE = 48, 2, 1, 4, 96, 32, 2e-3
SIZE, PATCH, FRAMES, TUBELET = 16, 2, 8, 2


def run(quick: bool, folder: Path) -> None:
    epochs, seeds = (1, 2) if quick else (20, 3)
    variants = ('softmax', 'softmax + GRF')
    bar = tqdm([(variant, seed) for seed in range(seeds) for variant in variants], desc='video')
    accuracy = {(variant, seed): _train(variant, seed, epochs, 64 if quick else None) for variant, seed in bar}
    rows: list[dict[str, object]] = []
    for variant, paper in zip(variants, (0.754, 0.758), strict=True):
        gaps = [accuracy[variant, seed] - accuracy[variants[0], seed] for seed in range(seeds)]
        rows.append(
            {
                'attention': variant,
                'test accuracy': '{:.4f} ± {:.4f}'.format(*mean_error([accuracy[variant, seed] for seed in range(seeds)])),
                'minus softmax, paired by seed': '{:+.4f} ± {:.4f}'.format(*mean_error(gaps)),
                'verdict': 'reference' if variant == variants[0] else verdict(*mean_error(gaps)),
                'paper (Kinetics 400)': f'{paper:.3f}',
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
    (videos, labels), test = ([tensor[:limit] for tensor in splits[part]] for part in ('train', 'test'))

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
    optimizer = torch.optim.Adam(model.parameters(), BASE_RATE)
    steps = epochs * math.ceil(len(labels) / BATCH)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, partial(rate, steps=steps))
    for _ in range(epochs):
        for chosen in torch.randperm(len(labels)).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(model(videos[chosen]), labels[chosen]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
    return _accuracy(model.eval(), *test)


@torch.no_grad()
def _accuracy(model: ViViT, videos: Tensor, labels: Tensor) -> float:
    found = torch.cat([model(part).argmax(1) for part in videos.split(BATCH)])
    return float((found == labels).double().mean())
