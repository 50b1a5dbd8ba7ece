r"""Runs the :obj:`main.py` of a GraphGPS checkout with this package's attentions.

In the checkout, this is ``python -m pyg_topomask.graphgym.launch main.py --cfg ...`` or
``python -m pyg_topomask graphgps --cfg ...``.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from pyg_topomask.configs import find_config


def find_main(folder: Path) -> Path:
    r"""Returns the :obj:`main.py` of a GraphGPS checkout.

    Args:
        folder (Path): The checkout.

    Raises:
        FileNotFoundError: If the folder is no checkout of GraphGPS.
    """
    script = folder / 'main.py'
    if script.is_file() and (folder / 'graphgps').is_dir():
        return script
    raise FileNotFoundError(
        f'current folder: got {folder}; accepted is a checkout of GraphGPS, which has main.py and graphgps/: git clone '
        f'https://github.com/rampasek/GraphGPS, and run this in there'
    )


def with_config(argv: Sequence[str]) -> list[str]:
    r"""Returns the arguments of a :obj:`main.py` with a file after :obj:`--cfg`, where the name of a configuration of this
    package may stand.

    Args:
        argv (list): The arguments, such as :obj:`["--cfg", "graphgps/zinc"]`.

    Raises:
        ValueError: If there is neither such a file nor such a configuration.
    """
    return [str(find_config(word)) if before == '--cfg' else word for before, word in zip(['', *argv], argv, strict=False)]


def launch(script: Path, argv: Sequence[str]) -> None:
    r"""Imports the plugin, then runs a :obj:`main.py` as :obj:`python main.py` would, errors included.

    Args:
        script (Path): The file, as :func:`find_main` returns it.
        argv (list): Its arguments, such as :obj:`["--cfg", "configs/GPS/zinc-GPS+RWSE.yaml"]`. A mask may be among them, as
            :obj:`["topomask.mask", "{sum: [GRF, SinDegree]}"]`, and so may :obj:`topomask.transforms`.

    Raises:
        ImportError: If a package that GraphGPS requires is missing.
        ValueError: If a mask is no YAML, or transforms are none.
    """
    import pyg_topomask.graphgym  # noqa: F401
    from pyg_topomask.graphgym.names.masks import yaml_overrides

    sys.argv = [str(script), *yaml_overrides(argv)]
    sys.path.insert(0, str(script.parent))
    try:
        runpy.run_path(str(script), run_name='__main__')
    except ModuleNotFoundError as error:
        raise ImportError(
            f'{error}. GraphGPS requires it: install pyg_topomask with its extra [graphgps] and --no-build-isolation, which '
            f'compiles torch-scatter and torch-sparse where there are no wheels'
        ) from error


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit('usage: python -m pyg_topomask.graphgym.launch main.py --cfg FILE [KEY VALUE ...]')
    launch(Path(sys.argv[1]), with_config(sys.argv[2:]))
