r"""MGFormer against its baselines: Table 2, Table 3 and Fig. 2 of its paper, and what a training step costs."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness import (
    alone,
    compare,
    data_folder,
    each,
    interleaved_medians,
    kept_runs,
    new_figure,
    peak_memory,
    run_all,
    show,
    write_table,
)
from benchmarks.recommend_baselines import BASELINES, SETTINGS
from pyg_topomask.apps.recommend import InteractionDataset
from pyg_topomask.apps.recommend.options import default_config
from pyg_topomask.apps.recommend.recommender import build_recommender
from pyg_topomask.apps.recommend.runner import Training, load_dataset
from pyg_topomask.apps.runs.compare import mean_error
from pyg_topomask.errors import ArgumentError

__all__ = ['run', 'speed']

SEEDS, K = 3, 20
REFERENCE, OURS = 'DirectAU', 'MGFormer'
MODELS = ('BPR-MF', 'LightGCN', REFERENCE, OURS)
GROUPS = ('unpopular', 'normal', 'popular')
# Nodes, and interactions of each user, of the graph that shows the memory of a large one.
LARGE, DEGREE = 1_000_000, 5


@dataclass(frozen=True)
class Variant:
    r"""A model: its name, the settings that differ from the defaults, and Recall@20 and NDCG@20 of the paper on Beauty."""

    model: str
    settings: dict[str, Any]
    paper: tuple[float, float] | None


VARIANTS = {
    'BPR-MF': Variant('BPRMF', {}, (0.1153, 0.0534)),
    'LightGCN': Variant('LightGCN', {}, (0.1201, 0.0581)),
    'SGL': Variant('SGL', {}, (0.1228, 0.0644)),
    'SimGCL': Variant('SimGCL', {}, (0.1367, 0.0682)),
    'DirectAU, MF': Variant('DirectAU', {'layers': 0}, None),
    REFERENCE: Variant('DirectAU', {}, (0.1465, 0.0710)),
    OURS: Variant('MGFormer', {}, (0.1531, 0.0748)),
    'MGFormer, as printed (no residual)': Variant('MGFormer', {'residual': False}, None),
    'MGFormer without SVD': Variant('MGFormer', {'svd_dim': 0}, (0.1413, 0.0712)),
    'MGFormer without degree mask': Variant('MGFormer', {'mask': 'none'}, (0.1501, 0.0739)),
    'MGFormer, adjacency as mask': Variant('MGFormer', {'mask': 'adjacency'}, (0.1318, 0.0674)),
    'MGFormer, elu + 1': Variant('MGFormer', {'feature_map': 'elu'}, (0.1507, 0.0740)),
    'MGFormer, focused': Variant('MGFormer', {'feature_map': 'focused'}, (0.1514, 0.0742)),
}

#: The learning rates that are tried for each model, with the default of its other setting.
RATES = (1e-3, 3e-3, 1e-2)
#: The most values of a setting that are tried.
LARGEST_GRID = 8
#: The other setting of each model that validation then chooses, and the values tried, as many for each model.
TRIALS = {
    'BPRMF': ('l2', (1e-4, 1e-3, 1e-2, 1e-1)),
    'LightGCN': ('l2', (1e-4, 1e-3, 1e-2, 1e-1)),
    'SGL': ('weight', (0.03, 0.1, 0.3, 1.0)),
    'SimGCL': ('weight', (0.1, 0.2, 0.5, 1.0)),
    'DirectAU': ('weight', (0.1, 0.3, 1.0, 3.0)),
    'MGFormer': ('weight', (0.3, 1.0, 3.0, 10.0)),
}
# The variant that is tuned for each model; the other variants of the model take its value.
TUNED = {variant.model: name for name, variant in VARIANTS.items() if not variant.settings}


@dataclass(frozen=True)
class Scale:
    r"""How large the models are and how long they train; patience counts validations."""

    embedding_dim: int = 64
    batch_size: int = 2048
    max_epoch: int = 150
    eval_period: int = 2
    patience: int = 5


@dataclass(frozen=True)
class Study:
    r"""What is trained on a data set, and how long."""

    variants: Sequence[str]
    scale: Scale


STUDIES = {
    'lastfm': Study(tuple(VARIANTS), Scale()),
    'beauty': Study(MODELS, Scale(32, 2048, 30)),
    'yelp': Study(MODELS, Scale(32, 2048, 30)),
}
QUICK = Scale(8, 1024, 1)

Pair = tuple[float, float]  # a learning rate, and the value of a model's setting in TRIALS
Job = tuple[str, float, float, int]  # a variant, such a pair, a seed
Result = dict[str, float]


def run(quick: bool, folder: Path) -> None:
    r"""Accuracy on the data sets that :obj:`RECOMMEND_DATA` names (all of them without it), each written when it is done."""
    names = os.environ.get('RECOMMEND_DATA', ' '.join(STUDIES)).split()
    if unknown := set(names) - set(STUDIES):
        raise ArgumentError('RECOMMEND_DATA', sorted(unknown), ', '.join(STUDIES))
    rows: list[dict[str, object]] = []
    trials: list[dict[str, object]] = []
    scales: list[str] = []
    for name in names[:1] if quick else names:
        study, scale = STUDIES[name], QUICK if quick else STUDIES[name].scale
        chosen, tried = _choose(name, scale, quick, folder)
        trials += tried
        jobs = [
            (variant, *chosen[VARIANTS[variant].model], seed)
            for seed in range(2 if quick else SEEDS)
            for variant in study.variants
        ]
        results = _train_all(name, jobs, scale, folder)
        rows += _rows(name, jobs, results)
        cut = sum(result['epochs'] == scale.max_epoch for result in results.values())
        scales.append(
            f'{name}: {scale.embedding_dim} channels, batches of {scale.batch_size}, at most {scale.max_epoch} epochs, which '
            f'{cut} of {len(results)} runs reached before they stopped'
        )
        _write(rows, trials, scales, quick, folder)
        _plot(name, jobs, results, folder / f'recommend_{name}.png')


def speed(quick: bool, folder: Path) -> None:
    r"""Seconds and memory of a training step on Beauty, and of one of MGFormer on a million nodes."""
    scale, repeats = (QUICK, 3) if quick else (Scale(), 15)
    dataset = load_dataset(_config('beauty', OURS, scale).recommend)
    steps: dict[str, Callable[[], object]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for variant in MODELS:
            config = _config('beauty', variant, scale)
            steps[variant] = _step(_training(config, dataset, Path(scratch) / variant))
        medians = interleaved_medians(steps, repeats)
    batches = math.ceil(dataset.train.size(1) / scale.batch_size)
    large = 20_000 if quick else LARGE
    rows: list[dict[str, object]] = [
        {
            'model': variant,
            'nodes': dataset.num_users + dataset.num_items,
            'seconds per step': medians[variant],
            'seconds per epoch': medians[variant] * batches,
            f'times {REFERENCE}': medians[variant] / medians[REFERENCE],
            'times LightGCN': medians[variant] / medians['LightGCN'],
            'paper, seconds per epoch': {REFERENCE: 3.6, OURS: 8.7}.get(variant, ''),
            'peak GB': alone(_peak, variant, scale, None) / 1e9,
        }
        for variant in MODELS
    ]
    rows.append(
        {
            **dict.fromkeys(rows[0], ''),
            'model': f'{OURS}, random graph',
            'nodes': large,
            'peak GB': alone(_peak, OURS, scale, large) / 1e9,
        }
    )
    note = (
        f'One training step (loss of {scale.batch_size} interactions, backward, Adam) on Beauty, median of {repeats} in turns, '
        f'times {batches} steps an epoch; {scale.embedding_dim} channels, {"GPU" if torch.cuda.is_available() else "CPU"}. '
        f'{REFERENCE} has 2 LightGCN layers. The paper: a ratio of {8.7 / 3.6:.1f}. "peak GB" is resident memory at its peak '
        f'beyond that of the imported libraries, with loading, encodings, optimizer and two steps, in a process of its own; '
        f'the row of {large:,} nodes is a random graph, half users, half items, {DEGREE} interactions a user.'
    )
    write_table('recommend_speed', 'Recommendation: seconds and memory of training', note, rows, folder)


def _write(
    rows: list[dict[str, object]], trials: list[dict[str, object]], scales: list[str], quick: bool, folder: Path
) -> None:
    note = (
        f'{"; ".join(scales)}. Adam; validation every {Scale.eval_period} epochs, training ends after {Scale.patience} without '
        f'a better Recall@{K}. Validation chose the learning rate of each model from {len(RATES)} values, and then a setting, '
        f'the weight of its regularization, contrastive loss or uniformity, from {len(TRIALS[OURS][1])} (recommend_tuning). '
        f'Both grids grew while the value at an end was best. The variants of a model have its settings; all else is as the '
        f'defaults of the runner{", a smoke run" if quick else ""}. '
        f'{2 if quick else SEEDS} seeds (weights and batches, not the split), all-ranking Recall@{K} and NDCG@{K} of the test '
        f'interactions, training and validation items masked, mean ± standard error. A difference below two standard errors is '
        f'"not distinguishable". Beauty is split anew at random, 80/10/10 for each user, as in the paper; "paper" is its Table '
        f'2, of another random split, more channels and more training. {OURS} adds its input to the output of its layer, '
        f'without which (as in Eq. 12) it trains far more slowly.'
    )
    write_table('recommend', 'Recommendation: MGFormer and its baselines', note, rows, folder)
    note = (
        'One seed, trained as in recommend; the test interactions have no part in the choice. The learning rate is chosen with '
        'the default of the other setting, and kept. "weight" is '
        f'λ of {REFERENCE} and {OURS}, of which the latter sums the uniformity of users and items and the former averages it.'
    )
    write_table('recommend_tuning', 'Recommendation: the settings that validation chooses', note, trials, folder)


def _choose(data: str, scale: Scale, quick: bool, folder: Path) -> tuple[dict[str, Pair], list[dict[str, object]]]:
    r"""Returns each model's learning rate and value of its setting that are best in validation, and a row for each trial."""
    models = dict.fromkeys(VARIANTS[variant].model for variant in STUDIES[data].variants)
    defaults = {model: _defaults(model)[TRIALS[model][0]] for model in models}
    few = 1 if quick else None
    rates, rows = _best(data, {model: [(rate, defaults[model]) for rate in RATES[:few]] for model in models}, 0, scale, folder)
    pairs = {model: [(rates[model][0], value) for value in TRIALS[model][1][:few]] for model in models}
    chosen, tried = _best(data, pairs, 1, scale, folder)
    return chosen, rows + tried


