from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import chisquare
from torch import Tensor
from torch_geometric.data import Data

pytest.importorskip('yacs')

from yacs.config import CfgNode

from benchmarks.recommend_baselines import BASELINES, BPR, SETTINGS, info_nce
from pyg_topomask.apps.recommend import DirectAULoss, InteractionDataset

U, I = 5, 7  # noqa: E741


@pytest.fixture
def dataset() -> InteractionDataset:
    known = torch.rand(U, I) < 0.4
    known[0, :2] = True
    known[3] = False  # an isolated user
    known[:, 6] = False  # an item that only the test set knows
    return InteractionDataset.from_pairs(known.nonzero().t(), test=torch.tensor([[3], [6]]))


def build(name: str, dataset: InteractionDataset, **settings: Any) -> Any:
    options = CfgNode({'model': name, 'embedding_dim': 4, name: {**SETTINGS[name], **settings}})
    return BASELINES[name](dataset, options)


def adjacency(dataset: InteractionDataset) -> np.ndarray:
    """The symmetrically normalized adjacency; nodes without edges have zero rows."""
    a = np.zeros((dataset.num_users + dataset.num_items,) * 2)
    for user, item in dataset.train.t().tolist():
        a[user, dataset.num_users + item] = a[dataset.num_users + item, user] = 1
    scale = np.where(a.sum(1) > 0, a.sum(1), 1) ** -0.5
    return scale[:, None] * a * scale


def unit(x: Tensor) -> np.ndarray:
    rows = x.detach().double().numpy()
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def weights(model: Any) -> np.ndarray:
    return model.encoder.embedding.weight.detach().double().numpy()


@pytest.mark.parametrize(
    ('name', 'layers', 'first'), [('BPRMF', 0, 0), ('LightGCN', 3, 0), ('DirectAU', 2, 0), ('SGL', 2, 0), ('SimGCL', 2, 1)]
)
def test_propagation(dataset: InteractionDataset, name: str, layers: int, first: int) -> None:
    """The mean over the layers, without the embeddings themselves in SimGCL."""
    model = build(name, dataset)
    a, x = adjacency(dataset), weights(model)
    expected = np.mean([np.linalg.matrix_power(a, power) @ x for power in range(first, layers + 1)], axis=0)
    np.testing.assert_allclose(torch.cat(model.embed()).numpy(), expected, rtol=1e-4, atol=1e-6)


def test_settings_start_the_embeddings(dataset: InteractionDataset) -> None:
    assert 0.05 < weights(build('LightGCN', dataset)).std() < 0.2
    assert 0.005 < weights(build('DirectAU', dataset)).std() < 0.02


def test_direct_au(dataset: InteractionDataset) -> None:
    model = build('DirectAU', dataset, weight=0.7, t=1.0, average=False)
    users, items = model.embed()
    expected = DirectAULoss(0.7, 1.0, False)(users[dataset.train[0]], items[dataset.train[1]])
    torch.testing.assert_close(model.loss(*dataset.train), expected)


def test_bpr_with_its_penalty(dataset: InteractionDataset) -> None:
    model = build('LightGCN', dataset, l2=0.3)
    model.start_epoch()
    order = torch.randperm(dataset.train.size(1))
    batch = dataset.train[:, order]
    negatives = model.negatives[order].numpy()
    users, items = (embedding.double().numpy() for embedding in model.embed())
    u, i = batch.numpy()
    difference = (users[u] * (items[i] - items[negatives])).sum(1)
    penalty = sum((weights(model)[nodes] ** 2).sum() for nodes in (u, U + i, U + negatives))
    expected = np.log1p(np.exp(-difference)).mean() + 0.15 * penalty / len(u)
    assert float(model.loss(*batch).detach()) == pytest.approx(expected, rel=1e-5)


