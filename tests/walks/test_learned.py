"""Walks that hand gradients on to edge weights: beside walks without, and beside the dense power series in the mean."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from dense_attention import dense_weight
from graphs import small_digraph, small_graph
from grids import covering
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask import Graph, nn
from pyg_topomask.masks import GRFMask
from pyg_topomask.transforms import AddGraphRandomFeatures
from pyg_topomask.walks import WalkSettings, sample_walks
from pyg_topomask.walks.walk import learned_walks


def weights(edge_index: Tensor) -> Tensor:
    return torch.rand(edge_index.size(1), generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.5


def parallel() -> Data:
    edges = small_graph().edge_index
    return Data(edge_index=torch.cat([edges, edges[:, :4]], dim=1), num_nodes=6)


@pytest.mark.parametrize('transition', ['uniform', 'weight'])
@pytest.mark.parametrize('make', [small_graph, small_digraph, parallel])
def test_loads_are_those_of_the_same_walks(make: type, transition: str) -> None:
    data = make()
    weight, settings = weights(data.edge_index), WalkSettings(4, 0.3, 3, transition=transition)
    expected = sample_walks(Graph(data.edge_index, data.num_nodes, weight), settings, seed=1)
    base = Graph(data.edge_index, data.num_nodes)
    for graph in (base.with_weights(torch.ones_like(weight)), base.with_weights(weight.requires_grad_())):
        walks = learned_walks(graph, settings, 1, keep=True)
    assert walks.load.requires_grad
    for name in ('start', 'visited', 'length'):
        assert torch.equal(getattr(walks, name), getattr(expected, name))
    torch.testing.assert_close(walks.load.detach(), expected.load, rtol=1e-12, atol=0)


@pytest.mark.parametrize(('asymmetric', 'transition'), covering([True, False], ['uniform', 'weight']))
def test_gradients_are_unbiased(asymmetric: bool, transition: str) -> None:
    """The mean over seeds is the gradient of the dense series, within its standard error."""
    data, f = small_graph(), torch.tensor([1.0, 0.7, 0.4], dtype=torch.float64)
    weight = weights(data.edge_index).requires_grad_()
    pull = torch.randn(6, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    matrix = dense_weight(data.edge_index, weight, 6, 'sym')
    features = f[0] * torch.eye(6) + f[1] * matrix + f[2] * matrix @ matrix
    series = features if asymmetric else features @ features.t()
    expected = torch.autograd.grad((series * pull).sum(), weight)[0].numpy()
    drawn = []
    for seed in range(200):
        options = {} if asymmetric else {'independent_ensembles': True}
        mask = GRFMask(
            1, 8, 0.3, 2, f, asymmetric=asymmetric, positive=False, seed=seed, transition=transition, **options
        ).double()
        entries = mask(Graph(data.edge_index, 6, weight)).to_dense()[0]
        drawn.append(torch.autograd.grad((entries * pull).sum(), weight)[0].numpy())
    mean, error = np.mean(drawn, axis=0), np.std(drawn, axis=0, ddof=1) / len(drawn) ** 0.5
    deviation = (mean - expected) / error.clip(1e-12)
    assert np.abs(deviation).max() < 4.5
    assert np.square(deviation).mean() < 2.5
    assert np.abs(expected).max() > 5 * error.max()  # the test can tell


@pytest.mark.parametrize('options', [{'independent_ensembles': True}, {'asymmetric': 'pairs'}], ids=str)
@pytest.mark.parametrize('route', ['edges', 'features'])
def test_routes_agree_on_gradients(route: str, options: dict[str, Any]) -> None:
    data, x = small_graph(), torch.randn(6, 4, dtype=torch.float64)
    weight = weights(data.edge_index).requires_grad_()
    torch.manual_seed(0)
    layer = nn.GRFAttention(4, 2, feature_map='elu', **options).double()
    with torch.no_grad():
        for parameter in layer.mask.parameters():  # those of queries and keys begin alike
            parameter.add_(torch.rand_like(parameter))
    grads = []
    for layer.route in ('auto', route):
        out = layer(x, data.edge_index, weight)
        grads.append(torch.autograd.grad(out.sin().sum(), [weight, *layer.parameters()], allow_unused=True))
    for first, second in zip(*grads, strict=True):
        torch.testing.assert_close(first, second)


def test_stored_walks_are_not_used_under_learned_weights() -> None:
    data = AddGraphRandomFeatures(num_walks=2)(small_graph())
    graph, layer = Graph.from_data(data), nn.GRFAttention(4, 2)
    x, weight = torch.randn(6, 4), weights(data.edge_index).float().requires_grad_()
    expected = layer(x, data.edge_index.clone(), weight)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter('always')
        out = layer(x, graph=graph.with_weights(weight))
    torch.testing.assert_close(out, expected)
    assert len(record) == 1
    assert str(record[0].message).startswith('graph: got stored walks, with loads of other edge weights')
