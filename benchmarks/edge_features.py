r"""What attention gains from the kinds of bonds of molecules, by learned edge weights or in softmax attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.edge_types import WIDTH
from benchmarks.harness import compare, each, kept_runs, run_all, show, write_table
from benchmarks.molecule_training import DEPTH, LARGE_TASKS, MODELS, RATE, TASKS, Job, Task, train
from pyg_topomask.apps.advise.report import best_model, decide, gains

__all__ = ['peptides', 'run', 'table_of_gains', 'table_of_models']

#: The runs of a task by model and seed.
Runs = dict[str, dict[int, dict[str, Any]]]

SEEDS = 5
#: The models whose attention reads edge features by those without.
PAIRS = {
    model: f'{model}, {way}' for model in MODELS for way in ('learned weights', 'edge features') if f'{model}, {way}' in MODELS
}
#: The words of the table for those of :class:`~pyg_topomask.apps.advise.report.Verdict`.
WORDS = {'gain': 'better', 'loss': 'worse', 'none': 'not distinguishable', 'undecided': 'undecided'}
NOTE = (
    'The kinds of atoms and bonds are those of from_smiles of PyG. Those of atoms also say how many hydrogens and neighbors '
    'an atom has, its hybridization, and whether it is in a ring. "ZINC" is the 2,000 molecules of validation and test of '
    'ZINC-12k, whose atoms have one kind, and whose bonds are single, double or triple. A seed draws 80 % of a set for '
    f'training, and 10 % each for validation and test. All models have {DEPTH} layers of {WIDTH} channels, the same network '
    'around their layers, and the sum over atoms; GPS layers have their own. RMSE and MAE are better if they are smaller. '
    'Results are those after the last epoch, mean ± standard error over five seeds. The epochs, the '
    f'batches and a rate of at most {RATE} were set before the run, by the time that it takes. Seven single runs of GINE and '
    'PowerSeries on another split changed none of them; later, ZINC got 20 epochs instead of 30, for time. The epochs are '
    'few: GINE has 7 % less error on ZINC, and 6 % on ESOL, with 60 than with 30 (validation, one split). Gains are paired '
    'by seed, and positive if a model is better than the one whose attention reads bonds that is best in validation. A gain '
    'below two standard errors is "not distinguishable". Seconds are those of a processor in training, on one thread, beside '
    'other work.'
)
#: The models that are trained on peptides, and their seeds. Peptides take longer than other molecules.
OF_PEPTIDES = (
    'PowerSeries',
    'PowerSeries, learned weights',
    'Hop with softmax',
    'Hop with softmax, edge features',
    'GINE',
    'GatedGCN',
)
SEEDS_OF_PEPTIDES = 3
NOTE_ON_PEPTIDES = (
    'The 15,535 molecules and the official splits of Peptides-func, of 150 atoms on average, with ten labels. AP is the mean '
    'average precision of the labels. Models, features and the rate are those of edge_features. There are '
    f'{SEEDS_OF_PEPTIDES} seeds of the weights and of the batches, and {LARGE_TASKS["Peptides-func"].epochs} epochs, where '
    'published models have 200. The epochs were set before the run. While it ran, time cut the seeds from five to three, and '
    'GPS gave way to GatedGCN: dense attention to the largest graph of a batch took more than ten minutes a training. Gains '
    'are paired by seed, and '
    'positive if a model is better than the one whose attention reads bonds that is best in validation. A gain below two '
    'standard errors is "not distinguishable". Seconds are those of a processor in training, on one thread, beside other work.'
)
NOTE_ON_GAINS = (
    'Each row compares a model whose attention reads the bonds with the same model without, with the settings of the table of '
    'models. Both start with the same parameters. Learned weights start at 1, read the bond and both atoms, and are '
    'equal in both directions. Edge features in softmax attention change logits and values, and start without effect. In GPS '
    'layers, GINE reads the bonds in both. Gains are paired by seed, mean ± standard error, and positive if the model that '
    'reads bonds is better. A gain below two standard errors is "not distinguishable", or '
    '"undecided" if at most 20 seeds would decide about a positive gain of that size. "would have shown" is two standard '
    'errors. With five seeds, chance alone exceeds two standard errors in 12 of 100 rows, in either direction, and with '
    'three in 18.'
)


def run(quick: bool, folder: Path) -> None:
    _compare('edge_features', 'molecules', TASKS, list(MODELS), SEEDS, NOTE, quick, folder)


def peptides(quick: bool, folder: Path) -> None:
    r"""Compares the models of :obj:`OF_PEPTIDES` on Peptides-func at full size."""
    _compare('edge_peptides', 'peptides', LARGE_TASKS, OF_PEPTIDES, SEEDS_OF_PEPTIDES, NOTE_ON_PEPTIDES, quick, folder)


def _compare(
    name: str,
    kind: str,
    tasks: Mapping[str, Task],
    models: Sequence[str],
    seeds: int,
    note: str,
    quick: bool,
    folder: Path,
) -> None:
    settings = [DEPTH, RATE, {task_name: [task.epochs, task.batch] for task_name, task in tasks.items()}]
    rows: list[dict[str, object]] = []
    gained: list[dict[str, object]] = []
    models = models[: 2 if quick else None]
    for task_name, task in tasks.items():  # the tables grow by a task at a time
        jobs = [Job(task_name, model, seed, quick) for seed in range(1 if quick else seeds) for model in models]
        runs: Runs = {model: {} for model in models}
        results = run_all(jobs, train, settings, kept_runs(folder, name, quick), processes=1)
        for job, result in results.items():
            runs[job.model][job.seed] = result
        of_models = table_of_models(runs, list(PAIRS.values()), task.metric, task.maximize)
        rows += [{'task': task_name, 'epochs': task.epochs, **row} for row in of_models]
        gained += [{'task': task_name, **row} for row in table_of_gains(runs, PAIRS, task.metric, task.maximize)]
        write_table(name, f'{kind.capitalize()} with kinds of bonds', note, rows, folder)
        write_table(f'{name}_gains', f'What edge features gain on {kind}', NOTE_ON_GAINS, gained, folder)


def table_of_models(runs: Runs, masks: Sequence[str], metric: str, maximize: bool) -> list[dict[str, object]]:
    r"""Returns a row for each model. That of the masks which is best in validation is the reference."""
    sign = 1 if maximize else -1
    tests = {model: [run['test_score'] for run in seeds.values()] for model, seeds in runs.items()}
    chosen = best_model({model: runs[model] for model in masks if model in runs}, 'score', maximize)
    return [
        {
            'metric': metric,
            'model': model,
            'parameters': seeds[0]['parameters'],
            'validation': show([run['val_score'] for run in seeds.values()]),
            'test': show(tests[model]),
            **compare(
                [sign * score for score in tests[model]],
                [sign * score for score in tests[chosen]],
                'gain over the mask chosen, paired',
                model == chosen,
            ),
            'seconds': sum(run['seconds'] for run in seeds.values()) / len(seeds),
            'seeds': each(tests[model]),
        }
        for model, seeds in runs.items()
    ]


def table_of_gains(runs: Runs, pairs: Mapping[str, str], metric: str, maximize: bool) -> list[dict[str, object]]:
    r"""Returns a row for each model that reads edge features, beside the one that does not."""
    rows: list[dict[str, object]] = []
    for without, learned in pairs.items():
        if learned in runs and without in runs:
            found = decide({learned: runs[learned]}, {without: runs[without]}, 'score', maximize)
            rows.append(
                {
                    'metric': metric,
                    'model': without,
                    'without': show([run['test_score'] for run in runs[without].values()]),
                    'with': show([run['test_score'] for run in runs[learned].values()]),
                    'gain, paired': f'{found.gain:+.3f} ± {found.error:.3f}',
                    'verdict': WORDS[found.word],
                    'would have shown': 2 * found.error,
                    'seeds': each(gains(runs[learned], runs[without], 'score', maximize)),
                }
            )
    return rows
