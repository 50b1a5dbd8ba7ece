r"""What transforms store on data: rows of which some are padding, blocks of masks, and edges whose data layers do not see."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import ref

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch_geometric.data import Data

from pyg_topomask.errors import warn
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.utils.functorch import is_exporting

Number = TypeVar('Number', int, Tensor)


def rows_to_store(num_rows: Number, num_nodes: Number, num_edges: Number) -> Number:
    r"""Returns the smallest number of rows, from :obj:`num_rows` on, that is neither the number of nodes nor that of edges: PyG
    would slice such a tensor as if it were a node or edge attribute. All three are integers, or tensors of them.
    """
    for _ in range(2):
        num_rows = num_rows + ((num_nodes > 0) & ((num_rows == num_nodes) | (num_rows == num_edges)))
    return num_rows


def used_rows(stored: Tensor, used: Tensor) -> Tensor:
    r"""Returns which rows of a batch are no padding, given the numbers of stored and of used rows of each graph,
    :obj:`[num_graphs, 1]` each. See :func:`rows_to_store`.
    """
    stored, used = stored.squeeze(1), used.squeeze(1)
    position = torch.arange(int(stored.sum()), device=stored.device) - (stored.cumsum(0) - stored).repeat_interleave(stored)
    return position < used.repeat_interleave(stored)


# By the id of the edges: the edges, and the transforms that have stored something.
_STORED: dict[int, tuple[ref[Tensor], set[str]]] = {}


def remember(edge_index: Any, transform: str) -> None:
    r"""Remembers that a transform has stored something on the data of edges, as long as these exist."""
    if not isinstance(edge_index, Tensor):
        return
    key, stored = id(edge_index), _STORED  # the module is empty when Python exits
    _, transforms = stored.setdefault(key, (ref(edge_index, lambda _: stored.pop(key, None)), set()))
    transforms.add(transform)


def transforms_of(edge_index: Any) -> set[str]:
    r"""Returns the transforms that have stored something on the data of edges."""
    return _STORED[id(edge_index)][1] if id(edge_index) in _STORED else set()


#: The version of the stored form, which is part of the names.
_VERSION = 1


@dataclass(frozen=True)
class StoredBlocks:
    r"""How the numbers of :class:`~pyg_topomask.operators.forms.PreparedBlocks` are stored on data: pair by pair,
    so that the numbers of a batch are those of its graphs, one after the other.

    Args:
        prefix (str): The word for the kind of mask with which the names of the attributes begin.
        settings (tuple): The plain values that the numbers depend on, other than the edges without their weights.
        dtype (torch.dtype): The data type of the numbers.
    """

    prefix: str
    settings: tuple[Any, ...]
    dtype: torch.dtype

    @property
    def names(self) -> tuple[str, str]:
        r"""The names of the attributes with the numbers and with their sizes. Masks of other settings have other names."""
        name = f'{self.prefix}_{zlib.crc32(repr((_VERSION, self.settings)).encode()):08x}'
        return f'{name}_pairs', f'{name}_sizes'

    def store(self, graph: Graph, terms: Tensor | None, max_bytes: int) -> list[dict[str, Tensor]]:
        r"""Returns the attributes of each graph, given the numbers of all pairs, :obj:`[1, num_pairs]`, or :obj:`None` to store
        none. Those of graphs with more than :obj:`max_bytes` are not stored.
        """
        pairs, sizes = self.names
        terms = torch.empty(0, graph.segments.num_pairs) if terms is None else terms
        used = (len(terms) * graph.segments.sizes.square()).tolist()
        attributes = []
        for numbers, hashes in zip(terms.flatten().split(used), graph.structure.tolist(), strict=True):
            kept = numbers if numbers.numel() * self.dtype.itemsize <= max_bytes else numbers[:0]
            stored = rows_to_store(len(kept), *hashes[:2])
            padded = pad(kept.to(self.dtype), (0, stored - len(kept)))
            attributes.append({pairs: padded.clone(), sizes: torch.tensor([[*hashes, stored, len(kept)]])})
        return attributes

    def load(self, graph: Graph) -> Tensor | None:
        r"""Returns the stored numbers of all pairs, :obj:`[1, num_pairs]`, or :obj:`None` if there are none. Warns if they
        belong to other settings or another graph.
        """
        return None if graph.data is None or is_exporting() else self._loaded(graph, graph.data)

    @torch.compiler.disable  # it reads numbers
    def _loaded(self, graph: Graph, data: Data) -> Tensor | None:
        numbers, sizes = (graph.get(name) for name in self.names)
        if numbers is None and sizes is None:
            if any(re.fullmatch(f'{self.prefix}_[0-9a-f]{{8}}_sizes', name) for name in data.to_dict()):
                self._warn('of other settings, or of another version')
            return None
        if numbers is None or sizes is None or sizes.dim() != 2 or sizes.size(1) != 5:
            self._warn('that are incomplete')
            return None
        # In NumPy, whose calls take less time than those of torch.
        table, hashes = sizes.cpu().numpy(), graph.structure.cpu().numpy()
        stored, used = table[:, 3], table[:, 4]
        if len(table) != len(hashes) or (table[:, :3] != hashes).any() or len(numbers) != stored.sum():
            self._warn('of other graphs, or of other edges')
            return None
        if (used != table[:, 0] ** 2).any():  # some graphs were too large to store them
            return None
        numbers = numbers if (stored == used).all() else numbers[used_rows(*sizes[:, 3:].split(1, dim=1))]
        return numbers.unsqueeze(0)

    def _warn(self, which: str) -> None:
        remedy = 'run PrepareMasks again, with the masks of the model, after the transforms that change the graph'
        warn(f'data: got stored {self.prefix} pairs {which}. They are computed anew in every batch: {remedy}')
