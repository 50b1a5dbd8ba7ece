"""The outcomes of YAML files."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from benchmarks import yamls
from benchmarks.harness import Unavailable

FILE = {
    'dataset': {'format': 'PyG-ZINC', 'name': 'subset', 'task': 'graph', 'task_type': 'regression', 'node_encoder': False},
    'metric_best': 'mae',
    'model': {'type': 'GPSModel', 'loss_fun': 'l1'},
    'gt': {'layer_type': 'GCN+Transformer', 'dim_hidden': 16, 'n_heads': 2},
    'gnn': {'dim_inner': 16, 'layers_pre_mp': 1},
}


def test_outcomes(tmp_path: Path) -> None:
    files = {
        'built': ({}, (yamls.BUILT, '')),
        'group': ({'posenc_ERN': {'enable': True}}, ('posenc_ERN', 'the encoder LapPE with posenc_LapPE')),
        'word': (
            {'model': {'type': 'SANTransformer'}},
            ('model.type SANTransformer', 'model.type TopoGPSModel gt.layer_type None+Transformer'),
        ),
        'metric': ({'metric_best': 'mrr'}, ('metric_best mrr', '')),
    }
    for name, (changes, outcome) in files.items():
        path = tmp_path / f'{name}.yaml'
        path.write_text(yaml.safe_dump(FILE | changes))
        assert yamls._is_configuration(path)
        assert yamls._try(str(path)) == outcome


def test_without_a_folder_it_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('YAMLS_DIR', raising=False)
    with pytest.raises(Unavailable, match='YAMLS_DIR is not set'):
        yamls.run(True, tmp_path)
