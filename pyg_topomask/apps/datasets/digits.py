r"""Handwritten digits as grid graphs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.apps.datasets.file_dataset import SPLITS, Transform
from pyg_topomask.apps.datasets.generated_dataset import GeneratedDataset
from pyg_topomask.graphs.edges import grid_edges


class DigitsGrid(GeneratedDataset):
    r"""1,797 handwritten digits of 8x8 pixels as grid graphs, for graph classification without any download.

    The images come with scikit-learn (:func:`sklearn.datasets.load_digits`). A node is a pixel, with edges from and to the
    pixels above, below, left and right of it. Node features are the intensity in :math:`[0, 1]` and the row and column in
    :math:`[-1, 1]`; edge features are the step from source to target in rows and columns. The fixed split has
    70 % of each class for training, 15 % for validation and 15 % for testing.
    """

    def __init__(
        self,
        root: str | None = None,
        split: str | None = None,
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
    ) -> None:
        super().__init__(root, split, transform, pre_transform)
        images, labels = digit_images()
        self.hold(grid_graphs(images.unsqueeze(1), labels), split_digits(labels))


def digit_images() -> tuple[Tensor, Tensor]:
    r"""Returns scikit-learn's digits, :obj:`[1797, 8, 8]` in :math:`[0, 1]`, and their labels, :obj:`[1797]`."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError('DigitsGrid needs scikit-learn: install pyg_topomask with its extra [graphgym]') from error
    digits = load_digits()
    return torch.from_numpy(digits.images).float() / 16, torch.from_numpy(digits.target).long()


def split_digits(labels: Tensor) -> dict[str, Tensor]:
    r"""Returns the indices of the digits of each split, 70, 15 and 15 percent of each class, in a fixed split."""
    from sklearn.model_selection import train_test_split

    everything = torch.arange(labels.numel()).numpy()
    train, rest = train_test_split(everything, train_size=0.7, stratify=labels.numpy(), random_state=0)
    val, test = train_test_split(rest, train_size=0.5, stratify=labels.numpy()[rest], random_state=0)
    return {name: torch.from_numpy(index).sort().values for name, index in zip(SPLITS, (train, val, test), strict=True)}


def grid_graphs(images: Tensor, labels: Tensor, positions: bool = True) -> list[Data]:
    r"""Creates graphs of pixels of images :obj:`[n, channels, height, width]` with labels :obj:`[n]`.

    Edges lead to the pixels above, below, left and right, and have the step in rows and columns as features. Features of nodes
    are the channels and, with :obj:`positions`, the row and the column in :math:`[-1, 1]`.
    """
    height, width = images.shape[2:]
    edge_index = grid_edges((height, width))
    row = torch.arange(height * width) // width
    column = torch.arange(height * width) % width
    source, target = torch.stack([row, column], dim=1)[edge_index]
    edge_attr = (target - source).float()
    # A single row or column is at -1.
    position = torch.stack([2 * row / max(height - 1, 1) - 1, 2 * column / max(width - 1, 1) - 1], dim=1)
    return [
        Data(
            x=torch.cat([image.flatten(1).t(), position], dim=1) if positions else image.flatten(1).t(),
            edge_index=edge_index,
            edge_attr=edge_attr,
            y=label.view(1),
        )
        for image, label in zip(images, labels, strict=True)
    ]
