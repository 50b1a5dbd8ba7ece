r"""Readers of user-item interactions, and of public data sets by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import load_npz
from torch import Tensor

from pyg_topomask.apps.recommend.interaction_text import IDS, LARGEST, Numbers, TextIds, ids_of_text, read_text
from pyg_topomask.apps.recommend.interactions import InteractionDataset, split_per_user, unique_pairs
from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_choice, check_finite

_ARCHIVES = 'archives of scipy.sparse.save_npz, and archives with row and col'

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
    the given :obj:`layout`, :obj:`columns` and :obj:`min_rating`, see :func:`load_interactions`.
    """
    train, val, test = ([Path(folder) / name for name in files.get(split, ())] for split in ('train', 'val', 'test'))
    layout, least, columns = files.get('layout', 'lists'), files.get('min_rating', 0.0), files.get('columns', ())
    return load_interactions(train, val or None, test or None, layout, val_ratio, seed=seed, min_rating=least, columns=columns)


def load_interactions(
    train: Source,
    val: Source | None = None,
    test: Source | None = None,
    layout: str = 'lists',
    val_ratio: float = 0.1,
    test_ratio: float = 0.1,
    seed: int = 0,
    min_rating: float = 0.0,
    columns: Sequence[str] = (),
) -> InteractionDataset:
    r"""Loads a data set from files. A split without a file is sampled from each user's training interactions.

    :obj:`load_interactions([a, b])` pools two files and splits each user 80/10/10, the protocol of `"Towards Representation
    Alignment and Uniformity in Collaborative Filtering" <https://arxiv.org/abs/2206.12811>`_.
    :obj:`load_interactions(a, test=b)` holds out a tenth of the training interactions for validation.

    If ids of a table are no whole numbers, users or items are numbered in the order of their ids, which are in
    :obj:`user_names` or :obj:`item_names` of the data set.

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
        columns (list, optional): The names of the columns of a table, see :func:`read_interactions`. (default: :obj:`()`)

    Raises:
        ValueError: If a line is invalid (the message has file and line number), or an argument is out of range.
    """
    sources = {'train': train, 'val': val, 'test': test}
    dropped: dict[str, int] = {}
    names: list[tuple[str, ...] | None] = [None, None]

    def read(numbers: Numbers | None = None) -> dict[str, Tensor]:
        dropped.clear()
        return {
            split: _read(source, layout, min_rating, columns, numbers, split, dropped)
            for split, source in sources.items()
            if source is not None
        }

    try:
        pairs = read()
    except TextIds:
        numbers: Numbers = {}, {}
        pairs = read(numbers)
        ids, names = zip(*map(ids_of_text, numbers), strict=True)
        pairs = {split: _renumbered(given, ids) for split, given in pairs.items()}
    # Duplicates are removed before the split. Otherwise, copies could be in both the training and the test split.
    count, given = pairs['train'].size(1), unique_pairs(pairs.pop('train'))
    repeated = count - given.size(1)
    ratios = val_ratio if val is None else 0.0, test_ratio if test is None else 0.0
    rest, drawn_val, drawn_test = split_per_user(given, *ratios, seed)
    del given
    dataset = InteractionDataset.from_pairs(rest, pairs.get('val', drawn_val), pairs.get('test', drawn_test))
    dataset.dropped.update(dropped)
    if repeated:
        dataset.dropped['repeated in train'] = repeated
    return dataset.with_names(*names)


def _renumbered(pairs: Tensor, ids: Sequence[np.ndarray]) -> Tensor:
    return torch.stack([torch.from_numpy(each)[row] for each, row in zip(ids, pairs, strict=True)])


