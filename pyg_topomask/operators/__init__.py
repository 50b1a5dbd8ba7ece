from pyg_topomask.operators.base import MaskOperator

__all__ = ['MaskOperator']
