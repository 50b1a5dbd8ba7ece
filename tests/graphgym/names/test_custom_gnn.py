"""GraphGPS's network without attention, by its equations in NumPy, and beside that of a checkout."""

from __future__ import annotations

import importlib
import itertools
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from graphgps_layers import REAL, imported
from graphs import ring
from oracles import linear
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, load_cfg, set_cfg

from pyg_topomask.apps.train.checks import check_options, warn_of_unread_options
from pyg_topomask.graphgym.configuration import load_config
from pyg_topomask.graphgym.data.datasets import warn_of_unused_options
from pyg_topomask.graphgym.names.networks import CustomGNN

CONFIG = """
metric_best: accuracy
dataset: {format: topomask, name: digits, task: graph, task_type: classification, node_encoder: True,
  node_encoder_name: LinearNode, node_encoder_bn: False, edge_encoder: True, edge_encoder_name: DummyEdge,
  edge_encoder_bn: False}
model: {type: custom_gnn, loss_fun: cross_entropy, graph_pooling: add}
gnn: {head: default, layers_pre_mp: 0, layers_mp: 2, layers_post_mp: 1, dim_inner: 6, layer_type: gineconv, residual: True,
  batchnorm: False, dropout: 0.0}
"""


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., None]:
    def load(*options: str) -> None:
        (tmp_path / 'file.yaml').write_text(CONFIG)
        load_config(tmp_path / 'file.yaml', options)
        cfg.share.dim_in, cfg.share.dim_edge = 3, 1

    return load


def batch() -> Batch:
    torch.manual_seed(0)
    return Batch.from_data_list(
        [Data(x=torch.randn(size, 3), edge_index=ring(size), edge_attr=torch.rand(2 * size), y=size % 2) for size in (4, 6)]
    )


@pytest.mark.parametrize('residual', [True, False])
def test_layers_of_gine(load: Callable[..., None], residual: bool) -> None:
    load('gnn.residual', str(residual), 'gnn.dropout', '0.5')
    check_options()
    model, data = register.network_dict[cfg.model.type](3, 2).eval(), batch()
    out, _ = model(data.clone())
    source, target = data.edge_index.numpy()
    x, edge = linear(model.encoder.node_encoder.encoder, data.x.numpy()), model.encoder.edge_encoder.encoder.weight.detach()
    for layer in model.layers:
        total = x.copy()
        np.add.at(total, target, (x[source] + edge.numpy()).clip(min=0))
        messages = linear(layer.nn[2], linear(layer.nn[0], total).clip(min=0)).clip(min=0)
        x = x + messages if residual else messages
    pooled = np.stack([x[data.batch == graph].sum(0) for graph in range(2)])
    (last,) = [module for module in model.post_mp.modules() if hasattr(module, 'weight')]
    np.testing.assert_allclose(out.detach().numpy(), linear(last, pooled), atol=1e-4)
    assert not torch.allclose(model.train()(data.clone())[0], out)


@pytest.mark.skipif(REAL is None, reason='GRAPHGPS_DIR is not set to a checkout of GraphGPS')
@pytest.mark.filterwarnings('ignore')  # GraphGPS was written for older versions of everything
@pytest.mark.parametrize('word', ['gatedgcnconv', 'gineconv'])
def test_parameters_and_outputs_are_those_of_graphgps(load: Callable[..., None], tmp_path: Path, word: str) -> None:
    load()
    with imported(Path(str(REAL))):
        importlib.import_module('graphgps.network.custom_gnn')
        set_cfg(cfg)
        options = ['gnn.layer_type', word, 'dataset.format', 'PyG-TUDataset']
        load_cfg(cfg, SimpleNamespace(cfg_file=str(tmp_path / 'file.yaml'), opts=options))
        cfg.share.dim_in, cfg.share.dim_edge = 3, 1
        theirs, mine = register.network_dict['custom_gnn'](3, 2), CustomGNN(3, 2)
        for ours, other in itertools.zip_longest(mine.parameters(), theirs.parameters()):
            ours.data.copy_(other)
        torch.testing.assert_close(mine(batch())[0], theirs(batch())[0])


def test_what_has_no_effect_is_said(load: Callable[..., None]) -> None:
    load('gnn.layer_type', 'gatedgcnconv', 'gt.layers', '7', 'posenc_EquivStableLapPE.enable', 'True')
    check_options()
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter('always')
        warn_of_unused_options()
        warn_of_unread_options()
    told = [str(warning.message) for warning in given]
    assert len(told) == 2
    assert told[0].startswith("gt: got layers, which nothing reads with model.type 'CustomGNN'")
    assert told[1].startswith("posenc_EquivStableLapPE: got enable, which nothing reads with model.type 'CustomGNN'")


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (
            'gnn.layer_type ginconv',
            r"^gnn.layer_type: got 'ginconv'; accepted: gatedgcnconv, gineconv; did you mean gineconv",
        ),
        ('dataset.edge_encoder False', r'^edge_attr: got shape \[20\] for GINEConv; .*dataset.edge_encoder'),
        ('dataset.node_encoder False', '^gnn.dim_inner: got 6 for 3 channels of encoded nodes'),
    ],
)
def test_bad_options(load: Callable[..., None], options: str, message: str) -> None:
    load(*options.split())
    with pytest.raises(ValueError, match=message):
        CustomGNN(3, 2)(batch())
