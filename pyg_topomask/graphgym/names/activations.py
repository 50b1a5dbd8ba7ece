r"""The activations :obj:`gnn.act` of GraphGPS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch.nn import GELU, LeakyReLU, Module, SiLU
from torch_geometric.graphgym import register

#: Used for unregistered names. GraphGPS registers these names itself.
ACTIVATIONS: dict[str, Callable[[], Module]] = {'gelu': GELU, 'swish': SiLU, 'lrelu_03': lambda: LeakyReLU(0.3)}


@contextmanager
def registered_activations() -> Iterator[None]:
    r"""A block in which GraphGym's own layers find :obj:`ACTIVATIONS`. They are not registered for longer, because GraphGPS
    raises an error for names that are registered already.
    """
    added = [name for name in ACTIVATIONS if name not in register.act_dict]
    register.act_dict.update({name: ACTIVATIONS[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            del register.act_dict[name]
