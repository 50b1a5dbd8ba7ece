r"""The standalone runner, which trains the model of a YAML, and a Lightning module for models built in Python."""

import pyg_topomask.graphgym  # noqa: F401  # first, as it names the extra that is missing
from pyg_topomask.apps.train.lightning import LightningModel
from pyg_topomask.apps.train.runner import load_model, train

__all__ = ['LightningModel', 'load_model', 'train']
