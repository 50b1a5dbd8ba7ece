"""What is trained, with which options, and what is chosen and tested."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

pytest.importorskip('yacs')
pytest.importorskip('pytorch_lightning')

from pyg_topomask.apps.recommend.interactions import InteractionDataset
from pyg_topomask.apps.recommend.options import default_config, load_config
from pyg_topomask.apps.recommend.recommender import DirectAULoss, Recommender, build_recommender
from pyg_topomask.apps.recommend.runner import Training, load_dataset, train
from pyg_topomask.feature_maps import ReLUFeatures
from pyg_topomask.masks import AdjacencyMask, SinDegreeMask
from pyg_topomask.nn.models import MGFormer


class Factorization(torch.nn.Module):
    """An embedding for each user and item."""

    def __init__(self, dataset: InteractionDataset, dim: int) -> None:
        super().__init__()
        self.users = torch.nn.Parameter(torch.randn(dataset.num_users, dim))
        self.items = torch.nn.Parameter(torch.randn(dataset.num_items, dim))

    def forward(self, data: Data) -> tuple[Tensor, Tensor]:
        return self.users, self.items


class FactorizationRecommender(Recommender):
    """A recommender that this package does not have, and the batches of each epoch."""

    def __init__(self, dataset: InteractionDataset, options: Any) -> None:
        super().__init__(Factorization(dataset, options.embedding_dim), Data())
        self.criterion = DirectAULoss()
        self.epochs: list[list[Tensor]] = []
        self.losses: list[list[float]] = []

    def start_epoch(self) -> None:
        self.epochs.append([])
        self.losses.append([])

    def loss(self, users: Tensor, items: Tensor) -> Tensor:
        assert self.encoder.training
        self.epochs[-1].append(torch.stack([users, items]))
        all_users, all_items = self.encoder(self.data)
        loss = self.criterion(all_users[users], all_items[items])
        self.losses[-1] += [float(loss.detach())] * len(users)
        return loss


def training(run_cfg: Path, *options: str) -> Training:
    config = load_config(run_cfg, options)
    return Training(config, load_dataset(config.recommend), run_cfg.parent / 'run', FactorizationRecommender)


def dense_metrics(weights: dict[str, Tensor], targets: Tensor, seen: list[Tensor], k: int) -> tuple[float, float]:
    """Recall and NDCG of matrix factorization, user by user."""
    scores = weights['users'].numpy() @ weights['items'].numpy().T
    for pairs in seen:
        scores[pairs[0].numpy(), pairs[1].numpy()] = -np.inf
    recall, ndcg = [], []
    for user in np.unique(targets[0].numpy()):
        wanted = set(targets[1, targets[0] == user].tolist())
        hits = [rank for rank, item in enumerate(np.argsort(-scores[user])[:k], 1) if item in wanted]
        ideal = range(1, min(k, len(wanted)) + 1)
        recall.append(len(hits) / len(wanted))
        ndcg.append(sum(1 / math.log2(rank + 1) for rank in hits) / sum(1 / math.log2(rank + 1) for rank in ideal))
    return float(np.mean(recall)), float(np.mean(ndcg))


def test_result_is_that_of_the_best_model_without_what_the_user_knows(run_cfg: Path) -> None:
    run = training(run_cfg, 'recommend.max_epoch', '12', 'recommend.MGFormer.lr', '0.1')
    run.run()
    result = json.loads((run.record.folder / 'result.json').read_text())
    dataset = run.dataset
    best, last = (torch.load(run.record.folder / 'checkpoints' / f'{name}.pt')['model'] for name in ('best', 'last'))
    expected = dense_metrics(best, dataset.test, [dataset.train, dataset.val], 5)
    assert (result['test_recall@5'], result['test_ndcg@5']) == pytest.approx(expected, rel=1e-6)
    # The items with the fewest training interactions, four fifths of all.
    rare = torch.bincount(dataset.train[1], minlength=dataset.num_items).argsort(stable=True)[: round(0.8 * dataset.num_items)]
    of_rare = dataset.test[:, torch.isin(dataset.test[1], rare)]
    unpopular = dense_metrics(best, of_rare, [dataset.train, dataset.val], 5)
    assert (result['test_unpopular recall@5'], result['test_unpopular ndcg@5']) == pytest.approx(unpopular, rel=1e-6)
    chosen = dense_metrics(best, dataset.val, [dataset.train], 5)
    assert (result['val_recall@5'], result['val_ndcg@5']) == pytest.approx(chosen, rel=1e-6)
    # Another model, or another mask, would not do.
    another_model = dense_metrics(last, dataset.test, [dataset.train, dataset.val], 5)
    another_mask = dense_metrics(best, dataset.test, [dataset.train], 5)
    for metrics in (another_model, another_mask):
        assert max(abs(one - two) for one, two in zip(metrics, expected, strict=True)) > 1e-3


def test_every_epoch_trains_on_all_interactions_in_another_order(run_cfg: Path) -> None:
    run = training(run_cfg)
    run.run()
    assert isinstance(run.model, FactorizationRecommender)
    assert len(run.model.epochs) == 4
    pairs = run.dataset.train.t().tolist()
    orders = []
    for batches in run.model.epochs:
        assert {batch.size(1) for batch in batches[:-1]} == {128}
        orders.append(torch.cat(batches, 1).t().tolist())
        assert sorted(orders[-1]) == sorted(pairs)
    # Of each interaction, also where the last batch is smaller.
    losses = [row['loss'] for row in run.record.history]
    assert losses == pytest.approx([np.mean(each) for each in run.model.losses], rel=1e-6)
    assert all(order != previous for index, order in enumerate([*orders, pairs]) for previous in orders[:index])


def test_embeddings_are_those_of_evaluation() -> None:
    class Mode(torch.nn.Module):
        def forward(self, data: Data) -> tuple[Tensor, Tensor]:
            return torch.tensor(self.training), torch.tensor(torch.is_grad_enabled())

    assert not any(Recommender(Mode().train(), Data()).embed())


def test_validation_period(run_cfg: Path) -> None:
    train(run_cfg, ['recommend.max_epoch', '5', 'recommend.eval_period', '2'])
    history = torch.load(run_cfg.parent / 'out' / 'small' / 'MGFormer' / '3' / 'checkpoints' / 'last.pt')['history']
    assert [row['epoch'] for row in history if 'val_recall@5' in row] == [1, 3, 4]  # the last one always


def test_a_yaml_names_the_columns_of_its_tables(run_cfg: Path) -> None:
    (run_cfg.parent / 'events.csv').write_text('visitor,shown,bought\n' + ''.join(f'{i % 4},{i},{i % 2}\n' for i in range(40)))
    files = ['recommend.files.train', '[events.csv]', 'recommend.files.test', '[]', 'recommend.files.layout', 'table']
    options = load_config(run_cfg, [*files, 'recommend.files.columns', '[visitor, shown, bought]']).recommend
    dataset = load_dataset(options)
    assert (dataset.user_ids.tolist(), dataset.item_ids.tolist()) == ([1, 3], list(range(1, 40, 2)))


def weights(run_cfg: Path, options: list[str]) -> dict[str, Any]:
    """The weights after one epoch of training."""
    train(run_cfg, ['recommend.max_epoch', '1', *options])
    (path,) = (run_cfg.parent / 'out' / 'small' / 'MGFormer').glob('*/checkpoints/last.pt')
    model: dict[str, Any] = torch.load(path)['model']
    shutil.rmtree(run_cfg.parent / 'out')
    return model


def same(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


def another(value: Any) -> str:
    if isinstance(value, str):
        return {'simplex': 'relu', 'sin_degree': 'adjacency'}[value]
    return str(not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else 2 * value + 0.05)


def test_no_option_is_ignored(run_cfg: Path) -> None:
    config = load_config(run_cfg)
    options = {f'recommend.MGFormer.{key}': value for key, value in config.recommend.MGFormer.items()}
    for key in ('embedding_dim', 'batch_size', 'val_ratio', 'split_seed'):
        options[f'recommend.{key}'] = config.recommend[key]
    options['seed'] = config.seed
    expected = weights(run_cfg, [])
    assert same(weights(run_cfg, []), expected)
    ignored = [key for key, value in options.items() if same(weights(run_cfg, [key, another(value)]), expected)]
    assert ignored == []


@pytest.fixture
def dataset() -> InteractionDataset:
    known = torch.rand(6, 8) < 0.5
    known[torch.arange(6), torch.arange(6)] = True
    return InteractionDataset.from_pairs(known.nonzero().t())


def options(**settings: Any) -> Any:
    config = default_config().recommend
    config.embedding_dim = 4
    config.MGFormer.update(settings)
    return config


def test_options_reach_what_they_name(dataset: InteractionDataset) -> None:
    settings = {'svd_dim': 2, 'heads': 3, 'layers': 2, 'residual': False, 'dropout': 0.04, 'sign_flip': True}
    model: Any = build_recommender(dataset, options(**settings, mask='adjacency', feature_map='relu'))
    encoder = model.encoder
    assert (encoder.svd_dim, encoder.residual, encoder.dropout, encoder.sign_flip) == (2, False, 0.04, True)
    assert len(encoder.layers) == 2
    for layer in encoder.layers:
        assert layer.heads == 3
        assert isinstance(layer.mask, AdjacencyMask)
        assert isinstance(layer.feature_map, ReLUFeatures)
    model = build_recommender(dataset, options(svd_dim=0, max_degree=4096))
    assert [module.max_degree for module in model.encoder.modules() if isinstance(module, SinDegreeMask)] == [4096]
    for average in (True, False):
        model = build_recommender(dataset, options(svd_dim=0, weight=0.02, t=0.03, average=average))
        assert (model.criterion.weight, model.criterion.t, model.criterion.average) == (0.02, 0.03, average)


@pytest.mark.parametrize('svd_dim', [0, 2])
@pytest.mark.parametrize('mask', ['sin_degree', 'adjacency', 'none'])
def test_loss_is_that_of_all_embeddings(dataset: InteractionDataset, mask: str, svd_dim: int) -> None:
    model = build_recommender(dataset, options(svd_dim=svd_dim, mask=mask, weight=0.7))
    assert isinstance(model.encoder, MGFormer)
    batch = dataset.train[:, torch.randint(dataset.train.size(1), (9,))]
    users, items = model.encoder(model.data)
    expected = DirectAULoss(0.7, 1.0, False)(users[batch[0]], items[batch[1]])
    loss = model.loss(*batch)
    torch.testing.assert_close(loss, expected)
    grads = [torch.autograd.grad(value, list(model.encoder.parameters())) for value in (loss, expected)]
    for grad, expected_grad in zip(*grads, strict=True):
        torch.testing.assert_close(grad, expected_grad, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(
    ('option', 'value'),
    [
        ('lr', '0'),
        ('weight_decay', '-1'),
        ('dropout', 'nan'),
        ('feature_map', 'sine'),
        ('t', 'nan'),
        ('t', '0'),
        ('weight', 'inf'),
        ('svd_dim', '-1'),
    ],
)
def test_a_bad_option_leaves_the_earlier_run(
    run_cfg: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    run = run_cfg.parent / 'out' / 'small' / 'MGFormer' / '3'
    (run / 'checkpoints').mkdir(parents=True)
    files = [run / entry for entry in ('checkpoints/best.pt', 'checkpoints/last.pt', 'metrics.csv', 'result.json')]
    for path in files:
        path.write_text('earlier')
    with pytest.raises(ValueError, match=rf'^recommend.MGFormer.{option}: got .*{value}.*; accepted:'):
        train(run_cfg, [f'recommend.MGFormer.{option}', value])
    assert [path.read_text() for path in files] == ['earlier'] * 4
    assert 'replacing' not in capsys.readouterr().err
