r"""Local layers before the '+' in :obj:`gt.layer_type`, and attentions as layers of :obj:`model.type: gnn`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
import torch_geometric.nn as pyg_nn
from torch import Tensor
from torch.nn import Identity, Linear, Module, Sequential
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.layer import LayerConfig

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.names.attentions import (
    ATTENTIONS,
    build_attention,
    build_edge_weights,
    channels_per_head,
    edge_features,
)
from pyg_topomask.graphgym.names.lookup import lookup
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.nn.local_layers import GatedGCNConv, PositionalGINEConv


@dataclass(frozen=True)
class LocalLayer:
    r"""A PyG convolution in a GPS layer, built by ``build(channels, heads, act, edge_dim)``, where :obj:`act` returns an
    activation and :obj:`edge_dim` is :obj:`None` for graphs without encoded edge features. It ignores, uses or demands edge
    features, it may use edge weights, and it may read the encodings of :obj:`posenc_EquivStableLapPE`.
    """

    conv: type[pyg_nn.MessagePassing]
    build: Callable[[int, int, Callable[[], Module], int | None], pyg_nn.MessagePassing]
    edge_attr: Literal['ignores', 'uses', 'demands'] = 'ignores'
    edge_weight: bool = False
    positional: bool = False

    def edge_kwargs(self, data: Data, channels: int, weight: Tensor | None = None) -> dict[str, Tensor]:
        r"""Returns the edge features and weights, :obj:`[E]`, for the convolution, checked against its needs."""
        if self.edge_weight:
            return {} if weight is None else {'edge_weight': weight}
        if self.edge_attr == 'ignores' or (self.edge_attr == 'uses' and not cfg.dataset.edge_encoder):
            return {}
        edge_attr = data.get('edge_attr')
        if edge_attr is not None and edge_attr.dim() == 2 and edge_attr.size(1) == channels:
            return {'edge_attr': edge_attr}
        if self.edge_attr == 'uses':
            return {}
        given = 'none' if edge_attr is None else f'shape {list(edge_attr.shape)}'
        raise ArgumentError(
            'edge_attr',
            f'{given} for {self.conv.__name__}',
            f'[E, {channels}]',
            'set dataset.edge_encoder: True and dataset.edge_encoder_name to LinearEdgeAttr, or to DummyEdge for data without '
            'edge features, or choose a local layer that needs none, such as GCN',
        )


def _mlp(channels: int, act: Callable[[], Module]) -> Sequential:
    return Sequential(Linear(channels, channels), act(), Linear(channels, channels))


def _gine(channels: int, act: Callable[[], Module]) -> pyg_nn.GINEConv:
    mlp = _mlp(channels, act)
    return PositionalGINEConv(mlp, channels) if cfg.posenc_EquivStableLapPE.enable else pyg_nn.GINEConv(mlp)


def _pna(channels: int, edge_dim: int | None) -> pyg_nn.PNAConv:
    # GraphGPS's aggregators. With only the scaler 'identity', the degree histogram has no effect, but is required.
    degrees = torch.tensor(cfg.gt.pna_degrees or [0, 1])
    return pyg_nn.PNAConv(channels, channels, ['mean', 'max', 'sum'], ['identity'], degrees, edge_dim=edge_dim)


def _gat(conv: type[pyg_nn.MessagePassing]) -> LocalLayer:
    return LocalLayer(
        conv, lambda c, heads, act, edge_dim: conv(c, channels_per_head(c, heads), heads, edge_dim=edge_dim), 'uses'
    )


#: Local layers. :obj:`None` is no local layer.
LOCAL_LAYERS: dict[str, LocalLayer | None] = {
    'None': None,
    'GCN': LocalLayer(pyg_nn.GCNConv, lambda c, heads, act, edge_dim: pyg_nn.GCNConv(c, c), edge_weight=True),
    'SAGE': LocalLayer(pyg_nn.SAGEConv, lambda c, heads, act, edge_dim: pyg_nn.SAGEConv(c, c)),
    'GIN': LocalLayer(pyg_nn.GINConv, lambda c, heads, act, edge_dim: pyg_nn.GINConv(_mlp(c, act))),
    'GINE': LocalLayer(pyg_nn.GINEConv, lambda c, heads, act, edge_dim: _gine(c, act), 'demands', positional=True),
    'GENConv': LocalLayer(pyg_nn.GENConv, lambda c, heads, act, edge_dim: pyg_nn.GENConv(c, c), 'uses'),
    'GAT': _gat(pyg_nn.GATConv),
    'GATv2': _gat(pyg_nn.GATv2Conv),
    'GatedGCN': LocalLayer(
        pyg_nn.ResGatedGraphConv, lambda c, heads, act, edge_dim: pyg_nn.ResGatedGraphConv(c, c, edge_dim=edge_dim), 'uses'
    ),
    'CustomGatedGCN': LocalLayer(
        GatedGCNConv,
        lambda c, heads, act, edge_dim: GatedGCNConv(c, cfg.gt.dropout, act(), positional=cfg.posenc_EquivStableLapPE.enable),
        'demands',
        positional=True,
    ),
    'PNA': LocalLayer(pyg_nn.PNAConv, lambda c, heads, act, edge_dim: _pna(c, edge_dim), 'uses'),
}


def local_layer(name: str) -> LocalLayer | None:
    r"""Returns the entry :obj:`name` of :obj:`LOCAL_LAYERS`."""
    return lookup("gt.layer_type, before '+'", name, LOCAL_LAYERS)


class AttentionLayer(Module):
    r"""An attention as a GraphGym layer, with :obj:`cfg.gnn.att_heads` heads and the options of
    :obj:`cfg.topomask.<name>`. It is registered as :obj:`grf_attention`, :obj:`linear_attention` and so on. The layers of a
    forward pass share the prepared masks of the batch, such as random walks.
    """

    def __init__(self, name: str, layer_config: LayerConfig, **kwargs: Any) -> None:
        super().__init__()
        dim_in, dim_out = layer_config.dim_in, layer_config.dim_out
        self.lin = Identity() if dim_in == dim_out else Linear(dim_in, dim_out)
        self.attn = build_attention(name, dim_out, cfg.gnn.att_heads)
        self.edge_weights = build_edge_weights(name, self.attn, dim_out)

    def forward(self, batch: Data) -> Data:
        graph, x = Graph.shared(batch), self.lin(batch.x)
        if self.edge_weights is not None:
            graph = self.edge_weights.weigh(graph, batch.get('edge_attr'), x)
        batch.x = self.attn(x, graph.edge_index, batch=graph.batch, graph=graph, **edge_features(self.attn, batch))
        return batch


for _name in ATTENTIONS:
    register.layer_dict.setdefault(f'{_name.lower()}_attention', partial(AttentionLayer, _name))
