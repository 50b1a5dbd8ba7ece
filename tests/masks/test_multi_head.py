"""Masks side by side, each with heads of its own."""

import numpy as np
import pytest
import torch
from dense_attention import assert_dense_attention
from graphs import GRAPH_NAMES, GRAPHS, small_graph
from oracles import masked_attention, power_series, same_graph, weight_matrix
from torch_geometric.data import Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import (
    AdjacencyMask,
    GRFMask,
    HopMask,
    MultiHeadMask,
    PackingMask,
    PowerSeriesMask,
    SinDegreeMask,
    StochasticRPEMask,
)
from pyg_topomask.nn import MaskedLinearAttention
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.ops.routes.choice import choose_route
from pyg_topomask.testing import assert_mask_operator
from pyg_topomask.walks.pairs import PairedWalks

ALPHA = torch.tensor([[1.0, 0.5, -0.25], [0.75, 0.0, 0.5]])


def make() -> MultiHeadMask:
    return MultiHeadMask(PackingMask(), PowerSeriesMask(2, 2, ALPHA), AdjacencyMask(1, 3.0))


def matrix(data: Data) -> np.ndarray:
    adjacency = weight_matrix(data, None) + 3.0 * np.eye(data.num_nodes or 0)
    series = [power_series(weight_matrix(data, 'sym'), alpha) for alpha in ALPHA.double().numpy()]
    return np.stack([same_graph(data), *series, adjacency])


@pytest.mark.parametrize('name', GRAPH_NAMES)
def test_every_mask_has_heads_of_its_own(name: str) -> None:
    data = GRAPHS[name]()
    torch.testing.assert_close(make()(data).to_dense().detach().double(), torch.from_numpy(matrix(data)), check_dtype=False)
    assert_mask_operator(make(), data)


@pytest.mark.parametrize('route', ['auto', 'features'])
def test_attention_under_it_is_that_of_the_matrix(route: str) -> None:
    data = small_graph()
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.rand(data.num_nodes, 4, size, generator=generator, dtype=torch.float64) for size in (3, 3, 5))
    expected = masked_attention(q.numpy(), k.numpy(), v.numpy(), matrix(data))
    out = masked_linear_attention(q, k, v, make().double()(data), route)
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(('given', 'autocast'), [(torch.float16, torch.bfloat16), (torch.bfloat16, torch.float16)])
def test_autocast_to_another_half_type_changes_nothing(given: torch.dtype, autocast: torch.dtype) -> None:
    operator, x = make()(small_graph()), torch.rand(6, 4, 3, generator=torch.Generator().manual_seed(0)).to(given)
    expected = masked_linear_attention(x, x, x, operator)
    with torch.autocast('cpu', autocast):
        assert torch.equal(masked_linear_attention(x, x, x, operator), expected)


def test_gradients_flow_to_every_part() -> None:
    data, mask = small_graph(), make().double()
    operator = mask(data)
    learned = list(mask.parameters())
    assert len(learned) == 2
    assert_dense_attention(operator, operator.to_dense(), learned)


def test_algebra_goes_on() -> None:
    data, mask = small_graph(), make()
    dense = mask(data).to_dense()
    torch.testing.assert_close(mask.T(data).to_dense(), dense.transpose(1, 2))
    added = (2.0 * mask + AdjacencyMask(4, None))(data).to_dense()
    torch.testing.assert_close(added, 2 * dense + AdjacencyMask(4, None)(data).to_dense())
    scale = torch.tensor([1.0, 2.0, 3.0, 4.0])
    torch.testing.assert_close((mask * scale)(data).to_dense(), dense * scale.view(-1, 1, 1))


def test_masks_of_low_rank_stay_of_low_rank() -> None:
    torch.manual_seed(0)
    data, mask = small_graph(), MultiHeadMask(PackingMask(), SinDegreeMask(2), StochasticRPEMask(1, 8))
    for changed, heads in ((mask, 4), (mask.T, 4), (2.0 * mask, 4), (mask + PackingMask(), 4)):
        operator = changed(data)
        assert changed.form == 'low_rank'
        assert operator.low_rank is not None
        matrix = torch.einsum('nhr,mhr->hnm', operator.low_rank.left, operator.low_rank.right)
        torch.testing.assert_close(matrix, operator.to_dense())
        assert choose_route(operator, 4, 4, 'low_rank') == 'low_rank'
        assert operator.heads == heads
    assert_mask_operator(mask, data)
    product = (mask * PowerSeriesMask(4))(data)
    torch.testing.assert_close(product.to_dense(), mask(data).to_dense() * PowerSeriesMask(4)(data).to_dense())


def test_rows_of_masks_of_low_rank() -> None:
    torch.manual_seed(0)
    data, mask, rows = small_graph(), MultiHeadMask(PackingMask(), SinDegreeMask(2)), torch.tensor([4, 1])
    q, k, v = torch.rand(3, data.num_nodes, 3, 4)
    expected = masked_linear_attention(q, k, v, mask(data))[rows]
    torch.testing.assert_close(masked_linear_attention(q[rows], k, v, mask(data), rows=rows), expected)


def test_every_head_may_walk_its_own_walks() -> None:
    data = small_graph()
    mask = MultiHeadMask(*(GRFMask(num_walks=2, seed=head) for head in range(3)))
    heads = mask(data).to_dense()
    for seed, head_matrix in enumerate(heads):
        assert torch.equal(head_matrix, GRFMask(num_walks=2, seed=seed)(data).to_dense()[0])
    assert not torch.equal(heads[0], heads[1])


def test_masks_of_equal_walks_share_them() -> None:
    graph = Graph.from_data(small_graph())
    GRFMask(2, seed=1)(graph)
    MultiHeadMask(GRFMask(2, seed=1), GRFMask(1, seed=1))(graph)
    assert sum(isinstance(state, PairedWalks) for state in graph._states.values()) == 1


def test_bad_parts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"masks: got \['PackingMask'\]; accepted: masks, 2 or more, as separate arguments"):
        MultiHeadMask(PackingMask())
    with pytest.raises(ValueError, match=r"masks: got \['PackingMask', 'str'\]; accepted: masks, 2 or more"):
        MultiHeadMask(PackingMask(), 'GRF')
    with pytest.raises(ValueError, match='heads'):
        MaskedLinearAttention(6, heads=3, mask=make())


@pytest.mark.parametrize('route', ['features', 'blocks'])
def test_a_multiple_of_masks_with_other_numbers_of_heads_attends_as_its_matrix(route: str) -> None:
    """Custom operators build the mask again, whose parts then know no heads but those that the text holds."""
    mask = (2.0 * MultiHeadMask(PackingMask(), HopMask(2))).double()
    for data in (small_graph(), GRAPHS['batch']()):
        operator = mask(data)
        q, k, v = torch.rand(3, data.num_nodes, 3, 4, dtype=torch.float64).unbind(0)
        expected = masked_attention(*(x.numpy() for x in (q, k, v)), operator.to_dense().detach().numpy())
        torch.testing.assert_close(masked_linear_attention(q, k, v, operator, route).detach(), torch.from_numpy(expected))
        torch.testing.assert_close(operator.magnitude(v), operator.matmul(v))
