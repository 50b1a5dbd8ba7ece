r"""How layers get their mask."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pyg_topomask.errors import ArgumentError
from pyg_topomask.masks import Mask
from pyg_topomask.utils.options import instance_of


def fit_mask(mask: Mask, heads: int) -> None:
    r"""Gives a mask that was made without heads those of the layer. Raises an error unless the mask then has :obj:`heads`
    heads, or one head that all share.
    """
    if not isinstance(mask, Mask):
        raise ArgumentError('mask', repr(mask), f'a Mask, such as GRFMask(heads={heads})', instance_of(mask))
    if mask.heads == 1:
        mask.take_heads(heads)
    if mask.heads not in (1, heads):
        raise ArgumentError('mask', f'a mask of {mask.heads} heads for heads={heads}', f'1 and {heads}')


def with_mask(mask: type[Mask], heads: int, options: Mapping[str, Any], **decided: Any) -> dict[str, Any]:
    r"""Returns the options of a layer, with a mask created from those that are its own, and from those that the layer has
    :obj:`decided`.
    """
    names = inspect.signature(mask).parameters
    of_mask = {name: options[name] for name in options if name in names}
    of_layer = {name: options[name] for name in options if name not in names}
    return {'mask': mask(heads, **decided, **of_mask), **of_layer}
