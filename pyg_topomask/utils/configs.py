r"""The configurations of the package, by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.options import did_you_mean

_NAME = 'graphgps_configs'
_PACKED = Path(__file__).parents[1] / _NAME
#: The configurations: in an installed wheel inside the package, in a checkout at the top.
FOLDER = _PACKED if _PACKED.is_dir() else Path(__file__).parents[2] / _NAME


def config_names() -> list[str]:
    r"""Returns the names of the configurations, such as :obj:`"digits"` and :obj:`"kmip/enzymes"`."""
    names = (path.relative_to(FOLDER).with_suffix('').as_posix() for path in FOLDER.rglob('*.yaml'))
    return sorted(names, key=lambda name: (name.count('/'), name))


def find_config(cfg: str | Path) -> Path:
    r"""Returns the file of a configuration: a YAML file, or else the configuration of this package with this name.

    Example:
        >>> find_config('kmip/enzymes').name
        'enzymes.yaml'
    """
    path = Path(cfg)
    if path.exists() and not path.is_dir():
        if path.suffix not in ('.yaml', '.yml', ''):  # yacs would run a file of Python
            raise ArgumentError('cfg', f'{str(cfg)!r}', 'YAML files, with the suffix .yaml, .yml or none')
        return path
    names = config_names()
    if str(cfg) in names:
        return FOLDER / f'{cfg}.yaml'
    similar = [name for name in names if Path(name).name == path.name.removesuffix('.yaml')]
    meant = f'{close}; ' if (close := did_you_mean(cfg, names)) else ''
    raise ArgumentError(
        'cfg',
        f'{str(cfg)!r}, which is no file',
        'YAML files, and names of configurations, such as digits and cora',
        f'the package has {" and ".join(similar)}' if similar else f'{meant}pyg-topomask list configs prints all names',
    )


def parse_yaml(text: str) -> Any:
    r"""Returns what a YAML holds."""
    return _load(text, 'SafeLoader')


def check_keys(text: str, source: str) -> Any:
    r"""Returns the lists and dictionaries of a YAML, with all other values as strings. Raises an error that names the source if
    a key occurs twice in one group, of which YAML readers would take the last one.
    """

    class OnceEach:
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
            known: set[str] = set()
            for key in (key for key, _ in node.value if key.id == 'scalar' and key.value != '<<'):
                if key.value in known:
                    given = f'the key {key.value!r} again in line {key.start_mark.line + 1}'
                    raise ArgumentError(source, given, 'each key once in its group')
                known.add(key.value)
            return dict(super().construct_mapping(node, deep))  # type: ignore[misc]

    return _load(text, 'BaseLoader', OnceEach)


def _load(text: str, loader: str, *first: type) -> Any:
    r"""Reads a YAML with libyaml, in a tenth of the time of PyYAML's own code, which reads what libyaml refuses, as in
    :obj:`{sum:[GRF]}`. Only libyaml reads tabs between words.
    """
    import yaml  # type: ignore[import-untyped]

    own = type('Own', (*first, getattr(yaml, loader)), {})
    try:
        return yaml.load(text, type('Fast', (*first, getattr(yaml, f'C{loader}', own)), {}))
    except (yaml.YAMLError, UnicodeError):
        return yaml.load(text, own)


def is_recommendation(cfg_file: str | Path) -> bool:
    r"""Returns whether a YAML, or the configuration of this package with a name, describes a recommendation run, that is, has
    the key :obj:`recommend`. A file that is missing or not a YAML does not.
    """
    import yaml

    try:
        options = check_keys(find_config(cfg_file).read_text(encoding='utf-8'), str(cfg_file))
    except (OSError, ValueError, yaml.YAMLError):
        return False
    return isinstance(options, dict) and 'recommend' in options


def check_overrides(words: Sequence[str]) -> None:
    r"""Raises an error unless the words after the configuration on a command line alternate between keys and values."""
    if len(words) % 2:
        given = f'{" ".join(words)!r}, {len(words)} word{"s" * (len(words) > 1)}'
        joined = next((word for word in words if '=' in word), '')
        remedy = f'instead of {joined}, write {joined.replace("=", " ", 1)}' if joined else ''
        raise ArgumentError('options', given, 'pairs of a key and a value, such as gt.layers 2', remedy)


def config_sentences() -> dict[str, str]:
    r"""Returns the first sentence of each configuration, and whether it needs no download, by its name."""
    return {name: _sentence((FOLDER / f'{name}.yaml').read_text(encoding='utf-8')) for name in config_names()}


def _sentence(text: str) -> str:
    comment = ' '.join(line.lstrip('# ') for line in takewhile(lambda line: line.startswith('#'), text.splitlines()))
    first = re.split(r'(?<=[.?]) (?=[A-Z`])', comment)[0]
    return f'{first} No download.' if 'needs no download' in comment else first
