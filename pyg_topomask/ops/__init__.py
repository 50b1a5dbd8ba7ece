r"""Numerics with interchangeable backends: masked attention, linear and softmax, top-k search, and sparse products."""

from pyg_topomask.ops.knn import knn_graph
from pyg_topomask.ops.masked_linear_attention import choose_route, masked_linear_attention
from pyg_topomask.ops.masked_softmax_attention import attend_softmax, masked_softmax_attention
from pyg_topomask.ops.similarity import inner_product_features
from pyg_topomask.ops.sparse_matmul import sddmm, spmm
from pyg_topomask.ops.topk import choose_topk_backend, topk_inner_product

__all__ = [
    'attend_softmax',
    'choose_route',
    'choose_topk_backend',
    'inner_product_features',
    'knn_graph',
    'masked_linear_attention',
    'masked_softmax_attention',
    'sddmm',
    'spmm',
    'topk_inner_product',
]
