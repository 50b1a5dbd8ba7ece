r"""Searches for the best keys of each query: among all pairs of padded graphs, by blocks of scores, or by a library."""

from __future__ import annotations

import importlib
from typing import Any

import scipy
import torch
from torch import Tensor

from pyg_topomask.graphs.segments import by_width
from pyg_topomask.machine.backend import kernel
from pyg_topomask.ops.topk.select import EXTRA, select_top


def search_dense(q: Tensor, k: Tensor, first: Tensor, count: Tensor, memory: int, best: Tensor) -> None:
    r"""Writes the best keys of each query, the best first, to :obj:`[H, N, num]`, comparing all pairs of nodes of a graph.
    Slots without a node do not change. The first node and the number of nodes of each graph, at least 1, are on the CPU.

    With Numba, machine code does this. Without it, each graph is padded to the next power of two of its size, so that a large
    graph does not pad small ones, and :obj:`memory` bounds the bytes of scores at a time.
    """
    if compiled := kernel('topk.search', q.device):
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


# The smallest number of queries per block for an efficient matrix product.
_QUERIES = 32


def search_chunked(q: Tensor, k: Tensor, memory: int, best: Tensor) -> None:
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


def load_keops() -> Any:
    r"""Imports KeOps' :obj:`LazyTensor`, or says how to install it."""
    try:
        pykeops, lazy = importlib.import_module('pykeops'), importlib.import_module('pykeops.torch')
    except Exception as error:  # it looks for compilers when it is imported, which fails in many ways
        raise ImportError(f'backend="keops" needs KeOps ({error}): install pyg_topomask with its extra [keops]') from error
    pykeops.set_verbose(False)
    return lazy.LazyTensor


def search_keops(q: Tensor, k: Tensor, first: Tensor, count: Tensor, memory: int, best: Tensor) -> None:
    r"""Writes the best keys of each query. Arguments are those of :func:`~pyg_topomask.ops.topk.searches.search_dense`,
    but each graph must have at least as many nodes as requested keys, which KeOps does not check.
    """
    lazy_tensor = load_keops()
    heads, num_nodes, _ = q.shape
    num = best.size(2)
    if count.numel() == 1:
        nodes = slice(int(first), int(first) + int(count))
        query, key = lazy_tensor(q[:, nodes, None].contiguous()), lazy_tensor(k[:, None, nodes].contiguous())
        best[:, nodes] = (-(query | key)).argKmin(num, dim=2).view(heads, -1, num) + int(first)
        return
    first, count = first.to(q.device), count.to(q.device)
    # One block of pairs for each graph and head, on the diagonal of one matrix over the nodes of all heads.
    start, size = (torch.arange(heads, device=q.device).unsqueeze(1) * num_nodes + first).flatten(), count.repeat(heads)
    block = torch.stack([start, start + size], dim=1).int()
    last = torch.arange(1, len(block) + 1, dtype=torch.int32, device=q.device)
    query, key = lazy_tensor(q.reshape(-1, 1, q.size(2))), lazy_tensor(k.reshape(1, -1, k.size(2)))
    score = -(query | key)
    score.ranges = (block, last, block, block, last, block)
    row = torch.repeat_interleave(start - (size.cumsum(0) - size), size)
    row += torch.arange(len(row), device=q.device)
    best.view(-1, num)[row] = score.argKmin(num, dim=1)[row] % num_nodes


def load_faiss() -> Any:
    r"""Imports faiss, or says how to install it."""
    try:
        return importlib.import_module('faiss')
    except ImportError as error:
        raise ImportError('backend="faiss" needs faiss: install pyg_topomask with its extra [faiss]') from error


def search_faiss(q: Tensor, k: Tensor, memory: int, best: Tensor) -> None:
    r"""Writes the best keys of each query. Arguments are those of :func:`~pyg_topomask.ops.topk.searches.search_chunked`."""
    index = load_faiss().IndexFlatIP(q.size(1))
    index.add(k.float().contiguous().numpy())
    best.copy_(torch.from_numpy(index.search(q.float().contiguous().numpy(), best.size(1))[1]))


def search_tree(q: Tensor, k: Tensor, memory: int, best: Tensor) -> None:
    r"""Writes the best keys of each query. Arguments are those of :func:`~pyg_topomask.ops.topk.searches.search_chunked`.

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
