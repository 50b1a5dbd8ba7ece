r"""Softmax attention over the entries of a sparse mask, or over separate pairs of nodes in each head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.backend import kernel, uses_numba
from pyg_topomask.operators.forms import Entries, pattern_at, positions_of
from pyg_topomask.operators.sparse_matmul import sddmm, spmm
from pyg_topomask.ops.attention_op import AttentionInputs, attention_op
from pyg_topomask.ops.normalize import capped_queries
from pyg_topomask.utils.checks import assert_on_device
from pyg_topomask.utils.functorch import is_transforming, transformable, unwrapped
from pyg_topomask.utils.precision import wide_dtype


class SoftmaxAttention(NamedTuple):
    r"""The output of softmax attention over entries, :obj:`[N, H, d_v]`, its coefficients :math:`\alpha` before dropout,
    :obj:`[H, nnz]`, and their factors with dropout, or :obj:`None` for ones.
    """

    out: Tensor
    alpha: Tensor
    keep: Tensor | None

    @property
    def shown(self) -> Tensor:
        r"""The coefficients after dropout."""
        return self.alpha if self.keep is None else self.alpha * self.keep


def attend_softmax(q: Tensor, k: Tensor, v: Tensor, entries: Entries, dropout: float = 0.0) -> SoftmaxAttention:
    r"""Computes :func:`~pyg_topomask.ops.masked_softmax_attention` over given entries."""
    dtype = wide_dtype(q, v)
    with torch.autocast(device_type=q.device.type, enabled=False):
        value = entries.value.to(dtype)
        check_entries(value)
        keep = torch.nn.functional.dropout(value.new_ones(q.size(1), value.size(1)), dropout) if dropout > 0 else None
        constants = positions_of(entries.pattern, *([] if keep is None else [keep]))
        out, alpha = _attend(scaled_queries(q.to(dtype)), k.to(dtype), v.to(dtype), [value], constants)
        return SoftmaxAttention(out.to(v.dtype), alpha, keep)


def scaled_queries(q: Tensor) -> Tensor:
    r"""Returns :math:`\mathbf{q} / \sqrt{d}`."""
    return q / math.sqrt(max(q.size(-1), 1))


def check_entries(mask: Tensor) -> None:
    r"""Raises an error unless all entries of a mask have a logarithm, or are 0."""
    if not torch.compiler.is_compiling() and mask.numel() > 0:
        check_range(*torch.aminmax(unwrapped(mask)))


def check_range(least: Tensor, most: Tensor) -> None:
    r"""Raises an error unless the smallest and the largest entry of a mask have a logarithm, or are 0."""
    if not assert_on_device(
        (least >= 0) & (most < math.inf), 'mask: got negative or infinite entries; accepted: finite ones from 0'
    ):
        given = f'the entry {float(most if least >= 0 else least)}, which has no finite logarithm'
        needed = 'masks without negative entries, such as GRFMask(positive=True) on a graph with positive weights'
        raise ArgumentError('mask', given, needed)


def _forward(inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
    q, k, v, (mask,), constants, *_ = inputs
    pattern, keep = pattern_at(constants, k.size(0))
    q = capped_queries(q, k, pattern)
    if compiled := kernel('entries.attend_softmax', q.device):
        return compiled(pattern, q, k, v, mask, keep)
    row = pattern.row.long().expand(q.size(1), -1)
    score = sddmm(pattern, q, k).add_(mask.log())
    highest = score.new_full((q.size(1), q.size(0)), -math.inf).scatter_reduce_(1, row, score, 'amax')
    highest.masked_fill_(highest == -math.inf, 0.0)
    weight = score.sub_(highest.gather(1, row)).exp_()
    total = score.new_zeros(q.size(1), q.size(0)).scatter_add_(1, row, weight)
    alpha = weight.div_(total.masked_fill_(total == 0, 1.0).gather(1, row))
    return spmm(pattern, alpha if keep is None else alpha * keep, v), alpha


def _backward(
    grads: tuple[Tensor, Tensor | None], outputs: tuple[Tensor, Tensor], inputs: AttentionInputs, learnable: Sequence[int]
) -> list[Tensor]:
    q, k, v, (mask,), constants, *_ = inputs
    (grad, grad_alpha), (_, alpha) = grads, outputs
    pattern, keep = pattern_at(constants, k.size(0))
    if compiled := kernel('entries.attend_softmax_backward', q.device):
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


def plain_softmax(inputs: AttentionInputs, alpha: Tensor) -> tuple[Tensor, Tensor]:
    r"""Computes softmax attention by operations that autograd differentiates, for second and higher derivatives."""
    q, k, v, (mask,), constants, *_ = inputs
    pattern, keep = pattern_at(constants, k.size(0))
    row, absent = pattern.row.long().expand(q.size(1), -1), mask == 0
    score = (sddmm(pattern, q, k) + mask.masked_fill(absent, 1.0).log()).masked_fill(absent, -math.inf)
    # A number that cancels: the largest score of each row.
    highest = score.new_full((q.size(1), q.size(0)), -math.inf).scatter_reduce(1, row, score.detach(), 'amax')
    weight = (score - highest.masked_fill(highest == -math.inf, 0.0).gather(1, row)).exp()
    total = score.new_zeros(q.size(1), q.size(0)).scatter_add(1, row, weight)
    alpha = weight / total.masked_fill(total == 0, 1.0).gather(1, row)
    return spmm(pattern, alpha if keep is None else alpha * keep, v), alpha


_attend = attention_op(
    'attend_softmax', _forward, _backward, plain_softmax, lambda inputs: (inputs.q.shape[1], inputs.tensors[0].shape[1])
)


def pattern_of_slots(index: Tensor, valid: Tensor) -> Entries:
    r"""Returns the pairs of a search with the same number of keys per query as a sparse matrix with :math:`NH` rows and
    columns. Head :math:`h` of node :math:`i` is row :math:`iH + h`. This needs no sorting or counting. The nodes of the slots,
    :obj:`[N, H, K]`, are distinct within a row, except for invalid slots, which have the value 0.
    """
    size = index.size(0) * index.size(1)
    if uses_numba(index.device) and not is_transforming():  # machine code does not read the transpose
        return Entries(SparsePattern(*_rows(index), num_cols=size), _values(valid))
    *pattern, value = _pattern_and_value(index, valid)
    return Entries(SparsePattern(*pattern, num_cols=size), value)


@transformable
def _pattern_and_value(index: Tensor, valid: Tensor) -> tuple[Tensor, ...]:
    pattern = SparsePattern(*_rows(index), num_cols=index.size(0) * index.size(1))
    return *pattern.tensors, _values(valid)


def _rows(index: Tensor) -> tuple[Tensor, Tensor]:
    num_nodes, heads, slots = index.shape
    size = num_nodes * heads
    kind = torch.int32 if max(size * slots, size) < 2**31 else torch.int64
    col = (index * heads + torch.arange(heads, device=index.device).unsqueeze(1)).flatten().to(kind)
    return torch.arange(size + 1, device=col.device, dtype=kind) * slots, col


def _values(valid: Tensor) -> Tensor:
    return valid.flatten().float().unsqueeze(0)


def pattern_of_pairs(row: Tensor, col: Tensor, size: int) -> Entries:
    r"""Returns the distinct pairs as a sparse matrix with :obj:`size` rows and columns, the number of nodes times heads."""
    row, col = unwrapped(row), unwrapped(col)
    pattern, _ = SparsePattern.from_pairs(row, col, size, size)
    return Entries(pattern, torch.ones(1, pattern.nnz, device=row.device))


def attend_pairs(q: Tensor, k: Tensor, v: Tensor, entries: Entries, dropout: float = 0.0) -> SoftmaxAttention:
    r"""Softmax attention of each head over separate pairs, from `"Bringing k-MIP Attention to Graph Transformers"` (Eq. 4.2,
    4.4, 4.5):

    .. math::
        \mathbf{x}'_i = \sum_{j \in K_i} a_{ij} \mathbf{v}_j, \qquad
        a_{ij} = \frac{\exp(\mathbf{q}_i^{\top} \mathbf{k}_j / \sqrt{d})}{\sum_{j' \in K_i}
        \exp(\mathbf{q}_i^{\top} \mathbf{k}_{j'} / \sqrt{d})}

    with time and memory linear in the number of pairs, which :func:`pattern_of_slots` and :func:`pattern_of_pairs` return. The
    arguments are otherwise those of :func:`~pyg_topomask.ops.masked_softmax_attention`. The coefficients are those of one head,
    :obj:`[1, nnz]`.

    Example:
        >>> index = torch.tensor([[[1]], [[0]]])
        >>> q, k, v = torch.ones(3, 2, 1, 4)
        >>> attend_pairs(q, k, v, pattern_of_slots(index, index >= 0)).out.shape
        torch.Size([2, 1, 4])
    """
    query, key, value = (x.flatten(0, 1).unsqueeze(1) for x in (q, k, v))
    found = attend_softmax(query, key, value, entries, dropout)
    return found._replace(out=found.out.view(v.shape))