def read_interactions(path: str | Path, layout: str = 'lists', min_rating: float = 0.0, columns: Sequence[str] = ()) -> Tensor:
    r"""Returns the users and items of a file in file order, of shape :obj:`[2, E]`.

    Args:
        path (str or Path): A text file, compressed if it ends in :obj:`.gz`, :obj:`.xz` or :obj:`.bz2`, or a NumPy archive
            :obj:`.npz`: that of :func:`scipy.sparse.save_npz` in any format, with users as rows, items as columns and ratings
            as values, or one with the arrays :obj:`row` and :obj:`col`.
        layout (str, optional): The content of a line: a user followed by all items of the user (:obj:`"lists"`, LightGCN's
            format; a colon may follow the user), or a user, an item, perhaps a rating, and ignored words, separated by blanks,
            commas or colons (:obj:`"pairs"`), or what the first line names (:obj:`"table"`), separated by tabs, commas,
            semicolons, bars or blanks, as in the :obj:`.inter` of RecBole, MovieLens 32M, HetRec and the ratings of Amazon
            2023. If ids of a table are no whole numbers, they are numbered in the order of the text; :func:`load_interactions`
            keeps the text. A file of lists that looks like pairs with ratings gives a warning. (default: :obj:`"lists"`)
        min_rating (float, optional): The smallest rating of an interaction. A rating of 0 is none. Above 0, each pair needs
            a rating. (default: :obj:`0.0`)
        columns (list, optional): The names of the columns of users, items and perhaps ratings of a table. By default, they
            are known names, such as :obj:`user_id`, :obj:`movieId` and :obj:`rating`. (default: :obj:`()`)

    Raises:
        ValueError: If a line (the message has file and line number) or an archive is invalid.
    """
    try:
        return torch.from_numpy(_read_rated(path, layout, min_rating, columns, None)[0])
    except TextIds:
        numbers: Numbers = {}, {}
        pairs, _ = _read_rated(path, layout, min_rating, columns, numbers)
        return _renumbered(torch.from_numpy(pairs), [ids_of_text(each)[0] for each in numbers])


def _read_rated(
    path: str | Path, layout: str, min_rating: float, columns: Sequence[str], numbers: Numbers | None
) -> tuple[np.ndarray, int]:
    r"""Reads a file, with the given numbers for ids that are text, see :func:`~.interaction_text.read_text`."""
    check_finite(min_rating=min_rating)
    path = Path(path)
    check_choice(('lists', 'pairs', 'table'), layout=layout)
    if len(columns) not in (0, 2, 3):
        raise ArgumentError('columns', repr(columns), 'the names of the columns of users, items and perhaps ratings')
    if path.suffix != '.npz':
        return read_text(path, layout, min_rating, columns, numbers)
    pairs, dropped = _read_archive(path, min_rating)
    if numbers is not None:
        texts = zip(pairs.astype(str).tolist(), numbers, strict=True)
        pairs = np.array([[table.setdefault(text, len(table)) for text in row] for row, table in texts], np.int64)
    return pairs, dropped


def _read_archive(path: Path, min_rating: float) -> tuple[np.ndarray, int]:
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
        raise ArgumentError(str(path), f'an id below 0 or above {LARGEST}', IDS)
    if rating is None and min_rating > 0:
        given = f'{min_rating} for {path}, which holds no ratings'
        raise ArgumentError('min_rating', given, 'archives of scipy.sparse.save_npz')
    if rating is not None and np.isnan(rating).any():
        raise ArgumentError(str(path), 'NaN as a rating', 'numbers')
    kept = np.ones(len(row), bool) if rating is None else (rating != 0) & (rating >= min_rating)
    return pairs[:, kept], int((~kept).sum())


def _read(
    source: Source,
    layout: str,
    min_rating: float,
    columns: Sequence[str],
    numbers: Numbers | None,
    split: str,
    dropped: dict[str, int],
) -> Tensor:
    r"""Returns the users and items of the files of a split, and adds how many are dropped to the counts by reason."""
    paths = [source] if isinstance(source, (str, Path)) else source
    if len(paths) == 0:
        raise ArgumentError('source', repr(source), 'a path, and one or more in a list')
    read = [_read_rated(path, layout, min_rating, columns, numbers) for path in paths]
    if count := sum(each for _, each in read):
        below = f' or below {min_rating:g}' if min_rating else ' or less'
        dropped[f'rated 0{below} in {split}'] = count
    return torch.from_numpy(read[0][0] if len(read) == 1 else np.concatenate([pairs for pairs, _ in read], 1))
