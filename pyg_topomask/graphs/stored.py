r"""What transforms store on data: rows of which some are padding, and the edges of data that layers do not see."""

from __future__ import annotations

from typing import Any, TypeVar
from weakref import ref

import torch
from torch import Tensor

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
