"""The options of the runs, and the networks of the plain loop."""

import pytest
import torch
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.nn import GPSConv

from benchmarks import runs
from benchmarks.digits import CONFIG
from benchmarks.harness import count_parameters
from pyg_topomask.apps.train.checks import check_options
from pyg_topomask.apps.train.module import RunModule
from pyg_topomask.graphgym.configuration import load_config
from pyg_topomask.graphgym.data.loaders import create_loaders


@pytest.mark.parametrize('data', runs.DATA)
def test_options_are_those_of_the_runner(data, monkeypatch):
    monkeypatch.setitem(register.loader_dict, 'one-graph', lambda *_: None)
    load_config(CONFIG, runs.DATA[data].split())
    check_options()
    assert (cfg.dataset.format == 'topomask') == (data in ('digits', 'peptides-func'))
    assert cfg.custom_metrics == (['average_precision'] if data == 'peptides-func' else [])


@pytest.mark.parametrize(('attention', 'layer'), [('Transformer', 'GPSConv(multihead)'), ('Performer', 'GPSConv(performer)')])
def test_networks_of_layers_of_pyg_compute_what_ours_do(attention, layer):
    load_config(
        CONFIG, ['gt.layer_type', f'GINE+{attention}', 'topomask.transforms', '[]', 'gt.dim_hidden', '8', 'gnn.dim_inner', '8']
    )
    batch = next(iter(create_loaders()[1]))
    ours = RunModule().model.eval()
    plain = runs.with_layers_of_pyg(RunModule().model, runs.LAYERS[layer]).eval()
    assert all(type(each) is GPSConv for each in plain.layers)
    assert count_parameters(plain) == count_parameters(ours)
    plain.load_state_dict(ours.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(plain(batch.clone())[0], ours(batch.clone())[0])
