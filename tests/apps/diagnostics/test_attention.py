from __future__ import annotations

import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS
from torch import Tensor

import pyg_topomask.apps.diagnostics.attention_statistics as diagnostics_attention
from pyg_topomask import Graph
from pyg_topomask.apps.diagnostics.attention_statistics import (
    attention_degrees,
    cumulative_attention,
    cumulative_full_attention,
    distance_to_full_attention,
)
from pyg_topomask.nn import GRFSoftmaxAttention

KS = [1, 2, 3, 10]


def sparse_attention(num_nodes: int = 7, heads: int = 3) -> np.ndarray:
    """Rows that sum to one, some of them empty, [H, N, N]."""
    generator = np.random.default_rng(0)
    weight = generator.random((heads, num_nodes, num_nodes)) * (generator.random((heads, num_nodes, num_nodes)) < 0.4)
    weight[0, 2] = 0
    return weight / np.maximum(weight.sum(2, keepdims=True), 1e-300)


def as_pairs(matrix: np.ndarray) -> tuple[Tensor, Tensor]:
    """The union of the heads' pairs, in an order of no meaning."""
    row, col = np.nonzero(matrix.any(0))
    order = np.random.default_rng(1).permutation(len(row))
    row, col = row[order], col[order]
    return torch.from_numpy(np.stack([col, row])), torch.from_numpy(matrix[:, row, col].T)


def vectors(sizes: list[int], heads: int = 2, d: int = 3, d_v: int = 4) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    n = sum(sizes)
    q, k, v = (torch.randn(n, heads, size, generator=generator, dtype=torch.float64) for size in (d, d, d_v))
    return q, k, v, torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))


def full_attention(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    score = np.exp(q @ k.T / np.sqrt(q.shape[1]))
    return score / score.sum(1, keepdims=True)


def test_degrees_count_the_nodes_that_attend() -> None:
    matrix = sparse_attention()
    np.testing.assert_array_equal(attention_degrees(*as_pairs(matrix), 7).numpy(), (matrix != 0).sum(1).T)


def test_cumulative_attention_of_given_coefficients() -> None:
    matrix = sparse_attention()
    expected = []
    for k in KS:
        largest = np.sort(matrix, axis=2)[:, :, ::-1][:, :, :k].sum(2)
        expected.append([row[head.any(1)].mean() for row, head in zip(largest, matrix, strict=True)])
    np.testing.assert_allclose(cumulative_attention(*as_pairs(matrix), KS, 7).numpy(), expected, rtol=1e-12)
    assert expected[-1] == pytest.approx([1, 1, 1])


@pytest.mark.parametrize('budget', [1, 2**24])
def test_full_attention(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cumulated weight and distance, over graphs of 5, 0, 1 and 8 nodes."""
    monkeypatch.setattr(diagnostics_attention, '_BUDGET', budget)
    q, k, v, batch = vectors([5, 0, 1, 8])
    cumulated, distance = np.zeros((len(KS), 2, 14)), np.zeros((len(KS), 2, 14))
    for node in range(14):
        same_graph = (batch == batch[node]).numpy()
        for head in range(2):
            keys, values = k[same_graph, head].numpy(), v[same_graph, head].numpy()
            (weight,) = full_attention(q[node : node + 1, head].numpy(), keys)
            for index, number in enumerate(KS):
                best = np.argsort(-weight)[:number]
                cumulated[index, head, node] = weight[best].sum()
                out = weight[best] @ values[best] / weight[best].sum()
                distance[index, head, node] = np.linalg.norm(out - weight @ values)
    np.testing.assert_allclose(cumulative_full_attention(q, k, KS, batch).numpy(), cumulated.mean(2), rtol=1e-12)
    actual = distance_to_full_attention(q, k, v, KS, batch).numpy()
    np.testing.assert_allclose(actual, distance.mean(2), rtol=1e-12, atol=1e-14)
    assert actual[-1] == pytest.approx([0, 0], abs=1e-14)
    assert (actual[0] > 0).all()


def test_scale() -> None:
    q, k, v, _ = vectors([6])
    for function in (
        cumulative_full_attention,
        lambda q, k, *rest, **kwargs: distance_to_full_attention(q, k, v, *rest, **kwargs),
    ):
        torch.testing.assert_close(function(q, k, KS, scale=2.0), function(2.0 * 3**0.5 * q, k, KS))


@pytest.mark.parametrize('name', GRAPH_NAMES)
def test_every_graph_and_every_explicit_attention(name: str) -> None:
    graph = Graph.from_data(GRAPHS[name]())
    weight = None if graph.edge_weight is None else graph.edge_weight.abs().float()
    attention = GRFSoftmaxAttention(8, heads=2).eval()
    x = torch.randn(graph.num_nodes, 8)
    _, (pairs, alpha) = attention(x, graph.edge_index, weight, graph.batch, return_attention_weights=True)
    degrees = attention_degrees(pairs, alpha, graph.num_nodes)
    assert degrees.sum(0).tolist() == (alpha != 0).sum(0).tolist()
    curve = cumulative_attention(pairs, alpha, [1, 2, 100], graph.num_nodes)
    assert (curve.diff(dim=0) >= -1e-6).all()
    attends = (alpha != 0).any()
    torch.testing.assert_close(curve[-1], torch.full((2,), float(attends)))


def test_nothing_at_all() -> None:
    empty = torch.zeros(0, 2, 3)
    assert cumulative_full_attention(empty, empty, [1]).tolist() == [[0, 0]]
    assert distance_to_full_attention(empty, empty, empty, [1]).tolist() == [[0, 0]]


def test_bad_arguments_are_named(subtests: pytest.Subtests) -> None:
    for argument, call in [
        ('edge_index', lambda: attention_degrees(torch.zeros(3, 2).long(), torch.ones(2, 1), 1)),
        ('edge_index', lambda: attention_degrees(torch.tensor([[0], [2]]), torch.ones(1, 1), 2)),
        ('alpha', lambda: attention_degrees(torch.zeros(2, 2).long(), torch.ones(3, 1), 1)),
        ('alpha', lambda: cumulative_attention(torch.zeros(2, 2).long(), torch.ones(2), [1], 1)),
        ('ks', lambda: cumulative_attention(torch.zeros(2, 1).long(), torch.ones(1, 1), [], 1)),
        ('ks', lambda: cumulative_attention(torch.zeros(2, 1).long(), torch.ones(1, 1), 5, 1)),
        ('ks', lambda: cumulative_full_attention(torch.ones(2, 1, 1), torch.ones(2, 1, 1), [2, 0])),
        ('ks', lambda: cumulative_full_attention(torch.ones(2, 1, 1), torch.ones(2, 1, 1), 5)),
        ('ks', lambda: distance_to_full_attention(torch.ones(2, 1, 1), torch.ones(2, 1, 1), torch.ones(2, 1, 1), 5)),
        ('k', lambda: cumulative_full_attention(torch.ones(2, 1, 1), torch.ones(2, 1, 2), [1])),
        ('v', lambda: distance_to_full_attention(torch.ones(2, 1, 1), torch.ones(2, 1, 1), torch.ones(3, 1, 1), [1])),
    ]:
        with subtests.test(argument=argument), pytest.raises(ValueError, match=f'^{argument}: got'):
            call()
