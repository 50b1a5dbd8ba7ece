r"""MGFormer with several layers and heads, where its paper has one of each."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import compare, data_folder, each, kept_runs, run_all, show, write_table
from benchmarks.recommend import OURS, QUICK, K, Result, Scale
from pyg_topomask.apps.recommend.options import default_config
from pyg_topomask.apps.recommend.runner import Training, load_dataset

__all__ = ['run']

#: Layers and heads; the first is the paper's.
SHAPES = ((1, 1), (2, 1), (1, 4), (2, 4))
#: The learning rate and the weight of uniformity that validation chose for one layer and one head (recommend_tuning).
RATE, WEIGHT = 0.03, 1.0
SEEDS = 3


class Job(NamedTuple):
    r"""One model to train."""

    layers: int
    heads: int
    seed: int


def run(quick: bool, folder: Path) -> None:
    scale, seeds = (QUICK, 2) if quick else (Scale(), SEEDS)
    shapes = SHAPES[:2] if quick else SHAPES
    jobs = [Job(*shape, seed) for seed in range(seeds) for shape in shapes]
    path = kept_runs(folder, 'recommend_layers', quick)
    train = partial(_train, scale=scale, folder=folder / 'recommend_layers_unfinished')
    results = run_all(jobs, train, {**asdict(scale), 'chosen': [RATE, WEIGHT]}, path)
    reference = [results[Job(*SHAPES[0], seed)][f'test_recall@{K}'] for seed in range(seeds)]
    rows: list[dict[str, object]] = []
    for shape in shapes:
        runs = [results[Job(*shape, seed)] for seed in range(seeds)]
        recall = [result[f'test_recall@{K}'] for result in runs]
        rows.append(
            {
                'layers': shape[0],
                'heads': shape[1],
                f'validation Recall@{K}': show([result[f'val_recall@{K}'] for result in runs], 4),
                f'Recall@{K}': show(recall, 4),
                f'NDCG@{K}': show([result[f'test_ndcg@{K}'] for result in runs], 4),
                **compare(recall, reference, f'Recall@{K} minus one layer and head, paired', shape == SHAPES[0], 4),
                'epochs': each((result['epochs'] for result in runs), 0),
                'seeds': each(recall, 4),
            }
        )
    note = (
        f'LastFM, {scale.embedding_dim} channels, batches of {scale.batch_size}, at most {scale.max_epoch} epochs, and '
        f'until {scale.patience} validations, one every {scale.eval_period} epochs, have found no better Recall@{K}'
        f'{", a smoke run" if quick else ""}. All models have the learning rate {RATE} and the weight {WEIGHT} of uniformity '
        f'that validation chose for one layer and one head, which the paper has (recommend_tuning); nothing else was tried. '
        f'Test Recall@{K} and NDCG@{K} over all items, mean ± standard error over {seeds} seeds of weights and batches. A '
        f'difference below two standard errors is "not distinguishable".'
    )
    write_table('recommend_layers', f'Recommendation: {OURS} with several layers and heads', note, rows, folder)


def _train(job: Job, scale: Scale, folder: Path) -> Result:
    config = default_config()
    config.seed = job.seed
    options = config.recommend
    options.dataset, options.dir, options.k, options.progress = 'lastfm', str(data_folder('recsys')), K, False
    options.update(asdict(scale))
    options.model = OURS
    options[OURS].update(layers=job.layers, heads=job.heads, svd_dim=scale.embedding_dim, lr=RATE, weight=WEIGHT)
    run_dir = folder / '-'.join(map(str, job))
    result = Training(config, load_dataset(options), run_dir).run(resume=run_dir.exists())
    shutil.rmtree(run_dir)
    return result
