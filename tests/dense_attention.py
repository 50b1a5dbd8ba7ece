"""Masked linear attention through the dense matrix, with torch alone, so that autograd gives its gradients."""

from collections.abc import Sequence

import torch
from torch import Tensor

from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.ops import masked_linear_attention


def dense_attention(q: Tensor, k: Tensor, v: Tensor, matrix: Tensor) -> Tensor:
    """Rows without weight give zero."""
    share = torch.einsum('nhm,khm->hnk', q, k) * matrix
    total = share.sum(-1, keepdim=True)
    empty = ~share.detach().bool().any(-1, keepdim=True)
    return torch.einsum('hnk,khd->nhd', (share / total.masked_fill(empty, 1.0)).masked_fill(empty, 0.0), v)


def assert_dense_attention(
    operator: MaskOperator, matrix: Tensor, learned: Sequence[Tensor], tolerance: float = 1e-8, route: str = 'auto'
) -> None:
    """Compares output and gradients, also in the learned tensors that both operator and matrix come from."""
    generator = torch.Generator().manual_seed(0)
    sizes = [(operator.segments.num_nodes, operator.heads, width) for width in (3, 3, 2, 2)]
    q, k, v, pull = (torch.randn(size, generator=generator, dtype=torch.float64) for size in sizes)
    leaves = [tensor.requires_grad_() for tensor in (q.abs() + 0.1, k.abs() + 0.1, v)]
    actual, expected = masked_linear_attention(*leaves, operator, route), dense_attention(*leaves, matrix)
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
    inputs = [*leaves, *learned]
    operator_grads, dense_grads = (
        torch.autograd.grad((out * pull).sum(), inputs, retain_graph=True) for out in (actual, expected)
    )
    for operator_grad, dense_grad in zip(operator_grads, dense_grads, strict=True):
        torch.testing.assert_close(operator_grad, dense_grad, rtol=10 * tolerance, atol=10 * tolerance)


def dense_weight(edge_index: Tensor, weight: Tensor, num_nodes: int, normalization: str | None) -> Tensor:
    """W, with torch alone, so that autograd gives its gradient."""
    col, row = edge_index  # the target of an edge attends to its source
    zero = weight.new_zeros(num_nodes)
    row_sum, col_sum = zero.index_add(0, row, weight.abs()), zero.index_add(0, col, weight.abs())
    if normalization == 'sym':
        weight = weight / (row_sum[row] * col_sum[col]).sqrt()
    elif normalization == 'rw':
        weight = weight / row_sum[row]
    return weight.new_zeros(num_nodes, num_nodes).index_put((row, col), weight, accumulate=True)
