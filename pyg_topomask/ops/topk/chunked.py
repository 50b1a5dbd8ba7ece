r"""Search in one large graph, with blocks of scores and the best results so far."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.ops.topk.select import select_top

# The smallest number of queries per block for an efficient matrix product.
_QUERIES = 32


def search_graph(q: Tensor, k: Tensor, memory: int, best: Tensor) -> None:
    r"""Writes the best keys of each query, of one graph and head, to :obj:`best`, :obj:`[Q, num]`, the best first, given
    queries :obj:`[Q, d]` and keys :obj:`[N, d]`. It holds so many bytes of scores at a time.
    """
    num, cells = best.size(1), max(1, memory // q.element_size())
    # A block of keys is wide enough for what is found in it to be few of its scores.
    width = min(k.size(0), max(cells // _QUERIES, 4 * num, 1024))
    rows = max(1, cells // width)
    keys = [block.t().contiguous() for block in k.split(width)]
    buffer = q.new_empty(min(rows, q.size(0)) * width)
    # Results are written at once: kept apart between larger blocks of memory, they would hold those as well.
    for query, best_of_rows in zip(q.split(rows), best.split(rows), strict=True):
        top, node = None, None
        for block, key in enumerate(keys):
            score = buffer[: query.size(0) * key.size(1)].view(query.size(0), key.size(1))
            largest, position = select_top(torch.mm(query, key, out=score), min(num, key.size(1)))
            position += block * width
            if top is not None and node is not None:
                merged, candidate = torch.cat([top, largest], 1), torch.cat([node, position], 1)
                largest, chosen = merged.topk(min(num, merged.size(1)), dim=1)
                position = candidate.gather(1, chosen)
            top, node = largest, position
        if node is not None:
            best_of_rows.copy_(node)
