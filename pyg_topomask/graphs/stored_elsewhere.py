r"""Edges with whose data a transform has stored something that a layer does not see without the data."""

from __future__ import annotations

from typing import Any
from weakref import ref

from torch import Tensor

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
