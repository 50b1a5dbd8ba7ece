r"""Registers this package with GraphGym, and so with GraphGPS; importing it is all that is needed.

Registered are the options :obj:`cfg.topomask`, the network :obj:`TopoGPSModel`, those in
:obj:`~pyg_topomask.graphgym.models.MODELS`, one GraphGym layer for each attention
(:obj:`grf_attention`, ...), the edge encoder :obj:`LinearEdgeAttr` and the loader hook. Names that GraphGPS registers are
not touched, so that it may be imported before or after.
"""

from __future__ import annotations

from pyg_topomask.graphgym.extras import require_graphgym

require_graphgym()

import pyg_topomask.graphgym.categorical_encoders  # noqa: E402
import pyg_topomask.graphgym.objectives  # noqa: E402, F401
from pyg_topomask.graphgym.attentions import register_mask  # noqa: E402
from pyg_topomask.graphgym.config import declare_config  # noqa: E402
from pyg_topomask.graphgym.encoders import FeatureEncoder  # noqa: E402
from pyg_topomask.graphgym.graphgps import hook_graphgps  # noqa: E402
from pyg_topomask.graphgym.layers import AttentionLayer  # noqa: E402
from pyg_topomask.graphgym.loader import load_dataset  # noqa: E402
from pyg_topomask.graphgym.network import TopoGPSModel  # noqa: E402
from pyg_topomask.graphgym.svd_encoder import SVDNodeEncoder  # noqa: E402
from pyg_topomask.graphgym.train import train  # noqa: E402

__all__ = [
    'AttentionLayer',
    'FeatureEncoder',
    'SVDNodeEncoder',
    'TopoGPSModel',
    'declare_config',
    'hook_graphgps',
    'load_dataset',
    'register_mask',
    'train',
]
