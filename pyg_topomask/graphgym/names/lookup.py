r"""Arguments as a YAML states them, and calls with these."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from yacs.config import CfgNode

__all__ = ['construct', 'decoded']

T = TypeVar('T')


def decoded(value: Any) -> Any:
    r"""Returns a value as yacs reads it, also inside of lists and dictionaries: PyYAML takes :obj:`1e-1` for text.

    Args:
        value (Any): The value.

    Example:
        >>> decoded({'p_halt': '1e-1', 'shape': ['8', 8], 'sampler': 'iid'})
        {'p_halt': 0.1, 'shape': [8, 8], 'sampler': 'iid'}
    """
    if isinstance(value, Mapping):
        return {key: decoded(own) for key, own in value.items()}
    if isinstance(value, list):
        return [decoded(own) for own in value]
    return CfgNode._decode_cfg_value(value)


def construct(where: str, build: Callable[..., T], given: Any, **others: Any) -> T:
    r"""Returns what is built with the arguments that a YAML gives.

    Args:
        where (str): Where they are set and what is built, for the error message.
        build (callable): A class, or a function.
        given (dict, optional): The arguments by their names; :obj:`None` for none.
        **others (optional): More arguments, which are not the YAML's to give.

    Raises:
        ValueError: If an argument is unknown, missing, or of a type or a value that is not accepted.
    """
    signature = inspect.signature(build)
    known = [name for name in signature.parameters if name not in others]
    arguments = decoded({} if given is None else given)
    try:
        signature.bind(**arguments, **others)
    except TypeError as error:
        raise ValueError(f'{where}: got {arguments!r}; accepted are the arguments {known}: {error}') from error
    try:
        return build(**arguments, **others)
    except TypeError as error:
        raise ValueError(f'{where}: got {arguments!r}, of which a value is of a type that is not accepted: {error}') from error
    except ValueError as error:
        raise ValueError(f'{where}: {error}') from error
