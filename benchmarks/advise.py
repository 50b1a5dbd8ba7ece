r"""The command ``advise`` on data with and without a gain from masks, beside what the tables of accuracy say of them."""

from __future__ import annotations

import contextlib
import csv
import io
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch_geometric.datasets import Planetoid, TUDataset

from benchmarks.citation import stage
from benchmarks.harness import Unavailable, alone, data_folder, kept_runs, run_all, status, write_table
from benchmarks.peptides import write_dataset
from pyg_topomask.apps.advise import advise, trials
from pyg_topomask.apps.advise.advise import SHORT
from pyg_topomask.apps.advise.report import table
from pyg_topomask.apps.train import train

__all__ = ['run']

MOLECULES, QUICK_MOLECULES = {'train': 1400, 'val': 300, 'test': 300}, {'train': 60, 'val': 30, 'test': 30}


@dataclass(frozen=True)
class Case:
    r"""Data to advise on: what :func:`prepare` writes to a folder, the arguments of advise, and what our tables say."""

    tables: str
    gain: bool
    arguments: dict[str, Any]
    options: str = ''
    prepare: Callable[[Path], None] = lambda folder: None
    molecules: bool = False


def _roads(folder: Path) -> None:
    (folder / 'sydney.npz').write_bytes((data_folder('roads') / 'sydney.npz').read_bytes())


def _cora(folder: Path) -> None:
    stage('planetoid', folder)
    torch.save(Planetoid(str(folder / 'planetoid'), 'Cora')[0], folder / 'cora.pt')


def _enzymes(folder: Path) -> None:
    stage('tu', folder)
    torch.save(list(TUDataset(str(folder / 'tu'), 'ENZYMES', use_node_attr=True)), folder / 'enzymes.pt')


def _traffic(folder: Path) -> None:
    r"""Sensors on highways, of which every third tells its speeds, and the others are slow, medium or fast."""
    with np.load(data_folder('traffic') / 'los_loop.npz') as stored:
        matrix, speed = stored['adj'], stored['speed']
    with open(folder / 'edges.csv', 'w', newline='') as file:
        ends = np.argwhere(matrix > 0)
        csv.writer(file).writerows([('source', 'target', 'weight'), *((f's{u}', f's{v}', matrix[u, v]) for u, v in ends)])
    mean = speed.mean(0)
    kinds = np.array(['slow', 'medium', 'fast'])[np.searchsorted(np.quantile(mean, [1 / 3, 2 / 3]), mean)]
    hours = speed[:288:12].T / 60
    with open(folder / 'nodes.csv', 'w', newline='') as file:
        known = [index % 3 == 0 for index in range(len(kinds))]
        rows = [
            (f's{index}', '' if tells else kind, int(tells), *(hours[index] * tells))
            for index, (kind, tells) in enumerate(zip(kinds, known, strict=True))
        ]
        csv.writer(file).writerows([('id', 'kind', 'known', *(f'at{hour}' for hour in range(24))), *rows])


CASES = {
    'built-in trees': Case('accuracy_lookup', True, {}),
    'digits': Case('digits', False, {'cfg_file': 'digits'}, 'optim.max_epoch 6 optim.num_warmup_epochs 1'),
    'roads of Sydney': Case(
        'accuracy_sydney', True, {'cfg_file': 'road-eccentricity'}, 'optim.max_epoch 30 optim.num_warmup_epochs 3', _roads
    ),
    'Cora': Case('citation', False, {'data': 'cora.pt'}, prepare=_cora),
    'ENZYMES': Case('tu', False, {'data': 'enzymes.pt'}, prepare=_enzymes),
    'traffic, directed and weighted': Case(
        'accuracy_traffic',
        False,
        {'data': 'edges.csv', 'nodes': 'nodes.csv', 'label': 'kind', 'directed': True},
        prepare=_traffic,
    ),
    'Peptides-func, 2,000 molecules': Case(
        'accuracy_peptides',
        False,
        {'cfg_file': 'kmip/peptides-func'},
        'gt.layer_type GCN+None gt.layers 4 optim.base_lr 0.001 optim.max_epoch 12 optim.num_warmup_epochs 2',
        molecules=True,
    ),
}


