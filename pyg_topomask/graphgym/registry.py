r"""Registration and look-up by name, on top of the dictionaries of :mod:`torch_geometric.graphgym.register`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

__all__ = ['lookup', 'register_once']

T = TypeVar('T')


def register_once(registry: dict[str, Any], name: str, value: Any) -> None:
    r"""Registers :obj:`value` under a name of ours; unlike GraphGym's functions, a second call is not an error."""
    registry.setdefault(name, value)


def lookup(kind: str, name: str | None, *tables: Mapping[Any, T]) -> T:
    r"""Returns the entry :obj:`name` of the first table that has it.

    GraphGym's own registry is given first and our table second, so that what GraphGPS or the user registers wins, and
    nothing of ours has to be registered under a name that is theirs.

    Args:
        kind (str): What is looked for and where it is set, for the error message.
        name (str): The name.
        *tables (dict): The tables, in order of precedence.
    """
    for table in tables:
        if name in table:
            return table[name]
    known = sorted({key for table in tables for key in table if isinstance(key, str)})
    raise ValueError(f'unknown {kind} {name!r}; known: {", ".join(known)}')
