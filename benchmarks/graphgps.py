r"""Every attention in an unmodified GraphGPS checkout: loss, seconds per epoch and memory, next to GraphGPS's own.

Needs :obj:`GRAPHGPS_DIR`, a checkout whose requirements are installed, and :obj:`GRAPHGPS_DATA`, a folder of data sets as
GraphGPS's :obj:`dataset.dir` (default: :obj:`datasets` in the checkout); data sets that are not in there are downloaded.
:obj:`GRAPHGPS_NAMES` selects data sets. Finished runs are kept in :obj:`graphgps_runs.json` beside the table.
"""

from __future__ import annotations

import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch_geometric
import yaml  # type: ignore[import-untyped]

from benchmarks.harness import Unavailable, kept_runs, run_all, write_table
from benchmarks.peptides import write_sample

__all__ = ['run']

Job = tuple[str, str, int]

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / 'graphgps_configs' / 'graphgps'
THEIRS = ('Transformer', 'Performer')
OURS = (
    *('Adjacency', 'AsymmetricGRF', 'Expander', 'GRF', 'GRFSoftmax', 'HeatKernel', 'KMIP', 'Linear', 'Masked', 'PowerSeries'),
    *('RWGNK', 'SinDegree'),
)
PEPTIDES = 'peptides-func'
#: Molecules of each split: GraphGPS has no setting for fewer, and all of them would take a day.
SAMPLE = {'train': 256, 'val': 64, 'test': 64}
#: What GraphGPS takes for the newest version of the file.
VERSION = '701eb743e899f4d793f0e13c8fa5a1b4'
#: Epochs of each data set, in order of the nodes of a graph.
DATASETS = {
    'enzymes': 20,
    PEPTIDES: 3,
    'webkb-cor': 20,
    'webkb-tex': 20,
    'webkb-wis': 20,
    'wn-chameleon': 20,
    'cora': 20,
    'citeseer': 20,
    'wn-squirrel': 20,
    'actor': 20,
    'pubmed': 10,
}
QUICK = {'webkb-cor': 2, 'enzymes': 2}
#: Eigenvectors of one graph of thousands of nodes take minutes and are no part of the question.
NO_EIGENVECTORS = ['dataset.node_encoder_name', 'LinearNode', 'posenc_LapPE.enable', 'False']
SECONDS = 1800


def run(quick: bool, folder: Path) -> None:
    checkout = os.environ.get('GRAPHGPS_DIR')
    if checkout is None:
        raise Unavailable('GRAPHGPS_DIR is not set to a checkout of GraphGPS')
    data = os.environ.get('GRAPHGPS_DATA', str(Path(checkout) / 'datasets'))
    epochs = QUICK if quick else DATASETS
    names = os.environ.get('GRAPHGPS_NAMES', ' '.join(epochs)).split()
    jobs = [(name, attention, epochs.get(name, 2)) for name in names for attention in (*THEIRS, *OURS)]
    versions = {'torch': torch.__version__, 'torch-geometric': torch_geometric.__version__}
    with tempfile.TemporaryDirectory() as scratch:
        if PEPTIDES in names:
            _write_peptides(Path(scratch) / 'peptides-functional')
        train = partial(_train, checkout=checkout, folders={name: scratch if name == PEPTIDES else data for name in names})
        # One at a time: the first of a data set processes its files, and the Transformer takes the memory of the machine.
        results = run_all(jobs, train, versions, kept_runs(folder, 'graphgps', quick), processes=1)
    note = (
        f'GraphGPS unmodified, the files of graphgps_configs/graphgps with the attention changed in gt.layer_type'
        f'{", a smoke run" if quick else ""}, seed 0, one thread, LinearNode in place of LapPE on single graphs, '
        f'{SAMPLE["train"]} of 10,873 molecules for training on Peptides-func. Seconds are '
        f'those of training, the median of all epochs but the first; memory includes Python and its libraries. "dropout" is '
        f'gt.attn_dropout: Transformer drops its N x N coefficients, which takes it several times as long, linear attention '
        f'drops outputs. Performer has heads of 64 channels in models of every size, so it usually has several times as many '
        f'channels.'
    )
    rows = [_row(job, results) for job in jobs]
    write_table('graphgps', 'In GraphGPS: every attention, one after the other', note, rows, folder)


def _row(job: Job, results: dict[Job, dict[str, Any]]) -> dict[str, object]:
    name, attention, epochs = job
    result = results[job]
    dropout = _config(name)['gt']['attn_dropout']
    row: dict[str, object] = {'data set': name, 'attention': attention, 'dropout': dropout, 'epochs': epochs}
    row |= {'training loss': result.get('loss', result.get('failed')), 'seconds per epoch': result.get('seconds', '')}
    for baseline in THEIRS:
        reference = results[name, baseline, epochs].get('seconds')
        row[f'time, {baseline} = 1'] = result['seconds'] / reference if reference and 'seconds' in result else ''
    return {**row, 'peak memory of the process (MiB)': result.get('memory', '')}


def _file(name: str) -> Path:
    return CONFIGS / f'{name}.yaml'


def _config(name: str) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(_file(name).read_text())
    return config


def _write_peptides(folder: Path) -> None:
    (folder / 'raw').mkdir(parents=True)
    (folder / VERSION).touch()
    splits = write_sample(folder / 'raw', SAMPLE)
    (folder / 'splits_random_stratified_peptide.pickle').write_bytes(pickle.dumps(splits))


def _train(job: Job, checkout: str, folders: dict[str, str]) -> dict[str, Any]:
    r"""Runs one configuration in a process of its own and returns what GraphGPS has logged, or its last words."""
    name, attention, epochs = job
    config = _config(name)
    local = config['gt']['layer_type'].partition('+')[0]
    options = ['gt.layer_type', f'{local}+{attention}', 'dataset.dir', folders[name], 'optim.max_epoch', str(epochs)]
    options += ['train.eval_period', str(epochs), 'train.enable_ckpt', 'False', 'num_threads', str(torch.get_num_threads())]
    if config['dataset']['task'] == 'node':
        options += NO_EIGENVECTORS
    with tempfile.TemporaryDirectory() as out, tempfile.TemporaryFile('w+') as log:
        environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])}
        command = ['timeout', str(SECONDS), sys.executable, '-W', 'ignore', '-m', 'pyg_topomask', 'graphgps']
        process = subprocess.Popen(
            [*command, '--cfg', str(_file(name)), 'out_dir', out, *options],
            cwd=checkout,
            env=environment,
            stdout=log,
            stderr=log,
            text=True,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            log.seek(0)
            lines = [line for line in log.read().splitlines() if line.strip()] or ['']
            killed = process.returncode in (-9, 137)
            return {'failed': 'killed, out of memory' if killed else f'exit status {process.returncode}: {lines[-1][:120]}'}
        (stats,) = Path(out).glob('*/[0-9]*/train/stats.json')
        rows = [json.loads(line) for line in stats.read_text().splitlines()]
    seconds = statistics.median(row['time_epoch'] for row in rows[1:] or rows)
    return {'loss': rows[-1]['loss'], 'seconds': seconds, 'memory': usage.ru_maxrss // 1024}
