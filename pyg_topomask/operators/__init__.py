r"""Bound masks as operators: what they multiply with, and their algebra."""

from pyg_topomask.operators.alternatives import Alternatives
from pyg_topomask.operators.base import LowRank, MaskOperator
from pyg_topomask.operators.chain import Chain
from pyg_topomask.operators.entries import SparseEntries
from pyg_topomask.operators.prepared_blocks import PreparedBlocks
from pyg_topomask.operators.slots import Slots
from pyg_topomask.operators.sparse import Sparse

__all__ = ['Alternatives', 'Chain', 'LowRank', 'MaskOperator', 'PreparedBlocks', 'Slots', 'Sparse', 'SparseEntries']
