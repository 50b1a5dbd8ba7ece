r"""MGFormer with several layers and heads. Its paper has one of each."""

from __future__ import annotations

import csv
import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path

from benchmarks.harness import compare, data_folder, each, kept_runs, run_all, show, write_table
from benchmarks.recommend import QUICK, SEEDS, K, Scale
from benchmarks.report import RESULTS
from pyg_topomask.apps.recommend.options import default_config
from pyg_topomask.apps.recommend.recommender import build_recommender
from pyg_topomask.apps.recommend.runner import Training, load_dataset

__all__ = ['run']

#: Layers and heads. The first is the reference.
SIZES = ((1, 1), (2, 1), (1, 4), (2, 4))

Job = tuple[int, int, int]  # layers, heads, a seed
Result = dict[str, float]


def run(quick: bool, folder: Path) -> None:
    scale, seeds = (QUICK, 2) if quick else (Scale(), SEEDS)
    rate, weight = _chosen()
    jobs = [(*size, seed) for seed in range(seeds) for size in SIZES]
    train = partial(_train, rate=rate, weight=weight, scale=scale)
    results = run_all(jobs, train, [asdict(scale), rate, weight], kept_runs(folder, 'recommend_layers', quick))
    runs = {(layers, heads): [results[layers, heads, seed] for seed in range(seeds)] for layers, heads in SIZES}
    reference = [result[f'test_recall@{K}'] for result in runs[SIZES[0]]]
    rows = []
    for (layers, heads), of_seeds in runs.items():
        recall = [result[f'test_recall@{K}'] for result in of_seeds]
        rows.append(
            {
                'layers': layers,
                'heads': heads,
                'Recall': show(recall, 4),
                'NDCG': show([result[f'test_ndcg@{K}'] for result in of_seeds], 4),
                **compare(recall, reference, 'Recall minus the first, paired by seed', (layers, heads) == SIZES[0], 4),
                'epochs': each((result['epochs'] for result in of_seeds), 0),
                'seeds': each(recall, 4),
                'best epoch': each((result['best_epoch'] for result in of_seeds), 0),
            }
        )
    note = (
        f'On lastfm, {scale.embedding_dim} channels, at most {scale.max_epoch} epochs, validation every {scale.eval_period}, '
        f'which ends training after {scale.patience} without a better Recall@{K}. All have the learning rate {rate:g} and the '
        f'weight {weight:g} that validation chose for one layer and one head (recommend_tuning), so the others are at a '
        f'disadvantage. {seeds} seeds; test Recall@{K} and NDCG@{K} as in recommend, mean ± standard error. A difference below '
        f'two standard errors is "not distinguishable".'
    )
    write_table('recommend_layers', 'Recommendation: layers and heads of MGFormer', note, rows, folder)


def _chosen() -> tuple[float, float]:
    r"""Returns the learning rate and the weight of the table :obj:`recommend_tuning`."""
    with (RESULTS / 'recommend_tuning.csv').open(newline='') as file:
        rows = [row for row in csv.DictReader(file) if row['data'] == 'lastfm' and row['model'] == 'MGFormer' and row['chosen']]
    values = {row['setting']: float(row['value']) for row in rows}
    return values['lr'], values['weight']


def _train(job: Job, rate: float, weight: float, scale: Scale) -> Result:
    r"""Trains one model, and returns the metrics of its best epoch."""
    layers, heads, seed = job
    config = default_config()
    config.seed = seed
    options = config.recommend
    options.dataset, options.dir, options.k, options.progress = 'lastfm', str(data_folder('recsys')), K, False
    options.update(asdict(scale))
    options.model = 'MGFormer'
    settings = options.MGFormer
    settings.layers, settings.heads, settings.svd_dim = layers, heads, scale.embedding_dim
    settings.lr, settings.weight = rate, weight
    with tempfile.TemporaryDirectory() as scratch:
        result: Result = Training(config, load_dataset(options), Path(scratch), build_recommender).run(resume=False)
    return result
