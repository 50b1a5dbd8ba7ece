r"""Exact search for the keys with the largest inner products, by interchangeable backends."""

from pyg_topomask.ops.topk.dispatch import BACKENDS, choose_topk_backend, topk_inner_product

__all__ = ['BACKENDS', 'choose_topk_backend', 'topk_inner_product']
