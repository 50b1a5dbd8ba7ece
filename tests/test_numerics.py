"""Cancellation, zero degrees and short data types."""

import math
from collections.abc import Callable

import pytest
import torch
from graphs import ring, star
from grids import by_day
from small_layers import LAYERS, OF_EACH_KIND, example
from torch_geometric.data import Batch, Data

from pyg_topomask import Graph
from pyg_topomask.masks import (
    AdjacencyMask,
    DenseMask,
    GRFMask,
    HeatKernelMask,
    HopMask,
    Mask,
    PackingMask,
    PowerSeriesMask,
    RWGNKMask,
    SinDegreeMask,
    StochasticRPEMask,
)
from pyg_topomask.nn import GRFAttention, MaskedLinearAttention
from pyg_topomask.operators.base import MaskOperator, low_rank_operator
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.transforms import AddGraphRandomFeatures


def test_keys_that_cancel_weigh_nothing_on_every_route() -> None:
    generator = torch.Generator().manual_seed(0)
    q, v = (torch.randn(1000, 1, 4, generator=generator) for _ in range(2))
    k = torch.tensor([0.1, -0.1]).repeat(500).view(-1, 1, 1).expand(-1, 1, 4)
    data = Data(num_nodes=1000)
    mask = PackingMask()
    low_rank, features = (masked_linear_attention(q, k, v, mask(data), route) for route in ('low_rank', 'features'))
    batched = masked_linear_attention(
        torch.cat([q, q]), torch.cat([k, k]), torch.cat([v, v]), mask(Batch.from_data_list([data, data]))
    )
    assert not low_rank.any()
    assert not features.any()
    assert not batched.any()


@pytest.mark.parametrize('normalization', ['sym', 'rw'])
def test_gradient_of_zero_weights_is_finite(normalization: str) -> None:
    weight = torch.tensor([0.0, 0.0, 1.0, 1.0], requires_grad=True)
    graph = Graph.from_tensors(torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]), 4, weight)
    AdjacencyMask(normalization=normalization)(graph).matmul(torch.ones(4, 1, 1)).sum().backward()
    assert weight.grad is not None
    assert weight.grad.isfinite().all()


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_degrees_of_many_short_weights_do_not_stand_still(dtype: torch.dtype) -> None:
    edges = star(5000)
    graph = Graph.from_tensors(edges, 5001, torch.ones(edges.size(1), dtype=dtype))
    weight = graph.normalized_weight('rw')
    assert weight[edges[1] == 0].sum().item() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize('route', ['features', 'edges'])
def test_model_in_bfloat16_is_close_to_float32(route: str) -> None:
    torch.manual_seed(0)
    layer, x = GRFAttention(8, heads=2, route=route), torch.randn(6, 8)
    expected = layer(x, ring(6))
    actual = layer.to(torch.bfloat16)(x.to(torch.bfloat16), ring(6))
    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(actual.float(), expected, atol=0.05, rtol=0.05)


def test_entries_under_autocast_are_those_in_float32() -> None:
    with torch.autocast('cpu', dtype=torch.bfloat16):
        operator = GRFMask()(Data(edge_index=ring(6), num_nodes=6))
        assert operator.entries is not None
        inside = operator.entries().value
    outside = GRFMask()(Data(edge_index=ring(6), num_nodes=6)).entries
    assert outside is not None
    assert torch.equal(inside, outside().value)


@pytest.mark.parametrize(
    'make',
    [
        lambda: StochasticRPEMask(2),
        lambda: RWGNKMask(2, num_walks=None),
        lambda: HeatKernelMask(2, kind='adjacency'),
        lambda: HeatKernelMask(2, kind='random_walk_laplacian'),
        lambda: PowerSeriesMask(2),
        lambda: DenseMask(1, torch.linspace(0.0, 1.0, 49).view(7, 7)),
        lambda: SinDegreeMask(2),
    ],
)
def test_masks_under_autocast_are_those_in_float32(make: Callable[[], Mask]) -> None:
    torch.manual_seed(0)
    mask, data, x = make().eval(), Data(edge_index=ring(7), num_nodes=7), torch.randn(7, 2, 3)
    expected = mask(data).matmul(x)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        operator = mask(data)
        inside = operator.matmul(x)
    assert torch.equal(inside, expected)
    assert torch.equal(operator.matmul(x), expected)


