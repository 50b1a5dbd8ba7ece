r"""Small sets of images with fixed splits, as plain tensors."""

from __future__ import annotations

from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.apps.datasets.digits import digit_images, split_digits
from pyg_topomask.apps.datasets.file_dataset import SPLITS
from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_choice

#: Inputs and labels of the splits :obj:`"train"`, :obj:`"val"` and :obj:`"test"`.
Splits = dict[str, tuple[Tensor, Tensor]]

FILES = {'mnist': 'mnist_subset.npz', 'cifar10': 'cifar10_subset.npz'}
ARRAYS = ('x_train', 'y_train', 'x_test', 'y_test')


def load_images(name: str, root: str | Path | None = None) -> Splits:
    r"""Loads a set of images with its fixed splits: images :obj:`[n, channels, height, width]` in :math:`[0, 1]` and labels
    :obj:`[n]` of :obj:`"train"`, :obj:`"val"` and :obj:`"test"`.

    The :obj:`"digits"` and their split are those of :class:`~pyg_topomask.apps.datasets.DigitsGrid`. The sets :obj:`"mnist"`
    and :obj:`"cifar10"` are read from :obj:`mnist_subset.npz` and :obj:`cifar10_subset.npz` in the folder :obj:`root`, with
    :obj:`uint8` images :obj:`x_train`, :obj:`x_test` (:obj:`[n, height, width]` or :obj:`[n, height, width, channels]`) and
    labels :obj:`y_train`, :obj:`y_test`; the last tenth of the training images is for validation.

    Example:
        >>> images, labels = load_images('digits')['test']
        >>> images.shape, labels.shape
        (torch.Size([270, 1, 8, 8]), torch.Size([270]))
    """
    if name == 'digits':
        images, labels = digit_images()
        return {split: (images[index].unsqueeze(1), labels[index]) for split, index in split_digits(labels).items()}
    check_choice(('digits', *FILES), name=name)
    if root is None:
        raise ArgumentError('root', f'None for name={name!r}', f'the folder that holds {FILES[name]}')
    train_images, train_labels, *test = _read(Path(root) / FILES[name])
    kept = len(train_labels) - len(train_labels) // 10
    splits = (train_images[:kept], train_labels[:kept]), (train_images[kept:], train_labels[kept:]), (test[0], test[1])
    return dict(zip(SPLITS, splits, strict=True))


def _read(path: Path) -> list[Tensor]:
    r"""Returns images and labels for training, then for testing."""
    if not path.is_file():
        raise FileNotFoundError(f'root: got {str(path.parent)!r}, which lacks {path.name}; accepted: a folder that holds it')
    try:
        with np.load(path) as file:
            arrays = {key: file[key] for key in ARRAYS}
    except (BadZipFile, KeyError, ValueError, EOFError) as error:
        raise ArgumentError('root', repr(str(path)), f'files that hold the arrays {", ".join(ARRAYS)}') from error
    tensors = []
    for split in ('train', 'test'):
        images, labels = arrays[f'x_{split}'], arrays[f'y_{split}']
        if images.dtype != np.uint8 or images.ndim not in (3, 4) or labels.shape != images.shape[:1]:
            raise ArgumentError(
                'root',
                f'{str(path)!r} with x_{split} of shape {images.shape} and {images.dtype}, y_{split} of shape {labels.shape}',
                'uint8 images [n, height, width] or [n, height, width, channels] and labels [n]',
            )
        channels_last = torch.from_numpy(images.reshape(*images.shape[:3], -1))
        tensors += [channels_last.permute(0, 3, 1, 2).float().contiguous() / 255, torch.from_numpy(labels).long()]
    return tensors
