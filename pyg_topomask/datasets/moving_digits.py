r"""Videos of handwritten digits that move and bounce."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.datasets.digits import digit_images, split_digits
from pyg_topomask.datasets.images import Splits

__all__ = ['moving_digits']

TARGETS = ('digit', 'direction', 'both')
# Rows and columns of a step down, up, right and left.
DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1))
MAX_SPEED = 2


def moving_digits(num_frames: int = 8, size: int = 16, target: str = 'both', seed: int = 0) -> Splits:
    r"""Makes one video of each of scikit-learn's 1,797 handwritten digits of 8x8 pixels, without any download: the digit moves
    down, up, right or left over a dark square, 1 or 2 pixels a frame, and turns around at the edges. Where it starts, its
    direction and speed are drawn at random.

    No digit is in two splits: they are those of :class:`~pyg_topomask.datasets.DigitsGrid`.

    Args:
        num_frames (int): The number of frames :math:`T`. (default: :obj:`8`)
        size (int): Height and width :math:`S` of the frames, from 12. (default: :obj:`16`)
        target (str): What the label is: the :obj:`"digit"` (10 classes), the :obj:`"direction"` of the first step (4
            classes: down, up, right, left), or :obj:`"both"` (40 classes, :obj:`4 * digit + direction`).
            (default: :obj:`"both"`)
        seed (int): The seed of the motion. (default: :obj:`0`)

    Returns:
        dict: Videos, :obj:`[n, T, 1, S, S]` in :math:`[0, 1]`, and labels, :obj:`[n]`, of :obj:`"train"`, :obj:`"val"` and
        :obj:`"test"`.

    Raises:
        ValueError: If there are no frames, the frames are too small, or the target is unknown.

    Example:
        >>> videos, labels = moving_digits(num_frames=4)['test']
        >>> videos.shape, labels.shape
        (torch.Size([270, 4, 1, 16, 16]), torch.Size([270]))
    """
    images, digits = digit_images()
    smallest = images.size(-1) + 2 * MAX_SPEED
    if num_frames < 1:
        raise ValueError(f'num_frames: got {num_frames}; accepted are numbers from 1')
    if size < smallest:
        raise ValueError(f'size: got {size}; accepted are sizes from {smallest}, where every first step stays inside')
    if target not in TARGETS:
        raise ValueError(f'target: got {target!r}; accepted are {list(TARGETS)}')
    generator = torch.Generator().manual_seed(seed)
    count, free = images.size(0), size - images.size(-1)
    start = torch.randint(MAX_SPEED, free - MAX_SPEED + 1, (count, 2), generator=generator)
    direction = torch.randint(len(DIRECTIONS), (count,), generator=generator)
    speed = torch.randint(1, MAX_SPEED + 1, (count, 1), generator=generator)
    step = torch.tensor(DIRECTIONS)[direction] * speed
    videos = _render(images, _bounce(start.unsqueeze(1) + torch.arange(num_frames).view(-1, 1) * step.unsqueeze(1), free), size)
    labels = {'digit': digits, 'direction': direction, 'both': len(DIRECTIONS) * digits + direction}[target]
    return {part: (videos[own], labels[own]) for part, own in split_digits(digits).items()}


def _bounce(position: Tensor, free: int) -> Tensor:
    r"""Reflects positions at 0 and :obj:`free`."""
    return free - (position.remainder(2 * free) - free).abs()


def _render(images: Tensor, corner: Tensor, size: int) -> Tensor:
    r"""Draws each image with its upper left corner at the positions :obj:`[n, T, 2]`."""
    count, num_frames = corner.shape[:2]
    videos = images.new_zeros(count, num_frames, 1, size, size)
    pixel = torch.arange(images.size(-1))
    rows = corner[..., 0].view(count, num_frames, 1, 1) + pixel.view(-1, 1)
    columns = corner[..., 1].view(count, num_frames, 1, 1) + pixel
    video, frame = torch.arange(count).view(-1, 1, 1, 1), torch.arange(num_frames).view(-1, 1, 1)
    videos[video, frame, 0, rows, columns] = images.unsqueeze(1)
    return videos
