from __future__ import annotations

import bz2
import gzip
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from pyg_topomask.recommend.datasets import load_interaction_dataset
from pyg_topomask.recommend.interactions import (
    InteractionDataset,
    bipartite_data,
    load_interactions,
    read_interactions,
    split_per_user,
)

DATA = Path(os.environ.get('PYG_TOPOMASK_DATA', Path(__file__).parents[3] / 'shared' / 'data')) / 'recsys'


def pairs(*own: tuple[int, int]) -> Tensor:
    return torch.tensor(own, dtype=torch.long).reshape(-1, 2).t()


def as_set(own: Tensor) -> set[tuple[int, ...]]:
    return {tuple(pair) for pair in own.t().tolist()}


@pytest.mark.parametrize(('suffix', 'opener'), [('', open), ('.gz', gzip.open), ('.xz', lzma.open), ('.bz2', bz2.open)])
def test_lists_of_every_compression(tmp_path: Path, suffix: str, opener) -> None:
    path = tmp_path / f'train.txt{suffix}'
    with opener(path, 'wt') as file:
        file.write('0 5 2\n\n3\n1:2\n0 7\n')
    assert read_interactions(path).tolist() == [[0, 0, 1, 0], [5, 2, 2, 7]]


def test_pairs_and_archives(tmp_path: Path) -> None:
    (tmp_path / 'a.txt').write_text('4\t40\t9.5\n2\t7\n')
    assert read_interactions(tmp_path / 'a.txt', 'pairs').tolist() == [[4, 2], [40, 7]]
    np.savez(tmp_path / 'a.npz', row=np.array([1, 0], dtype=np.int32), col=np.array([3, 4]), value=np.ones(2))
    assert read_interactions(tmp_path / 'a.npz').tolist() == [[1, 0], [3, 4]]


@pytest.mark.parametrize(
    ('layout', 'text', 'message'),
    [
        ('lists', '0 1\n1 x\n', r'a\.txt, line 2: got .1 x.; accepted are integer ids from 0 to 9223372036854775807'),
        ('lists', '0 1\n\n0 1.5\n', r'a\.txt, line 3: got'),
        ('lists', '0 -1\n', r'a\.txt, line 1: got .0 -1.; accepted are integer ids from 0'),
        ('lists', '0 1_0 2\n', r'a\.txt, line 1: got .0 1_0 2.; accepted are integer ids'),
        ('lists', '0 1\n0 ٣\n', r'a\.txt, line 2: got .*; accepted are integer ids'),
        ('lists', '1 9223372036854775808\n', r'a\.txt, line 1: got .1 9223372036854775808.; accepted are integer ids'),
        ('lists', f'1 {"9" * 5000}\n', r'a\.txt, line 1: got .*; accepted are integer ids'),
        ('pairs', '0 1 2_0\n1 99999999999999999999 1\n', r'a\.txt, line 2: got'),
        ('pairs', '0 1\n7\n', r'a\.txt, line 2: got .7.; accepted are a user and an item'),
        ('columns', '', 'layout: got .columns.; accepted are lists, pairs'),
    ],
)
def test_broken_files(tmp_path: Path, layout: str, text: str, message: str) -> None:
    (tmp_path / 'a.txt').write_text(text)
    with pytest.raises(ValueError, match=message):
        read_interactions(tmp_path / 'a.txt', layout)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / 'a.txt').write_bytes(b'0 1 Bj\xf6rk\r\n2 9223372036854775807 \xff\n')
    assert read_interactions(tmp_path / 'a.txt', 'pairs').tolist() == [[0, 2], [1, 2**63 - 1]]
    with pytest.raises(ValueError, match=r'a\.txt, line 1: got .0 1 Bj.*xf6rk.; accepted are integer ids'):
        read_interactions(tmp_path / 'a.txt')


@pytest.mark.parametrize('layout', ['lists', 'pairs'])
def test_byte_order_mark(tmp_path: Path, layout: str) -> None:
    (tmp_path / 'a.txt').write_text('0 1\n2 3\n', encoding='utf-8-sig')
    assert read_interactions(tmp_path / 'a.txt', layout).tolist() == [[0, 2], [1, 3]]


