r"""Features of pairs of nodes, from the entries of a mask."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.shared import graph_of_data
from pyg_topomask.masks import Mask
from pyg_topomask.utils.checks import check_size
from pyg_topomask.utils.options import instance_of


class MaskEncoding(torch.nn.Module):
    r"""Learned features of pairs of nodes, from the entries of the heads of a sparse mask:

    .. math::
        \mathbf{e}_{ij} = \mathbf{W} \left( M^1_{ij}, \dots, M^H_{ij} \right)^{\top} + \mathbf{b}
        \quad \text{for all pairs with an entry}

    The pairs are edges, and the features their :obj:`edge_attr`, for any layer of PyG, and for attention with
    :obj:`edge_dim`. With the powers of the random-walk matrix as heads, these are the relative encodings of `"Graph Inductive
    Biases in Transformers without Message Passing" <https://arxiv.org/abs/2305.17589>`_ (Eq. 1):
    :obj:`PowerSeriesMask(K + 1, order=K, coefficients=torch.eye(K + 1), normalization="rw", learnable=False)`. With
    :obj:`HopMask(K + 1, max_hops=K, f=torch.eye(K + 1), learnable=False)`, each distance up to :math:`K` has a vector of its
    own, a column of :math:`\mathbf{W}`.

    Time and memory are linear in the number of pairs. Gradients also reach what the mask learns.

    Args:
        mask (Mask): A sparse mask. Each of its heads is an input.
        dim (int): Size of the features.

    Raises:
        ValueError: If an argument is outside its range, the mask has no sparse entries, or the graph is sharded.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes and edges
        - **output:** the pairs :math:`(j, i)` of node :math:`i` and what it attends to, :math:`(2, nnz)`, and their features
          :math:`(nnz, D)`

    Example:
        >>> from pyg_topomask.masks import HopMask
        >>> encoding = MaskEncoding(HopMask(heads=3, max_hops=2, f=torch.eye(3)), dim=4)
        >>> pairs, edge_attr = encoding(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2))
        >>> pairs.tolist(), edge_attr.shape
        ([[0, 1, 0, 1], [0, 0, 1, 1]], torch.Size([4, 4]))
    """

    def __init__(self, mask: Mask, dim: int) -> None:
        super().__init__()
        if not isinstance(mask, Mask):
            raise ArgumentError('mask', repr(mask), 'a Mask, such as HopMask(heads=3)', instance_of(mask))
        check_size(dim=dim)
        self.mask = mask
        self.lin = torch.nn.Linear(mask.heads, dim)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters."""
        self.mask.reset_parameters()
        self.lin.reset_parameters()

    def forward(self, graph: Graph | Data, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        r"""Returns the pairs, :obj:`[2, nnz]`, and their features, :obj:`[nnz, dim]`.

        Args:
            graph (Graph or torch_geometric.data.Data): The graphs.
            generator (torch.Generator, optional): The source of random numbers, if the mask uses any.
                (default: :obj:`None`)
        """
        graph = graph if isinstance(graph, Graph) else graph_of_data(graph)
        if not graph.segments.is_whole:
            raise ArgumentError('graph', 'a sharded graph', 'graphs of one process')
        operator = self.mask(graph, generator)
        if operator.entries is None:
            given = f'{type(self.mask).__name__}, which has no sparse entries on this graph'
            remedy = 'a PowerSeriesMask has none if edge weights require a gradient'
            raise ArgumentError(
                'mask', given, 'sparse masks, such as HopMask, PowerSeriesMask, AdjacencyMask and GRFMask', remedy
            )
        entries = operator.entries()
        value = entries.value.expand(self.mask.heads, -1).t()
        return entries.pairs.flip(0), self.lin(value.to(self.lin.weight.dtype))

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.mask}, {self.lin.out_features})'
