r"""Transforms that store what masks need: walks, forests and spanning forests, and what masks prepare."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.functional import pad
from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.spanning_forest import METHODS, spanning_forests
from pyg_topomask.graphs.stored import StoredBlocks
from pyg_topomask.graphs.tree_state import TreeState
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.transforms.base import GraphTransform, joint_graphs, single_graph
from pyg_topomask.utils.checks import check_choice, check_size, check_whole, checked_seed
from pyg_topomask.utils.options import options_of
from pyg_topomask.walks import WalkSettings
from pyg_topomask.walks.stored import store_walks
from pyg_topomask.walks.walk import sample_ensembles

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pyg_topomask.masks.options import FeatureWalkOptions, KernelWalkOptions


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


def masks_to_store(*modules: Module) -> list[Mask]:
    r"""Returns the masks in modules whose blocks can be stored, one for each way in which they are."""
    masks = (each for module in modules for each in module.modules() if isinstance(each, Mask))
    return list({stored: mask for mask in masks if (stored := mask.stored_blocks) is not None}.values())


@functional_transform('prepare_masks')
class PrepareMasks(GraphTransform):
    r"""Stores what masks prepare for batches of small graphs, so that it is prepared once for each graph, and not in every
    batch of every epoch (functional name: :obj:`prepare_masks`).

    It stores the numbers of all pairs of nodes of a graph that a mask combines:

    - :class:`~pyg_topomask.masks.HopMask`: the distances, one byte a pair.

    Other masks in a model are left out. The results are the same with and without stored numbers. Run this transform after all
    transforms that change nodes or edges. A mask with other settings, or on a graph that has changed since, warns, and prepares
    anew.

    Args:
        *masks (torch.nn.Module): Masks, or attention layers and models that contain masks. The transform copies the settings of
            the masks, and does not depend on what they learn.
        max_bytes (int): The most bytes to store for a graph and a mask. Larger graphs are prepared in every batch, and
            so are all graphs of their batch. (default: :obj:`2**20`)

    Raises:
        ValueError: If none of the masks has anything to store.

    Shapes:
        - **input:** a graph with :math:`|\mathcal{V}|` nodes, edge indices :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*
        - **output:** the graph, with :math:`|\mathcal{V}|^2` numbers for each mask

    Example:
        >>> import torch
        >>> from pyg_topomask.masks import HopMask
        >>> transform = PrepareMasks(HopMask(max_hops=2))
        >>> transform(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2))
        Data(edge_index=[2, 2], num_nodes=2, hop_3ed9726a_pairs=[4], hop_3ed9726a_sizes=[1, 5])
    """

    def __init__(self, *masks: Module, max_bytes: int = 2**20) -> None:
        check_whole(0, max_bytes=max_bytes)
        self.max_bytes = max_bytes
        if not all(isinstance(mask, Module) for mask in masks):
            raise ArgumentError('masks', [type(mask).__name__ for mask in masks], 'masks, attention layers and models')
        # As they were constructed, so that the digest of the transform does not depend on what they have learned.
        self.masks = [mask.cpu() for mask in deepcopy(masks_to_store(*masks))]
        for mask in self.masks:
            mask.reset_parameters()
        if not self.masks:
            given = f'{[type(mask).__name__ for mask in masks]}, in which no mask has anything to store'
            raise ArgumentError('masks', given, 'HopMask, and attention layers and models that contain it')

    def forward(self, data: Data) -> Data:
        return self.forward_many([data])[0]

    def forward_many(self, graphs: list[Data]) -> list[Data]:
        # Not from what is stored already, which may be of another graph.
        names = [name for stored, _ in self.stored() for name in stored.names]
        for data in graphs:
            for name in names:
                if name in data:
                    del data[name]
        for members, graph in joint_graphs(graphs, lambda num_nodes: num_nodes**2 > self.max_bytes):
            for data, attributes in zip(members, self.attributes(graph), strict=True):
                data.update(attributes)
        return graphs

    def stored(self) -> Iterator[tuple[StoredBlocks, Mask]]:
        r"""Yields each mask, and how it is stored."""
        return ((stored, mask) for mask in self.masks if (stored := mask.stored_blocks) is not None)

    @torch.no_grad()
    def attributes(self, graph: Graph) -> list[dict[str, Tensor]]:
        r"""Returns what to store on the data of each of several graphs."""
        on_cpu = graph.to('cpu')
        least = int(pad(on_cpu.segments.sizes, (0, 1), value=on_cpu.num_nodes).amin())
        of_graphs: list[dict[str, Tensor]] = [{} for _ in range(graph.num_graphs)]
        for stored, mask in self.stored():
            # No mask is prepared if all graphs are too large.
            blocks = mask(on_cpu).blocks if least**2 * stored.dtype.itemsize <= self.max_bytes else None
            terms = None if blocks is None else blocks.terms(on_cpu.segments, torch.get_default_dtype())
            for attributes, more in zip(of_graphs, stored.store(on_cpu, terms, self.max_bytes), strict=True):
                attributes |= {name: value.to(graph.device) for name, value in more.items()}
        return of_graphs
