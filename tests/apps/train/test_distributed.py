"""Two processes train as one does; and parts of a large graph, whose masks are those of the parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from forked import Forked
from grids import by_day
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import ClusterData, ClusterLoader, NeighborLoader, RandomNodeLoader
from torch_geometric.nn import GCNConv
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE
from torch_geometric.utils import k_hop_subgraph

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.nn import GRFAttention, TopoGPSConv
from pyg_topomask.transforms import AddGraphRandomFeatures

CONFIG = Path(__file__).parents[3] / 'graphgps_configs' / 'digits.yaml'

#: Three steps on the same eight graphs: in each of two processes on its half of them, and in the first one, on its own, on all.
SCRIPT = """
import copy
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch_geometric.data import Batch
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loss import compute_loss

import pyg_topomask.graphgym
from pyg_topomask.apps.datasets import DigitsGrid
from pyg_topomask.graphgym.names.networks import TopoGPSModel
from pyg_topomask.graphgym.configuration import load_config
from pyg_topomask.transforms import AddGraphRandomFeatures

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
rank = int(sys.argv[3])
dist.init_process_group('gloo', init_method=f'file://{sys.argv[2]}/store', rank=rank, world_size=2)
options = 'gt.layers 2 gt.n_heads 2 gt.dim_hidden 8 gnn.dim_inner 8 gt.layer_norm True gt.batch_norm False'


def make(more, seed):
    load_config(sys.argv[1], [*options.split(), *more.split()])
    cfg.share.dim_in, cfg.share.dim_out, cfg.share.dim_edge = 3, 10, 2
    torch.manual_seed(seed)
    return TopoGPSModel(3, 10)


stored = [AddGraphRandomFeatures()(graph) for graph in DigitsGrid()[:8]]


def batch_of(graphs):
    return Batch.from_data_list(graphs).apply(lambda value: value.double() if value.is_floating_point() else value)


def train(model, graphs):
    losses = []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        loss, _ = compute_loss(*model(batch_of([graph.clone() for graph in graphs])))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


model = make('topomask.GRF.feature_map favor', rank)  # weights and projections of their own, until they are broadcast
first = copy.deepcopy(model.state_dict())
alone = copy.deepcopy(model)
losses = train(DistributedDataParallel(model), stored[4 * rank : 4 * rank + 4])
dist.all_reduce(losses)
reference = train(alone, stored)

drawing = make('topomask.GRF.resample forward', 0)
same = [DigitsGrid()[index] for index in range(2)]
drawn = []
for _ in range(2):
    torch.manual_seed(100 + rank)
    drawn.append(drawing(batch_of([graph.clone() for graph in same]))[0].detach())
result = {'losses': losses / 2, 'reference': reference, 'first': first, 'last': model.state_dict(), 'drawn': drawn}
torch.save({**result, 'alone': alone.state_dict()}, f'{sys.argv[2]}/{rank}.pt')
dist.destroy_process_group()
"""


#: The same with layers of GraphGPS that attend as ours do: each process has the batch of two graphs of its own.
HOOKED = """
import copy
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch_geometric.data import Batch, Data

sys.path.insert(0, sys.argv[1])
import graphgps
import pyg_topomask.graphgym
from torch_geometric.graphgym.config import cfg, set_cfg

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
rank = int(sys.argv[3])
dist.init_process_group('gloo', init_method=f'file://{sys.argv[2]}/store', rank=rank, world_size=2)
set_cfg(cfg)
cfg.topomask.GRF.num_walks = 4


def graph(seed):
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(6, (2, 12), generator=generator)
    return Data(x=torch.randn(6, 8, generator=generator), edge_index=torch.cat([edges, edges.flip(0)], dim=1))


