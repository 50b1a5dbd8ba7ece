"""Heads under the names that GraphGPS registers."""

from torch import Tensor
from torch.nn import Linear, Module
from torch_geometric.data import Batch
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import pooling_dict, register_head


@register_head('san_graph')
class GraphHead(Module):
    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.lin = Linear(dim_in, dim_out)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.lin(pooling_dict[cfg.model.graph_pooling](batch.x, batch.batch)), batch.y


@register_head('inductive_node')
class NodeHead(Module):
    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.lin = Linear(dim_in, dim_out)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.lin(batch.x), batch.y
