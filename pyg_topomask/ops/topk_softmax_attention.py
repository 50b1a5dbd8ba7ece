r"""Softmax attention over separate pairs of nodes in each head."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.backend import uses_numba
from pyg_topomask.operators.forms import Entries
from pyg_topomask.ops.softmax_entries import attend_softmax
from pyg_topomask.utils.functorch import is_transforming, transformable, unwrapped


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


def attend_pairs(q: Tensor, k: Tensor, v: Tensor, entries: Entries, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
    r"""Softmax attention of each head over separate pairs, from `"Bringing k-MIP Attention to Graph Transformers"` (Eq. 4.2,
    4.4, 4.5):

    .. math::
        \mathbf{x}'_i = \sum_{j \in K_i} a_{ij} \mathbf{v}_j, \qquad
        a_{ij} = \frac{\exp(\mathbf{q}_i^{\top} \mathbf{k}_j / \sqrt{d})}{\sum_{j' \in K_i}
        \exp(\mathbf{q}_i^{\top} \mathbf{k}_{j'} / \sqrt{d})}

    with time and memory linear in the number of pairs, which :func:`pattern_of_slots` and :func:`pattern_of_pairs` return. The
    arguments are otherwise those of :func:`~pyg_topomask.ops.masked_softmax_attention`. Returns the output, :obj:`[N, H, d_v]`,
    and the coefficients before dropout, :obj:`[nnz]`.

    Example:
        >>> index = torch.tensor([[[1]], [[0]]])
        >>> q, k, v = torch.ones(3, 2, 1, 4)
        >>> attend_pairs(q, k, v, pattern_of_slots(index, index >= 0))[0].shape
        torch.Size([2, 1, 4])
    """
    query, key, value = (x.flatten(0, 1).unsqueeze(1) for x in (q, k, v))
    out, alpha = attend_softmax(query, key, value, entries, dropout)
    return out.view(v.shape), alpha.squeeze(0)
