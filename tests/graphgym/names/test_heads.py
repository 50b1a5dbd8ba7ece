"""The head for pairs of nodes in several graphs, and the ranks of pairs by loops in plain Python."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym.config import cfg

from pyg_topomask.graphgym.names import heads
from pyg_topomask.graphgym.names.heads import RANKS, InductiveEdgeHead, find_head, ranks_of_pairs


def dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(1)


def expected_ranks(x: Tensor, linked: list[tuple[int, int]]) -> list[float]:
    """The numbers of one graph."""
    rows = []
    for i, j in linked:
        own = float(x[i] @ x[j])
        raw = filtered = 1.0
        for k in range(len(x)):
            score = float(x[i] @ x[k])
            above = 0.0 if k == j else 1.0 if score > own else 0.5 if score == own else 0.0
            raw += above
            filtered += 0.0 if k == i or (i, k) in linked else above
        rows.append([float(raw <= 1), float(raw <= 3), float(raw <= 10), 1 / raw, 1 / filtered])
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


#: Graphs of different sizes by their linked pairs: one without any, and one whose pairs have equal scores.
LINKED = [[(0, 1), (1, 0), (2, 2), (0, 3)], [], [(0, 14), (3, 9), (14, 0)], [(0, 1), (1, 2)]]
SIZES = [4, 3, 15, 3]


@pytest.mark.parametrize('budget', [2**24, 1, 100])
def test_ranks(monkeypatch: pytest.MonkeyPatch, budget: int) -> None:
    monkeypatch.setattr(heads, '_BUDGET', budget)
    torch.manual_seed(0)
    features = [torch.randint(-3, 4, (size, 4)).float() for size in SIZES[:3]] + [torch.ones(3, 4)]
    ends = torch.tensor(SIZES).cumsum(0)
    ptr = torch.cat([torch.zeros(1, dtype=torch.long), ends])
    pairs = [(i + first, j + first) for first, linked in zip(ptr.tolist(), LINKED, strict=False) for i, j in linked]
    found = ranks_of_pairs(torch.cat(features), ptr, torch.tensor(pairs).t(), dot)
    assert tuple(found) == RANKS
    expected = [expected_ranks(x, linked) for x, linked in zip(features, LINKED, strict=True) if linked]
    torch.testing.assert_close(torch.stack(list(found.values()), 1), torch.tensor(expected))
    assert expected[2][3] == pytest.approx(1 / 2)  # of three equal ones, in the middle
    none = ranks_of_pairs(torch.cat(features), ptr, torch.empty(2, 0, dtype=torch.long), dot)
    assert all(values.numel() == 0 for values in none.values())


def batch(name: str = 'edge_label_index') -> Batch:
    torch.manual_seed(0)
    graphs = []
    for size, linked in zip(SIZES, LINKED, strict=True):
        pairs = torch.tensor([*linked, (0, 2)]).t()
        label = torch.tensor([1] * len(linked) + [0])
        edge_index = torch.empty(2, 0, dtype=torch.long)
        graphs.append(Data(x=torch.randn(size, 6), edge_index=edge_index, edge_label=label, **{name: pairs}))
    return Batch.from_data_list(graphs)


@pytest.mark.parametrize('name', ['edge_label_index', 'edge_index_labeled'])
@pytest.mark.parametrize('decoding', ['dot', 'cosine_similarity', 'concat'])
def test_head(configure: Callable[..., None], decoding: str, name: str) -> None:
    configure(f'gnn.head inductive_edge model.edge_decoding {decoding} gnn.layers_post_mp 1')
    assert find_head() is InductiveEdgeHead
    torch.manual_seed(1)
    head: Any = InductiveEdgeHead(6, 1)
    weight, bias = head.parameters()
    given, pairs = batch(name), batch(name)[name]
    x = given.x.clone().requires_grad_()
    given.x = x
    pred, label = head(given)
    if decoding == 'concat':
        expected = torch.cat([x[pairs[0]], x[pairs[1]]], 1) @ weight.t() + bias
    else:
        embedded = x @ weight.t() + bias
        expected = dot(embedded[pairs[0]], embedded[pairs[1]])
        if decoding == 'cosine_similarity':
            norm = embedded.norm(dim=1)
            expected = expected / (norm[pairs[0]] * norm[pairs[1]])
    torch.testing.assert_close(pred, expected)
    assert torch.equal(label, given.edge_label)
    pred.sum().backward()
    assert x.grad is not None
    assert x.grad.any()
    head.eval()
    _, _, ranks = head(batch(name))
    alone = [head(Batch.from_data_list([data]))[2] for data in batch(name).to_data_list()]
    for key in RANKS:
        torch.testing.assert_close(ranks[key], torch.cat([each[key] for each in alone]))
    assert ranks['mrr'].shape == (3,)


def test_several_classes_have_no_ranks(configure: Callable[..., None]) -> None:
    configure('gnn.head inductive_edge model.edge_decoding concat')
    head: Any = InductiveEdgeHead(6, 3).eval()
    pred, label = head(batch())
    assert pred.shape == (label.numel(), 3)
    cfg.dataset.task_type = 'regression'
    assert len(InductiveEdgeHead(6, 1).eval()(batch())) == 2


@pytest.mark.parametrize('size', [8, 20, 50])
def test_equal_nodes_have_equal_scores_however_they_are_rounded(configure: Callable[..., None], size: int) -> None:
    configure('gnn.head inductive_edge model.edge_decoding concat gnn.layers_post_mp 2 gnn.dim_inner 64')
    head: Any = InductiveEdgeHead(64, 1).eval()
    data = Data(x=torch.randn(1, 64).repeat(size, 1), edge_label_index=torch.tensor([[0, 3], [1, 5]]))
    data.edge_index, data.edge_label = data.edge_label_index, torch.ones(2)
    _, _, ranks = head(Batch.from_data_list([data]))
    torch.testing.assert_close(ranks['mrr'], torch.tensor([1 / (1 + (size - 1) / 2)]))
    assert ranks['hits@1'].item() == 0
    near = torch.tensor([[1.0], [1.0], [1.0 + 3e-6], [1.0 + 1e-3], [-1e7]])
    found = ranks_of_pairs(near, torch.tensor([0, 5]), torch.tensor([[0], [1]]), dot)
    torch.testing.assert_close(found['mrr'], torch.tensor([1 / 3]))  # one higher, two equal


@pytest.mark.parametrize(('value', 'rank'), [(float('nan'), 5), (float('inf'), 3)])  # last, or in the middle of equal ones
def test_ranks_of_a_model_that_has_diverged(value: float, rank: int) -> None:
    found = ranks_of_pairs(torch.full((5, 2), value), torch.tensor([0, 5]), torch.tensor([[0], [1]]), dot)
    torch.testing.assert_close(found['mrr'], torch.tensor([1 / rank]))


@pytest.mark.parametrize('decoding', ['dot', 'cosine_similarity', 'concat'])
def test_copies_decode_with_their_own_weights(configure: Callable[..., None], decoding: str) -> None:
    configure(f'gnn.head inductive_edge model.edge_decoding {decoding} gnn.layers_post_mp 1')
    head: Any = InductiveEdgeHead(6, 1)
    twin = pickle.loads(pickle.dumps(copy.deepcopy(head)))
    assert torch.equal(twin(batch())[0], head(batch())[0])
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.zero_()
    assert not twin(batch())[0].any()
    assert head(batch())[0].all()


def test_ranks_in_half_precision(configure: Callable[..., None]) -> None:
    configure('gnn.head inductive_edge model.edge_decoding dot gnn.layers_post_mp 1')
    head: Any = InductiveEdgeHead(6, 1).eval()
    x = torch.arange(600.0).unsqueeze(1).repeat(1, 6)
    data = Data(x=x, edge_index=torch.empty(2, 0).long(), edge_label_index=torch.tensor([[1], [0]]), edge_label=torch.ones(1))
    with torch.autocast('cpu', torch.bfloat16):
        _, _, ranks = head(Batch.from_data_list([data]))
    assert ranks['mrr'].dtype == torch.float32
    plain = head(Batch.from_data_list([data]))[2]
    torch.testing.assert_close(ranks['mrr'], plain['mrr'], rtol=0.05, atol=0)