def _best(
    data: str, trials: dict[str, list[Pair]], place: int, scale: Scale, folder: Path
) -> tuple[dict[str, Pair], list[dict[str, object]]]:
    r"""Trains each model with pairs of a learning rate and a value, which differ in one place, and returns the best pairs. The
    values of a model go on while the first or the last is best.
    """
    runs: dict[str, dict[Pair, Result]] = {model: {} for model in trials}
    best: dict[str, Pair] = {}
    key = f'val_recall@{K}'
    while trials:
        jobs = [(TUNED[model], *pair, 0) for model, pairs in trials.items() for pair in pairs]
        results = _train_all(data, jobs, scale, folder)
        for model, pairs in trials.items():
            runs[model] |= {(rate, value): results[TUNED[model], rate, value, 0] for rate, value in pairs}
            best[model] = max(runs[model], key=lambda pair, model=model: runs[model][pair][key])  # type: ignore[misc]
        beyond = {model: _beyond([pair[place] for pair in runs[model]], best[model][place]) for model in trials}
        trials = {
            model: [(best[model][0], value) if place else (value, best[model][1])]
            for model, value in beyond.items()
            if value is not None
        }
    rows: list[dict[str, object]] = []
    for model, tried in runs.items():
        rows += [
            {
                'data': data,
                'model': TUNED[model],
                'setting': ('lr', TRIALS[model][0])[place],
                'value': pair[place],
                f'validation Recall@{K}': run[key],
                'best epoch': run['best_epoch'],
                'chosen': 'yes' if pair == best[model] else '',
            }
            for pair, run in sorted(tried.items())
        ]
    return best, rows


