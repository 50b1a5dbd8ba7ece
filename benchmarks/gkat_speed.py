r"""Training time of RWGNK attention on graphs of CiteSeer's and PubMed's size and larger, against a dense-masked GAT, PyG's
sparse GATConv, and softmax attention with the mask as a dense matrix; and of GKAT on batches of small graphs, against GAT with
as many parameters.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GATConv
from tqdm import tqdm

from benchmarks.harness import alone, count_parameters, interleaved_medians, keep_memory, peak_memory, write_table
from benchmarks.motifs import CYCLES, REFERENCE, Job, Training, make_batches, make_model
from pyg_topomask.apps.datasets.motifs import MOTIFS
from pyg_topomask.feature_maps import FavorFeatures
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import RWGNKMask
from pyg_topomask.nn.named_attention import RWGNKAttention

__all__ = ['batches', 'run']

#: Undirected edges by nodes: CiteSeer, PubMed, and a graph as dense as PubMed.
SIZES = {3_327: 4_552, 19_717: 44_324, 100_000: 224_801}
#: The most nodes for which all pairs of them fit in memory.
LARGEST_DENSE = 20_000
CHANNELS, WALKS, HOPS = 8, 4, 3
DENSE, SPARSE, EXPLICIT = 'dense-masked GAT', 'GATConv', 'GKAT-0'


class DenseGAT(torch.nn.Module):
    r"""GAT attention of one head, with scores of all pairs of nodes, and a mask that leaves those of the edges."""

    mask: Tensor

    def __init__(self, channels: int, edge_index: Tensor, num_nodes: int) -> None:
        super().__init__()
        self.lin = torch.nn.Linear(channels, channels, bias=False)
        self.source, self.target = (torch.nn.Parameter(torch.randn(channels) / channels**0.5) for _ in range(2))
        mask = torch.full((num_nodes, num_nodes), -torch.inf).fill_diagonal_(0.0)
        mask[edge_index[1], edge_index[0]] = 0.0
        self.register_buffer('mask', mask, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        h = self.lin(x)
        score = torch.nn.functional.leaky_relu((h @ self.target).unsqueeze(1) + h @ self.source, 0.2)
        out: Tensor = torch.softmax(score + self.mask, dim=1) @ h
        return out


class ExplicitGKAT(torch.nn.Module):
    r"""Softmax attention of one head, with scores of all pairs of nodes, and the logarithm of a mask added to them."""

    bias: Tensor

    def __init__(self, channels: int, mask: Tensor) -> None:
        super().__init__()
        self.lin_q, self.lin_k, self.lin_v = (torch.nn.Linear(channels, channels) for _ in range(3))
        self.register_buffer('bias', mask.log_(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        score = self.lin_q(x) @ self.lin_k(x).t() / x.size(1) ** 0.5
        out: Tensor = torch.softmax(score + self.bias, dim=1) @ self.lin_v(x)
        return out


RWGNK = {
    f'RWGNK, {WALKS} walks, ReLU features': (WALKS, None),
    f'RWGNK, {WALKS} walks, 16 random features': (WALKS, 16),
    f'RWGNK, {WALKS} walks, 256 random features': (WALKS, 256),
    'RWGNK, exact, ReLU features': (None, None),
}
LAYERS = (DENSE, EXPLICIT, SPARSE, *RWGNK)


def run(quick: bool, folder: Path) -> None:
    sizes = {1_000: 2_248} if quick else SIZES
    rows = [row for nodes, edges in sizes.items() for row in _rows(nodes, edges, quick)]
    graphs = ', '.join(f'{edges:,} undirected edges between {nodes:,} nodes' for nodes, edges in sizes.items())
    what = 'a smoke run' if quick else 'the sizes of CiteSeer and PubMed, and a larger one of the density of PubMed'
    note = (
        f'Random graphs of {graphs}: {what}. One head of {CHANNELS} channels (more heads cost a dense-masked GAT in '
        f'proportion, and do not fit in memory; above {LARGEST_DENSE:,} nodes it is left out), walks of {HOPS} hops, stored, '
        f'float32. {EXPLICIT} is softmax attention with the mask of {WALKS} walks as a dense matrix. Medians of 3 in one run, '
        f'with an allocator that keeps freed blocks; memory beyond inputs, parameters and dense masks, each layer in its own '
        f'process. General theory, Table 3: on PubMed GKAT with 256 '
        f'random features trains 9.5 times as fast as GAT with a dense mask, in 0.07 of the memory of GKAT with an explicit '
        f'mask; a sparse GAT is not in the paper.'
    )
    write_table('gkat_speed', 'RWGNK attention against GAT in training', note, rows, folder)


def _rows(nodes: int, edges: int, quick: bool) -> list[dict[str, object]]:
    layers = [name for name in LAYERS if name not in (DENSE, EXPLICIT) or nodes <= LARGEST_DENSE]
    memory = {}
    with keep_memory():
        for name in tqdm(() if quick else layers, desc=f'gkat_speed, {nodes:,} nodes, memory'):
            memory[name] = alone(_memory, name, nodes, edges)
        seconds = alone(_seconds, layers, nodes, edges)
    return [
        {
            'nodes': nodes,
            'layer': name,
            'forward + backward, ms': seconds[name] * 1e3,
            f'speed-up over {DENSE}': seconds[DENSE] / seconds[name] if DENSE in seconds else '',
            f'speed-up over {SPARSE}': seconds[SPARSE] / seconds[name],
            'peak memory, MB': memory[name] / 1e6 if name in memory else '',
            **{f'memory / {dense}': memory[name] / memory[dense] if dense in memory else '' for dense in (DENSE, EXPLICIT)},
        }
        for name in layers
    ]


def _train_step(name: str, nodes: int, edges: int) -> Callable[[], object]:
    r"""Makes a layer, and returns a function that runs it forward and backward."""
    torch.manual_seed(0)
    half = torch.randint(nodes, (2, edges))
    edge_index, x = torch.cat([half, half.flip(0)], dim=1), torch.randn(nodes, CHANNELS, requires_grad=True)
    if name == DENSE:
        dense = DenseGAT(CHANNELS, edge_index, nodes)
        return lambda: dense(x).sum().backward()
    if name == SPARSE:
        sparse = GATConv(CHANNELS, CHANNELS)
        return lambda: sparse(x, edge_index).sum().backward()
    graph = Graph.from_tensors(edge_index, nodes)
    if name == EXPLICIT:
        explicit = ExplicitGKAT(CHANNELS, RWGNKMask(1, WALKS, max_walk_length=HOPS)(graph).to_dense()[0].detach())
        return lambda: explicit(x).sum().backward()
    walks, features = RWGNK[name]
    feature_map = 'relu' if features is None else FavorFeatures(CHANNELS, features)
    attention = RWGNKAttention(CHANNELS, 1, num_walks=walks, max_walk_length=HOPS, feature_map=feature_map)
    attention.mask(graph)  # walks are drawn once, before training
    return lambda: attention(x, edge_index, graph=graph).sum().backward()


def _memory(name: str, nodes: int, edges: int) -> int:
    return peak_memory(_train_step(name, nodes, edges))


def _seconds(layers: list[str], nodes: int, edges: int) -> dict[str, float]:
    return interleaved_medians({name: _train_step(name, nodes, edges) for name in layers}, 3)


def batches(quick: bool, folder: Path) -> None:
    torch.set_num_threads(1)
    tasks = ('caveman',) if quick else (*MOTIFS, CYCLES)
    training, repeats = (Training(4, 1, 8), 1) if quick else (Training(32, 1, 32), 21)
    rows = [_row_of_batch(task, training, repeats) for task in tasks]
    note = (
        f'Forward and backward of a model with two layers on one batch of {training.batch} graphs of the tasks in the table '
        f'[motifs](motifs.md), walks stored, float32, one thread: medians of the processor times of {repeats} steps, in turns. '
        f'GKAT has the heads, channels and features of that table, and GAT has two heads and the width that comes closest to '
        f'its number of parameters. The small heads of induced cycles use a quarter to a half of each vector instruction, and '
        f'a step of GKAT makes more than twice as many calls to PyTorch as one of GAT.'
    )
    write_table('gkat_batches', 'GKAT against GAT on batches of small graphs', note, rows, folder)


def _row_of_batch(task: str, training: Training, repeats: int) -> dict[str, object]:
    torch.manual_seed(0)
    data, graph = make_batches(Job(task, REFERENCE, 2, 0), 'train', training)[0]
    models = {name: make_model(Job(task, name, 2, 0), WALKS) for name in (REFERENCE, 'GAT')}
    steps = {name: partial(_step_on_batch, model, data, graph) for name, model in models.items()}
    seconds = interleaved_medians(steps, repeats, time.process_time)
    return {
        'task': task,
        'nodes': data.num_nodes,
        'edges': data.num_edges,
        **{f'parameters of {name}': count_parameters(model) for name, model in models.items()},
        **{f'{name}, ms': seconds[name] * 1e3 for name in models},
        'GKAT / GAT': seconds[REFERENCE] / seconds['GAT'],
    }


def _step_on_batch(model: torch.nn.Module, data: Data, graph: Graph) -> None:
    torch.nn.functional.cross_entropy(model(data.x, data.edge_index, graph=graph), data.y).backward()
