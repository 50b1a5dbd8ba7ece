r"""The hot paths against what one would write first: a few plain lines of PyTorch or SciPy, left to autograd."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_dense_adj, to_dense_batch

from benchmarks.graphs import random_graph
from benchmarks.harness import interleaved_medians, write_table
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import AdjacencyMask, PowerSeriesMask, SinDegreeMask, ToeplitzMask, TreeMask
from pyg_topomask.ops import masked_linear_attention, topk_inner_product
from pyg_topomask.ops.normalize import with_ones
from pyg_topomask.ops.softmax_entries import attend_pairs, pattern_of_slots
from pyg_topomask.transforms import AddGridShape
from pyg_topomask.walks import WalkSettings, sample_walks

__all__ = ['run']

HEADS, FEATURES, DEGREE, SMALL = 4, 16, 6, range(10, 31)
SETTINGS = WalkSettings(4, 0.5, 10)

Paths = dict[str, tuple[str, Callable[[], object], Callable[[], object]]]


def run(quick: bool, folder: Path) -> None:
    scale = 20 if quick else 1
    paths: Paths = {
        'walks': ('walks, loads, coalesced features', *_walks(100_000 // scale, kept=False)),
        'walks again': ('the same on a graph that is kept', *_walks(100_000 // scale, kept=True)),
        'edges': ('edges route, forward and backward', *_edges(50_000 // scale)),
        'low rank': ('sin-degree mask, forward and backward', *_low_rank(50_000 // scale)),
        'blocks': ('power series on small graphs, forward and backward', *_blocks(1_000 // scale)),
        'series': ('power series, forward and backward', *_series(50_000 // scale)),
        'toeplitz': ('Toeplitz product, forward and backward', *_toeplitz(200 // scale)),
        'tree': ('exp-affine tree mask, forward and backward', *_tree(100_000 // scale)),
        'search': ('top-10 inner products', *_search(10_000 // scale)),
        'k-MIP': ('softmax over 10 keys, forward and backward', *_combine(50_000 // scale)),
    }
    rows = []
    for name, (what, plain, ours) in paths.items():
        seconds = interleaved_medians({'plain': plain, 'ours': ours}, 3 if quick else 7)
        rows.append(
            {
                'path': name,
                'what': what,
                'plain ms': seconds['plain'] * 1e3,
                'pyg_topomask ms': seconds['ours'] * 1e3,
                'plain / pyg_topomask': seconds['plain'] / seconds['ours'],
            }
        )
    note = (
        f'Each path against a plain vectorised version of the same result in this file, left to autograd, in turns; {HEADS} '
        f'heads, {FEATURES} features and channels, float32. Walks: a sampler in int64 and torch.unique; edges: scores and '
        f'weighted values gathered along the edges, added up by index_add; low rank: an einsum over the nodes for each of the '
        f'two factors; blocks: a batch of graphs of {SMALL.start} to {SMALL.stop - 1} nodes, padded, and powers of dense '
        f'matrices; series: torch sparse products one after the other, every power kept; Toeplitz: one padded Fourier '
        f'transform of all columns; tree: a pass over the levels of a random recursive tree; search: all scores, then topk; '
        f'k-MIP: gathered keys and values, softmax.'
    )
    write_table('hot_paths', 'Hot paths against plain versions', note, rows, folder)


def _walks(size: int, kept: bool) -> tuple[Callable[[], object], Callable[[], object]]:
    graph = Graph.from_tensors(random_graph(size, DEGREE), size)

    def prepare() -> tuple[Tensor, Tensor, Tensor, Tensor]:
        source, target = graph.edge_index
        degree = torch.bincount(source, minlength=size)
        weight = (degree[source] * torch.bincount(target, minlength=size)[target]).float().rsqrt()
        order = source.argsort(stable=True)
        return target[order], weight[order], degree, degree.cumsum(0) - degree

    before = prepare()

    def plain() -> Tensor:
        target, load_of_hop, degree, first = before if kept else prepare()
        start = torch.arange(size).repeat_interleave(SETTINGS.num_walks)
        node, load, visits = start, torch.ones(start.numel()), []
        for length in range(SETTINGS.max_walk_length + 1):
            visits.append((start, node, torch.full_like(start, length), load))
            going = (torch.rand(start.numel()) >= SETTINGS.p_halt) & (degree[node] > 0)
            start, node, load = start[going], node[going], load[going]
            hop = first[node] + (torch.rand(start.numel()) * degree[node]).long()
            load = load * load_of_hop[hop] * degree[node] / (1 - SETTINGS.p_halt)
            node = target[hop]
        start, visited, hops, load = (torch.cat(tensors) for tensors in zip(*visits, strict=True))
        key = (start * size + visited) * (SETTINGS.max_walk_length + 1) + hops
        _, slot = key.unique(return_inverse=True)
        return torch.zeros(int(slot.max()) + 1).index_add(0, slot, load / SETTINGS.num_walks)

    return plain, lambda: sample_walks(graph if kept else Graph.from_tensors(graph.edge_index, size), SETTINGS, 0)


def _edges(size: int) -> tuple[Callable[[], object], Callable[[], object]]:
    graph = Graph.from_tensors(random_graph(size, DEGREE), size)
    q, k, v = _inputs(size)
    mask = AdjacencyMask(1)(graph)
    assert mask.entries is not None
    entries = mask.entries()
    row, col = entries.pattern.row.long(), entries.pattern.col.long()

    def plain() -> Tensor:
        score = (q[row] * k[col]).sum(-1) * entries.value.t()
        total = torch.zeros_like(v).index_add(0, row, score.unsqueeze(-1) * v[col])
        return total / torch.zeros_like(score[:size]).index_add(0, row, score).unsqueeze(-1)

    return _compared(plain, lambda: masked_linear_attention(q, k, v, mask, 'edges'), q, k, v)


def _low_rank(size: int) -> tuple[Callable[[], object], Callable[[], object]]:
    q, k, v = _inputs(size)
    mask = SinDegreeMask(HEADS)
    graph = Graph.from_tensors(random_graph(size, DEGREE), size)

    def plain() -> Tensor:
        factors = mask(graph).low_rank
        assert factors is not None
        total = torch.zeros(())
        for left, right in zip(factors.left.split(1, dim=-1), factors.right.split(1, dim=-1), strict=True):
            sums = torch.einsum('nhm,nhd->hmd', right * k, with_ones(v))
            total = total + left * torch.einsum('nhm,hmd->nhd', q, sums)
        return total[..., :-1] / total[..., -1:]

    return _compared(plain, lambda: masked_linear_attention(q, k, v, mask(graph), 'low_rank'), q, k, v, *mask.parameters())


def _blocks(graphs: int) -> tuple[Callable[[], object], Callable[[], object]]:
    generator = torch.Generator().manual_seed(0)
    sizes = torch.randint(SMALL.start, SMALL.stop, (graphs,), generator=generator).tolist()
    batch = Batch.from_data_list([Data(edge_index=random_graph(size, DEGREE), num_nodes=size) for size in sizes])
    mask, graph = PowerSeriesMask(HEADS, 4, positive=False), Graph.from_data(batch)
    q, k, v = _inputs(graph.num_nodes)
    alpha = mask.coefficients
    weight = to_dense_adj(batch.edge_index, batch.batch, graph.normalized_weight('sym').float(), SMALL.stop - 1)

    def plain() -> Tensor:
        (queries, real), (keys, _), (values, _) = (to_dense_batch(x, batch.batch, 0.0, SMALL.stop - 1) for x in (q, k, v))
        power = torch.eye(weight.size(1)).expand_as(weight)
        matrix = alpha[:, 0].view(-1, 1, 1) * power.unsqueeze(1)
        for exponent in range(1, mask.order + 1):
            power = weight @ power
            matrix = matrix + alpha[:, exponent].view(-1, 1, 1) * power.unsqueeze(1)
        score = matrix * torch.einsum('bihm,bjhm->bhij', queries, keys)
        out = torch.einsum('bhij,bjhd->bihd', score, with_ones(values))[real]
        return out[..., :-1] / out[..., -1:]

    return _compared(plain, lambda: masked_linear_attention(q, k, v, mask(graph)), q, k, v, alpha)


def _series(size: int) -> tuple[Callable[[], object], Callable[[], object]]:
    mask = PowerSeriesMask(HEADS, 4, positive=False)
    graph = Graph.from_tensors(random_graph(size, DEGREE), size)
    x, alpha = _inputs(size)[0], mask.coefficients
    values, shape = graph.normalized_weight('sym').float(), (size, size)
    matrix = torch.sparse_coo_tensor(graph.edge_index, values, shape, check_invariants=False).to_sparse_csr()

    def plain() -> Tensor:
        power, total = x, alpha[:, :1] * x
        for exponent in range(1, mask.order + 1):
            power = (matrix @ power.flatten(1)).view_as(x)
            total = total + alpha[:, exponent : exponent + 1] * power
        return total

    return _compared(plain, lambda: mask(graph).matmul(x), x, alpha)


def _toeplitz(side: int) -> tuple[Callable[[], object], Callable[[], object]]:
    mask = ToeplitzMask(HEADS, 2, 'distance', beyond='clip', initial='tanh')
    graph = Graph.from_data(AddGridShape((side, side))(Data(num_nodes=side**2)))
    x, table = _inputs(side**2)[0], mask.table
    offset = torch.arange(2 * side)
    offset = torch.minimum(offset, 2 * side - offset)
    distance = (offset.unsqueeze(1) + offset).clamp(max=table.size(1) - 1)

    def plain() -> Tensor:
        kernel = torch.fft.rfft2(table[:, distance]).unsqueeze(1)
        grid = x.view(side, side, HEADS, -1).permute(2, 3, 0, 1)
        out: Tensor = torch.fft.irfft2(torch.fft.rfft2(grid, s=(2 * side, 2 * side)) * kernel)
        return out[..., :side, :side].permute(2, 3, 0, 1).reshape(x.shape)

    return _compared(plain, lambda: mask(graph).matmul(x), x, table)


def _tree(size: int) -> tuple[Callable[[], object], Callable[[], object]]:
    node = torch.arange(1, size)
    parent = (torch.rand(size - 1, dtype=torch.float64) * node).long()
    depth = torch.zeros(size, dtype=torch.long)
    above = torch.cat([torch.zeros(1, dtype=torch.long), parent])
    pointer = above
    while bool((pointer > 0).any()):
        depth += pointer > 0
        pointer = above[pointer]
    depth[1:] += 1
    levels = [(depth == level).nonzero().squeeze(1) for level in range(int(depth.max()) + 1)]
    mask, x = TreeMask(HEADS), _inputs(size)[0]
    graph = Graph.from_tensors(torch.stack([parent, node]), size)

    def plain() -> Tensor:
        factor = (-torch.nn.functional.softplus(mask.raw_a)).exp().unsqueeze(-1)
        up = x
        for level in reversed(levels[1:]):
            up = up.index_add(0, above[level], factor * up[level])
        total = up
        for level in levels[1:]:
            outside = total[above[level]] - factor * up[level]
            total = total.index_copy(0, level, up[level] + factor * outside)
        return total * mask.b.exp().unsqueeze(-1)

    return _compared(plain, lambda: mask(graph).matmul(x), x, mask.raw_a, mask.b)


def _search(size: int) -> tuple[Callable[[], object], Callable[[], object]]:
    q, k, _ = (x.detach()[:, :1].contiguous() for x in _inputs(size))
    ptr = torch.tensor([0, size])
    return lambda: (q[:, 0] @ k[:, 0].t()).topk(10), lambda: topk_inner_product(q, k, 10, ptr)


def _combine(size: int) -> tuple[Callable[[], object], Callable[[], object]]:
    q, k, v = _inputs(size)
    shift = torch.arange(10) * (size // 11)
    index = (torch.randint(size, (size, HEADS, 1)) + shift) % size
    valid = torch.ones_like(index, dtype=torch.bool)
    head = torch.arange(HEADS).view(-1, 1)

    def plain() -> Tensor:
        weight: Tensor = ((q.unsqueeze(2) * k[index, head]).sum(-1) * FEATURES**-0.5).softmax(-1)
        return (weight.unsqueeze(-1) * v[index, head]).sum(2)

    return _compared(plain, lambda: attend_pairs(q, k, v, pattern_of_slots(index, valid))[0], q, k, v)


def _inputs(size: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.rand(size, HEADS, FEATURES, generator=generator).requires_grad_() for _ in range(3))
    return q, k, v


def _compared(
    plain: Callable[[], Tensor], ours: Callable[[], Tensor], *inputs: Tensor
) -> tuple[Callable[[], object], Callable[[], object]]:
    r"""Returns both with a backward pass, after a look that they give the same."""
    torch.testing.assert_close(ours(), plain(), rtol=1e-3, atol=1e-3)
    return partial(_train, plain, inputs), partial(_train, ours, inputs)


def _train(function: Callable[[], Tensor], inputs: tuple[Tensor, ...]) -> None:
    torch.autograd.grad(function().sum(), inputs)
