"""The hook in processes of their own, which run the stand-in for GraphGPS as a checkout is run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from graphgps_layers import STANDIN

import pyg_topomask.graphgym
from pyg_topomask.__main__ import main

CONFIG = """
dataset: {format: random, name: paths, task: graph, task_type: classification, dir: data, node_encoder: True,
  node_encoder_name: LinearNode, edge_encoder: True, edge_encoder_name: LinearEdge}
model: {type: GPSModel, loss_fun: cross_entropy, graph_pooling: mean}
gt: {layer_type: CustomGatedGCN+GRF, layers: 2, n_heads: 2, dim_hidden: 8}
gnn: {head: san_graph, dim_inner: 8}
train: {batch_size: 2}
optim: {max_epoch: 2}
topomask: {transforms: [AddGraphRandomFeatures], progress: False}
"""


def run_standin(folder: Path, command: list[str], *options: str) -> str:
    (folder / 'config.yaml').write_text(CONFIG)
    root = Path(pyg_topomask.graphgym.__file__).parents[2]
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(root), os.environ.get('PYTHONPATH', '')])}
    options = ('out_dir', str(folder / 'results'), *options)
    arguments = [sys.executable, '-W', 'ignore', *command, '--cfg', 'config.yaml', *options]
    result = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_both_ways_to_run_a_checkout(tmp_path: Path) -> None:
    outputs = []
    for name, script in {'launched': '', 'imported': 'import pyg_topomask.graphgym\n'}.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / 'graphgps').symlink_to(STANDIN / 'graphgps')
        # The one line may stand after the import of graphgps as well, which launching never does.
        head, _, tail = (STANDIN / 'main.py').read_text().partition('import torch\n')
        (folder / 'main.py').write_text(f'{head}{script}import torch\n{tail}')
        command = ['-m', 'pyg_topomask', 'graphgps'] if name == 'launched' else ['main.py']
        outputs.append(run_standin(folder, command))
    assert outputs[0] == outputs[1]
    assert 'epoch 1 loss' in outputs[0]


#: A composed mask, and encodings behind an encoder that GraphGPS alone registers.
MASK_AND_ENCODINGS = [
    *('gt.layer_type', 'CustomGatedGCN+Masked', 'topomask.Masked.mask', '{sum: [GRF, SinDegree]}'),
    *('dataset.node_encoder_name', 'VOCNode+SVDSE', 'topomask.svd.rank', '2', 'topomask.svd.dim_pe', '2'),
    *('topomask.transforms', "['AddGraphRandomFeatures', 'AddSVDEncoding']"),
]


def test_masks_and_encodings_in_either_order_of_imports(tmp_path: Path) -> None:
    outputs = []
    for name in ('launched', 'first', 'second'):
        folder = tmp_path / name
        folder.mkdir()
        (folder / 'graphgps').symlink_to(STANDIN / 'graphgps')
        main, line = (STANDIN / 'main.py').read_text(), 'import pyg_topomask.graphgym\n'
        order = {'launched': main, 'first': line + main, 'second': main.replace('import torch\n', f'{line}import torch\n', 1)}
        (folder / 'main.py').write_text(order[name])
        if name == 'launched':
            options = [word.replace('topomask.Masked.mask', 'topomask.mask') for word in MASK_AND_ENCODINGS]
            outputs.append(run_standin(folder, ['-m', 'pyg_topomask', 'graphgps'], *options))
        else:
            outputs.append(run_standin(folder, ['main.py'], *MASK_AND_ENCODINGS))
    assert outputs[0] == outputs[1] == outputs[2]
    assert 'epoch 1 loss' in outputs[0]


def test_only_in_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(['graphgps', '--cfg', 'x.yaml']) == 2
    assert 'accepted is a checkout of GraphGPS' in capsys.readouterr().err
