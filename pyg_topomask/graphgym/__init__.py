r"""Registers this package with GraphGym, and so with GraphGPS, when it is imported.

It registers the options :obj:`cfg.topomask`, the networks :obj:`TopoGPSModel` and :obj:`CustomGNN`, those in
``pyg_topomask.graphgym.names.networks.MODELS``, one GraphGym layer for each attention (:obj:`grf_attention`, ...), encoders,
losses, metrics and the loader hook. It does not replace names that GraphGPS has registered. Where GraphGPS has none of these
names, it may also be imported later.
"""

from __future__ import annotations

from importlib.util import find_spec


def require_graphgym() -> None:
    r"""Raises an :class:`ImportError` that names the extra if a library that GraphGym needs is missing.

    Without them, GraphGym itself only warns, and fails later with unclear errors.
    """
    # PyG accepts either of the two names under which PyTorch Lightning is published.
    alternatives = {'yacs': ['yacs'], 'pytorch-lightning': ['lightning', 'pytorch_lightning'], 'tqdm': ['tqdm']}
    alternatives['scikit-learn'] = ['sklearn']
    missing = [name for name, modules in alternatives.items() if not any(map(find_spec, modules))]
    if missing:
        raise ImportError(f'pyg_topomask.graphgym needs {", ".join(missing)}: install pyg_topomask with its extra [graphgym]')


require_graphgym()

import pyg_topomask.graphgym.configuration  # noqa: E402
import pyg_topomask.graphgym.data.datasets  # noqa: E402
import pyg_topomask.graphgym.graphgps  # noqa: E402
import pyg_topomask.graphgym.names.encoders  # noqa: E402
import pyg_topomask.graphgym.names.layers  # noqa: E402
import pyg_topomask.graphgym.names.networks  # noqa: E402
import pyg_topomask.graphgym.names.objectives  # noqa: E402, F401
from pyg_topomask.graphgym.names.attentions import register_mask  # noqa: E402

__all__ = ['register_mask']
