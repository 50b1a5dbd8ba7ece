r"""Attention on a graph that several processes hold: what a mask lets the processes send.

- A mask of low rank: one sum over all nodes.
- Entries: the keys and the values of the halo.
- Any other mask: its product, which communicates by itself.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.distributed.communication import sum_over_processes
from pyg_topomask.distributed.halo import Halo, ShardEntries
from pyg_topomask.distributed.shard import Shard
from pyg_topomask.distributed.walks import MOST
from pyg_topomask.errors import ArgumentError
from pyg_topomask.nn.kmip_attention import KMIPAttention
from pyg_topomask.operators.base import LowRank, MaskOperator
from pyg_topomask.operators.description import describe
from pyg_topomask.operators.forms import Entries
from pyg_topomask.ops.normalize import quotient, with_ones
from pyg_topomask.ops.routes.edges import attend_entries
from pyg_topomask.ops.routes.features import attend_features, features_at_a_time
from pyg_topomask.ops.routes.low_rank import ReadSums, SumOverNodes
from pyg_topomask.ops.softmax_entries import attend_pairs, attend_softmax, pattern_of_slots
from pyg_topomask.ops.topk.searches import search_chunked


def linear_attention(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator, route: str, graph: Shard) -> Tensor:
    r"""Masked linear attention of the nodes of this process to all nodes, :obj:`[n, H, d]`. The arguments are those of
    :func:`~pyg_topomask.ops.masked_linear_attention`.
    """
    offered = {'features': True, 'edges': mask.entries is not None, 'low_rank': mask.is_low_rank}
    names = [name for name, offers in offered.items() if offers]
    chosen = names[-1] if route == 'auto' else route
    if chosen not in names:
        raise ArgumentError('route', f'{route!r} for this mask on a sharded graph', ['auto', *names])
    graph.check_call(f'attention of {q.size(1)} heads, {q.size(2)} features, {v.size(2)} channels by {chosen}, {v.dtype}')
    dtype = torch.promote_types(torch.promote_types(q.dtype, v.dtype), torch.float32)
    with torch.autocast(device_type=q.device.type, enabled=False):
        q, k, values = q.to(dtype), k.to(dtype), v.to(dtype)
        if chosen == 'low_rank':
            factors = mask.low_rank
            assert factors is not None
            out = _attend_low_rank(q, k, values, factors, graph)
        elif chosen == 'edges':
            entries, halo = _entries_of(mask)
            arguments = (halo.pad(q), *halo.gather_all(k, values), [entries.values.to(dtype)])
            out = attend_entries(*arguments, entries.positions)[0][: q.size(0)]
        else:
            # As many at a time in all processes, which then communicate as often.
            width = torch.tensor(features_at_a_time(max(graph.sizes) * v.size(1) * (v.size(2) + 1)))
            tensors, text = describe(mask)
            out = attend_features(q, k, values, tensors, [width], text)[0]
        return out.to(v.dtype)


def _attend_low_rank(q: Tensor, k: Tensor, v: Tensor, factors: LowRank, graph: Shard) -> Tensor:
    left, right = (factor.to(q.dtype).expand(-1, q.size(1), -1) for factor in (factors.left, factors.right))
    sums = SumOverNodes.apply(k, with_ones(v), right)
    with torch.no_grad():
        sizes = torch.einsum('nhm,nhr->rhm', k.abs(), right.abs()).unsqueeze(-1)
    sums, sizes = sum_over_processes(torch.cat([sums, sizes], dim=-1), graph.group).split([v.size(-1) + 1, 1], dim=-1)
    numerator, denominator = ReadSums.apply(q, sums, left).split([v.size(-1), 1], dim=-1)
    with torch.no_grad():
        magnitude = torch.einsum('nhm,rhm,nhr->nh', q.abs(), sizes.squeeze(-1), left.abs()).unsqueeze(-1)
    return quotient(numerator, denominator, magnitude)


def _entries_of(mask: MaskOperator) -> tuple[Entries, Halo]:
    entries = mask.entries
    assert isinstance(entries, ShardEntries)
    return entries(), entries.halo


def softmax_attention(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator, dropout: float, graph: Shard) -> Tensor:
    r"""Softmax attention of the nodes of this process over the entries of a mask, :obj:`[n, H, d]`. The arguments are those of
    :func:`~pyg_topomask.ops.masked_softmax_attention`.
    """
    if mask.entries is None:
        raise ArgumentError(
            'mask',
            f'{mask!r}, whose entries no process has, for softmax attention on a sharded graph',
            'AdjacencyMask, ExpanderMask, HopMask, GRFMask(asymmetric=True), GRFMask and RWGNKMask with up to '
            f'{MOST} meetings of walks per visit, and sums and products of these',
        )
    graph.check_call(f'softmax attention of {q.size(1)} heads, {q.size(2)} and {v.size(2)} channels, {v.dtype}')
    entries, halo = _entries_of(mask)
    dtype = torch.promote_types(torch.promote_types(q.dtype, v.dtype), torch.float32)
    with torch.autocast(device_type=q.device.type, enabled=False):
        key, value = halo.gather_all(k.to(dtype), v.to(dtype))
        out, _ = attend_softmax(halo.pad(q.to(dtype)), key, value, entries, dropout)
        return out[: q.size(0)].to(v.dtype)


def topk_attention_of(layer: KMIPAttention, q: Tensor, k: Tensor, v: Tensor, graph: Shard) -> Tensor:
    r"""Attention of a layer to the keys of all nodes. Raises an error for an option that sharded graphs do not support."""
    others = {'similarity': 'distance', 'deterministic': True}
    chosen = {name: value for name, value in others.items() if getattr(layer, name) == value}
    chosen |= {name: value for name in ('random_fraction', 'extra_edges', 'diversity') if (value := getattr(layer, name))}
    if chosen:
        name, value = next(iter(chosen.items()))
        raise ArgumentError(name, f'{value!r} on a sharded graph', 'its default')
    q, k = layer.features(q, k, graph)
    return topk_attention(q, k, v, layer.k_of_forward_pass(k), layer.attention_dropout if layer.training else 0.0, graph)


def topk_attention(q: Tensor, k: Tensor, v: Tensor, num: int, dropout: float, graph: Shard) -> Tensor:
    r"""Softmax attention of the nodes of this process to the :obj:`num` keys of all nodes with the largest inner products,
    :obj:`[n, H, d]`. The keys travel from process to process, and each process keeps the best ones.
    """
    graph.check_call(f'attention to {num} keys of {q.size(1)} heads, {q.size(2)} and {v.size(2)} channels, {v.dtype}')
    bad = graph.group.sum(torch.stack([(~x.isfinite()).sum() for x in (q, k)]))
    if bool(bad.any()):
        raise ArgumentError('x', f'features with {bad.tolist()} numbers that are not finite in queries and keys', 'finite ones')
    nodes = _search(q.detach(), k.detach(), min(num, graph.total_nodes), graph)
    halo = Halo.of_columns(graph.group, graph.offsets, nodes.flatten())
    dtype = torch.promote_types(torch.promote_types(k.dtype, v.dtype), torch.float32)
    keys, values = halo.gather_all(k.to(dtype), v.to(dtype))
    index = halo.pad(halo.extended(nodes.flatten()).view_as(nodes))
    chosen = torch.zeros_like(index, dtype=torch.bool)
    chosen[: q.size(0)] = True
    out, _ = attend_pairs(halo.pad(q.to(dtype)), keys, values, pattern_of_slots(index, chosen), dropout)
    return out[: q.size(0)].to(v.dtype)


def _search(q: Tensor, k: Tensor, num: int, graph: Shard) -> Tensor:
    r"""Returns the ids of the best keys of each query, :obj:`[n, H, num]`, whose order is that of the scores."""
    group = graph.group
    dtype = torch.promote_types(q.dtype, torch.float32)
    q, keys = q.to(dtype).transpose(0, 1).contiguous(), k.to(dtype).transpose(0, 1).contiguous()
    shapes = [(q.size(0), size, q.size(2)) for size in graph.sizes]
    score = q.new_empty(*q.shape[:2], 0)
    node = torch.empty(score.shape, dtype=torch.long, device=q.device)
    for round_ in range(group.size):
        source = (group.rank - round_) % group.size
        found = torch.zeros(*q.shape[:2], min(num, keys.size(1)), dtype=torch.long, device=q.device)
        for head in range(q.size(0)):
            search_chunked(q[head], keys[head], 2**22, found[head])
        of_found = torch.stack([(q[head].unsqueeze(1) * keys[head][found[head]]).sum(-1) for head in range(q.size(0))])
        score, node = torch.cat([score, of_found], -1), torch.cat([node, found + int(graph.offsets[source])], -1)
        score, order = score.topk(min(num, score.size(-1)), dim=-1)
        node = node.gather(-1, order)
        if round_ + 1 < group.size:
            keys = group.shift(keys, shapes, round_)
    return node.transpose(0, 1)
