from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from graphs import GRAPHS, NAMES_WITH_NODES, ring, small_digraph, small_graph, small_weighted_graph
from oracles import power_series, weight_matrix
from torch_geometric.data import Batch, Data

from pyg_topomask.apps.viz import explore
from pyg_topomask.apps.viz.drawing import positions
from pyg_topomask.apps.viz.explore import walks_for
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import (
    AdjacencyMask,
    DenseMask,
    GRFMask,
    HopMask,
    MultiHeadMask,
    PackingMask,
)
from pyg_topomask.transforms import AddGraphRandomFeatures

F = [1.0, 0.8, -0.3]
SETTINGS = {'num_walks': 4, 'p_halt': 0.3, 'max_walk_length': 2}


def content(*arguments: Any, **settings: Any) -> dict[str, Any]:
    """What a page holds, with its arrays."""
    (text,) = re.findall(r'^const content = (.*);$', explore(*arguments, **settings).html, re.MULTILINE)

    def array(value: dict[str, Any]) -> Any:
        if value.keys() != {'shape', 'data'}:
            return value
        return np.frombuffer(gzip.decompress(base64.b64decode(value['data'])), '<f4').reshape(value['shape'])

    return json.loads(text, object_hook=array)


def distances(matrix: np.ndarray) -> np.ndarray:
    """The hops from i to j where i attends to j along entries of W, 9 for those farther than 8 or out of reach."""
    reached, distance = np.eye(len(matrix)), np.full(matrix.shape, 9)
    for hops in range(9):
        distance[(distance == 9) & (reached > 0)] = min(hops, 9)
        reached = reached @ (matrix != 0)
    return distance


@pytest.mark.parametrize('make', [small_graph, small_digraph, small_weighted_graph])
def test_rows_errors_and_distances_are_those_of_the_equation(make: Any) -> None:
    data = make()
    mask = GRFMask(heads=2, modulation=torch.tensor([F, [1.0, 0.0, 0.5]]), **SETTINGS)
    page = content(mask, data, num_walks=[1, 16])
    (shown,) = page['masks']
    assert page['nodes'] == list(range(6))
    assert (shown['heads'], shown['walks'], shown['own']) == (['1', '2'], [1, 4, 16], 1)

    w = weight_matrix(data, 'sym')
    hops = distances(w)
    np.testing.assert_array_equal(page['distances']['source_to_target'], hops)
    for head, f in enumerate(np.array([F, [1.0, 0.0, 0.5]])):
        series = power_series(w, f)
        exact = series @ series.T
        np.testing.assert_allclose(shown['rows'][0, head], exact, atol=1e-6)
        for walks, estimate in enumerate(shown['rows'][1:, head].astype(float)):
            deviation = estimate - exact
            error = np.linalg.norm(deviation) / np.linalg.norm(exact)
            np.testing.assert_allclose(shown['errors'][walks, head], error, rtol=1e-4)
            row_errors = np.linalg.norm(deviation, axis=1) / np.linalg.norm(exact, axis=1)
            np.testing.assert_allclose(shown['row_errors'][walks, head], row_errors, rtol=1e-4, atol=1e-6)
        shares = np.stack([np.where(hops == hop, np.abs(exact), 0).sum(1) for hop in range(10)], axis=1)
        shares /= np.abs(exact).sum(1, keepdims=True)
        np.testing.assert_allclose(shown['shares'][0, head], shares, atol=1e-6)
        np.testing.assert_allclose(shown['mean_shares'][head], shares.mean(0), atol=1e-6)
    dense = mask(data).to_dense().detach()
    np.testing.assert_allclose(shown['rows'][2], dense, atol=1e-6)  # with the walks of the mask itself


