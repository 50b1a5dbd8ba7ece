r"""Operators as tensors and a text, which custom operators of torch take, and a program exported by another process holds.

A custom operator is one node for torch.compile. Its arguments are tensors and plain values. ``describe`` writes everything else
that an operator consists of to a literal of Python: the names of classes, their settings, and ``()`` for each tensor. ``build``
makes the operator from them again. (Objects as arguments of custom operators, which newer versions of torch offer, are neither
in torch 2.6 nor in exported programs.)
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.sparse_pattern import SparsePattern

Kind = TypeVar('Kind', bound='type[Any]')

_NAMES: dict[type[Any], str] = {}
_KINDS: dict[str, type[Any]] = {}
#: Settings that are no literals of Python.
_SETTINGS: dict[str, Callable[[str], Any]] = {
    'float': float,
    'dtype': lambda name: getattr(torch, name),
    'device': torch.device,
}
#: Fields that products do without.
_CONTEXT = ('segments', 'cost')


def register(kind: Kind) -> Kind:
    r"""Lets a dataclass of tensors, settings and other such classes be described."""
    name = f'{kind.__module__}.{kind.__qualname__}'
    if name in _KINDS:  # another class of this name, as in a notebook
        name = f'{name}#{len(_KINDS)}'
    _NAMES[kind], _KINDS[name] = name, kind
    return kind


register(SparsePattern)


def describe(operator: Any) -> tuple[list[Tensor], str]:
    r"""Returns the tensors of an operator, in the order of the fields of its class, and the text that describes the rest."""
    tensors: list[Tensor] = []
    return tensors, _text(_parts(operator, tensors))


def _parts(value: Any, tensors: list[Tensor]) -> Any:
    if isinstance(value, Tensor):
        tensors.append(value)
        return ()
    if isinstance(value, (tuple, list)):
        return ('', *[_parts(each, tensors) for each in value])
    if type(value) in _NAMES:
        value = value.formed() if hasattr(value, 'formed') else value
        names = _names_of(value)  # dynamo knows fields of objects, not of classes
        return (_NAMES[type(value)], *[_parts(getattr(value, name), tensors) for name in names])
    return _literal(value)


def _names_of(operator: Any) -> list[str]:
    r"""Returns the arguments of an operator, or of its class, that products need."""
    if operator is SparsePattern or isinstance(operator, SparsePattern):
        return ['rowptr', 'col', 'rowptr_t', 'col_t', 'perm_t']
    return [field.name for field in fields(operator) if field.init and field.name not in _CONTEXT]


def _literal(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return 'float', repr(value)
    if isinstance(value, torch.dtype):
        return 'dtype', str(value).removeprefix('torch.')
    if isinstance(value, torch.device):
        return 'device', str(value)
    if value is not None and not isinstance(value, (bool, int, float, complex, str, bytes, torch.SymInt)):
        accepted = 'tensors, operators, numbers, strings, data types, devices, None, and tuples of these'
        raise ArgumentError('operator', f'the field {value!r} of {type(value).__name__}', accepted)
    return value


@torch.compiler.assume_constant_result
def _text(parts: Any) -> str:
    return repr(parts)


def build(text: str, tensors: Sequence[Tensor]) -> Any:
    r"""Returns an operator from its text and its tensors. It multiplies, but knows no graphs and no cost."""
    return _built(_parsed(text), iter(tensors))


@lru_cache(1024)
def _parsed(text: str) -> Any:
    return ast.literal_eval(text)


def _built(parts: Any, tensors: Iterator[Tensor]) -> Any:
    if parts == ():
        return next(tensors)
    if not isinstance(parts, tuple):
        return parts
    name, *inner = parts
    if name in _SETTINGS:
        return _SETTINGS[name](*inner)
    values = [_built(each, tensors) for each in inner]
    if not name:
        return tuple(values)
    if name not in _KINDS:
        raise ArgumentError('operator', repr(name), 'operators whose classes are imported')
    kind = _KINDS[name]
    return kind(**dict(zip(_names_of(kind), values, strict=True)))
