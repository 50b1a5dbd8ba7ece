r"""Encoders of node and edge features, which GraphGym builds with the number of encoded channels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.nn import Embedding, Linear, Module, ModuleList
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.layer import BatchNorm1dEdge, BatchNorm1dNode, new_layer_config
from torch_geometric.utils.smiles import e_map, x_map

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.names.lookup import lookup
from pyg_topomask.graphgym.names.positional_encodings import (
    AppendingEncoder,
    EquivStableLapPENodeEncoder,
    LapPENodeEncoder,
    RWSENodeEncoder,
)
from pyg_topomask.utils.checks import check_whole


class LinearNodeEncoder(Module):
    r"""A linear map of the node features."""

    def __init__(self, emb_dim: int) -> None:
        super().__init__()
        self.encoder = Linear(cfg.share.dim_in, emb_dim)

    def forward(self, batch: Data) -> Data:
        batch.x = self.encoder(batch.x)
        return batch


class LinearEdgeEncoder(Module):
    r"""A linear map of the edge features, whose size is inferred from the data."""

    def __init__(self, emb_dim: int) -> None:
        super().__init__()
        if cfg.share.dim_edge < 1:
            given = f'{cfg.dataset.edge_encoder_name!r}, but the dataset {cfg.dataset.name!r} has no edge features'
            raise ArgumentError('dataset.edge_encoder_name', given, 'DummyEdge, and dataset.edge_encoder: False')
        self.encoder = Linear(cfg.share.dim_edge, emb_dim)

    def forward(self, batch: Data) -> Data:
        edge_attr = batch.edge_attr.to(self.encoder.weight.dtype)
        batch.edge_attr = self.encoder(edge_attr.view(-1, self.encoder.in_features))
        return batch


class _TypeDictEncoder(Module):
    attribute: str
    option: str

    def __init__(self, emb_dim: int) -> None:
        super().__init__()
        num_types = cfg.dataset[self.option]
        check_whole(1, **{f'dataset.{self.option}': num_types})
        self.encoder = Embedding(num_types, emb_dim)

    def forward(self, batch: Data) -> Data:
        types = batch[self.attribute]
        batch[self.attribute] = self.encoder(types if types.dim() == 1 else types[:, 0])
        return batch


class TypeDictNodeEncoder(_TypeDictEncoder):
    r"""One embedding for each of :obj:`dataset.node_encoder_num_types` integer node types."""

    attribute, option = 'x', 'node_encoder_num_types'


class TypeDictEdgeEncoder(_TypeDictEncoder):
    r"""One embedding for each of :obj:`dataset.edge_encoder_num_types` integer edge types."""

    attribute, option = 'edge_attr', 'edge_encoder_num_types'


class DummyEdgeEncoder(Module):
    r"""One learned vector for all edges, for layers that need edge features on data without them."""

    def __init__(self, emb_dim: int) -> None:
        super().__init__()
        self.encoder = Embedding(1, emb_dim)

    def forward(self, batch: Data) -> Data:
        batch.edge_attr = self.encoder(batch.edge_index.new_zeros(batch.edge_index.size(1)))
        return batch


class _Kinds(Module):
    r"""The sum of one embedding per column of integers."""

    def __init__(self, sizes: list[int], emb_dim: int) -> None:
        super().__init__()
        self.embeddings = ModuleList(Embedding(size, emb_dim) for size in sizes)

    def forward(self, kinds: Tensor) -> Tensor:
        return sum(embedding(kinds[:, column].long()) for column, embedding in enumerate(self.embeddings))


class SmilesNodeEncoder(Module):
    r"""The sum of one embedding for each of the nine atom features of :func:`torch_geometric.utils.from_smiles`, and of a
    linear map of additional columns, such as encodings appended by transforms.
    """

    def __init__(self, emb_dim: int) -> None:
        super().__init__()
        self.kinds = _Kinds([len(values) for values in x_map.values()], emb_dim)
        further = cfg.share.dim_in - len(x_map)
        self.further = Linear(further, emb_dim, bias=False) if further > 0 else None

    def forward(self, batch: Data) -> Data:
        x, count = batch.x, len(x_map)
        batch.x = self.kinds(x)
        if self.further is not None:
            batch.x = batch.x + self.further(x[:, count:].to(batch.x.dtype))
        return batch


class SmilesEdgeEncoder(Module):
    r"""The sum of one embedding for each of the three bond features of :func:`torch_geometric.utils.from_smiles`."""

    def __init__(self, emb_dim: int) -> None:
        super().__init__()
        self.kinds = _Kinds([len(values) for values in e_map.values()], emb_dim)

    def forward(self, batch: Data) -> Data:
        batch.edge_attr = self.kinds(batch.edge_attr)
        return batch


#: The options :obj:`cfg.topomask.svd`. GraphGPS's own statistics code would reject options at :obj:`cfg.posenc_SVDSE`.
SVD_OPTIONS: dict[str, Any] = {'rank': 16, 'dim_pe': 16, 'sign_flip': True, 'bipartite': False}


class SVDNodeEncoder(AppendingEncoder):
    r"""Appends a linear map of the structural encodings of :class:`~pyg_topomask.transforms.AddSVDEncoding` to the node
    features, with the options of :obj:`cfg.topomask.svd`:

    * :obj:`rank`: the rank of the stored encodings;
    * :obj:`dim_pe`: the number of output channels;
    * :obj:`sign_flip`: in training, multiply each pair of singular vectors of each graph by a random sign, because the signs
      are arbitrary, from `"Global Self-Attention as a Replacement for Graph Convolution" <https://arxiv.org/abs/2108.03348>`_;
    * :obj:`bipartite`: the graphs are bipartite, so the encodings have :obj:`rank` channels instead of twice as many.
    """

    def __init__(self, dim_emb: int, expand_x: bool = True) -> None:
        options = cfg.topomask.svd
        check_whole(1, **{'topomask.svd.rank': options.rank})
        super().__init__('topomask.svd', options, dim_emb, expand_x)
        self.rank = options.rank
        # Left and right singular vectors.
        self.num_sides = 1 if options.bipartite else 2
        self.sign_flip = options.sign_flip
        self.lin_svd = Linear(self.num_sides * self.rank, self.dim_pe)

    def encoding(self, batch: Data) -> Tensor:
        stored, size = batch.get('svd_encoding'), self.num_sides * self.rank
        if not isinstance(stored, Tensor) or stored.size(-1) != size:
            is_tensor = isinstance(stored, Tensor)
            given = f'svd_encoding of {stored.size(-1)} channels' if is_tensor else 'data without a tensor svd_encoding'
            listed = f'list {{AddSVDEncoding: {{rank: {self.rank}}}}} in topomask.transforms'
            accepted = f'svd_encoding of {size} channels: {listed}; rank and bipartite stand in topomask.svd'
            raise ArgumentError('SVDSE', given, accepted)
        if self.training and self.sign_flip:
            stored = stored * self._signs(batch, stored)
        out: Tensor = self.lin_svd(stored.to(self.lin_svd.weight.dtype))
        return out

    def _signs(self, batch: Data, encoding: Tensor) -> Tensor:
        r"""Draws one sign for each graph and each pair of singular vectors."""
        graph = getattr(batch, 'batch', None)
        num_graphs = 1 if graph is None else batch.num_graphs
        signs = 2.0 * torch.randint(2, (num_graphs, self.rank), device=encoding.device, dtype=encoding.dtype) - 1.0
        signs = signs.repeat(1, self.num_sides)
        return signs if graph is None else signs.index_select(0, graph)


#: Encoders of places in the graph, which have the last place in composed names such as :obj:`Atom+LapPE+SVDSE`.
APPENDING: dict[str, Callable[..., AppendingEncoder | EquivStableLapPENodeEncoder]] = {
    'EquivStableLapPE': EquivStableLapPENodeEncoder,
    'LapPE': LapPENodeEncoder,
    'RWSE': RWSENodeEncoder,
    'SVDSE': SVDNodeEncoder,
}


class ComposedEncoder(Module):
    r"""A node encoder, looked up when it is built, for the first channels, and one of :obj:`APPENDING` for the others."""

    def __init__(self, first: str, last: str, dim_emb: int) -> None:
        super().__init__()
        second = APPENDING[last](dim_emb, expand_x=False)
        self.encoder1 = node_encoder(first)(dim_emb - second.dim_pe)
        self.encoder2 = second

    def forward(self, batch: Data) -> Data:
        return self.encoder2(self.encoder1(batch))


#: Used for unregistered names. GraphGPS registers these names itself.
NODE_ENCODERS: dict[str, type[Module]] = {
    'EquivStableLapPE': EquivStableLapPENodeEncoder,
    'LapPE': LapPENodeEncoder,
    'LinearNode': LinearNodeEncoder,
    'RWSE': RWSENodeEncoder,
    'TypeDictNode': TypeDictNodeEncoder,
    'VOCNode': LinearNodeEncoder,
}
EDGE_ENCODERS: dict[str, type[Module]] = {
    'DummyEdge': DummyEdgeEncoder,
    'LinearEdge': LinearEdgeEncoder,
    'TypeDictEdge': TypeDictEdgeEncoder,
    'VOCEdge': LinearEdgeEncoder,
}

# GraphGPS's LinearEdge knows the size of the edge features of two datasets only. Under a name of our own, a YAML with
# any other dataset runs there as well.
register.edge_encoder_dict.setdefault('LinearEdgeAttr', LinearEdgeEncoder)
register.node_encoder_dict.setdefault('SmilesNode', SmilesNodeEncoder)
register.edge_encoder_dict.setdefault('SmilesEdge', SmilesEdgeEncoder)


def _lookup(option: str, name: str, *tables: dict[str, Any]) -> Callable[[int], Module]:
    if name in ('Atom', 'Bond') and find_spec('ogb') is None:
        raise ImportError(f'{option}: GraphGym needs the package ogb for {name!r}: pip install ogb')
    return lookup(option, name, *tables)


def node_encoder(name: str) -> Callable[[int], Module]:
    r"""Returns what builds the node encoder that a word of :obj:`dataset.node_encoder_name` names, with its channels."""
    first, _, last = str(name).rpartition('+')
    if first and last in APPENDING and name not in register.node_encoder_dict:
        node_encoder(first)
        return partial(ComposedEncoder, first, last)
    return _lookup('dataset.node_encoder_name', name, register.node_encoder_dict, NODE_ENCODERS)


def edge_encoder(name: str) -> Callable[[int], Module]:
    r"""Returns what builds the edge encoder that a word of :obj:`dataset.edge_encoder_name` names, with its channels."""
    return _lookup('dataset.edge_encoder_name', name, register.edge_encoder_dict, EDGE_ENCODERS)


class FeatureEncoder(Module):
    r"""Encodes node and edge features to :obj:`cfg.gnn.dim_inner` channels, as configured in :obj:`cfg.dataset`."""

    def __init__(self, dim_in: int) -> None:
        super().__init__()
        dim = cfg.gnn.dim_inner
        norm_config = new_layer_config(dim, -1, -1, has_act=False, has_bias=False, cfg=cfg)
        self.dim_out = dim_in
        if cfg.dataset.node_encoder:
            self.node_encoder = node_encoder(cfg.dataset.node_encoder_name)(dim)
            self.dim_out = dim
            if cfg.dataset.node_encoder_bn:
                self.node_encoder_bn = BatchNorm1dNode(norm_config)
        if cfg.dataset.edge_encoder:
            self.edge_encoder = edge_encoder(cfg.dataset.edge_encoder_name)(dim)
            if cfg.dataset.edge_encoder_bn:
                self.edge_encoder_bn = BatchNorm1dEdge(norm_config)

    def forward(self, batch: Data) -> Data:
        for module in self.children():
            batch = module(batch)
        return batch


def register_svd_encoders() -> None:
    r"""Registers :obj:`SVDSE`, and :obj:`X+SVDSE` for every registered node encoder :obj:`X`. It may be called again after more
    encoders are registered.
    """
    register.node_encoder_dict.setdefault('SVDSE', SVDNodeEncoder)
    for name in [*register.node_encoder_dict, *NODE_ENCODERS]:
        if isinstance(name, str) and 'SVDSE' not in name.split('+'):
            register.node_encoder_dict.setdefault(f'{name}+SVDSE', partial(ComposedEncoder, name, 'SVDSE'))


register_svd_encoders()
