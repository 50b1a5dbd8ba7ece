r"""User-item interactions: the data set, its split, and the bipartite graph of the training interactions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import INTEGERS, check_shape, checked_seed, is_number


@dataclass(frozen=True)
class InteractionDataset:
    r"""Training, validation and test interactions of users with items. Users and items are numbered consecutively from 0,
    in the order of their original ids. Interactions are sorted by user and item, without duplicates.

    Args:
        train (torch.Tensor): Users and items of the training interactions, of shape :obj:`[2, E]`.
        val (torch.Tensor): Users and items of the validation interactions.
        test (torch.Tensor): Users and items of the test interactions.
        user_ids (torch.Tensor): The original id of each user, ascending, of shape :obj:`[num_users]`.
        item_ids (torch.Tensor): The original id of each item, ascending, of shape :obj:`[num_items]`.
        dropped (dict, optional): The number of dropped interactions, by reason. (default: :obj:`{}`)
        user_names (tuple, optional): The original id of each user as text, if not all are whole numbers. :obj:`user_ids` then
            counts the users. (default: :obj:`None`)
        item_names (tuple, optional): The same for items. (default: :obj:`None`)

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
    user_names: tuple[str, ...] | None = None
    item_names: tuple[str, ...] | None = None

    @classmethod
    def from_pairs(cls, train: Tensor, val: Tensor | None = None, test: Tensor | None = None) -> InteractionDataset:
        r"""Creates a data set from pairs of original ids.

        Duplicate interactions are dropped. Validation and test interactions that occur in an earlier split are dropped,
        because evaluation masks them, so no model could find them. Users without training interactions and items that occur
        only in the test split are kept as nodes without edges.

        Raises:
            ValueError: If a split has not the shape :obj:`[2, E]` or has negative ids, or if there is no training interaction.
        """
        empty = torch.empty(2, 0, dtype=torch.long)
        splits = {'train': train, 'val': empty if val is None else val, 'test': empty if test is None else test}
        for name, pairs in splits.items():
            _check_pairs(name, pairs)
        if train.size(1) == 0:
            raise ArgumentError('train', 'no interaction', 'at least one')
        sizes = [pairs.size(1) for pairs in splits.values()]
        users, items = torch.cat([pairs.long() for pairs in splits.values()], 1)
        (user_ids, users), (item_ids, items) = numbered(users), numbered(items)
        keys = (users * item_ids.numel() + items).split(sizes)
        del users, items
        dropped: dict[str, int] = {}
        kept: list[Tensor] = []
        for (name, pairs), key in zip(splits.items(), keys, strict=True):
            unique = key.unique()
            fresh = unique
            for earlier in kept:
                fresh = fresh[~_found(fresh, earlier)]
            dropped[f'repeated in {name}'] = pairs.size(1) - unique.numel()
            dropped[f'in {name} and before'] = unique.numel() - fresh.numel()
            kept.append(fresh)
        train, val, test = (torch.stack([key // item_ids.numel(), key % item_ids.numel()]) for key in kept)
        return cls(train, val, test, user_ids, item_ids, {reason: count for reason, count in dropped.items() if count})

    def with_names(self, users: Sequence[str] | None, items: Sequence[str] | None) -> InteractionDataset:
        r"""Returns the data set with texts as ids of the users and of the items, given the text of each number so far."""
        names = [
            None if texts is None else tuple(texts[place] for place in ids.tolist())
            for texts, ids in ((users, self.user_ids), (items, self.item_ids))
        ]
        ids = [
            old if new is None else torch.arange(len(new))
            for new, old in zip(names, (self.user_ids, self.item_ids), strict=True)
        ]
        return replace(self, user_ids=ids[0], item_ids=ids[1], user_names=names[0], item_names=names[1])

    @property
    def num_users(self) -> int:
        r"""The number of users."""
        return self.user_ids.numel()

    @property
    def num_items(self) -> int:
        r"""The number of items."""
        return self.item_ids.numel()

    @property
    def fingerprint(self) -> str:
        r"""A hash of the original ids. A trained model is valid for data sets with the same fingerprint."""
        names = [name for texts in (self.user_names, self.item_names) for name in texts or ()]
        prefix = '\0'.join([f'{self.num_users} users ', *names])
        return _hash(prefix, self.user_ids, self.item_ids)

    @cached_property
    def interactions_hash(self) -> str:
        r"""A hash of the interactions. A run resumes on data with the same hash."""
        return _hash(repr(self), self.train, self.val, self.test)

    @property
    def notes(self) -> list[str]:
        r"""Unusual properties of the data, one line each."""
        notes = [f'{count} interactions {reason} dropped' for reason, count in self.dropped.items()]
        for name, ids, row in (('users', self.user_ids, 0), ('items', self.item_ids, 1)):
            unseen = ids.numel() - self.train[row].unique().numel()
            if unseen:
                notes.append(f'{unseen} {name} without a training interaction')
            if int(ids[-1]) != ids.numel() - 1:
                notes.append(f'{name} renumbered: ids {int(ids[0])} to {int(ids[-1])} hold {ids.numel()}')
        return notes

    def data(self) -> Data:
        r"""Returns the graph of the training interactions, see :func:`bipartite_data`."""
        return bipartite_data(self.train, self.num_users, self.num_items)

    def __repr__(self) -> str:
        sizes = ', '.join(f'{name}={getattr(self, name).size(1)}' for name in ('train', 'val', 'test'))
        return f'{type(self).__name__}(users={self.num_users}, items={self.num_items}, {sizes})'


def _hash(prefix: str, *tensors: Tensor) -> str:
    content = b''.join(tensor.cpu().numpy().astype('<i8').tobytes() for tensor in tensors)
    return hashlib.sha256(prefix.encode() + content).hexdigest()


def bipartite_data(pairs: Tensor, num_users: int, num_items: int) -> Data:
    r"""Returns the user-item graph. Users are the nodes :obj:`0` to :obj:`num_users - 1`, and items follow. The data has
    :obj:`edge_index` in both directions, :obj:`num_users` and :obj:`num_items`. The pairs are users and items, numbered from 0,
    of shape :obj:`[2, E]`.

    Example:
        >>> data = bipartite_data(torch.tensor([[0, 1], [0, 0]]), num_users=2, num_items=1)
        >>> data.edge_index.tolist()
        [[0, 1, 2, 2], [2, 2, 0, 1]]
    """
    check_range('pairs', pairs, num_users, num_items)
    users, items = pairs[0], pairs[1] + num_users
    edge_index = torch.stack([torch.cat([users, items]), torch.cat([items, users])])
    return Data(edge_index=edge_index, num_nodes=num_users + num_items, num_users=num_users, num_items=num_items)


def numbered(ids: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns the different ids, ascending, and the place of each id among them.

    Example:
        >>> numbered(torch.tensor([7, 3, 7]))
        (tensor([3, 7]), tensor([1, 0, 1]))
    """
    if ids.numel() == 0 or int(ids.max()) > 2 * ids.numel() + 1024:
        return ids.unique(return_inverse=True)
    present = torch.zeros(int(ids.max()) + 1, dtype=torch.bool)
    present[ids] = True
    return present.nonzero().squeeze(1), (present.cumsum(0) - 1)[ids]


def _found(values: Tensor, ascending: Tensor) -> Tensor:
    r"""Returns which values are among ascending numbers."""
    if ascending.numel() == 0:
        return torch.zeros_like(values, dtype=torch.bool)
    return ascending[torch.searchsorted(ascending, values).clamp(max=ascending.numel() - 1)] == values


def unique_pairs(pairs: Tensor) -> Tensor:
    r"""Returns pairs of numbers from 0, of shape :obj:`[2, E]`, without duplicates, in order.

    Example:
        >>> unique_pairs(torch.tensor([[3, 1, 3], [0, 5, 0]])).tolist()
        [[1, 3], [5, 0]]
    """
    width = int(pairs[1].max()) + 1 if pairs.size(1) else 1
    if pairs.size(1) == 0 or (int(pairs[0].max()) + 1) * width > torch.iinfo(torch.long).max:
        return pairs.unique(dim=1)
    keys = (pairs[0] * width + pairs[1]).unique()
    return torch.stack([keys // width, keys % width])


def split_per_user(pairs: Tensor, val_ratio: float, test_ratio: float, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    r"""Splits each user's interactions at random into training, validation and test interactions.

    Of :math:`n` interactions, a ratio :math:`r > 0` selects :math:`\max(\lfloor n r \rfloor, 1)`, as long as one is left for
    training. Test interactions are sampled first (RecBole's rule, which DirectAU uses).

    Args:
        pairs (torch.Tensor): Users and items, of shape :obj:`[2, E]`.
        val_ratio (float): The ratio of validation interactions.
        test_ratio (float): The ratio of test interactions.
        seed (int, optional): The seed. (default: :obj:`0`)

    Raises:
        ValueError: If a ratio is negative, or the sum of both is not below 1.

    Example:
        >>> pairs = torch.stack([torch.zeros(10, dtype=torch.long), torch.arange(10)])
        >>> [split.size(1) for split in split_per_user(pairs, 0.1, 0.2)]
        [7, 1, 2]
    """
    _check_pairs('pairs', pairs)
    seed = checked_seed(seed=seed)
    numbers = is_number(val_ratio) and is_number(test_ratio)
    if not (numbers and val_ratio >= 0 and test_ratio >= 0 and val_ratio + test_ratio < 1):
        raise ArgumentError('val_ratio, test_ratio', f'{val_ratio}, {test_ratio}', 'at least 0 with a sum below 1')
    order = torch.randperm(pairs.size(1), generator=torch.Generator().manual_seed(seed))
    _, users, count = pairs[0].unique(return_inverse=True, return_counts=True)
    order = order[torch.argsort(users[order], stable=True)]
    place = torch.arange(pairs.size(1)) - (count.cumsum(0) - count)[users[order]]
    # A tolerance, because 100 * 0.29 is 28.999999999999996.
    wanted_test, wanted_val = (
        (count.double() * ratio + 1e-9).long().clamp(min=int(ratio > 0)) for ratio in (test_ratio, val_ratio)
    )
    num_test = torch.minimum(wanted_test, count - 1)
    num_val = torch.minimum(wanted_val, count - num_test - 1)
    end_test = num_test[users[order]]
    end_val = end_test + num_val[users[order]]
    return (
        pairs[:, order[place >= end_val]],
        pairs[:, order[(place >= end_test) & (place < end_val)]],
        pairs[:, order[place < end_test]],
    )


def check_range(argument: str, pairs: Tensor, num_users: int, num_items: int) -> None:
    r"""Raises a :class:`ValueError` that names the argument unless a tensor, :obj:`[2, E]`, has pairs of users and items that
    exist. Without pairs, any type is valid.
    """
    check_shape((2, 'E'), **{argument: pairs})
    if pairs.numel() and pairs.dtype not in INTEGERS:
        raise ArgumentError(argument, pairs.dtype, 'int32 and int64')
    for name, index, size in (('users', pairs[0], num_users), ('items', pairs[1], num_items)):
        if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < size:
            raise ArgumentError(argument, f'{name} from {int(index.min())} to {int(index.max())}', f'0 to {size - 1}')


def _check_pairs(name: str, pairs: Tensor) -> None:
    check_shape((2, 'E'), **{name: pairs})
    if pairs.is_floating_point():
        raise ArgumentError(name, pairs.dtype, 'integers')
    if pairs.numel() and int(pairs.min()) < 0:
        raise ArgumentError(name, 'a negative id', 'ids of at least 0')
