from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import LightGCN

from pyg_topomask.nn.models import MGFormer
from pyg_topomask.recommend.encoders import LightGCNEncoder, MFEncoder
from pyg_topomask.recommend.interactions import bipartite_data
from pyg_topomask.recommend.losses import DirectAULoss, info_nce
from pyg_topomask.recommend.objectives import BPRObjective, DirectAUObjective, SGLObjective, SimGCLObjective
from pyg_topomask.recommend.sampling import NegativeSampler

U, I = 5, 7  # noqa: E741


@pytest.fixture
def pairs() -> Tensor:
    known = torch.rand(U, I) < 0.4
    known[0, :2] = True
    known[3] = False  # an isolated user
    return known.nonzero().t()


@pytest.fixture
def data(pairs: Tensor) -> Data:
    return bipartite_data(pairs, U, I)


def test_lightgcn_against_dense_and_pyg(data: Data) -> None:
    encoder = LightGCNEncoder(U, I, 4, num_layers=2)
    a = data.adj_t.to_dense().detach().double().numpy()
    x = encoder.embedding.weight.detach().double().numpy()
    expected = (x + a @ x + a @ a @ x) / 3
    np.testing.assert_allclose(torch.cat(encoder(data)).detach().numpy(), expected, rtol=1e-4, atol=1e-6)
    theirs = LightGCN(U + I, 4, 2)
    theirs.embedding.weight.data = encoder.embedding.weight.data
    torch.testing.assert_close(torch.cat(encoder(data)), theirs.get_embedding(data.edge_index))
    skipping = LightGCNEncoder(U, I, 4, num_layers=2, skip_input=True)
    skipping.load_state_dict(encoder.state_dict())
    expected = (a @ x + a @ a @ x) / 2
    np.testing.assert_allclose(torch.cat(skipping(data)).detach().numpy(), expected, rtol=1e-4, atol=1e-6)


def test_noise_has_its_norm_and_keeps_signs(data: Data) -> None:
    encoder = LightGCNEncoder(U, I, 4, num_layers=1, skip_input=True)
    clean, noisy = (torch.cat(encoder(data, noise)) for noise in (0.0, 0.3))
    moved = (noisy - clean).norm(dim=1)
    used = clean.abs().sum(1) > 0
    torch.testing.assert_close(moved[used], torch.full_like(moved[used], 0.3))
    assert (moved[~used] == 0).all()
    assert ((noisy - clean) * clean >= 0).all()


def test_permuted_users_and_items(pairs: Tensor) -> None:
    encoder, permuted = LightGCNEncoder(U, I, 4), LightGCNEncoder(U, I, 4)
    users, items = torch.randperm(U), torch.randperm(I)
    weight = encoder.embedding.weight.detach()
    moved = torch.empty_like(weight)
    moved[users], moved[U + items] = weight[:U], weight[U:]
    permuted.embedding.weight.data = moved
    one = encoder(bipartite_data(pairs, U, I))
    other = permuted(bipartite_data(torch.stack([users[pairs[0]], items[pairs[1]]]), U, I))
    torch.testing.assert_close(other[0][users], one[0])
    torch.testing.assert_close(other[1][items], one[1])


def test_direct_au(data: Data, pairs: Tensor) -> None:
    encoder = MFEncoder(U, I, 4)
    users, items = encoder(data)
    expected = DirectAULoss(0.7, 1.0, False)(users[pairs[0]], items[pairs[1]])
    torch.testing.assert_close(DirectAUObjective(0.7, 1.0, False)(encoder, data, *pairs), expected)


def test_bpr_with_its_penalty(data: Data, pairs: Tensor) -> None:
    encoder = LightGCNEncoder(U, I, 4)
    objective = BPRObjective(NegativeSampler(pairs, U, I), l2=0.3)
    torch.manual_seed(1)
    loss = float(objective(encoder, data, *pairs).detach())
    torch.manual_seed(1)
    negatives = objective.sampler(pairs[0]).numpy()
    users, items = (own.detach().double().numpy() for own in encoder(data))
    u, i = pairs.numpy()
    weight = encoder.embedding.weight.detach().double().numpy()
    difference = (users[u] * (items[i] - items[negatives])).sum(1)
    penalty = sum((weight[own] ** 2).sum() for own in (u, U + i, U + negatives))
    assert loss == pytest.approx(np.log1p(np.exp(-difference)).mean() + 0.15 * penalty / len(u), rel=1e-5)


