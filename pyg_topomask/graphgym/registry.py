r"""Look-up by name, on top of the dictionaries of :mod:`torch_geometric.graphgym.register`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

__all__ = ['lookup']

T = TypeVar('T')


def lookup(option: str, name: str | None, *tables: Mapping[Any, T]) -> T:
    r"""Returns the entry :obj:`name` of the first table that has it.

    GraphGym's own registry is given first and our table second, so that what GraphGPS or the user registers wins, and
    nothing of ours has to be registered under a name that is theirs.

    Args:
        option (str): The option that names it, for the error message.
        name (str): The name.
        *tables (dict): The tables, in order of precedence.

    Raises:
        ValueError: If no table has it.
    """
    for table in tables:
        if name in table:
            return table[name]
    known = sorted({key for table in tables for key in table if isinstance(key, str)})
    raise ValueError(f'{option}: got {name!r}; accepted are {", ".join(known)}')
