"""Second derivatives against numerical ones in float64, on graphs of different sizes."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
import torch
from graphs import path, ring
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call
from torch.nn import Module
from torch_geometric.data import Batch, Data

from pyg_topomask import Graph
from pyg_topomask.masks import (
    AdjacencyMask,
    CausalMask,
    GRFMask,
    HeatKernelMask,
    Mask,
    PackingMask,
    PowerSeriesMask,
    RWGNKMask,
    SinDegreeMask,
    ToeplitzMask,
    TreeMask,
)
from pyg_topomask.nn import KMIPAttention
from pyg_topomask.operators.forms import Entries
from pyg_topomask.ops import masked_linear_attention, masked_softmax_attention
from pyg_topomask.ops.softmax_entries import attend_softmax

MASKS: dict[str, tuple[Callable[[], Mask], str]] = {
    'packing': (PackingMask, 'low_rank blocks features'),
    'sin_degree': (lambda: SinDegreeMask(2), 'low_rank blocks features'),
    'grf': (lambda: GRFMask(2), 'edges blocks features'),
    'asymmetric_grf': (lambda: GRFMask(2, asymmetric=True), 'edges features'),
    'adjacency': (lambda: AdjacencyMask(2), 'edges blocks features'),
    'power_series': (lambda: PowerSeriesMask(2), 'blocks features'),
    'heat_kernel': (lambda: HeatKernelMask(2), 'blocks features'),
    'rwgnk': (lambda: RWGNKMask(2), 'auto features'),
    'toeplitz': (lambda: ToeplitzMask(2, 1), 'blocks features'),
    'periodic': (lambda: ToeplitzMask(2, 1, window=1, initial=torch.arange(1.0, 4.0), periodic=True), 'features'),
    'tree': (lambda: TreeMask(2), 'blocks features'),
    'tree_rings': (lambda: TreeMask(2, 'distance', max_distance=2, method='rings'), 'features'),
    'tree_fft': (lambda: TreeMask(2, 'distance', max_distance=2, method='fft'), 'features'),
    'causal': (lambda: CausalMask(2), 'features'),
    'sum': (lambda: 0.5 * AdjacencyMask(2) + PackingMask(), 'features'),
    'hadamard': (lambda: AdjacencyMask(2) * SinDegreeMask(2), 'edges features'),
}
#: By day each kind of operator by its first route, and each route.
SAME_KIND = {'sin_degree', 'asymmetric_grf', 'adjacency', 'periodic'}
DAILY = {(name, routes.split()[0]) for name, (_, routes) in MASKS.items() if name not in SAME_KIND}
DAILY |= {('power_series', 'features'), ('grf', 'blocks')}
CASES = [
    pytest.param(name, route, marks=[] if (name, route) in DAILY else [pytest.mark.nightly])
    for name, (_, routes) in MASKS.items()
    for route in routes.split()
]


def graphs(name: str, *sizes: int) -> Graph:
    edges = path if name.startswith(('tree', 'toeplitz', 'periodic')) else ring
    data = [Data(edge_index=edges(n), num_nodes=n, grid_shape=torch.tensor([[n]])) for n in sizes]
    return Graph.from_data(Batch.from_data_list(data) if len(data) > 1 else data[0])


class Attention(Module):
    def __init__(self, mask: Mask, attend: Callable[..., Tensor], *arguments: Any) -> None:
        super().__init__()
        self.mask, self.attend, self.arguments = mask, attend, arguments

    def forward(self, graph: Graph, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.attend(q, k, v, self.mask(graph), *self.arguments)


def assert_twice_differentiable(attention: Attention, graph: Graph) -> None:
    torch.manual_seed(0)
    attention.double()
    names, learned = zip(*attention.named_parameters(), strict=True) if list(attention.parameters()) else ((), ())
    q, k = (torch.rand(graph.num_nodes, 2, 2, dtype=torch.float64) + 0.1 for _ in range(2))
    inputs = (q, k, torch.randn(graph.num_nodes, 2, 2, dtype=torch.float64), *(x.detach() + 0.1 for x in learned))

    def function(q: Tensor, k: Tensor, v: Tensor, *parameters: Tensor) -> Tensor:
        return functional_call(attention, dict(zip(names, parameters, strict=True)), (graph, q, k, v))

    leaves = [x.clone().requires_grad_() for x in inputs]
    assert gradcheck(function, leaves, fast_mode=True)
    assert gradgradcheck(function, leaves, fast_mode=True)


@pytest.mark.parametrize(('name', 'route'), CASES)
def test_linear_attention(name: str, route: str) -> None:
    assert_twice_differentiable(Attention(MASKS[name][0](), masked_linear_attention, route), graphs(name, 2, 4))


@pytest.mark.parametrize('name', ['packing', 'sin_degree'])
def test_linear_attention_in_one_graph(name: str) -> None:
    assert_twice_differentiable(Attention(MASKS[name][0](), masked_linear_attention, 'low_rank'), graphs(name, 4))


def test_softmax_attention() -> None:
    assert_twice_differentiable(Attention(GRFMask(2, positive=True), masked_softmax_attention), graphs('grf', 2, 4))


def test_the_coefficients_of_softmax_attention() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 6, 2, 2, dtype=torch.float64)
    pattern = GRFMask(2, positive=True)(graphs('grf', 2, 4)).entries().pattern

    def function(q: Tensor, k: Tensor, v: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        return attend_softmax(q, k, v, Entries(pattern, value))[:2]

    leaves = [x.requires_grad_() for x in (q, k, v, torch.rand(2, pattern.nnz, dtype=torch.float64) + 0.5)]
    assert gradcheck(function, leaves, fast_mode=True)
    assert gradgradcheck(function, leaves, fast_mode=True)


@pytest.mark.parametrize('diversity', [0.0, 0.5])
def test_kmip_attention_while_the_selected_keys_stay(diversity: float) -> None:
    torch.manual_seed(0)
    layer, graph = KMIPAttention(4, 2, k=2).double(), graphs('kmip', 3, 5)
    x = torch.randn(8, 4, dtype=torch.float64, requires_grad=True)
    assert gradgradcheck(lambda x: layer(x, graph=graph), [x], fast_mode=True)
    if diversity:  # its gradient is no derivative of the output: the gradients of both, added
        layer.diversity = diversity
        both, *expected = (torch.autograd.grad(y.sum(), x, create_graph=True)[0] for y in parts(layer, x, graph))
        torch.testing.assert_close(both, sum(expected, torch.zeros_like(both)))
        assert both.requires_grad


def parts(layer: KMIPAttention, x: Tensor, graph: Graph) -> list[Tensor]:
    """The output of the layer with its term, the output without it, and the term."""
    terms: list[Tensor] = []

    def unevenness(*arguments: Any) -> Tensor:
        terms.append(KMIPAttention._unevenness(layer, *arguments))
        return terms[0]

    with mock.patch.object(layer, '_unevenness', unevenness):
        with_term = layer(x, graph=graph)
    return [with_term, layer.eval()(x, graph=graph), layer.diversity * terms[0]]


def test_edge_weights() -> None:
    weight = torch.rand(8, dtype=torch.float64) + 0.5
    x = torch.rand(4, 1, 2, dtype=torch.float64) + 0.1

    def function(weight: Tensor, x: Tensor) -> Tensor:
        return masked_linear_attention(x, x, x, PowerSeriesMask()(Graph(ring(4), 4, weight)))

    assert gradgradcheck(function, [weight.requires_grad_(), x.requires_grad_()], fast_mode=True)


def test_third_derivatives() -> None:
    mask, x = AdjacencyMask().double()(graphs('adjacency', 2, 4)), torch.rand(6, 1, 2, dtype=torch.float64) + 0.1

    def gradient(x: Tensor) -> Tensor:
        out = masked_linear_attention(x, x, x, mask, 'edges').square().sum()
        return torch.autograd.grad(out, x, create_graph=True)[0]

    assert gradgradcheck(gradient, [x.requires_grad_()], fast_mode=True)


def test_first_derivatives_use_the_fast_path() -> None:
    q = torch.rand(6, 2, 2, requires_grad=True)
    out = masked_linear_attention(q, q, q, PowerSeriesMask(2)(graphs('power_series', 2, 4)), 'features')
    with mock.patch('torch.func.grad', side_effect=AssertionError):
        (grad,) = torch.autograd.grad(out.sum(), q, create_graph=True)
        with pytest.raises(AssertionError):
            torch.autograd.grad(grad.sum(), q)


def test_a_row_without_weight_has_no_second_derivative() -> None:
    mask = AdjacencyMask().double()(Graph(torch.tensor([[0], [1]]), 2))
    x = torch.zeros(2, 1, 2, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(masked_linear_attention(x, x, x, mask).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(grad.sum(), x)
    assert not grad.any()
    assert not second.any()
