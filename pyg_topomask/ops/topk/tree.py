r"""Search by a k-d tree, on the CPU, in float64."""

from __future__ import annotations

import torch
from scipy.spatial import cKDTree
from torch import Tensor

__all__ = ['search']


def search(q: Tensor, k: Tensor, first: Tensor, count: Tensor, memory: int, found: Tensor) -> None:
    r"""Writes the best keys of each query. Arguments are those of :func:`~pyg_topomask.ops.topk.dense.search`.

    With the coordinate :math:`\sqrt{R^2 - \|\mathbf{k}_j\|^2}` appended, all keys have the norm :math:`R`; queries get a 0.
    Then the nearest keys are those with the largest inner products.
    """
    for start, size in zip(first.tolist(), count.tolist(), strict=True):
        own, num = slice(start, start + size), min(found.size(2), size)
        for head in range(q.size(0)):
            key, query = k[head, own].double(), q[head, own].double()
            square = key.square().sum(1, keepdim=True)
            radius = square.max().sqrt()
            # Queries as long as the keys: distances to them differ as much as they can.
            query = torch.nn.functional.normalize(query, eps=torch.finfo(query.dtype).tiny) * radius
            key = torch.cat([key, (radius**2 - square).clamp(min=0).sqrt()], dim=1)
            query = torch.cat([query, torch.zeros_like(square)], dim=1)
            searched = cKDTree(key.numpy()).query(query.numpy(), range(1, num + 1), workers=torch.get_num_threads())
            found[head, own, :num] = torch.from_numpy(searched[1]) + start
