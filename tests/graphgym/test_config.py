from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, set_cfg

from pyg_topomask.graphgym.attentions import ATTENTIONS, attention_options
from pyg_topomask.graphgym.config import GRAPHGPS_SCHEMA
from pyg_topomask.graphgym.settings import load_config
from pyg_topomask.nn import GRFAttention


def test_every_attention_has_a_group() -> None:
    set_cfg(cfg)
    for name in ATTENTIONS:
        assert dict(cfg.topomask[name]) == attention_options(name)


def test_group_states_the_defaults_of_the_class() -> None:
    parameters = inspect.signature(GRFAttention).parameters
    options = attention_options('GRF')
    assert {'num_walks', 'p_halt', 'max_walk_length', 'resample', 'seed', 'feature_map', 'route'} <= set(options)
    assert not {'channels', 'heads', 'dropout'} & set(options)
    assert all(parameters[key].default == value for key, value in options.items())


def test_stand_in_is_reset(configure: Callable[..., None]) -> None:
    configure('gt.layer_type None+Linear')
    assert cfg.gt.layer_type == 'None+Linear'
    set_cfg(cfg)
    assert cfg.gt.layer_type == GRAPHGPS_SCHEMA['cfg_gt']['gt.layer_type']


def test_what_graphgps_declares_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def declare(node: object) -> None:
        cfg.gt.layer_type = 'theirs'

    monkeypatch.setitem(register.config_dict, 'cfg_gt', declare)
    set_cfg(cfg)
    assert cfg.gt.layer_type == 'theirs'
    monkeypatch.undo()
    set_cfg(cfg)
    assert cfg.gt.layer_type != 'theirs'


def test_defaults_are_not_shared_between_runs() -> None:
    set_cfg(cfg)
    cfg.gt.pna_degrees.append(1)
    cfg.topomask.transforms.append('x')
    set_cfg(cfg)
    assert cfg.gt.pna_degrees == cfg.topomask.transforms == []


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ({'gt': {'layer': 1}}, 'gt.layer; known keys of gt: .*layer_type'),
        ({'topomask': {'GRF': {'walks': 1}}}, 'known keys of topomask.GRF: .*num_walks'),
        ({'nonsense': 1}, 'known keys of the top level: .*topomask'),
    ],
)
def test_unknown_key_in_a_file(tmp_path: Path, content: dict[str, object], message: str) -> None:
    path = tmp_path / 'bad.yaml'
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(ValueError, match=message):
        load_config(path)


def test_bad_overrides(digits: Path) -> None:
    with pytest.raises(ValueError, match=r'pairs of a key and a value'):
        load_config(digits, ['gt.layers'])
    with pytest.raises(ValueError, match=r'unknown option.*nonsense.*given gt.nonsense'):
        load_config(digits, ['gt.nonsense', '1'])


def test_file_that_is_not_yaml(tmp_path: Path) -> None:
    path = tmp_path / 'bad.yaml'
    path.write_text('a: [1\nb: }')
    with pytest.raises(ValueError, match=r'is not YAML'):
        load_config(path)
