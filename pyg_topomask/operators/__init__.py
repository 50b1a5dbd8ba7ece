r"""Bound masks as operators: what they multiply with, and their algebra."""

from pyg_topomask.operators.base import LowRank, MaskOperator
from pyg_topomask.operators.composed import Alternatives, Chain
from pyg_topomask.operators.forms import PreparedBlocks, Slots, SparseEntries
from pyg_topomask.operators.sparse import Sparse

__all__ = ['Alternatives', 'Chain', 'LowRank', 'MaskOperator', 'PreparedBlocks', 'Slots', 'Sparse', 'SparseEntries']
