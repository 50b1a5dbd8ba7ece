r"""Whole models of the papers.

Arguments that are out of range or do not fit each other raise an :class:`~pyg_topomask.errors.ArgumentError`.
"""

from pyg_topomask.nn.models.gkat import GKAT
from pyg_topomask.nn.models.interlacer import Interlacer
from pyg_topomask.nn.models.mgformer import MGFormer
from pyg_topomask.nn.models.vision import TopologicalViT, ViViT

__all__ = ['GKAT', 'Interlacer', 'MGFormer', 'TopologicalViT', 'ViViT']
