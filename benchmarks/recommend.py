r"""MGFormer against its baselines: Table 2, Table 3 and Fig. 2 of its paper, and what an epoch costs."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from benchmarks.harness import interleaved_medians, mean_error, verdict, write_table
from pyg_topomask.recommend.config import default_config
from pyg_topomask.recommend.train import Training, load_dataset

__all__ = ['run']

SEEDS, K = 3, 20
REFERENCE, OURS = 'DirectAU', 'MGFormer'
GROUPS = ('unpopular', 'normal', 'popular')
DATASETS = ('lastfm', 'beauty', 'yelp')
FOLDERS = {'lastfm': 'lastfm', 'beauty': 'amazon-beauty', 'yelp': 'yelp-sparse'}


@dataclass(frozen=True)
class Variant:
    r"""A model: its name in the runner, settings of its own, Recall@20 and NDCG@20 of the paper on Beauty, and whether it runs
    on every data set or, as the ablations, on Beauty alone.
    """

    model: str
    settings: dict[str, Any]
    paper: tuple[float, float] | None
    everywhere: bool = True


VARIANTS = {
    'BPR-MF': Variant('BPRMF', {}, (0.1153, 0.0534)),
    'LightGCN': Variant('LightGCN', {}, (0.1201, 0.0581)),
    'SGL': Variant('SGL', {}, (0.1228, 0.0644)),
    'SimGCL': Variant('SimGCL', {}, (0.1367, 0.0682)),
    'DirectAU, MF': Variant('DirectAU', {'layers': 0}, None),
    REFERENCE: Variant('DirectAU', {}, (0.1465, 0.0710)),
    OURS: Variant('MGFormer', {}, (0.1531, 0.0748)),
    'MGFormer, as printed (no residual)': Variant('MGFormer', {'residual': False}, None),
    'MGFormer without SVD': Variant('MGFormer', {'svd_dim': 0}, (0.1413, 0.0712), False),
    'MGFormer without degree mask': Variant('MGFormer', {'mask': 'none'}, (0.1501, 0.0739), False),
    'MGFormer, adjacency as mask': Variant('MGFormer', {'mask': 'adjacency'}, (0.1318, 0.0674), False),
    'MGFormer, elu + 1': Variant('MGFormer', {'feature_map': 'elu'}, (0.1507, 0.0740), False),
    'MGFormer, focused': Variant('MGFormer', {'feature_map': 'focused'}, (0.1514, 0.0742), False),
}


@dataclass(frozen=True)
class Scale:
    r"""How large the models are and how long they train."""

    embedding_dim: int = 64
    batch_size: int = 2048
    max_epoch: int = 300
    patience: int = 10


Job = tuple[str, str, int]
Result = dict[str, float]


def run(quick: bool, folder: Path) -> None:
    names = [name for name in DATASETS if (_data_folder() / FOLDERS[name]).is_dir()]
    if not names:
        print(f'recommend: skipped, for the data sets are not in {_data_folder()}')
        return
    scale, seeds = (Scale(8, 1024, 1), 2) if quick else (Scale(), SEEDS)
    names = names[:1] if quick else names
    jobs = [
        (data, variant, seed)
        for seed in range(seeds)
        for data in names
        for variant, own in VARIANTS.items()
        if own.everywhere or data == 'beauty'
    ]
    results = _train_all(jobs, scale, folder / f'recommend_runs{"_quick" if quick else ""}.json')
    rows = [row for data in names for row in _rows(data, [job for job in jobs if job[0] == data], results)]
    note = (
        f'Embeddings of {scale.embedding_dim} channels, batches of {scale.batch_size}, Adam, at most {scale.max_epoch} epochs, '
        f'stopped after {scale.patience} without a better validation Recall@{K}; the settings of each model are the defaults '
        f'of the runner{", a smoke run" if quick else ""}. {seeds} seeds (weights and batches; the split stays), all-ranking '
        f'Recall@{K} and NDCG@{K} on the test interactions, training and validation items masked, mean ± standard error. A '
        f'difference below two standard errors is "not distinguishable". Beauty is split anew at random, 80/10/10 for each '
        f'user, as in the paper; "paper" is its Table 2 (models) or Table 3 (ablations), another random split. '
        f'{OURS} adds its input to the output of its layer, without which (as in Eq. 12) it trains far more slowly.'
    )
    write_table('recommend', 'Recommendation: MGFormer and its baselines', note, rows, folder)
    _write_speed(names[-1] if quick else 'beauty' if 'beauty' in names else names[0], scale, 3 if quick else 15, folder)
    _plot(names, jobs, results, folder / 'recommend.png')


def _data_folder() -> Path:
    r"""Where the data sets lie."""
    return Path(os.environ.get('PYG_TOPOMASK_DATA', Path(__file__).parents[2] / 'shared' / 'data')) / 'recsys'


def _config(data: str, variant: str, scale: Scale) -> Any:
    config = default_config()
    own = config.recommend
    own.dataset, own.dir, own.k, own.progress = data, str(_data_folder()), K, False
    for key, value in asdict(scale).items():
        own[key] = value
    own.MGFormer.svd_dim = scale.embedding_dim
    own[VARIANTS[variant].model].update(VARIANTS[variant].settings)
    return config


def _train_all(jobs: list[Job], scale: Scale, path: Path) -> dict[Job, Result]:
    r"""Trains in parallel. Finished runs are kept in a file, and are not run again under the same settings."""
    settings = {**asdict(scale), 'defaults': default_config().dump()}
    stored = json.loads(path.read_text()) if path.is_file() else {}
    finished: dict[str, Result] = stored['runs'] if stored.get('settings') == settings else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    # A GPU serves one run at a time.
    processes = 1 if torch.cuda.is_available() else multiprocessing.cpu_count()
    with multiprocessing.get_context('spawn').Pool(processes) as pool:
        missing = [job for job in jobs if _key(job) not in finished]
        results = pool.imap_unordered(partial(_train, scale=scale), missing)
        for job, result in tqdm(results, total=len(missing), desc='recommend'):
            finished[_key(job)] = result
            path.write_text(json.dumps({'settings': settings, 'runs': finished}, indent=1, sort_keys=True) + '\n')
    return {job: finished[_key(job)] for job in jobs}


def _key(job: Job) -> str:
    return ' / '.join(map(str, job))


def _train(job: Job, scale: Scale) -> tuple[Job, Result]:
    r"""Trains one model, and returns the metrics of its best epoch."""
    data, variant, seed = job
    torch.set_num_threads(1)
    config = _config(data, variant, scale)
    dataset = load_dataset(config.recommend)
    with tempfile.TemporaryDirectory() as folder:
        return job, Training(config, VARIANTS[variant].model, seed, dataset, Path(folder) / 'run').run()


def _rows(data: str, jobs: list[Job], results: dict[Job, Result]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    reference = [results[job] for job in jobs if job[1] == REFERENCE]
    for variant in dict.fromkeys(variant for _, variant, _ in jobs):
        own = [results[job] for job in jobs if job[1] == variant]
        gaps = [one[f'test_recall@{K}'] - other[f'test_recall@{K}'] for one, other in zip(own, reference, strict=True)]
        paper = VARIANTS[variant].paper if data == 'beauty' else None
        columns = {'Recall': f'test_recall@{K}', 'NDCG': f'test_ndcg@{K}'}
        columns |= {f'Recall of {group} items': f'test_{group} recall@{K}' for group in GROUPS}
        rows.append(
            {
                'data': data,
                'model': variant,
                **{name: '{:.4f} ± {:.4f}'.format(*mean_error([row[key] for row in own])) for name, key in columns.items()},
                f'Recall minus {REFERENCE}, paired by seed': '{:+.4f} ± {:.4f}'.format(*mean_error(gaps)),
                'verdict': 'reference' if variant == REFERENCE else verdict(*mean_error(gaps)),
                'paper, Recall': '' if paper is None else f'{paper[0]:.4f}',
                'paper, NDCG': '' if paper is None else f'{paper[1]:.4f}',
                'epochs': ' '.join(f'{row["epochs"]:.0f}' for row in own),
            }
        )
    return rows


def _write_speed(data: str, scale: Scale, repeats: int, folder: Path) -> None:
    variants = ['BPR-MF', 'LightGCN', REFERENCE, OURS]
    dataset = load_dataset(_config(data, OURS, scale).recommend)
    steps: dict[str, Callable[[], object]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for variant in variants:
            name = VARIANTS[variant].model
            steps[variant] = _step(Training(_config(data, variant, scale), name, 0, dataset, Path(scratch) / name))
        medians = interleaved_medians(steps, repeats)
    batches = math.ceil(dataset.train.size(1) / scale.batch_size)
    rows = [
        {
            'model': variant,
            'seconds per step': medians[variant],
            'seconds per epoch': medians[variant] * batches,
            f'times {REFERENCE}': medians[variant] / medians[REFERENCE],
            'times LightGCN': medians[variant] / medians['LightGCN'],
            'paper, seconds per epoch': {REFERENCE: 3.6, OURS: 8.7}.get(variant, ''),
        }
        for variant in variants
    ]
    note = (
        f'One training step (loss of {scale.batch_size} interactions, backward, Adam) on {data}, median of {repeats} in turns, '
        f'times {batches} steps an epoch; {scale.embedding_dim} channels, {"GPU" if torch.cuda.is_available() else "CPU"}. '
        f'{REFERENCE} has 2 LightGCN layers. The paper: a ratio of {8.7 / 3.6:.1f}.'
    )
    write_table('recommend_speed', 'Recommendation: seconds per epoch', note, rows, folder)


def _step(training: Training) -> Callable[[], object]:
    model, batch = training.model, training.dataset.train[:, : training.own.batch_size].to(training.device)
    model.objective.start_epoch(model.data)

    def step() -> float:
        training.optimizer.zero_grad()
        loss = model.objective(model.encoder.train(), model.data, *batch)
        loss.backward()
        training.optimizer.step()
        return float(loss.detach())  # a GPU is waited for

    return step


def _plot(names: list[str], jobs: list[Job], results: dict[Job, Result], path: Path) -> None:
    import matplotlib as mpl

    mpl.use('Agg')
    import matplotlib.pyplot as plt

    shown = [variant for variant, own in VARIANTS.items() if own.everywhere]
    figure, axes = plt.subplots(1, len(names), figsize=(5.5 * len(names), 4.5), layout='constrained', squeeze=False)
    for axis, data in zip(axes[0], names, strict=True):
        for place, variant in enumerate(shown):
            values = [
                mean_error([results[job][f'test_{group} recall@{K}'] for job in jobs if job[:2] == (data, variant)])
                for group in GROUPS
            ]
            positions = [group + 0.8 * place / len(shown) for group in range(len(GROUPS))]
            means, errors = zip(*values, strict=True)
            axis.bar(positions, means, 0.8 / len(shown), yerr=errors, label=variant, align='edge')
        axis.set_xticks([group + 0.4 for group in range(len(GROUPS))], GROUPS)
        axis.set(title=f'{data}: Recall@{K} of items by popularity')
        axis.grid(alpha=0.3, axis='y')
    axes[0][0].legend(fontsize='small')
    figure.savefig(path, dpi=120)
    plt.close(figure)
