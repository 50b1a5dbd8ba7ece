r"""Attention and PyG convolutions on a graph that several processes hold, in place of those on a whole graph.

What a mask lets the processes send for attention:

- A mask of low rank: one sum over all nodes.
- Entries: the keys and the values of the halo.
- Any other mask: its product, which communicates by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.nn import (
    GATConv,
    GATv2Conv,
    GCNConv,
    GENConv,
    GINConv,
    GINEConv,
    GPSConv,
    GraphConv,
    PNAConv,
    ResGatedGraphConv,
    SAGEConv,
    TransformerConv,
)
from torch_geometric.nn.norm import (
    DiffGroupNorm,
    GraphNorm,
    GraphSizeNorm,
    InstanceNorm,
    LayerNorm,
    MeanSubtractionNorm,
    PairNorm,
)

from pyg_topomask.distributed.communication import sum_over_processes
from pyg_topomask.distributed.halo import ExtendedGraph, Halo, ShardEntries
from pyg_topomask.distributed.shard import Shard, ShardSegments, reporting
from pyg_topomask.distributed.walks import MOST
from pyg_topomask.errors import ArgumentError
from pyg_topomask.nn.edge_terms import EdgeTerms, TermsOfPairs, attention_with_edges_on
from pyg_topomask.nn.edge_weights import features_of_ends
from pyg_topomask.nn.gps_conv import check_layer, convolve
from pyg_topomask.nn.kmip_attention import KMIPAttention, topk_attention_on
from pyg_topomask.operators.base import LowRank, MaskOperator
from pyg_topomask.operators.description import describe
from pyg_topomask.operators.forms import Entries
from pyg_topomask.ops.masked_linear_attention import linear_attention_on
from pyg_topomask.ops.normalize import quotient, with_ones
from pyg_topomask.ops.routes.edges import attend_entries
from pyg_topomask.ops.routes.features import attend_features, features_at_a_time
from pyg_topomask.ops.routes.low_rank import ReadSums, SumOverNodes
from pyg_topomask.ops.softmax_attention import softmax_attention_on
from pyg_topomask.ops.softmax_entries import SoftmaxAttention, attend_pairs, attend_softmax, pattern_of_slots
from pyg_topomask.ops.topk.searches import search_chunked
from pyg_topomask.utils.precision import wide_dtype


@linear_attention_on.register
@reporting
def linear_attention(
    segments: ShardSegments, q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator, route: str, rows: Tensor | None
) -> Tensor:
    r"""Masked linear attention of the nodes of this process to all nodes, :obj:`[n, H, d]`."""
    graph = segments.shard
    offered = {'features': True, 'edges': mask.entries is not None, 'low_rank': mask.is_low_rank}
    names = [name for name, offers in offered.items() if offers]
    chosen = names[-1] if route == 'auto' else route
    if chosen not in names:
        raise ArgumentError('route', f'{route!r} for this mask on a sharded graph', ['auto', *names])
    graph.check_call(f'attention of {q.size(1)} heads, {q.size(2)} features, {v.size(2)} channels by {chosen}, {v.dtype}')
    dtype = wide_dtype(q, v)
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


#: What returns the terms that edges add to softmax attention, given the edges on extended nodes.
OfEdges: TypeAlias = Callable[[ExtendedGraph], TermsOfPairs]


def edge_terms_of(edge_terms: EdgeTerms, edge_attr: Tensor, flow: str) -> OfEdges:
    r"""Returns the terms of the edges of this process, which are those at its rows."""
    if flow != 'source_to_target':
        given = f'edge features for flow={flow!r} on a sharded graph, whose processes hold the edges to their nodes'
        raise ArgumentError('edge_attr', given, 'flow="source_to_target"')
    return lambda edges: edge_terms(edge_attr, edges, flow)


@softmax_attention_on.register
@reporting
def softmax_attention(segments: ShardSegments, q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator, dropout: float) -> Tensor:
    r"""Softmax attention of the nodes of this process over the entries of a mask, :obj:`[n, H, d]`."""
    return _attend_softmax(q, k, v, mask, dropout, segments.shard)


@attention_with_edges_on.register
@reporting
def attention_with_edges(
    graph: Shard,
    edge_terms: EdgeTerms,
    flow: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: MaskOperator,
    dropout: float,
    edge_attr: Tensor,
) -> Tensor:
    return _attend_softmax(q, k, v, mask, dropout, graph, edge_terms_of(edge_terms, edge_attr, flow))


def _attend_softmax(
    q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator, dropout: float, graph: Shard, of_edges: OfEdges | None = None
) -> Tensor:
    if mask.entries is None:
        raise ArgumentError(
            'mask',
            f'{mask!r}, whose entries no process has, for softmax attention on a sharded graph',
            'AdjacencyMask, ExpanderMask, HopMask, GRFMask(asymmetric=True), GRFMask and RWGNKMask with up to '
            f'{MOST} meetings of walks per visit, and sums and products of these',
        )
    added = '' if of_edges is None else ' and edge features'
    graph.check_call(f'softmax attention of {q.size(1)} heads, {q.size(2)} and {v.size(2)} channels{added}, {v.dtype}')
    attend: Callable[..., SoftmaxAttention] = attend_softmax
    if of_edges is None:
        entries, halo = _entries_of(mask)
    else:
        assert isinstance(mask.entries, ShardEntries)
        halo = graph.union(mask.entries.halo, graph.halo)
        entries = mask.entries.on(halo)()
        attend = of_edges(graph.edges_on(halo)).attend
    dtype = wide_dtype(q, v)
    with torch.autocast(device_type=q.device.type, enabled=False):
        key, value = halo.gather_all(k.to(dtype), v.to(dtype))
        out = attend(halo.pad(q.to(dtype)), key, value, entries, dropout).out
        return out[: q.size(0)].to(v.dtype)


@topk_attention_on.register
@reporting
def topk_attention(
    graph: Shard,
    layer: KMIPAttention,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    generator: torch.Generator | None,
    edge_attr: Tensor | None,
) -> Tensor:
    r"""Softmax attention of the nodes of this process to the keys of all nodes with the largest inner products,
    :obj:`[n, H, d]`. The keys travel from process to process, and each process keeps the best ones. Raises an error for an
    option of the layer that sharded graphs do not support.
    """
    others = {'similarity': 'distance', 'deterministic': True}
    refused = {name: value for name, value in others.items() if getattr(layer, name) == value}
    refused |= {name: value for name in ('random_fraction', 'extra_edges', 'diversity') if (value := getattr(layer, name))}
    if refused:
        name, value = next(iter(refused.items()))
        raise ArgumentError(name, f'{value!r} on a sharded graph', 'its default')
    q, k = layer.features(q, k, graph)
    of_edges = None
    if layer.edge_terms is not None and edge_attr is not None:
        of_edges = edge_terms_of(layer.edge_terms, edge_attr, layer.flow)
    num, dropout = layer.k_of_forward_pass(k), layer.attention_dropout if layer.training else 0.0
    added = '' if of_edges is None else ' and edge features'
    graph.check_call(f'attention to {num} keys of {q.size(1)} heads, {q.size(2)} and {v.size(2)} channels{added}, {v.dtype}')
    bad = graph.group.sum(torch.stack([(~x.isfinite()).sum() for x in (q, k)]))
    if bool(bad.any()):
        raise ArgumentError('x', f'features with {bad.tolist()} numbers that are not finite in queries and keys', 'finite ones')
    nodes = _search(q.detach(), k.detach(), min(num, graph.total_nodes), graph)
    columns = nodes.flatten() if of_edges is None else torch.cat([nodes.flatten(), graph.halo.nodes])
    halo = Halo.of_columns(graph.group, graph.offsets, columns)
    attend = attend_pairs if of_edges is None else of_edges(graph.edges_on(halo)).attend_by_head
    dtype = wide_dtype(k, v)
    keys, values = halo.gather_all(k.to(dtype), v.to(dtype))
    index = halo.pad(halo.extended(nodes.flatten()).view_as(nodes))
    chosen = torch.zeros_like(index, dtype=torch.bool)
    chosen[: q.size(0)] = True
    out = attend(halo.pad(q.to(dtype)), keys, values, pattern_of_slots(index, chosen), dropout).out
    return out[: q.size(0)].to(v.dtype)


def _search(q: Tensor, k: Tensor, num: int, graph: Shard) -> Tensor:
    r"""Returns the ids of the best keys of each query, :obj:`[n, H, num]`, whose order is that of the scores."""
    group = graph.group
    dtype = wide_dtype(q)
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


# Bipartite convolutions: the nodes of the process receive messages, and the extended nodes send them.
_BIPARTITE = (GATConv, GATv2Conv, GENConv, GINConv, GINEConv, GraphConv, ResGatedGraphConv, SAGEConv, TransformerConv)

# Normalizations over nodes that sharded graphs do not support.
_OTHER_NORMS = (DiffGroupNorm, GraphNorm, GraphSizeNorm, InstanceNorm, MeanSubtractionNorm, PairNorm)


def check_sees_all_nodes(module: torch.nn.Module, converted: bool = True) -> None:
    r"""Raises an error for a normalization over only the nodes of this process, or PyG's attention to these nodes.

    Args:
        module (torch.nn.Module): A layer or a model.
        converted (bool): Whether :func:`~pyg_topomask.distributed.convert_norms` was to replace those that it can.
            (default: :obj:`True`)
    """
    for name, child in module.named_modules():
        if isinstance(child, GPSConv) and child.attn_type in ('multihead', 'performer'):
            raise ArgumentError(
                name or 'attn_type',
                f'{child.attn_type!r}, which attends to the nodes of one process',
                'attn instead',
            )
        local = type(child) is torch.nn.BatchNorm1d or (type(child) is LayerNorm and child.mode == 'graph')
        if isinstance(child, _OTHER_NORMS) or (local and converted):
            raise ArgumentError(
                name or 'module',
                f'{type(child).__name__}, which normalizes by the nodes of one process',
                'BatchNorm and LayerNorm, which pyg_topomask.distributed.convert_norms(model, sharded) makes global',
            )


@convolve.register
@reporting
def convolve_shard(graph: Shard, conv: Any, x: Tensor, _: Any, **kwargs: Any) -> Any:
    r"""Returns the output of a PyG convolution at the nodes of this process, :obj:`[n, F]`. The processes first exchange the
    features of the halo, :obj:`F` numbers per node.

    Args:
        graph (Shard): The graph, whose edges take the place of others.
        conv (MessagePassing): One of the convolutions above, :class:`~torch_geometric.nn.GCNConv` and
            :class:`~torch_geometric.nn.PNAConv`.
        x (torch.Tensor): The features of the nodes of this process, :obj:`[n, F]`.
        **kwargs (optional): Passed on to the convolution, such as :obj:`edge_attr` of the edges of :obj:`graph.edge_index`.

    Raises:
        ValueError: If the convolution is not supported. Some use more than the incoming edges of a node. In all processes, if
            their convolutions differ when they are first used.
    """
    check_sees_all_nodes(conv)
    kind, edge_index = type(conv), graph.edge_index
    known = (*_BIPARTITE, GCNConv, PNAConv)
    if kind not in known or getattr(conv, 'flow', '') != 'source_to_target':
        names = ', '.join(sorted(each.__name__ for each in known))
        raise ArgumentError('conv', f'{kind.__name__} on a sharded graph', f'{names}, with flow="source_to_target"')
    graph.check_call(f'{" ".join(repr(conv).split())} of {x.size(1)} channels, {x.dtype}')
    if kind is GCNConv:
        edge_index, weight = _gcn_weights(conv, graph, kwargs.get('edge_weight'))
        sources = graph.halo.gather(conv.lin(x))
        out = conv.propagate(edge_index, x=sources, edge_weight=weight)[: graph.num_nodes]
        return out if conv.bias is None else out + conv.bias
    sources = graph.halo.gather(x)
    if kind is PNAConv:
        return conv(sources, edge_index, **kwargs)[: graph.num_nodes]
    return conv((sources, x), edge_index, **kwargs)


@features_of_ends.register
@reporting
def features_of_extended_nodes(graph: Shard, x: Tensor) -> Tensor:
    return graph.halo.gather(x)


@check_layer.register
def check_layer_on_shard(graph: Shard, layer: torch.nn.Module) -> None:
    check_sees_all_nodes(layer)


def _gcn_weights(conv: Any, graph: Shard, weight: Tensor | None) -> tuple[Tensor, Tensor | None]:
    r"""Returns the edges and the weights of :obj:`gcn_norm`, with the degrees of the whole graph."""
    edge_index = graph.edge_index
    if not conv.normalize:
        return edge_index, weight
    dtype = conv.lin.weight.dtype
    # As in PyG, self-loops have the weight 1 if the edges have no weights.
    loop = 2.0 if conv.improved and weight is not None else 1.0
    weight = torch.ones(edge_index.size(1), dtype=dtype, device=edge_index.device) if weight is None else weight
    if conv.add_self_loops:
        # A node with a self-loop keeps the weight of the last one.
        source, target = edge_index
        loops = source == target
        nodes = torch.arange(graph.num_nodes, device=source.device)
        of_loops = weight.new_full((graph.num_nodes,), loop)
        of_loops[source[loops]] = weight[loops]
        edge_index = torch.cat([edge_index[:, ~loops], nodes.expand(2, -1)], dim=1)
        weight = torch.cat([weight[~loops], of_loops])
    source, target = edge_index
    degree = graph.halo.gather(weight.new_zeros(graph.num_nodes).index_add(0, target, weight))
    inverse = degree.pow(-0.5).masked_fill(degree == 0, 0.0)
    return edge_index, inverse[source] * weight * inverse[target]