def train(model, graphs):
    losses = []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        loss = (model(Batch.from_data_list(graphs)).x - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


torch.manual_seed(rank)
layer = sys.modules['graphgps.network.gps_model'].GPSLayer
model = torch.nn.Sequential(*(layer(8, 'GCN', 'GRF', 2, layer_norm=True, batch_norm=False) for _ in range(2)))
alone = copy.deepcopy(model)
graphs = [graph(seed) for seed in range(4)]
losses = train(DistributedDataParallel(model), graphs[2 * rank : 2 * rank + 2])
dist.all_reduce(losses)
reference = train(alone, graphs)
attends = model[0].topo_attn is not None
result = {'losses': losses / 2, 'reference': reference, 'attends': attends, 'last': model.state_dict()}
torch.save({**result, 'alone': alone.state_dict()}, f'{sys.argv[2]}/{rank}.pt')
dist.destroy_process_group()
"""


def run_both(folder: Path, script: str, argument: Path) -> list[dict[str, Any]]:
    """Runs a script in two processes, and returns what they saved."""
    (folder / 'script.py').write_text(script)
    processes = [Forked(str(folder / 'script.py'), str(argument), str(folder), str(rank)) for rank in range(2)]
    ends = [process.wait() for process in processes]
    assert [status for status, _, _ in ends] == [0, 0], '\n'.join(stderr for _, _, stderr in ends)
    return [torch.load(folder / f'{rank}.pt', weights_only=True) for rank in range(2)]


@pytest.fixture(scope='module')
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return run_both(tmp_path_factory.mktemp('distributed'), SCRIPT, CONFIG)


@pytest.mark.nightly
def test_layers_of_graphgps(tmp_path: Path) -> None:
    first, second = run_both(tmp_path, HOOKED, Path(__file__).parents[2] / 'graphgym' / 'graphgps_standin')
    assert first['attends']
    torch.testing.assert_close(first['losses'], first['reference'], rtol=1e-9, atol=0)
    assert first['reference'][2] < first['reference'][0]
    for name, value in first['alone'].items():
        if isinstance(value, Tensor):
            torch.testing.assert_close(first['last'][name], value, rtol=1e-7, atol=1e-10)
            assert torch.equal(first['last'][name], second['last'][name]), name


def test_two_processes_are_one(results: list[dict[str, Any]]) -> None:
    first, second = results
    torch.testing.assert_close(first['losses'], first['reference'], rtol=1e-9, atol=0)
    assert first['reference'][2] < first['reference'][0]
    projections = [name for name, _ in first['first'].items() if 'feature_map' in name]
    assert any(not torch.equal(first['first'][name], second['first'][name]) for name in projections)
    for name, value in first['alone'].items():
        torch.testing.assert_close(first['last'][name], value, rtol=1e-7, atol=1e-10)
        assert torch.equal(first['last'][name], second['last'][name]), name


def test_walks_drawn_in_the_forward_pass_follow_the_seed_of_their_process(results: list[dict[str, Any]]) -> None:
    first, second = results
    assert torch.equal(*first['drawn'])
    assert torch.equal(*second['drawn'])
    assert not torch.allclose(first['drawn'][0], second['drawn'][0])


def large_graph(num_nodes: int = 20_000) -> Data:
    generator = torch.Generator().manual_seed(0)
    nodes = torch.arange(num_nodes)
    ring = torch.stack([nodes, (nodes + 1) % num_nodes])
    chords = torch.randint(num_nodes, (2, num_nodes), generator=generator)
    edge_index = torch.cat([ring, ring.flip(0), chords, chords.flip(0)], dim=1)
    return Data(x=torch.randn(num_nodes, 8, generator=generator), edge_index=edge_index)


def subgraphs(kind: str, data: Data) -> Any:
    num_nodes = int(data.num_nodes)
    if kind == 'random':
        return RandomNodeLoader(data, num_parts=10)
    if kind == 'partition':
        return [data.subgraph(nodes) for nodes in torch.arange(num_nodes).chunk(20)]
    if kind == 'neighborhoods':
        hops = [k_hop_subgraph(seeds, 2, data.edge_index)[0] for seeds in torch.arange(400).chunk(4)]
        return [data.subgraph(nodes) for nodes in hops]
    if kind == 'neighbor':
        if not (WITH_PYG_LIB or WITH_TORCH_SPARSE):
            pytest.skip('NeighborLoader needs pyg-lib or torch-sparse')
        return NeighborLoader(data, [5, 5], batch_size=200, input_nodes=torch.arange(400))
    try:
        return ClusterLoader(ClusterData(data, num_parts=20, log=False), batch_size=2)
    except ImportError:
        pytest.skip('ClusterData needs METIS, from pyg-lib or torch-sparse')


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(
    'kind', by_day(['random', 'partition', 'neighborhoods', 'neighbor', 'cluster'], ['partition', 'neighborhoods'])
)
def test_masks_of_parts_of_a_large_graph(kind: str) -> None:
    torch.manual_seed(0)
    layer = TopoGPSConv(8, GCNConv(8, 8), attn=GRFAttention(8, heads=2), norm='layer_norm')
    data, seen = large_graph(), 0
    for subgraph in subgraphs(kind, data):
        assert 0 < subgraph.num_nodes < data.num_nodes
        out: Tensor = layer(subgraph.x, subgraph.edge_index, graph=Graph.from_data(subgraph))
        alone = Graph.from_tensors(subgraph.edge_index.clone(), subgraph.num_nodes)
        assert torch.equal(out, layer(subgraph.x, subgraph.edge_index, graph=alone))
        out.square().mean().backward()
        seen += subgraph.num_nodes
        if seen > 5000:
            break
    assert all(bool(parameter.grad.isfinite().all()) for parameter in layer.attn.parameters() if parameter.grad is not None)


def test_training_on_parts_of_a_large_graph() -> None:
    data = large_graph(2_000)
    source, target = data.edge_index
    data.y = torch.zeros(2_000).index_add_(0, source, data.x[target, 0])
    layer = TopoGPSConv(8, None, attn=GRFAttention(8, heads=2, resample='forward'), norm='layer_norm')
    model = torch.nn.ModuleList([layer, torch.nn.Linear(8, 1)])
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    modulation = layer.attn.mask.modulation.detach().clone()
    epochs = []
    for _ in range(12):
        losses = []
        for subgraph in subgraphs('partition', data):
            out = model[1](layer(subgraph.x, subgraph.edge_index, graph=Graph.from_data(subgraph))).squeeze(-1)
            loss = (out - subgraph.y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        epochs.append(sum(losses) / len(losses))
    assert epochs[-1] < 0.9 * epochs[0]
    assert not torch.allclose(layer.attn.mask.modulation, modulation)


@pytest.mark.parametrize('kind', ['random', 'partition', 'neighborhoods'])
def test_walks_of_the_whole_are_not_taken_for_those_of_a_part(kind: str) -> None:
    stored = AddGraphRandomFeatures()(large_graph(2_000))
    layer = GRFAttention(8, heads=2)
    subgraph = next(iter(subgraphs(kind, stored)))
    with pytest.raises(ValueError, match='run AddGraphRandomFeatures again'):
        layer(subgraph.x, subgraph.edge_index, graph=Graph.from_data(subgraph))
