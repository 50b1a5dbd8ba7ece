r"""Softmax attention with the logarithm of a mask as bias."""

from __future__ import annotations

from functools import singledispatch

import torch
from torch import Tensor

from pyg_topomask.graphs.segments import Segments
from pyg_topomask.operators.base import Heads, MaskOperator
from pyg_topomask.ops.masked_linear_attention import check_shapes
from pyg_topomask.ops.scaling import capped, in_range, row_size
from pyg_topomask.ops.softmax_entries import attend_softmax, scaled_queries
from pyg_topomask.ops.softmax_rows import attend_rows
from pyg_topomask.utils.checks import check_probability


def masked_softmax_attention(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator, dropout: float = 0.0) -> Tensor:
    r"""Softmax attention with exponentiated scores multiplied by a mask, from `"From block-Toeplitz matrices to differential
    equations on graphs" <https://arxiv.org/abs/2107.07999>`_ (Eq. 1) and `"Linear Transformer Topological Masking with Graph
    Random Features" <https://arxiv.org/abs/2410.03462>`_ (Sec. 2, Eq. 28, App. C.4):

    .. math::
        \mathbf{y}_i = \sum_j \alpha_{ij} \mathbf{v}_j, \qquad
        \alpha_{ij} = \frac{M_{ij} \exp(\mathbf{q}_i^{\top} \mathbf{k}_j / \sqrt{d})}{\sum_{j'} M_{ij'}
        \exp(\mathbf{q}_i^{\top} \mathbf{k}_{j'} / \sqrt{d})}

    which is softmax attention with the bias :math:`\log M_{ij}`. Zero entries of the mask get no attention and no gradient, so
    learnable entries must start above zero. The output of a row without entries is 0. Scores and sums are at least in float32,
    also under autocast.

    Over the entries of a sparse mask, time and memory are linear in their number. For other masks, all pairs of nodes of a
    graph are compared. Rows of the mask are formed some at a time, and again in the backward pass, so that memory is linear in
    the number of nodes. Second derivatives take a number for each pair.

    Args:
        q (torch.Tensor): Queries, :obj:`[N, H, d]`.
        k (torch.Tensor): Keys, :obj:`[N, H, d]`.
        v (torch.Tensor): Values, :obj:`[N, H, d_v]`.
        mask (MaskOperator): The bound mask, without negative entries.
        dropout (float): Dropout probability of the attention coefficients. (default: :obj:`0.0`)

    Returns:
        torch.Tensor: :obj:`[N, H, d_v]`, in the data type of :obj:`v`.

    Raises:
        ValueError: If shapes do not match, a sparse mask has more than ``pyg_topomask.operators.forms.MAX_ENTRIES`` entries
            per head, a graph has more than 32,768 nodes and the mask is not sparse, or an entry is negative or not finite.

    Example:
        >>> from pyg_topomask.graphs.graph import Graph
        >>> from pyg_topomask.masks import AdjacencyMask
        >>> mask = AdjacencyMask()(Graph.from_tensors(torch.tensor([[0, 1], [1, 0]]), num_nodes=2))
        >>> masked_softmax_attention(*torch.ones(3, 2, 1, 4), mask).shape
        torch.Size([2, 1, 4])
    """
    check_shapes(q, k, v, mask)
    check_probability(dropout=dropout)
    return softmax_attention_on(mask.segments, q, k, v, mask, dropout)


@singledispatch
def softmax_attention_on(segments: Segments, q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator, dropout: float) -> Tensor:
    r"""Attends to the nodes of whole graphs. Nodes of several processes attend otherwise."""
    if mask.entries is not None:
        return attend_softmax(q, k, v, mask.entries(), dropout)[0]
    dtype = torch.promote_types(torch.promote_types(q.dtype, v.dtype), torch.float32)
    with torch.autocast(device_type=q.device.type, enabled=False):
        if isinstance(mask, Heads):
            split = zip(q.split(mask.widths, 1), k.split(mask.widths, 1), v.split(mask.widths, 1), mask.terms, strict=True)
            return torch.cat([softmax_attention_on(segments, *each, dropout) for each in split], dim=1)
        q, k = scaled_queries(q.to(dtype)), k.to(dtype)
        q = q if in_range(q, k) else capped(q, segments.maximum(row_size(k)))
        return attend_rows(q, k, v.to(dtype), mask, dropout).to(v.dtype)
