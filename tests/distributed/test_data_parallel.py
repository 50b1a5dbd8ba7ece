"""Gradients of DDP and FSDP on two processes, each with a batch of its own, against those of one process with both."""

from pathlib import Path

import pytest
import torch
from forked import Forked
from graphs import ring
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.data import Batch, Data

from pyg_topomask.masks import PowerSeriesMask
from pyg_topomask.nn import GRFAttention, HopAttention, KMIPAttention, MaskedLinearAttention

WORKER = """
import sys
sys.path[:0] = [sys.argv[3], sys.argv[4]]
import torch, torch.distributed as dist
from test_data_parallel import Model, batch, loss
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

folder, rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group('gloo', init_method=f'file://{folder}/rendezvous', rank=rank, world_size=2)
model = DistributedDataParallel(Model())
loss(model, *batch(rank)).backward()
gradients = {'ddp': [parameter.grad for parameter in model.module.parameters()]}
model = Model()
mesh = init_device_mesh('cpu', (2,))
for layer in model.layers:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
loss(model, *batch(rank)).backward()
gradients['fsdp'] = [parameter.grad.full_tensor() for parameter in model.parameters()]
if rank == 0:
    torch.save(gradients, f'{folder}/gradients.pt')
dist.destroy_process_group()
"""


class Model(Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        power_series = MaskedLinearAttention(8, 2, PowerSeriesMask(2))
        self.layers = ModuleList([GRFAttention(8, 2), HopAttention(8, 2), power_series, KMIPAttention(8, 2, k=2)])

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer(x, edge_index, batch=batch)
        return x


def batch(rank: int) -> tuple[Tensor, Tensor, Tensor]:
    data = Batch.from_data_list([Data(edge_index=ring(size), num_nodes=size) for size in ((4, 6), (7, 3))[rank]])
    return torch.randn(10, 8, generator=torch.Generator().manual_seed(rank)), data.edge_index, data.batch


def loss(model: Module, *inputs: Tensor) -> Tensor:
    value: Tensor = model(*inputs).square().mean()
    return value


@pytest.fixture(scope='module')
def gradients(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Tensor]]:
    folder, here = tmp_path_factory.mktemp('data_parallel'), Path(__file__).parent
    processes = [Forked('-c', WORKER, str(folder), str(rank), str(here), str(here.parent)) for rank in range(2)]
    ends = [process.wait(120) for process in processes]
    assert [status for status, _, _ in ends] == [0, 0], '\n'.join(stderr for _, _, stderr in ends)
    result: dict[str, list[Tensor]] = torch.load(folder / 'gradients.pt')
    return result


@pytest.mark.parametrize('kind', ['ddp', 'fsdp'])
def test_gradients_of_two_processes(gradients: dict[str, list[Tensor]], kind: str) -> None:
    model = Model()
    ((loss(model, *batch(0)) + loss(model, *batch(1))) / 2).backward()
    expected = [parameter.grad for parameter in model.parameters()]
    assert len(gradients[kind]) == len(expected) > 10
    for actual, gradient in zip(gradients[kind], expected, strict=True):
        torch.testing.assert_close(actual, gradient)
