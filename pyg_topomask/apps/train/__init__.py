r"""The standalone runner, which trains the model of a YAML."""

from pyg_topomask.apps.train.runner import train
from pyg_topomask.apps.train.trained import load_model

__all__ = ['load_model', 'train']
