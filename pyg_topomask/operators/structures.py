r"""How masks multiply: the static part of a :class:`~pyg_topomask.operators.capabilities.Product`, and of sums, scalings and
entrywise products.

A structure is frozen and hashable, and contains no tensors. Its methods take the tensors in a fixed order.

Custom operators, which are single nodes for torch.compile, accept only tensors and plain values. They take the string
:attr:`MaskStructure.key` of a structure, and look it up in a table in this file.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError

__all__ = ['MaskStructure']

_STRUCTURES: dict[str, MaskStructure] = {}


def structure_from_key(key: str) -> MaskStructure:
    r"""Returns the structure with the :attr:`MaskStructure.key` :obj:`key`, which another process may have made, as that of an
    exported program. Its class must have been imported.

    Raises:
        ValueError: If the key names no structure.
    """
    if key not in _STRUCTURES:
        name, _, arguments = key.partition('(')
        kind = next((kind for kind in _kinds(MaskStructure) if f'{kind.__module__}.{kind.__qualname__}' == name), None)
        if kind is None or '#' in arguments:
            raise ArgumentError('structure', repr(key), 'structures of masks whose classes are imported')
        fields_of = ast.literal_eval(f'({arguments}')
        for inner in _texts(fields_of):
            if '(' in inner:
                structure_from_key(inner)
        _STRUCTURES[key] = kind(*_structured(fields_of))
    return _STRUCTURES[key]


def _kinds(kind: type[Any]) -> Iterator[type[MaskStructure]]:
    for each in kind.__subclasses__():
        yield each
        yield from _kinds(each)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _texts(item)


def replaced(tensors: Sequence[Tensor], indices: Sequence[int], replacements: Sequence[Tensor]) -> list[Tensor]:
    r"""Returns the tensors with some of them replaced, to differentiate a product with respect to these."""
    merged = list(tensors)
    for index, replacement in zip(indices, replacements, strict=True):
        merged[index] = replacement
    return merged


@dataclass(frozen=True)
class MaskStructure(ABC):
    r"""The static description of an operator: how its tensors multiply. It is frozen, hashable, and contains no tensors."""

    @abstractmethod
    def apply(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        r"""Returns :math:`\mathbf{M} \mathbf{x}` for :obj:`x` of shape :obj:`[N, H, c]`. Pure and differentiable."""

    def magnitude(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        r"""Returns :math:`|\mathbf{M}| \mathbf{x}` for :math:`\mathbf{x} \ge 0`, or an upper bound of it. A row whose
        denominator is below rounding errors relative to this bound counts as a zero row.

        The default is the product with the absolute values of the tensors. A structure that subtracts overrides it.
        """
        return self.apply([tensor.abs() if tensor.is_floating_point() else tensor for tensor in tensors], x)

    @abstractmethod
    def transpose(self, tensors: Sequence[Tensor]) -> tuple[MaskStructure, tuple[Tensor, ...]]:
        r"""Returns structure and tensors of :math:`\mathbf{M}^{\top}`."""

    def has_machine_code(self, learnable: Sequence[int] = ()) -> bool:
        r"""Returns whether there is machine code of attention, and of its gradients in these tensors, where Numba is used."""
        return False

    def attend(self, tensors: Sequence[Tensor], q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        r"""Returns :math:`\sum_j M_{ij} \, \mathbf{q}_i^{\top} \mathbf{k}_j \, \mathbf{v}_j`, :obj:`[N, H, d]`, by machine
        code.
        """
        raise NotImplementedError

    def attend_backward(
        self, tensors: Sequence[Tensor], learnable: Sequence[int], q: Tensor, k: Tensor, v: Tensor, grad: Tensor
    ) -> list[Tensor]:
        r"""Returns the gradients of queries, keys, values and some tensors from that of :meth:`attend`."""
        raise NotImplementedError

    def factors(self, tensors: Sequence[Tensor]) -> Sequence[Tensor] | None:
        r"""Returns tensors without whose negative numbers no entry is negative, and :meth:`magnitude` is the product; or
        :obj:`None`.
        """
        return None

    def diagonal(self, tensors: Sequence[Tensor]) -> Tensor | None:
        r"""Returns the diagonal, :obj:`[N, H]`, or :obj:`None` if only products with unit vectors give it."""
        return None

    def root(self, tensors: Sequence[Tensor]) -> tuple[MaskStructure, tuple[Tensor, ...]] | None:
        r"""Returns structure and tensors of an :math:`\mathbf{R}` with :math:`\mathbf{M} = \mathbf{R} \mathbf{R}^{\top}`, or
        :obj:`None` if none is known.
        """
        return None

    @property
    def key(self) -> str:
        r"""A string that identifies this structure in custom operators, which accept only tensors and plain values."""
        return _registered(type(self), tuple(_plain(getattr(self, field.name)) for field in fields(self)))


def _plain(value: Any) -> Any:
    r"""Replaces structures by keys."""
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    return value.key if isinstance(value, MaskStructure) else value


def _structured(value: Any) -> Any:
    r"""Replaces keys by structures."""
    if isinstance(value, tuple):
        return tuple(_structured(item) for item in value)
    return _STRUCTURES.get(value, value) if isinstance(value, str) else value


@torch.compiler.assume_constant_result  # otherwise, a compiled graph could run before the structure exists
def _registered(kind: type[MaskStructure], arguments: tuple[Any, ...]) -> str:
    key, structure = f'{kind.__module__}.{kind.__qualname__}{arguments!r}', kind(*_structured(arguments))
    if type(_STRUCTURES.setdefault(key, structure)) is not kind:  # another class with the same name
        key = f'{key}#{id(kind)}'
        _STRUCTURES.setdefault(key, structure)
    return key


class Combination(MaskStructure):
    r"""Base class of structures that combine products of others, and bounds of these products in the same way."""

    def apply(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        return self._combine('apply', tensors, x)

    def magnitude(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        return self._combine('magnitude', tensors, x)

    @abstractmethod
    def _combine(self, method: str, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        r"""Returns what the other structures return by a method, combined."""


@dataclass(frozen=True)
class Composition(Combination):
    r"""Base class of compositions of structures, with concatenated tensors. :obj:`lengths` are their numbers of tensors."""

    structures: tuple[MaskStructure, ...]
    lengths: tuple[int, ...]

    def _split(self, tensors: Sequence[Tensor]) -> list[tuple[MaskStructure, Sequence[Tensor]]]:
        split, start = [], 0
        for structure, length in zip(self.structures, self.lengths, strict=True):
            split.append((structure, tensors[start : start + length]))
            start += length
        return split

    def transpose(self, tensors: Sequence[Tensor]) -> tuple[MaskStructure, tuple[Tensor, ...]]:
        transposes = [structure.transpose(group) for structure, group in self._split(tensors)]
        lengths = tuple(len(group) for _, group in transposes)
        composition = replace(self, structures=tuple(structure for structure, _ in transposes), lengths=lengths)
        return composition, tuple(tensor for _, group in transposes for tensor in group)


@dataclass(frozen=True)
class SumStructure(Composition):
    r""":math:`\sum_i \mathbf{M}_i`."""

    def _combine(self, method: str, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        first, *rest = (getattr(structure, method)(group, x) for structure, group in self._split(tensors))
        return sum(rest, start=first)


@dataclass(frozen=True)
class ChainStructure(Composition):
    r"""The matrix product of masks, :math:`\mathbf{M}_1 \mathbf{M}_2 \cdots`."""

    def _combine(self, method: str, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        for structure, group in reversed(self._split(tensors)):
            x = getattr(structure, method)(group, x)
        return x

    def transpose(self, tensors: Sequence[Tensor]) -> tuple[MaskStructure, tuple[Tensor, ...]]:
        transposes = [structure.transpose(group) for structure, group in reversed(self._split(tensors))]
        structures, groups = zip(*transposes, strict=True)
        chain = replace(self, structures=structures, lengths=tuple(map(len, groups)))
        return chain, tuple(tensor for group in groups for tensor in group)


@dataclass(frozen=True)
class HeadsStructure(Composition):
    r"""Masks concatenated along the heads. The first acts on the first :obj:`heads[0]` heads, and so on."""

    heads: tuple[int, ...]

    def _combine(self, method: str, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        split = zip(self._split(tensors), x.split(self.heads, dim=1), strict=True)
        return torch.cat([getattr(structure, method)(group, block) for (structure, group), block in split], dim=1)


@dataclass(frozen=True)
class ScaledStructure(Combination):
    r""":math:`c_h \mathbf{M}_h`, where the scales :math:`c` are the first tensor, one number or one per head."""

    inner: MaskStructure

    def _combine(self, method: str, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        scale, *rest = tensors
        scale = scale.to(x.dtype).unsqueeze(-1)
        return getattr(self.inner, method)(rest, x) * (scale.abs() if method == 'magnitude' else scale)

    def transpose(self, tensors: Sequence[Tensor]) -> tuple[MaskStructure, tuple[Tensor, ...]]:
        inner, rest = self.inner.transpose(tensors[1:])
        return ScaledStructure(inner), (tensors[0], *rest)


@dataclass(frozen=True)
class HadamardLowRankStructure(Combination):
    r""":math:`(\mathbf{M} \circ \mathbf{A} \mathbf{B}^{\top}) \mathbf{x}
    = \sum_r \mathbf{a}_r \circ \mathbf{M} (\mathbf{b}_r \circ \mathbf{x})`, where :math:`\mathbf{A}` and
    :math:`\mathbf{B}` are the first tensors.
    """

    inner: MaskStructure

    def _combine(self, method: str, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        left, right, *rest = tensors
        if method == 'magnitude':
            left, right = left.abs(), right.abs()
        ranks = zip(left.to(x.dtype).unsqueeze(-2).unbind(-1), right.to(x.dtype).unsqueeze(-2).unbind(-1), strict=True)
        return sum((a * getattr(self.inner, method)(rest, b * x) for a, b in ranks), start=torch.zeros_like(x))

    def transpose(self, tensors: Sequence[Tensor]) -> tuple[MaskStructure, tuple[Tensor, ...]]:
        inner, rest = self.inner.transpose(tensors[2:])
        return HadamardLowRankStructure(inner), (tensors[1], tensors[0], *rest)
