r"""Every attention in an unmodified GraphGPS checkout: loss, seconds per epoch and memory, next to GraphGPS's own.

Needs :obj:`GRAPHGPS_DIR`, a checkout whose requirements are installed, and :obj:`GRAPHGPS_DATA`, a folder of data sets as
GraphGPS's :obj:`dataset.dir` (default: :obj:`datasets` in the checkout); data sets that are not in there are downloaded.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import yaml  # type: ignore[import-untyped]
from tqdm import tqdm

from benchmarks.harness import write_table

__all__ = ['run']

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / 'graphgps_configs' / 'graphgps'
THEIRS = ('Transformer', 'Performer')
#: In order of the nodes of a graph.
DATASETS = (
    'enzymes',
    'peptides-func',
    'webkb-cor',
    'webkb-tex',
    'webkb-wis',
    'wn-chameleon',
    'cora',
    'citeseer',
    'wn-squirrel',
    'actor',
    'pubmed',
)
#: Eigenvectors of one graph of thousands of nodes take minutes and are no part of the question.
NO_EIGENVECTORS = ['dataset.node_encoder_name', 'LinearNode', 'posenc_LapPE.enable', 'False']
EPOCHS = 20
SECONDS = 1800


def run(quick: bool, folder: Path) -> None:
    checkout = os.environ.get('GRAPHGPS_DIR')
    if checkout is None:
        print('graphgps: skipped, GRAPHGPS_DIR is not set to a checkout of GraphGPS', file=sys.stderr)
        return
    data = os.environ.get('GRAPHGPS_DATA', str(Path(checkout) / 'datasets'))
    names = os.environ.get('GRAPHGPS_NAMES', ' '.join(['webkb-cor', 'enzymes'] if quick else DATASETS)).split()
    epochs = 2 if quick else EPOCHS
    note = (
        f'GraphGPS unmodified, the files of graphgps_configs/graphgps with gt.layer_type changed for its own attentions, '
        f'{epochs} epochs{", a smoke run" if quick else ""}, seed 0, LinearNode in place of LapPE on single graphs. Seconds '
        f'are those of training, the median of all epochs but the first; memory includes Python and its libraries.'
    )
    rows: list[dict[str, object]] = []
    for name in names:
        results = {
            attention: _train(name, attention, checkout, data, epochs)
            for attention in tqdm([*THEIRS, *_attentions(name)], desc=f'graphgps {name}')
        }
        rows += [_row(name, attention, results) for attention in results]
        # After each data set: what has been measured is not lost.
        write_table('graphgps', 'In GraphGPS: every attention, one after the other', note, rows, folder)


def _row(name: str, attention: str, results: dict[str, dict[str, Any]]) -> dict[str, object]:
    own = results[attention]
    row: dict[str, object] = {'data set': name, 'attention': attention, 'training loss': own.get('loss', own.get('failed'))}
    row['seconds per epoch'] = own.get('seconds', '')
    for other in THEIRS:
        reference = results[other].get('seconds')
        row[f'time, {other} = 1'] = own['seconds'] / reference if reference and 'seconds' in own else ''
    return {**row, 'peak memory of the process (MiB)': own.get('memory', '')}


def _attentions(name: str) -> list[str]:
    return sorted(path.stem.removeprefix(f'{name}-GPS+') for path in CONFIGS.glob(f'{name}-GPS+*.yaml'))


def _train(name: str, attention: str, checkout: str, data: str, epochs: int) -> dict[str, Any]:
    r"""Runs one configuration in a process of its own and returns what GraphGPS has logged, or its last words."""
    file = CONFIGS / f'{name}-GPS+{"Linear" if attention in THEIRS else attention}.yaml'
    config = yaml.safe_load(file.read_text())
    local = config['gt']['layer_type'].partition('+')[0]
    options = ['gt.layer_type', f'{local}+{attention}', 'dataset.dir', data, 'optim.max_epoch', str(epochs)]
    options += ['train.eval_period', str(epochs), 'train.enable_ckpt', 'False', 'num_threads', str(torch.get_num_threads())]
    if config['dataset']['task'] == 'node':
        options += NO_EIGENVECTORS
    with tempfile.TemporaryDirectory() as out, tempfile.TemporaryFile('w+') as log:
        environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])}
        command = [
            sys.executable,
            '-W',
            'ignore',
            '-m',
            'pyg_topomask',
            'graphgps',
            '--cfg',
            str(file),
            'out_dir',
            out,
            *options,
        ]
        process = subprocess.Popen(
            ['timeout', str(SECONDS), *command, *options], cwd=checkout, env=environment, stdout=log, stderr=log, text=True
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            log.seek(0)
            lines = [line for line in log.read().splitlines() if line.strip()] or ['']
            return {'failed': f'exit status {process.returncode}: {lines[-1][:120]}'}
        (stats,) = Path(out).glob('*/[0-9]*/train/stats.json')
        rows = [json.loads(line) for line in stats.read_text().splitlines()]
    seconds = statistics.median(row['time_epoch'] for row in rows[1:] or rows)
    return {'loss': rows[-1]['loss'], 'seconds': seconds, 'memory': usage.ru_maxrss // 1024}
