r"""A transform that stores the walks of graph random features."""

from __future__ import annotations

from typing import Any

from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.transforms import BaseTransform

from pyg_topomask.transforms.checks import single_graph
from pyg_topomask.utils.checks import checked_seed
from pyg_topomask.utils.options import options_of
from pyg_topomask.walks import WalkSettings
from pyg_topomask.walks.stored import store_walks
from pyg_topomask.walks.walk import sample_ensembles


@options_of(WalkSettings)
@functional_transform('add_graph_random_features')
class AddGraphRandomFeatures(BaseTransform):
    r"""Samples random walks from every node and stores the loads that they deposit, from `"Linear Transformer Topological
    Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Eq. 10). :class:`~pyg_topomask.masks.GRFMask` uses
    them (functional name: :obj:`add_graph_random_features`).

    The walks depend only on the seed and the graph. They are stored as :obj:`grf_index`, :obj:`grf_length`, :obj:`grf_load`
    and :obj:`grf_sizes`. A second ensemble has the prefix :obj:`grf_key_`. Run this transform after all transforms that change
    nodes or edges. A mask raises an error if the stored walks no longer fit the graph.

    Args:
        num_walks (int): Walks per node and ensemble. (default: :obj:`4`)
        p_halt (float): The probability that a walk halts before a hop; with :obj:`0`, all walks have
            :obj:`max_walk_length` hops. (default: :obj:`0.5`)
        max_walk_length (int): The largest number of hops. (default: :obj:`4`)
        seed (int): The seed. (default: :obj:`0`)
        independent_ensembles (bool): Store a second ensemble, for the keys. (default: :obj:`False`)

    Shapes:
        - **input:** a graph with :math:`|\mathcal{V}|` nodes, edge indices :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*
        - **output:** the graph, with :math:`M` visits in :obj:`grf_index` :math:`(2, M)`, :obj:`grf_length`
          :math:`(M)` and :obj:`grf_load` :math:`(M)`

    Example:
        >>> import torch
        >>> data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> AddGraphRandomFeatures(num_walks=8)(data).grf_sizes.shape
        torch.Size([1, 9])
    """

    _prefix = 'grf'

    def __init__(
        self,
        num_walks: int = 4,
        p_halt: float = 0.5,
        max_walk_length: int = 4,
        seed: int = 0,
        **options: Any,
    ) -> None:
        self.settings = WalkSettings(num_walks, p_halt, max_walk_length, **options)
        self.seed = checked_seed(seed=seed)

    def forward(self, data: Data) -> Data:
        graph = single_graph(data)
        store_walks(data, sample_ensembles(graph, self.settings, self.seed), self.settings, self._prefix)
        return data

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.settings.text}, seed={self.seed})'
