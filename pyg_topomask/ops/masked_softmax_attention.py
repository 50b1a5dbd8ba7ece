r"""Softmax attention over the entries of a sparse mask, with the logarithm of the mask as bias."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.backend import kernel
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.entries import Entries
from pyg_topomask.operators.sparse import entries_of
from pyg_topomask.operators.sparse_matmul import sddmm, spmm
from pyg_topomask.ops.attention_op import AttentionInputs, attention_op
from pyg_topomask.ops.masked_linear_attention import check_shapes
from pyg_topomask.ops.scaling import capped_queries
from pyg_topomask.utils.checks import assert_on_device, check_probability
from pyg_topomask.utils.functorch import unwrapped


def masked_softmax_attention(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator, dropout: float = 0.0) -> Tensor:
    r"""Softmax attention with exponentiated scores multiplied by a mask, from `"Linear Transformer Topological Masking with
    Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Sec. 2, Eq. 28, App. C.4):

    .. math::
        \mathbf{y}_i = \sum_j \alpha_{ij} \mathbf{v}_j, \qquad
        \alpha_{ij} = \frac{M_{ij} \exp(\mathbf{q}_i^{\top} \mathbf{k}_j / \sqrt{d})}{\sum_{j'} M_{ij'}
        \exp(\mathbf{q}_i^{\top} \mathbf{k}_{j'} / \sqrt{d})}

    which is softmax attention with the bias :math:`\log M_{ij}`. Zero entries of the mask get no attention and no gradient, so
    learnable entries must start above zero. The output of a row without entries is 0. Scores and sums are at least in float32,
    also under autocast.

    Args:
        q (torch.Tensor): Queries, :obj:`[N, H, d]`.
        k (torch.Tensor): Keys, :obj:`[N, H, d]`.
        v (torch.Tensor): Values, :obj:`[N, H, d_v]`.
        mask (MaskOperator): The bound mask, without negative entries.
        dropout (float): Dropout probability of the attention coefficients. (default: :obj:`0.0`)

    Returns:
        torch.Tensor: :obj:`[N, H, d_v]`, in the data type of :obj:`v`.

    Raises:
        ValueError: If shapes do not match, the mask is not sparse or has more than
            ``pyg_topomask.operators.entries.MAX_ENTRIES`` entries per head, or an entry is negative or not finite.

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
    return attend_softmax(q, k, v, entries_of(mask), dropout)[0]


def attend_softmax(q: Tensor, k: Tensor, v: Tensor, entries: Entries, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
    r"""Computes :func:`masked_softmax_attention` over given entries, and also returns the coefficients :math:`\alpha` before
    dropout, :obj:`[H, nnz]`.
    """
    dtype = torch.promote_types(torch.promote_types(q.dtype, v.dtype), torch.float32)
    with torch.autocast(device_type=q.device.type, enabled=False):
        value = entries.value.to(dtype)
        _check(value)
        constants = list(entries.pattern.tensors)
        if dropout > 0:
            constants.append(torch.nn.functional.dropout(value.new_ones(q.size(1), value.size(1)), dropout))
        scaled = q.to(dtype) / math.sqrt(max(q.size(-1), 1))
        out, alpha = _attend(scaled, k.to(dtype), v.to(dtype), [value], constants)
        return out.to(v.dtype), alpha


def _check(mask: Tensor) -> None:
    if torch.compiler.is_compiling():
        return
    entries = unwrapped(mask)
    accepted = (entries >= 0) & (entries < math.inf)
    if not assert_on_device(accepted.all(), 'mask: got negative or infinite entries; accepted: finite ones from 0'):
        given = f'the entry {float(entries[~accepted][0])}, which has no finite logarithm'
        needed = 'masks without negative entries, such as GRFMask(positive=True) on a graph with positive weights'
        raise ArgumentError('mask', given, needed)


def _forward(inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
    q, k, v, (mask,), constants, *_ = inputs
    pattern, keep = _pattern_and_keep(constants)
    q = capped_queries(q, k, pattern)
    if compiled := kernel('attend_softmax', q.device):
        return compiled(pattern, q, k, v, mask, keep)
    row = pattern.row.long().expand(q.size(1), -1)
    score = sddmm(pattern, q, k).add_(mask.log())
    highest = score.new_full((q.size(1), q.size(0)), -math.inf).scatter_reduce_(1, row, score, 'amax')
    highest.masked_fill_(highest == -math.inf, 0.0)
    weight = score.sub_(highest.gather(1, row)).exp_()
    total = score.new_zeros(q.size(1), q.size(0)).scatter_add_(1, row, weight)
    alpha = weight.div_(total.masked_fill_(total == 0, 1.0).gather(1, row))
    return spmm(pattern, alpha if keep is None else alpha * keep, v), alpha


def _pattern_and_keep(constants: Sequence[Tensor]) -> tuple[SparsePattern, Tensor | None]:
    r"""Splits the constants into the pattern and, with dropout, the factors of the coefficients."""
    *pattern, keep = constants if len(constants) == 6 else (*constants, None)
    return SparsePattern(*pattern), keep


def _backward(
    grads: tuple[Tensor, Tensor | None], outputs: tuple[Tensor, Tensor], inputs: AttentionInputs, learnable: Sequence[int]
) -> list[Tensor]:
    q, k, v, (mask,), constants, *_ = inputs
    (grad, grad_alpha), (_, alpha) = grads, outputs
    pattern, keep = _pattern_and_keep(constants)
    if compiled := kernel('attend_softmax_backward', q.device):
        grads_of_inputs, grad_entries = compiled(pattern, q, k, v, grad, alpha, grad_alpha, keep)
        return [*grads_of_inputs, *(_grad_of_mask(grad_entries.t(), mask) for _ in learnable)]
    row = pattern.row.long().expand(q.size(1), -1)
    grad_score = sddmm(pattern, grad, v)
    if keep is not None:
        grad_score.mul_(keep)
    if grad_alpha is not None:
        grad_score.add_(grad_alpha)
    grad_score.mul_(alpha)
    per_row = grad_score.new_zeros(q.size(1), q.size(0)).scatter_add_(1, row, grad_score)
    grad_score.addcmul_(alpha, per_row.gather(1, row), value=-1)
    del row
    grad_mask = [_grad_of_mask(grad_score, mask) for _ in learnable]
    grad_v = spmm(pattern, alpha if keep is None else alpha * keep, grad, transpose=True)
    return [spmm(pattern, grad_score, k), spmm(pattern, grad_score, q, transpose=True), grad_v, *grad_mask]


def _grad_of_mask(grad_score: Tensor, mask: Tensor) -> Tensor:
    # alpha = M exp(score) / ..., so that the gradient of log M is that of the score.
    per_head = grad_score / mask.masked_fill(mask == 0, 1.0)
    return per_head.sum(0, keepdim=True) if mask.size(0) == 1 else per_head


def _plain(inputs: AttentionInputs, alpha: Tensor) -> tuple[Tensor, Tensor]:
    q, k, v, (mask,), constants, *_ = inputs
    pattern, keep = _pattern_and_keep(constants)
    row, absent = pattern.row.long().expand(q.size(1), -1), mask == 0
    score = (sddmm(pattern, q, k) + mask.masked_fill(absent, 1.0).log()).masked_fill(absent, -math.inf)
    # A number that cancels: the largest score of each row.
    highest = score.new_full((q.size(1), q.size(0)), -math.inf).scatter_reduce(1, row, score.detach(), 'amax')
    weight = (score - highest.masked_fill(highest == -math.inf, 0.0).gather(1, row)).exp()
    total = score.new_zeros(q.size(1), q.size(0)).scatter_add(1, row, weight)
    alpha = weight / total.masked_fill(total == 0, 1.0).gather(1, row)
    return spmm(pattern, alpha if keep is None else alpha * keep, v), alpha


_attend = attention_op(
    'attend_softmax', _forward, _backward, _plain, lambda inputs: (inputs.q.shape[1], inputs.tensors[0].shape[1])
)
