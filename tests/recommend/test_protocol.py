"""What is trained, with which options, and what is chosen and tested."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

pytest.importorskip('yacs')
pytest.importorskip('pytorch_lightning')

from pyg_topomask.feature_maps import ReLUFeatures
from pyg_topomask.masks import AdjacencyMask
from pyg_topomask.recommend.config import default_config, load_config
from pyg_topomask.recommend.interactions import InteractionDataset
from pyg_topomask.recommend.models import RECOMMENDERS, Recommender, build_recommender
from pyg_topomask.recommend.objectives import Objective
from pyg_topomask.recommend.train import Training, embed, load_dataset, train


def dense_metrics(weight: Tensor, targets: Tensor, seen: list[Tensor], num_users: int, k: int) -> tuple[float, float]:
    """Recall and NDCG of matrix factorization, user by user."""
    users, items = weight.numpy()[:num_users], weight.numpy()[num_users:]
    scores = users @ items.T
    for part in seen:
        scores[part[0].numpy(), part[1].numpy()] = -np.inf
    recall, ndcg = [], []
    for user in np.unique(targets[0].numpy()):
        wanted = set(targets[1, targets[0] == user].tolist())
        hits = [rank for rank, item in enumerate(np.argsort(-scores[user])[:k], 1) if item in wanted]
        ideal = range(1, min(k, len(wanted)) + 1)
        recall.append(len(hits) / len(wanted))
        ndcg.append(sum(1 / math.log2(rank + 1) for rank in hits) / sum(1 / math.log2(rank + 1) for rank in ideal))
    return float(np.mean(recall)), float(np.mean(ndcg))


def test_result_is_that_of_the_best_model_without_what_the_user_knows(run_cfg: Path) -> None:
    options = ['recommend.model', 'BPRMF', 'recommend.max_epoch', '12', 'recommend.BPRMF.lr', '0.1']
    train(run_cfg, options)
    run = run_cfg.parent / 'out' / 'small' / 'BPRMF' / '3'
    result = json.loads((run / 'result.json').read_text())
    own = load_dataset(load_config(run_cfg, options).recommend)
    best, last = (torch.load(run / 'checkpoints' / f'{name}.pt')['model']['embedding.weight'] for name in ('best', 'last'))

    def metrics(weight: Tensor, targets: Tensor, *seen: Tensor) -> tuple[float, float]:
        return dense_metrics(weight, targets, list(seen), own.num_users, 5)

    expected = metrics(best, own.test, own.train, own.val)
    assert (result['test_recall@5'], result['test_ndcg@5']) == pytest.approx(expected, rel=1e-9)
    chosen = metrics(best, own.val, own.train)
    assert (result['val_recall@5'], result['val_ndcg@5']) == pytest.approx(chosen, rel=1e-9)
    # Another model, or another mask, would not do.
    for other in (metrics(last, own.test, own.train, own.val), metrics(best, own.test, own.train)):
        assert max(abs(one - two) for one, two in zip(other, expected, strict=True)) > 1e-3


class Recording(Objective):
    """Keeps the batches of each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.epochs: list[list[Tensor]] = []

    def start_epoch(self, data: Data) -> None:
        self.epochs.append([])

    def forward(self, encoder: torch.nn.Module, data: Data, users: Tensor, items: Tensor) -> Tensor:
        assert encoder.training
        self.epochs[-1].append(torch.stack([users, items]))
        return torch.cat(encoder(data)).square().sum()


def test_every_epoch_trains_on_all_interactions_in_another_order(run_cfg: Path) -> None:
    config = load_config(run_cfg)
    dataset = load_dataset(config.recommend)
    training = Training(config, 'BPRMF', 3, dataset, run_cfg.parent / 'run')
    objective = training.model.objective = Recording()
    training.run()
    assert len(objective.epochs) == 4
    pairs = dataset.train.t().tolist()
    orders = []
    for batches in objective.epochs:
        assert {batch.size(1) for batch in batches[:-1]} == {128}
        orders.append(torch.cat(batches, 1).t().tolist())
        assert sorted(orders[-1]) == sorted(pairs)
    assert all(one != other for index, one in enumerate([*orders, pairs]) for other in orders[:index])


def test_embeddings_are_those_of_evaluation() -> None:
    class Mode(torch.nn.Module):
        def forward(self, data: Data) -> tuple[Tensor, Tensor]:
            return torch.tensor(self.training), torch.tensor(torch.is_grad_enabled())

    assert not any(embed(Recommender(Mode().train(), Objective(), Data())))


def test_validation_period(run_cfg: Path) -> None:
    train(run_cfg, ['recommend.model', 'BPRMF', 'recommend.max_epoch', '5', 'recommend.eval_period', '2'])
    history = torch.load(run_cfg.parent / 'out' / 'small' / 'BPRMF' / '3' / 'checkpoints' / 'last.pt')['history']
    assert [row['epoch'] for row in history if 'val_recall@5' in row] == [1, 3, 4]  # the last one always


def weights(run_cfg: Path, name: str, options: list[str]) -> dict[str, Any]:
    """What one epoch of training leads to."""
    train(run_cfg, ['recommend.model', name, 'recommend.max_epoch', '1', *options])
    (path,) = (run_cfg.parent / 'out' / 'small' / name).glob('*/checkpoints/last.pt')
    model: dict[str, Any] = torch.load(path)['model']
    path.unlink()
    return model


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


def another(value: Any) -> str:
    if isinstance(value, str):
        return {'simplex': 'relu', 'sin_degree': 'adjacency'}[value]
    return str(not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else 2 * value + 0.05)