@pytest.mark.parametrize('asymmetric', [False, True, 'pairs'])
def test_estimates_are_those_of_the_mask(asymmetric: bool | str) -> None:
    data = small_digraph()
    mask = GRFMask(modulation=torch.tensor(F), asymmetric=asymmetric, seed=3, **SETTINGS)
    if mask.key_modulation is not None:
        mask.key_modulation.data *= torch.tensor([2.0, -1.0, 1.0])
    (shown,) = content(mask, data, num_walks=[8])['masks']
    np.testing.assert_allclose(shown['rows'][1, 0], mask(data).to_dense()[0].detach(), atol=1e-6)
    with_eight = GRFMask(modulation=torch.tensor(F), asymmetric=asymmetric, seed=3, **SETTINGS | {'num_walks': 8})
    with_eight.load_state_dict(mask.state_dict())
    np.testing.assert_allclose(shown['rows'][2, 0], with_eight(data).to_dense()[0].detach(), atol=1e-6)
    series = power_series(weight_matrix(data, 'sym'), np.array(F))
    key = {False: series.T, True: np.eye(6), 'pairs': None}[asymmetric]
    if key is None:
        key = power_series(weight_matrix(data, 'sym'), np.array(F) * [2.0, -1.0, 1.0]).T
    np.testing.assert_allclose(shown['rows'][0, 0], series @ key, atol=1e-5)


def test_walkers_in_pairs_are_even_in_number() -> None:
    mask = GRFMask(modulation=torch.tensor(F), sampler='antithetic', **SETTINGS)
    (shown,) = content(mask, small_graph(), num_walks=[1, 2, 3, 8])['masks']
    assert shown['walks'] == [2, 4, 8]


def test_rows_without_weight_are_left_out_of_means() -> None:
    data = Data(edge_index=ring(4), num_nodes=6)
    (shown,) = content(AdjacencyMask(2, self_loop=None), data)['masks']
    np.testing.assert_allclose(shown['mean_shares'], [[0.0, 1.0, *[0.0] * 8]], atol=1e-6)
    assert shown['heads'] == ['all alike']


def test_reach_is_the_mean_of_the_heads() -> None:
    mask, data = GRFMask(heads=2, modulation=torch.tensor([F, [1.0, 0.0, 0.5]]), **SETTINGS), small_graph()
    (shown,) = content(mask, data)['masks']
    np.testing.assert_allclose(shown['reach'], shown['mean_shares'].mean(0), rtol=1e-5)


def test_a_page_opens_with_the_head_whose_row_has_most_contrast() -> None:
    f = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 0.9], [0.2, 0.5, 0.1], [9.0, 0.2, 0.2]])
    (shown,) = content(HopMask(heads=4, max_hops=2, f=f), small_graph())['masks']
    assert shown['first'] == 2


def test_nodes_have_names() -> None:
    labels = [f'<{letter}>' for letter in 'abcdef']
    page = content(HopMask(), small_graph(), node=2, num_nodes=3, labels=labels)
    assert page['names'] == [labels[node] for node in page['nodes']]
    assert content(HopMask(), small_graph())['names'] is None


def test_a_page_has_at_most_two_megabytes() -> None:
    torch.manual_seed(0)
    data = Data(edge_index=ring(512), num_nodes=512, pos=torch.rand(512, 2))
    masks = {str(seed): DenseMask(heads=4, matrix=torch.randn(4, 512, 512)) for seed in range(3)}
    page = explore(masks, data, num_nodes=512)
    assert len(page.html.encode()) <= 2_000_000
    (nodes,) = re.findall(r'"nodes": (\[[^]]*\])', page.html)
    assert 100 < len(json.loads(nodes)) < 512


def test_masks_without_walks() -> None:
    f = torch.tensor([[1.0, 0.5, 0.2, 0.1], [1.0, 0.0, 0.3, 0.7]])
    masks = {'hops': HopMask(2, 3, f), 'all': PackingMask(), 'two': MultiHeadMask(PackingMask(), HopMask())}
    hops, every, two = content(masks, small_graph())['masks']
    assert (hops['heads'], every['heads'], two['heads']) == (['1', '2'], ['1'], ['1', '2'])
    assert not hops['walks']
    assert 'errors' not in hops
    distance = distances(weight_matrix(small_graph(), None))
    for head in range(2):
        expected = np.where(distance <= 3, f[head].numpy()[np.minimum(distance, 3)], 0)
        np.testing.assert_allclose(hops['rows'][0, head], expected, atol=1e-6)
    np.testing.assert_array_equal(every['rows'][0, 0], np.ones((6, 6)))


