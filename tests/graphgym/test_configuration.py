from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
import torch
import yaml
from grids import covering
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, set_cfg

from pyg_topomask.graphgym.configuration import GRAPHGPS_SCHEMA, load_config
from pyg_topomask.graphgym.names.attentions import ATTENTIONS, attention_options, build_attention
from pyg_topomask.nn import GRFAttention
from pyg_topomask.utils.configs import check_keys


def test_every_attention_has_a_group() -> None:
    set_cfg(cfg)
    for name in ATTENTIONS:
        assert dict(cfg.topomask[name]) == attention_options(name)


def test_group_states_the_defaults_of_the_class() -> None:
    parameters = inspect.signature(GRFAttention).parameters
    options = attention_options('GRF')
    assert {'num_walks', 'p_halt', 'max_walk_length', 'resample', 'seed', 'feature_map', 'route'} <= set(options)
    assert not {'channels', 'heads', 'dropout'} & set(options)
    assert [options.pop(name) for name in ('edge_weights', 'edge_attr')] == [None, False]  # of the layer around it
    assert all(parameters[key].default == value for key, value in options.items())


def test_stand_in_is_reset(configure: Callable[..., None]) -> None:
    configure('gt.layer_type None+Linear')
    assert cfg.gt.layer_type == 'None+Linear'
    set_cfg(cfg)
    assert cfg.gt.layer_type == GRAPHGPS_SCHEMA['cfg_gt']['gt']['layer_type']


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
        ({'gt': {'layer': 1}}, 'gt.layer: got an unknown option of gt; accepted: .*layer_type'),
        ({'topomask': {'GRF': {'walks': 1}}}, 'unknown option of topomask.GRF; accepted: .*num_walks'),
        ({'nonsense': 1}, 'unknown option of the top level; accepted: .*topomask'),
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
    for key, group in {
        'nonsense': 'the top level; accepted: .*topomask',
        'gt.nonsense': 'gt; accepted: .*layer_type',
        'topomask.GRF.foo': 'topomask.GRF; accepted: .*num_walks',
        'gt.layers.x': 'gt; accepted: .*layer_type',
        'topomask.foo.bar': 'topomask; accepted: .*GRF',
    }.items():
        with pytest.raises(ValueError, match=f'^{key}: got an unknown option of {group}'):
            load_config(digits, [key, '1'])


OPTIONS = {
    'topomask.GRF.asymmetric': ('pairs', 'pairs'),
    'topomask.GRFSoftmax.asymmetric': (True, True),
    'topomask.GRF.p_halt': (0, 0.0),
    'topomask.HeatKernel.edge_weights': ('learned', 'learned'),
    'topomask.KMIP.edge_attr': ('false', False),
    'topomask.GRF.modulation': ('random_walk:2:p=3', 'random_walk:2:p=3'),
    'topomask.GRF.walk_length': ('survival:1,0.7,0.3,0.2,0.1', 'survival:1,0.7,0.3,0.2,0.1'),
    'topomask.RWGNK.num_walks': (None, None),
    'topomask.RWGNK.lam': ([0.5, 1.0], [0.5, 1.0]),
    'topomask.Toeplitz.window': ([3, 4], [3, 4]),
    'topomask.Toeplitz.causal': (1, 1),
    'topomask.Tree.a': (-2, -2.0),
    'topomask.Adjacency.self_loop': (2, 2.0),
    'gt.dropout': (0, 0.0),
    'dataset.edge_encoder': ('true', True),
    'topomask.GRF.independent_ensembles': ('false', False),
    'optim.base_lr': (1, 1.0),
}


def nested(key: str, value: object) -> dict[str, object]:
    return reduce(lambda inner, name: {name: inner}, reversed(key.split('.')), value)  # type: ignore[return-value]


def configured(key: str) -> object:
    return reduce(getitem, key.split('.'), cfg)


@pytest.mark.parametrize(('key', 'override'), covering(OPTIONS, [False, True]))
def test_integers_for_floats_and_any_type_that_an_argument_has(key: str, override: bool, digits: Path, tmp_path: Path) -> None:
    given, expected = OPTIONS[key]
    path = tmp_path / 'mine.yaml'
    path.write_text(yaml.safe_dump(nested(key, given)))
    load_config(*(digits, [key, str(given)]) if override else (path,))
    assert configured(key) == expected
    assert type(configured(key)) is type(expected)
    if key.startswith('topomask.'):
        build_attention(key.split('.')[1], channels=8, heads=2)


