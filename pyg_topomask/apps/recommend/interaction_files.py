r"""Readers of user-item interactions, and of public data sets by name."""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import load_npz
from torch import Tensor

from pyg_topomask.apps.recommend.interactions import InteractionDataset, split_per_user
from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.utils.checks import check_choice, check_finite

_LARGEST = torch.iinfo(torch.long).max
_IDS = f'integer ids from 0 to {_LARGEST}'
_SEPARATORS = re.compile('[,:]')
#: Words that something else separates.
_OTHER_SEPARATOR = re.compile(r'\s*\d+\s*([^\s\d,:.+-])\s*\d')
_ARCHIVES = 'archives of scipy.sparse.save_npz, and archives with row and col'
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
    the given :obj:`layout` and :obj:`min_rating`, see :func:`load_interactions`.
    """
    train, val, test = ([Path(folder) / name for name in files.get(split, ())] for split in ('train', 'val', 'test'))
    layout, least = files.get('layout', 'lists'), files.get('min_rating', 0.0)
    return load_interactions(train, val or None, test or None, layout, val_ratio, seed=seed, min_rating=least)


def load_interactions(
    train: Source,
    val: Source | None = None,
    test: Source | None = None,
    layout: str = 'lists',
    val_ratio: float = 0.1,
    test_ratio: float = 0.1,
    seed: int = 0,
    min_rating: float = 0.0,
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
        min_rating (float, optional): The smallest rating of an interaction, see :func:`read_interactions`.
            (default: :obj:`0.0`)

    Raises:
        ValueError: If a line is invalid (the message has file and line number), or an argument is out of range.
    """
    dropped: dict[str, int] = {}
    read = _read(train, layout, min_rating, 'train', dropped)
    # Duplicates are removed before the split. Otherwise, copies could be in both the training and the test split.
    pairs = read.unique(dim=1)
    ratios = val_ratio if val is None else 0.0, test_ratio if test is None else 0.0
    rest, drawn_val, drawn_test = split_per_user(pairs, *ratios, seed)
    val_pairs = drawn_val if val is None else _read(val, layout, min_rating, 'val', dropped)
    test_pairs = drawn_test if test is None else _read(test, layout, min_rating, 'test', dropped)
    dataset = InteractionDataset.from_pairs(rest, val_pairs, test_pairs)
    dataset.dropped.update(dropped)
    if read.size(1) > pairs.size(1):
        dataset.dropped['repeated in train'] = read.size(1) - pairs.size(1)
    return dataset


def read_interactions(path: str | Path, layout: str = 'lists', min_rating: float = 0.0) -> Tensor:
    r"""Returns the users and items of a file in file order, of shape :obj:`[2, E]`.

    Args:
        path (str or Path): A text file, compressed if it ends in :obj:`.gz`, :obj:`.xz` or :obj:`.bz2`, or a NumPy archive
            :obj:`.npz`: that of :func:`scipy.sparse.save_npz` in any format, with users as rows, items as columns and ratings
            as values, or one with the arrays :obj:`row` and :obj:`col`.
        layout (str, optional): The content of a line: a user followed by all items of the user (:obj:`"lists"`, LightGCN's
            format; a colon may follow the user), or a user, an item, perhaps a rating, and ignored words, separated by blanks,
            commas or colons (:obj:`"pairs"`). A file of lists that looks like pairs with ratings gives a warning.
            (default: :obj:`"lists"`)
        min_rating (float, optional): The smallest rating of an interaction. A rating of 0 is none. Above 0, the third word of
            a pair has to be a number. (default: :obj:`0.0`)

    Raises:
        ValueError: If a line (the message has file and line number) or an archive is invalid.
    """
    return _read_rated(path, layout, min_rating)[0]


