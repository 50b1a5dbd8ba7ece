r"""Writes the list of public names, from the docstrings: python docs/generate_api.py"""

from __future__ import annotations

import importlib
import inspect
import os
import re
from pathlib import Path

FOLDER = Path(__file__).parent

#: In the order in which a reader meets them.
MODULES = (
    'nn',
    'nn.models',
    'transforms',
    'graph',
    'masks',
    'feature_maps',
    'walks',
    'ops',
    'distributed',
    'operators',
    'capabilities',
    'structures',
    'segments',
    'sparse_pattern',
    'diagnostics',
    'viz',
    'datasets',
    'recommend',
    'graphgym',
    'testing',
    'errors',
)

HEAD = """# Public names

Only the names on this page are public. Their docstrings, `help(name)`, hold shapes, defaults and errors.
`python -m pyg_topomask list` prints what a YAML can name. `python docs/generate_api.py` writes this page.
"""


def api() -> str:
    r"""Returns the document."""
    return '\n'.join([HEAD, *(_section(f'pyg_topomask.{module}') for module in MODULES)])


def _section(name: str) -> str:
    module = importlib.import_module(name)
    lines = [f'## {name}', '', _sentence(module), '']
    return '\n'.join([*lines, *(_entry(entry, getattr(module, entry)) for entry in sorted(module.__all__, key=str.lower)), ''])


def _entry(name: str, value: object) -> str:
    if not inspect.isclass(value) and not inspect.isfunction(value):
        return f'- `{name}`: {", ".join(f"`{key}`" for key in value)}.' if isinstance(value, dict) else f'- `{name}`'
    path = os.path.relpath(inspect.getsourcefile(inspect.unwrap(value)) or '', FOLDER)
    return f'- [`{name}`]({path})`({_arguments(value)})`: {_sentence(value)}'


def _arguments(value: type | object) -> str:
    signature = inspect.signature(value)  # type: ignore[arg-type]
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))[1:-1]


def _sentence(value: object) -> str:
    r"""Returns the first sentence of a docstring, in Markdown."""
    text = ' '.join((inspect.getdoc(value) or '').split('\n\n')[0].split())
    text = re.sub(r':math:`([^`]*)`', r'$`\1`$', text)
    text = re.sub(r'(?<!:)`"([^"`]*)"( <[^>`]*>)?`_*', lambda match: _link(match[1], match[2]), text)
    text = re.sub(r'`([^<`]*) <([^>`]*)>`_', r'[\1](\2)', text)
    text = re.sub(r':\w+:`[~.]?(?:\w+\.)*(\w+)`', r'`\1`', text)
    text = re.sub(r':\w+:`([^`]*)`', r'`\1`', text)
    return re.split(r'(?<=[.])(?<!App\.)\s(?=[A-Z:`])', text)[0].rstrip(':.,') + '.'


def _link(title: str, address: str | None) -> str:
    return f'[{title}]({address[2:-1]})' if address else f'"{title}"'


def write(folder: Path = FOLDER) -> None:
    (folder / 'api.md').write_text(api())


if __name__ == '__main__':
    write()