@pytest.mark.parametrize('scale', [1e-170, 1.0, 1e160])
def test_normalised_laplacians_do_not_depend_on_the_scale_of_the_weights(scale: float) -> None:
    graph = Graph.from_tensors(torch.tensor([[0, 1], [1, 0]]), 2, torch.full((2,), scale, dtype=torch.float64))
    expected = torch.tensor([[[1 + math.exp(-2), 1 - math.exp(-2)], [1 - math.exp(-2), 1 + math.exp(-2)]]]).double() / 2
    for kind in ('normalized_laplacian', 'random_walk_laplacian'):
        matrix = HeatKernelMask(1, kind=kind, lam=1.0).double()(graph).to_dense()
        torch.testing.assert_close(matrix, expected, rtol=1e-6, atol=1e-6)


def test_sums_over_a_large_graph_are_as_precise_in_a_batch() -> None:
    size = 500_000
    x = torch.rand(size, 1, 1, generator=torch.Generator().manual_seed(0))
    graph = Graph.from_tensors(torch.empty(2, 0, dtype=torch.long), size + 1, batch=(torch.arange(size + 1) == size).long())
    ones = torch.ones(size + 1, 1, 1)
    total = low_rank_operator(graph, ones, ones).matmul(torch.cat([x, x[:1]]))[0].item()
    assert total == pytest.approx(x.double().sum().item(), rel=1e-6)


def test_walks_stored_under_another_normalization_are_refused() -> None:
    data = AddGraphRandomFeatures(normalization='sym')(Data(edge_index=ring(6), num_nodes=6))
    with pytest.raises(
        ValueError, match=r"^data: got walks stored with normalization='sym',.*normalization='rw'.*AddGraphRandomFeatures"
    ):
        GRFMask(normalization='rw')(data)


class Constant(Mask):
    """A mask of a user who did not say which settings prepare alike."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> float:
        return self.value

    def bind(self, graph: Graph, state: float) -> MaskOperator:
        ones = torch.ones(graph.num_nodes, 1, 1)
        return low_rank_operator(graph, state * ones, ones)


def test_masks_share_nothing_unless_they_say_so() -> None:
    graph = Graph.from_tensors(ring(3), 3)
    assert Constant(1.0)(graph).to_dense().unique().tolist() == [1.0]
    assert Constant(3.0)(graph).to_dense().unique().tolist() == [3.0]


@pytest.mark.parametrize('name', by_day(LAYERS, OF_EACH_KIND))
def test_training_goes_on_after_inference_mode_on_the_same_graph(name: str) -> None:
    layer, _, x, graph = example(name, 5, 7)
    with torch.inference_mode():
        layer(x, graph=graph)
    layer(x, graph=graph).square().sum().backward()
    assert all(parameter.grad is not None for parameter in layer.parameters() if parameter.requires_grad)


@pytest.mark.parametrize('make', [PowerSeriesMask, lambda heads: HopMask(heads) * PowerSeriesMask(heads)])
def test_training_goes_on_after_inference_mode_on_a_sparse_graph(make: Callable[[int], Mask]) -> None:
    layer, graph, x = MaskedLinearAttention(16, 4, make(4)), Graph.from_tensors(ring(100), 100), torch.randn(100, 16)
    with torch.inference_mode():
        layer(x, graph=graph)
    layer(x, graph=graph).square().sum().backward()
    assert layer.lin_v.weight.grad.any()


def test_learned_edge_weights_take_several_steps_on_the_same_graph() -> None:
    weight = torch.ones(12, requires_grad=True)
    graph = Graph.from_tensors(ring(6), 6, weight)
    for _ in range(2):
        AdjacencyMask()(graph).matmul(torch.ones(6, 1, 1)).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [2.0] * 12


def test_modulation_may_be_a_list() -> None:
    torch.testing.assert_close(GRFMask(max_walk_length=1, modulation=[1, 2]).f, torch.tensor([[1.0, 2.0]]))


@pytest.mark.parametrize('dtype', [torch.int16, torch.uint8, torch.bool])
def test_edges_of_other_integers_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises(ValueError, match=r'^edge_index: .*int32 and int64'):
        Graph.from_tensors(torch.zeros(2, 1).to(dtype), 2)
