r"""Search among all pairs of nodes of each graph, in machine code or padded batches."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.graphs.segments import by_width
from pyg_topomask.machine.backend import kernel
from pyg_topomask.ops.topk.select import select_top


def search(q: Tensor, k: Tensor, first: Tensor, count: Tensor, memory: int, best: Tensor) -> None:
    r"""Writes the best keys of each query, the best first, to :obj:`[H, N, num]`, comparing all pairs of nodes of a graph.
    Slots without a node do not change. The first node and the number of nodes of each graph, at least 1, are on the CPU.

    With Numba, machine code does this. Without it, each graph is padded to the next power of two of its size, so that a large
    graph does not pad small ones, and :obj:`memory` bounds the bytes of scores at a time.
    """
    if compiled := kernel('search', q.device):
        compiled(q, k, first, count, best)
        return
    heads, num_nodes, _ = q.shape
    cells = max(1, memory // q.element_size())
    for width, graphs_of_width in by_width(count):
        num = min(best.size(2), width)
        slot = torch.arange(width)
        graphs = min(max(1, cells // (heads * width**2)), graphs_of_width.numel())
        queries = min(max(1, cells // (heads * width * graphs)), width)
        # One block of memory for all scores, because new pages cost more than the products.
        buffer = q.new_empty(heads * graphs * queries * width)
        for start, filled in zip(first[graphs_of_width].split(graphs), count[graphs_of_width].split(graphs), strict=True):
            inside = slot < filled.unsqueeze(1)
            full = slice(int(filled.min()), None)  # the slots that some graph does not fill
            blocks = inside[:, : int(filled.max())].split(queries, dim=1)
            start, filled, beyond = _moved(q.device, start.view(-1, 1, 1), filled.view(-1, 1, 1), ~inside[:, full])
            # Slots beyond a graph contain nodes of other graphs, with a score below all others.
            index = (start.view(-1, 1) + torch.arange(width, device=q.device)).clamp(max=num_nodes - 1)
            beyond = beyond.repeat(heads, 1).unsqueeze(1)
            key = k[:, index].flatten(0, 1).transpose(1, 2)
            for node, asked in zip(index.split(queries, dim=1), blocks, strict=False):
                node = node[:, : asked.size(1)]
                asking = q[:, node].flatten(0, 1)
                score = buffer[: asking.size(0) * asking.size(1) * width].view(*asking.shape[:2], width)
                torch.bmm(asking, key, out=score)[..., full].masked_fill_(beyond, -torch.inf)
                position = select_top(score.flatten(0, 1), num)[1].view(heads, -1, asking.size(1), num)
                keys = (position + start).masked_fill_(position >= filled, -1)
                graph, query = _moved(q.device, *asked.nonzero(as_tuple=True))
                best[:, node[graph, query], :num] = keys[:, graph, query]


def _moved(device: torch.device, *tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(x.to(device, non_blocking=True) for x in tensors)
