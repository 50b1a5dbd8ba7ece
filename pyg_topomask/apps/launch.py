r"""Runs the :obj:`main.py` of a GraphGPS checkout with this package's attentions: ``pyg-topomask graphgps``.

This file is outside of :mod:`pyg_topomask.graphgym`, whose import registers names before GraphGPS could.
"""

from __future__ import annotations

import importlib
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from pyg_topomask.utils.configs import find_config


def find_main(folder: Path) -> Path:
    r"""Returns the :obj:`main.py` of a folder, or raises an error if the folder is not a GraphGPS checkout."""
    script = folder / 'main.py'
    if script.is_file() and (folder / 'graphgps').is_dir():
        return script
    raise FileNotFoundError(
        f'current folder: got {folder}; accepted: a checkout of GraphGPS, which has main.py and graphgps/: git clone '
        f'https://github.com/rampasek/GraphGPS, and run this in there'
    )


def with_config(argv: Sequence[str]) -> list[str]:
    r"""Replaces the name of a configuration of this package after :obj:`--cfg` by its file."""
    return [str(find_config(word)) if before == '--cfg' else word for before, word in zip(['', *argv], argv, strict=False)]


def launch(script: Path, argv: Sequence[str]) -> None:
    r"""Imports GraphGPS and then the plugin, so that names that the checkout registers take precedence, and runs a
    :obj:`main.py` like :obj:`python main.py`, including its errors.

    The arguments may include a mask, as in :obj:`["topomask.mask", "{sum: [GRF, SinDegree]}"]`, and :obj:`topomask.transforms`.
    """
    sys.argv = [str(script), *argv]
    sys.path.insert(0, str(script.parent))
    try:
        importlib.import_module('graphgps')
        from pyg_topomask.graphgym.configuration import yaml_overrides

        sys.argv[1:] = yaml_overrides(argv)
        runpy.run_path(str(script), run_name='__main__')
    except ModuleNotFoundError as error:
        raise ImportError(
            f'{error}. GraphGPS requires it: install pyg_topomask with its extra [graphgps] and --no-build-isolation, which '
            f'compiles torch-scatter where there is no wheel'
        ) from error
