r"""The networks :obj:`TopoGPSModel` and :obj:`CustomGNN`, with the prediction heads and activations of GraphGPS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch.nn.functional as F
from torch import Tensor
from torch.nn import GELU, Identity, LeakyReLU, Linear, Module, ModuleList, ReLU, Sequential, SiLU
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.gnn import GNNPreMP
from torch_geometric.graphgym.models.layer import MLP, new_layer_config
from torch_geometric.nn import GINEConv

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.names.attentions import check_attention, gps_attention_kwargs
from pyg_topomask.graphgym.names.encoders import FeatureEncoder, edge_encoder, node_encoder
from pyg_topomask.graphgym.names.layers import LocalLayer, local_layer
from pyg_topomask.graphgym.names.lookup import lookup, registered
from pyg_topomask.graphgym.names.positional_encodings import POSITIONS
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.nn import TopoGPSConv
from pyg_topomask.nn.local_layers import GatedGCNConv

#: Used for unregistered names. GraphGPS registers these names itself.
ACTIVATIONS: dict[str, Callable[[], Module]] = {'gelu': GELU, 'swish': SiLU, 'lrelu_03': lambda: LeakyReLU(0.3)}


@contextmanager
def registered_activations() -> Iterator[None]:
    r"""A block in which GraphGym's own layers find :obj:`ACTIVATIONS`."""
    with registered(register.act_dict, ACTIVATIONS):
        yield