def _beyond(values: Sequence[float], best: float) -> float | None:
    r"""Returns the next value of a grid if its best one is at an end, and the grid may grow.

    >>> _beyond([0.003, 0.01, 0.001], 0.01), _beyond([0.1, 0.2, 0.5], 0.1), _beyond([0.1, 0.2, 0.5], 0.2)
    (0.03, 0.05, None)
    """
    first, *others = sorted(values, reverse=best == max(values))
    if best != first or not 0 < len(others) < LARGEST_GRID - 1:
        return None
    return float(f'{first**2 / others[0]:.0e}')


def _defaults(model: str) -> dict[str, Any]:
    return SETTINGS[model] if model in SETTINGS else dict(default_config().recommend[model])


def _config(data: str, variant: str, scale: Scale, chosen: Pair | None = None, seed: int = 0) -> Any:
    r"""Returns the options of a run. The learning rate and the setting in :obj:`TRIALS` are the defaults if none are given."""
    config = default_config()
    config.seed = seed
    options, model = config.recommend, VARIANTS[variant].model
    options.dataset, options.dir, options.k, options.progress = data, str(data_folder('recsys')), K, False
    options.update(asdict(scale))
    options.model = model
    encoding = {'svd_dim': scale.embedding_dim} if model == OURS else {}
    settings = options[model] = type(config)({**_defaults(model), **encoding, **VARIANTS[variant].settings})
    if chosen is not None:
        settings.lr, settings[TRIALS[model][0]] = chosen
    return config


def _training(config: Any, dataset: InteractionDataset, run_dir: Path) -> Training:
    return Training(config, dataset, run_dir, BASELINES.get(config.recommend.model, build_recommender))


