"""Interactions in tables whose first line names the columns, and text of the formats in which public data sets come."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import Tensor

from pyg_topomask.apps.recommend import interaction_text, load_interactions, read_interactions
from pyg_topomask.apps.recommend.runner import recommend


@pytest.fixture(params=['polars', 'python'], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Which of the parts of a file Polars has read. Without it, Python reads all, with the same results."""
    read: list[bool] = []
    parsed = interaction_text._parsed

    def recording(*args: object, **kwargs: object) -> object:
        frame = parsed(*args, **kwargs) if request.param == 'polars' else None
        read.append(frame is not None)
        return frame

    if request.param == 'polars':
        pytest.importorskip('polars')
    monkeypatch.setattr(interaction_text, '_parsed', recording)
    return read


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / 'a.txt'
        path.write_bytes(text.encode())
        return path

    return write


def pairs(interactions: Tensor) -> list[tuple[int, int]]:
    return [(user, item) for user, item in interactions.t().tolist()]


#: Three interactions of users 3, 3 and 9 with items 17, 5 and 17, rated 4, 0.5 and 2.
FORMATS = {
    # RecBole 1.2: the kind of each column stands behind its name.
    'RecBole .inter': (
        'table',
        'user_id:token\titem_id:token\trating:float\ttimestamp:float\n3\t17\t4\t881250949\n3\t5\t0.5\t8.8e8\n9\t17\t2.0\t1\n',
    ),
    'RecBole .inter of other order': (
        'table',
        'timestamp:float\titem_id:token\trating:float\tuser_id:token\n881\t17\t4\t3\n1\t5\t0.5\t3\n2\t17\t2\t9\n',
    ),
    'MovieLens 100K u.data': ('pairs', '3\t17\t4\t881250949\n3\t5\t0.5\t891717742\n9\t17\t2\t878887116\n'),
    'MovieLens 1M ratings.dat': ('pairs', '3::17::4::978300760\n3::5::0.5::978302109\n9::17::2::978301968\n'),
    'MovieLens 32M ratings.csv': (
        'table',
        'userId,movieId,rating,timestamp\n3,17,4.0,944249077\n3,5,0.5,944250228\n9,17,2.0,943230976\n',
    ),
    'HetRec user_artists.dat': ('table', 'userID\tartistID\tweight\r\n3\t17\t4\r\n3\t5\t0.5\r\n9\t17\t2\r\n'),
    'quoted, by R': ('table', '"user";"item";"rating"\n"3";"17";4\n"3";"5";0.5\n"9";"17";2\n'),
    'tabs, beside which quotes are text': (
        'table',
        'user_id\titem_id\trating\ttitle\n3\t17\t4\t"Heroes\n3\t5\t0.5\tOK\n9\t17\t2\t"Heroes\n',
    ),
    'blank lines, and no newline at the end': ('table', 'user item rating\n3 17 4\n\n3 5 0.5\n9 17 2'),
}


@pytest.mark.parametrize('name', FORMATS)
def test_public_formats(write: Callable[[str], Path], parser: list[bool], request: pytest.FixtureRequest, name: str) -> None:
    layout, text = FORMATS[name]
    path = write(text)
    assert pairs(read_interactions(path, layout)) == [(3, 17), (3, 5), (9, 17)]
    if 'polars' in request.node.callspec.id and 'blank lines' not in name:
        assert parser == [True]
    assert pairs(read_interactions(path, layout, min_rating=2)) == [(3, 17), (9, 17)]
    dataset = load_interactions(path, layout=layout, val_ratio=0.0, test_ratio=0.0, min_rating=2)
    assert dataset.dropped == {'rated 0 or below 2 in train': 1}
    assert (dataset.user_ids.tolist(), dataset.item_ids.tolist(), dataset.user_names) == ([3, 9], [17], None)
    compressed = path.with_suffix('.gz')
    compressed.write_bytes(gzip.compress(text.encode()))
    assert pairs(read_interactions(compressed, layout)) == [(3, 17), (3, 5), (9, 17)]


AMAZON = """user_id,parent_asin,rating,timestamp
AGKHLEW2SOWHNMFQIJGBECAF7INQ,B081TJ8YS3,4.0,1588615855070
AGKASBHYZPGTEPO6LWZPVJWB2BVA,B07PNNCSP9,5.0,1577637634017
AGKHLEW2SOWHNMFQIJGBECAF7INQ,0593186397,5.0,1577637591000
AGKASBHYZPGTEPO6LWZPVJWB2BVA,B081TJ8YS3,0.0,1577637591001
"""