class PyramidGraphHead(Module):
    r"""Pools the nodes of each graph and predicts with an MLP that halves the width twice."""

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.pool = lookup('model.graph_pooling', cfg.model.graph_pooling, register.pooling_dict)
        act = lookup('gnn.act', cfg.gnn.act, register.act_dict)
        self.mlp = Sequential(
            Linear(dim_in, dim_in // 2), act(), Linear(dim_in // 2, dim_in // 4), act(), Linear(dim_in // 4, dim_out)
        )

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        batch.graph_feature = self.mlp(self.pool(batch.x, batch.batch, batch.num_graphs))
        return batch.graph_feature, batch.y


class InductiveNodeHead(Module):
    r"""Predicts for every node of a graph, if all nodes of a graph belong to the same split."""

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        config = new_layer_config(dim_in, dim_out, cfg.gnn.layers_post_mp, has_act=False, has_bias=True, cfg=cfg)
        self.mlp = MLP(config)

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        batch = self.mlp(batch)
        return batch.x, batch.y


#: Used for unregistered names. GraphGPS registers these names itself.
HEADS: dict[str, type[Module]] = {'san_graph': PyramidGraphHead, 'inductive_node': InductiveNodeHead}


def find_head() -> type[Module]:
    r"""Returns the head :obj:`cfg.gnn.head`."""
    # GraphGym replaces 'default' when it loads a file. A configuration created in Python may still contain it.
    name = cfg.dataset.task if cfg.gnn.head == 'default' else cfg.gnn.head
    return lookup('gnn.head', name, register.head_dict, HEADS)


@contextmanager
def registered_modules() -> Iterator[None]:
    r"""A block in which GraphGym's own network, :obj:`model.type: gnn`, finds the encoders, heads and activations of this
    package, or raises an error that names the option whose word is unknown.
    """
    if cfg.model.type != 'gnn':
        yield
        return
    node, edge = cfg.dataset.node_encoder_name, cfg.dataset.edge_encoder_name
    with (
        registered(register.node_encoder_dict, {node: node_encoder(node)} if cfg.dataset.node_encoder else {}),
        registered(register.edge_encoder_dict, {edge: edge_encoder(edge)} if cfg.dataset.edge_encoder else {}),
        registered(register.head_dict, HEADS),
        registered_activations(),
    ):
        yield


def split_layer_type(layer_type: str) -> tuple[str, str]:
    r"""Returns the names of the local layer and of the attention in :obj:`gt.layer_type`."""
    names = layer_type.split('+')
    if len(names) != 2:
        raise ArgumentError('gt.layer_type', repr(layer_type), "'<local layer>+<attention>', such as 'GINE+GRF'")
    if names == ['None', 'None']:
        raise ArgumentError('gt.layer_type', "'None+None'", 'a local layer, an attention, or both')
    local_layer(names[0])
    check_attention(names[1])
    return names[0], names[1]


def _norm() -> str | None:
    if cfg.gt.layer_norm and cfg.gt.batch_norm:
        raise ArgumentError('gt.layer_norm, gt.batch_norm', 'True for both', 'True for one of them')
    return 'layer_norm' if cfg.gt.layer_norm else 'batch_norm' if cfg.gt.batch_norm else None


def _check_positions(local: str, reads_positions: bool) -> None:
    if not reads_positions:
        given = f'True with the local layer {local}, which does not read these encodings'
        raise ArgumentError('posenc_EquivStableLapPE.enable', given, 'True with GINE and CustomGatedGCN, and False')
    name = cfg.dataset.node_encoder_name if cfg.dataset.node_encoder else None
    if 'EquivStableLapPE' not in str(name).split('+'):
        accepted = 'encoders such as LinearNode+EquivStableLapPE'
        raise ArgumentError('dataset.node_encoder_name', f'{name!r} with posenc_EquivStableLapPE.enable: True', accepted)


def encoders(dim_in: int) -> tuple[FeatureEncoder, Module, int]:
    r"""Returns the encoder of features, the layers before message passing, and the number of channels after both."""
    encoder = FeatureEncoder(dim_in)
    if cfg.gnn.layers_pre_mp == 0:
        return encoder, Identity(), encoder.dim_out
    return encoder, GNNPreMP(encoder.dim_out, cfg.gnn.dim_inner, cfg.gnn.layers_pre_mp), cfg.gnn.dim_inner


class TopoGPSModel(Module):
    r"""The GPS graph Transformer from the `"Recipe for a General, Powerful, Scalable Graph Transformer"
    <https://arxiv.org/abs/2205.12454>`_ paper, with any global attention of this package.

    It consists of a feature encoder, :obj:`gnn.layers_pre_mp` layers before message passing, :obj:`gt.layers` layers of
    :class:`~pyg_topomask.nn.TopoGPSConv`, and a head. It reads the same options as GraphGPS: :obj:`gt.layer_type` names the
    local layer and the attention, and :obj:`gt.n_heads`, :obj:`gt.dim_hidden`, :obj:`gt.dropout`, :obj:`gt.attn_dropout`,
    :obj:`gt.layer_norm`, :obj:`gt.batch_norm` and :obj:`gnn.*` have the same meaning. The layers share the prepared masks of a
    batch, such as random walks.
    """

    @registered_activations()
    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        channels, heads = cfg.gt.dim_hidden, cfg.gt.n_heads
        self.local_name, attention_name = split_layer_type(cfg.gt.layer_type)
        local = local_layer(self.local_name)
        self.channels = channels

        if cfg.posenc_EquivStableLapPE.enable:
            _check_positions(self.local_name, bool(local and local.positional))

        self.encoder, self.pre_mp, dim = encoders(dim_in)
        if not channels == cfg.gnn.dim_inner == dim:
            raise ArgumentError(
                'gt.dim_hidden, gnn.dim_inner',
                f'{channels} and {cfg.gnn.dim_inner} for {dim} channels of encoded nodes',
                'equal numbers, of which dataset.node_encoder or gnn.layers_pre_mp changes the last',
            )

        act = lookup('gnn.act', cfg.gnn.act, register.act_dict)
        edge_dim = channels if cfg.dataset.edge_encoder else None
        self.layers = ModuleList(
            TopoGPSConv(
                channels,
                local.build(channels, heads, act, edge_dim) if local else None,
                heads=heads,
                dropout=cfg.gt.dropout,
                act=act(),
                norm=_norm(),
                **gps_attention_kwargs(attention_name, channels, heads, cfg.gt.attn_dropout),
            )
            for _ in range(cfg.gt.layers)
        )
        self.post_mp = find_head()(dim_in=channels, dim_out=dim_out)

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        batch = self.pre_mp(self.encoder(batch))
        local = local_layer(self.local_name)
        graph = batch.sharded if 'sharded' in batch else Graph.from_data(batch)
        conv_kwargs = local.edge_kwargs(batch, self.channels, graph.edge_weight) if local else {}
        if local and local.positional and cfg.posenc_EquivStableLapPE.enable:
            conv_kwargs['pe'] = batch[POSITIONS]
        if any(layer.reads_edge_attr for layer in self.layers):
            conv_kwargs['edge_attr'] = batch.get('edge_attr')
        x = batch.x
        for layer in self.layers:
            x = layer(x, graph.edge_index, batch.batch, graph=graph, **conv_kwargs)
            if isinstance(x, tuple):
                x, conv_kwargs['edge_attr'] = x
        batch.x = x
        return self.post_mp(batch)


register.network_dict.setdefault('TopoGPSModel', TopoGPSModel)


#: The words of :obj:`gnn.layer_type`, and the local layer with the same needs.
LAYERS: dict[str, LocalLayer | None] = {'gatedgcnconv': local_layer('CustomGatedGCN'), 'gineconv': local_layer('GINE')}


class CustomGNN(Module):
    r"""GraphGPS's network without attention: a feature encoder, :obj:`gnn.layers_pre_mp` layers before message passing,
    :obj:`gnn.layers_mp` layers of message passing along edges with features, and a head. With the word :obj:`gatedgcnconv` of
    :obj:`gnn.layer_type`, the layers are :class:`~pyg_topomask.nn.GatedGCNConv`, and with :obj:`gineconv`
    :class:`~torch_geometric.nn.GINEConv` and a ReLU. Both have :obj:`gnn.dropout` and, with :obj:`gnn.residual`, residual
    connections.
    """

    @registered_activations()
    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        lookup('gnn.layer_type', cfg.gnn.layer_type, LAYERS)
        channels = cfg.gnn.dim_inner
        self.encoder, self.pre_mp, dim = encoders(dim_in)
        if dim != channels:
            accepted = 'their number, or dataset.node_encoder or gnn.layers_pre_mp, which changes it'
            raise ArgumentError('gnn.dim_inner', f'{channels} for {dim} channels of encoded nodes', accepted)
        self.layers = ModuleList(_layer(channels) for _ in range(cfg.gnn.layers_mp))
        self.post_mp = find_head()(dim_in=channels, dim_out=dim_out)

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        batch = self.pre_mp(self.encoder(batch))
        needs = LAYERS[cfg.gnn.layer_type]
        assert needs is not None
        x, edge_attr = batch.x, needs.edge_kwargs(batch, cfg.gnn.dim_inner)['edge_attr']
        for layer in self.layers:
            if isinstance(layer, GatedGCNConv):
                x, edge_attr = layer(x, batch.edge_index, edge_attr)
            else:
                out = F.dropout(layer(x, batch.edge_index, edge_attr).relu(), cfg.gnn.dropout, self.training)
                x = x + out if cfg.gnn.residual else out
        batch.x = x
        return self.post_mp(batch)


def _layer(channels: int) -> Module:
    if cfg.gnn.layer_type == 'gatedgcnconv':
        return GatedGCNConv(channels, cfg.gnn.dropout, residual=cfg.gnn.residual)
    return GINEConv(Sequential(Linear(channels, channels), ReLU(), Linear(channels, channels)))


# GraphGPS raises an error for its own names if they are registered already.
register.network_dict.setdefault('CustomGNN', CustomGNN)
