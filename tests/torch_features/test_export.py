"""Exported programs against eager layers, also in a process that has bound no mask."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from graphs import ring
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Batch, Data

from pyg_topomask import Graph
from pyg_topomask.errors import ArgumentError
from pyg_topomask.masks import AdjacencyMask, PackingMask, PowerSeriesMask
from pyg_topomask.nn import GRFSoftmaxAttention, KMIPAttention, MaskedLinearAttention
from pyg_topomask.ops.sparse_matmul import SparseStructure
from pyg_topomask.structures import _STRUCTURES, SumStructure, structure_from_key

pytestmark = pytest.mark.filterwarnings('ignore::DeprecationWarning', 'ignore::FutureWarning')

LAYERS: dict[str, Callable[[], Module]] = {
    'power_series': lambda: MaskedLinearAttention(4, 2, PowerSeriesMask(2)),
    'sum': lambda: MaskedLinearAttention(4, 2, 0.5 * AdjacencyMask(2) + PackingMask()),
    'grf_softmax': lambda: GRFSoftmaxAttention(4, 2),
    'kmip': lambda: KMIPAttention(4, 2, k=2),
}
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
    graph = Graph.from_data(Batch.from_data_list([Data(edge_index=ring(n), num_nodes=n) for n in (3, 5)]))
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
    command = [sys.executable, '-W', 'ignore', '-c', LOAD, str(tmp_path / 'program.pt2'), str(tmp_path / 'example.pt')]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_structures_from_keys() -> None:
    structure = SumStructure((SparseStructure(True), SumStructure((SparseStructure(),), (6,))), (6, 6))
    key = structure.key
    _STRUCTURES.clear()
    assert structure_from_key(key) == structure
    for unknown in ('os.path.join()', f'{key}#1', ''):
        with pytest.raises(ArgumentError, match='structure'):
            structure_from_key(unknown)
