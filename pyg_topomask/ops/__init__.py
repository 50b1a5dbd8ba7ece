r"""Numerical operations with interchangeable backends: masked linear and softmax attention, top-k search, sparse products."""

from pyg_topomask.ops.knn import knn_graph
from pyg_topomask.ops.masked_linear_attention import masked_linear_attention
from pyg_topomask.ops.softmax_attention import masked_softmax_attention
from pyg_topomask.ops.topk.topk_inner_product import topk_inner_product

__all__ = ['knn_graph', 'masked_linear_attention', 'masked_softmax_attention', 'topk_inner_product']
