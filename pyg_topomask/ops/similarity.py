r"""Similarities of queries and keys, written as inner products."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.ops.normalize import power_of_two, row_size

SIMILARITIES = ('dot', 'cosine', 'distance')


def inner_product_features(q: Tensor, k: Tensor, ptr: Tensor, similarity: str) -> tuple[Tensor, Tensor]:
    r"""Returns vectors whose inner products are a similarity of queries and keys, :obj:`[N, H, d]`, up to a term of each query,
    which neither the order of its keys nor a softmax over them sees, from `"Bringing k-MIP Attention to Graph Transformers"`
    (Sec. 7.2):

    * :obj:`"dot"`: :math:`\mathbf{q}^{\top} \mathbf{k}`;
    * :obj:`"cosine"`: :math:`\sqrt{d} \, \mathbf{q}^{\top} \mathbf{k} / \|\mathbf{k}\|`: the order of keys is that of their
      cosines with the query. Attention divides by :math:`\sqrt{d}`, so the softmax is that of :math:`\|\mathbf{q}\|` times
      the cosines;
    * :obj:`"distance"`: :math:`-\frac{1}{2} \|\mathbf{q} - \mathbf{k}\|^2`, as :math:`(\mathbf{q}, -c)^{\top} (\mathbf{k},
      \frac{1}{2c} \|\mathbf{k}\|^2)`, about the mean of the keys of the graph, with a power of two :math:`c` of their size.

    Example:
        >>> q, k = torch.tensor([[[3.0]]]), torch.tensor([[[-2.0]]])
        >>> inner_product_features(q, k, torch.tensor([0, 1]), 'cosine')
        (tensor([[[3.]]]), tensor([[[-1.]]]))
    """
    if similarity == 'dot':
        return q, k
    # Norms of half-precision vectors overflow, and so do those of long vectors without a power of two.
    q, k = (x.to(torch.promote_types(x.dtype, torch.float32)) for x in (q, k))
    if similarity == 'cosine':
        k = k / power_of_two(row_size(k)).unsqueeze(-1)
        norm = k.norm(dim=-1, keepdim=True)
        # A key of length zero stays zero, with a gradient that half precision can hold.
        return q, k * (k.size(-1) ** 0.5 / norm.masked_fill(norm == 0, 1.0))
    if similarity == 'distance':
        count = ptr.diff()
        batch = torch.repeat_interleave(count, output_size=k.size(0))
        share = k / count[batch].view(-1, 1, 1)
        center = k.new_zeros(count.numel(), *k.shape[1:]).index_add(0, batch, share)[batch]
        q, k = q - center, k - center
        scale = power_of_two(Segments.from_ptr(ptr, k.size(0)).maximum(row_size(k))).unsqueeze(-1)
        return torch.cat([q, -scale], -1), torch.cat([k, 0.5 * (k * (k / scale)).sum(-1, keepdim=True)], -1)
    raise ArgumentError('similarity', repr(similarity), list(SIMILARITIES))
