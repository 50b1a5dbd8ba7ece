"""Features of pairs of nodes from the entries of a mask: the equations, layers that read them, batches, and bad input."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from graphs import GRAPHS, small_digraph, uneven_graphs
from oracles import as_numpy, weight_matrix
from scipy.sparse.csgraph import shortest_path
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import functional_call
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATv2Conv, GINEConv, TransformerConv

from pyg_topomask import Graph
from pyg_topomask.masks import AdjacencyMask, ExpanderMask, HeatKernelMask, HopMask, Mask, PowerSeriesMask
from pyg_topomask.nn import KMIPAttention, MaskedSoftmaxAttention, MaskEncoding

HOPS, DIM = 2, 5

MASKS: dict[str, Callable[[], Mask]] = {
    'distances': lambda: HopMask(HOPS + 1, max_hops=HOPS, f=torch.eye(HOPS + 1), learnable=False),
    'walks': lambda: PowerSeriesMask(HOPS + 1, HOPS, torch.eye(HOPS + 1), normalization='rw', learnable=False),
    'reversed': lambda: PowerSeriesMask(
        HOPS + 1, HOPS, torch.eye(HOPS + 1), normalization='rw', learnable=False, flow='target_to_source'
    ),
}


def inputs_of_pairs(name: str, data: Data) -> np.ndarray:
    """Which distance two nodes have, or the probabilities that a walk of each length leads from one to the other."""
    flow = 'target_to_source' if name == 'reversed' else 'source_to_target'
    if name != 'distances':
        matrix = weight_matrix(data, 'rw', flow)
        return np.stack([np.linalg.matrix_power(matrix, power) for power in range(HOPS + 1)], axis=-1)
    adjacency = np.zeros((data.num_nodes, data.num_nodes))
    row, col = as_numpy(data, flow)[0]
    adjacency[row, col] = 1
    distance = shortest_path(adjacency, unweighted=True)
    return np.stack([distance == hops for hops in range(HOPS + 1)], axis=-1).astype(float)


@pytest.mark.parametrize('name', MASKS)
@pytest.mark.parametrize('graph', ['directed', 'parallel_edges', 'no_edges', 'batch'])
def test_features_are_those_of_the_equation(name: str, graph: str) -> None:
    data = GRAPHS[graph]()
    data.edge_weight = None
    torch.manual_seed(0)
    encoding = MaskEncoding(MASKS[name](), DIM).double()
    pairs, features = encoding(data)
    weight, bias = (parameter.detach().numpy() for parameter in (encoding.lin.weight, encoding.lin.bias))
    inputs = inputs_of_pairs(name, data)
    # Node i attends to node j along a pair (j, i).
    row, col = np.nonzero(inputs.any(-1))
    assert np.array_equal(pairs, np.stack([col, row]))
    np.testing.assert_allclose(features.detach(), inputs[row, col] @ weight.T + bias, rtol=1e-6, atol=1e-12)


def test_layers_read_the_features() -> None:
    data, x = small_digraph(), torch.randn(6, 8)
    data.edge_weight = None
    encoding = MaskEncoding(MASKS['walks'](), DIM)
    pairs, features = encoding(data)
    layers = [
        GINEConv(torch.nn.Linear(8, 8), edge_dim=DIM),
        GATv2Conv(8, 8, edge_dim=DIM),
        TransformerConv(8, 8, edge_dim=DIM),
        MaskedSoftmaxAttention(8, 2, AdjacencyMask(self_loop=None), edge_dim=DIM),
        KMIPAttention(8, 2, k=3, edge_dim=DIM),
    ]
    for layer in layers:
        if hasattr(layer, 'edge_terms'):
            torch.nn.init.normal_(layer.edge_terms.lin_bias.weight)
        encoding.zero_grad()
        layer(x, pairs, edge_attr=features).square().sum().backward(retain_graph=True)
        assert bool(encoding.lin.weight.grad.any()), layer


def test_gradients() -> None:
    torch.manual_seed(0)
    encoding, graph = MaskEncoding(AdjacencyMask(2), 3).double(), Graph.from_data(small_digraph())
    names, numbers = zip(*encoding.named_parameters(), strict=True)

    def encode(*numbers: Tensor) -> Tensor:
        return functional_call(encoding, dict(zip(names, numbers, strict=True)), (graph,))[1]

    assert gradcheck(encode, [number.detach().requires_grad_() for number in numbers])


def test_features_of_a_batch_are_those_of_its_graphs() -> None:
    graphs = uneven_graphs()
    for data in graphs:
        data.edge_weight = None
    for name in MASKS:
        encoding = MaskEncoding(MASKS[name](), DIM).double()
        pairs, features = encoding(Batch.from_data_list(graphs))
        first, alone = 0, []
        for data in graphs:
            of_graph, each = encoding(data)
            alone.append((of_graph + first, each))
            first += data.num_nodes
        assert torch.equal(pairs, torch.cat([each for each, _ in alone], dim=1))
        torch.testing.assert_close(features, torch.cat([each for _, each in alone]))


def test_heads_may_share_entries() -> None:
    pairs, features = MaskEncoding(ExpanderMask(2), DIM)(small_digraph())
    assert features.shape == (pairs.size(1), DIM)


def test_bad_input_is_refused_by_name() -> None:
    data = small_digraph()
    for make, message in (
        (lambda: MaskEncoding(HopMask, 4), r'mask: got .*; accepted: a Mask, such as HopMask\(heads=3\)'),
        (lambda: MaskEncoding(HopMask(), 0), 'dim: got 0'),
        (lambda: MaskEncoding(HeatKernelMask(kind='random_walk_laplacian'), 4)(data), 'mask: got HeatKernelMask, which has no'),
        (lambda: MaskEncoding(HopMask(), 4)(data.edge_index), 'data: got'),
    ):
        with pytest.raises(ValueError, match=f'^{message}'):
            make()