def _train_all(data: str, jobs: list[Job], scale: Scale, folder: Path) -> dict[Job, Result]:
    r"""Trains; finished runs are kept, and unfinished ones go on after their last epoch."""
    models = {
        name: dict(_config(data, name, scale, (math.nan, math.nan)).recommend[variant.model])
        for name, variant in VARIANTS.items()
    }
    settings = {**asdict(scale), 'models': str(models)}
    path = kept_runs(folder, 'recommend', scale == QUICK, data)
    processes = 1 if torch.cuda.is_available() else None  # a GPU serves one run at a time
    train = partial(_train, data=data, scale=scale, folder=folder / 'recommend_unfinished')
    return run_all(jobs, train, settings, path, processes)


def _train(job: Job, data: str, scale: Scale, folder: Path) -> Result:
    r"""Trains one model, and returns the metrics of its best epoch."""
    variant, rate, value, seed = job
    config = _config(data, variant, scale, (rate, value), seed)
    run_dir = folder / f'{VARIANTS[variant].model}-{seed}-{zlib.crc32(config.dump().encode()):08x}'
    result = _training(config, load_dataset(config.recommend), run_dir).run(resume=run_dir.exists())
    shutil.rmtree(run_dir)
    return result


def _rows(data: str, jobs: list[Job], results: dict[Job, Result]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    reference = [results[job][f'test_recall@{K}'] for job in jobs if job[0] == REFERENCE]
    for variant in dict.fromkeys(job[0] for job in jobs):
        runs = [results[job] for job in jobs if job[0] == variant]
        recall = [run[f'test_recall@{K}'] for run in runs]
        columns = {'Recall': f'test_recall@{K}', 'NDCG': f'test_ndcg@{K}'}
        columns |= {f'Recall of {group} items': f'test_{group} recall@{K}' for group in GROUPS}
        paper = VARIANTS[variant].paper if data == 'beauty' else None
        rows.append(
            {
                'data': data,
                'model': variant,
                **{name: show([run[key] for run in runs], 4) for name, key in columns.items()},
                **compare(recall, reference, f'Recall minus {REFERENCE}, paired by seed', variant == REFERENCE, 4),
                'paper, Recall': '' if paper is None else f'{paper[0]:.4f}',
                'paper, NDCG': '' if paper is None else f'{paper[1]:.4f}',
                'epochs': each((run['epochs'] for run in runs), 0),
                'seeds': each(recall, 4),
                'best epoch': each((run['best_epoch'] for run in runs), 0),
            }
        )
    return rows


def _step(training: Training) -> Callable[[], object]:
    model, batch = training.model, training.dataset.train[:, : training.options.batch_size].to(training.device)
    model.start_epoch()
    model.encoder.train()

    def step() -> float:
        training.optimizer.zero_grad()
        loss = model.loss(*batch)
        loss.backward()
        training.optimizer.step()
        return float(loss.detach())  # a GPU is waited for

    return step


def _peak(variant: str, scale: Scale, nodes: int | None) -> int:
    r"""Returns the peak memory of two steps, on Beauty or a random graph of so many nodes."""

    def train() -> None:
        config = _config('beauty', variant, scale)
        dataset = load_dataset(config.recommend) if nodes is None else _random_dataset(nodes)
        with tempfile.TemporaryDirectory() as scratch:
            step = _step(_training(config, dataset, Path(scratch)))
            for _ in range(2):
                step()

    return peak_memory(train)


def _random_dataset(nodes: int) -> InteractionDataset:
    users = torch.arange(nodes // 2).repeat_interleave(DEGREE)
    items = torch.randint(nodes - nodes // 2, users.shape, generator=torch.Generator().manual_seed(0))
    # Every item is met once: ids that nobody names are no nodes.
    items[::DEGREE] = torch.arange(nodes // 2)
    pairs = torch.stack([users, items])
    return InteractionDataset.from_pairs(pairs[:, :-1], test=pairs[:, -1:])  # training asks for a test interaction


def _plot(data: str, jobs: list[Job], results: dict[Job, Result], path: Path) -> None:
    import matplotlib as mpl

    shown = list(dict.fromkeys(job[0] for job in jobs))
    colors = mpl.colormaps['tab20'].colors  # type: ignore[attr-defined]
    figure = new_figure(8, 4.5)
    axis = figure.subplots()
    for place, variant in enumerate(shown):
        values = [
            mean_error([results[job][f'test_{group} recall@{K}'] for job in jobs if job[0] == variant]) for group in GROUPS
        ]
        positions = [group + 0.8 * place / len(shown) for group in range(len(GROUPS))]
        means, errors = zip(*values, strict=True)
        axis.bar(positions, means, 0.8 / len(shown), yerr=errors, label=variant, color=colors[place], align='edge')
    axis.set_xticks([group + 0.4 for group in range(len(GROUPS))], GROUPS)
    axis.set(title=f'{data}: Recall@{K} of items by popularity')
    axis.grid(alpha=0.3, axis='y')
    axis.legend(fontsize='small')
    figure.savefig(path, dpi=120)
