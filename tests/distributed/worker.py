"""What each of several processes does: python worker.py FOLDER RANK SIZE"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import torch
import torch.distributed as dist
from sharded_cases import (
    CASES,
    CHANNELS,
    EDGE_DIM,
    NODES,
    OF_FOUR,
    SHORT,
    WITH_BYTES,
    Case,
    data_of,
    linear,
    make_layer,
    partition_of,
    run_layer,
    weights_of_loss,
)
from torch_geometric.data import Data
from torch_geometric.nn import ChebConv, GCNConv, GINConv, SAGEConv

from pyg_topomask.distributed import (
    ShardedGraph,
    check_parameters,
    convert_norms,
    mean_over_nodes,
    storage,
    sum_gradients,
    walks,
)
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import AdjacencyMask, CausalMask, GRFMask, HeatKernelMask, HopMask, LowRankMask, PackingMask, TreeMask
from pyg_topomask.nn import (
    EdgeWeights,
    GRFSoftmaxAttention,
    KMIPAttention,
    MaskedLinearAttention,
    MaskedSoftmaxAttention,
    TopoGPSConv,
)
from pyg_topomask.nn.gps_conv import convolve
from pyg_topomask.transforms import AddGraphRandomFeatures


def shards_of(case: Case, data: Data, folder: Path) -> ShardedGraph:
    rank, size = dist.get_rank(), dist.get_world_size()
    partition = partition_of(case.partition, size)
    if case.source in ('data', 'folder'):
        return ShardedGraph.from_data(data, partition, folder=folder if case.source == 'folder' else None)
    if case.source == 'file':
        path, weight_path = folder / f'edges{rank}.npy', folder / f'weights{rank}.npy'
        np.save(path, data.edge_index.numpy())
        np.save(weight_path, data.edge_weight.numpy())
        return ShardedGraph.from_file(path, NODES, weight_path, partition)
    share = slice(0, 40) if rank == 0 else slice(40, None)
    weight = data.edge_weight
    return ShardedGraph.from_parts(data.edge_index[:, share], NODES, None if weight is None else weight[share], partition)


def run_case(case: Case, dtype: torch.dtype, folder: Path) -> dict[str, Any]:
    data = data_of(case.graph).apply(lambda value: value.to(dtype) if value.is_floating_point() else value)
    graph = shards_of(case, data, folder)
    layer = convert_norms(make_layer(case, dtype), graph)
    if dist.get_rank() > 0:  # what is random is that of process 0
        torch.manual_seed(dist.get_rank())
    x = data.x[graph.nodes].requires_grad_()
    out = run_layer(layer, x, graph)
    loss = mean_over_nodes((out * weights_of_loss(graph.nodes, dtype)).sum(1), graph)
    loss.backward()
    sum_gradients(layer, graph)
    grads = {key: parameter.grad for key, parameter in layer.named_parameters()}
    buffers = {key: value for key, value in layer.named_buffers() if 'running' in key}
    result = {'nodes': graph.nodes, 'out': out.detach(), 'x': x.grad, 'loss': loss.detach(), 'grads': grads}
    return {**result, 'buffers': buffers}


def bytes_of_step(name: str) -> dict[str, Any]:
    """What a second step sends, in float32, and the sizes that formulas are of."""
    data = data_of(CASES[name].graph).apply(lambda value: value.float() if value.is_floating_point() else value)
    graph = ShardedGraph.from_data(data)
    layer = make_layer(CASES[name], torch.float32)
    x = graph.data.x.requires_grad_()
    layer(x, graph=graph).sum().backward()
    before = graph.bytes_sent
    out = layer(x, graph=graph)
    after = graph.bytes_sent
    out.sum().backward()
    sizes = {'forward': after - before, 'backward': graph.bytes_sent - after, 'nodes': graph.num_nodes}
    halo = graph.halo
    if name.startswith('grf'):
        state = graph.state(layer.mask)
        halo = state.meetings.halo if name == 'grf' else state.query.halo
    return {**sizes, 'sent': halo.send.numel(), 'received': halo.nodes.numel()}


def other_mask() -> AdjacencyMask:
    class OtherMask(AdjacencyMask):
        pass

    return OtherMask()


def wrong_calls(rank: int) -> dict[str, Callable[[], Any]]:
    """What ends in the same error in both processes."""
    data = data_of('directed').apply(lambda value: value.float() if value.is_floating_point() else value)
    edge_index, weight = data.edge_index, data.edge_weight
    beyond = edge_index.clone()
    beyond[0, 0] = NODES + 7 * rank
    graph = ShardedGraph.from_data(data)
    scattered = ShardedGraph.from_data(data, partition_of('random', 2))
    x = torch.ones(graph.num_nodes, CHANNELS)

    def attend(layer: torch.nn.Module, **options: Any) -> Any:
        return layer(x, graph=graph, **options)

    def gps(conv: torch.nn.Module, norm: str | None = None) -> Any:
        return TopoGPSConv(CHANNELS, conv, attn=linear(PackingMask)(), norm=norm)(x, graph.edge_index, graph=graph)

    def weighted(mask: Any, **options: Any) -> Any:
        layer = TopoGPSConv(
            CHANNELS, None, attn=linear(lambda: mask)(), norm=None, edge_weights=EdgeWeights(EDGE_DIM, **options)
        )
        return layer(x, graph.edge_index, graph=graph, edge_attr=graph.attribute('edge_attr'))

    features = {'edge_attr': graph.attribute('edge_attr')}

    def with_edges(mask: Any) -> Any:
        return attend(MaskedSoftmaxAttention(CHANNELS, 2, mask, edge_dim=EDGE_DIM), **features)

    def with_many_meetings() -> Any:
        with patch.object(walks, 'MOST', 0):
            return attend(GRFSoftmaxAttention(CHANNELS, 2, seed=7))

    def seeded(seed: int) -> torch.nn.Module:
        torch.manual_seed(seed)
        return torch.nn.Linear(2, 2)

    def with_weights(weight: list[float]) -> torch.nn.Module:
        model = torch.nn.Linear(2, 1, bias=False)
        model.weight = torch.nn.Parameter(torch.tensor([weight]))
        return model

    def causal(time: torch.Tensor) -> Any:
        shard = ShardedGraph.from_data(data.clone().update({'time': time}))
        return linear(lambda: CausalMask(2, 'time'))()(x, graph=shard)

    return {
        'graphs': lambda: ShardedGraph.from_graph(edge_index + (rank if rank else 0) * (edge_index < 3), NODES),
        'orders': lambda: ShardedGraph.from_graph(edge_index.flip(1) if rank else edge_index, NODES),
        'weights': lambda: ShardedGraph.from_graph(edge_index, NODES, weight * (1 + rank)),
        'double_weights': lambda: ShardedGraph.from_graph(edge_index, NODES, weight.double() * (1 + 1e-12 * rank)),
        'weights_of_one': lambda: ShardedGraph.from_parts(edge_index, NODES, weight if rank else None),
        'learned_weights': lambda: ShardedGraph.from_parts(edge_index, NODES, weight.clone().requires_grad_()),
        'num_nodes': lambda: ShardedGraph.from_parts(edge_index, NODES + rank),
        'timeouts': lambda: ShardedGraph.from_graph(edge_index, NODES, timeout=600.0 - 100 * rank),
        'one_node': lambda: ShardedGraph.from_graph(edge_index[:, :0], 1),
        'empty_shard': lambda: ShardedGraph.from_graph(edge_index, NODES, partition=torch.zeros(NODES, dtype=torch.long)),
        'partition': lambda: ShardedGraph.from_graph(edge_index, NODES, partition=torch.full((NODES,), 2 - rank)),
        'partitions': lambda: ShardedGraph.from_graph(edge_index, NODES, partition=(torch.arange(NODES) + rank) % 2),
        'nowhere': lambda: ShardedGraph.from_parts(beyond, NODES),
        'nowhere_in_one': lambda: ShardedGraph.from_parts(beyond if rank else edge_index, NODES),
        'no_file': lambda: ShardedGraph.from_file('nowhere.npy', NODES),
        'batch': lambda: ShardedGraph.from_data(Data(edge_index=edge_index[:, :0], batch=torch.arange(4), num_nodes=4)),
        'settings': lambda: attend(linear(lambda: GRFMask(2, num_walks=2 + 2 * rank))()),
        'seeds': lambda: attend(linear(lambda: GRFMask(2, seed=rank))()),
        'masks': lambda: attend(linear(PackingMask if rank else AdjacencyMask)()),
        'heads': lambda: attend(MaskedLinearAttention(CHANNELS, 1 + rank)),
        'convs': lambda: gps((SAGEConv if rank else GCNConv)(CHANNELS, CHANNELS)),
        'conv_sizes': lambda: gps(GCNConv(CHANNELS, CHANNELS + rank)),
        'gin_sizes': lambda: gps(GINConv(torch.nn.Linear(CHANNELS, CHANNELS + rank))),
        'learned_hop': lambda: weighted(HopMask(2, path_weights='mean')),
        'learned_grf': lambda: weighted(GRFMask(2, transition='weight')),
        'learned_against': lambda: weighted(AdjacencyMask(2, flow='target_to_source')),
        'learned_symmetric': lambda: weighted(AdjacencyMask(2), symmetric=True),
        'edges_against': lambda: with_edges(AdjacencyMask(2, flow='target_to_source')),
        'edges_of_all': lambda: with_edges(PackingMask()),
        'edges_kmip': lambda: attend(KMIPAttention(CHANNELS, 2, flow='target_to_source', edge_dim=EDGE_DIM), **features),
        'models': lambda: check_parameters(seeded(rank), graph),
        'models_of_equal_sums': lambda: check_parameters(with_weights([1.0 + rank, -1.0 - rank]), graph),
        'models_in_another_order': lambda: check_parameters(with_weights([1.0 + rank, 2.0 - rank]), graph),
        'tree': lambda: attend(linear(TreeMask)()),
        'subclass': lambda: attend(linear(other_mask)()),
        'missing': lambda: attend(linear(lambda: LowRankMask(2, 'nothing'))()),
        'route': lambda: attend(linear(PackingMask, route='blocks')()),
        'directed': lambda: attend(linear(lambda: HeatKernelMask(2))()),
        'softmax': with_many_meetings,
        'softmax_T': lambda: attend(MaskedSoftmaxAttention(CHANNELS, 2, AdjacencyMask(2).T)),
        'coefficients': lambda: attend(MaskedSoftmaxAttention(CHANNELS, 2, AdjacencyMask(2)), return_attention_weights=True),
        'kmip': lambda: attend(KMIPAttention(CHANNELS, 2, deterministic=True)),
        'nan': lambda: KMIPAttention(CHANNELS, 2)(x if rank else x / 0 - x / 0, graph=graph),
        'order': lambda: linear(CausalMask)()(torch.ones(scattered.num_nodes, CHANNELS), graph=scattered),
        'order_tie': lambda: causal(torch.arange(NODES) // 5),
        'dense': lambda: AdjacencyMask()(graph).to_dense(),
        'conv': lambda: gps(ChebConv(CHANNELS, CHANNELS, 2)),
        'norm': lambda: gps(GCNConv(CHANNELS, CHANNELS), 'batch_norm'),
        'norm_of_conv': lambda: gps(GINConv(torch.nn.BatchNorm1d(CHANNELS))),
        'graph_norm': lambda: convert_norms(TopoGPSConv(CHANNELS, None, attn=linear(PackingMask)(), norm='graph_norm'), graph),
    }


def warning_of_stored_walks() -> str:
    data = AddGraphRandomFeatures(num_walks=2, max_walk_length=2)(data_of('unweighted'))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        ShardedGraph.from_data(data)
    return '; '.join(str(warning.message) for warning in caught)


def error_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except (MemoryError, OSError, RuntimeError, ValueError) as error:
        return f'{type(error).__name__}: {error}'
    return 'none'


def run_limited(rank: int, folder: Path) -> dict[str, Any]:
    """Trains on a graph whose edges take twice the memory that a process may add, and lets one process try it alone."""
    nodes, edges, path = 2_000, 1_500_000, folder / 'many_edges.npy'
    if rank == 0:
        np.save(path, np.random.default_rng(0).integers(0, nodes, (2, edges)))
    torch.manual_seed(0)
    layer = linear(lambda: GRFMask(2, num_walks=2, max_walk_length=2))()

    def attend(graph: Graph, x: torch.Tensor) -> torch.Tensor:
        return layer(x, graph=graph).square().sum(1)

    x = torch.sin(torch.arange(nodes * CHANNELS)).view(nodes, CHANNELS)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    storage.BLOCK = 2**14
    dist.barrier()
    # Memory that is not that of a file, in use and reserved. A process holds more at its start, for the libraries.
    size = next(line for line in Path('/proc/self/status').read_text().splitlines() if line.startswith('VmData'))
    limit, unlimited = path.stat().st_size // 2, resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (int(size.split()[1]) * 1024 + limit, unlimited[1]))
    graph = ShardedGraph.from_file(path, nodes, folder=folder / 'limited')
    loss = mean_over_nodes(attend(graph, x[graph.nodes]), graph)
    loss.backward()
    sum_gradients(layer, graph)
    alone = error_of(lambda: Graph(torch.from_numpy(np.load(path)), nodes))
    resource.setrlimit(resource.RLIMIT_DATA, unlimited)
    files = list((folder / 'limited').iterdir())
    whole = torch.zeros(()) if rank else attend(Graph(torch.from_numpy(np.load(path)), nodes), x).mean().detach()
    return {'loss': loss.detach(), 'whole': whole, 'alone': alone, 'files': files, 'edges': graph.total_edges}


def step_alone(layer: torch.nn.Module, data: Data, graph: ShardedGraph) -> torch.Tensor:
    return layer(data.x, graph=data)[graph.nodes].detach()


def run_failures(rank: int) -> dict[str, Any]:
    """Errors of one process, which goes on, while the other waits for it, and then an error of both."""
    data = data_of('directed').apply(lambda value: value.float() if value.is_floating_point() else value)
    graphs = [ShardedGraph.from_data(data, timeout=300.0 + number) for number in range(3)]
    conv: torch.nn.Module = ChebConv(CHANNELS, CHANNELS, 2) if rank else SAGEConv(CHANNELS, CHANNELS)
    torch.manual_seed(0)
    adjacency, tree = linear(AdjacencyMask)(), linear(TreeMask)()

    def script() -> None:
        with graphs[1].reporting_errors():
            if rank == 1:
                raise MemoryError('no memory')
            adjacency(graphs[1].data.x, graph=graphs[1])

    def of_both() -> None:
        error_of(lambda: tree(graphs[2].data.x, graph=graphs[2]))
        time.sleep(2.5 * rank)  # longer than a process waits before it asks for errors
        adjacency(graphs[2].data.x, graph=graphs[2])

    def step(graph: ShardedGraph, fails: bool = False) -> torch.Tensor:
        with graph.reporting_errors():
            if fails:
                raise MemoryError('of the user')
            return adjacency(graph.data.x, graph=graph)

    graph = ShardedGraph.from_data(data, timeout=400.0)
    first, second = (error_of(lambda fails=fails: step(graph, fails)) for fails in (rank == 1, False))
    again = ShardedGraph.from_data(data, timeout=400.0)
    goes_on = {'first': first, 'second': second, 'again': step(again).detach(), 'whole': step_alone(adjacency, data, again)}
    return {
        **goes_on,
        'layer': error_of(lambda: convolve(graphs[0], conv, graphs[0].data.x, graphs[0].edge_index)),
        'script': error_of(script),
        'both': error_of(of_both),
    }


def run_faults(rank: int, folder: Path) -> dict[str, str]:
    """A process that does not answer until the other has given up, and then ends."""
    data = data_of('directed').apply(lambda value: value.float() if value.is_floating_point() else value)
    graphs = {'silent': ShardedGraph.from_data(data, timeout=3.0), 'ended': ShardedGraph.from_data(data, timeout=120.0)}
    layer, given_up = linear(AdjacencyMask)(), folder / 'given_up'
    for graph in graphs.values():
        layer(graph.data.x, graph=graph)
    if rank == 1:
        while not given_up.exists():
            time.sleep(0.1)
        again = ShardedGraph.from_data(data, timeout=3.0)
        layer(again.data.x, graph=again)
        os._exit(3)  # as a process that is killed ends
    errors = {}
    for name, graph in graphs.items():
        errors[name] = error_of(lambda graph=graph: layer(graph.data.x, graph=graph))
        errors[f'{name}, again'] = error_of(lambda graph=graph: layer(graph.data.x, graph=graph))
        if name == 'silent':
            given_up.touch()
            again = ShardedGraph.from_data(data, timeout=3.0)
            errors['created again'] = error_of(lambda again=again: layer(again.data.x, graph=again))
    return errors


def main(folder: Path, rank: int, size: int) -> None:
    warnings.simplefilter('error')
    warnings.filterwarnings('ignore', category=DeprecationWarning)
    warnings.filterwarnings('ignore', message='Sparse CSR tensor support is in beta state')
    warnings.filterwarnings('ignore', message='edge_(index: got a directed graph|weight: got (weights, which|none for))')
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'file://{folder}/store', rank=rank, world_size=size)
    if size == 4:
        of_four: dict[str, Any] = {name: run_case(CASES[name], torch.float64, folder) for name in OF_FOUR}
        of_four['bytes'] = {name: bytes_of_step(name) for name in ('packing', 'causal')}
        torch.save(of_four, folder / f'{rank}.pt')
        dist.barrier()
        os._exit(0)
    types = {name: [torch.float64] + [torch.float32] * (name in SHORT) for name in CASES}
    results: dict[str, Any] = {
        'cases': {(name, str(dtype)): run_case(CASES[name], dtype, folder) for name in CASES for dtype in types[name]},
        'bytes': {name: bytes_of_step(name) for name in WITH_BYTES},
        'errors': {name: error_of(call) for name, call in wrong_calls(rank).items()},
        'stored': warning_of_stored_walks(),
        'limited': run_limited(rank, folder),
        'failures': run_failures(rank),
    }
    torch.save(results, folder / f'{rank}.pt')
    torch.save(run_faults(rank, folder), folder / 'faults.pt')
    os._exit(0)  # the other process is gone: nothing can be taken apart together


if __name__ == '__main__':
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