@pytest.mark.parametrize('name', NAMES_WITH_NODES)
def test_any_graph_has_a_page(name: str) -> None:
    data = GRAPHS[name]()
    page = content({'walks': GRFMask(**SETTINGS), 'hops': HopMask()}, data, num_walks=[2])
    assert len(page['positions']) == len(page['nodes']) <= data.num_nodes
    assert np.isfinite(page['positions']).all()


def test_of_a_batch_the_graph_of_the_node_is_shown() -> None:
    page = content(PackingMask(), GRAPHS['batch'](), node=34)
    assert page['nodes'] == list(range(33, 40))
    assert (page['chosen'], page['graph']) == (1, {'index': 3, 'graphs': 4, 'nodes': 7, 'edges': 14})


def test_of_a_large_graph_the_nearest_nodes_are_shown_and_all_nodes_count() -> None:
    data = Data(edge_index=ring(2_000), num_nodes=2_000)
    page = content(HopMask(max_hops=30, f='decay'), data, node=7, num_nodes=11)
    assert sorted(page['nodes']) == list(range(2, 13))
    assert page['nodes'][page['chosen']] == 7
    weight = np.array([1, *2 * 0.5 ** np.arange(1, 31)])
    expected = [*weight[:9], weight[9:].sum()] / weight.sum()
    np.testing.assert_allclose(page['masks'][0]['shares'][0, 0, 0], expected, atol=1e-6)
    # Of many variants, fewer nodes fit on the page.
    many = {str(seed): GRFMask(8, num_walks=1, seed=seed) for seed in range(12)}
    assert 1 < len(content(many, data, num_walks=[1])['nodes']) < 128


def test_edges_are_those_between_the_nodes_that_are_shown() -> None:
    page = content(PackingMask(), small_weighted_graph())
    pairs = {(0, 1): 0.5, (1, 2): 2.0, (0, 2): 1.0, (2, 3): 0.7, (3, 4): 0.3, (4, 5): 1.5, (3, 5): 1.0}
    assert not page['directed']
    weights = zip(map(tuple, page['edges']), page['weights'], strict=True)
    assert dict(weights) == pytest.approx(pairs)
    page = content(PackingMask(), Data(edge_index=small_digraph().edge_index, num_nodes=6))
    assert page['directed']
    assert page['weights'] is None
    assert {*map(tuple, page['edges'])} == {*map(tuple, small_digraph().edge_index.t().tolist())}


def test_directions_of_an_edge_with_different_weights_are_both_shown() -> None:
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 1], [1, 0, 2, 1, 1, 2]])  # 1-2 is there twice
    data = Data(edge_index=edge_index, edge_weight=torch.tensor([2.0, 3.0, 2.0, 2.0, 0.5, 0.5]), num_nodes=3)
    page = content(PackingMask(), data)
    assert page['directed']
    weights = dict(zip(map(tuple, page['edges']), page['weights'], strict=True))
    assert weights == {(0, 1): 2.0, (1, 0): 3.0, (1, 2): 2.5, (2, 1): 2.5}


def test_stored_walks_are_not_taken_for_any_number() -> None:
    mask = GRFMask(**SETTINGS)
    stored = AddGraphRandomFeatures(num_walks=64, p_halt=0.3, max_walk_length=2, seed=9)(small_graph())
    assert content(mask, stored, num_walks=[2])['masks'][0]['rows'].tolist() == (
        content(mask, small_graph(), num_walks=[2])['masks'][0]['rows'].tolist()
    )


def test_a_mask_stays_as_it_was() -> None:
    mask, state = GRFMask(resample='forward', **SETTINGS), torch.get_rng_state()
    page = explore({'walks': mask, 'hops': HopMask()}, small_graph())
    assert mask.training
    assert mask.walk_settings.num_walks == 4
    assert torch.equal(torch.get_rng_state(), state)
    assert explore({'walks': mask, 'hops': HopMask()}, small_graph()).html == page.html


