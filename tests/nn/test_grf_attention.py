from functools import partial

import pytest
import torch
from graphs import ring, uneven_graphs, with_features
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Batch, Data

from pyg_topomask import Graph
from pyg_topomask.nn import GRFAttention
from pyg_topomask.testing import assert_batch_invariant
from pyg_topomask.transforms import AddGraphRandomFeatures


def stored(**settings: object) -> list[Data]:
    return [AddGraphRandomFeatures(**settings)(data) for data in with_features(uneven_graphs())]


def run(layer: GRFAttention, data: Data) -> Tensor:
    graph = Graph.from_data(data)
    return layer(data.x, graph.edge_index, graph.edge_weight, graph.batch, graph=graph)


@pytest.mark.parametrize('independent', [False, True])
@pytest.mark.parametrize('route', ['features', 'edges'])
def test_batch_invariance(route: str, independent: bool) -> None:
    settings = {'num_walks': 8, 'independent_ensembles': independent}
    layer = GRFAttention(8, 2, route=route, feature_map='elu', **settings)
    assert_batch_invariant(layer, with_features(uneven_graphs()), tolerance=1e-5)
    assert_batch_invariant(layer, stored(**settings), tolerance=1e-5)


@pytest.mark.parametrize('independent', [False, True])
def test_stored_walks_are_those_walked_on_the_fly_with_the_same_seed(independent: bool) -> None:
    settings = {'num_walks': 8, 'independent_ensembles': independent, 'seed': 3}
    layer = GRFAttention(8, 2, feature_map='elu', **settings)
    fresh, ready = Batch.from_data_list(with_features(uneven_graphs())), Batch.from_data_list(stored(**settings))
    torch.testing.assert_close(run(layer, ready), run(layer, fresh), rtol=0, atol=1e-6)
    with torch.no_grad():
        ready.grf_load[ready.grf_length > 0] *= 2.0
    assert not torch.allclose(run(layer, ready), run(layer, fresh))


def test_resampling_leaves_stored_walks_to_evaluation() -> None:
    data = stored(num_walks=2, seed=9)[2]
    layer = GRFAttention(8, 2, num_walks=2, resample='forward', feature_map='elu', seed=9)
    assert not torch.equal(run(layer, data), run(layer, data))
    layer.eval()
    data.grf_load[data.grf_length > 0] *= 2.0
    assert not torch.allclose(run(layer, data), run(layer, with_features(uneven_graphs())[2]))


@pytest.mark.parametrize('reentrant', [True, False])
def test_checkpointed_layers_that_share_walks_have_the_same_gradients(reentrant: bool) -> None:
    x = torch.randn(9, 8, generator=torch.Generator().manual_seed(0))
    layers = [GRFAttention(8, 2, feature_map='elu', resample='forward') for _ in range(3)]
    graph, gradients = Graph.from_tensors(ring(9), 9), []
    for checkpointed in (False, True, False):
        torch.manual_seed(1)
        leaf = h = x.clone().requires_grad_()
        for layer in layers:
            if checkpointed:
                h = checkpoint(partial(layer, graph=graph), h, ring(9), use_reentrant=reentrant)
            else:
                h = layer(h, ring(9), graph=graph)
        h.square().sum().backward()
        gradients.append(leaf.grad)
    assert torch.equal(gradients[1], gradients[0])
    assert torch.equal(gradients[2], gradients[0])
