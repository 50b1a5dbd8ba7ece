"""The names of the configurations that the package ships."""

from __future__ import annotations

from pathlib import Path

import pytest
from configured_step import CONFIGS

from pyg_topomask.apps.recommend.options import load_config as load_recommendation
from pyg_topomask.graphgym.configuration import load_config
from pyg_topomask.utils.configs import check_overrides, config_names, config_sentences, find_config, is_recommendation


def test_every_file_has_a_name_and_a_sentence() -> None:
    files = {path.relative_to(CONFIGS).with_suffix('').as_posix() for path in CONFIGS.rglob('*.yaml')}
    assert set(config_names()) == set(config_sentences()) == files
    assert len(files) == len(config_names())
    assert all(find_config(name) == CONFIGS / f'{name}.yaml' for name in files)
    assert all(sentence[-1] in '.?' and '#' not in sentence for sentence in config_sentences().values())


def test_what_needs_no_download_says_so() -> None:
    ready = {name for name, sentence in config_sentences().items() if sentence.endswith('No download.')}
    models = {f'models/{name}' for name in ('GKAT', 'Interlacer', 'TopologicalViT', 'ViViT')}
    assert ready == {'digits', 'graph-properties', 'lookup-trees', 'majority-trees', *models}


def test_a_file_goes_before_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'digits').mkdir()
    assert find_config('digits') == CONFIGS / 'digits.yaml'
    (tmp_path / 'digits').rmdir()
    (tmp_path / 'digits').write_text('gt: {layers: 7}')
    assert find_config('digits') == Path('digits')


@pytest.mark.parametrize(
    ('cfg', 'remedy'),
    [
        ('graphgps_configs/enzymes.yaml', 'the package has graphgps/enzymes and kmip/enzymes'),
        ('digit', 'list configs prints all'),
    ],
)
def test_missing_configurations_are_refused(cfg: str, remedy: str) -> None:
    with pytest.raises(ValueError, match=f"cfg: got '{cfg}', which is no file; accepted: YAML files, and names.*{remedy}"):
        find_config(cfg)


def test_names_are_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    load_config('models/GKAT')
    assert load_recommendation('recommend/lastfm').recommend.dataset == 'lastfm'
    assert is_recommendation('recommend/lastfm')
    assert not is_recommendation('digits')
    assert not is_recommendation('nothing')


def test_overrides_come_in_pairs() -> None:
    check_overrides(['gt.layers', '2'])
    with pytest.raises(ValueError, match=r"options: got 'gt.layers', 1 word; accepted: pairs of a key and a value"):
        check_overrides(['gt.layers'])
