r"""Masked linear attention by operations that autograd differentiates, for second and higher derivatives."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.operators.sparse_matmul import sddmm, spmm
from pyg_topomask.ops.attention_op import AttentionInputs
from pyg_topomask.ops.normalize import quotient_unless, with_ones
from pyg_topomask.utils.functorch import outside_transforms


def outputs_of_sums(total: Tensor, inverse: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns the outputs of an attention operator from numerators and denominators, :obj:`[N, H, d + 1]`, and the inverse
    denominators, 0 for zero rows, :obj:`[N, H]`.
    """
    return quotient_unless((inverse == 0).unsqueeze(-1), total[..., :-1], total[..., -1:]), inverse


def attend_at(pattern: SparsePattern, mask: Tensor, inputs: AttentionInputs, inverse: Tensor) -> tuple[Tensor, Tensor]:
    r"""Masked linear attention with a mask of given entries, :obj:`[H or 1, nnz]`."""
    weight = sddmm(pattern, inputs.q, inputs.k) * mask
    return outputs_of_sums(spmm(pattern, weight, with_ones(inputs.v)), inverse)


@outside_transforms
def all_pairs(segments: Segments) -> tuple[SparsePattern, Tensor]:
    r"""Returns the pattern of all pairs of nodes of the same graph, by row, and the position of the second node in its graph,
    :obj:`[num_pairs]`.
    """
    count = segments.sizes[segments.index]
    row = torch.arange(segments.num_nodes, device=count.device).repeat_interleave(count)
    position = torch.arange(row.numel(), device=count.device) - (count.cumsum(0) - count)[row]
    size = segments.num_nodes
    return SparsePattern.from_sorted(row, segments.first[row] + position, size, size), position
