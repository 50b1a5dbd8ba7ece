from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

pytest.importorskip('yacs')
pytest.importorskip('pytorch_lightning')

from benchmarks import recommend
from benchmarks.recommend_baselines import BASELINES, SETTINGS, DirectAU
from pyg_topomask.apps.recommend.options import default_config


@pytest.fixture
def small_lastfm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve users and thirty items in the files of LastFM; every user has three test interactions."""
    folder = tmp_path / 'recsys' / 'lastfm'
    folder.mkdir(parents=True)
    generator = torch.Generator().manual_seed(0)
    liked = [torch.randperm(30, generator=generator)[:15].tolist() for _ in range(12)]
    for name, kept in (('data1', slice(3, None)), ('test1', slice(3))):
        lines = [f'{user}\t{item}\t1' for user, items in enumerate(liked, 1) for item in items[kept]]
        (folder / f'{name}.txt').write_text('\n'.join(lines) + '\n')
    monkeypatch.setenv('PYG_TOPOMASK_DATA', str(tmp_path))
    return tmp_path


def test_every_model_has_the_same_number_of_trials() -> None:
    models = {variant.model for variant in recommend.VARIANTS.values()}
    assert set(recommend.TRIALS) == {*BASELINES, 'MGFormer'} == {*SETTINGS, 'MGFormer'} == models
    assert len({len(set(values)) for _, values in recommend.TRIALS.values()}) == 1
    for model, (setting, values) in recommend.TRIALS.items():
        assert recommend._defaults(model)[setting] in values
        assert recommend.VARIANTS[recommend.TUNED[model]].settings == {}
    for study in recommend.STUDIES.values():
        assert {recommend.REFERENCE, recommend.OURS} <= set(study.variants) <= set(recommend.VARIANTS)


@pytest.mark.parametrize('variant', recommend.TUNED.values())
def test_an_interrupted_run_goes_on(small_lastfm: Path, monkeypatch: pytest.MonkeyPatch, variant: str) -> None:
    monkeypatch.setattr('pyg_topomask.apps.runs.run.SHARE', math.inf)  # each epoch is written
    job, scale, runs = (variant, 0.001, 0.3, 1), recommend.Scale(4, 64, 3, 1), small_lastfm / 'runs'
    whole = recommend._train(job, 'lastfm', scale, runs)
    assert list(runs.iterdir()) == []

    epochs: list[int] = []
    epoch = recommend.Training._epoch

    def interrupted(self: recommend.Training, bar: object) -> None:
        if len(epochs) == 2:
            epochs.append(-1)
            raise KeyboardInterrupt
        epochs.append(len(self.record.history))
        epoch(self, bar)

    monkeypatch.setattr(recommend.Training, '_epoch', interrupted)
    with pytest.raises(KeyboardInterrupt):
        recommend._train(job, 'lastfm', scale, runs)
    resumed = recommend._train(job, 'lastfm', scale, runs)
    assert epochs == [0, 1, -1, 2]
    assert list(runs.iterdir()) == []
    for result in (whole, resumed):
        del result['seconds_per_epoch']
    assert resumed == whole


def test_the_values_that_are_tried_reach_the_model(small_lastfm: Path) -> None:
    config = recommend._config('lastfm', 'DirectAU, MF', recommend.QUICK, (0.02, 0.3), seed=5)
    settings = config.recommend.DirectAU
    assert (settings.lr, settings.weight, settings.layers) == (0.02, 0.3, 0)
    assert (config.seed, config.recommend.embedding_dim) == (5, recommend.QUICK.embedding_dim)
    dataset = recommend.load_dataset(config.recommend)
    training = recommend._training(config, dataset, small_lastfm / 'run')
    assert isinstance(training.model, DirectAU)
    assert (training.model.criterion.weight, training.model.encoder.num_layers) == (0.3, 0)
    assert training.optimizer.param_groups[0]['lr'] == 0.02
    assert recommend._config('lastfm', 'MGFormer', recommend.QUICK).recommend.MGFormer.svd_dim == recommend.QUICK.embedding_dim
    assert recommend._config('lastfm', 'MGFormer without SVD', recommend.QUICK).recommend.MGFormer.svd_dim == 0


def test_the_best_learning_rate_and_then_the_best_value_are_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trained: list[recommend.Job] = []

    def train_all(data: str, jobs: list[recommend.Job], *_: object) -> dict[recommend.Job, recommend.Result]:
        trained.extend(jobs)
        # The best are a rate of 0.03 and a value of 0.1 or 1; all other values are worse the farther they are.
        quality = {job: -abs(job[1] - 0.03) - min(abs(job[2] - 0.1), abs(job[2] - 1.0)) for job in jobs}
        return {job: {'val_recall@20': recall, 'test_recall@20': -recall, 'best_epoch': 3} for job, recall in quality.items()}

    monkeypatch.setattr(recommend, '_train_all', train_all)
    chosen, rows = recommend._choose('beauty', recommend.QUICK, False, tmp_path)
    assert chosen == {'BPRMF': (0.03, 0.1), 'LightGCN': (0.03, 0.1), 'DirectAU': (0.03, 0.1), 'MGFormer': (0.03, 1.0)}
    # The rates go on to 0.03 and 0.09, and the values from 0.1 to 1, or from 0.1 to 0.03.
    tried = {
        setting: [row['value'] for row in rows if row['model'] == 'BPR-MF' and row['setting'] == setting]
        for setting in ('lr', 'l2')
    }
    assert tried == {'lr': [1e-3, 3e-3, 1e-2, 3e-2, 9e-2], 'l2': [1e-4, 1e-3, 1e-2, 1e-1, 1.0]}
    assert [row['value'] for row in rows if row['model'] == 'DirectAU' and row['setting'] == 'weight'] == [0.03, 0.1, 0.3, 1, 3]
    assert [row['value'] for row in rows if row['model'] == 'MGFormer' and row['setting'] == 'weight'] == [0.3, 1, 3, 10]
    assert len(trained) == len(rows) == 4 * 5 + 4 * 4 + 3
    assert {job[2] for job in trained[:12] if job[0] == 'MGFormer'} == {default_config().recommend.MGFormer.weight}
    assert {job[1] for job in trained[20:]} == {0.03}
    marked = {(row['model'], row['setting']): row['value'] for row in rows if row['chosen']}
    assert marked['MGFormer', 'lr'] == 0.03
    assert marked['MGFormer', 'weight'] == 1.0
    assert marked['BPR-MF', 'l2'] == 0.1


def test_grids_that_improve_without_end_stop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def train_all(data: str, jobs: list[recommend.Job], *_: object) -> dict[recommend.Job, recommend.Result]:
        return {job: {'val_recall@20': job[1] - job[2], 'best_epoch': 3} for job in jobs}

    monkeypatch.setattr(recommend, '_train_all', train_all)
    rows = recommend._choose('beauty', recommend.QUICK, False, tmp_path)[1]
    assert len(rows) == 2 * 4 * recommend.LARGEST_GRID


def test_rows_pair_seeds_with_the_reference() -> None:
    jobs = [(variant, 0.01, 1.0, seed) for seed in range(2) for variant in ('DirectAU', 'MGFormer')]
    recall = dict(zip(jobs, (0.10, 0.20, 0.30, 0.42), strict=True))
    keys = ['test_recall@20', 'test_ndcg@20', *(f'test_{group} recall@20' for group in recommend.GROUPS)]
    results = {job: {**dict.fromkeys(keys, recall[job]), 'epochs': 5, 'best_epoch': 3} for job in jobs}
    reference, ours = recommend._rows('beauty', jobs, results)
    assert reference['verdict'] == 'reference'
    # Differences of 0.10 and 0.12: 0.11 with a standard error of 0.01; unpaired it would be lost in that of 0.1.
    assert ours['Recall minus DirectAU, paired by seed'] == '+0.1100 ± 0.0100'
    assert (ours['verdict'], ours['Recall'], ours['paper, Recall'], ours['epochs']) == (
        'better',
        '0.3100 ± 0.1100',
        '0.1531',
        '5 5',
    )
    assert recommend._rows('lastfm', jobs, results)[1]['paper, Recall'] == ''


def test_random_dataset_has_every_node() -> None:
    dataset = recommend._random_dataset(2_000)
    assert (dataset.num_users, dataset.num_items) == (1_000, 1_000)
    assert 0.99 * recommend.DEGREE * 1_000 < dataset.train.size(1) <= recommend.DEGREE * 1_000
    assert dataset.test.size(1) == 1


def test_unknown_data_sets_are_named(small_lastfm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('RECOMMEND_DATA', 'lastfm nonsense')
    with pytest.raises(ValueError, match=r"RECOMMEND_DATA: got \['nonsense'\]; accepted: lastfm"):
        recommend.run(True, small_lastfm)
