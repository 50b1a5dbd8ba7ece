import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, ring
from grids import covering
from numpy.typing import NDArray
from oracles import as_numpy
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.causal import CausalMask
from pyg_topomask.operators.description import describe
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.testing import assert_mask_operator


def causal(batch: NDArray[np.int64], value: NDArray[np.float64], strict: bool) -> NDArray[np.float64]:
    """M_ij = 1 if j comes at or before i in the graph of both, or with strict before."""
    size = len(batch)
    return np.array(
        [
            [batch[i] == batch[j] and (value[j] < value[i] if strict else value[j] <= value[i]) for j in range(size)]
            for i in range(size)
        ],
        dtype=float,
    ).reshape(size, size)


def times(size: int, seed: int = 0) -> Tensor:
    return torch.randperm(size, generator=torch.Generator().manual_seed(seed)).double() - 2.5


def timed(sizes: list[int], step: int = 1) -> Data:
    """As many nodes of a graph have the same time as a step has units."""
    graphs = [Data(time=times(size, seed).div(step, rounding_mode='floor'), num_nodes=size) for seed, size in enumerate(sizes)]
    return Batch.from_data_list(graphs)


@pytest.mark.parametrize('strict', [False, True])
@pytest.mark.parametrize('graph', GRAPH_NAMES)
def test_matrix_of_positions(graph: str, strict: bool) -> None:
    data = GRAPHS[graph]()
    mask, batch = CausalMask(2, strict=strict), as_numpy(data)[3]
    expected = causal(batch, np.arange(len(batch)), strict)
    assert np.array_equal(mask(data).to_dense().numpy(), np.stack([expected] * 2))
    assert np.array_equal(mask(data).T.to_dense().numpy(), np.stack([expected.T] * 2))
    assert_mask_operator(mask, data)


@pytest.mark.parametrize(
    ('step', 'sizes', 'strict'),
    covering([1, 3, 100], [[7], [1, 2, 30, 7, 3, 16, 17], [0, 4, 0, 0, 4, 5, 0], [0]], [False, True]),
)
def test_matrix_of_an_attribute(sizes: list[int], strict: bool, step: int) -> None:
    data = timed(sizes, step)
    mask, batch = CausalMask(2, 'time', strict), as_numpy(data)[3]
    expected = causal(batch, data.time.numpy(), strict)
    assert np.array_equal(mask(data).to_dense().numpy(), np.stack([expected] * 2))
    assert_mask_operator(mask, data)
    assert_mask_operator(mask.T, data)


def test_attribute_may_be_a_column_of_integers() -> None:
    column = Data(step=torch.tensor([[3], [1], [2]]), num_nodes=3)
    assert CausalMask(order='step')(column).to_dense()[0].tolist() == [[1, 1, 1], [0, 1, 0], [0, 1, 1]]


def test_first_nodes_of_a_strict_order_give_zero() -> None:
    q = torch.rand(8, 2, 3)
    out = masked_linear_attention(q, q, q, CausalMask(2, strict=True)(timed([3, 5])))
    assert not out[[0, 3]].any()
    assert out[[1, 2, 4, 5, 6, 7]].all()


@pytest.mark.parametrize('size', [255, 256, 257, 512, 70_000])
def test_long_sums_are_those_of_one_scan(size: int) -> None:
    x = torch.randn(size, 1, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    operator = CausalMask()(Batch.from_data_list([Data(num_nodes=size), Data(num_nodes=size - 1)]))
    out = operator.matmul(torch.cat([x, x[1:]]))
    torch.testing.assert_close(out, torch.cat([x.cumsum(0), x[1:].cumsum(0)]), rtol=1e-12, atol=1e-10)


def test_graphs_after_large_ones_keep_their_digits() -> None:
    """Sums that did not restart, and were subtracted, would lose them."""
    large, small = torch.full((100_000, 1, 1), 1e6), torch.full((5, 1, 1), 0.1)
    operator = CausalMask()(Batch.from_data_list([Data(num_nodes=100_000), Data(num_nodes=5)]))
    out = operator.matmul(torch.cat([large, small]))
    torch.testing.assert_close(out[100_000:].flatten(), 0.1 * torch.arange(1.0, 6.0))
    large[3] = torch.nan
    assert operator.matmul(torch.cat([large, small]))[100_000:].isfinite().all()


def test_equal_masks_share_their_order() -> None:
    graph = Graph.from_data(timed([4]))
    first, second = CausalMask(2, 'time')(graph), CausalMask(1, 'time')(graph)
    assert describe(first)[0][0] is describe(second)[0][0]
    assert describe(CausalMask(2)(graph))[0][0] is not describe(first)[0][0]
    assert describe(CausalMask(2, 'time', strict=True)(graph))[0][0] is not describe(first)[0][0]


def test_bad_orders_are_named(subtests: pytest.Subtests) -> None:
    for time, message in [
        (torch.tensor([1.0, 2.0, 3.0, 1.0, torch.nan, 3.0]), r"'time' with nan at node 4"),
        (torch.ones(5), r"'time' with shape \(5,\)"),
        (torch.ones(6, 2), r"'time' with shape \(6, 2\)"),
        ([1, 2], r"'time' with list"),
    ]:
        with subtests.test(time=time, message=message):
            data = Data(time=time, num_nodes=6, batch=torch.tensor([0, 0, 0, 1, 1, 1]))
            with pytest.raises(ValueError, match=f'^order: got {message}'):
                CausalMask(order='time')(data)


@pytest.mark.parametrize('graph', [Data(num_nodes=2), Graph.from_tensors(ring(3), 3)])
def test_missing_order_is_named(graph: Data | Graph) -> None:
    with pytest.raises(ValueError, match=r"^order: got the attribute name 'time', which the data lacks"):
        CausalMask(order='time')(graph)
