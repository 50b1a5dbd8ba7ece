r"""Tokens of the patches of images."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.nn.inputs import check_dtype
from pyg_topomask.utils.checks import check_size, is_whole


class PatchEmbedding(torch.nn.Module):
    r"""Splits images into patches, whose height and width divide those of the images, and projects each patch to a token."""

    def __init__(
        self, image_size: int | tuple[int, int], patch_size: int | tuple[int, int], in_channels: int, channels: int
    ) -> None:
        super().__init__()
        height, width = _pair('image_size', image_size)
        rows, columns = _pair('patch_size', patch_size)
        if height % rows != 0 or width % columns != 0:
            raise ArgumentError('patch_size', f'{patch_size} for image_size={image_size}', 'sizes that divide the images')
        check_size(in_channels=in_channels, channels=channels)
        self.shape = (in_channels, height, width)
        self.grid: tuple[int, int] = (height // rows, width // columns)
        self.conv = torch.nn.Conv2d(in_channels, channels, (rows, columns), (rows, columns))

    def forward(self, images: Tensor) -> Tensor:
        r"""Returns the tokens, row by row, :obj:`[B, patches, channels]`."""
        if images.shape[1:] != self.shape:
            raise ArgumentError('images', f'shape {tuple(images.shape)}', f'[B, {", ".join(map(str, self.shape))}]')
        check_dtype(self.conv.weight.dtype, images=images)
        return self.conv(images).flatten(2).transpose(1, 2)


def _pair(name: str, size: int | tuple[int, int]) -> tuple[int, int]:
    pair = size if isinstance(size, Sequence) else (size, size)
    if len(pair) != 2 or not all(is_whole(size, 1) for size in pair):
        raise ArgumentError(name, repr(size), 'a whole number from 1, and height and width')
    return pair