def test_positions() -> None:
    def place(data: Data, *nodes: int) -> list[list[float]]:
        return positions(Graph.from_data(data), torch.tensor(nodes)).tolist()

    pos = torch.rand(12, 2)
    grid = Data(num_nodes=12, grid_shape=torch.tensor([[3, 4]]), pos=pos)
    assert place(grid, 5, 11) == [[1, -1], [3, -2]]
    video = Data(num_nodes=12, grid_shape=torch.tensor([[2, 2, 3]]))
    assert place(video, 5, 6) == [[2, -1], [4, 0]]
    batch = Batch.from_data_list([Data(num_nodes=2, grid_shape=torch.tensor([[1, 2]])), grid])
    assert place(batch, 7) == [[1, -1]]
    circle = torch.tensor(place(Data(num_nodes=5, grid_shape=torch.tensor([[5]])), 0, 2, 4))
    torch.testing.assert_close(circle.norm(dim=1), torch.ones(3))
    assert place(Data(num_nodes=12, pos=pos), 3) == pos[[3]].double().tolist()
    path = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    first, middle, last = place(path, 0, 1, 2)
    np.testing.assert_allclose(middle, np.mean([first, last], axis=0), atol=0.02)
    assert place(path, 0, 1, 2) == [first, middle, last]
    for size in (0, 4, 250):  # of many components
        scattered = Data(edge_index=path.edge_index[:, : max(0, size - 2)], num_nodes=size)
        where = positions(Graph.from_data(scattered), torch.arange(size))
        assert where.shape == (size, 2)
        assert bool(where.isfinite().all())


def test_walks_for_an_error(subtests: pytest.Subtests) -> None:
    for errors, walks, expected in [
        ([0.8, 0.4, 0.2], [1, 4, 16], 64),
        ([0.4, 0.2, 0.05], [1, 4, 16], 8),
        ([0.05, 0.02], [2, 4], 2),
        ([0.2, 0.0], [1, 2], 2),
        ([float('nan')], [1], None),
        ([float('inf'), 0.1], [1, 2], None),
    ]:
        with subtests.test(errors=errors, walks=walks, expected=expected):
            assert walks_for(errors, walks) == expected


def test_titles_are_text_and_nothing_is_loaded() -> None:
    page = explore({'</script><b>': PackingMask()}, small_graph(), title='</script>"<&')
    assert '<title>&lt;/script&gt;&quot;&lt;&amp;</title>' in page.html
    assert page.html.count('</script>') == 1
    assert 'const content = {"title": "/*CONTENT*/"' in explore(PackingMask(), small_graph(), title='/*CONTENT*/').html
    assert "default-src 'none'" in page.html
    assert 'srcdoc="&lt;!DOCTYPE' in page._repr_html_()
    assert repr(page).startswith('Page(')


def test_bad_arguments_are_named(subtests: pytest.Subtests) -> None:
    for argument, settings in [
        ('mask', {'mask': {}}),
        ('mask', {'mask': [GRFMask()]}),
        ('mask', {'mask': {'walks': GRFMask(), 'three': 3}}),
        ('node', {'node': 6}),
        ('num_walks', {'num_walks': [0]}),
        ('num_nodes', {'num_nodes': 0}),
        ('graph', {'graph': Data(num_nodes=0)}),
        ('labels', {'labels': ['a', 'b']}),
        ('labels', {'labels': 'abcdef'}),
    ]:
        with subtests.test(argument=argument, settings=settings), pytest.raises(ValueError, match=f'^{argument}: got'):
            explore(**{'mask': GRFMask(), 'graph': small_graph()} | settings)


def test_the_target_of_a_link_is_written(tmp_path: Path) -> None:
    (tmp_path / 'link.html').symlink_to(tmp_path / 'page.html')
    page = explore({'hops': HopMask()}, small_graph())
    page.save(tmp_path / 'link.html')
    assert (tmp_path / 'link.html').is_symlink()
    assert (tmp_path / 'page.html').read_text(encoding='utf-8') == page.html
    with pytest.raises(ValueError, match=r'^path: got .*absent/page.html'):
        page.save(tmp_path / 'absent' / 'page.html')
