"""Two processes on the shards of a graph against one process on the whole graph."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from forked import Forked
from graphs import ring
from grids import by_day
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import (
    BatchNorm,
    GATv2Conv,
    GCNConv,
    GENConv,
    GraphConv,
    LayerNorm,
    MessagePassing,
    ResGatedGraphConv,
    SAGEConv,
    TransformerConv,
)

sys.path.insert(0, str(Path(__file__).parent))

from sharded_cases import CASES, CHANNELS, NODES, OF_EACH_KIND, OF_FOUR, SHORT, data_of, make_layer, run_layer, weights_of_loss

from pyg_topomask.distributed import ShardedGraph, convert_norms, mean_over_nodes
from pyg_topomask.distributed.training import GlobalBatchNorm
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask, HeatKernelMask, PackingMask
from pyg_topomask.nn import KMIPAttention, TopoGPSConv
from pyg_topomask.nn.gps_conv import convolve
from pyg_topomask.ops import masked_linear_attention

RUNS = [(name, torch.float64) for name in CASES] + [(name, torch.float32) for name in SHORT]
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}


@pytest.fixture(scope='module')
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp('sharded')
    loaded = run_processes(folder, 2, [0, 3])
    loaded[0]['faults'] = torch.load(folder / 'faults.pt', weights_only=False)
    return loaded


@pytest.fixture(scope='module')
def results_of_four(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return run_processes(tmp_path_factory.mktemp('four'), 4, [0, 0, 0, 0])


def run_processes(folder: Path, size: int, expected: list[int]) -> list[dict[str, Any]]:
    worker = str(Path(__file__).with_name('worker.py'))
    processes = [Forked(worker, str(folder), str(rank), str(size)) for rank in range(size)]
    ends = [process.wait(240) for process in processes]
    assert [status for status, _, _ in ends] == expected, '\n'.join(stderr for _, _, stderr in ends)
    return [torch.load(folder / f'{rank}.pt', weights_only=False) for rank in range(size)]


def of_one_process(name: str, dtype: torch.dtype, sharded: bool = False) -> dict[str, Any]:
    case = CASES[name]
    data = data_of(case.graph).apply(lambda value: value.to(dtype) if value.is_floating_point() else value)
    layer, graph = make_layer(case, dtype), ShardedGraph.from_data(data) if sharded else Graph.from_data(data)
    if isinstance(graph, ShardedGraph):
        layer = convert_norms(layer, graph)
    x = data.x.clone().requires_grad_()
    out = run_layer(layer, x, graph)
    values = (out * weights_of_loss(torch.arange(NODES), dtype)).sum(1)
    loss = mean_over_nodes(values, graph) if isinstance(graph, ShardedGraph) else values.mean()
    loss.backward()
    grads = {key: parameter.grad for key, parameter in layer.named_parameters()}
    buffers = {key: value for key, value in layer.named_buffers() if 'running' in key}
    return {'out': out.detach(), 'x': x.grad, 'loss': loss.detach(), 'grads': grads, 'buffers': buffers}


def assert_equal(actual: dict[str, Any], expected: dict[str, Any], tolerance: float) -> None:
    def check(name: str, first: Tensor, second: Tensor, size: float) -> None:
        assert float((first - second).abs().max()) <= tolerance * size, name

    for name in ('out', 'x', 'loss'):
        check(name, actual[name], expected[name], max(1.0, float(expected[name].abs().max())))
    assert float(expected['x'].abs().max()) > 1e-2
    largest = max(float(grad.abs().max()) for grad in expected['grads'].values() if grad is not None)
    for name, grad in expected['grads'].items():
        check(name, actual['grads'][name], torch.zeros(()) if grad is None else grad, largest)
    for name, value in expected['buffers'].items():
        check(name, actual['buffers'][name], value, 1.0)


@pytest.mark.parametrize(('name', 'dtype'), RUNS)
def test_outputs_and_gradients_of_two_processes(results: list[dict[str, Any]], name: str, dtype: torch.dtype) -> None:
    assert_parts_equal([process['cases'][name, str(dtype)] for process in results], name, dtype)


@pytest.mark.parametrize('name', OF_FOUR)
def test_outputs_and_gradients_of_four_processes(results_of_four: list[dict[str, Any]], name: str) -> None:
    assert_parts_equal([process[name] for process in results_of_four], name, torch.float64)


def assert_parts_equal(parts: list[dict[str, Any]], name: str, dtype: torch.dtype) -> None:
    whole = {key: torch.empty(NODES, CHANNELS, dtype=dtype) for key in ('out', 'x')}
    for key, rows in whole.items():
        for part in parts:
            rows[part['nodes']] = part[key]
    assert sorted(torch.cat([part['nodes'] for part in parts]).tolist()) == list(range(NODES))
    for part in parts:
        shared = {key: part[key] for key in ('loss', 'grads', 'buffers')}
        assert_equal({**whole, **shared}, of_one_process(name, dtype), TOLERANCE[dtype])


@pytest.mark.parametrize('name', by_day([name for name, case in CASES.items() if case.source == 'data'], OF_EACH_KIND))
def test_one_shard(name: str) -> None:
    actual = of_one_process(name, torch.float64, sharded=True)
    expected = of_one_process(name, torch.float64)
    actual['grads'] = {key: torch.zeros(()) if grad is None else grad for key, grad in actual['grads'].items()}
    assert_equal(actual, expected, 1e-10)


def test_walks_of_parallel_edges_in_any_order() -> None:
    """They are those of one process, which sorts parallel edges by their weights."""
    edges = torch.tensor([[0, 0, 0, 1, 1, 2], [1, 1, 1, 0, 2, 1]])
    data = Data(edge_index=edges, edge_weight=torch.tensor([3.0, 1.0, 2.0, 0.5, 1.0, 1.0]), num_nodes=3)
    mask, x = GRFMask(seed=0), torch.eye(3).unsqueeze(1)
    torch.testing.assert_close(mask(ShardedGraph.from_data(data)).matmul(x), mask(data).matmul(x))


@pytest.mark.parametrize('options', [{}, {'improved': True}, {'add_self_loops': False}, {'normalize': False}, {'bias': False}])
def test_weights_of_loops_in_a_gcn(options: dict[str, bool]) -> None:
    data, conv = data_of('positive'), GCNConv(CHANNELS, CHANNELS, **options).double()
    assert (data.edge_index[0] == data.edge_index[1]).any()
    graph = ShardedGraph.from_data(data)
    actual = convolve(graph, conv, data.x, graph.edge_index, edge_weight=graph.edge_weight)
    torch.testing.assert_close(actual, conv(data.x, data.edge_index, data.edge_weight))


@pytest.mark.parametrize('kind', [GATv2Conv, GENConv, GraphConv, ResGatedGraphConv, TransformerConv])
def test_other_convolutions_are_those_of_pyg(kind: Callable[[int, int], MessagePassing]) -> None:
    data = data_of('unweighted')
    graph = ShardedGraph.from_data(data)
    conv = convert_norms(kind(CHANNELS, CHANNELS).double(), graph)
    actual = convolve(graph, conv, data.x, graph.edge_index)
    torch.testing.assert_close(actual, conv(data.x, data.edge_index))


def test_dropout_of_nearest_keys_ends_with_training() -> None:
    data, layer = data_of('unweighted'), KMIPAttention(CHANNELS, 2, k=5, attention_dropout=0.5).double().eval()
    torch.testing.assert_close(layer(data.x, graph=ShardedGraph.from_data(data)), layer(data.x, graph=data))


def test_keys_that_cancel_are_no_weight() -> None:
    q, k, v = torch.ones(NODES, 1, 4), torch.randn(NODES, 1, 4), torch.rand(NODES, 1, 2)
    k[-1] = -k[:-1].sum(0)  # but for rounding
    mask = PackingMask()(ShardedGraph.from_data(data_of('directed')))
    assert not masked_linear_attention(q, k, v, mask).any()


def test_files_of_edges(tmp_path: Path, subtests: pytest.Subtests) -> None:
    def graph(edges: Any, weight: Any = None) -> ShardedGraph:
        np.save(tmp_path / 'edges.npy', edges)
        np.save(tmp_path / 'weight.npy', np.ones(edges.shape[-1]) if weight is None else weight)
        return ShardedGraph.from_file(tmp_path / 'edges.npy', 3, tmp_path / 'weight.npy')

    edges = np.array([[0, 1], [1, 2]], dtype=np.int32)
    assert graph(edges).edge_index.tolist() == edges.tolist()
    assert graph(edges[:, :0]).num_edges == 0
    accepted = r'accepted: int32 and int64 of shape \[2, E\], in C order'
    for arguments, message in [
        ((np.asfortranarray(edges),), f'^path: .*; {accepted}'),
        ((np.zeros((3, 2), dtype=int),), f'^path: .*; {accepted}'),
        ((edges.astype(float),), f'^path: .*; {accepted}'),
        ((edges[0],), f'^path: .*; {accepted}'),
        ((edges, np.ones(1)), '^weight_path: got 1 weights; accepted: 2, one for each edge'),
        ((edges, np.ones(3)), '^weight_path: got 3 weights; accepted: 2, one for each edge'),
        ((edges, np.ones(2, dtype=int)), '^weight_path: .*; accepted: floating point numbers'),
    ]:
        with subtests.test(message=message), pytest.raises(ValueError, match=message):
            graph(*arguments)


def test_what_would_see_the_nodes_of_one_process_is_refused(subtests: pytest.Subtests) -> None:
    graph = ShardedGraph.from_data(data_of('positive'))
    x = graph.data.x.float()
    options = ({'similarity': 'distance'}, {'deterministic': True}, {'random_fraction': 0.5}, {'diversity': 0.1})
    layers = [(KMIPAttention(CHANNELS, 2, k=4, **each), next(iter(each))) for each in options]
    layers += [(TopoGPSConv(CHANNELS, None, attn_type=kind), 'attn_type') for kind in ('multihead', 'performer')]
    against = SAGEConv(CHANNELS, CHANNELS, flow='target_to_source')
    layers.append((TopoGPSConv(CHANNELS, against, norm=None, attn_type=None, attn=None), 'conv'))
    for layer, argument in layers:
        with subtests.test(layer=layer), pytest.raises(ValueError, match=f'^{argument}: got '):
            layer(x, graph.edge_index, graph=graph)


def test_rows_that_hold_only_the_error_of_a_polynomial_give_zero() -> None:
    k, v = torch.zeros(200, 1, 1), torch.ones(200, 1, 1)
    k[0] = 1.0
    mask = HeatKernelMask(1, lam=0.5)(ShardedGraph.from_data(Data(edge_index=ring(200), num_nodes=200)))
    out = masked_linear_attention(torch.ones_like(k), k, v, mask).flatten()
    assert float(out[0].detach()) == pytest.approx(1.0)
    assert not out[8:193].any()  # whose weight is below 1e-7


@pytest.mark.parametrize('make', [lambda: LayerNorm(CHANNELS), lambda: torch.nn.BatchNorm1d(CHANNELS)])
def test_norms_of_features_that_are_equal_or_short(make: Callable[[], torch.nn.Module]) -> None:
    norm = convert_norms(make(), ShardedGraph.from_data(data_of('positive')))
    equal = torch.ones(NODES, CHANNELS, requires_grad=True)
    norm(equal).sum().backward()
    assert equal.grad.isfinite().all()
    x = (100 + torch.randn(NODES, CHANNELS)).bfloat16()
    torch.testing.assert_close(norm(x), make()(x.float()).bfloat16())


@pytest.mark.parametrize('momentum', [0.3, None])
def test_running_moments(momentum: float | None) -> None:
    graph = ShardedGraph.from_data(data_of('positive'))
    norms = [torch.nn.BatchNorm1d(CHANNELS, momentum=momentum) for _ in range(2)]
    norms[1] = convert_norms(norms[1], graph)
    for x in torch.randn(3, NODES, CHANNELS, generator=torch.Generator().manual_seed(0)):
        torch.testing.assert_close(*(norm(x + 2.0) for norm in norms))
    torch.testing.assert_close(*(norm.state_dict() for norm in norms))


def test_means_of_any_type() -> None:
    graph = ShardedGraph.from_data(data_of('positive'))
    right = torch.arange(graph.num_nodes) % 3 == 0
    for values in (right, right.to(torch.uint8), right.long(), right.double()):
        assert float(mean_over_nodes(values, graph)) == pytest.approx(right.double().mean().item())
        assert mean_over_nodes(values, graph).dtype == (values.dtype if values.is_floating_point() else torch.float32)
    assert mean_over_nodes(torch.ones(70_000, dtype=torch.half), graph) == 1  # the sum is beyond float16


def test_a_norm_at_two_places_and_one_that_would_leave_out_a_node() -> None:
    graph = ShardedGraph.from_data(data_of('positive'))
    norm = torch.nn.BatchNorm1d(2)
    first, _, last = convert_norms(torch.nn.Sequential(norm, torch.nn.Identity(), norm), graph)
    assert type(first) is GlobalBatchNorm
    assert first is last
    assert not convert_norms(BatchNorm(2, allow_single_element=True), graph).allow_single_element


def test_parts_by_truth() -> None:
    with pytest.raises(ValueError, match=r'^partition: got 0 to 1; accepted: .* from 0 to 0'):
        ShardedGraph.from_graph(torch.tensor([[0], [1]]), 2, partition=torch.tensor([False, True]))


def test_bytes(results: list[dict[str, Any]]) -> None:
    """The formulas in the docstring of ShardedGraph, of 2 heads with 4 features and 4 channels in 2 processes."""
    heads, features, channels = 2, 4, 4
    outer, bound = heads * features * (channels + 1), heads * features
    for rank, process in enumerate(results):
        for name, size in process['bytes'].items():
            sent, received = size['sent'], size['received']
            numbers = {
                'packing': (heads * features * (channels + 2),) * 2,
                'adjacency': (heads * (features + channels) * sent, heads * (features + channels) * received),
                'power_series': (3 * (outer + bound) * sent, 3 * outer * (sent + received)),
                'grf': (heads * (features + channels) * sent, heads * (features + channels) * received),
                'grf_features': ((outer + bound) * (sent + received), 2 * outer * (sent + received)),
                'causal': (outer + bound, 2 * outer),
            }
            if name in numbers:
                assert (size['forward'], size['backward']) == tuple(4 * number for number in numbers[name]), (rank, name)
            else:  # keys of all nodes, and ids, keys and values of those chosen
                assert size['forward'] >= 4 * heads * channels * size['nodes'], name


def test_bytes_of_four_processes(results_of_four: list[dict[str, Any]]) -> None:
    heads, features, channels = 2, 4, 4
    outer, bound = heads * features * (channels + 1), heads * features
    expected = {'packing': (3 * (outer + bound) // 2,) * 2, 'causal': (3 * (outer + bound), 6 * outer)}
    for process in results_of_four:
        for name, numbers in expected.items():
            size = process['bytes'][name]
            assert (size['forward'], size['backward']) == tuple(4 * number for number in numbers), name


ERRORS = {
    'graphs': 'edge_index, edge_weight: got (130, ',
    'orders': 'edge_index, edge_weight: got (130, ',
    'weights': 'edge_index, edge_weight: got (130, ',
    'double_weights': 'edge_index, edge_weight: got (130, ',
    'weights_of_one': 'edge_weight: got None in process 0, torch.float32 in process 1; accepted: the same in all processes',
    'learned_weights': 'edge_weight: got weights that require a gradient',
    'num_nodes': 'num_nodes: got 48 in process 0, 49 in process 1',
    'timeouts': 'timeout: got 600.0 in process 0, 500.0 in process 1; accepted: the same in all processes',
    'one_node': 'num_nodes: got 1 nodes for 2 processes, of which process 0 has none',
    'empty_shard': 'partition: got 48 nodes for 2 processes, of which process 1 has none',
    'partition': 'partition: got 2 to 2; accepted: a tensor [48] of whole numbers from 0 to 1',
    'partitions': 'partition: got ',
    'nowhere': 'edge_index: got nodes 0 to 48; accepted: 0 to 47',
    'nowhere_in_one': 'edge_index: got nodes 0 to 55; accepted: 0 to 47',
    'batch': 'data: got a batch of 4 graphs; accepted: one graph',
    'settings': 'mask: got GRFMask(heads=2, ',
    'seeds': 'mask: got GRFMask(',
    'masks': 'mask: got AdjacencyMask(',
    'heads': 'layer: got attention of 1 heads, 8 features',
    'convs': 'layer: got GCNConv(8, 8) of 8 channels, torch.float32 in process 0, SAGEConv(8, 8, aggr=mean) of 8 channels',
    'conv_sizes': 'layer: got GCNConv(8, 8) of 8 channels, torch.float32 in process 0, GCNConv(8, 9) of 8 channels',
    'gin_sizes': 'layer: got GINConv(nn=Linear(in_features=8, out_features=8, bias=True)) of 8 channels, torch.float32 in ',
    'learned_hop': 'edge_weight: got weights that require a gradient for a mask of the neighborhoods of nodes on a sharded',
    'learned_grf': 'edge_weight: got weights that require a gradient for a mask of walks on a sharded graph; accepted: ',
    'learned_against': 'edge_weight: got weights that require a gradient for flow="target_to_source" on a sharded graph',
    'learned_symmetric': 'symmetric: got True on a sharded graph',
    'edges_against': "edge_attr: got edge features for flow='target_to_source' on a sharded graph, whose processes hold the ",
    'edges_of_all': 'mask: got ShardLowRank(',
    'edges_kmip': "edge_attr: got edge features for flow='target_to_source' on a sharded graph, whose ",
    'models': 'module: got weight of different numbers in the processes',
    'models_of_equal_sums': 'module: got weight of different numbers in the processes',
    'models_in_another_order': 'module: got weight of different numbers in the processes',
    'tree': 'mask: got TreeMask on a sharded graph; accepted: AdjacencyMask, CausalMask, ',
    'subclass': 'mask: got OtherMask on a sharded graph',
    'missing': "left: got the attribute name 'nothing', which the data lacks",
    'route': "route: got 'blocks' for this mask on a sharded graph",
    'directed': 'edge_index: got edges whose weights differ between (',
    'softmax': 'mask: got Alternatives(heads=',
    'softmax_T': 'mask: got HaloRows(heads=',
    'coefficients': 'return_attention_weights: got True on a sharded graph; accepted: False',
    'kmip': 'deterministic: got True on a sharded graph; accepted: its default',
    'nan': 'x: got features with [192, 192] numbers that are not finite',
    'order': 'order: got ',
    'order_tie': 'order: got 4 in process 0 and 4 in process 1; accepted: shards in ascending order',
    'dense': 'graph: got ShardedGraph(num_nodes=24 of 48',
    'conv': 'conv: got ChebConv on a sharded graph; accepted: GATConv',
    'norm': 'norm1.module: got BatchNorm1d, which normalizes by the nodes of one process',
    'norm_of_conv': 'conv.nn: got BatchNorm1d, which normalizes by the nodes of one process',
    'graph_norm': 'norm1: got GraphNorm, which normalizes by the nodes of one process',
}


def test_errors(results: list[dict[str, Any]]) -> None:
    first, second = (process['errors'] for process in results)
    for name, message in ERRORS.items():
        assert first[name].startswith(f'ArgumentError: {message}'), (name, first[name])
        if name != 'dense':  # which says the number of the process
            assert first[name] == second[name]
    assert {name for name in first if name not in ERRORS} == {'no_file'}
    for error in (first['no_file'], second['no_file']):
        assert error.startswith('FileNotFoundError: ')


def test_edges_that_exceed_the_memory_of_a_process(results: list[dict[str, Any]]) -> None:
    for process in results:
        limited = process['limited']
        assert limited['edges'] == 1_500_000
        assert limited['alone'].startswith('MemoryError: ')
        assert limited['files'] == []  # they end with the tensors
        torch.testing.assert_close(limited['loss'], results[0]['limited']['whole'])


def test_errors_of_one_process_reach_the_other(results: list[dict[str, Any]]) -> None:
    first, second = (process['failures'] for process in results)
    assert second['layer'].startswith('ArgumentError: conv: got ChebConv on a sharded graph; accepted: GATConv')
    assert first['layer'] == f'ProcessFailed: process 0 of 2: process 1 has failed with {second["layer"]}'
    assert second['script'] == 'MemoryError: no memory'
    assert first['script'] == 'ProcessFailed: process 0 of 2: process 1 has failed with MemoryError: no memory'
    assert first['both'] == second['both'] == 'none'


def test_a_process_does_not_go_on_alone_after_an_error(results: list[dict[str, Any]]) -> None:
    first, second = (process['failures'] for process in results)
    assert second['first'] == 'MemoryError: of the user'
    assert first['first'] == 'ProcessFailed: process 0 of 2: process 1 has failed with MemoryError: of the user'
    assert first['second'].startswith(f'{first["first"]}. Create the ShardedGraph again')
    assert second['second'].startswith('ProcessFailed: process 1 of 2: process 0 did not continue after an error here. Create')
    for process in (first, second):
        torch.testing.assert_close(process['again'], process['whole'], rtol=1e-4, atol=1e-3)


def test_stored_walks_are_left_out_with_a_warning(results: list[dict[str, Any]]) -> None:
    for process in results:
        assert process['stored'].startswith('data: got stored walks (grf_index, ')


def test_processes_that_are_silent_or_end(results: list[dict[str, Any]]) -> None:
    for name, timeout in (('silent', 3), ('ended', 120)):
        assert results[0]['faults'][name] == (
            f'RuntimeError: process 0 of 2: another process has ended, or has not answered within {timeout} seconds'
        )
        assert results[0]['faults'][f'{name}, again'].endswith('Create the ShardedGraph again in all processes to continue')
    assert results[0]['faults']['created again'] == 'none'
