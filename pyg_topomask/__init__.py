r"""Topological masks for linear attention, for PyTorch Geometric and GraphGPS."""

from pyg_topomask.graph import Graph

__version__ = '0.1.0'

__all__ = ['Graph', '__version__']
