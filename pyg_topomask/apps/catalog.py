r"""The names that ``pyg-topomask list`` prints, without importing the classes."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path

from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.configs import config_sentences

#: Sections, with a one-line description of each name.
Sections = dict[str, dict[str, str]]

#: Written by ``python -m pyg_topomask.apps.inspect.make_catalog``.
FILE = Path(__file__).with_suffix('.json')

# The largest width of the output in columns.
_WIDTH = 100


def stored_sections() -> Sections:
    r"""Returns the sections of all registered names."""
    return json.loads(FILE.read_text(encoding='utf-8'))


def format_catalog(sections: Sections, words: Sequence[str] = ()) -> str:
    r"""Returns the text of a catalog, with the shipped configurations as its last section. Of some words, it prints only these:
    sections by name, and in other sections the names that contain a word. Case is ignored. Raises a :class:`ValueError` if a
    word is neither a section nor part of a name.

    Example:
        >>> print(format_catalog({'kernels': {'regularized_laplacian': 'A kernel.'}}, ['lap']))
        kernels:
          regularized_laplacian  A kernel.
    """
    sections = {**sections, 'configs': config_sentences()}
    if words:
        sections = _chosen(sections, [word.lower() for word in words])
    width, texts = min(_WIDTH, shutil.get_terminal_size((_WIDTH, 0)).columns), []
    for section, lines in sections.items():
        indent = max(map(len, lines)) + 4
        wrap = textwrap.TextWrapper(max(width, indent + 40), subsequent_indent=' ' * indent, break_on_hyphens=False)
        texts.append('\n'.join([f'{section}:', *(wrap.fill(f'  {name:{indent - 4}}  {line}') for name, line in lines.items())]))
    return '\n\n'.join(texts)


def _chosen(sections: Sections, words: Sequence[str]) -> Sections:
    by_name = {section.lower(): section for section in sections}
    if (together := ' '.join(words)) in by_name:  # a name with several words
        words = [together]
    parts = [word for word in words if word not in by_name]
    chosen = {
        section: {
            name: line
            for name, line in lines.items()
            if section.lower() in words or any(part in name.lower() for part in parts)
        }
        for section, lines in sections.items()
    }
    names = [name.lower() for lines in chosen.values() for name in lines]
    missing = [part for part in parts if not any(part in name for name in names)]
    if missing:
        raise ArgumentError('list', ', '.join(missing), f'the sections {", ".join(sections)}, and words in their names')
    return {section: lines for section, lines in chosen.items() if lines}
