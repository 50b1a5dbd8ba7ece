from __future__ import annotations

import bz2
import gzip
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import Tensor

from pyg_topomask.apps.recommend.interaction_files import load_interaction_dataset, load_interactions, read_interactions

DATA = Path(os.environ.get('PYG_TOPOMASK_DATA', Path(__file__).parents[3] / 'shared' / 'data')) / 'recsys'


def as_set(interactions: Tensor) -> set[tuple[int, ...]]:
    return {tuple(pair) for pair in interactions.t().tolist()}


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


@pytest.mark.parametrize('form', ['coo', 'csr', 'csc', 'bsr'])
def test_matrices_of_scipy(tmp_path: Path, form: str) -> None:
    """benfred/implicit#134: a stored 0 is no interaction. SciPy 1.17.1 stores it, and a matrix product ignores it."""
    matrix = scipy.sparse.coo_array(([5.0, 0.0, 3.0, -1.0, 4.0], ([0, 0, 2, 1, 1], [1, 3, 0, 2, 0])), (3, 4))
    scipy.sparse.save_npz(tmp_path / 'a.npz', matrix.asformat(form))
    assert as_set(read_interactions(tmp_path / 'a.npz')) == {(0, 1), (1, 0), (2, 0)}
    assert as_set(read_interactions(tmp_path / 'a.npz', min_rating=4)) == {(0, 1), (1, 0)}
    dataset = load_interactions(tmp_path / 'a.npz', val_ratio=0.0, test_ratio=0.0, min_rating=4)
    count = (matrix.asformat(form).tocoo().data < 4).sum()  # bsr stores further zeros
    assert dataset.notes[0] == f'{count} interactions rated 0 or below 4 in train dropped'


def test_ratings_of_a_matrix_add_up_at_equal_places(tmp_path: Path) -> None:
    matrix = scipy.sparse.coo_array(([1.0, 2.0, 1.0, -1.0], ([0, 0, 1, 1], [1, 1, 0, 0])), (2, 2))
    scipy.sparse.save_npz(tmp_path / 'a.npz', matrix)
    assert matrix.toarray().tolist() == [[0, 3], [0, 0]]
    assert read_interactions(tmp_path / 'a.npz', min_rating=3).tolist() == [[0], [1]]
    assert read_interactions(tmp_path / 'a.npz').tolist() == [[0], [1]]


def test_ratings_of_pairs(tmp_path: Path) -> None:
    (tmp_path / 'a.txt').write_text('0 1 5 881250949\n0 2 0 881250949\n1 1 0.0\n1 3 -1\n2 3 3.5\n2 4\n3 4 word\n')
    (tmp_path / 'b.txt').write_text('2,1,0\n0,3,3\n')
    assert as_set(read_interactions(tmp_path / 'a.txt', 'pairs')) == {(0, 1), (2, 3), (2, 4), (3, 4)}
    dataset = load_interactions(tmp_path / 'a.txt', test=tmp_path / 'b.txt', layout='pairs', val_ratio=0.0)
    assert dataset.dropped == {'rated 0 or less in train': 3, 'rated 0 or less in test': 1}
    assert (dataset.train.size(1), dataset.test.size(1)) == (4, 1)
    with pytest.raises(ValueError, match=r"a\.txt, line 6: got '2 4'; accepted: a rating as third word, for min_rating 3.5"):
        read_interactions(tmp_path / 'a.txt', 'pairs', 3.5)
    (tmp_path / 'a.txt').write_text('0 1 5\n0 2 0\n2 3 3.5\n3 4 3\n')
    assert as_set(read_interactions(tmp_path / 'a.txt', 'pairs', 3.5)) == {(0, 1), (2, 3)}
    np.savez(tmp_path / 'a.npz', row=np.arange(2), col=np.arange(2))
    with pytest.raises(ValueError, match=r'^min_rating: got 4 for .*a\.npz, which holds no ratings; accepted: archives of'):
        read_interactions(tmp_path / 'a.npz', min_rating=4)


@pytest.mark.parametrize('text', ['0 1 5.0\n2\t3 4.5\n', '0,1,5.0\n2, 3, 4.5\n', '0::1::5::9\n2::3::4::9\n', '0:1\n2:3\n'])
def test_words_are_separated_by_blanks_commas_and_colons(tmp_path: Path, text: str) -> None:
    (tmp_path / 'a.csv').write_text(text)
    assert read_interactions(tmp_path / 'a.csv', 'pairs').tolist() == [[0, 2], [1, 3]]


@pytest.mark.parametrize('text', ['0 1 5\n0 2 4\n1 1 3\n', '0:1 5\n\n7 2 4\n0 2 4\n', '0 1 5 881250949\n0 2 4 881250950\n'])
def test_ratings_that_are_read_as_items_are_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / 'a.txt'
    path.write_text(text)
    with pytest.warns(UserWarning, match=r"a\.txt: every line has [34] numbers, .* set the layout to 'pairs'") as told:
        read_interactions(path)
    assert [warning.filename for warning in told] == [__file__]
    assert read_interactions(path, 'pairs').size(1) == len(text.split('\n')) - 1 - text.count('\n\n')


@pytest.mark.parametrize('text', ['0 1 5\n1 2 4\n', '0 1\n0 2\n', '0 1 5\n0 2\n', '0 1 2 3 4\n0 5 6 7 8\n', '0\n0\n', ''])
def test_lists_are_not_taken_for_ratings(tmp_path: Path, text: str) -> None:
    (tmp_path / 'a.txt').write_text(text)
    assert read_interactions(tmp_path / 'a.txt').size(1) == sum(len(line.split()) - 1 for line in text.splitlines())


