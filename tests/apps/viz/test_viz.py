from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from graphs import GRAPHS, NAMES_WITH_NODES, ring, small_digraph, small_graph
from oracles import power_series, weight_matrix
from torch_geometric.data import Data

from pyg_topomask import Graph
from pyg_topomask.apps.diagnostics import guaranteed_deviation, load_constant, mask_error, measured_entries, sparsity_bound
from pyg_topomask.apps.viz import plot_inspection
from pyg_topomask.apps.viz.drawing import neighborhood
from pyg_topomask.masks import GRFMask

pytest.importorskip('matplotlib')

F = [1.0, 0.8, -0.3]


def make(**settings: Any) -> GRFMask:
    return GRFMask(**{'num_walks': 4, 'p_halt': 0.3, 'max_walk_length': 2, 'modulation': torch.tensor(F)} | settings)


def distances(data: Data, node: int) -> np.ndarray:
    adjacency = (weight_matrix(Data(edge_index=data.edge_index, num_nodes=data.num_nodes), None) != 0).astype(int)
    reached, distance = np.eye(data.num_nodes, dtype=int)[node], np.full(data.num_nodes, -1)
    for hops in range(data.num_nodes):
        distance[(distance < 0) & (reached > 0)] = hops
        reached = reached + (adjacency + adjacency.T) @ reached
    return distance


@pytest.mark.parametrize('size', [3, 100])
@pytest.mark.parametrize('node', [0, 5])
def test_neighborhood_holds_the_nearest_nodes_in_order(node: int, size: int) -> None:
    data = small_digraph()
    nodes = neighborhood(Graph.from_data(data), node, size)
    distance = distances(data, node)
    assert nodes[0] == node
    assert len(set(nodes.tolist())) == len(nodes) == min(size, (distance >= 0).sum())
    assert distance[nodes].tolist() == sorted(distance[distance >= 0])[: len(nodes)]


def test_neighborhood_starts_at_a_node_of_the_largest_degree() -> None:
    assert neighborhood(Graph.from_data(small_graph()))[0] == 2
    assert neighborhood(Graph.from_tensors(torch.empty(2, 0, dtype=torch.long), 3), node=1).tolist() == [1]


def test_pictures_show_the_mask_the_errors_and_the_entries(tmp_path: Path) -> None:
    data, mask = small_graph(), make()
    figure = plot_inspection(mask, data, node=3, num_walks=[1, 4, 16])
    exact_axis, estimate_axis, error_axis, deviation_axis, entry_axis, bar = figure.axes
    assert all(axis.get_xlabel() and axis.get_ylabel() for axis in figure.axes[:-1])
    assert bar.get_ylabel() == 'entry $M_{ij}$'
    nodes = neighborhood(Graph.from_data(data), 3)
    series = power_series(weight_matrix(data, 'sym'), np.array(F))
    np.testing.assert_allclose(exact_axis.images[0].get_array(), (series @ series.T)[np.ix_(nodes, nodes)], atol=1e-6)
    estimate = mask(data).to_dense()[0].detach()[nodes][:, nodes]
    np.testing.assert_allclose(estimate_axis.images[0].get_array(), estimate, atol=1e-6)
    assert exact_axis.images[0].get_clim() == estimate_axis.images[0].get_clim()

    ((relative,), (largest, bound)) = ([line.get_ydata() for line in axis.lines] for axis in (error_axis, deviation_axis))
    for place, number in enumerate((1, 4, 16)):  # of walks that differ each time
        walks = (torch.Generator().manual_seed(seed) for seed in range(3))
        found = [mask_error(make(num_walks=number), data, 64, seed, each) for seed, each in enumerate(walks)]
        assert relative[place] == pytest.approx(np.mean([error.relative.item() for error in found]))
        assert largest[place] == pytest.approx(np.mean([error.max_abs.item() for error in found]))
    c = load_constant(mask, data, walkwise=True)
    np.testing.assert_allclose(bound, [guaranteed_deviation(n, 0.05, c).item() for n in (1, 4, 16)])

    heights = sum(patch.get_height() for patch in entry_axis.patches)
    assert heights == 2 * data.num_nodes
    assert entry_axis.lines[0].get_xdata()[0] == sparsity_bound(4, 0.3, 0.05, 2)
    average = measured_entries(mask, data).mask.double().mean()
    assert f'mask: {average:.1f} on average' in [text.get_text() for text in entry_axis.get_legend().get_texts()]

    figure.savefig(tmp_path / 'inspection.png')
    assert (tmp_path / 'inspection.png').stat().st_size > 0


@pytest.mark.filterwarnings('ignore:max_walk_length is')
def test_bounds_are_not_drawn_where_they_do_not_hold() -> None:
    figure = plot_inspection(make(sampler='antithetic'), small_graph(), num_walks=[1, 2, 3, 4])
    *errors, entries = figure.axes[2:5]
    assert [[line.get_xdata().tolist() for line in axis.lines] for axis in errors] == [[[2, 4]], [[2, 4]]]
    assert len(entries.lines) == 0
    figure = plot_inspection(make(walk_length='fixed:1'), small_graph(), num_walks=[1])
    assert len(figure.axes[3].lines) == 1


@pytest.mark.parametrize('name', NAMES_WITH_NODES)
def test_any_graph_can_be_drawn(name: str) -> None:
    figure = plot_inspection(make(), GRAPHS[name](), num_walks=[2], repeats=1)
    if name in ('one_node', 'no_edges', 'zero_weights'):  # where errors are 0, which a logarithm does not show
        figure.draw_without_rendering()


@pytest.mark.parametrize('asymmetric', [True, 'pairs'])
def test_any_mask_can_be_drawn(asymmetric: bool | str) -> None:
    plot_inspection(make(asymmetric=asymmetric), small_digraph(), num_walks=[2], repeats=1)


def test_large_graph_and_head() -> None:
    modulation = torch.tensor([F, [1.0, 0.0, 0.0]])
    figure = plot_inspection(
        make(heads=2, modulation=modulation),
        Graph.from_tensors(ring(20_000), 20_000),
        num_walks=[2],
        repeats=1,
        num_rows=4,
        head=1,
    )
    np.testing.assert_allclose(figure.axes[0].images[0].get_array(), np.eye(100))
    # The features of the second head are exact, and those of the first are not.
    assert [line.get_ydata().tolist() for axis in figure.axes[2:4] for line in axis.lines[:1]] == [[0.0], [0.0]]


def test_inspecting_leaves_the_mask_as_it_was() -> None:
    mask = make()
    plot_inspection(mask, small_graph(), num_walks=[8])
    assert mask.walk_settings.num_walks == 4


def test_bad_arguments_are_named(subtests: pytest.Subtests) -> None:
    for argument, call in [
        ('node', lambda: neighborhood(Graph.from_data(small_graph()), 6)),
        ('graph', lambda: neighborhood(Graph.from_data(Data(num_nodes=0)))),
        ('head', lambda: plot_inspection(make(), small_graph(), head=1)),
        ('repeats', lambda: plot_inspection(make(), small_graph(), repeats=0)),
        ('mask', lambda: plot_inspection(make(importance=False), small_graph())),
    ]:
        with subtests.test(argument=argument), pytest.raises(ValueError, match=f'^{argument}: got'):
            call()
