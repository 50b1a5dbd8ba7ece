r"""Masked linear attention with the dense matrix."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.ops.normalize import quotient
from pyg_topomask.ops.scaling import balanced


def dense_linear_attention(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator) -> Tensor:
    r"""Masked linear attention with one dense :math:`n \times n` matrix for a batch of :obj:`B` inputs of :obj:`n` tokens. It
    is fast for small :obj:`n`. Queries and keys are features :obj:`[B, n, H, m]`, and the values and the output are :obj:`[B,
    n, H, d]`.

    Example:
        >>> from pyg_topomask.graphs.graph import Graph
        >>> from pyg_topomask.masks import AdjacencyMask
        >>> mask = AdjacencyMask()(Graph.from_tensors(torch.tensor([[0], [1]]), num_nodes=2))
        >>> dense_linear_attention(*torch.ones(3, 5, 2, 1, 4), mask).shape
        torch.Size([5, 2, 1, 4])
    """
    dtype = torch.promote_types(torch.promote_types(q.dtype, v.dtype), torch.float32)
    with torch.autocast(v.device.type, enabled=False):
        scaled = balanced(q.to(dtype), k.to(dtype), v.to(dtype), lambda x: x.amax(1, keepdim=True).expand_as(x))
        query, key, value = (tensor.transpose(1, 2) for tensor in scaled[:3])
        weight = query @ key.transpose(2, 3) * mask.to_dense().to(dtype)
        total = weight.sum(-1, keepdim=True)
        out = quotient(weight @ value, total, weight.detach().abs().sum(-1, keepdim=True))
        out = out.transpose(1, 2)
        return (out if scaled[3] is None else out * scaled[3]).to(v.dtype)
