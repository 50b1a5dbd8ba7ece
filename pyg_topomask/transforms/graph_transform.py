r"""The base class of transforms, which take one graph or a list of graphs."""

from __future__ import annotations

from copy import copy
from typing import Any

from torch_geometric.data.data import BaseData
from torch_geometric.transforms import BaseTransform

from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.options import instance_of


class GraphTransform(BaseTransform):
    r"""A transform that takes one graph and returns it, or takes a list of graphs and returns a list. The numbers in a list are
    those of one graph at a time. It never draws from a global generator.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphTransform:
        if args and isinstance(args[0], BaseData):  # Compose calls what it is given
            raise ArgumentError(cls.__name__, 'data for the class', 'arguments of the transform', instance_of(cls))
        return super().__new__(cls)

    def __call__(self, data: Any) -> Any:
        if isinstance(data, (list, tuple)):
            return self.forward_many([copy(graph) for graph in data])
        return super().__call__(data)

    def forward_many(self, graphs: list[Any]) -> list[Any]:
        r"""Transforms copies of graphs. Subclasses may treat all of them at once."""
        return [self.forward(graph) for graph in graphs]