def run(quick: bool, folder: Path) -> None:
    sizes = QUICK_MOLECULES if quick else MOLECULES
    settings = {name: [case.arguments, case.options] for name, case in CASES.items()}
    job = partial(_advise, quick=quick, sizes=sizes)
    names = [(name,) for name in list(CASES)[: 1 if quick else None]]
    runs = run_all(names, job, settings, kept_runs(folder, 'advise', quick), processes=1)
    done = {name: result for (name,), result in runs.items() if 'missing' not in result}
    left_out = '; '.join(f'{name}: {result["missing"]}' for (name,), result in runs.items() if 'missing' in result)
    rows = [_row(name, result) for name, result in done.items()]
    note = (
        '`python -m pyg_topomask advise` with three seeds, one data set after the other on one thread, and at most 20 '
        'minutes of processor time each. "our table" is what the table of the last column says of these data. "trainings" is '
        'their share of the processor time, and "over a training" the memory of the process at its peak over that of a '
        'process that trains the largest of the models alone, where Numba has compiled all code before. roads of Sydney, '
        'digits and molecules train for fewer epochs than in our tables. Traffic: 207 sensors, of which a third tells its '
        'speeds.'
    )
    write_table('advise', 'What advise says', note + (f' Not run here: {left_out}.' if left_out else ''), rows, folder)
    models = [{'data': name, **row} for name, result in done.items() for row in result['table']]
    first = 'data', 'model', 'seeds', 'epochs', 'validation accuracy', 'test accuracy', 'parameters', 'seconds', 'MiB'
    columns = dict.fromkeys([*first, *(column for row in models for column in row)])  # of several metrics
    models = [{column: row.get(column, '') for column in columns} for row in models]
    note = 'The models of [advise](advise.md), the mean of the seeds and its standard error.'
    write_table('advise_models', 'The models that advise trains', note, models, folder)


def _row(name: str, result: dict[str, Any]) -> dict[str, object]:
    verdict, case = result['verdict'], CASES[name]
    return {
        'data': name,
        'verdict': verdict['sentence'],
        'says': 'gain' if verdict['word'] == 'gain' else 'no gain',
        'our table': 'gain' if case.gain else 'no gain',
        'seconds': result['seconds'],
        'trainings': result['trainings'] / result['seconds'],
        'over a training': result['peak'] / result['alone'],
        'table': f'[{case.tables}]({case.tables}.md)',
    }


def _advise(job: tuple[str], quick: bool, sizes: dict[str, int]) -> dict[str, Any]:
    (name,) = job
    case = CASES[name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        try:
            case.prepare(folder)
            if case.molecules:
                if find_spec('rdkit') is None:
                    raise Unavailable('RDKit is not installed')
                write_dataset(folder, sizes)
        except Unavailable as error:
            return {'missing': str(error)}
        return alone(_in_process, name, folder, quick)


def _in_process(name: str, folder: Path, quick: bool) -> dict[str, Any]:
    case = CASES[name]
    arguments: dict[str, Any] = {
        key: str(folder / value) if key in ('data', 'nodes') else value for key, value in case.arguments.items()
    }
    options = [*case.options.split(), 'num_threads', '1', 'topomask.progress', 'False']
    options += [] if 'data' in arguments else ['dataset.dir', str(folder)]
    options += ['optim.max_epoch', '1'] if quick else []
    spent, peak = 0.0, 0

    def timed(*given: Any) -> Any:
        nonlocal spent, peak
        start = time.process_time()
        result = trials_train_seed(*given)
        spent += time.process_time() - start
        peak = max(peak, status('VmHWM'))  # each training begins to count anew
        return result

    torch.set_num_threads(1)
    trials_train_seed: Any = trials.train_seed  # type: ignore[attr-defined]
    start = time.process_time()
    # Epochs are planned by processor time, so that other processes do not change them.
    clock = mock.patch.object(time, 'perf_counter', time.process_time)
    with clock, mock.patch.object(trials, 'train_seed', timed), contextlib.redirect_stdout(io.StringIO()):
        report = advise(options=options, out=folder / 'out', **arguments)
    seconds = time.process_time() - start
    config = arguments.get('cfg_file') or (_written(folder) / 'base.yaml' if 'data' in arguments else 'lookup-trees')
    options = [*(SHORT if config == 'lookup-trees' else ()), *options, 'optim.max_epoch', str(report['epochs'])]
    single = max(_alone(model, str(config), options, folder) for model in report['models'] if model['memory'])
    return {
        'verdict': report['verdict'],
        'table': table(report),
        'seconds': seconds,
        'trainings': spent,
        'peak': max(peak, status('VmHWM')),
        'alone': single,
    }


def _alone(model: dict[str, Any], config: str, options: list[str], folder: Path) -> int:
    r"""Returns the memory at the peak of a process that trains nothing but this model, with the seed that took most."""
    _, seed = max(zip(model['memory'], model['seeds'], strict=True))
    options = [*options, *model['options'], 'seed', str(seed)]
    return alone(_train, config, options, str(folder / 'alone' / model['model']))


def _written(folder: Path) -> Path:
    (found,) = (folder / 'out').glob('advise-*')
    return found


def _train(config: str, options: list[str], out: str) -> int:
    torch.set_num_threads(1)
    with contextlib.redirect_stdout(io.StringIO()):
        train(config, options, out=out)
    return status('VmHWM')
