r"""Search by a k-d tree, on the CPU, in float64."""

from __future__ import annotations

import scipy
import torch
from torch import Tensor

from pyg_topomask.ops.topk.rank import EXTRA
from pyg_topomask.ops.topk.select import select_top


def search_graph(q: Tensor, k: Tensor, memory: int, best: Tensor) -> None:
    r"""Writes the best keys of each query. Arguments are those of :func:`~pyg_topomask.ops.topk.chunked.search_graph`.

    Appending :math:`\sqrt{R^2 - \|\mathbf{k}_j\|^2}` to keys and 0 to queries gives all keys the norm :math:`R`. Then the
    nearest keys have the largest inner products. Rounding errors of distances are relative to :math:`R`. If they exceed the
    rounding errors of the scores of short keys, :func:`_rank` ranks the results again.
    """
    key, query, num = k.double(), q.double(), best.size(1)
    square = key.square().sum(1, keepdim=True)
    radius = square.max().sqrt()
    # Of scores, for queries of length 1; the tree sums distances up level by level, and zero keys are always exact.
    error = 64 * torch.finfo(torch.float64).eps * (q.size(1) + 2) * radius
    shortest = square.masked_fill(square == 0, torch.inf).min().sqrt()
    ranked = bool(error > torch.finfo(k.dtype).eps * shortest)
    # Queries as long as the keys: distances to them differ as much as they can.
    scaled = torch.nn.functional.normalize(query, eps=torch.finfo(query.dtype).tiny) * radius
    scaled = torch.cat([scaled, scaled.new_zeros(len(scaled), 1)], dim=1)
    tree = scipy.spatial.cKDTree(torch.cat([key, (radius**2 - square).clamp(min=0).sqrt()], dim=1).numpy())
    wanted = range(1, min(num + EXTRA * ranked, len(key)) + 1)
    position = torch.from_numpy(tree.query(scaled.numpy(), wanted, workers=torch.get_num_threads())[1])
    best.copy_(_rank(query, key, position, num, error, memory) if ranked else position)


def _rank(query: Tensor, key: Tensor, position: Tensor, num: int, error: Tensor, memory: int) -> Tensor:
    r"""Returns the best of the keys found by their scores, or the best of all keys if the search may have missed some."""
    score = torch.einsum('nd,nmd->nm', query, key[position])
    score, order = score.sort(dim=1, descending=True)
    best = position.gather(1, order)[:, :num]
    if position.size(1) < key.size(0):
        doubtful = score[:, num - 1] - score[:, -1] <= error * query.norm(dim=1)
        for rows in doubtful.nonzero().flatten().split(max(1, memory // (score.element_size() * key.size(0)))):
            best[rows] = select_top(query[rows] @ key.t(), num)[1]
    return best
