r"""User-item interactions: reading files, splitting them, and the bipartite graph of the training part."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.recommend.checks import check_range

__all__ = ['InteractionDataset', 'bipartite_data', 'load_interactions', 'read_interactions', 'split_per_user']

LAYOUTS = ('lists', 'pairs')
_LARGEST = torch.iinfo(torch.long).max
#: What some editors begin a file with, as it is read.
_BYTE_ORDER_MARK = r'\xef\xbb\xbf'
_OPEN: dict[str, Callable[..., Any]] = {'.gz': gzip.open, '.xz': lzma.open, '.bz2': bz2.open}

Source = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class InteractionDataset:
    r"""Who interacted with what, in three parts. Users and items are numbered from 0 without gaps, in the order of their
    original ids; interactions are sorted by user and item, and stand once.

    Args:
        train (torch.Tensor): Users and items of the training interactions, of shape :obj:`[2, E]`.
        val (torch.Tensor): Those of the validation interactions.
        test (torch.Tensor): Those of the test interactions.
        user_ids (torch.Tensor): The original id of each user, ascending, of shape :obj:`[num_users]`.
        item_ids (torch.Tensor): The original id of each item, ascending, of shape :obj:`[num_items]`.
        dropped (dict, optional): How many interactions were left out, by reason. (default: :obj:`{}`)

    Example:
        >>> dataset = InteractionDataset.from_pairs(torch.tensor([[7, 7, 9], [1, 5, 5]]), test=torch.tensor([[9], [1]]))
        >>> dataset
        InteractionDataset(users=2, items=2, train=3, val=0, test=1)
        >>> dataset.train.tolist(), dataset.user_ids.tolist()
        ([[0, 0, 1], [0, 1, 1]], [7, 9])
    """

    train: Tensor
    val: Tensor
    test: Tensor
    user_ids: Tensor
    item_ids: Tensor
    dropped: dict[str, int] = field(default_factory=dict)

    @classmethod
    def from_pairs(cls, train: Tensor, val: Tensor | None = None, test: Tensor | None = None) -> InteractionDataset:
        r"""Makes a data set of pairs of original ids.

        Ids with gaps are renumbered. Repeated interactions are dropped, as are validation and test interactions that an
        earlier part holds: evaluation masks those, so that no model could find them. Users without training interactions
        and items that only the test set knows stay: they are nodes without edges.

        Args:
            train (torch.Tensor): Users and items, of shape :obj:`[2, E]`.
            val (torch.Tensor, optional): As :obj:`train`. (default: :obj:`None`)
            test (torch.Tensor, optional): As :obj:`train`. (default: :obj:`None`)

        Raises:
            ValueError: If a part has another shape or negative ids, or if there is no training interaction.
        """
        empty = torch.empty(2, 0, dtype=torch.long)
        parts = {'train': train, 'val': empty if val is None else val, 'test': empty if test is None else test}
        for name, part in parts.items():
            _check_pairs(name, part)
        if train.size(1) == 0:
            raise ValueError('train: got no interaction; accepted is at least one')
        sizes = [part.size(1) for part in parts.values()]
        pairs = torch.cat([part.long() for part in parts.values()], 1)
        user_ids, users = pairs[0].unique(return_inverse=True)
        item_ids, items = pairs[1].unique(return_inverse=True)
        keys = (users * item_ids.numel() + items).split(sizes)
        dropped: dict[str, int] = {}
        kept: list[Tensor] = []
        for (name, part), key in zip(parts.items(), keys, strict=True):
            unique = key.unique()
            fresh = unique[~torch.isin(unique, torch.cat(kept))] if kept else unique
            dropped[f'repeated in {name}'] = part.size(1) - unique.numel()
            dropped[f'in {name} and before'] = unique.numel() - fresh.numel()
            kept.append(fresh)
        split = [torch.stack([key // item_ids.numel(), key % item_ids.numel()]) for key in kept]
        return cls(
            split[0], split[1], split[2], user_ids, item_ids, {reason: count for reason, count in dropped.items() if count}
        )

    @property
    def num_users(self) -> int:
        r"""The number of users."""
        return self.user_ids.numel()

    @property
    def num_items(self) -> int:
        r"""The number of items, the catalogue."""
        return self.item_ids.numel()

    @property
    def fingerprint(self) -> str:
        r"""A hash of the original ids: what a model says of users and items holds for data sets with the same one alone."""
        return _hash(f'{self.num_users} users ', self.user_ids, self.item_ids)

    @cached_property
    def interactions_hash(self) -> str:
        r"""A hash of the interactions: the same training sees data sets with the same one, and the same fingerprint, alone."""
        return _hash(repr(self), self.train, self.val, self.test)

    @property
    def notes(self) -> list[str]:
        r"""What is unusual in the data, one line each."""
        notes = [f'{count} interactions {reason} dropped' for reason, count in self.dropped.items()]
        for what, ids, row in (('users', self.user_ids, 0), ('items', self.item_ids, 1)):
            unseen = ids.numel() - self.train[row].unique().numel()
            if unseen:
                notes.append(f'{unseen} {what} without a training interaction')
            if int(ids[-1]) != ids.numel() - 1:
                notes.append(f'{what} renumbered: ids {int(ids[0])} to {int(ids[-1])} hold {ids.numel()}')
        return notes

    def data(self) -> Data:
        r"""Returns the graph of the training interactions, see :func:`bipartite_data`."""
        return bipartite_data(self.train, self.num_users, self.num_items)

    def __repr__(self) -> str:
        parts = ', '.join(f'{name}={getattr(self, name).size(1)}' for name in ('train', 'val', 'test'))
        return f'{type(self).__name__}(users={self.num_users}, items={self.num_items}, {parts})'


def _hash(sizes: str, *parts: Tensor) -> str:
    return hashlib.sha256(sizes.encode() + b''.join(part.cpu().numpy().astype('<i8').tobytes() for part in parts)).hexdigest()


def bipartite_data(pairs: Tensor, num_users: int, num_items: int) -> Data:
    r"""Returns the user-item graph: users are the nodes :obj:`0` to :obj:`num_users - 1`, items follow.

    The data holds :obj:`edge_index` in both directions, :obj:`num_users`, :obj:`num_items`, and the symmetrically normalized
    adjacency :obj:`adj_t` as a CSR matrix, whose products are several times faster than message passing along
    :obj:`edge_index` (:math:`\mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}`; nodes without edges have zero rows).

    Args:
        pairs (torch.Tensor): Users and items, numbered from 0, of shape :obj:`[2, E]`.
        num_users (int): The number of users.
        num_items (int): The number of items.

    Raises:
        ValueError: If an interaction lies outside the given numbers.

    Example:
        >>> data = bipartite_data(torch.tensor([[0, 1], [0, 0]]), num_users=2, num_items=1)
        >>> data.edge_index.tolist()
        [[0, 1, 2, 2], [2, 2, 0, 1]]
    """
    check_range(pairs, num_users, num_items)
    users, items = pairs[0], pairs[1] + num_users
    edge_index = torch.stack([torch.cat([users, items]), torch.cat([items, users])])
    num_nodes = num_users + num_items
    row, col = edge_index[:, torch.argsort(edge_index[0] * num_nodes + edge_index[1])]
    degree = torch.bincount(row, minlength=num_nodes)
    scale = degree.clamp(min=1).to(torch.get_default_dtype()).rsqrt()
    rowptr = torch.cat([degree.new_zeros(1), degree.cumsum(0)])
    value, size = scale[row] * scale[col], (num_nodes, num_nodes)
    adj_t = torch.sparse_csr_tensor(rowptr, col, value, size, check_invariants=False)
    return Data(edge_index=edge_index, num_nodes=num_nodes, num_users=num_users, num_items=num_items, adj_t=adj_t)


def load_interactions(
    train: Source,
    val: Source | None = None,
    test: Source | None = None,
    layout: str = 'lists',
    val_ratio: float = 0.1,
    test_ratio: float = 0.1,
    seed: int = 0,
) -> InteractionDataset:
    r"""Loads a data set from files; a part that no file holds is drawn at random from each user's training interactions.

    So :obj:`load_interactions([a, b])` pools two files and splits each user 80/10/10, the protocol of `"Towards
    Representation Alignment and Uniformity in Collaborative Filtering" <https://arxiv.org/abs/2206.12811>`_, and
    :obj:`load_interactions(a, test=b)` holds out a tenth of the training interactions for validation.

    Args:
        train (str, Path or list): One or more files, see :func:`read_interactions`.
        val (str, Path or list, optional): Those of the validation interactions. (default: :obj:`None`)
        test (str, Path or list, optional): Those of the test interactions. (default: :obj:`None`)
        layout (str, optional): The layout of the text files, see :func:`read_interactions`. (default: :obj:`"lists"`)
        val_ratio (float, optional): The part of each user's interactions that validates, if :obj:`val` is not given;
            0 for none. (default: :obj:`0.1`)
        test_ratio (float, optional): The part that tests, if :obj:`test` is not given. (default: :obj:`0.1`)
        seed (int, optional): The seed of the split. (default: :obj:`0`)

    Raises:
        ValueError: If a line is broken (with file and line number), or an argument is out of its range.
    """
    read = _read(train, layout)
    # Split without repetitions, for else one copy would train and another test.
    pairs = read.unique(dim=1)
    own_val = val_ratio if val is None else 0.0
    own_test = test_ratio if test is None else 0.0
    rest, drawn_val, drawn_test = split_per_user(pairs, own_val, own_test, seed)
    dataset = InteractionDataset.from_pairs(
        rest,
        drawn_val if val is None else _read(val, layout),
        drawn_test if test is None else _read(test, layout),
    )
    if read.size(1) > pairs.size(1):
        dataset.dropped['repeated in train'] = read.size(1) - pairs.size(1)
    return dataset


def read_interactions(path: str | Path, layout: str = 'lists') -> Tensor:
    r"""Reads the users and items of a file, of shape :obj:`[2, E]`, as they stand there.

    Args:
        path (str or Path): A text file, compressed if it ends in :obj:`.gz`, :obj:`.xz` or :obj:`.bz2`, or a NumPy archive
            :obj:`.npz` with the arrays :obj:`row` and :obj:`col`.
        layout (str, optional): What a line of a text file holds: a user and then all the user's items (:obj:`"lists"`,
            LightGCN's format; a colon may follow the user), or one user, one item and things that are ignored
            (:obj:`"pairs"`). (default: :obj:`"lists"`)

    Raises:
        ValueError: If a line is broken, with file and line number, or an archive.
    """
    path = Path(path)
    if layout not in LAYOUTS:
        raise ValueError(f'layout: got {layout!r}; accepted are {", ".join(LAYOUTS)}')
    if path.suffix == '.npz':
        return _read_archive(path)
    users: list[int] = []
    items: list[int] = []
    number = 0
    # Ids are ASCII; of what else a line holds, nothing is asked.
    with _OPEN.get(path.suffix, open)(path, 'rt', encoding='ascii', errors='backslashreplace') as file:
        try:
            for number, line in enumerate(file, 1):
                words = line.removeprefix(_BYTE_ORDER_MARK).replace(':', ' ', 1).split()
                if not words:
                    continue
                ids = _parse(words if layout == 'lists' else words[:2])
                if not ids:
                    accepted = f'integer ids from 0 to {_LARGEST}'
                    raise ValueError(f'{path}, line {number}: got {line.strip()[:60]!r}; accepted are {accepted}')
                if layout == 'pairs' and len(ids) < 2:
                    raise ValueError(f'{path}, line {number}: got {line.strip()[:60]!r}; accepted are a user and an item')
                users += [ids[0]] * (len(ids) - 1)
                items += ids[1:]
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            raise ValueError(
                f'{path}, line {number + 1}: got a broken file ({error}); accepted are whole files, compressed as the name ends'
            ) from error
    return torch.tensor([users, items], dtype=torch.long)


def _parse(words: list[str]) -> list[int]:
    r"""Returns the ids of a line, none if one of the words is no id."""
    # Python also takes signs and underscores for parts of numbers.
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
            raise ValueError(f'{path}: got a broken archive ({error}); accepted are archives with row and col') from error
    if len(arrays) < 2:
        raise ValueError(f'{path}: got the arrays {archive.files}; accepted are archives with row and col')
    row, col = arrays['row'], arrays['col']
    if row.ndim != 1 or row.shape != col.shape or not all(np.issubdtype(own.dtype, np.integer) for own in (row, col)):
        raise ValueError(
            f'{path}: got row of {row.dtype} and shape {row.shape}, col of {col.dtype} and shape {col.shape}; accepted are '
            f'integers of one shape [E]'
        )
    pairs = np.stack([row.astype(np.int64), col.astype(np.int64)])
    if (pairs < 0).any():  # also what overflowed
        raise ValueError(f'{path}: got an id below 0 or above {_LARGEST}; accepted are integer ids from 0 to {_LARGEST}')
    return torch.from_numpy(pairs)


def _read(source: Source, layout: str) -> Tensor:
    paths = [source] if isinstance(source, (str, Path)) else source
    if len(paths) == 0:
        raise ValueError(f'source: got {source!r}; accepted are a path, and one or more in a list')
    return torch.cat([read_interactions(path, layout) for path in paths], 1)


def split_per_user(pairs: Tensor, val_ratio: float, test_ratio: float, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    r"""Splits each user's interactions at random into training, validation and test interactions.

    Of :math:`n` interactions :math:`\lfloor n r \rfloor` go to a part of ratio :math:`r`, or one where that is none, as long
    as one is left for training: first for testing, then for validation (the rule of RecBole, which DirectAU uses).

    Args:
        pairs (torch.Tensor): Users and items, of shape :obj:`[2, E]`.
        val_ratio (float): The part that validates.
        test_ratio (float): The part that tests.
        seed (int, optional): The seed. (default: :obj:`0`)

    Raises:
        ValueError: If a ratio is negative or both leave nothing to train on.

    Example:
        >>> pairs = torch.stack([torch.zeros(10, dtype=torch.long), torch.arange(10)])
        >>> [part.size(1) for part in split_per_user(pairs, 0.1, 0.2)]
        [7, 1, 2]
    """
    _check_pairs('pairs', pairs)
    if not (val_ratio >= 0 and test_ratio >= 0 and val_ratio + test_ratio < 1):
        raise ValueError(f'val_ratio, test_ratio: got {val_ratio}, {test_ratio}; accepted are at least 0 with a sum below 1')
    order = torch.randperm(pairs.size(1), generator=torch.Generator().manual_seed(seed))
    _, users, count = pairs[0].unique(return_inverse=True, return_counts=True)
    order = order[torch.argsort(users[order], stable=True)]
    place = torch.arange(pairs.size(1)) - (count.cumsum(0) - count)[users[order]]
    # A tolerance, for 0.29 of 100 interactions are 29, not 28.999999999999996.
    wanted_test, wanted_val = (
        (count.double() * ratio + 1e-9).long().clamp(min=int(ratio > 0)) for ratio in (test_ratio, val_ratio)
    )
    num_test = torch.minimum(wanted_test, count - 1)
    num_val = torch.minimum(wanted_val, count - num_test - 1)
    bound = num_test[users[order]]
    is_test, is_val = place < bound, (place >= bound) & (place < bound + num_val[users[order]])
    return pairs[:, order[~is_test & ~is_val]], pairs[:, order[is_val]], pairs[:, order[is_test]]


def _check_pairs(name: str, pairs: Tensor) -> None:
    if pairs.dim() != 2 or pairs.size(0) != 2 or pairs.is_floating_point():
        raise ValueError(f'{name}: got {pairs.dtype} of shape {list(pairs.shape)}; accepted are integers of shape [2, E]')
    if pairs.numel() and int(pairs.min()) < 0:
        raise ValueError(f'{name}: got a negative id; accepted are ids of at least 0')
