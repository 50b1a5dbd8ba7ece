r"""Runs the :obj:`main.py` of a GraphGPS checkout with this package's attentions: ``python -m pyg_topomask graphgps``."""

from __future__ import annotations

import importlib
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from pyg_topomask.utils.configs import find_config


def find_main(folder: Path) -> Path:
    r"""Returns the :obj:`main.py` of a GraphGPS checkout.

    Args:
        folder (Path): The checkout.

    Raises:
        FileNotFoundError: If the folder is not a GraphGPS checkout.
    """
    script = folder / 'main.py'
    if script.is_file() and (folder / 'graphgps').is_dir():
        return script
    raise FileNotFoundError(
        f'current folder: got {folder}; accepted: a checkout of GraphGPS, which has main.py and graphgps/: git clone '
        f'https://github.com/rampasek/GraphGPS, and run this in there'
    )


def with_config(argv: Sequence[str]) -> list[str]:
    r"""Replaces the name of a configuration of this package after :obj:`--cfg` by its file.

    Args:
        argv (list): The arguments, such as :obj:`["--cfg", "graphgps/zinc"]`.

    Raises:
        ValueError: If neither the file nor the configuration exists.
    """
    return [str(find_config(word)) if before == '--cfg' else word for before, word in zip(['', *argv], argv, strict=False)]


def launch(script: Path, argv: Sequence[str]) -> None:
    r"""Imports GraphGPS and then the plugin, so that names that the checkout registers take precedence, and runs a
    :obj:`main.py` like :obj:`python main.py`, including its errors.

    Args:
        script (Path): The file, as :func:`find_main` returns it.
        argv (list): Its arguments, such as :obj:`["--cfg", "configs/GPS/zinc-GPS+RWSE.yaml"]`. They may include a mask, as in
            :obj:`["topomask.mask", "{sum: [GRF, SinDegree]}"]`, and :obj:`topomask.transforms`.

    Raises:
        ImportError: If a package that GraphGPS requires is missing.
        ValueError: If a mask or transforms are not valid YAML.
    """
    sys.argv = [str(script), *argv]
    sys.path.insert(0, str(script.parent))
    try:
        importlib.import_module('graphgps')
        from pyg_topomask.graphgym.names.masks import yaml_overrides

        sys.argv[1:] = yaml_overrides(argv)
        runpy.run_path(str(script), run_name='__main__')
    except ModuleNotFoundError as error:
        raise ImportError(
            f'{error}. GraphGPS requires it: install pyg_topomask with its extra [graphgps] and --no-build-isolation, which '
            f'compiles torch-scatter and torch-sparse where there are no wheels'
        ) from error
