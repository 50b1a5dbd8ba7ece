"""The kernel of random walks under learned edge weights: beside the dense equation, and beside walks taken one by one."""

import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, small_digraph, small_graph
from grids import covering
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch_geometric.data import Data

from pyg_topomask import Graph
from pyg_topomask.masks import RWGNKMask
from pyg_topomask.nn import MaskedSoftmaxAttention, RWGNKAttention
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.transforms import AddRandomWalkKernel
from pyg_topomask.walks import WalkSettings, expected, sample_random_walks

LAM, HOPS, P_HALT = [0.7, 1.3], 3, 0.3


def kernel_mask(num_walks: int | None, alpha: float = 1.0, **settings: object) -> RWGNKMask:
    lam = torch.tensor(LAM, dtype=torch.float64)
    return RWGNKMask(2, num_walks, P_HALT, HOPS, lam, alpha, transition='weight', **settings).double()


def edges_of(data: Data) -> Tensor:
    """Rows and columns of the edges: a node attends to the sources of its edges."""
    return data.edge_index.flip(0) if 'edge_index' in data else torch.empty(2, 0, dtype=torch.long)


def weights(data: Data, zeros: bool = False) -> Tensor:
    """Signed weights, and some that are 0."""
    weight = torch.randn(edges_of(data).size(1), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weight = weight + 0.3 * weight.sign()  # away from 0, where the absolute value has no derivative
    if zeros:
        weight[::3] = 0.0
    return weight.requires_grad_()


def probabilities(data: Data, weight: Tensor) -> Tensor:
    """The probability of each edge, |w_e| / sum |w| over the edges of its row, [E]."""
    row, size = edges_of(data)[0], data.num_nodes or 0
    total = torch.zeros(size, dtype=torch.float64).index_add(0, row, weight.abs())
    return weight.abs() / torch.where(total == 0, 1.0, total)[row]


def kernel_of(frequency: Tensor, other: Tensor, alpha: float) -> Tensor:
    """Eq. 5."""
    norms = [each.square().sum(-1).sqrt() ** alpha for each in (frequency, other)]
    return frequency @ other.transpose(-1, -2) / (norms[0].unsqueeze(-1) * norms[1].unsqueeze(-2))


def dense_kernel(data: Data, weight: Tensor, log_lam: Tensor, alpha: float) -> Tensor:
    size, (row, col) = data.num_nodes or 0, edges_of(data)
    step = torch.zeros(size, size, dtype=torch.float64).index_put((row, col), probabilities(data, weight), accumulate=True)
    powers = [torch.linalg.matrix_power(step, length) for length in range(HOPS + 1)]
    frequency = torch.stack(
        [sum((lam * (1 - P_HALT)) ** length * power for length, power in enumerate(powers)) for lam in log_lam.exp().unbind()]
    )
    return kernel_of(frequency, frequency, alpha)


def graph_of(data: Data, weight: Tensor) -> Graph:
    return Graph(edges_of(data).flip(0), data.num_nodes or 0, None, data.get('batch')).with_weights(weight)


def pull(data: Data) -> Tensor:
    return torch.randn(2, *[data.num_nodes or 0] * 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


# The exact kernel --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(('alpha', 'compiled'), covering([0.0, 0.5, 1.0], [True, False]))
@pytest.mark.parametrize('graph', GRAPH_NAMES)
def test_exact_mask_and_its_gradients_are_those_of_the_dense_equation(
    graph: str, alpha: float, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        monkeypatch.setitem(sys.modules, 'numba', None)
    data, mask = GRAPHS[graph](), kernel_mask(None, alpha)
    weight = weights(data)
    actual, wanted = mask(graph_of(data, weight)).to_dense(), dense_kernel(data, weight, mask.log_lam, alpha)
    torch.testing.assert_close(actual, wanted, rtol=1e-9, atol=1e-9)
    given = mask(Graph(edges_of(data).flip(0), data.num_nodes or 0, weight.detach(), data.get('batch'))).to_dense()
    torch.testing.assert_close(actual, given, rtol=1e-12, atol=1e-12)
    if data.num_nodes == 0:
        return
    leaves = [weight, mask.log_lam]
    gradients = [torch.autograd.grad((each * pull(data)).sum(), leaves, allow_unused=True) for each in (actual, wanted)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize('alpha', [0.0, 1.0])
def test_derivatives_of_the_exact_mask_are_finite_differences(alpha: float) -> None:
    data, mask = small_digraph(), kernel_mask(None, alpha)
    x = torch.randn(6, 2, 2, dtype=torch.float64, requires_grad=True)

    def product(weight: Tensor, x: Tensor) -> Tensor:
        return mask(graph_of(data, weight)).matmul(x)

    inputs = weights(data), x
    assert gradcheck(product, inputs, atol=1e-6)
    assert gradgradcheck(product, inputs, atol=1e-5, fast_mode=True)


def test_edges_of_weight_zero_have_gradients() -> None:
    """An edge of weight 0 adds nothing, and a change of its weight counts. Nodes without other edges are as without edges."""
    data, mask = small_digraph(), kernel_mask(None)
    weight, slope = weights(data, zeros=True), torch.ones(data.num_edges, dtype=torch.float64)
    alone = (edges_of(data)[0].bincount(weights=(weight != 0).double(), minlength=6) == 0)[edges_of(data)[0]]
    slope[alone] = 0.0
    out = mask(graph_of(data, weight)).to_dense()
    torch.testing.assert_close(out, dense_kernel(data, weight, mask.log_lam, 1.0))
    (grad,) = torch.autograd.grad((out * pull(data)).sum(), weight)
    assert bool(grad.isfinite().all())
    (wanted,) = torch.autograd.grad((dense_kernel(data, weight, mask.log_lam, 1.0) * pull(data)).sum(), weight)
    torch.testing.assert_close(grad * slope, wanted * slope)


def test_norms_and_their_gradients_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    data, weight = GRAPHS['batch'](), weights(GRAPHS['batch']())

    def gradients(create_graph: bool) -> Tensor:
        out = kernel_mask(None)(graph_of(data, weight)).to_dense()
        return torch.autograd.grad((out * pull(data)).sum(), weight, create_graph=create_graph)[0]

    whole = gradients(False)
    monkeypatch.setattr(expected, '_BLOCK', 30)
    torch.testing.assert_close(gradients(True), whole, rtol=1e-10, atol=1e-12)


# Walks -------------------------------------------------------------------------------------------------------------------


def frequencies(data: Data, weight: Tensor, mask: RWGNKMask, seed: int) -> Tensor:
    """The visits of walks that are taken one by one, [heads, N, N]. A prefix counts the product of the probabilities of its
    hops, over those with which it was drawn.
    """
    settings: WalkSettings = mask.walk_settings
    graph = Graph(data.edge_index, data.num_nodes, weight.detach())
    nodes, size = sample_random_walks(graph, settings, seed).nodes, data.num_nodes or 0
    row, col = edges_of(data)
    step = torch.zeros(size, size, dtype=torch.float64).index_put((row, col), probabilities(data, weight), accumulate=True)
    total = torch.zeros(2, size, size, dtype=torch.float64)
    for start, walks in enumerate(nodes.tolist()):
        for walk in walks:
            ratio = torch.ones((), dtype=torch.float64)
            for length, node in enumerate(walk):
                if node < 0:
                    break
                if length > 0:
                    chance = step[walk[length - 1], node]
                    ratio = ratio * chance / chance.detach()
                count = mask.lam**length * ratio / settings.num_walks
                place = torch.zeros_like(total)
                place[:, start, node] = 1.0
                total = total + place * count.view(2, 1, 1)
    return total


@pytest.mark.parametrize(
    ('make', 'alpha', 'independent'), covering([small_graph, small_digraph], [0.0, 0.5, 1.0], [False, True], strength=2)
)
def test_sampled_mask_and_its_gradients_are_those_of_its_walks(
    make: Callable[[], Data], alpha: float, independent: bool
) -> None:
    data, mask = make(), kernel_mask(3, alpha, independent_ensembles=independent, seed=5)
    weight = weights(data)
    query = frequencies(data, weight, mask, 10)
    wanted = kernel_of(query, frequencies(data, weight, mask, 11) if independent else query, alpha)
    operator = mask(graph_of(data, weight))
    torch.testing.assert_close(operator.to_dense(), wanted, rtol=1e-9, atol=1e-9)
    entries = operator.entries()
    listed = torch.zeros_like(wanted)
    listed[:, entries.pattern.row.long(), entries.pattern.col.long()] = entries.value
    torch.testing.assert_close(listed, wanted, rtol=1e-9, atol=1e-9)
    given = mask(Graph(data.edge_index, 6, weight.detach())).to_dense()
    torch.testing.assert_close(operator.to_dense(), given, rtol=1e-6, atol=1e-6)
    leaves, gradients = [weight, mask.log_lam], []
    for each in (operator.to_dense(), listed, wanted):
        gradients.append(torch.autograd.grad((each * pull(data)).sum(), leaves, retain_graph=True))
    for one, other, by_hand in zip(*gradients, strict=True):
        torch.testing.assert_close(one, by_hand, rtol=1e-8, atol=1e-9)
        torch.testing.assert_close(other, by_hand, rtol=1e-8, atol=1e-9)


def test_gradients_of_walks_are_unbiased() -> None:
    """The mean over seeds is the gradient of the exact kernel, within its standard error."""
    data, drawn = small_graph(), []
    weight = weights(data)
    for seed in range(300):
        mask = kernel_mask(4, 0.0, independent_ensembles=True, seed=seed)
        out = mask(graph_of(data, weight)).to_dense()
        drawn.append(torch.autograd.grad((out * pull(data)).sum(), weight)[0].numpy())
    out = kernel_mask(None, 0.0)(graph_of(data, weight)).to_dense()
    wanted = torch.autograd.grad((out * pull(data)).sum(), weight)[0].numpy()
    error = np.std(drawn, axis=0, ddof=1) / len(drawn) ** 0.5
    deviation = (np.mean(drawn, axis=0) - wanted) / error.clip(1e-12)
    assert np.abs(deviation).max() < 4.5
    assert np.abs(wanted).max() > 5 * error.max()  # the test can tell


@pytest.mark.parametrize('num_walks', [None, 3])
def test_a_batch_equals_its_graphs(num_walks: int | None) -> None:
    data, mask = GRAPHS['batch'](), kernel_mask(num_walks)
    together = weights(data)
    of_edge = data.batch[data.edge_index[0]]
    alone = [together.detach()[of_edge == number].requires_grad_() for number in range(data.num_graphs)]
    x = torch.randn(data.num_nodes, 2, 2, dtype=torch.float64)
    outs = [mask(graph_of(data, together)).matmul(x)]
    ptr = data.ptr.tolist()
    for number, (one, weight) in enumerate(zip(data.to_data_list(), alone, strict=True)):
        outs.append(mask(graph_of(one, weight)).matmul(x[ptr[number] : ptr[number + 1]]))
    torch.testing.assert_close(outs[0], torch.cat(outs[1:]))
    (first,) = torch.autograd.grad(outs[0].square().sum(), together)
    rest = torch.autograd.grad(torch.cat(outs[1:]).square().sum(), alone, allow_unused=True)
    for number, grad in enumerate(rest):
        found = first[of_edge == number]
        torch.testing.assert_close(found, torch.zeros_like(found) if grad is None else grad)


@pytest.mark.parametrize('route', ['edges', 'features'])
def test_routes_agree_on_gradients(route: str) -> None:
    data = small_digraph()
    weight, mask = weights(data), kernel_mask(3)
    q, k, v = torch.rand(3, 6, 2, 3, dtype=torch.float64)
    outs = [masked_linear_attention(q, k, v, mask(graph_of(data, weight)), which) for which in ('auto', route)]
    for one, other in zip(*(torch.autograd.grad(out.sin().sum(), [weight, mask.log_lam]) for out in outs), strict=True):
        torch.testing.assert_close(one, other)


def test_softmax_attention_over_walks_learns_weights() -> None:
    data = small_graph()
    weight, layer = weights(data), MaskedSoftmaxAttention(4, 2, kernel_mask(3)).double()
    out = layer(torch.randn(6, 4, dtype=torch.float64), data.edge_index, weight)
    assert bool(torch.autograd.grad(out.square().sum(), weight)[0].any())


# What learns no weights ---------------------------------------------------------------------------------------------------


def test_only_walks_by_weight_learn_weights() -> None:
    assert RWGNKAttention(4, 2, transition='weight').learns_weights
    assert RWGNKMask(num_walks=None, transition='weight').learns_weights
    assert not RWGNKMask().learns_weights
    assert not RWGNKAttention(4, 2, transition='weight', dynamic=True).learns_weights


def test_stored_walks_and_dynamic_walks_warn() -> None:
    data, weight = small_graph(), torch.ones(small_graph().num_edges, requires_grad=True)
    data.edge_weight = weight
    stored = AddRandomWalkKernel(num_walks=2, transition='weight')(data)
    with pytest.warns(UserWarning, match='RWGNKMask does not hand on to them'):
        RWGNKMask(transition='weight')(stored)
    layer = RWGNKAttention(4, 2, transition='weight', dynamic=True)
    with pytest.warns(UserWarning, match='RWGNKMask does not hand on to them'):
        layer(torch.randn(6, 4), small_graph().edge_index, weight)
