r"""Masks with a learned diffusion time per head."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.utils.checks import per_head


class DiffusionMask(Mask):
    r"""A mask with a time :math:`\lambda > 0` per head, the softplus of a parameter.

    Args:
        heads (int): The number of heads.
        lam (float, sequence of float or torch.Tensor): The initial times, one number or :obj:`[heads]`.
        learnable (bool): Whether they are learned. (default: :obj:`True`)

    Raises:
        ValueError: If a time is not above 0.
    """

    initial: Tensor

    def __init__(self, heads: int, lam: float | Sequence[float] | Tensor, learnable: bool = True) -> None:
        super().__init__(heads)
        given = per_head(heads, lam=lam)
        if not bool((given > 0).all()):
            raise ArgumentError('lam', given.tolist(), 'numbers above 0')
        self.initial = given + torch.log(-torch.expm1(-given))
        self.raw_lam = torch.nn.Parameter(torch.empty(heads), requires_grad=learnable)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.raw_lam.copy_(self.initial)

    @property
    def lam(self) -> Tensor:
        r""":math:`\lambda`, :obj:`[heads]`."""
        return torch.nn.functional.softplus(self.raw_lam.to(torch.promote_types(self.raw_lam.dtype, torch.float32)))
