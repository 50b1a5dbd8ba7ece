import pytest
import torch
from graphs import small_digraph
from torch_geometric.data import Data

from pyg_topomask.masks import AdjacencyMask


@pytest.mark.parametrize(('flow', 'entry'), [('source_to_target', [1, 0]), ('target_to_source', [0, 1])])
def test_rows_attend_as_messages_flow_and_the_transpose_against_them(flow: str, entry: list[int]) -> None:
    data = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=3)
    assert AdjacencyMask(self_loop=None, flow=flow)(data).to_dense()[0].nonzero().tolist() == [entry]
    assert AdjacencyMask(self_loop=None, flow=flow).T(data).to_dense()[0].nonzero().tolist() == [entry[::-1]]


def test_self_loop_is_learned_per_head_and_resets() -> None:
    mask = AdjacencyMask(2, self_loop=0.5)
    mask(small_digraph()).to_dense()[1].sum().backward()
    assert mask.self_loop.grad.tolist() == [0.0, 6.0]
    with torch.no_grad():
        mask.self_loop.zero_()
    mask.reset_parameters()
    assert mask.self_loop.tolist() == [0.5, 0.5]


def test_gradients_reach_the_edge_weights() -> None:
    data = small_digraph()
    weight = data.edge_weight.requires_grad_()
    AdjacencyMask(normalization='sym').double()(data).to_dense().sum().backward()
    assert weight.grad.isfinite().all()
    assert weight.grad.any()


def test_32_bit_edges_of_a_graph_whose_square_overflows_them() -> None:
    nodes = 100_000
    edge_index = torch.tensor([[nodes - 2, 3], [nodes - 1, 70_000]], dtype=torch.int32)
    operator = AdjacencyMask(self_loop=None)(Data(edge_index=edge_index, num_nodes=nodes))
    out = operator.matmul(torch.arange(nodes).float().view(-1, 1, 1)).flatten()
    assert out.nonzero().flatten().tolist() == [70_000, nodes - 1]
    assert out[70_000] == 3
    assert out[nodes - 1] == nodes - 2


def test_entries_are_as_exact_as_the_numbers_of_the_mask() -> None:
    data = small_digraph()
    adjacency = torch.zeros(data.num_nodes, data.num_nodes, dtype=torch.float64)
    adjacency[data.edge_index[1], data.edge_index[0]] = 1.0
    scale = [adjacency.sum(dim).clamp(min=1).rsqrt() for dim in (1, 0)]
    expected = scale[0].unsqueeze(1) * adjacency * scale[1] + torch.eye(data.num_nodes)
    data.edge_weight = None
    actual = AdjacencyMask(normalization='sym').double()(data).to_dense()[0].detach()
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize('self_loop', [float('nan'), float('inf')])
def test_self_loop_that_is_not_finite_is_named(self_loop: float) -> None:
    with pytest.raises(ValueError, match=r'^self_loop: got (nan|inf); accepted'):
        AdjacencyMask(self_loop=self_loop)
