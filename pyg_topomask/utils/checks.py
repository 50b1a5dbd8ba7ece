r"""Checks of single arguments, passed by name: :obj:`check_whole(1, num_walks=num_walks)`. They raise an
:class:`~pyg_topomask.errors.ArgumentError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import TypeGuard

import torch
from torch import SymInt, Tensor

from pyg_topomask.errors import ArgumentError

INTEGERS = (torch.int32, torch.int64)
#: The largest number of channels, heads, hops, walks of a node, and the like.
MAX_SIZE = 2**20
#: The largest number of nodes that have parameters of their own.
MAX_NODES = 2**31


def is_whole(value: object, least: int | None = None) -> TypeGuard[int]:
    r"""Returns whether a value is an integer of Python or NumPy, at least :obj:`least`, and not a boolean."""
    whole = isinstance(value, Integral | SymInt) and not isinstance(value, bool)
    return whole and (least is None or value >= least)  # type: ignore[operator]


def is_number(value: object) -> TypeGuard[float]:
    r"""Returns whether a value is a number of Python or NumPy, and not a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_choice(choices: Iterable[object], /, **given: object) -> None:
    r"""Raises an error unless a value is one of the choices."""
    known = list(choices)  # a list also supports unhashable values
    _check(given, ', '.join(map(str, known)), lambda value: value in known)


def check_flag(**given: object) -> None:
    r"""Raises an error unless a value is :obj:`True` or :obj:`False`. Any text would count as true."""
    _check(given, 'True, False', lambda value: isinstance(value, bool))


def check_file_name(**given: str) -> None:
    r"""Raises an error for a word that could not be a part of the name of a file, such as :obj:`"../up"`."""
    accepted = 'names of files, without / and backslashes'
    _check(given, accepted, lambda value: value != '..' and not set(str(value)) & {'/', '\\', '\0'})


def check_whole(least: int | None = None, most: int | None = None, /, **given: object) -> None:
    r"""Raises an error unless a value is an integer from :obj:`least` to :obj:`most`."""
    bounds = ('' if least is None else f' from {least}') + ('' if most is None else f' to {most}')
    _check(given, f'whole numbers{bounds}', lambda value: is_whole(value, least) and (most is None or value <= most))


def check_size(least: int = 1, /, **given: object) -> None:
    r"""Raises an error unless a value is an integer from :obj:`least` to :obj:`2**20`. Larger sizes have no memory."""
    check_whole(least, MAX_SIZE, **given)


def checked_seed(**given: object) -> int:
    r"""Returns a seed as an integer of Python, in which no arithmetic overflows. Raises an error unless torch accepts it."""
    check_whole(-(2**63), 2**64 - 1, **given)
    ((_, seed),) = given.items()
    return int(seed)  # type: ignore[call-overload, no-any-return]


def assert_on_device(accepted: Tensor, message: str) -> bool:
    r"""Returns whether a condition holds, if its tensor is on the CPU. Another device would have to be waited for: the result
    is :obj:`True`, and an assertion with the message follows if the condition fails there.
    """
    if accepted.device.type == 'cpu':
        return bool(accepted)
    torch._assert_async(accepted, message)
    return True


def check_generator(generator: object) -> None:
    r"""Raises an error unless a value is a generator of random numbers, or :obj:`None`."""
    if generator is not None and not isinstance(generator, torch.Generator):
        raise ArgumentError('generator', repr(generator), 'torch.Generator and None')


def check_even(**given: object) -> None:
    r"""Raises an error unless a value is an even integer from 2 to :obj:`2**20`."""
    _check(given, f'even numbers from 2 to {MAX_SIZE}', lambda value: is_whole(value) and value in range(2, MAX_SIZE + 1, 2))


def check_finite(**given: object) -> None:
    r"""Raises an error unless a value is a finite number."""
    _check(given, 'finite numbers', lambda value: is_number(value) and math.isfinite(value))


def check_not_negative(**given: object) -> None:
    r"""Raises an error unless a value is a finite number of at least 0."""
    _check(given, 'finite numbers from 0', lambda value: is_number(value) and 0 <= value < math.inf)


def check_above_zero(**given: object) -> None:
    r"""Raises an error unless a value is a finite number above 0."""
    _check(given, 'finite numbers above 0', lambda value: is_number(value) and 0 < value < math.inf)


