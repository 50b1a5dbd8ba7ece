from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pyg_topomask.apps.diagnostics.attention_statistics import attention_degrees
from pyg_topomask.apps.viz.attention_plots import (
    plot_attention_degrees,
    plot_attention_graphs,
    plot_cumulative_attention,
    plot_distance_to_full_attention,
)
from pyg_topomask.nn import KMIPAttention

pytest.importorskip('matplotlib')

PAIRS = torch.tensor([[0, 0, 1, 2, 2, 3], [0, 1, 2, 0, 3, 2]])
ALPHA = torch.tensor([[0.5, 1.0], [0.2, 0.0], [1.0, 0.5], [0.4, 0.3], [0.1, 0.0], [0.0, 0.2]])
POS = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def drawn_edges(axis: Any) -> dict[tuple[Any, ...], float]:
    (lines,) = (collection for collection in axis.collections if hasattr(collection, 'get_segments'))
    opacity = lines.get_alpha()
    return {tuple(map(tuple, segment)): value for segment, value in zip(lines.get_segments(), opacity, strict=True)}


def test_edges_are_as_opaque_as_their_coefficients(tmp_path: Path) -> None:
    figure = plot_attention_graphs([(PAIRS, ALPHA), (PAIRS, ALPHA.flip(1))], POS, edge_index=PAIRS[:, :2])
    axes = np.array(figure.axes[:6]).reshape(3, 2)
    position = [tuple(point) for point in POS.tolist()]
    # The loop at node 0 is not drawn; the largest coefficient of the head is fully opaque.
    expected = {(position[0], position[1]): 0.2, (position[1], position[2]): 1.0, (position[2], position[0]): 0.4}
    expected[position[2], position[3]] = 0.1
    assert drawn_edges(axes[1, 0]) == pytest.approx(expected)
    assert drawn_edges(axes[2, 1]) == pytest.approx(expected)
    second_head = {(position[1], position[2]): 0.5, (position[2], position[0]): 0.3, (position[3], position[2]): 0.2}
    assert drawn_edges(axes[1, 1]) == pytest.approx(second_head)
    assert drawn_edges(axes[0, 0]) == {(position[0], position[1]): 0.5}
    large = plot_attention_graphs([(PAIRS, 10 * ALPHA)], POS)
    assert drawn_edges(large.axes[0]) == pytest.approx(expected)
    figure.savefig(tmp_path / 'graphs.png')
    assert (tmp_path / 'graphs.png').stat().st_size > 0


def test_nodes_are_coloured_by_their_out_degree() -> None:
    figure = plot_attention_graphs([(PAIRS, ALPHA)], POS)
    degrees = attention_degrees(PAIRS, ALPHA, 4)
    for head in range(2):
        (points,) = (collection for collection in figure.axes[head].collections if not hasattr(collection, 'get_segments'))
        drawn = {tuple(place): degree for place, degree in zip(points.get_offsets().tolist(), points.get_array(), strict=True)}
        assert drawn == {tuple(place): degree for place, degree in zip(POS.tolist(), degrees[:, head].tolist(), strict=True)}
        assert points.get_clim() == (0, degrees.max())


def test_only_the_largest_coefficients_are_drawn() -> None:
    figure = plot_attention_graphs([(PAIRS, ALPHA)], POS, max_edges=2)
    assert sorted(drawn_edges(figure.axes[0]).values()) == pytest.approx([0.4, 1.0])


def test_positions_of_more_dimensions_keep_their_distances_in_the_plane() -> None:
    turn, _ = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64))
    flat = torch.cat([torch.rand(4, 2, dtype=torch.float64), torch.zeros(4, 1, dtype=torch.float64)], dim=1)
    figure = plot_attention_graphs([(PAIRS, ALPHA)], flat @ turn)
    (points,) = (collection for collection in figure.axes[0].collections if not hasattr(collection, 'get_segments'))
    drawn = torch.from_numpy(np.array(points.get_offsets()))
    order = attention_degrees(PAIRS, ALPHA, 4)[:, 0].argsort()
    torch.testing.assert_close(torch.cdist(drawn, drawn), torch.cdist(flat, flat)[order][:, order])


