"""The hook in processes of their own, which run the stand-in for GraphGPS as a checkout is run."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from forked import Forked
from graphgps_layers import CHECKOUTS, STANDIN

import pyg_topomask.graphgym
from pyg_topomask.__main__ import main
from pyg_topomask.apps.launch import with_config
from pyg_topomask.utils.configs import find_config

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


ROOT = Path(pyg_topomask.graphgym.__file__).parents[2]


def run_standin(folder: Path, command: list[str], *options: str) -> str:
    (folder / 'config.yaml').write_text(CONFIG)
    options = ('out_dir', str(folder / 'results'), *options)
    status, stdout, stderr = Forked(*command, '--cfg', 'config.yaml', *options, cwd=folder).wait()
    assert status == 0, stderr
    return stdout


COMMANDS = {
    'launched': ['-m', 'pyg_topomask', 'graphgps'],
    'imported': ['main.py'],
}


def test_all_ways_to_run_a_checkout(tmp_path: Path) -> None:
    outputs = []
    for name, command in COMMANDS.items():
        script = 'import pyg_topomask.graphgym\n' if name == 'imported' else ''
        folder = tmp_path / name
        folder.mkdir()
        (folder / 'graphgps').symlink_to(STANDIN / 'graphgps')
        # Before the import of graphgps, which launching does not do.
        (folder / 'main.py').write_text(script + (STANDIN / 'main.py').read_text())
        outputs.append(run_standin(folder, command))
    assert outputs[0] == outputs[1]
    assert 'epoch 1 loss' in outputs[0]


def test_names_that_a_checkout_registers_take_precedence(tmp_path: Path) -> None:
    (tmp_path / 'graphgps').mkdir()
    (tmp_path / 'graphgps' / '__init__.py').write_text(
        f"""
__path__.append({str(STANDIN / 'graphgps')!r})
from torch_geometric.graphgym import register
from . import config, encoder, head, loader, loss, network

@register.register_metric('macro_f1')
def mine(true, pred, task_type):
    return 0.0
"""
    )
    printed = '    from torch_geometric.graphgym import register\n    print(register.metric_dict)'
    (tmp_path / 'main.py').write_text((STANDIN / 'main.py').read_text() + printed)
    assert "'macro_f1': <function mine" in run_standin(tmp_path, COMMANDS['launched'])


#: A composed mask, and encodings behind an encoder that GraphGPS alone registers.
MASK_AND_ENCODINGS = [
    *('gt.layer_type', 'CustomGatedGCN+Masked', 'topomask.Masked.mask', '{sum: [GRF, SinDegree]}'),
    *('dataset.node_encoder_name', 'VOCNode+SVDSE', 'topomask.svd.rank', '2', 'topomask.svd.dim_pe', '2'),
    *('topomask.transforms', "['AddGraphRandomFeatures', 'AddSVDEncoding']"),
]


@pytest.mark.nightly
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


#: All that a batch does to a graph is left out, and the whole of the training set is one batch.
TOGETHER = """
train.mode standard train.batch_size 1000 optim.max_epoch 3 optim.base_lr 0.02 optim.num_warmup_epochs 0 wandb.use False
gt.layer_type GINE+GRF gt.layer_norm True gt.batch_norm False gnn.batchnorm False posenc_RWSE.raw_norm_type none
gt.dropout 0.0 gt.attn_dropout 0.0 gnn.dropout 0.0 train.enable_ckpt False num_threads 1 round 7
"""


@pytest.mark.nightly
@pytest.mark.parametrize('checkout', CHECKOUTS)
def test_two_processes_of_lightning_are_one(checkout: str, tmp_path: Path) -> None:
    data, config = tmp_path / 'data', tmp_path / 'config.yaml'
    config.write_text(CONFIG)
    if checkout != 'standin':
        config = ROOT / 'graphgps_configs' / 'graphgps' / 'enzymes.yaml'
        raw = Path(os.environ.get('GRAPHGPS_DATA', CHECKOUTS[checkout] / 'datasets'))
        if not (raw / 'TUDataset' / 'ENZYMES' / 'raw').is_dir():
            pytest.skip(f'{raw} has no TUDataset/ENZYMES')
        data = raw

    def start(name: str, **variables: str) -> Forked:
        options = ['out_dir', str(tmp_path / name), 'dataset.dir', str(data), *TOGETHER.split()]
        command = ['-m', 'pyg_topomask', 'graphgps', '--cfg', str(config), *options]
        return Forked(*command, cwd=CHECKOUTS[checkout], **variables)

    def losses(name: str, process: Forked) -> list[float]:
        status, _, error = process.wait()
        assert status == 0, error
        (stats,) = (tmp_path / name).rglob('train/stats.json')
        return [json.loads(line)['loss'] for line in stats.read_text().splitlines()]

    alone = losses('alone', start('alone'))
    with socket.create_server(('127.0.0.1', 0)) as server:
        port = server.getsockname()[1]
    shared = {'PL_TRAINER_STRATEGY': 'ddp', 'PL_TRAINER_NUM_NODES': '2', 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': str(port)}
    processes = {f'{rank}': start(f'{rank}', NODE_RANK=f'{rank}', **shared) for rank in range(2)}
    first, second = (losses(name, process) for name, process in processes.items())
    assert first != second
    assert [(a + b) / 2 for a, b in zip(first, second, strict=True)] == pytest.approx(alone, abs=1e-5)
    assert alone[2] < alone[0]


def test_only_in_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(['graphgps', '--cfg', 'x.yaml']) == 2
    assert 'accepted: a checkout of GraphGPS' in capsys.readouterr().err


def test_names_of_configurations_stand_for_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert with_config(['--cfg', 'graphgps/zinc', 'seed', '1']) == ['--cfg', str(find_config('graphgps/zinc')), 'seed', '1']
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'graphgps').mkdir()
    (tmp_path / 'main.py').touch()
    assert main(['graphgps', '--cfg', 'graphgps/zink']) == 2
    assert "cfg: got 'graphgps/zink', which is no file" in capsys.readouterr().err