def test_every_word_is_built_from_what_a_run_stores(digits: Path, tmp_path: Path, subtests: pytest.Subtests) -> None:
    load_config(digits, ['topomask.mask', '{sum: [GRF, SinDegree]}'])
    stored = tmp_path / 'config.yaml'
    stored.write_text(cfg.dump())
    load_config(stored)
    cfg.share.num_nodes = 5
    for word in ATTENTIONS:
        with subtests.test(word=word):
            build_attention(word, channels=8, heads=2)


def test_words_of_a_yaml_for_arguments_of_a_model(digits: Path) -> None:
    load_config(digits, ['topomask.model.norm', 'false'])
    assert cfg.topomask.model.norm is False


def test_override_of_another_type_than_the_file(tmp_path: Path) -> None:
    path = tmp_path / 'mine.yaml'
    path.write_text(yaml.safe_dump(nested('topomask.GRF.asymmetric', 'pairs')))
    load_config(path, ['topomask.GRF.asymmetric', 'True'])
    assert cfg.topomask.GRF.asymmetric is True
    assert build_attention('GRF', channels=8, heads=2).mask.asymmetric is True


@pytest.mark.parametrize('word', ['null', 'None'])
@pytest.mark.parametrize(
    'key', ['topomask.RWGNK.num_walks', 'topomask.Causal.order', 'topomask.Masked.mask', 'gt.sparse.kq_dim']
)
def test_nothing_on_a_command_line(key: str, word: str, digits: Path) -> None:
    load_config(digits, [key, word])
    assert configured(key) is None


def test_values_of_another_type_are_refused_by_name(digits: Path, tmp_path: Path, subtests: pytest.Subtests) -> None:
    for key, value, accepted in [
        ('topomask.GRF.asymmetric', 3, ''),
        ('topomask.GRF.p_halt', 'half', ''),
        ('topomask.GRF.num_walks', 0.5, ''),
        ('topomask.GRF.modulation', 2.0, ''),
        ('gt.layers', 1.5, ''),
        ('gt.dropout', False, ''),
        ('gt', 3, 'keys and their values$'),
        ('gt', None, 'keys and their values$'),
        ('gt.sparse', [1], 'keys and their values$'),
        ('topomask.Hop', 'balls', 'keys and their values$'),
    ]:
        with subtests.test(key=key, value=value):
            path, refused = tmp_path / 'mine.yaml', f"^{key}: got '?{re.escape(str(value))}'?; accepted: {accepted}"
            path.write_text(yaml.safe_dump(nested(key, value)))
            with pytest.raises(ValueError, match=refused):
                load_config(path)
            with pytest.raises(ValueError, match=refused):
                load_config(digits, [key, str(value)])


def test_configurations_of_recommendation_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^cfg: got 'recommend/lastfm', a configuration of recommendation; accepted:"):
        load_config('recommend/lastfm')


def test_lists_that_are_no_numbers_are_refused_by_name(digits: Path) -> None:
    load_config(digits, ['topomask.GRF.modulation', "['a']"])
    with pytest.raises(ValueError, match=r'^topomask.GRF.modulation: got'):
        build_attention('GRF', channels=8, heads=2)


@pytest.mark.parametrize('content', [b'a: [1\nb: }', b'gt: \xf6'])
def test_file_that_is_not_yaml(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / 'bad.yaml'
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r'bad.yaml is not YAML'):
        load_config(path)


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('optim:\n  max_epoch: 3\ngt: {layers: 2}\noptim: {base_lr: 0.1}\n', "'optim' again in line 4"),
        ('gt: {layers: 2, layers: 3}', "'layers' again in line 1"),
    ],
)
def test_a_key_given_twice_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / 'twice.yaml'
    path.write_text(text)
    with pytest.raises(ValueError, match=f'twice.yaml: got the key {message}; accepted: each key once'):
        load_config(path)
    path.write_text('a: &a {layers: 2}\nb: &b {n_heads: 4}\ngt:\n  <<: *a\n  <<: *b\n')
    check_keys(path.read_text(), '')  # merges are no keys
    with pytest.raises(ValueError, match=r"^topomask.mask: got the key 'sum' again in line 1"):
        load_config('digits', ['topomask.mask', '{sum: [GRF, Hop], sum: [GRF, Tree]}'])


def test_aggregation_of_heads_that_yacs_reads_as_none() -> None:
    set_cfg(cfg)
    cfg.merge_from_list(['gt.sparse.head_agg', 'None', 'gt.sparse.val_dim', '4'])
    assert cfg.gt.sparse.head_agg is None
    assert isinstance(build_attention('SparseAttention', 8, 2).lin_out, torch.nn.Identity)


@pytest.mark.parametrize('tag', ['1', '57633', 'inf', '1.50'])
def test_a_tag_may_be_a_number(tag: str) -> None:
    load_config('digits', ['name_tag', tag])
    assert cfg.name_tag == tag
