r"""Bound masks as operators: what they multiply with, and their algebra."""

from pyg_topomask.operators.base import Alternatives, Chain, LowRank, MaskOperator
from pyg_topomask.operators.entries import SparseEntries
from pyg_topomask.operators.prepared_blocks import PreparedBlocks
from pyg_topomask.operators.sparse import Sparse

__all__ = ['Alternatives', 'Chain', 'LowRank', 'MaskOperator', 'PreparedBlocks', 'Sparse', 'SparseEntries']