def check_probability(**given: object) -> None:
    r"""Raises an error unless a value is a number in :math:`[0, 1]`."""
    _check(given, 'probabilities in [0, 1]', lambda value: is_number(value) and 0 <= value <= 1)


def as_numbers(dtype: torch.dtype | None = None, /, **given: object) -> Tensor:
    r"""Returns a real number, a tensor or array of them, or a sequence of these as a tensor. Raises an error for others."""
    ((argument, value),) = given.items()
    try:
        numbers: Tensor | None = torch.as_tensor(value)
    except (RuntimeError, TypeError, ValueError):
        numbers = None
    if numbers is None or numbers.dtype == torch.bool or numbers.is_complex():
        raise ArgumentError(argument, repr(value), 'numbers, and sequences and tensors of them')
    return numbers if dtype in (None, numbers.dtype) else torch.as_tensor(value, dtype=dtype)


def per_head(heads: int, /, **given: object) -> Tensor:
    r"""Returns one finite number per head in float64, :obj:`[heads]`, given one number for all heads or one for each."""
    numbers = as_numbers(torch.float64, **given).detach()
    ((argument, _),) = given.items()
    if numbers.shape not in ((), (heads,)):
        raise ArgumentError(argument, f'shape {tuple(numbers.shape)}', f'a number and [{heads}], one for each head')
    if not bool(numbers.isfinite().all()):
        raise ArgumentError(argument, numbers.tolist(), 'finite numbers')
    return numbers.expand(heads).clone()


def check_batch(batch: Tensor, num_nodes: int) -> None:
    r"""Raises an error unless a tensor has the graph of each node, ascending from at least 0."""
    if batch.shape != (num_nodes,) or batch.dtype not in INTEGERS:
        raise ArgumentError('batch', f'shape {tuple(batch.shape)} of {batch.dtype}', f'int32 and int64 of shape [{num_nodes}]')
    if batch.numel() > 0 and int(batch.min()) < 0:
        raise ArgumentError('batch', f'the graph id {int(batch.min())}', 'graph ids from 0')
    falls = batch[1:] < batch[:-1]
    if bool(falls.any()):
        node = int(falls.nonzero()[0])
        raise ArgumentError(
            'batch',
            f'a vector that is not ascending, {int(batch[node + 1])} after {int(batch[node])}',
            'graph ids in ascending order',
            'order = batch.argsort(stable=True) sorts x[order], and order.argsort()[edge_index] has the new numbers',
        )


def check_shape(sizes: Sequence[int | str], /, **given: Tensor) -> None:
    r"""Raises an error unless a value is a tensor of the given shape. A string instead of a size allows any size:
    :obj:`check_shape((num_nodes, 'channels'), x=x)`.
    """
    for argument, value in given.items():
        if not isinstance(value, Tensor):
            raise ArgumentError(argument, type(value).__name__, 'tensors')
        fixed = [isinstance(size, str) or size == actual for size, actual in zip(sizes, value.shape, strict=False)]
        if value.dim() != len(sizes) or not all(fixed):
            raise ArgumentError(argument, f'shape {tuple(value.shape)}', f'[{", ".join(map(str, sizes))}]')


def check_nodes(num_nodes: int, /, **given: Tensor) -> None:
    r"""Raises an error unless a tensor contains nodes of a graph, :obj:`[n]`."""
    check_shape(('n',), **given)
    for argument, nodes in given.items():
        if nodes.dtype not in INTEGERS:
            raise ArgumentError(argument, nodes.dtype, 'int32 and int64', 'for a mask, mask.nonzero().flatten()')
        if bool(((nodes < 0) | (nodes >= num_nodes)).any()):
            span = f'numbers from {int(nodes.amin())} to {int(nodes.amax())}'
            raise ArgumentError(argument, span, f'nodes, whole numbers from 0 to {num_nodes - 1}')


def described(value: object) -> str:
    r"""Returns the shape and data type of a tensor, or the type of another value, for errors."""
    return f'shape {tuple(value.shape)} of {value.dtype}' if isinstance(value, Tensor) else type(value).__name__


def _check(given: Mapping[str, object], accepted: str, is_accepted: Callable[[object], bool]) -> None:
    for argument, value in given.items():
        if not is_accepted(value):
            raise ArgumentError(argument, repr(value), accepted)
