r"""From the words of a YAML to objects: look-up by name, calls with arguments, and errors that say what to change."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from yacs.config import CfgNode

__all__ = ['construct', 'decoded', 'lookup', 'named_options', 'named_remedies']

T = TypeVar('T')

#: What a mask or a transform says of data that lacks something, and where a YAML gets it from.
REMEDIES = (
    (
        r'got a graph with a cycle',
        'forests come from the data set: of the transforms in topomask.transforms AddForest stores one, and none makes one',
    ),
    (
        r'got the attribute name (.+), which the data lacks',
        r'it comes with the data set, or from a transform in topomask.transforms that stores it under this name, as '
        r'AddLaplacianEigenvectorPE and AddRandomWalkPE of PyG do with attr_name: \1',
    ),
)


def lookup(option: str, name: str | None, *tables: Mapping[Any, T]) -> T:
    r"""Returns the entry :obj:`name` of the first table that has it.

    GraphGym's registry is given first and the table of this package second. Entries of GraphGPS and of the user win, and this
    package registers nothing under a name of GraphGPS.

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


def decoded(value: Any) -> Any:
    r"""Returns a value as yacs reads it, also inside of lists and dictionaries: PyYAML takes :obj:`1e-1` for text.

    Args:
        value (Any): The value.

    Example:
        >>> decoded({'p_halt': '1e-1', 'shape': ['8', 8], 'sampler': 'iid'})
        {'p_halt': 0.1, 'shape': [8, 8], 'sampler': 'iid'}
    """
    if isinstance(value, Mapping):
        return {key: decoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decoded(item) for item in value]
    return CfgNode._decode_cfg_value(value)


def construct(where: str, build: Callable[..., T], given: Any, **fixed: Any) -> T:
    r"""Returns what is built with the arguments that a YAML gives.

    Args:
        where (str): Where they are set and what is built, for the error message.
        build (callable): A class, or a function.
        given (dict, optional): The arguments by their names; :obj:`None` for none.
        **fixed (optional): Arguments that the YAML cannot give.

    Raises:
        ValueError: If an argument is unknown, missing, or of a type or a value that is not accepted.
    """
    signature = inspect.signature(build)
    known = [name for name in signature.parameters if name not in fixed]
    arguments = decoded({} if given is None else given)
    try:
        signature.bind(**arguments, **fixed)
    except TypeError as error:
        raise ValueError(f'{where}: got {arguments!r}; accepted are the arguments {known}: {error}') from error
    try:
        return build(**arguments, **fixed)
    except TypeError as error:
        raise ValueError(f'{where}: got {arguments!r}, of which a value is of a type that is not accepted: {error}') from error
    except ValueError as error:
        raise ValueError(f'{where}: {error}') from error


@contextmanager
def named_options(group: str, options: Collection[str], **paths: str) -> Iterator[None]:
    r"""Changes an error that names an argument so that it names the option of a YAML.

    Args:
        group (str): The group of the options, such as :obj:`"topomask.GRF"`.
        options (collection of str): The arguments that the group holds.
        **paths (str): Options that stand elsewhere, by their arguments.
    """
    try:
        yield
    except ValueError as error:
        argument, colon, rest = str(error).partition(':')
        path = f'{group}.{argument}' if argument in options else paths.get(argument, f'{group}: {argument}')
        raise ValueError(f'{path}{colon}{rest}') from error


@contextmanager
def named_remedies() -> Iterator[None]:
    r"""Adds to an error by which a mask refuses the data what in :obj:`topomask.transforms` makes what it lacks."""
    try:
        yield
    except ValueError as error:
        for pattern, remedy in REMEDIES:
            if match := re.search(pattern, str(error)):
                raise ValueError(f'{error}; {match.expand(remedy)}') from error
        raise
