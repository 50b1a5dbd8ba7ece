r"""Readers of user-item interactions, and of public data sets by name."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.apps.recommend.interactions import InteractionDataset, split_per_user
from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.utils.checks import check_choice

_LARGEST = torch.iinfo(torch.long).max
_IDS = f'integer ids from 0 to {_LARGEST}'
#: A byte order mark, as read with backslash escapes.
_BYTE_ORDER_MARK = r'\xef\xbb\xbf'
_SEPARATORS = re.compile('[,:]')
_OPEN: dict[str, Callable[..., Any]] = {'.gz': gzip.open, '.xz': lzma.open, '.bz2': bz2.open}

Source = str | Path | Sequence[str | Path]

#: The folder of each public data set, the names of its files and their layout.
INTERACTION_DATASETS: dict[str, tuple[str, dict[str, Any]]] = {
    # Amazon-Beauty, 5-core. Both files are pooled and split again, as in DirectAU and MGFormer.
    'beauty': ('amazon-beauty', {'train': ['train.txt.gz', 'test.txt.gz']}),
    # Check-ins at places, LightGCN's split.
    'gowalla': ('gowalla', {'train': ['train.txt.gz'], 'test': ['test.txt.gz']}),
    # Artists played, LightGCN's split.
    'lastfm': ('lastfm', {'train': ['data1.txt'], 'test': ['test1.txt'], 'layout': 'pairs'}),
    # Reviews of businesses, SSLRec's split.
    'yelp': ('yelp-sparse', {'train': ['train.npz'], 'val': ['valid.npz'], 'test': ['test.npz']}),
}


def load_interaction_dataset(name: str, folder: str | Path, val_ratio: float = 0.1, seed: int = 0) -> InteractionDataset:
    r"""Loads a public data set.

    Args:
        name (str): :obj:`"beauty"`, :obj:`"gowalla"`, :obj:`"lastfm"` or :obj:`"yelp"`.
        folder (str or Path): The folder of the files, or the parent of the folders :obj:`amazon-beauty`, :obj:`gowalla`,
            :obj:`lastfm` and :obj:`yelp-sparse`.
        val_ratio (float, optional): As in :func:`load_interactions`. (default: :obj:`0.1`)
        seed (int, optional): As in :func:`load_interactions`. (default: :obj:`0`)

    Raises:
        ValueError: If the name is unknown.
        FileNotFoundError: If a file is missing.
    """
    check_choice(INTERACTION_DATASETS, name=name)
    subfolder, files = INTERACTION_DATASETS[name]
    folder = Path(folder)
    return load_folder(folder / subfolder if (folder / subfolder).is_dir() else folder, files, val_ratio, seed)


def load_folder(folder: str | Path, files: Mapping[str, Any], val_ratio: float, seed: int) -> InteractionDataset:
    r"""Loads a data set from the files of a folder that the lists :obj:`train`, :obj:`val` and :obj:`test` name, and that have
    the given :obj:`layout`, see :func:`load_interactions`.
    """
    train, val, test = ([Path(folder) / name for name in files.get(split, ())] for split in ('train', 'val', 'test'))
    return load_interactions(train, val or None, test or None, files.get('layout', 'lists'), val_ratio=val_ratio, seed=seed)


def load_interactions(
    train: Source,
    val: Source | None = None,
    test: Source | None = None,
    layout: str = 'lists',
    val_ratio: float = 0.1,
    test_ratio: float = 0.1,
    seed: int = 0,
) -> InteractionDataset:
    r"""Loads a data set from files. A split without a file is sampled from each user's training interactions.

    :obj:`load_interactions([a, b])` pools two files and splits each user 80/10/10, the protocol of `"Towards Representation
    Alignment and Uniformity in Collaborative Filtering" <https://arxiv.org/abs/2206.12811>`_.
    :obj:`load_interactions(a, test=b)` holds out a tenth of the training interactions for validation.

    Args:
        train (str, Path or list): One or more files, see :func:`read_interactions`.
        val (str, Path or list, optional): Files of the validation interactions. (default: :obj:`None`)
        test (str, Path or list, optional): Files of the test interactions. (default: :obj:`None`)
        layout (str, optional): The layout of the text files, see :func:`read_interactions`. (default: :obj:`"lists"`)
        val_ratio (float, optional): The ratio of each user's interactions used for validation, if :obj:`val` is not given;
            0 for none. (default: :obj:`0.1`)
        test_ratio (float, optional): The ratio used for testing, if :obj:`test` is not given. (default: :obj:`0.1`)
        seed (int, optional): The seed of the split. (default: :obj:`0`)

    Raises:
        ValueError: If a line is invalid (the message has file and line number), or an argument is out of range.
    """
    read = _read(train, layout)
    # Duplicates are removed before the split. Otherwise, copies could be in both the training and the test split.
    pairs = read.unique(dim=1)
    ratios = val_ratio if val is None else 0.0, test_ratio if test is None else 0.0
    rest, drawn_val, drawn_test = split_per_user(pairs, *ratios, seed)
    val_pairs = drawn_val if val is None else _read(val, layout)
    test_pairs = drawn_test if test is None else _read(test, layout)
    dataset = InteractionDataset.from_pairs(rest, val_pairs, test_pairs)
    if read.size(1) > pairs.size(1):
        dataset.dropped['repeated in train'] = read.size(1) - pairs.size(1)
    return dataset


def read_interactions(path: str | Path, layout: str = 'lists') -> Tensor:
    r"""Returns the users and items of a file in file order, of shape :obj:`[2, E]`.

    Args:
        path (str or Path): A text file, compressed if it ends in :obj:`.gz`, :obj:`.xz` or :obj:`.bz2`, or a NumPy archive
            :obj:`.npz` with the arrays :obj:`row` and :obj:`col`.
        layout (str, optional): The content of a line: a user followed by all items of the user (:obj:`"lists"`, LightGCN's
            format; a colon may follow the user), or a user, an item and ignored words, separated by blanks, commas or colons
            (:obj:`"pairs"`). A file of lists that looks like pairs with ratings gives a warning. (default: :obj:`"lists"`)

    Raises:
        ValueError: If a line (the message has file and line number) or an archive is invalid.
    """
    path = Path(path)
    check_choice(('lists', 'pairs'), layout=layout)
    if path.suffix == '.npz':
        return _read_archive(path)
    users: list[int] = []
    items: list[int] = []
    widths: set[int] = set()
    number = 0
    # Ids are ASCII. Ignored words may have any encoding.
    with _OPEN.get(path.suffix, open)(path, 'rt', encoding='ascii', errors='backslashreplace') as file:
        try:
            for number, line in enumerate(file, 1):
                text = line.removeprefix(_BYTE_ORDER_MARK)
                words = (text.replace(':', ' ', 1) if layout == 'lists' else _SEPARATORS.sub(' ', text)).split()
                if not words:
                    continue
                ids = _parse(words if layout == 'lists' else words[:2])
                if not ids or (layout == 'pairs' and len(ids) < 2):
                    is_header = number == 1 and not any(map(str.isdecimal, words))
                    remedy = 'remove names of columns, and number other ids (numpy.unique)' if is_header else ''
                    accepted = 'a user and an item' if ids else _IDS
                    raise ArgumentError(f'{path}, line {number}', repr(line.strip()[:60]), accepted, remedy)
                widths.add(len(ids))
                users += [ids[0]] * (len(ids) - 1)
                items += ids[1:]
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            accepted = 'whole files, compressed as the name ends'
            raise ArgumentError(f'{path}, line {number + 1}', f'a broken file ({error})', accepted) from error
    if widths in ({3}, {4}):  # a rating, and perhaps a time
        starts = users[:: max(widths) - 1]
        if len(set(starts)) < len(starts):
            warn(
                f"{path}: every line has {max(widths)} numbers, and users start several lines. The layout 'lists' takes all of "
                "them but the first for items. If these are ratings or times, set the layout to 'pairs' (in a YAML, "
                'recommend.files.layout)'
            )
    return torch.tensor([users, items], dtype=torch.long)


def _parse(words: list[str]) -> list[int]:
    r"""Returns the ids of a line, or an empty list if a word is not an id."""
    # int() also accepts signs and underscores.
    if not ''.join(words).isdecimal() or max(map(len, words)) > len(str(_LARGEST)):
        return []
    ids = list(map(int, words))
    return ids if max(ids) <= _LARGEST else []


def _read_archive(path: Path) -> Tensor:
    with open(path, 'rb') as file:
        try:
            archive = np.load(file)
            arrays = {name: archive[name] for name in archive.files if name in ('row', 'col')}
        except Exception as error:  # NumPy and zipfile fail in many ways
            raise ArgumentError(str(path), f'a broken archive ({error})', 'archives with row and col') from error
    if len(arrays) < 2:
        raise ArgumentError(str(path), f'the arrays {archive.files}', 'archives with row and col')
    row, col = arrays['row'], arrays['col']
    if row.ndim != 1 or row.shape != col.shape or not all(np.issubdtype(array.dtype, np.integer) for array in (row, col)):
        given = f'row of {row.dtype} and shape {row.shape}, col of {col.dtype} and shape {col.shape}'
        raise ArgumentError(str(path), given, 'integers of one shape [E]')
    pairs = np.stack([row.astype(np.int64), col.astype(np.int64)])
    if (pairs < 0).any():  # also after an overflow
        raise ArgumentError(str(path), f'an id below 0 or above {_LARGEST}', _IDS)
    return torch.from_numpy(pairs)


def _read(source: Source, layout: str) -> Tensor:
    paths = [source] if isinstance(source, (str, Path)) else source
    if len(paths) == 0:
        raise ArgumentError('source', repr(source), 'a path, and one or more in a list')
    return torch.cat([read_interactions(path, layout) for path in paths], 1)
