"""Masks by the number of edges between nodes: the equation, where heads start, gradients, and what is refused."""

from unittest import mock

import numpy as np
import pytest
import torch
from dense_attention import assert_dense_attention
from graphs import GRAPH_NAMES, GRAPHS, path, ring, small_digraph
from oracles import hop_matrix, path_products
from torch_geometric.data import Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask, HopMask, PowerSeriesMask

F = torch.tensor([[1.0, -0.5, 0.25], [0.75, 0.0, 0.5]])


@pytest.fixture(params=['machine_code', 'scipy'])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How pairs are listed: by searches in machine code, or by sparse products."""
    if request.param == 'scipy':
        monkeypatch.setattr('pyg_topomask.machine.backend.has_numba', lambda: False)
    else:
        pytest.importorskip('numba', reason='Numba is not installed')


@pytest.mark.usefixtures('form')
@pytest.mark.parametrize('graph', GRAPH_NAMES)
def test_entries_are_f_of_the_distance(graph: str) -> None:
    data = GRAPHS[graph]()
    for max_hops in (0, 1, 2, 4):
        f = torch.randn(2, max_hops + 1, generator=torch.Generator().manual_seed(max_hops), dtype=torch.float64)
        actual = HopMask(2, max_hops, f)(data).to_dense().detach().numpy()
        np.testing.assert_allclose(actual, hop_matrix(f, data), atol=1e-12, err_msg=f'max_hops={max_hops}')


@pytest.mark.usefixtures('form')
def test_pairs_far_apart_are_listed_in_order() -> None:
    node = torch.arange(5_000)
    edges = torch.cat([torch.stack([node, (node + step) % 5_000]) for step in (2_500, 3_000)], dim=1)
    state = HopMask(max_hops=2).prepare(Graph.from_tensors(edges, 5_000))
    offset = (state.row - state.col).long().remainder(5_000)  # paths end at the row
    hops = {0: 0, 2_500: 1, 3_000: 1, 500: 2, 1_000: 2}  # twice 2,500 returns
    assert [hops[step] for step in offset.tolist()] == state.distance.tolist()
    key = state.row.long() * 5_000 + state.col
    assert (key.diff() > 0).all()
    assert key.numel() == 5 * 5_000


def test_one_f_serves_all_heads() -> None:
    data = small_digraph()
    mask = HopMask(3, 2, F[0])
    np.testing.assert_allclose(mask(data).to_dense().detach().numpy(), np.repeat(hop_matrix(F[:1], data), 3, 0), rtol=1e-6)


@pytest.mark.parametrize(('heads', 'max_hops'), [(1, 0), (4, 2), (2, 4)])
def test_heads_start_at_different_hops(heads: int, max_hops: int) -> None:
    expected = np.full((heads, max_hops + 1), 0.02)
    for head in range(heads):
        expected[head, head % (max_hops + 1)] = 1.0
    for series in (
        HopMask(heads, max_hops, 'hops').f,
        PowerSeriesMask(heads, max_hops, 'hops').alpha,
        GRFMask(heads, max_walk_length=max_hops, modulation='hops').f,
        PowerSeriesMask(heads, 2 * max_hops, 'hops', 'f').coefficients.exp(),
    ):
        np.testing.assert_allclose(series.detach().numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(('heads', 'max_hops', 'farthest'), [(1, 3, [3]), (4, 2, [0, 1, 1, 2]), (4, 8, [2, 4, 6, 8])])
def test_heads_start_with_nested_balls(heads: int, max_hops: int, farthest: list[int]) -> None:
    expected = [[1.0 if distance <= last else 0.02 for distance in range(max_hops + 1)] for last in farthest]
    np.testing.assert_allclose(HopMask(heads, max_hops).f.detach().numpy(), expected, rtol=1e-6)


def test_heads_start_alike() -> None:
    np.testing.assert_allclose(HopMask(2, 3, 'decay').f.detach().numpy(), [[1.0, 0.5, 0.25, 0.125]] * 2, rtol=1e-6)


@pytest.mark.parametrize(
    ('route', 'path_weights'),
    [('edges', None), ('blocks', None), ('features', None), ('edges', 'mean'), ('features', 'mean')],
)
def test_attention_and_its_gradients_are_those_of_the_dense_mask(route: str, path_weights: str | None) -> None:
    data, mask = GRAPHS['batch'](), HopMask(2, 2, F.double(), path_weights=path_weights)
    rings = torch.stack([torch.from_numpy(hop_matrix(torch.eye(3)[hop : hop + 1], data))[0] for hop in range(3)])
    rings = rings if path_weights is None else rings * torch.from_numpy(path_products(data, 2, np.mean))
    assert_dense_attention(mask(data), torch.einsum('hk,knm->hnm', mask.raw_f, rings), [mask.raw_f], route=route)


def test_arguments_outside_their_range_are_refused(subtests: pytest.Subtests) -> None:
    for make, text in [
        (lambda: HopMask(max_hops=-1), 'max_hops'),
        (lambda: HopMask(f=torch.ones(2)), r'f: .*\(2,\).*number of hops'),
        (lambda: HopMask(f=-torch.ones(3), positive=True), 'f: '),
        (lambda: HopMask(f='rings'), r"f: got 'rings'; .*balls.*hops"),
        (lambda: HopMask(flow='sideways'), 'flow'),
        (lambda: HopMask(path_weights='sum'), r"path_weights: got 'sum'; .*mean.*max"),
    ]:
        with subtests.test(text=text), pytest.raises(ValueError, match=text):
            make()


def test_pairs_that_are_too_many_are_never_begun() -> None:
    leaves = torch.arange(1, 20_000)
    star = torch.stack([leaves, torch.zeros_like(leaves)])
    data = Data(edge_index=torch.cat([star, star.flip(0)], 1), num_nodes=20_000)
    refused = pytest.raises(ValueError, match=r'^max_hops: got 2 hops .*400,000,000 pairs')
    with (
        mock.patch('pyg_topomask.graphs.shortest_paths.kernel', None),
        mock.patch('pyg_topomask.graphs.shortest_paths.scipy', None),
        refused,
    ):
        HopMask(max_hops=2)(data)


@pytest.mark.parametrize('hub', [0, 12_345, 79_999])
def test_hubs_in_the_sample_do_not_count_as_typical(hub: int) -> None:
    leaves = torch.arange(80_000)[torch.arange(80_000) != hub]
    star = torch.stack([leaves, torch.full_like(leaves, hub)])
    data = Data(edge_index=torch.cat([star, star.flip(0)], 1), num_nodes=80_000)
    assert HopMask(max_hops=1)(data).entries().pattern.nnz == 80_000 + 2 * 79_999


@pytest.mark.usefixtures('form')
def test_pairs_beyond_the_estimate_are_refused() -> None:
    data = Data(edge_index=ring(9), num_nodes=9)
    with (
        mock.patch('pyg_topomask.graphs.shortest_paths._MOST_PAIRS', 44),
        mock.patch('pyg_topomask.graphs.shortest_paths.count_within', return_value=0),
        pytest.raises(ValueError, match=r'^max_hops: got 2 hops .* 45 pairs'),
    ):
        HopMask(max_hops=2)(data)


def test_geometric_weights_have_two_numbers_a_head_and_continue() -> None:
    data = Data(edge_index=ring(9), num_nodes=9)
    mask = HopMask(4, 3, 'geometric').double()
    assert mask.raw_f.shape == (4, 2)
    with torch.no_grad():
        mask.raw_f[:, 0] = torch.tensor([0.0, 0.5, 1.0, -1.0])
    f = torch.tensor([[np.exp(c) * r**d for d in range(4)] for c, r in ((0, 0.5), (0.5, 1.0), (1.0, 1.5), (-1.0, 2.0))])
    np.testing.assert_allclose(mask(data).to_dense().detach().numpy(), hop_matrix(f, data), rtol=1e-6)
    mask.f.sum().backward()
    np.testing.assert_allclose(mask.raw_f.grad[:, 1].numpy(), (f * torch.arange(4)).sum(1).numpy(), rtol=1e-6)
    far = HopMask(4, 200, 'geometric')
    assert far.f.isfinite().all()
    assert float(far.f.detach()[3, 200]) == pytest.approx(np.exp(64), rel=1e-5)
    with pytest.raises(ValueError, match='positive: got False'):
        HopMask(2, 3, 'geometric', positive=False)


@pytest.mark.parametrize(('stored', 'loading'), [('geometric', 'balls'), ('balls', 'geometric')])
def test_state_dictionaries_of_geometric_weights_are_not_those_of_others(stored: str, loading: str) -> None:
    with pytest.raises(ValueError, match='f: got a state dictionary'):
        HopMask(2, 1, loading).load_state_dict(HopMask(2, 1, stored).state_dict())  # both have two numbers a head
    same = HopMask(2, 1, stored)
    same.load_state_dict(HopMask(2, 1, stored).state_dict())


# Weights along shortest paths --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures('form')
@pytest.mark.parametrize('candidates', [2**22, 3])
@pytest.mark.parametrize('graph', GRAPH_NAMES)
def test_weights_on_shortest_paths_multiply(graph: str, candidates: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('pyg_topomask.graphs.shortest_paths._CANDIDATES', candidates)
    data, f = GRAPHS[graph](), F.double().abs()
    products = path_products(data, 2, np.mean)
    actual = HopMask(2, 2, f, path_weights='mean')(data).to_dense().detach().numpy()
    np.testing.assert_allclose(actual, hop_matrix(f, data) * products, rtol=1e-12, atol=1e-12)
    if data.get('edge_weight') is not None:
        data.edge_weight = data.edge_weight.abs()
    largest = HopMask(2, 2, f, path_weights='max')(data).to_dense().detach().numpy()
    np.testing.assert_allclose(largest, hop_matrix(f, data) * path_products(data, 2, np.max), rtol=1e-12, atol=1e-12)


def test_more_shortest_paths_than_float64_can_count() -> None:
    hops, parallel = 160, 100  # 1e320 paths from one end to the other
    weight = torch.linspace(0.5, 1.0, parallel, dtype=torch.float64)
    edges = path(hops + 1).repeat_interleave(parallel, dim=1)
    data = Data(edge_index=edges, edge_weight=weight.repeat(hops), num_nodes=hops + 1)
    state = HopMask(max_hops=hops, path_weights='mean').prepare(Graph.from_data(data))
    row, col = state.hops.pattern.row, state.hops.pattern.col
    np.testing.assert_allclose(state.weight.log().numpy(), (row - col).numpy() * np.log(0.75), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize('how', ['mean', 'max'])
def test_weights_of_one_change_nothing(how: str) -> None:
    data = Data(edge_index=GRAPHS['batch']().edge_index, batch=GRAPHS['batch']().batch, num_nodes=40)
    plain, weighted = HopMask(2, 3), HopMask(2, 3, path_weights=how)
    torch.testing.assert_close(weighted(data).to_dense(), plain(data).to_dense())
    assert not plain.weighted
    assert weighted.weighted
    assert weighted.learns_weights


def test_products_of_weights_are_refused_by_name() -> None:
    edges = ring(5)
    with pytest.raises(ValueError, match=r'^edge_weight: got -1.0 for the largest product .*weights of at least 0'):
        HopMask(path_weights='max')(Data(edge_index=edges, edge_weight=-torch.ones(10), num_nodes=5))
    with pytest.raises(ValueError, match=r'^edge_weight: got weights up to 1e\+06, and shortest paths .*; accepted: smaller'):
        HopMask(path_weights='mean')(Data(edge_index=edges, edge_weight=torch.full((10,), 1e6), num_nodes=5))
