r"""A transform that stores what masks prepare."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.functional import pad
from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.masks.base.stored_blocks import StoredBlocks
from pyg_topomask.transforms.base import GraphTransform, joint_graphs
from pyg_topomask.utils.checks import check_whole


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
