r"""A transform that connects points to their nearest neighbors."""

from __future__ import annotations

from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.utils import to_undirected

from pyg_topomask.graphs.edges import check_flow
from pyg_topomask.ops.knn import knn_graph
from pyg_topomask.transforms.checks import check_has_positions
from pyg_topomask.transforms.graph_transform import GraphTransform
from pyg_topomask.utils.checks import check_whole


@functional_transform('topo_knn_graph')
class KNNGraph(GraphTransform):
    r"""Replaces the edges of a graph by edges to each node from its nearest neighbors in :obj:`pos` (functional name:
    :obj:`topo_knn_graph`). It does not need torch-cluster.

    The transform removes :obj:`edge_attr`, :obj:`edge_weight` and :obj:`adj_t`. The edges are directed, see
    :func:`~pyg_topomask.ops.knn_graph`, unless :obj:`force_undirected` is set. As with PyG's :obj:`KNNGraph`, a batch cannot be
    divided by :obj:`to_data_list()` afterwards.

    Args:
        k (int): The number of neighbors. In graphs with at most this many nodes, each node has edges from all others.
            (default: :obj:`6`)
        loop (bool): Count each node as its own nearest neighbor. (default: :obj:`False`)
        force_undirected (bool): Also add the opposite directions. (default: :obj:`False`)
        flow (str): :obj:`"source_to_target"` for edges from the neighbors to the node, or :obj:`"target_to_source"` for edges
            from the node to its neighbors. (default: :obj:`"source_to_target"`)

    Shapes:
        - **input:** positions :obj:`pos` :math:`(|\mathcal{V}|, D)`
        - **output:** the graph, with edge indices :math:`(2, k |\mathcal{V}|)`, or fewer if there are at most :math:`k` nodes

    Example:
        >>> import torch
        >>> KNNGraph(k=1)(Data(pos=torch.tensor([[0.0], [1.0], [3.0]]))).edge_index
        tensor([[1, 0, 1],
                [0, 1, 2]])
    """

    def __init__(self, k: int = 6, loop: bool = False, force_undirected: bool = False, flow: str = 'source_to_target') -> None:
        check_whole(1, k=k)
        check_flow(flow)
        self.k = k
        self.loop = loop
        self.force_undirected = force_undirected
        self.flow = flow

    def forward(self, data: Data) -> Data:
        check_has_positions(data)
        edge_index = knn_graph(data.pos, self.k, data.batch if 'batch' in data else None, self.loop, self.flow)
        data.edge_index = to_undirected(edge_index, num_nodes=data.num_nodes) if self.force_undirected else edge_index
        for name in ('adj_t', 'edge_attr', 'edge_weight'):
            if name in data:
                del data[name]
        return data

    def __repr__(self) -> str:
        settings = f'k={self.k}, loop={self.loop}, force_undirected={self.force_undirected}, flow={self.flow!r}'
        return f'{type(self).__name__}({settings})'
