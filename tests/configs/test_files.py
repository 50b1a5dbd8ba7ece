"""The folder of configurations: its names, and the table of words in its README."""

from __future__ import annotations

import re

import yaml
from configured_step import CONFIGS

from pyg_topomask.graphgym.names.attentions import ATTENTIONS, ATTN_TYPES, attention_options
from pyg_topomask.graphgym.names.layers import LOCAL_LAYERS

README = (CONFIGS / 'README.md').read_text()
GPS_FILES = sorted([*CONFIGS.glob('*.yaml'), *CONFIGS.glob('kmip/*.yaml'), *CONFIGS.glob('graphgps/*.yaml')])


def words() -> dict[str, str]:
    """The options in the table of words, by the word."""
    section = README.partition('## Words')[2].partition('\n## ')[0]
    rows = [line.strip('| ').split(' | ') for line in section.splitlines() if line.startswith('| `')]
    return {row[0].strip('`'): row[1] if len(row) > 1 else '' for row in rows}


def test_table_holds_every_word() -> None:
    assert words().keys() == {*ATTENTIONS, *ATTN_TYPES}


def test_table_holds_the_options_with_their_defaults() -> None:
    for word in ATTENTIONS:
        options = yaml.safe_load('\n'.join(re.findall(r'`(\w+: [^`]+)`', words()[word]))) or {}
        known = attention_options(word)
        stated = {key: float(value) if isinstance(known[key], float) else value for key, value in options.items()}
        assert stated == {key: known[key] for key in options}, word


def test_every_local_layer_is_named() -> None:
    (sentence,) = re.findall(r'The word before the `\+` is a local layer: ([^.]*)\.', README)
    assert set(re.findall(r'`(\w+)`', sentence)) == set(LOCAL_LAYERS)


def test_a_comment_says_why_a_file_has_its_word() -> None:
    for path in GPS_FILES:
        (line,) = [line for line in path.read_text().splitlines() if 'layer_type:' in line]
        match = re.fullmatch(r'  layer_type: (\w+)\+(\w+)  # \2: .+', line)
        assert match is not None, line
        assert match[1] in LOCAL_LAYERS, path
