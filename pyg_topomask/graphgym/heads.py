r"""Prediction heads that GraphGPS's configurations name, for use without GraphGPS."""

from __future__ import annotations

from torch import Tensor
from torch.nn import Linear, Module, Sequential
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.layer import MLP, new_layer_config

from pyg_topomask.graphgym.registry import lookup

__all__ = ['HEADS', 'InductiveNodeHead', 'PyramidGraphHead', 'build_head']


class PyramidGraphHead(Module):
    r"""Pools the nodes of each graph and predicts by an MLP that halves the width twice.

    Args:
        dim_in (int): Size of each node's features.
        dim_out (int): Size of the prediction.
    """

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
    r"""Predicts for every node of graphs that belong to one split as a whole.

    Args:
        dim_in (int): Size of each node's features.
        dim_out (int): Size of the prediction.
    """

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        layers = cfg.gnn.layers_post_mp
        self.mlp = MLP(new_layer_config(dim_in, dim_out, layers, has_act=False, has_bias=True, cfg=cfg))

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        batch = self.mlp(batch)
        return batch.x, batch.y


#: Used for names that nobody registered; GraphGPS registers these itself.
HEADS: dict[str, type[Module]] = {'san_graph': PyramidGraphHead, 'inductive_node': InductiveNodeHead}


def build_head(dim_in: int, dim_out: int) -> Module:
    r"""Builds the head :obj:`cfg.gnn.head`.

    Args:
        dim_in (int): Size of each node's features.
        dim_out (int): Size of the prediction.
    """
    # GraphGym replaces 'default' when it loads a file; a configuration made in Python may still hold it.
    name = cfg.dataset.task if cfg.gnn.head == 'default' else cfg.gnn.head
    head: Module = lookup('gnn.head', name, register.head_dict, HEADS)(dim_in=dim_in, dim_out=dim_out)
    return head
