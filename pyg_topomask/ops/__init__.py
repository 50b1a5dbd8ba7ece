r"""Numerics with interchangeable backends: masked linear attention and sparse products."""

from pyg_topomask.ops.masked_linear_attention import choose_route, masked_linear_attention
from pyg_topomask.ops.sparse import sddmm, spmm

__all__ = ['choose_route', 'masked_linear_attention', 'sddmm', 'spmm']
