r"""The network :obj:`custom_gnn` of GraphGPS's configurations, for use without GraphGPS."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module, ModuleList, ReLU, Sequential
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.nn import GINEConv

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.names.activations import registered_activations
from pyg_topomask.graphgym.names.layers import LocalLayer, local_layer
from pyg_topomask.graphgym.names.lookup import lookup
from pyg_topomask.graphgym.names.networks import encoders, find_head
from pyg_topomask.nn.gated_gcn_conv import GatedGCNConv

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
