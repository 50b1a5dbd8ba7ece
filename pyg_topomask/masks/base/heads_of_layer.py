r"""Masks that are made without a number of heads, and take that of their layer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.utils.options import check_arguments


def _constructor(init: Callable[..., None]) -> Callable[..., None]:
    r"""Has a constructor run on the CPU if the default device is ``meta``, whose tensors have no numbers to check and keep. The
    mask remembers a call without :obj:`heads`, see :meth:`HeadsOfLayer.take_heads`.
    """
    signature = inspect.signature(init)

    @wraps(init)
    def construct(self: HeadsOfLayer, *args: Any, **kwargs: Any) -> None:
        check_arguments(type(self), signature, self, *args, **kwargs)
        if torch.get_default_device().type != 'meta':
            init(self, *args, **kwargs)
        else:
            with torch.device('cpu'):
                init(self, *args, **kwargs)
            self.to('meta')
        self._without_heads = None
        if 'heads' in signature.parameters and 'heads' not in signature.bind(self, *args, **kwargs).arguments:
            self._without_heads = args, kwargs, [parameter.detach().clone() for parameter in self.parameters()]

    return construct


class HeadsOfLayer(torch.nn.Module):
    r"""A module that was made without :obj:`heads` can be made again with those of a layer."""

    heads: int
    # Whether the layer has decided the number of heads.
    _took_heads: bool = False
    # The arguments and the first parameters of a mask that was made without heads, and is in no layer.
    _without_heads: tuple[tuple[Any, ...], dict[str, Any], list[Tensor]] | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if '__init__' in cls.__dict__:
            cls.__init__ = _constructor(cls.__init__)  # type: ignore[method-assign]

    def take_heads(self, heads: int) -> None:
        r"""Gives the number of heads of a layer to a mask that was made without :obj:`heads`, if it has parameters for each
        head. They start as those of a mask made with :obj:`heads`. A mask made with :obj:`heads=1` keeps one head, which all
        heads of the layer share. If the parameters have changed since the mask was made, it keeps them, and warns.
        """
        made, self._without_heads = self._without_heads, None
        if made is None or heads == self.heads:
            return
        args, kwargs, initial = made
        try:
            mask = cast('Callable[..., HeadsOfLayer]', type(self))(*args, **kwargs, heads=heads)
        except ArgumentError:  # an argument is of one head, such as an f of shape [1, K + 1]
            return
        old, new = list(self.parameters()), list(mask.parameters())
        if [parameter.shape for parameter in old] == [parameter.shape for parameter in new]:
            return
        if not all(now.is_meta or torch.equal(now, begun.to(now)) for now, begun in zip(old, initial, strict=True)):
            warn(
                f'mask: got a {type(self).__name__} without heads whose parameters have changed since it was made. All {heads} '
                f'heads of the layer share them. Make the mask with heads={heads}, or with heads=1.'
            )
            return
        for parameter, like in zip(new, old, strict=True):
            parameter.data = parameter.to(like)
            parameter.requires_grad_(like.requires_grad)
        self.__dict__.update(vars(mask.train(self.training)), _without_heads=None, _took_heads=True)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        errors = args[-1]
        before = len(errors)
        super()._load_from_state_dict(state_dict, prefix, *args)
        if len(errors) > before and self._took_heads:
            errors.append(
                f'{prefix[:-1]}: the mask took the {self.heads} heads of its layer; heads=1 makes one that all share.'
            )
