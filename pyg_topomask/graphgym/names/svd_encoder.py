r"""The node encoder :obj:`SVDSE`, and its compositions with other node encoders."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import Linear, Module
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.names.encoders import NODE_ENCODERS, node_encoder
from pyg_topomask.utils.checks import check_whole

#: The options :obj:`cfg.topomask.svd`. GraphGPS's own statistics code would reject options at :obj:`cfg.posenc_SVDSE`.
SVD_OPTIONS: dict[str, Any] = {'rank': 16, 'dim_pe': 16, 'sign_flip': True, 'bipartite': False}


class SVDNodeEncoder(Module):
    r"""Appends a linear map of the structural encodings of :class:`~pyg_topomask.transforms.AddSVDEncoding` to the node
    features, with the options of :obj:`cfg.topomask.svd`:

    * :obj:`rank`: the rank of the stored encodings;
    * :obj:`dim_pe`: the number of output channels;
    * :obj:`sign_flip`: in training, multiply each pair of singular vectors of each graph by a random sign, because the signs
      are arbitrary, from `"Global Self-Attention as a Replacement for Graph Convolution" <https://arxiv.org/abs/2108.03348>`_;
    * :obj:`bipartite`: the graphs are bipartite, so the encodings have :obj:`rank` channels instead of twice as many.

    With :obj:`expand_x`, the node features are mapped to the remaining channels first. Otherwise, they already have this size.
    """

    def __init__(self, dim_emb: int, expand_x: bool = True) -> None:
        super().__init__()
        options = cfg.topomask.svd
        check_whole(1, **{'topomask.svd.rank': options.rank})
        check_whole(1, dim_emb - 1, **{'topomask.svd.dim_pe': options.dim_pe})  # below the encoded channels
        self.rank = options.rank
        # Left and right singular vectors.
        self.num_sides = 1 if options.bipartite else 2
        self.sign_flip = options.sign_flip
        self.lin_x = Linear(cfg.share.dim_in, dim_emb - options.dim_pe) if expand_x else None
        self.lin_svd = Linear(self.num_sides * self.rank, options.dim_pe)

    def forward(self, batch: Data) -> Data:
        encoding = self._encoding(batch)
        x = batch.x if self.lin_x is None else self.lin_x(batch.x.to(self.lin_x.weight.dtype))
        if self.training and self.sign_flip:
            encoding = encoding * self._signs(batch, encoding)
        batch.x = torch.cat([x, self.lin_svd(encoding.to(self.lin_svd.weight.dtype))], dim=-1)
        return batch

    def _encoding(self, batch: Data) -> Tensor:
        encoding = batch.get('svd_encoding')
        size = self.num_sides * self.rank
        if isinstance(encoding, Tensor) and encoding.size(-1) == size:
            return encoding
        is_tensor = isinstance(encoding, Tensor)
        raise ArgumentError(
            'SVDSE',
            f'svd_encoding of {encoding.size(-1)} channels' if is_tensor else 'data without a tensor svd_encoding',
            f'svd_encoding of {size} channels: list {{AddSVDEncoding: {{rank: {self.rank}}}}} in topomask.transforms; '
            'rank and bipartite stand in topomask.svd',
        )

    def _signs(self, batch: Data, encoding: Tensor) -> Tensor:
        r"""Draws one sign for each graph and each pair of singular vectors."""
        graph = getattr(batch, 'batch', None)
        num_graphs = 1 if graph is None else batch.num_graphs
        signs = 2.0 * torch.randint(2, (num_graphs, self.rank), device=encoding.device, dtype=encoding.dtype) - 1.0
        signs = signs.repeat(1, self.num_sides)
        return signs if graph is None else signs.index_select(0, graph)


class ComposedSVDEncoder(Module):
    r"""A node encoder, looked up when it is built, for the first channels, and :class:`SVDNodeEncoder` for the others."""

    def __init__(self, name: str, dim_emb: int) -> None:
        super().__init__()
        second = SVDNodeEncoder(dim_emb, expand_x=False)
        self.encoder1 = node_encoder(name, dim_emb - second.lin_svd.out_features)
        self.encoder2 = second

    def forward(self, batch: Data) -> Data:
        return self.encoder2(self.encoder1(batch))


def register_svd_encoders() -> None:
    r"""Registers :obj:`SVDSE`, and :obj:`X+SVDSE` for every registered node encoder :obj:`X`. It may be called again after more
    encoders are registered.
    """
    register.node_encoder_dict.setdefault('SVDSE', SVDNodeEncoder)
    for name in [*register.node_encoder_dict, *NODE_ENCODERS]:
        if isinstance(name, str) and 'SVDSE' not in name.split('+'):
            register.node_encoder_dict.setdefault(f'{name}+SVDSE', partial(ComposedSVDEncoder, name))


register_svd_encoders()
