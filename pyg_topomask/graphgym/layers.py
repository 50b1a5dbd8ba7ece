r"""Plain GraphGym layers, one for each attention, for :obj:`model.type: gnn`."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch.nn import Identity, Linear, Module
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.layer import LayerConfig

from pyg_topomask.graph import Graph
from pyg_topomask.graphgym.attentions import ATTENTIONS, build_attention
from pyg_topomask.graphgym.errors import named_remedies

__all__ = ['AttentionLayer']


class AttentionLayer(Module):
    r"""An attention as a GraphGym layer, with :obj:`cfg.gnn.att_heads` heads and the options of
    :obj:`cfg.topomask.<name>`. It is registered as :obj:`grf_attention`, :obj:`linear_attention` and so on.
    The layers of a forward pass share what masks prepare for the batch, such as random walks.

    Args:
        name (str): The attention.
        layer_config (LayerConfig): GraphGym's configuration of the layer.
        **kwargs (optional): Not used; GraphGym passes them to every layer.
    """

    def __init__(self, name: str, layer_config: LayerConfig, **kwargs: Any) -> None:
        super().__init__()
        dim_in, dim_out = layer_config.dim_in, layer_config.dim_out
        self.lin = Identity() if dim_in == dim_out else Linear(dim_in, dim_out)
        self.attn = build_attention(name, dim_out, cfg.gnn.att_heads)

    @named_remedies()
    def forward(self, batch: Data) -> Data:
        graph = Graph.shared(batch)
        batch.x = self.attn(self.lin(batch.x), graph.edge_index, batch=graph.batch, graph=graph)
        return batch


for _name in ATTENTIONS:
    register.layer_dict.setdefault(f'{_name.lower()}_attention', partial(AttentionLayer, _name))
