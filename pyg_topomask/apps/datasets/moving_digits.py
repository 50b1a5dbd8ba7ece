r"""Videos of handwritten digits that move and bounce."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.apps.datasets.digits import digit_images, grid_graphs, split_digits
from pyg_topomask.apps.datasets.file_dataset import Transform, consecutive_splits
from pyg_topomask.apps.datasets.generated_dataset import GeneratedDataset
from pyg_topomask.apps.datasets.images import Splits
from pyg_topomask.utils.checks import check_choice, check_whole, checked_seed

TARGETS = ('digit', 'direction', 'both')
# Rows and columns of a step down, up, right and left.
DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1))
MAX_SPEED = 2


class MovingDigits(GeneratedDataset):
    r"""One video of each of scikit-learn's 1,797 handwritten digits of 8x8 pixels as a grid graph, without any download.

    The digit moves down, up, right or left over a dark square, 1 or 2 pixels per frame, and turns around at the edges. Its
    start, direction and speed are random. The splits of the digits are those of
    :class:`~pyg_topomask.apps.datasets.DigitsGrid`.

    A node is a pixel, with edges from and to the pixels above, below, left and right of it. Node features are the intensities
    in all frames. Edge features are the step from source to target in rows and columns.

    Args:
        num_frames (int): The number of frames :math:`T`. (default: :obj:`8`)
        size (int): Height and width :math:`S` of the frames, from 12. (default: :obj:`16`)
        target (str): The label: the :obj:`"digit"` (10 classes), the :obj:`"direction"` of the first step (4
            classes: down, up, right, left), or :obj:`"both"` (40 classes, :obj:`4 * digit + direction`).
            (default: :obj:`"both"`)
        seed (int): The seed of the motion. (default: :obj:`0`)

    Example:
        >>> MovingDigits(split='test')[0]
        Data(x=[256, 8], edge_index=[2, 960], edge_attr=[960, 2], y=[1])
    """

    def __init__(
        self,
        root: str | None = None,
        split: str | None = None,
        num_frames: int = 8,
        size: int = 16,
        target: str = 'both',
        seed: int = 0,
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
    ) -> None:
        super().__init__(root, split, transform, pre_transform)
        splits = moving_digits(num_frames, size, target, seed)
        graphs = [
            graph for videos, labels in splits.values() for graph in grid_graphs(videos.flatten(1, 2), labels, positions=False)
        ]
        self.hold(graphs, consecutive_splits([len(labels) for _, labels in splits.values()]))


def moving_digits(num_frames: int = 8, size: int = 16, target: str = 'both', seed: int = 0) -> Splits:
    r"""Generates the videos of :class:`MovingDigits`, :obj:`[n, T, 1, S, S]` in :math:`[0, 1]`, and labels, :obj:`[n]`, of
    :obj:`"train"`, :obj:`"val"` and :obj:`"test"`.

    Example:
        >>> videos, labels = moving_digits(num_frames=4)['test']
        >>> videos.shape, labels.shape
        (torch.Size([270, 4, 1, 16, 16]), torch.Size([270]))
    """
    images, digits = digit_images()
    smallest = images.size(-1) + 2 * MAX_SPEED
    check_whole(1, num_frames=num_frames)
    check_whole(smallest, size=size)  # every first step stays inside
    seed = checked_seed(seed=seed)
    check_choice(TARGETS, target=target)
    generator = torch.Generator().manual_seed(seed)
    count, free = images.size(0), size - images.size(-1)
    start = torch.randint(MAX_SPEED, free - MAX_SPEED + 1, (count, 2), generator=generator)
    direction = torch.randint(len(DIRECTIONS), (count,), generator=generator)
    speed = torch.randint(1, MAX_SPEED + 1, (count, 1), generator=generator)
    step = torch.tensor(DIRECTIONS)[direction] * speed
    videos = _render(images, _bounce(start.unsqueeze(1) + torch.arange(num_frames).view(-1, 1) * step.unsqueeze(1), free), size)
    labels = {'digit': digits, 'direction': direction, 'both': len(DIRECTIONS) * digits + direction}[target]
    return {split: (videos[index], labels[index]) for split, index in split_digits(digits).items()}


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
