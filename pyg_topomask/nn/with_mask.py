r"""Layers that create their mask."""

from __future__ import annotations

import inspect
from typing import Any

from pyg_topomask.masks import Mask


def with_mask(mask: type[Mask], heads: int, options: dict[str, Any], **decided: Any) -> dict[str, Any]:
    r"""Returns the options of a layer, with a mask created from the options of the mask.

    Args:
        mask (type): The class of the mask.
        heads (int): The number of heads.
        options (dict): The options of the mask and of the layer.
        **decided (optional): Options of the mask that the layer fixes.
    """
    names = inspect.signature(mask).parameters
    of_mask = {name: options[name] for name in options if name in names}
    of_layer = {name: options[name] for name in options if name not in names}
    return {'mask': mask(heads, **decided, **of_mask), **of_layer}
