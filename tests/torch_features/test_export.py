"""Exported programs against eager layers, also in a process that has bound no mask."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from forked import Forked
from graphs import ring
from grids import by_day
from torch import Tensor
from torch.export import Dim
from torch.nn import Module
from torch_geometric.data import Batch, Data

from pyg_topomask import Graph
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.masks import AdjacencyMask, GRFMask, HeatKernelMask, PackingMask, PowerSeriesMask, ToeplitzMask
from pyg_topomask.nn import (
    GRFAttention,
    GRFSoftmaxAttention,
    HopAttention,
    KMIPAttention,
    MaskedLinearAttention,
    MaskedSoftmaxAttention,
    RWGNKAttention,
    SinDegreeAttention,
)
from pyg_topomask.operators import description
from pyg_topomask.operators.base import Sum
from pyg_topomask.operators.description import build, describe
from pyg_topomask.operators.sparse import Sparse
from pyg_topomask.transforms import AddGridShape

pytestmark = pytest.mark.filterwarnings('ignore::DeprecationWarning', 'ignore::FutureWarning')

LAYERS: dict[str, Callable[[], Module]] = {
    'power_series': lambda: MaskedLinearAttention(4, 2, PowerSeriesMask(2)),
    'sum': lambda: MaskedLinearAttention(4, 2, 0.5 * AdjacencyMask(2) + PackingMask()),
    'grf_softmax': lambda: GRFSoftmaxAttention(4, 2),
    'kmip': lambda: KMIPAttention(4, 2, k=2),
    'toeplitz': lambda: MaskedLinearAttention(4, 2, ToeplitzMask(2, 1)),
}
#: Layers whose programs take the graph as an input.
ANY_GRAPH: dict[str, Callable[[], Module]] = {
    'linear': lambda: MaskedLinearAttention(4, 2),
    'adjacency': lambda: MaskedLinearAttention(4, 2, AdjacencyMask(2, normalization='sym')),
    'power_series': lambda: MaskedLinearAttention(4, 2, PowerSeriesMask(2)),
    'hop': lambda: HopAttention(4, 2),
    'sums': lambda: HopAttention(4, 2, f='geometric', sums=True),
    'sin_degree': lambda: SinDegreeAttention(4, 2),
    'grf': lambda: GRFAttention(4, 2),
    'grf_of_weights': lambda: MaskedLinearAttention(
        4, 2, GRFMask(2, 3, max_walk_length=3, walk_length='fixed:2', transition='weight', normalization=None, seed=5)
    ),
    'sum': lambda: MaskedLinearAttention(4, 2, 0.5 * AdjacencyMask(2) + PackingMask()),
    'rwgnk': lambda: RWGNKAttention(4, 2),
    'softmax': lambda: MaskedSoftmaxAttention(4, 2, AdjacencyMask(2)),
    'kmip': lambda: KMIPAttention(4, 2, k=2),
}
#: What differs from the others in its mask alone.
OF_A_KIND = ('sum', 'sin_degree', 'linear', 'softmax', 'rwgnk', 'adjacency', 'grf', 'hop')
LOAD = """
import sys, torch, pyg_topomask.nn
program = torch.export.load(sys.argv[1])
x, expected = torch.load(sys.argv[2])
torch.testing.assert_close(program.module()(x), expected)
"""


class OnGraph(Module):
    def __init__(self, layer: Module, graph: Graph) -> None:
        super().__init__()
        self.layer, self.graph = layer, graph

    def forward(self, x: Tensor) -> Any:
        return self.layer(x, graph=self.graph)


def on_graph(name: str) -> tuple[Module, Tensor]:
    torch.manual_seed(0)
    graph = Graph.from_data(Batch.from_data_list([AddGridShape((n,))(Data(edge_index=ring(n), num_nodes=n)) for n in (3, 5)]))
    module, x = OnGraph(LAYERS[name]().eval(), graph), torch.randn(8, 4)
    module(x)  # prepares the graph
    return module, x


@pytest.mark.parametrize('name', LAYERS)
def test_a_prepared_graph(name: str) -> None:
    module, x = on_graph(name)
    program = torch.export.export(module, (x,), strict=False)
    assert 'attend_' in program.graph_module.print_readable(print_output=False)
    torch.testing.assert_close(program.module()(2 * x), module(2 * x))


def test_strict() -> None:
    module, x = on_graph('sum')
    torch.testing.assert_close(torch.export.export(module, (x,), strict=True).module()(2 * x), module(2 * x))


def test_in_another_process(tmp_path: Path) -> None:
    module, x = on_graph('sum')
    torch.export.save(torch.export.export(module, (x,), strict=False), tmp_path / 'program.pt2')
    torch.save((x, module(x).detach()), tmp_path / 'example.pt')
    status, _, stderr = Forked('-c', LOAD, str(tmp_path / 'program.pt2'), str(tmp_path / 'example.pt')).wait()
    assert status == 0, stderr


class OnInputs(Module):
    def __init__(self, layer: Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor, batch: Tensor | None = None) -> Any:
        return self.layer(x, edge_index, edge_weight, batch)


def inputs(*sizes: int) -> tuple[Tensor, ...]:
    """Undirected weighted graphs with random edges, which touch each node."""
    batch = Batch.from_data_list([Data(edge_index=ring(n), num_nodes=n) for n in sizes])
    first = batch.edge_index[:, torch.randperm(batch.num_edges)[: 2 * sum(sizes)]]
    edge_index = torch.cat([first, first.flip(0)], dim=1)
    weight = torch.rand(first.size(1)).repeat(2) + 0.1
    return torch.randn(sum(sizes), 4), edge_index, weight, *([batch.batch] if len(sizes) > 1 else [])


def exported(module: Module, example: tuple[Tensor, ...]) -> torch.export.ExportedProgram:
    nodes, edges = Dim('nodes', min=0, max=2**20), Dim('edges', min=0)  # k-MIP attention needs a largest number
    shapes = ({0: nodes}, {1: edges}, {0: edges}, {0: nodes})
    return torch.export.export(module, example, dynamic_shapes=shapes[: len(example)], strict=False)


@pytest.mark.filterwarnings('ignore:max_walk_length is', 'ignore:The spectral radius')
@pytest.mark.parametrize(
    'name', [pytest.param(name, marks=[pytest.mark.nightly] if name in OF_A_KIND else []) for name in ANY_GRAPH]
)
def test_any_graph(name: str) -> None:
    torch.manual_seed(0)
    module = OnInputs(ANY_GRAPH[name]().eval())
    program = exported(module, inputs(4, 5)).module()
    for sizes in ((3, 7, 6), (8,), (2, 9)):
        given = inputs(*sizes)
        batch = given[3] if len(sizes) > 1 else torch.zeros(sum(sizes), dtype=torch.long)
        torch.testing.assert_close(program(*given[:3], batch), module(*given))
    for num_nodes, num_edges in ((0, 0), (1, 0), (1, 2), (5, 0)):
        nothing = torch.randn(num_nodes, 4), torch.zeros(2, num_edges, dtype=torch.long), torch.ones(num_edges)
        batch = torch.zeros(num_nodes, dtype=torch.long)
        torch.testing.assert_close(program(*nothing, batch), module(*nothing, batch))
    x, edge_index, *others = inputs(4, 5)
    if name not in ('linear', 'kmip'):  # which read no edges
        with pytest.raises(ArgumentError, match='edge_index: got nodes'):
            program(x, edge_index + 5, *others)


def test_gradients_of_a_program_with_sums() -> None:
    layer, (x, edge_index, _) = ANY_GRAPH['sums'](), inputs(6)
    program = torch.export.export(layer, (x, edge_index), strict=False).module()
    of_program, of_layer = (
        torch.autograd.grad(each(x, edge_index).square().sum(), list(each.parameters())) for each in (program, layer)
    )
    torch.testing.assert_close(of_program, of_layer)


@pytest.mark.filterwarnings('ignore:max_walk_length is', 'ignore:The spectral radius')
@pytest.mark.parametrize('name', by_day([*ANY_GRAPH], ['grf']))
def test_any_single_graph(name: str) -> None:
    module = OnInputs(ANY_GRAPH[name]().eval())
    program = exported(module, inputs(9)).module()
    for given in (inputs(12), (torch.randn(0, 4), torch.zeros(2, 0, dtype=torch.long), torch.ones(0))):
        torch.testing.assert_close(program(*given), module(*given))


@pytest.mark.filterwarnings('ignore:max_walk_length is', 'ignore:The spectral radius')
@pytest.mark.parametrize('name', by_day([*ANY_GRAPH], ['hop', 'rwgnk']))
def test_one_size(name: str) -> None:
    """As it is typed. torch 2.13 raised GuardOnDataDependentSymNode where the numbers of entries were compared."""
    layer, (x, edge_index, _) = ANY_GRAPH[name]().eval(), inputs(6)
    program = torch.export.export(layer, (x, edge_index)).module()
    torch.testing.assert_close(program(2 * x, edge_index), layer(2 * x, edge_index))


@pytest.mark.parametrize(
    'layer',
    [
        lambda: MaskedLinearAttention(4, 2, HeatKernelMask(2)),
        lambda: MaskedLinearAttention(4, 2, ToeplitzMask(2, 1)),
        lambda: GRFSoftmaxAttention(4, 2),
    ],
)
def test_masks_that_need_a_prepared_graph(layer: Callable[[], Module]) -> None:
    with pytest.raises(ArgumentError, match=r'mask: got .* on a new graph'):
        exported(OnInputs(layer().eval()), inputs(4, 5))


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which('g++') is None, reason='AOTInductor needs g++')
def test_compiled_ahead_of_time(tmp_path: Path) -> None:
    module = OnInputs(ANY_GRAPH['adjacency']().eval())
    with torch.no_grad():
        package = torch._inductor.aoti_compile_and_package(exported(module, inputs(4, 5)), package_path=str(tmp_path / 'm.pt2'))
        compiled = torch._inductor.aoti_load_package(package)
        for sizes in ((3, 7, 6), (2, 9)):
            given = inputs(*sizes)
            torch.testing.assert_close(compiled(*given), module(*given))


def test_operators_from_their_text() -> None:
    pattern = SparsePattern.from_sorted(torch.tensor([0]), torch.tensor([1]), 2, 2)
    one = Sparse(torch.tensor([[2.0]]), pattern)
    operator = Sum((one.T, Sum((one, one))))
    tensors, text = describe(operator)
    description._parsed.cache_clear()
    x = torch.eye(2).unsqueeze(1)
    assert torch.equal(build(text, tensors).apply(x), operator.apply(x))
    with pytest.raises(ArgumentError, match='operator'):
        build(text.replace('.Sum', '.Other'), tensors)