def test_negatives_are_unknown_items_equally_often() -> None:
    known = torch.rand(30, 17) < torch.linspace(0, 0.9, 30)[:, None]
    known[:, 0] = True  # an interaction for every user
    known[:, 16] = False
    dataset = InteractionDataset.from_pairs(known.nonzero().t(), test=torch.tensor([[0], [16]]))
    model = build('BPRMF', dataset)
    counts = np.zeros((30, 17))
    for _ in range(300):
        model.start_epoch()
        np.add.at(counts, (dataset.train[0].numpy(), model.negatives.numpy()), 1)
    assert counts[known.numpy()].sum() == 0
    for user in range(30):
        drawn = counts[user, ~known[user].numpy()]
        if len(drawn) > 1:
            assert chisquare(drawn).pvalue > 1e-4 / 30


def test_users_who_know_everything_are_refused() -> None:
    everything = InteractionDataset.from_pairs(torch.ones(2, 3).nonzero().t())
    with pytest.raises(ValueError, match='got a user who knows every item'):
        build('BPRMF', everything)


@pytest.mark.parametrize(('name', 'settings'), [('SimGCL', {}), ('SGL', {'dropout': 0.5})])
def test_contrastive_losses_add_the_agreement_of_their_views(
    dataset: InteractionDataset, name: str, settings: dict[str, float]
) -> None:
    model = build(name, dataset, weight=0.6, **settings)
    model.start_epoch()
    torch.manual_seed(2)
    loss = model.loss(*dataset.train)
    expected = BPR.loss(model, *dataset.train)
    torch.manual_seed(2)
    (users, items), (other_users, other_items) = model.views()
    for first, second, row in ((users, other_users, 0), (items, other_items, 1)):
        index = dataset.train[row].unique()
        expected = expected + 0.6 * info_nce(first[index], second[index], 0.2)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert not torch.allclose(users, other_users)


def test_noise_has_its_norm_and_keeps_signs(dataset: InteractionDataset) -> None:
    model = build('SimGCL', dataset, layers=1, noise=0.3)
    clean, noisy = (torch.cat(embeddings).detach() for embeddings in (model.embed(), model.views()[0]))
    moved = (noisy - clean).norm(dim=1)
    used = clean.abs().sum(1) > 0
    torch.testing.assert_close(moved[used], torch.full_like(moved[used], 0.3))
    assert (moved[~used] == 0).all()
    assert ((noisy - clean) * clean >= 0).all()
    torch.testing.assert_close(torch.cat(model.embed()), clean)


def test_sgl_drops_interactions_for_an_epoch(dataset: InteractionDataset) -> None:
    model = build('SGL', dataset, dropout=0.5)
    model.start_epoch()
    whole = {tuple(edge) for edge in model.data.edge_index.t().tolist()}
    for subgraph in model.subgraphs:
        edges = {tuple(edge) for edge in subgraph.edge_index.t().tolist()}
        assert edges < whole
        assert {(b, a) for a, b in edges} == edges
    before: list[Data] = model.subgraphs
    assert before[0].num_edges != 0
    model.start_epoch()
    assert model.subgraphs is not before


def test_info_nce() -> None:
    x, y = torch.randn(2, 6, 4, dtype=torch.double)
    similarity = unit(x) @ unit(y).T / 0.3
    expected = np.mean(logsumexp(similarity, axis=1) - np.diag(similarity))
    assert float(info_nce(x, y, 0.3)) == pytest.approx(expected, rel=1e-12)


def test_bad_settings(dataset: InteractionDataset, subtests: pytest.Subtests) -> None:
    for name, setting, value in [
        ('BPRMF', 'init_std', math.nan),
        ('BPRMF', 'l2', -1.0),
        ('LightGCN', 'layers', -1),
        ('DirectAU', 't', 0.0),
        ('SimGCL', 'layers', 0),
        ('SimGCL', 'weight', -1.0),
        ('SimGCL', 'noise', 0.0),
        ('SimGCL', 'temperature', 0.0),
        ('SGL', 'dropout', 1.0),
        ('SGL', 'temperature', math.inf),
    ]:
        with (
            subtests.test(name=name, setting=setting, value=value),
            pytest.raises(ValueError, match=f'{setting}: got {value}; accepted:'),
        ):
            build(name, dataset, **{setting: value})
