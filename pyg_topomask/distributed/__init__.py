r"""One graph in many processes: each has some of the nodes, and attention is that of the whole graph."""

from pyg_topomask.distributed.sharded_graph import ShardedGraph
from pyg_topomask.distributed.training import (
    GlobalBatchNorm,
    GlobalLayerNorm,
    check_parameters,
    convert_norms,
    mean_over_nodes,
    sum_gradients,
)

__all__ = [
    'GlobalBatchNorm',
    'GlobalLayerNorm',
    'ShardedGraph',
    'check_parameters',
    'convert_norms',
    'mean_over_nodes',
    'sum_gradients',
]