def test_users_who_know_everything_have_no_negative() -> None:
    pairs = torch.ones(2, 3).nonzero().t()
    encoder = MFEncoder(2, 3, 4)
    loss = BPRObjective(NegativeSampler(pairs, 2, 3), l2=0.1)(encoder, bipartite_data(pairs, 2, 3), *pairs)
    loss.backward()
    assert float(loss.detach()) == 0.0
    assert torch.isfinite(encoder.embedding.weight.grad).all()


def test_loss_of_mgformer_is_that_of_all_its_embeddings(data: Data, pairs: Tensor) -> None:
    encoder, objective = MGFormer(U, I, 4, svd_dim=0), DirectAUObjective(weight=0.7)
    batch = pairs[:, torch.randint(pairs.size(1), (9,))]
    users, items = encoder(data)
    expected = DirectAULoss(0.7)(users[batch[0]], items[batch[1]])
    loss = objective(encoder, data, *batch)
    torch.testing.assert_close(loss, expected)
    grads = [torch.autograd.grad(own, list(encoder.parameters())) for own in (loss, expected)]
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


def test_contrastive_objectives_add_the_agreement_of_their_views(data: Data, pairs: Tensor) -> None:
    encoder, sampler = LightGCNEncoder(U, I, 4, skip_input=True), NegativeSampler(pairs, U, I)
    for objective in (SimGCLObjective(sampler, weight=0.6), SGLObjective(sampler, weight=0.6, dropout=0.5)):
        objective.start_epoch(data)
        torch.manual_seed(2)
        loss = objective(encoder, data, *pairs)
        torch.manual_seed(2)
        expected = BPRObjective(sampler, 1e-4)(encoder, data, *pairs)
        (users, items), (other_users, other_items) = objective.views(encoder, data)
        for one, other, row in ((users, other_users, 0), (items, other_items, 1)):
            index = pairs[row].unique()
            expected = expected + 0.6 * info_nce(one[index], other[index], 0.2)
        torch.testing.assert_close(loss, expected)
        loss.backward()
        assert not torch.allclose(users, other_users)


def test_sgl_drops_interactions_for_an_epoch(data: Data, pairs: Tensor) -> None:
    objective = SGLObjective(NegativeSampler(pairs, U, I), dropout=0.5)
    objective.start_epoch(data)
    whole = {tuple(edge) for edge in data.edge_index.t().tolist()}
    for part in objective.parts:
        own = {tuple(edge) for edge in part.edge_index.t().tolist()}
        assert own < whole
        assert {(b, a) for a, b in own} == own
    assert objective.parts[0].num_edges != 0
    before = objective.parts
    objective.start_epoch(data)
    assert objective.parts is not before


def test_bad_arguments(pairs: Tensor) -> None:
    sampler = NegativeSampler(pairs, U, I)
    for make, message in (
        (lambda: MFEncoder(0, 3), 'num_users: got 0'),
        (lambda: LightGCNEncoder(2, 3, num_layers=0), 'num_layers: got 0'),
        (lambda: BPRObjective(sampler, -1.0), r'l2: got -1\.0'),
        (lambda: SimGCLObjective(sampler, weight=-1.0), 'weight: got'),
        (lambda: SimGCLObjective(sampler, noise=0.0), 'noise: got'),
        (lambda: SGLObjective(sampler, dropout=1.0), 'dropout: got'),
        (lambda: MFEncoder(2, 3, init_std=math.nan), 'init_std: got nan; accepted are finite numbers from 0'),
        (lambda: SimGCLObjective(sampler, temperature=0.0), 'temperature: got 0.0; accepted are finite numbers above 0'),
        (lambda: SGLObjective(sampler, temperature=math.inf), 'temperature: got inf'),
        (lambda: SGLObjective(sampler, l2=math.nan), 'l2: got nan'),
        (lambda: SGLObjective(sampler, weight=math.nan), 'weight: got nan'),
    ):
        with pytest.raises(ValueError, match=message):
            make()
