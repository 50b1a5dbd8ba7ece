r"""The networks of a YAML: :obj:`TopoGPSModel`, :obj:`CustomGNN`, and the models of :mod:`pyg_topomask.nn.models`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.nn import GELU, Identity, LeakyReLU, Linear, Module, ModuleList, ReLU, Sequential, SiLU
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.gnn import GNNPreMP
from torch_geometric.nn import GINEConv

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.names.attentions import check_attention, gps_attention_kwargs
from pyg_topomask.graphgym.names.encoders import FeatureEncoder, edge_encoder, node_encoder
from pyg_topomask.graphgym.names.heads import HEADS, find_head
from pyg_topomask.graphgym.names.layers import LocalLayer, local_layer
from pyg_topomask.graphgym.names.lookup import construct, decoded, lookup, registered
from pyg_topomask.graphgym.names.masks import build_mask, configured_tree
from pyg_topomask.graphgym.names.positional_encodings import POSITIONS
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import ExpanderMask, GRFMask, Mask, RWGNKMask
from pyg_topomask.nn import TopoGPSConv
from pyg_topomask.nn.local_layers import GatedGCNConv
from pyg_topomask.nn.models import GKAT, Interlacer, TopologicalViT, ViViT
from pyg_topomask.utils.checks import is_whole
from pyg_topomask.utils.random import wrapped_seed

#: Used for unregistered names. GraphGPS registers these names itself.
ACTIVATIONS: dict[str, Callable[[], Module]] = {'gelu': GELU, 'swish': SiLU, 'lrelu_03': lambda: LeakyReLU(0.3)}


@contextmanager
def registered_activations() -> Iterator[None]:
    r"""A block in which GraphGym's own layers find :obj:`ACTIVATIONS`."""
    with registered(register.act_dict, ACTIVATIONS):
        yield


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
            given = f'{channels} and {cfg.gnn.dim_inner} for {dim} channels of encoded nodes'
            accepted = 'equal numbers, of which dataset.node_encoder or gnn.layers_pre_mp changes the last'
            raise ArgumentError('gt.dim_hidden, gnn.dim_inner', given, accepted)

        if cfg.gt.layer_norm and cfg.gt.batch_norm:
            raise ArgumentError('gt.layer_norm, gt.batch_norm', 'True for both', 'True for one of them')
        norm = 'layer_norm' if cfg.gt.layer_norm else 'batch_norm' if cfg.gt.batch_norm else None
        act = lookup('gnn.act', cfg.gnn.act, register.act_dict)
        edge_dim = channels if cfg.dataset.edge_encoder else None
        self.layers = ModuleList(
            TopoGPSConv(
                channels,
                local.build(channels, heads, act, edge_dim) if local else None,
                heads=heads,
                dropout=cfg.gt.dropout,
                act=act(),
                norm=norm,
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


def _build(model: Callable[..., Module], **sizes: Any) -> Any:
    r"""Builds the model :obj:`cfg.model.type` with the arguments :obj:`cfg.topomask.model`, and the sizes of the data."""
    return construct('topomask.model', model, cfg.topomask.model, **sizes)


def _layer_mask() -> Callable[[int], Mask] | None:
    r"""Returns a function that creates the mask :obj:`cfg.topomask.mask` of each layer, with separate walks, or :obj:`None`."""
    tree = configured_tree(cfg.topomask.Masked.mask)
    if not tree:
        return None
    heads = decoded(cfg.topomask.model.get('heads', 1))
    if not is_whole(heads, 1):
        raise ArgumentError('topomask.model.heads', repr(heads), 'whole numbers from 1')

    def make(layer: int) -> Mask:
        mask = build_mask(tree, heads)
        for module in mask.modules():
            if isinstance(module, ExpanderMask | GRFMask | RWGNKMask):
                module.seed = wrapped_seed(module.seed + (layer << 48))  # far from those of other masks and of factors
        return mask

    return make


def _images(batch: Data, height: int, width: int) -> Tensor:
    r"""Returns the features of graphs of pixels, row by row, as images of shape :obj:`[B, channels, height, width]`."""
    sizes = batch.ptr.diff()
    wrong = sizes[sizes != height * width]
    shapes = batch.grid_shape.unique(dim=0).tolist() if 'grid_shape' in batch else []
    if wrong.numel() > 0:
        given = f'a graph of {int(wrong[0])} nodes'
        accepted = 'the height and the width of the grid that every graph is, one node for each pixel, row by row'
        raise ArgumentError('topomask.model.image_size', f'{[height, width]} for {given}', accepted)
    if any(shape != [height, width] for shape in shapes):
        given = f'{[height, width]} for grids of the shapes {shapes}'
        raise ArgumentError('topomask.model.image_size', given, 'the height and the width of every grid')
    return batch.x.view(sizes.numel(), height, width, -1).permute(0, 3, 1, 2)


class ImageModel(Module):
    r"""A :class:`~pyg_topomask.nn.models.TopologicalViT` on graphs of pixels. The features of a pixel are the channels of the
    image. Edges are ignored, because masks use the grid of patches.
    """

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.model: TopologicalViT = _build(TopologicalViT, in_channels=dim_in, num_classes=dim_out, mask=_layer_mask())

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        return self.model(_images(batch, *self.model.embedding.shape[1:])), batch.y


class VideoModel(Module):
    r"""A :class:`~pyg_topomask.nn.models.ViViT` on graphs of pixels with the concatenated features of all frames."""

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        frames = decoded(cfg.topomask.model.get('num_frames', 1))
        if not is_whole(frames, 1) or dim_in % frames != 0:
            raise ArgumentError('topomask.model.num_frames', f'{frames!r} for {dim_in} features of a pixel', 'divisors of that')
        self.model: ViViT = _build(ViViT, in_channels=dim_in // frames, num_classes=dim_out, mask=_layer_mask())

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        frames, channels, *size = self.model.shape
        return self.model(_images(batch, *size).unflatten(1, (frames, channels))), batch.y


class ParticleModel(Module):
    r"""An :class:`~pyg_topomask.nn.models.Interlacer` on graphs of particles in the format of
    :class:`~pyg_topomask.apps.datasets.ClothRollouts`. It predicts the positions :obj:`target` step by step.
    """

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.model: Interlacer = _build(Interlacer, in_channels=dim_in + cfg.share.dim_history)

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        for key in ('pos', 'history', 'target'):
            if key not in batch:
                raise ArgumentError(f'model.type {cfg.model.type}', f'data without {key}', 'data with it, such as cloth')
        steps = batch.target.size(1)
        predicted = self.model.rollout(batch.pos, batch.history, steps, batch.x, batch.batch)
        return predicted.flatten(1), batch.target.flatten(1)


class GKATModel(Module):
    r"""A :class:`~pyg_topomask.nn.models.GKAT`, with :obj:`readout: null` for tasks on nodes, after any node encoder."""

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.encoder = FeatureEncoder(dim_in)
        self.model: GKAT = _build(GKAT, in_channels=self.encoder.dim_out, out_channels=dim_out)
        readout = self.model.readout
        if (readout is None) != (cfg.dataset.task == 'node'):
            given = f'{readout!r} for dataset.task {cfg.dataset.task!r}'
            raise ArgumentError('topomask.model.readout', given, 'null for the task node, and a readout for the task graph')

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        batch = self.encoder(batch)
        out = self.model(batch.x, batch.edge_index, graph=Graph.from_data(batch))
        mask = f'{batch.split}_mask'
        return (out[batch[mask]], batch.y[batch[mask]]) if mask in batch else (out, batch.y)


#: Networks by the value of :obj:`model.type`, built with the sizes of the raw node features and of the prediction.
MODELS: dict[str, type[Module]] = {
    'TopologicalViT': ImageModel,
    'ViViT': VideoModel,
    'Interlacer': ParticleModel,
    'GKAT': GKATModel,
}


for _name, _model in MODELS.items():
    register.network_dict.setdefault(_name, _model)