def test_broken_files(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for layout, text, message in [
        ('lists', '0 1\n1 x\n', r'a\.txt, line 2: got .1 x.; accepted: integer ids from 0 to 9223372036854775807'),
        ('lists', '0 1\n\n0 1.5\n', r'a\.txt, line 3: got'),
        ('lists', '0 -1\n', r'a\.txt, line 1: got .0 -1.; accepted: integer ids from 0'),
        ('lists', '0 1_0 2\n', r'a\.txt, line 1: got .0 1_0 2.; accepted: integer ids'),
        ('lists', '0 1\n0 ٣\n', r'a\.txt, line 2: got .*; accepted: integer ids'),
        ('lists', '1 9223372036854775808\n', r'a\.txt, line 1: got .1 9223372036854775808.; accepted: integer ids'),
        ('lists', f'1 {"9" * 5000}\n', r'a\.txt, line 1: got .*; accepted: integer ids'),
        ('pairs', '0 1 2_0\n1 99999999999999999999 1\n', r'a\.txt, line 2: got'),
        ('pairs', '0 1\n7\n', r'a\.txt, line 2: got .7.; accepted: a user and an item'),
        (
            'pairs',
            'user,item\n0,1\n',
            r'a\.txt, line 1: got .user,item.; accepted: integer ids .*; .*set the layout to .table',
        ),
        ('pairs', '1|17|4.0\n', r"a\.txt, line 1: got '1\|17\|4.0'; .*; the words are separated by '\|': blanks, commas and"),
        ('lists', '0 1\n1;17;4\n', r"a\.txt, line 2: got '1;17;4'; .*; the words are separated by ';': blanks, commas and"),
        ('columns', '', 'layout: got .columns.; accepted: lists, pairs, table'),
    ]:
        with subtests.test(layout=layout, text=text, message=message):
            (tmp_path / 'a.txt').write_text(text)
            with pytest.raises(ValueError, match=message):
                read_interactions(tmp_path / 'a.txt', layout)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / 'a.txt').write_bytes(b'0 1 Bj\xf6rk\r\n2 9223372036854775807 \xff\n')
    assert read_interactions(tmp_path / 'a.txt', 'pairs').tolist() == [[0, 2], [1, 2**63 - 1]]
    with pytest.raises(ValueError, match=r'a\.txt, line 1: got .0 1 Bj.*xf6rk.; accepted: integer ids'):
        read_interactions(tmp_path / 'a.txt')


@pytest.mark.parametrize('layout', ['lists', 'pairs'])
def test_byte_order_mark(tmp_path: Path, layout: str) -> None:
    (tmp_path / 'a.txt').write_text('0 1\n2 3\n', encoding='utf-8-sig')
    assert read_interactions(tmp_path / 'a.txt', layout).tolist() == [[0, 2], [1, 3]]


@pytest.mark.parametrize(('suffix', 'module'), [('.gz', gzip), ('.xz', lzma), ('.bz2', bz2)])
def test_broken_compressed_files(tmp_path: Path, suffix: str, module) -> None:
    path = tmp_path / f'a.txt{suffix}'
    content = module.compress(b''.join(b'%d %d\n' % (user, user * user) for user in range(1000)))
    damaged = content[:20] + bytes(byte ^ 0x55 for byte in content[20:60]) + content[60:]
    for broken in (content[: len(content) // 2], content[:-3], damaged, b'0 1\n'):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=rf'a\.txt\{suffix}, line \d+: got a broken file \(.*\); accepted: whole files'):
            read_interactions(path)
    with pytest.raises(FileNotFoundError):
        read_interactions(tmp_path / f'absent{suffix}')


def test_broken_archives(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for arrays, message in [
        ({'rows': np.zeros(2)}, r'got the arrays .*; accepted: archives of .*, and archives with row and col'),
        ({'row': np.array([0.5, 1.7]), 'col': np.arange(2)}, r'got row of float64 and shape \(2,\), col of int64'),
        ({'row': np.arange(3), 'col': np.arange(2)}, r'got row of int64 and shape \(3,\), col of int64 and shape \(2,\)'),
        ({'row': np.zeros((1, 2), int), 'col': np.zeros((1, 2), int)}, r'got .*; accepted: integers of one shape \[E\]'),
        ({'row': np.array([0]), 'col': np.array([-1])}, r'got an id below 0 or above 9223372036854775807'),
        ({'row': np.array([2**63], np.uint64), 'col': np.array([0])}, r'got an id below 0 or above'),
        ({'row': np.array([None]), 'col': np.array([0])}, r'got a broken archive'),
        ({'format': np.array('csr'), 'row': np.arange(2), 'col': np.arange(2)}, r'got a broken archive'),
    ]:
        with subtests.test(arrays=arrays, message=message):
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
    with pytest.raises(ValueError, match=r'name: got .netflix.; accepted: beauty, gowalla, lastfm, yelp'):
        load_interaction_dataset('netflix', tmp_path)
    with pytest.raises(FileNotFoundError):
        load_interaction_dataset('lastfm', tmp_path)


def test_no_file_at_all() -> None:
    with pytest.raises(ValueError, match=r'^source: got \[\]; accepted:'):
        load_interactions([])
