r"""Transforms that store walks: of graph random features, and of the random walks graph-nodes kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform

from pyg_topomask.transforms.base import GraphTransform, joint_graphs
from pyg_topomask.utils.checks import checked_seed
from pyg_topomask.utils.options import options_of
from pyg_topomask.walks import WalkSettings
from pyg_topomask.walks.stored import store_walks
from pyg_topomask.walks.walk import sample_ensembles

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pyg_topomask.walks.options import FeatureWalkOptions, KernelWalkOptions


@options_of(WalkSettings)
@functional_transform('add_graph_random_features')
class AddGraphRandomFeatures(GraphTransform):
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
        **options: Unpack[FeatureWalkOptions],
    ) -> None:
        self.settings = WalkSettings(num_walks, p_halt, max_walk_length, **options)
        self.seed = checked_seed(seed=seed)

    def forward(self, data: Data) -> Data:
        return self.forward_many([data])[0]

    def forward_many(self, graphs: list[Data]) -> list[Data]:
        for members, graph in joint_graphs(graphs):
            store_walks(members, graph, sample_ensembles(graph, self.settings, self.seed), self.settings, self._prefix)
        return graphs

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.settings.text}, seed={self.seed})'


@options_of(AddGraphRandomFeatures, without=('normalization', 'importance'))
@functional_transform('add_random_walk_kernel')
class AddRandomWalkKernel(AddGraphRandomFeatures):
    r"""Samples random walks from every node and stores how often they visit each node after each number of hops. These are the
    weighted lookup tables of `"From block-Toeplitz matrices to differential equations on graphs"
    <https://arxiv.org/abs/2107.07999>`_ (Sec. 4.2). :class:`~pyg_topomask.masks.RWGNKMask` uses them (functional name:
    :obj:`add_random_walk_kernel`). The mask learns the discount and applies the normalization.

    This is :class:`~pyg_topomask.transforms.AddGraphRandomFeatures` with counted instead of weighted visits. The attributes
    have the prefix :obj:`rwgnk_` instead of :obj:`grf_`, so data can store the walks of both.

    Args:
        p_halt (float): The probability that a walk halts before a hop; with :obj:`0`, all walks have
            :obj:`max_walk_length` hops. (default: :obj:`0.0`)
        max_walk_length (int): The largest number of hops. (default: :obj:`3`)

    Shapes:
        - **input:** a graph with :math:`|\mathcal{V}|` nodes, edge indices :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*
        - **output:** the graph, with :math:`M` visits in :obj:`rwgnk_index` :math:`(2, M)`, :obj:`rwgnk_length`
          :math:`(M)` and :obj:`rwgnk_load` :math:`(M)`

    Example:
        >>> import torch
        >>> data = AddRandomWalkKernel(num_walks=1)(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2))
        >>> data.rwgnk_length[data.rwgnk_load > 0]
        tensor([0, 2, 1, 3, 1, 3, 0, 2])
    """

    _prefix = 'rwgnk'

    def __init__(
        self,
        num_walks: int = 4,
        p_halt: float = 0.0,
        max_walk_length: int = 3,
        seed: int = 0,
        **options: Unpack[KernelWalkOptions],
    ) -> None:
        super().__init__(num_walks, p_halt, max_walk_length, seed, normalization='rw', importance=False, **options)