def test_ids_of_amazon_are_numbered_and_kept(write: Callable[[str], Path], tmp_path: Path) -> None:
    """The files of ratings of Amazon Reviews 2023. One of the items is a book, whose id is an ISBN."""
    path = write(AMAZON)
    assert pairs(read_interactions(path, 'table')) == [(1, 2), (0, 1), (1, 0)]
    dataset = load_interactions(path, layout='table', val_ratio=0.0, test_ratio=0.0)
    assert dataset.user_names == ('AGKASBHYZPGTEPO6LWZPVJWB2BVA', 'AGKHLEW2SOWHNMFQIJGBECAF7INQ')
    assert dataset.item_names == ('0593186397', 'B07PNNCSP9', 'B081TJ8YS3')
    assert pairs(dataset.train) == [(0, 1), (1, 0), (1, 2)]
    assert dataset.notes == ['1 interactions rated 0 or less in train dropped']
    users, items = torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [1.0], [2.0]])
    assert recommend(dataset, users, items, ['AGKASBHYZPGTEPO6LWZPVJWB2BVA'], k=1) == [
        ('AGKASBHYZPGTEPO6LWZPVJWB2BVA', 1, '0593186397', 3.0)
    ]
    with pytest.raises(ValueError, match=r'user: got \[nobody\]; accepted: the 2 users from AGKAS\w* to AGKHL'):
        recommend(dataset, users, items, ['nobody'])
    renamed = load_interactions(
        write(AMAZON.replace('0593186397', '0593186398')), layout='table', val_ratio=0.0, test_ratio=0.0
    )
    assert renamed.fingerprint != dataset.fingerprint  # a model of the one is not valid for the other


def test_names_are_common_to_all_files(tmp_path: Path) -> None:
    (tmp_path / 'a.csv').write_text('user,item\n7,x\n10,y\n')
    (tmp_path / 'b.csv').write_text('item,user\nx,10\nw,7\n')
    dataset = load_interactions(tmp_path / 'a.csv', test=tmp_path / 'b.csv', layout='table', val_ratio=0.0)
    assert (dataset.user_ids.tolist(), dataset.user_names, dataset.item_names) == ([7, 10], None, ('w', 'x', 'y'))
    assert (pairs(dataset.train), pairs(dataset.test)) == ([(0, 1), (1, 2)], [(0, 0), (1, 1)])
    scipy.sparse.save_npz(tmp_path / 'c.npz', scipy.sparse.coo_array(([1.0], ([10], [3])), (11, 4)))
    pooled = load_interactions([tmp_path / 'a.csv', tmp_path / 'c.npz'], layout='table', val_ratio=0.0, test_ratio=0.0)
    assert (pooled.user_ids.tolist(), pooled.item_names) == ([7, 10], ('3', 'x', 'y'))
    assert pairs(pooled.train) == [(0, 1), (1, 0), (1, 2)]


def test_columns_of_other_names(write: Callable[[str], Path]) -> None:
    path = write('visitor|shown|bought|score\n4|40|1|9\n2|7|0|9\n')
    with pytest.raises(
        ValueError, match=r"line 1: got 'visitor\|shown\|bought\|score'; accepted: names of .*; name the columns, col"
    ):
        read_interactions(path, 'table')
    assert pairs(read_interactions(path, 'table', columns=['visitor', 'shown'])) == [(4, 40), (2, 7)]
    assert pairs(read_interactions(path, 'table', columns=['visitor', 'shown', 'bought'])) == [(4, 40)]
    with pytest.raises(ValueError, match=r"line 1: got '.*'; accepted: visitor, seen"):
        read_interactions(path, 'table', columns=['visitor', 'seen'])
    with pytest.raises(ValueError, match=r"columns: got \['visitor'\]; accepted: the names of the columns of users"):
        read_interactions(path, 'table', columns=['visitor'])


@pytest.mark.parametrize(
    ('text', 'columns'),
    [
        ('User ID,Item ID\n1,2\n3,4\n', ['User ID', 'Item ID']),
        ('User ID,Item ID\n1,2\n3,4\n', []),
        ('user,item,date of the order\n1,2,a b\n3,4,c\n', []),
        ('"user";"item";"title, year, a, b"\n1;2;"x, y"\n3;4;z\n', []),
        ('user item rating\n1 2 3\n3 4 5\n', []),
        ('user,user id,item\n1,7,2\n3,8,4\n', []),
        ('user,item,title\n1,2,Disk 5" black\n3,4,Disk 6" black\n', []),
        ('user,item,title\n1,2,Disk 5"\n3,4,Disk 6"\n', []),
        ('user,item,title\n1,2,"a ""b"", c"\n3,4,""\n', []),
        (f'user,item,{",".join(f"feature {i}" for i in range(15_000))}\n1,2\n3,4\n', []),
    ],
)
def test_blanks_and_other_separators_in_names(write: Callable[[str], Path], text: str, columns: list[str]) -> None:
    assert pairs(read_interactions(write(text), 'table', columns=columns)) == [(1, 2), (3, 4)]


