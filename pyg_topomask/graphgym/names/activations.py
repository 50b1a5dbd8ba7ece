r"""The activations :obj:`gnn.act` of GraphGPS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch.nn import GELU, LeakyReLU, Module, SiLU
from torch_geometric.graphgym import register

from pyg_topomask.graphgym.names.lookup import registered

#: Used for unregistered names. GraphGPS registers these names itself.
ACTIVATIONS: dict[str, Callable[[], Module]] = {'gelu': GELU, 'swish': SiLU, 'lrelu_03': lambda: LeakyReLU(0.3)}


@contextmanager
def registered_activations() -> Iterator[None]:
    r"""A block in which GraphGym's own layers find :obj:`ACTIVATIONS`."""
    with registered(register.act_dict, ACTIVATIONS):
        yield
