from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('yacs')

from pyg_topomask.apps.recommend.options import default_config, load_config

NATURAL = [
    ('recommend.MGFormer.weight', '3', 3.0),
    ('recommend.val_ratio', '0', 0.0),
    ('recommend.MGFormer.lr', '1e-3', 1e-3),
    ('recommend.dir', '2024', '2024'),
    ('recommend.dir', '007', '007'),
    ('recommend.dir', 'on', 'on'),
    ('recommend.MGFormer.mask', 'none', 'none'),
    ('recommend.progress', 'no', False),
    ('recommend.progress', 'True', True),
    ('recommend.k', '7', 7),
    ('recommend.files.test', '[a.txt, b.txt]', ['a.txt', 'b.txt']),
    ('recommend.files.train', '[2024]', ['2024']),
]


def option(cfg: Any, key: str) -> Any:
    for name in key.split('.'):
        cfg = cfg[name]
    return cfg


@pytest.mark.parametrize(('key', 'word', 'expected'), NATURAL)
def test_natural_values(tmp_path: Path, key: str, word: str, expected: object) -> None:
    path = tmp_path / 'a.yaml'
    path.write_text('seed: 1\n')
    override = option(load_config(path, [key, word]), key)
    *groups, name = key.split('.')
    path.write_text(f'{": {".join([*groups, name])}: {word}{"}" * len(groups)}\n')
    cfg = load_config(path)
    for value in (override, option(cfg, key)):
        assert value == expected
        assert type(value) is type(option(default_config(), key))
    # What is written beside a run is read as what was used.
    path.write_text(cfg.dump())
    assert load_config(path) == cfg


def test_other_values_are_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for key, word, message in [
        ('recommend.k', 'many', "recommend.k: got 'many'; accepted: values of type int"),
        ('recommend.patience', 'true', "recommend.patience: got 'true'; accepted: values of type int"),
        ('recommend.progress', '1', "recommend.progress: got '1'; accepted: values of type bool"),
        ('recommend.MGFormer.weight', 'x', "recommend.MGFormer.weight: got 'x'; accepted: values of type float"),
        ('recommend.files.train', 'a.txt', "recommend.files.train: got 'a.txt'; accepted: values of type list"),
        ('recommend.files.train', '[[a.txt]]', "recommend.files.train: got '[[a.txt]]'; accepted: values of type list"),
        ('recommend.files.train', '[a.txt', 'recommend.files.train is not YAML: '),
        ('recommend.MGFormer', '3', "recommend.MGFormer: got '3'; accepted: keys and their values"),
        ('recommend.k.x', '3', "recommend.k: got {'x': '3'}; accepted: values of type int"),
        ('seed', '-1', 'seed: got -1; accepted: whole numbers from 0'),
    ]:
        with subtests.test(key=key, word=word, message=message):
            path = tmp_path / 'a.yaml'
            path.write_text('seed: 1\n')
            with pytest.raises(ValueError) as caught:
                load_config(path, [key, word])
            assert str(caught.value).startswith(message)


@pytest.mark.parametrize('text', ['', '3\n', '[recommend]\n'])
def test_yaml_without_keys(tmp_path: Path, text: str) -> None:
    (tmp_path / 'a.yaml').write_text(text)
    with pytest.raises(ValueError, match=r'a\.yaml: got a YAML of no keys; accepted: keys and their values'):
        load_config(tmp_path / 'a.yaml')


def test_a_key_given_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / 'twice.yaml'
    path.write_text('recommend: {k: 5, k: 6}')
    with pytest.raises(ValueError, match=r"twice.yaml: got the key 'k' again in line 1; accepted: each key once"):
        load_config(path)
