"""YAML files of GraphGPS and its forks in the standalone runner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, set_cfg
from torch_geometric.graphgym.loss import compute_loss

from pyg_topomask.apps.train.checks import check_options
from pyg_topomask.apps.train.metrics import EpochMeter, check_metric_best, higher_is_better
from pyg_topomask.graphgym.configuration import load_config
from pyg_topomask.graphgym.data import loaders, pyg_datasets
from pyg_topomask.graphgym.names.lookup import ELSEWHERE, remedy_of

FILE: dict[str, Any] = {
    'dataset': {'format': 'PyG-ZINC', 'name': 'subset', 'task': 'graph', 'task_type': 'regression'},
    'model': {'type': 'GPSModel', 'loss_fun': 'l1'},
    'gt': {'layer_type': 'GCN+Transformer', 'dim_hidden': 16, 'n_heads': 2},
    'gnn': {'dim_inner': 16, 'layers_pre_mp': 1},
}


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., None]:
    def load(changes: dict[str, Any], *options: str) -> None:
        text = {key: FILE.get(key, {}) | changes.get(key, {}) for key in (*FILE, *changes)}
        path = tmp_path / 'file.yaml'
        path.write_text(yaml.safe_dump(text))
        load_config(path, options)
        check_options()

    return load


def test_gps_models_are_ours_where_graphgps_is_not(load: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    load({})
    assert cfg.model.type == 'TopoGPSModel'
    load({'model': {'type': 'gnn'}}, 'model.type', 'GPSModel')
    assert cfg.model.type == 'TopoGPSModel'
    monkeypatch.setitem(register.network_dict, 'GPSModel', torch.nn.Identity)
    load({})
    assert cfg.model.type == 'GPSModel'


def test_groups_that_change_nothing_are_left_out(load: Callable[..., None]) -> None:
    groups = {f'posenc_{name}': {'enable': False, 'dim_pe': 8} for name in ('SignNet', 'ERN', 'GraphormerBias')}
    groups |= {'prep': {'exp': True, 'exp_deg': 5}, 'graphormer': {'num_layers': 2}, 'pretrained': {'dir': ''}}
    load(groups)
    assert not groups.keys() & cfg.keys()


def test_what_is_missing_is_named_with_its_remedy(load: Callable[..., None], subtests: pytest.Subtests) -> None:
    for changes, message in [
        ({'posenc_SignNet': {'enable': True}}, r'^posenc_SignNet: .*; instead: the encoder LapPE .*; unchanged: in a checkout'),
        ({'posenc_Unknown': {'enable': True}}, '^posenc_Unknown: got an unknown option of the top level'),
        ({'pretrained': {'dir': 'results'}}, r'^pretrained.dir: .*; instead: training from the start'),
        ({'prep': {'add_self_loops': True}}, r'^prep.add_self_loops: .*; instead: topomask.transforms "\[AddSelfLoops\]"'),
        ({'model': {'type': 'SANTransformer'}}, r'^model.type: .*; instead: model.type TopoGPSModel gt.layer_type None'),
        ({'model': {'type': 'custom_gnn'}, 'gnn': {'layer_type': 'gcniiconv'}}, '^gnn.layer_type: .*; accepted: gatedgcnconv'),
        (
            {'gt': {'bigbird': {'block_size': 3}}},
            '^gt.bigbird: got an unknown option of gt; .*; instead: topomask.BigBird; unchanged',
        ),
        ({'gt': {'layer_type': 'GCN+Exphormer'}}, '^gt.layer_type, .*; instead: the word Expander; unchanged: in a checkout'),
        ({'gnn': {'head': 'infer_links'}}, '^gnn.head: .*; in a checkout'),
        ({'dataset': {'node_encoder': True, 'node_encoder_name': 'ASTNode'}}, '^dataset.node_encoder_name: .*; in a checkout'),
        ({'dataset': {'edge_encoder': True, 'edge_encoder_name': 'PPAEdge'}}, '^dataset.edge_encoder_name: .*; in a checkout'),
        ({'dataset': {'task_type': 'subtoken_prediction'}}, '^dataset.task_type, without custom_metrics: .*; in a checkout'),
        ({'dataset': {'format': 'determine_in_script'}}, '^dataset.format: .*; instead: the value that a script'),
        (
            {'dataset': {'format': 'OGB', 'name': 'PCQM4Mv2-full'}},
            '^dataset.name: .*, peptides-structural.*; in a checkout',
        ),
        ({'posenc_RWSE': {'enable': True}}, '^posenc_RWSE.kernel.times: got'),
    ]:
        with subtests.test(changes=changes, message=message), pytest.raises(ValueError, match=message):
            load(changes)


def test_every_remedy_ends_in_the_command() -> None:
    assert all(remedy_of(name).endswith('run pyg-topomask graphgps --cfg <file>') for name in ELSEWHERE)


def test_no_aggregation_of_heads(load: Callable[..., None]) -> None:
    load({'gt': {'layer_type': 'GCN+SparseAttention', 'sparse': {'head_agg': 'None', 'kq_dim': 3, 'val_dim': 8}}})
    attention = register.network_dict[cfg.model.type](dim_in=3, dim_out=1).layers[0].attn
    assert isinstance(attention.lin_out, torch.nn.Identity)


def test_order_of_graphs(load: Callable[..., None]) -> None:
    for shuffle, random in ((True, True), (False, False)):
        load({'train': {'shuffle': shuffle, 'batch_size': 4}})
        made = loaders._reproducible(loaders.DataLoader(list(range(9)), 4, shuffle=True))
        order = [index for batch in made.batch_sampler for index in batch]
        assert (order != list(range(9))) == random


def test_data_sets_of_graphgps(load: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(pyg_datasets, 'join', list)
    for kind in ('LRGBDataset', 'ZINC'):
        monkeypatch.setattr(pyg_datasets, kind, lambda *given: asked.append(given))
    load({})
    cfg.dataset.slic_compactness = 30
    for format, name in (
        ('PyG-ZINC', 'subset'),
        ('OGB', 'peptides-structural'),
        ('PyG-VOCSuperpixels', 'edge_wt_region_boundary'),
    ):
        pyg_datasets.load_pyg_dataset(format, name, 'data')
    sets = [('data/ZINC', True), ('data/LRGBDataset', 'Peptides-struct'), ('data/LRGBDataset', 'PascalVOC-SP')]
    assert asked == [(*given, split) for given in sets for split in ('train', 'val', 'test')]
    cfg.dataset.slic_compactness = 10
    with pytest.raises(ValueError, match=r"^dataset.name: got 'edge_wt_region_boundary' with dataset.slic_compactness 10"):
        pyg_datasets.load_pyg_dataset('PyG-COCOSuperpixels', 'edge_wt_region_boundary', 'data')


def test_mean_absolute_error(load: Callable[..., None]) -> None:
    load({})
    pred, true = torch.randn(5, 3), torch.randn(5, 3)
    assert compute_loss(pred, true)[0].item() == pytest.approx(np.abs(pred.numpy() - true.numpy()).mean(), rel=1e-5)


@pytest.mark.parametrize('metric', ['accuracy-SBM', 'f1', 'auto'])
def test_metrics_of_classes(metric: str, tmp_path: Path) -> None:
    pytest.importorskip('sklearn')
    set_cfg(cfg)
    cfg.share.dim_out, cfg.dataset.task_type, cfg.metric_best, cfg.params = 3, 'classification', metric, 0
    cfg.run_dir = str(tmp_path)
    true, pred = torch.tensor([0, 0, 0, 1, 1, 2]), torch.tensor([0, 0, 1, 1, 2, 0])
    check_metric_best()
    meter = EpochMeter('val')
    meter.update(true, torch.nn.functional.one_hot(pred, 3).float(), torch.tensor(1.0), 0.1, 0.0)
    row = meter.finish(0)
    hits = np.array([((true == label) & (pred == label)).sum() for label in range(3)])
    f1 = 2 * hits / (np.bincount(true) + np.bincount(pred))
    expected = {'accuracy-SBM': (hits / np.bincount(true)).mean(), 'f1': f1.mean()}
    assert {key: row[f'val_{key}'] for key in expected if f'val_{key}' in row} == (
        {metric: pytest.approx(expected[metric], abs=1e-4)} if metric in expected else {}
    )


def test_metrics_of_several_labels(load: Callable[..., None], tmp_path: Path) -> None:
    metrics = pytest.importorskip('sklearn.metrics')
    load({'dataset': {'task_type': 'classification_multilabel'}, 'model': {'loss_fun': 'cross_entropy'}})
    cfg.share.dim_out, cfg.run_dir, cfg.params = 3, str(tmp_path), 0
    true = torch.tensor([[1.0, 0, 1], [0, 1, 1], [1, float('nan'), 1], [0, 0, 1]])
    pred = torch.rand(4, 3, generator=torch.Generator().manual_seed(0))
    check_metric_best()
    meter = EpochMeter('val')
    for epoch in range(2):  # the second writes a line of stats.json as the first
        meter.update(true, pred, torch.tensor(1.0), 0.1, 0.0)
        row = meter.finish(epoch)
        known = [true[:, 0].isfinite(), true[:, 1].isfinite()]  # the third has no negative
        for name, metric in (('ap', metrics.average_precision_score), ('auc', metrics.roc_auc_score)):
            expected = np.mean([metric(true[k, task], pred[k, task]) for task, k in enumerate(known)])
            assert row[f'val_{name}'] == pytest.approx(expected, abs=1e-4)
    assert len((tmp_path / 'val' / 'stats.json').read_text().splitlines()) == 2
    assert higher_is_better('ap')
