r"""Graphs as masks see them: edges, the division of the nodes of a batch, patterns of sparse matrices, forests."""

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.sparse_pattern import SparsePattern

__all__ = ['Graph', 'Segments', 'SparsePattern']
