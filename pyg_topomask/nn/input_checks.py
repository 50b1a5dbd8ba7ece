r"""Checks of the sizes of attention layers, and of what they are given."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.masks import Mask
from pyg_topomask.utils.checks import MAX_SIZE, check_size, is_whole


def resolve_channels(channels: int, out_channels: int | None, heads: int, divide: bool = True) -> int:
    r"""Returns the number of output channels, by default :obj:`channels`.

    Args:
        channels (int): Size of each input sample, or :obj:`-1` for a lazy one.
        out_channels (int, optional): Size of each output sample.
        heads (int): The number of heads.
        divide (bool): Whether the heads divide the output channels among them. (default: :obj:`True`)

    Raises:
        ValueError: If a number is outside its range, the number of output channels is unknown, or the heads do not fit.
    """
    out_channels = channels if out_channels is None else out_channels
    if channels == -1 and out_channels == -1:
        raise ArgumentError('out_channels', 'None for channels=-1', 'a number of output channels')
    check_input_channels(channels, 'channels')
    check_size(out_channels=out_channels, heads=heads)
    if divide:
        check_heads(heads, out_channels)
    return out_channels


def check_input_channels(channels: int, argument: str = 'in_channels') -> None:
    r"""Raises a :class:`ValueError` unless a number of channels is from 1, or -1 for a lazy one."""
    if not is_whole(channels, -1) or channels == 0 or channels > MAX_SIZE:
        accepted = f'whole numbers from 1 to {MAX_SIZE}, and -1 for those of the first input'
        raise ArgumentError(argument, repr(channels), accepted)


def check_heads(heads: int, channels: int) -> None:
    r"""Raises a :class:`ValueError` unless the number of heads divides the channels."""
    check_size(heads=heads)
    if channels % heads != 0:
        raise ArgumentError('heads', f'{heads} for {channels} channels', 'divisors of the channels')


def _fits(x: Tensor, dtype: torch.dtype) -> bool:
    return x.dtype == dtype or (x.is_floating_point() and torch.is_autocast_enabled(x.device.type))


def check_dtype(dtype: torch.dtype, **given: Tensor) -> None:
    r"""Raises a :class:`ValueError` unless the inputs have the data type of the parameters. Under autocast, any floating point
    type is valid.
    """
    for name, value in given.items():
        if not _fits(value, dtype):
            raise ArgumentError(name, value.dtype, f'{dtype}, the data type of the parameters')


def check_features(x: Tensor, channels: int, dtype: torch.dtype) -> None:
    r"""Raises a :class:`ValueError` unless node features have :obj:`channels` channels (:obj:`-1` for any number) and the data
    type of the parameters. Under autocast, any floating point type is valid.
    """
    if not isinstance(x, Tensor):
        raise ArgumentError('x', type(x).__name__, 'the features of the nodes, a tensor [N, channels]')
    if x.dim() != 2 or channels not in (-1, x.size(1)) or not _fits(x, dtype):
        raise ArgumentError(
            'x',
            f'shape {tuple(x.shape)} of {x.dtype}',
            f'[N, {"channels" if channels == -1 else channels}] of {dtype}, the data type of the parameters',
        )


def check_mask(mask: Mask, heads: int) -> None:
    r"""Raises a :class:`ValueError` unless the mask has :obj:`heads` heads, or one head that all share."""
    if not isinstance(mask, Mask):
        raise ArgumentError('mask', repr(mask), f'a Mask, such as GRFMask(heads={heads})')
    if mask.heads not in (1, heads):
        raise ArgumentError('mask', f'a mask of {mask.heads} heads for heads={heads}', f'1 and {heads}')
