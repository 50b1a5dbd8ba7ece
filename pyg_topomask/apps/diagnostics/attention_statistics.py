r"""Degrees of the attention graph, the weight of the largest coefficients, and the distance of top-k to full attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import stable_argsort
from pyg_topomask.utils.checks import check_finite, check_shape, is_whole

# The size of a chunk of scores or gathered values.
_BUDGET = 2**24


@torch.no_grad()
def attention_degrees(edge_index: Tensor, alpha: Tensor, num_nodes: int) -> Tensor:
    r"""Returns the out-degree of each node in the attention graph of each head, which is the number of nodes that attend to it,
    from the thesis "Bringing k-MIP Attention to Graph Transformers" (Sec. 6.8, Eq. 6.2). The attention graph of a head has the
    pairs with a nonzero coefficient.

    Args:
        edge_index (torch.Tensor): Pairs :obj:`(j, i)`, in which :math:`i` attends to :math:`j`, :obj:`[2, nnz]`.
        alpha (torch.Tensor): Their coefficients, :obj:`[nnz, H]`.
        num_nodes (int): The number of nodes :math:`N`.

    Returns:
        torch.Tensor: Integers of shape :obj:`[N, H]`.

    Example:
        >>> edge_index, alpha = torch.tensor([[0, 0, 1], [0, 1, 1]]), torch.tensor([[1.0, 0.4], [1.0, 0.3], [0.0, 0.7]])
        >>> attention_degrees(edge_index, alpha, num_nodes=2)
        tensor([[2, 2],
                [0, 1]])
    """
    _check_attention(edge_index, alpha, num_nodes)
    degrees = torch.zeros(num_nodes, alpha.size(1), dtype=torch.long, device=alpha.device)
    return degrees.index_add_(0, edge_index[0].long(), (alpha != 0).long())


@torch.no_grad()
def cumulative_attention(edge_index: Tensor, alpha: Tensor, ks: Sequence[int], num_nodes: int) -> Tensor:
    r"""Returns the share of a node's attention that goes to its :math:`k` largest coefficients, averaged over the nodes with
    any attention, for each :math:`k` and head. For full attention, see :func:`cumulative_full_attention`.

    Args:
        edge_index (torch.Tensor): Pairs, as in :func:`attention_degrees`.
        alpha (torch.Tensor): Their coefficients, :obj:`[nnz, H]`.
        ks (sequence of int): The numbers :math:`k`, from 1.
        num_nodes (int): The number of nodes.

    Returns:
        torch.Tensor: Shape :obj:`[len(ks), H]`; zero for a head without attention.

    Example:
        >>> edge_index, alpha = torch.tensor([[0, 1, 1], [0, 0, 1]]), torch.tensor([[0.75], [0.25], [1.0]])
        >>> cumulative_attention(edge_index, alpha, [1, 2], num_nodes=2).flatten()
        tensor([0.8750, 1.0000])
    """
    _check_attention(edge_index, alpha, num_nodes)
    _check_numbers(ks)
    target = edge_index[1].long()
    curves = []
    for weight in alpha.unbind(1):
        order = weight.argsort(descending=True, stable=True)
        order = order[stable_argsort(target[order])]
        sorted_target, sorted_weight = target[order], weight[order].double()
        first = torch.searchsorted(sorted_target, sorted_target)
        rank = torch.arange(target.numel(), device=target.device) - first
        attending = target[weight != 0].unique().numel()
        totals = torch.stack([sorted_weight[rank < k].sum() for k in ks])
        curves.append(totals / max(attending, 1))
    return torch.stack(curves, dim=1).to(alpha.dtype) if curves else alpha.new_empty(len(ks), 0)


@torch.no_grad()
def cumulative_full_attention(
    q: Tensor, k: Tensor, ks: Sequence[int], batch: Tensor | None = None, scale: float | None = None
) -> Tensor:
    r"""Returns the share of full softmax attention that goes to the :math:`k` keys with the largest inner products, averaged
    over the queries, for each :math:`k` and head, from the thesis "Bringing k-MIP Attention to Graph Transformers"
    (Sec. 6.7, Eq. 6.1 divided by the number of queries, Fig. 6.7).

    Args:
        q (torch.Tensor): The queries, :obj:`[N, H, d]`.
        k (torch.Tensor): The keys, :obj:`[N, H, d]`.
        ks (sequence of int): The numbers :math:`k`, from 1.
        batch (torch.Tensor, optional): The graph of each node, ascending, :obj:`[N]`. (default: :obj:`None`)
        scale (float, optional): The factor of the inner products. (default: :obj:`None`, :math:`1 / \sqrt{d}`)

    Returns:
        torch.Tensor: Shape :obj:`[len(ks), H]`.

    Example:
        >>> cumulative_full_attention(torch.zeros(4, 1, 2), torch.zeros(4, 1, 2), [1, 2, 8]).flatten()
        tensor([0.2500, 0.5000, 1.0000])
    """
    _check_vectors(q, k, k)
    _check_numbers(ks)
    total = q.new_zeros(len(ks), q.size(1), dtype=torch.float64)
    for _, scores in _score_chunks(q, k, batch, scale, width=1):
        cumulated = scores.softmax(-1).sort(dim=-1, descending=True).values.double().cumsum(-1)
        total += torch.stack([cumulated[..., min(number, scores.size(-1)) - 1].sum(-1) for number in ks])
    return (total / max(q.size(0), 1)).to(q.dtype)


@torch.no_grad()
def distance_to_full_attention(
    q: Tensor, k: Tensor, v: Tensor, ks: Sequence[int], batch: Tensor | None = None, scale: float | None = None
) -> Tensor:
    r"""Returns the Euclidean distance between the outputs of k-MIP attention and of full softmax attention, averaged over the
    nodes, for each :math:`k` and head, from the thesis "Bringing k-MIP Attention to Graph Transformers" (Sec. 6.7, Fig. 6.6).
    Graphs with at most :math:`k` nodes use full attention.

    Args:
        v (torch.Tensor): The values, :obj:`[N, H, d_v]`. The other arguments are those of :func:`cumulative_full_attention`.

    Returns:
        torch.Tensor: Shape :obj:`[len(ks), H]`.

    Example:
        >>> q, k, v = torch.ones(2, 1, 1), torch.tensor([[[3.0]], [[0.0]]]), torch.tensor([[[1.0]], [[0.0]]])
        >>> distance_to_full_attention(q, k, v, [1, 2]).flatten()
        tensor([0.0474, 0.0000])
    """
    _check_vectors(q, k, v)
    _check_numbers(ks)
    total = q.new_zeros(len(ks), q.size(1), dtype=torch.float64)
    widest = min(max(ks), q.size(0))
    for keys, scores in _score_chunks(q, k, batch, scale, width=max(1, widest * v.size(2))):
        values = v[keys].transpose(0, 1)  # [H, keys, d_v]
        full = scores.softmax(-1) @ values
        best, place = scores.topk(min(widest, scores.size(-1)), dim=-1)
        heads = torch.arange(q.size(1), device=q.device).view(-1, 1, 1)
        chosen = values[heads, place]  # [H, rows, k, d_v]
        for index, number in enumerate(ks):
            weight = best[..., :number].softmax(-1).unsqueeze(-1)
            out = (weight * chosen[..., :number, :]).sum(-2)
            total[index] += (out - full).norm(dim=-1).double().sum(-1)
    return (total / max(q.size(0), 1)).to(q.dtype)


def _score_chunks(
    q: Tensor, k: Tensor, batch: Tensor | None, scale: float | None, width: int
) -> Iterator[tuple[slice, Tensor]]:
    r"""Yields the nodes of a graph and the scores of a chunk of rows against all nodes, :obj:`[H, rows, nodes]`. The chunk size
    keeps the memory, at least :obj:`width` numbers per row and head, within the budget.
    """
    num_nodes, heads, dim = q.shape
    graph = Graph.from_tensors(torch.empty(2, 0, dtype=torch.long, device=q.device), num_nodes, batch=batch)
    scale = dim**-0.5 if scale is None else scale
    check_finite(scale=scale)
    ends = graph.segments.sizes.cumsum(0).tolist()
    for size, end in zip(graph.segments.sizes.tolist(), ends, strict=True):
        nodes = slice(end - size, end)
        keys = k[nodes].permute(1, 2, 0)
        for queries in q[nodes].split(max(1, _BUDGET // (max(heads, 1) * max(size, width)))):
            if size > 0:
                yield nodes, scale * (queries.transpose(0, 1) @ keys)


def _check_attention(edge_index: Tensor, alpha: Tensor, num_nodes: int) -> None:
    check_shape((Graph.from_tensors(edge_index, num_nodes).num_edges, 'heads'), alpha=alpha)


def _check_vectors(q: Tensor, k: Tensor, v: Tensor) -> None:
    if q.dim() != 3 or q.shape != k.shape or q.size(2) == 0:
        raise ArgumentError('k', f'shape {tuple(k.shape)} for q of shape {tuple(q.shape)}', '[N, H, d] for both, d > 0')
    check_shape((*q.shape[:2], 'channels'), v=v)


def _check_numbers(ks: Sequence[int]) -> None:
    if np.ndim(ks) != 1 or len(ks) == 0 or not all(is_whole(k, 1) for k in ks):
        raise ArgumentError('ks', repr(ks), 'a list of one or more whole numbers from 1')
