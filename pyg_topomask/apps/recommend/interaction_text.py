r"""Readers of user-item interactions in text: lists, pairs, and tables whose first line names the columns.

A file is read in parts. Polars parses a part, if it is installed and the part is regular. Otherwise, Python reads it line by
line, with the same result, or an error that names the line.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pyg_topomask.errors import ArgumentError, warn

LARGEST = 2**63 - 1
IDS = f'integer ids from 0 to {LARGEST}'
_SEPARATORS = re.compile('[,:]')
#: Words that something else separates.
_OTHER_SEPARATOR = re.compile(r'\s*\d+\s*([^\s\d,:.+-])\s*\d')
_OPEN: dict[str, Callable[..., Any]] = {'.gz': gzip.open, '.xz': lzma.open, '.bz2': bz2.open}
#: Bytes of a part of a file.
_PART = 2**22
#: Names of the columns with users, items and ratings, in small letters, without lines below and blanks.
_KNOWN = (
    ('userid', 'user', 'uid', 'reviewerid', 'customerid'),
    ('itemid', 'item', 'iid', 'parentasin', 'asin', 'movieid', 'artistid', 'bookid', 'businessid', 'productid', 'trackid'),
    ('rating', 'ratings', 'stars', 'score', 'overall', 'weight'),
)

#: Users, items, and how many other pairs have a rating of 0 or below the smallest.
Rated = tuple[np.ndarray, np.ndarray, int]
#: The numbers of users and of items by their ids in text.
Numbers = tuple[dict[str, int], dict[str, int]]


class TextIds(Exception):
    r"""Ids of a table are no whole numbers, and there are no numbers for text."""


def read_text(
    path: Path, layout: str, least: float, columns: Sequence[str] = (), numbers: Numbers | None = None
) -> tuple[np.ndarray, int]:
    r"""Reads the users and items of a text file with ratings of at least :obj:`least`, of shape :obj:`[2, E]`, and counts the
    others. Ids of a table get the given numbers, to which new ids are added. Without numbers, they have to be whole numbers
    from 0 (:class:`TextIds`).
    """
    if layout == 'table':
        read = _read_table(path, least, columns, numbers)
    else:
        read = _read_pairs(path, least) if layout == 'pairs' else _read_lists(path, least)
    parts = list(read)
    pairs, begin = np.empty((2, sum(len(part[0]) for part in parts)), np.int64), 0
    for users, items, _ in parts:
        pairs[0, begin : begin + len(users)], pairs[1, begin : begin + len(users)] = users, items
        begin += len(users)
    return pairs, sum(part[2] for part in parts)


def _parts(path: Path) -> Iterator[tuple[int, bytes]]:
    r"""Yields some lines of a file after the other, and the number of the first of them."""
    opener = _OPEN.get(path.suffix)
    number = 1
    with open(path, 'rb') if opener is None else opener(path, 'rb') as file:
        while part := (_next_part(file) if opener is None else _next_unpacked(file, path, number)):
            yield number, part.removeprefix(codecs.BOM_UTF8) if number == 1 else part
            number += _count(part, b'\n')


def _next_part(file: io.BufferedReader) -> bytes:
    begin = file.tell()
    file.seek(_PART, io.SEEK_CUR)
    file.readline()
    end = file.tell()
    file.seek(begin)
    return file.read(end - begin)


def _next_unpacked(file: Any, path: Path, number: int) -> bytes:
    parts, size = [], 0
    try:
        while size < _PART and (part := file.read1(_PART)):
            parts.append(part)
            size += len(part)
        return b''.join([*parts, file.readline()])
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        line = number + sum(part.count(b'\n') for part in parts)
        accepted = 'whole files, compressed as the name ends'
        raise ArgumentError(f'{path}, line {line}', f'a broken file ({error})', accepted) from error


def _count(part: bytes, byte: bytes) -> int:
    r"""Returns how often a byte occurs, faster than :meth:`bytes.count` if that is often."""
    return int(np.count_nonzero(np.frombuffer(part, np.uint8) == byte[0]))


def _lines(part: bytes) -> io.TextIOWrapper:
    # Ids are ASCII. Ignored words may have any encoding.
    return io.TextIOWrapper(io.BytesIO(part), encoding='utf-8', errors='backslashreplace')


def _read_lists(path: Path, least: float) -> Iterator[Rated]:
    widths: set[int] = set()
    first: list[np.ndarray] = []
    for number, part in _parts(path):
        users: list[int] = []
        items: list[int] = []
        starts: list[int] = []
        for place, line in enumerate(_lines(part), number):
            if words := line.replace(':', ' ', 1).split():
                ids = _ids(words)
                if not ids:
                    raise _not_ids(path, place, line, words, IDS)
                if least > 0:
                    raise _no_rating(path, place, line, least)
                widths.add(len(ids))
                starts.append(ids[0])
                users += [ids[0]] * (len(ids) - 1)
                items += ids[1:]
        if widths in ({3}, {4}):  # a rating, and perhaps a time
            first.append(np.array(starts, np.int64))
        yield np.array(users, np.int64), np.array(items, np.int64), 0
    if widths in ({3}, {4}):
        starts_of_lines = np.concatenate(first)
        if len(np.unique(starts_of_lines)) < len(starts_of_lines):
            warn(
                f"{path}: every line has {max(widths)} numbers, and users start several lines. The layout 'lists' takes all of "
                "them but the first for items. If these are ratings or times, set the layout to 'pairs' (in a YAML, "
                'recommend.files.layout)'
            )


def _read_pairs(path: Path, least: float) -> Iterator[Rated]:
    for number, part in _parts(path):
        read = _regular_pairs(part, least)
        yield _irregular_pairs(path, number, part, least) if read is None else read


def _irregular_pairs(path: Path, number: int, part: bytes, least: float) -> Rated:
    users: list[int] = []
    items: list[int] = []
    dropped = 0
    for place, line in enumerate(_lines(part), number):
        words = _SEPARATORS.sub(' ', line).split()
        if not words:
            continue
        ids = _ids(words[:2])
        if len(ids) < 2:
            raise _not_ids(path, place, line, words, 'a user and an item' if ids else IDS)
        rating = _rating(words[2]) if len(words) > 2 else None
        if rating is None and least > 0:
            raise _no_rating(path, place, line, least)
        if rating is not None and (rating == 0 or rating < least):
            dropped += 1
            continue
        users.append(ids[0])
        items.append(ids[1])
    return np.array(users, np.int64), np.array(items, np.int64), dropped


def _regular_pairs(part: bytes, least: float) -> Rated | None:
    r"""Reads lines with the same separator by Polars, if all have two ids, and a rating if the first has three words."""
    first = part.partition(b'\n')[0]
    separator = next((each for each in ('::', '\t', ',', ' ', ':') if each.encode() in first), None)
    if separator is None:
        return None
    step, width = len(separator), first.count(separator[0].encode()) + 1
    columns = [0, step, 2 * step][: (width - 1) // step + 1]
    empty = list(range(1, columns[-1], step)) if step > 1 else []  # between the colons of '::'
    frame = _parsed(part, separator[0], width, dict(zip(columns, (int, int, float), strict=False)), empty)
    if frame is None or any(frame[name].null_count() < len(frame) for name in map(str, empty)):
        return None
    values = [frame[str(column)] for column in columns]
    if any(value.null_count() for value in values):
        return None
    return _kept([value.to_numpy() for value in values], least)


def _kept(columns: Sequence[np.ndarray], least: float) -> Rated | None:
    r"""Returns the pairs without those of too small ratings, or nothing if a number is negative or a rating is missing that
    :obj:`least` needs. A rating of NaN is missing.
    """
    users, items, *ratings = columns
    if len(users) and min(users.min(), items.min()) < 0:
        return None
    if least > 0 and not (ratings and not np.isnan(ratings[0]).any()):
        return None
    out = (ratings[0] == 0) | (ratings[0] < least) if ratings else np.zeros(0, bool)
    return (users[~out], items[~out], int(out.sum())) if out.any() else (users, items, 0)


def _parsed(
    part: bytes, separator: str, width: int, kinds: Mapping[int, type], more: Sequence[int] = (), quote: bool = False
) -> Any:
    r"""Returns the columns of a part as a frame of Polars, or :obj:`None` if it is not installed or finds values of other
    kinds, or other numbers of columns.
    """
    try:
        import polars
    except ImportError:
        return None
    # Signs and ends of lines that Python reads in another way.
    if b'+' in part or (b'\r' in part and _count(part, b'\r') != part.count(b'\r\n')):
        return None
    types = {int: polars.Int64, float: polars.Float64}
    schema = {str(place): types.get(kinds.get(place, str), polars.String) for place in range(width)}
    try:
        return polars.read_csv(
            part,
            has_header=False,
            separator=separator,
            quote_char='"' if quote else None,
            columns=sorted([*kinds, *more]),
            schema=schema,
        )
    except polars.exceptions.PolarsError:
        return None


def _read_table(path: Path, least: float, columns: Sequence[str], numbers: Numbers | None) -> Iterator[Rated]:
    header: _Header | None = None
    for number, part in _parts(path):
        if header is None:
            first, _, part = part.partition(b'\n')
            header, number = _Header(path, first, columns, least), number + 1
        read = header.regular(part, least, numbers)
        yield header.irregular(number, part, least, numbers) if read is None else read
    if header is None:
        raise ArgumentError(f'{path}, line 1', 'an empty file', 'names of columns such as user_id and item_id')


class _Header:
    r"""The first line of a table, which names its columns, and readers of the others."""

    def __init__(self, path: Path, line: bytes, columns: Sequence[str], least: float) -> None:
        text = line.decode('utf-8', 'backslashreplace').strip('\r')
        self.path = path
        # Names may have blanks, and in quotes other separators.
        signs = sorted((sign for sign in '\t,;| ' if sign in text), key=lambda sign: (sign == ' ', -text.count(sign))) or ['\t']
        self.separator = next((sign for sign in signs if _names_both(_columns(text, sign, columns)[1], columns)), signs[0])
        self.quote = self.separator != '\t'
        self.names, places = _columns(text, self.separator, columns)
        if not _names_both(places, columns):
            accepted = ', '.join(columns) if columns else 'names of a column of users and one of items'
            remedy = "name the columns, columns=['user_id', 'item_id', 'rating'] (in a YAML, recommend.files.columns)"
            if all(_rating(name) is not None for name in self.names):
                remedy = "if no line names the columns, set the layout to 'pairs'"
            raise ArgumentError(f'{path}, line 1', repr(text[:100]), accepted, remedy)
        self.places = [place for place in places if place is not None]
        if least > 0 and len(self.places) < 3:
            raise ArgumentError(f'{path}, line 1', repr(text[:100]), f'a column of ratings, for min_rating {least}')

    def regular(self, part: bytes, least: float, numbers: Numbers | None) -> Rated | None:
        r"""Reads lines by Polars, if all have a user, an item, and no rating that is no number."""
        if not _is_regular(part, self.separator, self.quote, len(self.names)):
            return None
        kind = int if numbers is None else str
        kinds = dict(zip(self.places, (kind, kind, float), strict=False))
        frame = _parsed(part, self.separator, len(self.names), kinds, quote=self.quote)
        if frame is None:
            return None
        user, item, *rating = (frame[str(place)] for place in self.places)
        if user.null_count() or item.null_count() or (least > 0 and any(value.null_count() for value in rating)):
            return None
        ratings = [value.fill_null(math.nan).to_numpy() for value in rating]
        if numbers is None:
            return _kept([user.to_numpy(), item.to_numpy(), *ratings], least)
        kept = _kept([np.arange(len(frame))] * 2 + ratings, least)
        if kept is None:
            return None
        row, _, dropped = kept
        texts = ((user[row] if dropped else user).str.strip_chars(), (item[row] if dropped else item).str.strip_chars())
        users, items = (_numbered(*each) for each in zip(texts, numbers, strict=True))
        return users, items, dropped

    def irregular(self, number: int, part: bytes, least: float, numbers: Numbers | None) -> Rated:
        r"""Reads lines by Python."""
        options: dict[str, Any] = {'quoting': csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE}
        reader = csv.reader(_lines(part), delimiter=self.separator, **options)
        ids: tuple[list[int], list[int]] = [], []
        dropped = 0
        for row in reader:
            words = [word.strip() for word in row]
            if not any(words):
                continue
            place = f'{self.path}, line {number + reader.line_num - 1}'
            if len(words) > len(self.names):
                raise ArgumentError(place, f'{len(words)} columns', f'{len(self.names)}, as in line 1')
            values = [words[each] if each < len(words) else '' for each in self.places]
            for each, value in zip(self.places[:2], values, strict=False):
                if not value:
                    raise ArgumentError(f'{place}, column {self.names[each]}', 'no id', 'an id')
            rating = _rating(values[2]) if len(values) > 2 else None
            if len(values) > 2 and rating is None and (least > 0 or not (values[2] == '' or values[2].lower() == 'nan')):
                accepted = 'numbers' + f', for min_rating {least}' * (least > 0)
                raise ArgumentError(f'{place}, column {self.names[self.places[2]]}', repr(values[2][:60]), accepted)
            if rating is not None and (rating == 0 or rating < least):
                dropped += 1
                continue
            if numbers is None:
                found = _ids(values[:2])
                if not found:
                    raise TextIds
            else:
                found = [table.setdefault(value, len(table)) for table, value in zip(numbers, values, strict=False)]
            ids[0].append(found[0])
            ids[1].append(found[1])
        return np.array(ids[0], np.int64), np.array(ids[1], np.int64), dropped


def _columns(text: str, separator: str, columns: Sequence[str]) -> tuple[list[str], list[int | None]]:
    r"""Returns the names in the first line of a table, and the places of the columns to read, :obj:`None` if there is none."""
    names = [name.strip() for name in next(csv.reader([text], delimiter=separator), [])]
    words = [name.partition(':')[0] for name in names]  # RecBole adds the kind
    given = words if columns else [word.lower().replace('_', '') for word in words]
    joined = given if columns else [word.replace(' ', '') for word in given]
    wanted = [(name,) for name in columns] or _KNOWN
    found = ((each.index(name) for each in (given, joined) for name in known if name in each) for known in wanted)
    return names, [next(places, None) for places in found]


def _names_both(places: Sequence[int | None], columns: Sequence[str]) -> bool:
    r"""Returns whether there are columns of users and of items, or all that are given."""
    return None not in (places if columns else places[:2])


def _is_regular(part: bytes, separator: str, quote: bool, width: int) -> bool:
    r"""Returns whether no line has more than :obj:`width` columns, which Polars would leave out, and quotes are around fields.
    Polars takes one within a field for the start of text that may go on for lines.
    """
    data = np.frombuffer(part, np.uint8)
    ends = data == ord('\n')
    breaks = ends | (data == ord(separator))
    place = np.flatnonzero(breaks)
    if quote and b'"' in part:
        quotes = data == ord('"')
        beside = np.pad(breaks | quotes | (data == ord('\r')), 1, constant_values=True)
        at = np.flatnonzero(quotes)
        if not (beside[at[::2]].all() and beside[at[1::2] + 2].all() and len(at) % 2 == 0):
            return False
        place = place[np.cumsum(quotes)[place] % 2 == 0]
    last = np.flatnonzero(ends[place])
    return bool(np.diff(last, prepend=-1, append=len(place)).max() <= width)


def _numbered(texts: Any, numbers: dict[str, int]) -> np.ndarray:
    r"""Returns the numbers of the texts in a series of Polars. New texts get the next numbers."""
    import polars

    different = texts.unique(maintain_order=True)
    place = np.array([numbers.setdefault(text, len(numbers)) for text in different.to_list()], np.int64)
    return place[texts.cast(polars.Enum(different)).to_physical().to_numpy()]


def ids_of_text(numbers: dict[str, int]) -> tuple[np.ndarray, tuple[str, ...] | None]:
    r"""Returns an id for each number, and the text of each id. If all texts are whole numbers, they are the ids, without texts.
    Otherwise, ids are numbers in the order of the texts.
    """
    texts = list(numbers)
    ids = [_ids([text]) for text in texts]
    if all(each and str(each[0]) == text for each, text in zip(ids, texts, strict=True)):
        return np.array([each[0] for each in ids], np.int64), None
    order = sorted(range(len(texts)), key=texts.__getitem__)
    rank = np.empty(len(texts), np.int64)
    rank[order] = np.arange(len(texts))
    return rank, tuple(texts[place] for place in order)


def _ids(words: list[str]) -> list[int]:
    r"""Returns the ids of a line, or an empty list if a word is not an id."""
    # int() also accepts signs, underscores and digits of other scripts.
    joined = ''.join(words)
    if not (joined.isascii() and joined.isdecimal()) or max(map(len, words)) > len(str(LARGEST)):
        return []
    ids = list(map(int, words))
    return ids if max(ids) <= LARGEST else []


def _not_ids(path: Path, number: int, line: str, words: list[str], accepted: str) -> ArgumentError:
    remedy, other = '', _OTHER_SEPARATOR.match(line)
    if number == 1 and not any(map(str.isdecimal, words)) and not other:
        remedy = (
            "if the line has names of columns, set the layout to 'table', which also reads ids that are text; otherwise, "
            'number them (numpy.unique)'
        )
    elif other:
        remedy = f'the words are separated by {other[1]!r}: blanks, commas and colons separate words'
    return ArgumentError(f'{path}, line {number}', repr(line.strip()[:60]), accepted, remedy)


def _no_rating(path: Path, number: int, line: str, least: float) -> ArgumentError:
    accepted = f'a rating as third word, for min_rating {least}'
    return ArgumentError(f'{path}, line {number}', repr(line.strip()[:60]), accepted)


def _rating(word: str) -> float | None:
    r"""Returns the number that a word is, if it is one."""
    try:
        return None if math.isnan(number := float(word)) else number
    except ValueError:
        return None
