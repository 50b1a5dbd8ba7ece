"""The configurations are found from a wheel, from an editable install and in a checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from configured_step import CONFIGS
from forked import Forked
from grids import at_night

ROOT = CONFIGS.parent
SOURCES = ('pyg_topomask', 'graphgps_configs', 'setup.py', 'pyproject.toml', 'MANIFEST.in', 'README.md', 'LICENSE')

#: Reads the packages of a folder as Python reads those of an environment, with the paths of editable installs, and first. The
#: option is refused after the configuration has been read.
TRAIN = """
import site, sys, runpy
others = [*sys.path]
site.addsitedir(sys.argv.pop(1))
sys.path = [*sys.path[len(others):], *others]
import pyg_topomask
print(pyg_topomask.__file__)
sys.argv[1:] = ['train', '--cfg', 'digits', 'optim.max_epoch', '0']
runpy.run_module('pyg_topomask', run_name='__main__')
"""


@pytest.mark.parametrize('kind', ['wheel', at_night('editable')])
def test_train_finds_the_digits_in(kind: str, tmp_path: Path) -> None:
    source, installed, empty = (tmp_path / name for name in ('source', 'installed', 'empty'))
    source.mkdir()
    empty.mkdir()
    for name in SOURCES:  # a build leaves files in its folder
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns('__pycache__'))
        else:
            shutil.copy(ROOT / name, source)
    build = f'from setuptools import build_meta; build_meta.build_{kind}({str(tmp_path)!r})'
    subprocess.run([sys.executable, '-c', build], cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob('*.whl')
    with ZipFile(wheel) as file:
        file.extractall(installed)
        packed = {name for name in file.namelist() if name.endswith('.yaml')}
    files = {f'pyg_topomask/graphgps_configs/{path.relative_to(CONFIGS).as_posix()}' for path in CONFIGS.rglob('*.yaml')}
    assert packed == (files if kind == 'wheel' else set())
    status, stdout, stderr = Forked('-c', TRAIN, str(installed), cwd=empty).wait()
    assert stdout.startswith(str(installed if kind == 'wheel' else source))
    assert status == 2
    assert stderr.startswith('error: optim.max_epoch: got 0; accepted: whole numbers from 1')
