r"""Transforms that store the structure of forests, and of spanning forests of any graph."""

from __future__ import annotations

from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform

from pyg_topomask.graphs.spanning_forest import METHODS, spanning_forests
from pyg_topomask.graphs.tree_state import TreeState
from pyg_topomask.transforms.base import GraphTransform, single_graph
from pyg_topomask.utils.checks import check_choice, check_size, checked_seed


@functional_transform('add_forest')
class AddForest(GraphTransform):
    r"""Roots the trees of a forest, and orders and decomposes them by rake and compress, for
    :class:`~pyg_topomask.masks.TreeMask` (functional name: :obj:`add_forest`).

    Edges count in both directions, even if only one direction is given. Self-loops and repeated edges do not count as cycles.
    Run this transform after all transforms that change nodes or edges. A mask raises an error if the stored forest no longer
    fits the graph.

    Raises:
        ValueError: If the graph has a cycle. The message lists its nodes.

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


@functional_transform('add_spanning_forest')
class AddSpanningForest(GraphTransform):
    r"""Chooses spanning forests of any graph, so that :class:`~pyg_topomask.masks.TreeMask` applies to it, as `"Fast Tree-Field
    Integrators" <https://arxiv.org/abs/2406.15881>`_ does with minimum spanning trees (functional name:
    :obj:`add_spanning_forest`). A distance in a tree is at least the distance in the graph. The mask is the mean over the
    forests. :func:`~pyg_topomask.apps.diagnostics.edge_stretch` measures the error of the distances, and so does the command
    :obj:`inspect`.

    Edge weights are lengths. Edges count in both directions, even if only one direction is given. Of parallel edges, the
    shortest counts. Self-loops do not count. The forests depend only on the seed and the graph. Run this transform after all
    transforms that change nodes or edges. A mask raises an error if the nodes or edges have changed since. If
    edge weights change, the mask measures the stored forests by the new lengths.

    Args:
        method (str): How to choose a forest. :obj:`"minimum"` minimizes the sum of the lengths, with random ties.
            :obj:`"random"` draws uniformly from all spanning forests by `Wilson's algorithm
            <https://doi.org/10.1145/237814.237880>`_, and ignores lengths. :obj:`"low_stretch"` takes the forest with the
            lowest mean stretch of three: a minimum one, shortest paths from a random node, and the clusters of `AKPW
            <https://doi.org/10.1137/S0097539792224474>`_, which grow from `random start times
            <https://arxiv.org/abs/1307.3692>`_. (default: :obj:`"low_stretch"`)
        num_trees (int): The number of forests. (default: :obj:`1`)
        seed (int): The seed. (default: :obj:`0`)

    Raises:
        ValueError: If a length is negative with :obj:`method="low_stretch"`.

    Shapes:
        - **input:** a graph with :math:`|\mathcal{V}|` nodes, edge indices :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*
        - **output:** the graph, with :math:`T` forests in :obj:`forest_index` and :obj:`forest_round`, and their sizes in
          :obj:`forest_sizes` :math:`(1, 5)`

    Example:
        >>> import torch
        >>> from pyg_topomask.masks import TreeMask
        >>> data = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3)
        >>> TreeMask(a=-1.0)(AddSpanningForest(num_trees=4)(data)).to_dense().shape
        torch.Size([1, 3, 3])
    """

    def __init__(self, method: str = 'low_stretch', num_trees: int = 1, seed: int = 0) -> None:
        check_choice(METHODS, method=method)
        check_size(num_trees=num_trees)
        self.method = method
        self.num_trees = num_trees
        self.seed = checked_seed(seed=seed)

    def forward(self, data: Data) -> Data:
        graph = single_graph(data)
        edges = graph.edge_index, graph.edge_weight, graph.num_nodes
        TreeState.of(graph, spanning_forests(*edges, self.method, self.num_trees, self.seed)).store(data)
        return data