def test_tensors_in_training_are_drawn() -> None:
    x = torch.randn(4, 8, requires_grad=True)
    _, layer = KMIPAttention(8, heads=2, k=2)(x, PAIRS, return_attention_weights=True)
    assert layer[1].requires_grad
    curve = torch.rand(1, 2, requires_grad=True)
    for figure in (
        plot_attention_graphs([layer], POS.clone().requires_grad_(), PAIRS),
        plot_attention_degrees([curve]),
        plot_cumulative_attention([1], [curve]),
        plot_distance_to_full_attention([1], [curve]),
    ):
        figure.draw_without_rendering()


@pytest.mark.parametrize('dimensions', [1, 2, 3])
@pytest.mark.parametrize('num_nodes', [0, 1, 2])
def test_small_and_empty_graphs(num_nodes: int, dimensions: int) -> None:
    nothing = torch.empty(2, 0, dtype=torch.long), torch.empty(0, 2)
    figure = plot_attention_graphs([nothing], torch.rand(num_nodes, dimensions), edge_index=nothing[0])
    figure.draw_without_rendering()


def test_degree_histograms_count_nodes_and_edges() -> None:
    degrees = torch.tensor([[3, 0], [1, 1], [0, 0]])
    figure = plot_attention_degrees([degrees, degrees[:2]])
    nodes, edges = figure.axes[:2]
    assert [patch.get_height() for patch in nodes.patches] == [3, 2, 0, 1]
    assert [patch.get_height() for patch in edges.patches] == [0, 2, 0, 3]
    assert sum(patch.get_height() for patch in plot_attention_degrees([degrees], bins=2).axes[0].patches) == 6
    plot_attention_degrees([torch.empty(0, 2, dtype=torch.long)])


@pytest.mark.parametrize('plot', [plot_cumulative_attention, plot_distance_to_full_attention])
def test_curves_have_the_mean_and_the_deviation_of_the_heads(plot: Any) -> None:
    values = torch.tensor([[0.2, 0.4], [0.5, 0.9]])
    figure = plot([1, 10], [values, values / 2])
    (axis,) = figure.axes
    np.testing.assert_allclose(axis.lines[0].get_ydata(), [0.3, 0.7], rtol=1e-6)
    np.testing.assert_allclose(axis.lines[1].get_ydata(), [0.15, 0.35], rtol=1e-6)
    band = axis.collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() == pytest.approx(0.2)
    assert band.max() == pytest.approx(0.9)
    assert axis.get_ylim()[0] == 0
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ['layer 1', 'layer 2']


def test_bad_arguments_are_named(subtests: pytest.Subtests) -> None:
    for argument, call in [
        ('attention', lambda: plot_attention_graphs([], POS)),
        ('attention', lambda: plot_attention_graphs([(PAIRS, ALPHA[:, 0])], POS)),
        ('pos', lambda: plot_attention_graphs([(PAIRS, ALPHA)], POS[0])),
        ('pos', lambda: plot_attention_graphs([(PAIRS, ALPHA)], POS.tolist())),
        ('pos', lambda: plot_attention_graphs([(PAIRS, ALPHA)], torch.full((len(POS), 3), torch.nan))),
        ('edge_index', lambda: plot_attention_graphs([(PAIRS, ALPHA)], POS[:2])),
        ('edge_index', lambda: plot_attention_graphs([(PAIRS, ALPHA)], POS, torch.tensor([[0], [len(POS)]]))),
        ('max_edges', lambda: plot_attention_graphs([(PAIRS, ALPHA)], POS, max_edges=0)),
        ('degrees', lambda: plot_attention_degrees([])),
        ('degrees', lambda: plot_attention_degrees([torch.zeros(3)])),
        ('bins', lambda: plot_attention_degrees([torch.zeros(3, 1)], bins=0)),
        ('cumulative', lambda: plot_cumulative_attention([1, 2], [torch.zeros(3, 2)])),
        ('distance', lambda: plot_distance_to_full_attention([1, 2], [])),
    ]:
        with subtests.test(argument=argument), pytest.raises(ValueError, match=f'^{argument}: got'):
            call()


@pytest.mark.parametrize(
    'plot', [lambda: plot_attention_graphs([(PAIRS, ALPHA)], POS), lambda: plot_attention_degrees([PAIRS])]
)
def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch, plot: Any) -> None:
    for name in [name for name in sys.modules if name.split('.')[0] == 'matplotlib']:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, 'matplotlib', None)
    with pytest.raises(ImportError, match=r'pyg_topomask with its extra \[viz\]'):
        plot()
