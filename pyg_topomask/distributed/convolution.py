r"""PyG convolutions on a sharded graph."""

from __future__ import annotations

from typing import Any

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

from pyg_topomask.distributed.shard import Shard
from pyg_topomask.errors import ArgumentError

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


def convolve_shard(conv: Any, x: Tensor, graph: Shard, **kwargs: Any) -> Any:
    r"""Returns the output of a PyG convolution at the nodes of this process, :obj:`[n, F]`. The processes first exchange the
    features of the halo, :obj:`F` numbers per node.

    Args:
        conv (MessagePassing): One of the convolutions above, :class:`~torch_geometric.nn.GCNConv` and
            :class:`~torch_geometric.nn.PNAConv`.
        x (torch.Tensor): The features of the nodes of this process, :obj:`[n, F]`.
        graph (Shard): The graph.
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
