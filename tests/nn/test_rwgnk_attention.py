"""RWGNK attention: what the mask makes of it, its dynamic walks, and large inputs."""

import numpy as np
import pytest
import torch
from graphs import small_digraph, small_graph, uneven_graphs, with_features
from oracles import confidence
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask import Graph
from pyg_topomask.nn.named_attention import RWGNKAttention
from pyg_topomask.testing import assert_permutation_equivariant


def run(layer: RWGNKAttention, data: Data) -> Tensor:
    graph = Graph.from_data(data)
    return layer(data.x, graph.edge_index, graph.edge_weight, graph.batch, graph=graph)


def test_exact_attention_does_not_depend_on_the_order_of_the_nodes() -> None:
    layer = RWGNKAttention(8, 2, num_walks=None, feature_map='elu')
    assert_permutation_equivariant(layer, torch.randn(6, 8), small_graph().edge_index, tolerance=1e-5)


# Dynamic walks --------------------------------------------------------------------------------------------------------


def attention_hops(layer: RWGNKAttention, x: Tensor, data: Data, weighted: bool = False) -> np.ndarray:
    """Each head's attention to the sources of a node's edges, times absolute weights if asked for, normalised, and averaged
    over the heads.
    """
    q = (x @ layer.lin_q.weight.t() + layer.lin_q.bias).view(len(x), layer.heads, -1).detach().numpy()
    k = (x @ layer.lin_k.weight.t() + layer.lin_k.bias).view(len(x), layer.heads, -1).detach().numpy()
    probability = np.zeros((len(x), len(x)))
    for head in range(layer.heads):
        for i in range(len(x)):
            edges = data.edge_index[1] == i
            ends = data.edge_index[0, edges].numpy()
            weight = np.abs(data.edge_weight[edges].numpy()) if weighted else np.ones(len(ends))
            score = weight * (np.maximum(k[ends, head], 0) @ np.maximum(q[i, head], 0))
            if len(ends) > 0:
                share = score / score.sum() if score.sum() > 0 else weight / weight.sum()
                np.add.at(probability[i], ends, share / layer.heads)
    return probability


def test_walkers_hop_with_the_probabilities_of_the_attention() -> None:
    data, walks = small_digraph(), 4000
    x = torch.randn(6, 8)
    layer = RWGNKAttention(8, 2, num_walks=walks, max_walk_length=1)
    with torch.no_grad():
        layer.lin_q.bias[:4] = -9.0  # of no edges of the first head ReLU leaves any weight
    graph = Graph.from_tensors(data.edge_index, 6)
    layer.resample(x, graph, torch.Generator().manual_seed(0))
    state = graph.state(layer.mask)
    first = state.query.length == 1
    frequencies = np.zeros((6, 6))
    frequencies[state.query.start[first], state.query.visited[first]] = state.query.load[first]
    expected = attention_hops(layer, x, data)
    assert np.ptp(expected[expected > 0]) > 0.1
    assert (expected[data.edge_index[1], data.edge_index[0]] > 0).all()
    error = np.sqrt(expected * (1 - expected) / walks)
    assert (np.abs(frequencies - expected) <= confidence(36) * error + 1e-4).all()


@pytest.mark.parametrize('weighted', [False, True])
def test_exact_kernel_of_the_attention(weighted: bool) -> None:
    data, x = small_digraph(), torch.randn(6, 8)
    transition = 'weight' if weighted else 'uniform'
    layer = RWGNKAttention(8, 2, num_walks=None, max_walk_length=2, lam=0.5, alpha=0.0, transition=transition)
    with torch.no_grad():
        layer.lin_q.bias[:4] = -9.0
    graph = Graph.from_tensors(data.edge_index, 6, data.edge_weight)
    layer.resample(x, graph)
    step = attention_hops(layer, x, data, weighted)
    frequency = np.eye(6) + 0.5 * step + 0.25 * step @ step
    np.testing.assert_allclose(layer.mask(graph).to_dense()[1].detach().numpy(), frequency @ frequency.T, atol=1e-5)


def test_walks_stay_until_they_are_drawn_anew_on_a_new_graph() -> None:
    data, x, layer = small_graph(), torch.randn(6, 8), RWGNKAttention(8, 2, feature_map='elu')

    def outputs(seed: int) -> tuple[Tensor, Tensor]:
        graph = Graph.from_tensors(data.edge_index, 6)
        layer.resample(x, graph, torch.Generator().manual_seed(seed))
        return layer(x, data.edge_index, graph=graph), layer.eval()(x, data.edge_index, graph=graph)

    first, again = outputs(0)
    assert torch.equal(first, again)
    assert torch.equal(first, outputs(0)[0])
    assert not torch.equal(first, outputs(1)[0])
    assert not torch.equal(first, layer(x, data.edge_index))


def test_walks_drawn_by_attention_stay_within_their_graph() -> None:
    batch = Batch.from_data_list(with_features(uneven_graphs()))
    layer, graph = RWGNKAttention(8, 2, feature_map='elu'), Graph.from_data(batch)
    layer.resample(batch.x, graph)
    walks = graph.state(layer.mask).query
    assert torch.equal(batch.batch[walks.start.long()], batch.batch[walks.visited.long()])
    assert run(layer, batch).isfinite().all()


def test_graphs_that_hold_walks_and_layers_that_draw_them_are_refused() -> None:
    data, x, layer = small_graph(), torch.randn(6, 8), RWGNKAttention(8, 2)
    graph = Graph.from_data(data)
    layer(x, data.edge_index, graph=graph)
    with pytest.raises(ValueError, match=r'^graph: got a graph that holds walks'):
        layer.resample(x, graph)
    with pytest.raises(ValueError, match=r'^resample: got'):
        RWGNKAttention(8, 2, resample='forward').resample(x, Graph.from_data(data))
    learned = Graph.from_tensors(data.edge_index, 6, torch.ones(14, requires_grad=True))
    with pytest.raises(ValueError, match=r'^graph: got edge weights that require'):
        layer.resample(x, learned)
    for wrong in (torch.randn(12, 7), torch.randn(12, 8), torch.randn(6, 7), x.double()):
        with pytest.raises(ValueError, match=r'^x: got'):
            layer.resample(wrong, Graph.from_data(data))
    with pytest.raises(ValueError, match=r'^graph: got Data'):
        layer.resample(x, data)
