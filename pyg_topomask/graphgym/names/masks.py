r"""Masks composed in a YAML."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from operator import add, mul
from typing import Any

from torch_geometric.graphgym.config import cfg

import pyg_topomask.masks
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.names.lookup import construct, decoded, read_yaml
from pyg_topomask.masks import Mask, MultiHeadMask
from pyg_topomask.utils.checks import is_number
from pyg_topomask.utils.options import did_you_mean

#: The masks of the package that do not need tensors or other masks, by name in a tree. An entry is called as
#: ``entry(heads=, **options)``.
MASKS: dict[str, Callable[..., Mask]] = {
    name.removesuffix('Mask'): getattr(pyg_topomask.masks, name)
    for name in pyg_topomask.masks.__all__
    if name.endswith('Mask')
    and name not in ('DenseMask', 'HadamardMask', 'Mask', 'MultiHeadMask', 'ScaledMask', 'SumMask', 'TransposedMask')
}

#: Words that compose a mask.
COMPOSITIONS = ('sum', 'hadamard', 'heads', 'transpose', 'scale')


def build_mask(tree: Any, heads: int) -> Mask:
    r"""Builds a mask from its description under :obj:`topomask.mask`.

    A tree is a name, ``{name: {argument: value}}``, ``{sum: [tree, ...]}``, ``{hadamard: [tree, ...]}`` (in each pair, one
    has low rank or both are sparse), ``{transpose: tree}``, ``{scale: [number, tree]}``, or ``{heads: [tree, ...]}``, which
    gives each tree an equal share of the heads.

    Raises a :class:`ValueError` if the tree has the wrong form, a mask is unknown, or an argument does not fit.

    Example:
        >>> build_mask({'sum': ['Adjacency', {'scale': [0.5, {'GRF': {'num_walks': 8}}]}]}, heads=2)
        SumMask(
          heads=2
          (masks): ModuleList(
            (0): AdjacencyMask(heads=2, normalization=None, edges followed)
            (1): ScaledMask(
              heads=2, edges both ways
              (masks): ModuleList(
                (0): GRFMask(heads=2, ...)
              )
            )
          )
        )
    """
    if tree is None or tree == {}:
        known = f'the names {", ".join(MASKS)}, and trees of them with one entry, such as {{sum: [GRF, SinDegree]}}'
        raise _error('nothing', known)
    if isinstance(tree, str):
        tree = {tree: {}}
    if not isinstance(tree, Mapping) or len(tree) != 1:
        raise _error(repr(tree), 'names and trees with one entry, such as {sum: [...]}')
    ((kind, content),) = tree.items()
    if kind == 'transpose':
        return build_mask(content, heads).T
    if kind == 'scale':
        scale = decoded(content[0]) if isinstance(content, list) and len(content) == 2 else None
        if not is_number(scale) or not math.isfinite(scale):
            raise _error(f'scale of {content!r}', 'a list of a number and a tree')
        return build_mask(content[1], heads) * scale
    if kind in ('sum', 'hadamard', 'heads'):
        if not isinstance(content, list) or len(content) < 2:
            raise _error(f'{kind} of {content!r}', 'lists of two or more trees')
        share = heads // len(content) if kind == 'heads' else heads
        if kind == 'heads' and share * len(content) != heads:
            raise _error(f'{len(content)} masks for {heads} heads', f'divisors of {heads}')
        masks = [build_mask(subtree, share) for subtree in content]
        if kind == 'heads':
            return MultiHeadMask(*masks)
        try:
            composed: Mask = reduce(add if kind == 'sum' else mul, masks)
        except ArgumentError as error:
            raise error.renamed('topomask.mask') from error
        return composed
    if kind not in MASKS:
        known = f'{", ".join(MASKS)}, and of trees {", ".join(COMPOSITIONS)}'
        raise _error(repr(kind), known, did_you_mean(kind, (*MASKS, *COMPOSITIONS)))
    if isinstance(content, Mapping) and 'heads' in content:
        raise ArgumentError(f'topomask.mask.{kind}', 'heads', 'its other arguments', 'the heads are gt.n_heads')
    return construct(f'topomask.mask.{kind}', MASKS[kind], content, heads=heads)


def _error(given: str, accepted: str, remedy: str = '') -> ArgumentError:
    return ArgumentError('topomask.mask', given, accepted, remedy)


def first_options(tree: Any, name: str) -> dict[str, Any]:
    r"""Returns the options of the first mask with a given name and with options in a tree, depth first, or no options.

    Example:
        >>> first_options({'sum': ['GRF', {'scale': [0.5, {'GRF': {'num_walks': 8}}]}]}, 'GRF')
        {'num_walks': 8}
    """
    if isinstance(tree, Mapping) and isinstance(tree.get(name), Mapping) and tree[name]:
        return decoded(tree[name])
    subtrees = tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, list) else ()
    return next(filter(None, (first_options(subtree, name) for subtree in subtrees)), {})


def configured_tree(mask: str | None) -> Any:
    r"""Returns the tree of the attention :obj:`Masked`: its option :obj:`mask`, a line of YAML, or :obj:`topomask.mask`."""
    return cfg.topomask.mask if mask is None else read_tree(mask)


def read_tree(text: str) -> Any:
    r"""Reads the description of a mask from a line of YAML, such as :obj:`"{sum: [GRF, SinDegree]}"`."""
    return read_yaml('topomask.mask', text, 'trees in YAML, such as {sum: [GRF, SinDegree]}')
