"""Power series of the weights: the spectral radius, warnings, and graphs too large for the matrix."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
from graphs import GRAPHS, random_edges, ring, small_digraph, small_graph, small_weighted_graph
from oracles import weight_matrix
from torch_geometric.data import Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import AdjacencyMask, PowerSeriesMask
from pyg_topomask.masks.power_series import spectral_radius

# The warnings ---------------------------------------------------------------------------------------------------------


def hub(leaves: int) -> Data:
    """A star: its spectral radius is the square root of the number of leaves."""
    return Data(edge_index=torch.stack([torch.zeros(leaves), torch.arange(1, leaves + 1)]).long(), num_nodes=leaves + 1)


def undirected_hub(leaves: int, scale: float = 1.0) -> Data:
    out = hub(leaves).edge_index
    return Data(
        edge_index=torch.cat([out, out.flip(0)], dim=1), edge_weight=torch.full((2 * leaves,), scale), num_nodes=leaves + 1
    )


@pytest.mark.parametrize(('leaves', 'scale', 'number'), [(25, 1.0, '5'), (10, 1.0, '3.162'), (16, -0.75, '3')])
def test_series_that_still_grow_warn_with_the_spectral_radius(leaves: int, scale: float, number: str) -> None:
    data = undirected_hub(leaves, scale)
    for mask in (PowerSeriesMask(normalization=None), PowerSeriesMask(2, 6, 'regularized_laplacian', normalization=None)):
        with pytest.warns(UserWarning, match=rf'spectral radius of \|W\| is {number},'):
            mask(data)
    with pytest.warns(UserWarning, match=rf'spectral radius of \|W\| is {number},'):
        PowerSeriesMask(parameterization='f', normalization=None, coefficients=torch.ones(3))(data)


def test_a_radius_that_is_hardly_too_large_warns() -> None:
    with pytest.warns(UserWarning, match=r'spectral radius of \|W\| is 1\.2,'):
        PowerSeriesMask(order=2, coefficients=torch.ones(3), normalization=None)(undirected_hub(4, 0.6))


def test_every_mask_on_a_graph_warns_once() -> None:
    graph, mask = Graph.from_data(undirected_hub(25)), PowerSeriesMask(normalization=None)
    for applied in (mask, PowerSeriesMask(normalization=None)):
        with pytest.warns(UserWarning, match='spectral radius'):
            applied(graph)
    mask(graph)  # a warning would be an error
    with pytest.warns(UserWarning, match='spectral radius'):
        mask(Graph.from_data(undirected_hub(25)))


def test_one_head_that_grows_is_enough_for_the_warning() -> None:
    coefficients = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    with pytest.warns(UserWarning, match='spectral radius'):
        PowerSeriesMask(2, 2, coefficients, normalization=None)(undirected_hub(9))


def test_other_series_do_not_warn(subtests: pytest.Subtests) -> None:
    for data, settings in [
        (undirected_hub(25), {}),
        (undirected_hub(25), {'normalization': 'rw'}),
        (undirected_hub(25, 0.1), {'normalization': None}),
        (undirected_hub(25), {'normalization': None, 'order': 20, 'coefficients': 'heat'}),
        (undirected_hub(25), {'normalization': None, 'order': 0}),
        (undirected_hub(25), {'normalization': None, 'order': 2, 'coefficients': torch.tensor([1.0, 1.0, 0.0])}),
        (Data(num_nodes=3), {'normalization': None}),
        (GRAPHS['empty'](), {'normalization': None}),
        (GRAPHS['zero_weights'](), {'normalization': None}),
    ]:
        with subtests.test(data=data, settings=settings), warnings.catch_warnings():
            warnings.simplefilter('error')
            PowerSeriesMask(**settings)(data)


@pytest.mark.parametrize(
    ('order', 'name', 'needed'), [(1, 'random_walk', 2), (0, 'random_walk:3:p=1', 1), (2, 'random_walk:p=5', 5)]
)
def test_order_below_that_of_the_kernel_warns(order: int, name: str, needed: int) -> None:
    with pytest.warns(UserWarning, match=f'^order is {order}, but the kernel .* powers up to {needed}'):
        PowerSeriesMask(1, order, name)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        PowerSeriesMask(1, needed, name)


def test_order_that_cuts_a_series_short_warns() -> None:
    with pytest.warns(UserWarning, match="^order is 4, which leaves out 97% of the kernel 'heat:10', .*; 14 is needed for 90%"):
        PowerSeriesMask(1, 4, 'heat:10')
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        PowerSeriesMask(1, 14, 'heat:10')


# The spectral radius --------------------------------------------------------------------------------------------------


def radius(data: Data, **settings: int) -> float:
    state = AdjacencyMask(1, None).prepare(Graph.from_data(data))
    return spectral_radius(state.pattern, state.weight, **settings)


RADIUS_GRAPHS: dict[str, Callable[[], Data]] = {
    'undirected': small_graph,
    'weighted': small_weighted_graph,
    'directed': small_digraph,
    'star': lambda: undirected_hub(7),
    'even_ring': lambda: Data(edge_index=ring(8), num_nodes=8),
    'directed_ring': lambda: Data(edge_index=ring(5)[:, :5], num_nodes=5),
    'random': lambda: Data(edge_index=random_edges(12, 60, seed=1), num_nodes=12),
    'batch': lambda: GRAPHS['batch'](),
    'self_loop': lambda: GRAPHS['self_loop'](),
    'zero_weights': lambda: GRAPHS['zero_weights'](),
    'parallel_edges': lambda: GRAPHS['parallel_edges'](),
}


@pytest.mark.parametrize('name', RADIUS_GRAPHS)
def test_spectral_radius(name: str) -> None:
    data = RADIUS_GRAPHS[name]()
    expected = np.abs(np.linalg.eigvals(np.abs(weight_matrix(data, None)))).max()
    assert radius(data) == pytest.approx(expected, rel=0.02, abs=1e-9)
    assert radius(data, iterations=2000) == pytest.approx(expected, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize('name', ['empty', 'no_edges', 'no_edge_index', 'one_node'])
def test_spectral_radius_without_edges_is_zero(name: str) -> None:
    assert radius(GRAPHS[name]()) == 0.0
