"""What the command list prints."""

from __future__ import annotations

import pytest

from pyg_topomask.apps.catalog import format_catalog

SECTIONS = {
    'masks': {'Hop': 'Counts edges. ' * 20, 'Tree': 'Distances.'},
    'masks in Python': {'HopMask': 'The same.'},
    'models': {'GKAT': 'A model.'},
}


def names(text: str) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.endswith(':') and not line.startswith(' '):
            sections[line[:-1]] = []
        elif line.startswith('  ') and line[2] != ' ':
            sections[list(sections)[-1]].append(line.split()[0])
    return sections


def test_words_choose_sections_and_names(subtests: pytest.Subtests) -> None:
    for words, expected in [
        (['masks'], {'masks': ['Hop', 'Tree']}),
        (['Masks', 'in', 'python'], {'masks in Python': ['HopMask']}),
        (['hop'], {'masks': ['Hop'], 'masks in Python': ['HopMask']}),
        (['models', 'tree'], {'masks': ['Tree'], 'models': ['GKAT'], 'configs': ['lookup-trees', 'majority-trees']}),
        (['majority'], {'configs': ['majority-trees']}),
    ]:
        with subtests.test(words=words, expected=expected):
            assert names(format_catalog(SECTIONS, words)) == expected


def test_everything_without_words() -> None:
    printed = names(format_catalog(SECTIONS))
    assert printed.pop('configs')[:2] == ['cora', 'cora-svd']
    assert printed == {section: list(lines) for section, lines in SECTIONS.items()}


def test_lines_are_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, width in (('60', 60), ('200', 100)):
        monkeypatch.setenv('COLUMNS', columns)
        assert width - 14 < max(map(len, format_catalog(SECTIONS, ['hop']).splitlines())) <= width


def test_unknown_words_are_refused() -> None:
    with pytest.raises(
        ValueError, match='list: got nothing; accepted: the sections masks, masks in Python, models, configs, and'
    ):
        format_catalog(SECTIONS, ['models', 'nothing'])