@pytest.mark.parametrize(('suffix', 'module'), [('.gz', gzip), ('.xz', lzma), ('.bz2', bz2)])
def test_broken_compressed_files(tmp_path: Path, suffix: str, module) -> None:
    path = tmp_path / f'a.txt{suffix}'
    content = module.compress(b''.join(b'%d %d\n' % (own, own * own) for own in range(1000)))
    damaged = content[:20] + bytes(byte ^ 0x55 for byte in content[20:60]) + content[60:]
    for broken in (content[: len(content) // 2], content[:-3], damaged, b'0 1\n'):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=rf'a\.txt\{suffix}, line \d+: got a broken file \(.*\); accepted are whole files'):
            read_interactions(path)
    with pytest.raises(FileNotFoundError):
        read_interactions(tmp_path / f'absent{suffix}')


@pytest.mark.parametrize(
    ('arrays', 'message'),
    [
        ({'rows': np.zeros(2)}, r'got the arrays .*; accepted are archives with row and col'),
        ({'row': np.array([0.5, 1.7]), 'col': np.arange(2)}, r'got row of float64 and shape \(2,\), col of int64'),
        ({'row': np.arange(3), 'col': np.arange(2)}, r'got row of int64 and shape \(3,\), col of int64 and shape \(2,\)'),
        ({'row': np.zeros((1, 2), int), 'col': np.zeros((1, 2), int)}, r'got .*; accepted are integers of one shape \[E\]'),
        ({'row': np.array([0]), 'col': np.array([-1])}, r'got an id below 0 or above 9223372036854775807'),
        ({'row': np.array([2**63], np.uint64), 'col': np.array([0])}, r'got an id below 0 or above'),
        ({'row': np.array([None]), 'col': np.array([0])}, r'got a broken archive'),
    ],
)
def test_broken_archives(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    np.savez(tmp_path / 'a.npz', **arrays)
    with pytest.raises(ValueError, match=rf'a\.npz: {message}'):
        read_interactions(tmp_path / 'a.npz')


def test_what_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / 'a.npz'
    np.savez(path, row=np.arange(1000), col=np.arange(1000))
    whole = path.read_bytes()
    with open(tmp_path / 'a.npy', 'wb') as file:
        np.save(file, np.arange(3))
    for broken in (b'', b'0 1\n', b'PK\x03\x04', whole[:500], (tmp_path / 'a.npy').read_bytes(), whole[:200] + whole[210:]):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=r'a\.npz: got a broken archive'):
            read_interactions(path)


def test_gaps_duplicates_and_overlap() -> None:
    dataset = InteractionDataset.from_pairs(
        train=pairs((10, 5), (10, 5), (30, 9)), val=pairs((10, 9), (30, 9)), test=pairs((10, 9), (20, 70), (20, 70))
    )
    assert dataset.user_ids.tolist() == [10, 20, 30]
    assert dataset.item_ids.tolist() == [5, 9, 70]
    assert as_set(dataset.train) == {(0, 0), (2, 1)}
    assert as_set(dataset.val) == {(0, 1)}
    assert as_set(dataset.test) == {(1, 2)}
    assert dataset.dropped == {'repeated in train': 1, 'in val and before': 1, 'repeated in test': 1, 'in test and before': 1}
    notes = '\n'.join(dataset.notes)
    assert '1 users without a training interaction' in notes
    assert '1 items without a training interaction' in notes
    assert 'items renumbered: ids 5 to 70 hold 3' in notes
    assert repr(dataset) == 'InteractionDataset(users=3, items=3, train=2, val=1, test=1)'


@pytest.mark.parametrize(
    ('train', 'message'),
    [
        (torch.zeros(3, 2, dtype=torch.long), r'train: got torch.int64 of shape \[3, 2\]'),
        (torch.zeros(2, 2), 'train: got torch.float32'),
        (pairs((0, -1)), 'train: got a negative id'),
        (pairs(), 'train: got no interaction'),
    ],
)
def test_bad_pairs(train: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        InteractionDataset.from_pairs(train)


def test_split_counts_follow_the_rule() -> None:
    for n in range(1, 41):
        own = torch.stack([torch.zeros(n, dtype=torch.long), torch.arange(n)])
        train, val, test = split_per_user(own, 0.1, 0.1, seed=n)
        # One for testing, then one for validation, as long as one is left; a tenth of more.
        expected = [max(n // 10, int(n >= 3)), max(n // 10, int(n >= 2))]
        assert [val.size(1), test.size(1)] == expected, n
        assert as_set(train) | as_set(val) | as_set(test) == as_set(own)
        assert train.size(1) + val.size(1) + test.size(1) == n


def test_split_ratio_is_exact() -> None:
    own = torch.stack([torch.zeros(100, dtype=torch.long), torch.arange(100)])
    assert [part.size(1) for part in split_per_user(own, 0.29, 0.57)] == [14, 29, 57]


def test_split_is_per_user_seeded_and_random() -> None:
    own = torch.stack([torch.arange(50).repeat_interleave(20), torch.arange(20).repeat(50)])
    own = own[:, torch.randperm(own.size(1))]
    train, val, test = split_per_user(own, 0.1, 0.2, seed=3)
    assert torch.bincount(train[0]).tolist() == [14] * 50
    assert torch.bincount(val[0]).tolist() == [2] * 50
    assert torch.bincount(test[0]).tolist() == [4] * 50
    assert as_set(test) == as_set(split_per_user(own, 0.1, 0.2, seed=3)[2])
    assert as_set(test) != as_set(split_per_user(own, 0.1, 0.2, seed=4)[2])
    # Which items test differs between users.
    assert torch.bincount(test[1], minlength=20).min() > 0
    train, val, test = split_per_user(own, 0.0, 0.0)
    assert (train.size(1), val.size(1), test.size(1)) == (1000, 0, 0)


@pytest.mark.parametrize('ratios', [(-0.1, 0.1), (0.5, 0.5), (0.1, -0.1), (float('nan'), 0.1)])
def test_bad_ratios(ratios: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match='val_ratio, test_ratio: got'):
        split_per_user(pairs((0, 1)), *ratios)


def test_load_draws_what_no_file_holds(tmp_path: Path) -> None:
    (tmp_path / 'a.txt').write_text('\n'.join(f'{u} ' + ' '.join(map(str, range(20))) for u in range(5)) + '\n0 1\n')
    (tmp_path / 'b.txt').write_text('0 20 21\n')
    pooled = load_interactions([tmp_path / 'a.txt', tmp_path / 'b.txt'])
    assert repr(pooled) == 'InteractionDataset(users=5, items=22, train=82, val=10, test=10)'
    assert pooled.dropped == {'repeated in train': 1}
    assert not as_set(pooled.train) & as_set(pooled.test)
    given = load_interactions(tmp_path / 'a.txt', test=tmp_path / 'b.txt')
    assert repr(given) == 'InteractionDataset(users=5, items=22, train=90, val=10, test=2)'
    whole = load_interactions(tmp_path / 'a.txt', test=tmp_path / 'b.txt', val_ratio=0.0)
    assert repr(whole) == 'InteractionDataset(users=5, items=22, train=100, val=0, test=2)'


def test_graph_against_dense() -> None:
    own = pairs((0, 1), (2, 0), (0, 0), (2, 3))
    data = bipartite_data(own, num_users=4, num_items=5)
    adjacency = np.zeros((9, 9))
    for user, item in own.t().tolist():
        adjacency[user, 4 + item] = adjacency[4 + item, user] = 1
    degree = adjacency.sum(1)
    scale = np.where(degree > 0, degree, 1) ** -0.5
    np.testing.assert_allclose(data.adj_t.to_dense().numpy(), scale[:, None] * adjacency * scale, rtol=1e-6)
    dense = torch.zeros(9, 9)
    dense[data.edge_index[0], data.edge_index[1]] = 1
    np.testing.assert_array_equal(dense.numpy(), adjacency)
    assert (data.num_nodes, data.num_users, data.num_items) == (9, 4, 5)


@pytest.mark.parametrize(
    ('own', 'message'),
    [
        (pairs((0, 0), (3, 0)), 'pairs: got users from 0 to 3; accepted are 0 to 1'),
        (pairs((0, 0), (1, 2)), 'pairs: got items from 0 to 2; accepted are 0 to 1'),
        (pairs((0, 0), (1, -1)), 'pairs: got items from -1 to 0; accepted are 0 to 1'),
    ],
)
def test_graph_of_other_users_or_items(own: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bipartite_data(own, num_users=2, num_items=2)


def test_fingerprint_is_that_of_the_ids() -> None:
    own = InteractionDataset.from_pairs(pairs((1, 5), (2, 6), (3, 7)))
    assert InteractionDataset.from_pairs(pairs((3, 5), (2, 5), (1, 7)), test=pairs((1, 6))).fingerprint == own.fingerprint
    for other in (pairs((1, 5), (2, 6), (4, 7)), pairs((1, 5), (2, 6), (3, 8)), pairs((1, 5), (2, 6), (3, 7), (5, 6))):
        assert InteractionDataset.from_pairs(other).fingerprint != own.fingerprint
    # The same ids in a row, divided in another way.
    short, long = (InteractionDataset.from_pairs(own) for own in (pairs((1, 2), (1, 3)), pairs((1, 3), (2, 3))))
    assert torch.cat([short.user_ids, short.item_ids]).tolist() == torch.cat([long.user_ids, long.item_ids]).tolist()
    assert short.fingerprint != long.fingerprint


def test_hash_is_that_of_the_interactions() -> None:
    def hashed(train: Tensor, **parts: Tensor) -> str:
        return InteractionDataset.from_pairs(train, **parts).interactions_hash

    own = hashed(pairs((1, 5), (2, 6)), test=pairs((1, 6)))
    assert hashed(pairs((2, 6), (1, 5)), test=pairs((1, 6))) == own
    others = [hashed(pairs((1, 5), (2, 6)), val=pairs((1, 6))), hashed(pairs((1, 6), (2, 5)), test=pairs((1, 5)))]
    assert len({own, *others, hashed(pairs((1, 5), (2, 6), (1, 6)))}) == 4


@pytest.mark.skipif(not DATA.is_dir(), reason=f'the data sets are not in {DATA}')
@pytest.mark.parametrize(
    ('name', 'expected'),
    [
        ('lastfm', (1880, 4489, 42135, 10533)),
        ('beauty', (22363, 12101, 198502, 0)),
        ('yelp', (42712, 26822, 182357, 65128)),
    ],
)
def test_known_sets_have_the_published_sizes(name: str, expected: tuple[int, int, int, int]) -> None:
    dataset = load_interaction_dataset(name, DATA)
    users, items, train, test = expected
    assert (dataset.num_users, dataset.num_items) == (users, items)
    if name == 'beauty':  # split at random, for each user
        assert dataset.train.size(1) + dataset.val.size(1) + dataset.test.size(1) == train
        assert torch.bincount(dataset.test[0], minlength=users).min() >= 1
    elif name == 'lastfm':
        assert dataset.train.size(1) + dataset.val.size(1) == train
        assert dataset.test.size(1) == test
    else:
        assert (dataset.train.size(1), dataset.test.size(1)) == (train, test)


def test_unknown_set(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r'name: got .netflix.; accepted are beauty, gowalla, lastfm, yelp'):
        load_interaction_dataset('netflix', tmp_path)
    with pytest.raises(FileNotFoundError):
        load_interaction_dataset('lastfm', tmp_path)


def test_no_file_at_all() -> None:
    with pytest.raises(ValueError, match=r'^source: got \[\]; accepted are'):
        load_interactions([])
