r"""A transform that stores the structure of forests."""

from __future__ import annotations

from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.transforms import BaseTransform

from pyg_topomask.graphs.tree_state import TreeState
from pyg_topomask.transforms.checks import single_graph


@functional_transform('add_forest')
class AddForest(BaseTransform):
    r"""Roots the trees of a forest, and orders and decomposes them by rake and compress, for
    :class:`~pyg_topomask.masks.TreeMask` (functional name: :obj:`add_forest`).

    Edges count in both directions, even if only one direction is given. Self-loops and repeated edges do not count as cycles.
    Run this transform after all transforms that change nodes or edges. A mask raises an error if the stored forest no longer
    fits the graph.

    Raises:
        ValueError: If the graph has a cycle (the message lists its nodes), or the data is heterogeneous, a batch, or
            without edges.

    Shapes:
        - **input:** a forest with :math:`|\mathcal{V}|` nodes, edge indices :math:`(2, |\mathcal{E}|)`
        - **output:** the forest, with :obj:`forest_index`, :obj:`forest_round` and :obj:`forest_sizes`

    Example:
        >>> import torch
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> AddForest()(data).forest_index[0, :3]
        tensor([0, 0, 1])
    """

    def forward(self, data: Data) -> Data:
        TreeState.of(single_graph(data)).store(data)
        return data