def test_broken_tables(write: Callable[[str], Path], subtests: pytest.Subtests) -> None:
    for text, least, message in [
        ('user_id:token\titem_id:token\n3\t5\n\n\t5\n', 0, r'a\.txt, line 4, column user_id:token: got no id; accepted: an id'),
        ('user,item,rating\n1,2,3\n1,2,good\n', 0, r"a\.txt, line 3, column rating: got 'good'; accepted: numbers$"),
        ('user,item,rating\n1,2,3\n1,2,\n', 1, r"a\.txt, line 3, column rating: got ''; accepted: numbers, for min_rating 1"),
        ('user,item,rating\n1,2,3\na,2,\n', 1, r"a\.txt, line 3, column rating: got ''; accepted: numbers, for min_rating 1"),
        ('user,item\n1,2\n1,2,3\n', 0, r'a\.txt, line 3: got 3 columns; accepted: 2, as in line 1'),
        ('title,user,item\nA,1,2\nB, C,1,3\n', 0, r'a\.txt, line 3: got 4 columns; accepted: 3, as in line 1'),
        ('title,user,item\nA,ann,b\n"B, C",ann,d\nB, C,ann,e\n', 0, r'a\.txt, line 4: got 4 columns; accepted: 3, as in'),
        ('user,item\n1,2\nann\n', 0, r'a\.txt, line 3, column item: got no id'),
        ('user,item\n1,2\n', 3, r"a\.txt, line 1: got 'user,item'; accepted: a column of ratings, for min_rating 3"),
        ('3,17,4\n', 0, r"a\.txt, line 1: got '3,17,4'; .*; if no line names the columns, set the layout to 'pairs'"),
        ('', 0, r'a\.txt, line 1: got an empty file; accepted: names of columns'),
    ]:
        with subtests.test(text=text), pytest.raises(ValueError, match=message):
            read_interactions(write(text), 'table', least)


def test_missing_ratings_and_small_numbers_of_columns(write: Callable[[str], Path]) -> None:
    path = write('user,item,rating,time\n1,2,,5\n1,3,nan,5\n1,4,0,5\n2,5\n')
    assert pairs(read_interactions(path, 'table')) == [(1, 2), (1, 3), (2, 5)]


def test_ids_that_are_numbers_in_the_first_parts_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parser: list[bool]
) -> None:
    """Leading zeros then belong to the id."""
    monkeypatch.setattr(interaction_text, '_PART', 64)
    lines = [f'{user:03},{user % 7},3\n' for user in range(100)]
    (tmp_path / 'a.csv').write_text(''.join(['user,item,rating\n', *lines, 'ann,6,3\n']))
    dataset = load_interactions(tmp_path / 'a.csv', layout='table', val_ratio=0.0, test_ratio=0.0)
    assert dataset.user_names == (*(f'{user:03}' for user in range(100)), 'ann')
    assert pairs(dataset.train) == [*((user, user % 7) for user in range(100)), (100, 6)]
    assert (dataset.item_names, len(parser) > 20) == (None, True)
    (tmp_path / 'a.csv').write_text(''.join(['user,item,rating\n', *lines, 'ann,6,\n', 'eve,6\n', 'bob,,3\n']))
    with pytest.raises(ValueError, match=r'a\.csv, line 104, column item: got no id'):
        read_interactions(tmp_path / 'a.csv', 'table')


def test_lists_with_users_without_items(write: Callable[[str], Path]) -> None:
    """LightGCN's lists (gowalla/test.txt at d8a0bcf) have lines of a user alone, with a blank behind it."""
    assert pairs(read_interactions(write('0 5 2\n1 \n2\n3 7\n'), 'lists')) == [(0, 5), (0, 2), (3, 7)]


@pytest.mark.parametrize('separator', ['\t', ',', ' ', '::', ':'])
def test_parts_of_pairs_are_as_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, separator: str) -> None:
    """Polars reads what is regular, and Python the rest. Both give the same."""
    monkeypatch.setattr(interaction_text, '_PART', 50)
    rng, path = np.random.default_rng(0), tmp_path / 'a.txt'
    rows = [[str(number) for number in (*rng.integers(100, size=2), rng.integers(-1, 5), 881250949)] for _ in range(200)]
    odd = [['007', '8', 'word'], ['5', '6'], [' 5', '6 ', '7'], ['1', '2', 'nan', '5'], ['1', '2', 'inf'], ['1', '2', '-0.0']]
    for place, row in enumerate(odd):
        rows.insert(30 * place + 7, row)
    path.write_bytes(''.join(separator.join(row) + ('\r\n' if i % 5 else '\n\n') for i, row in enumerate(rows)).encode())
    kept = [row for row in rows if len(row) < 3 or row[2] in ('word', 'nan') or float(row[2]) > 0]
    assert pairs(read_interactions(path, 'pairs')) == [(int(user), int(item)) for user, item, *_ in kept]


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('1\t2\t3\n1\t2\t\t0\n', [(1, 2)]),  # tabs in a row separate once, so that 0 is the rating
        ('1::2::3\n1::2:0:9\n', [(1, 2)]),
        ('1 2 3\n1  2 0\n', [(1, 2)]),
        ('1 2 3\r4 5 6\n', [(1, 2), (4, 5)]),
        ('1 2 3 x\r4 5 6 y\n', [(1, 2), (4, 5)]),
    ],
)
def test_irregular_separators(write: Callable[[str], Path], text: str, expected: list[tuple[int, int]]) -> None:
    assert pairs(read_interactions(write(text), 'pairs')) == expected
