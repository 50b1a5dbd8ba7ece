"""What the documentation site shows of each public name. `.ci/run` reads all pages, runs notebooks, and checks links."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_import import API

from pyg_topomask import masks, nn
from pyg_topomask.masks import Mask

ROOT = Path(__file__).parents[2]
DOCS = ROOT / 'docs'

CLASSES = [
    getattr(importlib.import_module(module), name)
    for module in (
        'pyg_topomask.masks',
        'pyg_topomask.nn',
        'pyg_topomask.nn.models',
        'pyg_topomask.transforms',
        'pyg_topomask.apps.kernels',
    )
    for name in API[module]
    if name[0].isupper()
]
# What is made of other masks costs as much as these.
COMPOSED = {'HadamardMask', 'MultiHeadMask', 'ScaledMask', 'SumMask', 'TransposedMask'}
DRAWN = [
    value for value in CLASSES if value not in (Mask, nn.ExplicitAttention) and value.__name__ in (*masks.__all__, *nn.__all__)
]


def documentation(value: type) -> str:
    return inspect.getdoc(value) or ''


def test_classes_have_shapes() -> None:
    for value in CLASSES:
        section = documentation(value).partition('\nShapes:\n')[2].partition('\n\n')[0]
        output = re.search(r'- \*\*output:\*\*.*?:math:`', section, re.DOTALL) or '- **output:** the forest' in section
        assert output, value
        assert '- **input:**' in section, value


def test_masks_and_layers_have_a_cost() -> None:
    for value in DRAWN:
        text = documentation(value)
        assert ':math:`O(' in text or 'linear in' in text or value.__name__ in {*COMPOSED, 'TopoGPSConv'}, value


def test_all_modules_have_a_page() -> None:
    listed = re.findall(r'^   (pyg_topomask[\w.]+)$', (DOCS / 'api.md').read_text(), re.MULTILINE)
    assert set(listed) == set(API) - {'pyg_topomask'}
    assert len(listed) == len(set(listed))


def test_all_masks_and_layers_have_a_picture() -> None:
    tree = ast.parse((DOCS / 'pictures.py').read_text())
    tables = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ('MASKS', 'LAYERS')
    ]
    names = {ast.literal_eval(key) for table in tables if isinstance(table, ast.Dict) for key in table.keys if key is not None}
    assert names == {value.__name__ for value in DRAWN}


@pytest.mark.nightly
def test_pages_are_written(tmp_path: Path) -> None:
    pytest.importorskip('sphinx', reason='Sphinx is not installed')
    options = ['-W', '--keep-going', '-q', '-D', 'nb_execution_mode=off']
    command = [sys.executable, '-m', 'sphinx', '-c', 'docs', *options, '.', str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in ('index', 'docs/index', 'docs/tables', 'benchmarks/results/shuffled'):
        assert (tmp_path / f'{page}.html').is_file()
    assert '"../benchmarks/results/shuffled.html"' in (tmp_path / 'docs' / 'tables.html').read_text()


def test_all_counter_examples_are_shown() -> None:
    tree = ast.parse((ROOT / 'tests' / 'docs' / 'test_errors_in_papers.py').read_text())
    tests = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith('test_')]
    shown = re.findall(r'^:pyobject: (\w+)$', (DOCS / 'errors_in_papers.md').read_text(), re.MULTILINE)
    assert shown == sorted(tests, key=shown.index)
    assert len(tests) >= 20