@pytest.mark.parametrize('name', RECOMMENDERS)
def test_no_option_is_ignored(run_cfg: Path, name: str) -> None:
    config = load_config(run_cfg)
    options = {f'recommend.{name}.{key}': value for key, value in config.recommend[name].items()}
    for key in ('embedding_dim', 'batch_size', 'val_ratio', 'split_seed'):
        options[f'recommend.{key}'] = config.recommend[key]
    options['seed'] = config.seed
    expected = weights(run_cfg, name, [])
    assert same(weights(run_cfg, name, []), expected)
    ignored = [key for key, value in options.items() if same(weights(run_cfg, name, [key, another(value)]), expected)]
    assert ignored == []


@pytest.fixture
def dataset() -> InteractionDataset:
    known = torch.rand(6, 8) < 0.5
    known[torch.arange(6), torch.arange(6)] = True
    return InteractionDataset.from_pairs(known.nonzero().t())


def settings(name: str, **changed: Any) -> dict[str, Any]:
    return {**default_config().recommend[name], **changed}


def test_options_reach_what_they_name(dataset: InteractionDataset) -> None:
    def objective(name: str, **own: Any) -> Any:
        return build_recommender(name, dataset, 4, settings(name, **own)).objective

    contrastive = {'l2': 0.01, 'weight': 0.02, 'temperature': 0.03}
    for name, own in (
        ('BPRMF', {'l2': 0.01}),
        ('LightGCN', {'l2': 0.01}),
        ('SimGCL', {**contrastive, 'noise': 0.04}),
        ('SGL', {**contrastive, 'dropout': 0.04}),
    ):
        built = objective(name, **own)
        assert {key: getattr(built, key) for key in own} == own
    for name in ('DirectAU', 'MGFormer'):
        for average in (True, False):
            loss = objective(name, weight=0.02, t=0.03, average=average, **({'svd_dim': 0} if name == 'MGFormer' else {})).loss
            assert (loss.weight, loss.t, loss.average) == (0.02, 0.03, average)
    own = {'svd_dim': 2, 'heads': 3, 'layers': 2, 'residual': False, 'dropout': 0.04, 'sign_flip': True}
    encoder: Any = build_recommender(
        'MGFormer', dataset, 4, settings('MGFormer', **own, mask='adjacency', feature_map='relu')
    ).encoder
    assert (encoder.svd_dim, encoder.residual, encoder.dropout, encoder.sign_flip) == (2, False, 0.04, True)
    assert len(encoder.layers) == 2
    for layer in encoder.layers:
        assert layer.heads == 3
        assert isinstance(layer.mask, AdjacencyMask)
        assert isinstance(layer.feature_map, ReLUFeatures)


@pytest.mark.parametrize(('name', 'first'), [('LightGCN', 0), ('DirectAU', 0), ('SGL', 0), ('SimGCL', 1)])
def test_propagation_of_the_baselines(dataset: InteractionDataset, name: str, first: int) -> None:
    """The mean over the layers; without the embeddings themselves in SimGCL."""
    model = build_recommender(name, dataset, 4, settings(name, layers=3))
    known = np.zeros((dataset.num_users, dataset.num_items))
    known[tuple(dataset.train.numpy())] = 1
    a = np.block([[np.zeros((len(known),) * 2), known], [known.T, np.zeros((known.shape[1],) * 2)]])
    a = a / np.sqrt(np.outer(a.sum(0), a.sum(0)))
    x = model.encoder.embedding.weight.detach().double().numpy()
    expected = np.mean([np.linalg.matrix_power(a, power) @ x for power in range(first, 4)], axis=0)
    np.testing.assert_allclose(torch.cat(embed(model)).numpy(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ('name', 'option', 'value'),
    [
        ('SGL', 'temperature', '0.0'),
        ('SGL', 'dropout', '1'),
        ('SGL', 'weight', 'nan'),
        ('SGL', 'layers', '0'),
        ('SimGCL', 'temperature', '-1'),
        ('SimGCL', 'noise', 'inf'),
        ('BPRMF', 'l2', 'inf'),
        ('BPRMF', 'init_std', 'nan'),
        ('BPRMF', 'lr', '0'),
        ('BPRMF', 'weight_decay', '-1'),
        ('LightGCN', 'l2', '-1'),
        ('DirectAU', 't', '0'),
        ('DirectAU', 'weight', 'nan'),
        ('MGFormer', 'dropout', 'nan'),
        ('MGFormer', 'feature_map', 'sine'),
        ('MGFormer', 't', 'nan'),
    ],
)
def test_a_bad_option_leaves_the_earlier_run(
    run_cfg: Path, capsys: pytest.CaptureFixture[str], name: str, option: str, value: str
) -> None:
    run = run_cfg.parent / 'out' / 'small' / name / '3'
    (run / 'checkpoints').mkdir(parents=True)
    files = [run / entry for entry in ('checkpoints/best.pt', 'checkpoints/last.pt', 'metrics.csv', 'result.json')]
    for path in files:
        path.write_text('earlier')
    with pytest.raises(ValueError, match=rf'{option}: got .*{value}.*; accepted are'):
        train(run_cfg, ['recommend.model', name, f'recommend.{name}.{option}', value])
    assert [path.read_text() for path in files] == ['earlier'] * 4
    assert 'replacing' not in capsys.readouterr().err


def test_a_bad_option_of_the_last_model_stops_the_first(run_cfg: Path) -> None:
    with pytest.raises(ValueError, match=r'temperature: got 0\.0'):
        train(run_cfg, ['recommend.model', 'SGL', 'recommend.baselines', '[BPRMF]', 'recommend.SGL.temperature', '0'])
    assert not (run_cfg.parent / 'out').exists()