def _read_rated(path: str | Path, layout: str, min_rating: float) -> tuple[Tensor, int]:
    r"""Returns the users and items of a file, and how many other pairs of its have a rating of 0 or below the smallest."""
    check_finite(min_rating=min_rating)
    path = Path(path)
    check_choice(('lists', 'pairs'), layout=layout)
    if path.suffix == '.npz':
        return _read_archive(path, min_rating)
    users: list[int] = []
    items: list[int] = []
    widths: set[int] = set()
    number = dropped = 0
    # Ids are ASCII. Ignored words may have any encoding.
    with _OPEN.get(path.suffix, open)(path, 'rt', encoding='utf-8-sig', errors='backslashreplace') as file:
        try:
            for number, line in enumerate(file, 1):
                words = (line.replace(':', ' ', 1) if layout == 'lists' else _SEPARATORS.sub(' ', line)).split()
                if not words:
                    continue
                ids = _parse(words if layout == 'lists' else words[:2])
                if not ids or (layout == 'pairs' and len(ids) < 2):
                    remedy, other = '', _OTHER_SEPARATOR.match(line)
                    if number == 1 and not any(map(str.isdecimal, words)) and not other:
                        remedy = 'remove names of columns, and number other ids (numpy.unique)'
                    elif other:
                        remedy = f'the words are separated by {other[1]!r}: blanks, commas and colons separate words'
                    accepted = 'a user and an item' if ids else _IDS
                    raise ArgumentError(f'{path}, line {number}', repr(line.strip()[:60]), accepted, remedy)
                rating = _number(words[2]) if layout == 'pairs' and len(words) > 2 else None
                if rating is None and min_rating > 0:
                    accepted = f'a rating as third word, for min_rating {min_rating}'
                    raise ArgumentError(f'{path}, line {number}', repr(line.strip()[:60]), accepted)
                if rating is not None and (rating == 0 or rating < min_rating):
                    dropped += 1
                    continue
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
    return torch.tensor([users, items], dtype=torch.long), dropped


def _number(word: str) -> float | None:
    r"""Returns the number that a word is, if it is one."""
    try:
        return None if math.isnan(number := float(word)) else number
    except ValueError:
        return None


def _parse(words: list[str]) -> list[int]:
    r"""Returns the ids of a line, or an empty list if a word is not an id."""
    # int() also accepts signs, underscores and digits of other scripts.
    joined = ''.join(words)
    if not (joined.isascii() and joined.isdecimal()) or max(map(len, words)) > len(str(_LARGEST)):
        return []
    ids = list(map(int, words))
    return ids if max(ids) <= _LARGEST else []


def _read_archive(path: Path, min_rating: float) -> tuple[Tensor, int]:
    with open(path, 'rb') as file:
        try:
            archive = np.load(file)
            if 'format' in archive.files:
                matrix = load_npz(path).tocoo()
                matrix.sum_duplicates()  # as SciPy reads them
                row, col, rating = matrix.row, matrix.col, matrix.data
            else:
                row, col = (archive[name] if name in archive.files else None for name in ('row', 'col'))
                rating = None
        except Exception as error:  # NumPy, SciPy and zipfile fail in many ways
            raise ArgumentError(str(path), f'a broken archive ({error})', _ARCHIVES) from error
    if row is None or col is None:
        raise ArgumentError(str(path), f'the arrays {archive.files}', _ARCHIVES)
    if row.ndim != 1 or row.shape != col.shape or not all(np.issubdtype(array.dtype, np.integer) for array in (row, col)):
        given = f'row of {row.dtype} and shape {row.shape}, col of {col.dtype} and shape {col.shape}'
        raise ArgumentError(str(path), given, 'integers of one shape [E]')
    pairs = np.stack([row.astype(np.int64), col.astype(np.int64)])
    if (pairs < 0).any():  # also after an overflow
        raise ArgumentError(str(path), f'an id below 0 or above {_LARGEST}', _IDS)
    if rating is None and min_rating > 0:
        given = f'{min_rating} for {path}, which holds no ratings'
        raise ArgumentError('min_rating', given, 'archives of scipy.sparse.save_npz')
    if rating is not None and np.isnan(rating).any():
        raise ArgumentError(str(path), 'NaN as a rating', 'numbers')
    kept = np.ones(len(row), bool) if rating is None else (rating != 0) & (rating >= min_rating)
    return torch.from_numpy(pairs[:, kept]), int((~kept).sum())


def _read(source: Source, layout: str, min_rating: float, split: str, dropped: dict[str, int]) -> Tensor:
    r"""Returns the users and items of the files of a split, and adds how many are dropped to the counts by reason."""
    paths = [source] if isinstance(source, (str, Path)) else source
    if len(paths) == 0:
        raise ArgumentError('source', repr(source), 'a path, and one or more in a list')
    pairs, counts = zip(*(_read_rated(path, layout, min_rating) for path in paths), strict=True)
    if sum(counts):
        below = f' or below {min_rating:g}' if min_rating else ' or less'
        dropped[f'rated 0{below} in {split}'] = sum(counts)
    return torch.cat(pairs, 1)
