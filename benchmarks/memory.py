r"""Peak memory of training against the number of features: does the combine step avoid the N x m x d block?"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks.graphs import ring
from benchmarks.harness import alone, interleaved_medians, peak_memory, write_table
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.ops import masked_linear_attention

__all__ = ['run']

HEADS = 4
PLAIN, ALONG = 'plain autograd', 'plain, along the edges'


def run(quick: bool, folder: Path) -> None:
    size, widths = (5_000, (64,)) if quick else (50_000, (4, 16, 64))
    jobs = [(size, features, method) for features in widths for method in (PLAIN, ALONG, 'features', 'edges')]
    rows = [alone(measure, *job) for job in tqdm(jobs, desc='memory')]
    note = (
        f'Forward and backward of GRF-masked linear attention on a ring of {size} nodes, {HEADS} heads, 4 walks, p_halt 0.5, '
        f'm features and m value channels, float32. "{PLAIN}" multiplies the mask with the whole block of outer '
        f'products k (x) [v, 1] and lets autograd keep it; "{ALONG}" gathers queries, keys and values at the entries of the '
        f'mask and lets it keep these; "features" and "edges" are the routes of the combine step. Peak '
        f'memory beyond inputs, per node and head; N H (m + d) float32 numbers are 8 m bytes per node and head.'
    )
    write_table('memory', 'Peak memory of the combine step', note, rows, folder)


def measure(size: int, features: int, method: str) -> dict[str, object]:
    r"""Measures one route in a process of its own."""
    torch.manual_seed(0)
    mask = GRFMask(HEADS, num_walks=4, p_halt=0.5, max_walk_length=10)
    graph = Graph.from_tensors(ring(size), size)
    q, k, v = (torch.rand(size, HEADS, features, requires_grad=True) for _ in range(3))
    operator = mask(graph)
    if operator.entries is not None:
        operator.entries()

    def train() -> None:
        operator = mask(graph)
        if method in (PLAIN, ALONG):
            out = (_plain if method == PLAIN else _along)(q, k, v, operator)
        else:
            out = masked_linear_attention(q, k, v, operator, method)
        out.sum().backward()

    peak = peak_memory(train)
    return {
        'm = d': features,
        'method': method,
        'peak bytes per node and head': peak / (size * HEADS),
        'peak / (8 m bytes)': peak / (size * HEADS * 8 * features),
        'seconds': interleaved_medians({'train': train}, 3)['train'],
    }


def _along(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator) -> Tensor:
    assert mask.entries is not None
    entries = mask.entries()
    row, col = entries.pattern.row.long(), entries.pattern.col.long()
    score = (q[row] * k[col]).sum(-1) * entries.value.t()
    total = torch.zeros_like(v).index_add(0, row, score.unsqueeze(-1) * v[col])
    return total / torch.zeros_like(score[: q.size(0)]).index_add(0, row, score).unsqueeze(-1)


def _plain(q: Tensor, k: Tensor, v: Tensor, mask: MaskOperator) -> Tensor:
    values = torch.cat([v, v.new_ones(*v.shape[:2], 1)], dim=-1)
    outer = (k.unsqueeze(-1) * values.unsqueeze(-2)).flatten(2)
    total: Tensor = (q.unsqueeze(-1) * mask.matmul(outer).unflatten(2, (q.size(-1), -1))).sum(2)
    return total[..., :-1] / total[..., -1:]
