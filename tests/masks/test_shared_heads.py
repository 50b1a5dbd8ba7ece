"""A mask of one head serves attention with many: as head by head, with the sum of the gradients."""

from collections.abc import Callable

import pytest
import torch
from graphs import small_graph
from torch import Tensor

from pyg_topomask import masks, transforms
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask
from pyg_topomask.ops import masked_linear_attention

MASKS: dict[str, Callable[[], Mask]] = {
    'adjacency': masks.AdjacencyMask,
    'asymmetric GRF': lambda: masks.GRFMask(asymmetric=True),
    'exact RWGNK': lambda: masks.RWGNKMask(num_walks=None, alpha=1.0),
    'GRF': masks.GRFMask,
    'heat': masks.HeatKernelMask,
    'hypercube': lambda: masks.HypercubeMask(dim=3),
    'learned features': lambda: masks.LearnedFeaturesMask(num_nodes=8, rank=2),
    'power series': lambda: masks.PowerSeriesMask(order=3),
    'RWGNK': lambda: masks.RWGNKMask(alpha=1.0),
    'sin degree': masks.SinDegreeMask,
    'stochastic RPE': masks.StochasticRPEMask,
    'Toeplitz': lambda: masks.ToeplitzMask(window=1),
    'Toeplitz, few offsets': lambda: masks.ToeplitzMask(window=1, beyond='zero'),
    'tree': masks.TreeMask,
    'tree distance': lambda: masks.TreeMask(kind='distance'),
}
ROUTES = ('features', 'edges', 'low_rank')


def offered(mask: Mask, graph: Graph) -> list[str]:
    operator = mask(graph)
    available = {
        'features': True,
        'edges': operator.entries is not None,
        'low_rank': operator.low_rank is not None,
    }
    return [route for route in ROUTES if available[route]]


@pytest.mark.parametrize('name', MASKS)
def test_one_head_serves_all(name: str) -> None:
    data = small_graph()
    if 'tree' in name:
        data.edge_index, data.edge_weight = torch.tensor([[0, 1, 1, 3, 4], [1, 2, 3, 4, 5]]), None
        data.edge_index = torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1)
        data = transforms.AddForest()(data)
    size = 8 if name in ('hypercube', 'learned features') else 6
    data.num_nodes, data.grid_shape = size, torch.tensor([[2, size // 2]])
    mask, graph = MASKS[name]().double(), Graph.from_data(data)
    generator = torch.Generator().manual_seed(0)
    q, k, v, pull = (torch.rand(size, 3, 2, generator=generator, dtype=torch.float64) + 0.1 for _ in range(4))
    learned = [parameter for parameter in mask.parameters() if parameter.requires_grad]

    def run(route: str, heads: slice) -> tuple[Tensor, ...]:
        leaves = [tensor[:, heads].clone().requires_grad_() for tensor in (q, k, v)]
        out = masked_linear_attention(*leaves, mask(graph), route)
        return out, *torch.autograd.grad((out * pull[:, heads]).sum(), [*leaves, *learned])

    for route in offered(mask, graph):
        together, apart = run(route, slice(0, 3)), [run(route, slice(head, head + 1)) for head in range(3)]
        for joint, *heads in zip(together, *apart, strict=True):
            shared = joint.shape == heads[0].shape
            torch.testing.assert_close(joint, sum(heads[1:], heads[0]) if shared else torch.cat(heads, dim=1))
