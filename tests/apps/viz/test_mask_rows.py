from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch
from graphs import GRAPHS, NAMES_WITH_NODES, small_digraph
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from oracles import weight_matrix

from pyg_topomask.apps.viz import plot_mask_rows
from pyg_topomask.masks import AdjacencyMask, PackingMask

POS = torch.tensor([[0.0, 0.0], [1.0, 0.5], [2.0, 0.0], [3.0, 1.0], [4.0, 0.0], [5.0, 2.0]])
NODE = 4


def panel(axis: Axes) -> tuple[Any, Any, Any]:
    """The hollow nodes, the coloured ones and the star."""
    empty, seen, star = (collection for collection in axis.collections if not isinstance(collection, LineCollection))
    return empty, seen, star


def test_row_is_that_of_the_matrix() -> None:
    data = small_digraph()
    row = weight_matrix(data, None)[NODE]
    axis, bar = plot_mask_rows({'edges': AdjacencyMask()}, data, NODE, POS).axes
    assert bar.get_ylabel()
    empty, seen, star = panel(axis)
    elsewhere = np.arange(6) != NODE
    np.testing.assert_allclose(empty.get_offsets(), POS[elsewhere & (row == 0)])
    np.testing.assert_allclose(star.get_offsets(), POS[[NODE]])
    colours = {tuple(place): value for place, value in zip(seen.get_offsets().tolist(), seen.get_array(), strict=True)}
    wanted = {tuple(POS[i].tolist()): row[i] / np.abs(row[elsewhere]).max() for i in np.flatnonzero(elsewhere & (row != 0))}
    assert len(wanted) == 2
    assert colours == pytest.approx(wanted)


def test_colours_are_signed_where_entries_are() -> None:
    data = small_digraph()
    axes = plot_mask_rows({'plain': PackingMask(), 'signed': PackingMask() * -1.0}, data, NODE, POS).axes
    assert [panel(axis)[1].get_clim() for axis in axes[:2]] == [(0, 1), (-1, 1)]
    assert [bar.get_ylim() for bar in axes[2:]] == [(0, 1), (-1, 1)]  # a colour bar for each kind


def test_edges_and_panels() -> None:
    data = small_digraph()
    figure = plot_mask_rows(dict.fromkeys('abcde', AdjacencyMask()), data, NODE, POS, columns=2)
    assert [axis.get_title() for axis in figure.axes[:5]] == list('abcde')
    assert figure.axes[0].get_subplotspec().get_gridspec().get_geometry() == (3, 2)
    (lines,) = (collection for collection in figure.axes[0].collections if isinstance(collection, LineCollection))
    assert len(lines.get_segments()) == data.num_edges


def test_head_is_the_one_asked_for() -> None:
    data = small_digraph()
    mask = AdjacencyMask(self_loop=None) * torch.tensor([1.0, -1.0])
    rows = [panel(plot_mask_rows({'': mask}, data, NODE, POS, head=head).axes[0])[1] for head in range(2)]
    value = [dict(zip(map(tuple, row.get_offsets().tolist()), row.get_array().tolist(), strict=True)) for row in rows]
    assert value[1] == pytest.approx({place: -entry for place, entry in value[0].items()})


@pytest.mark.parametrize('name', NAMES_WITH_NODES)
def test_any_graph_can_be_drawn(name: str) -> None:
    data = GRAPHS[name]()
    figure = plot_mask_rows({'edges': AdjacencyMask(), 'all': PackingMask()}, data, 0, torch.rand(data.num_nodes, 2))
    figure.canvas.draw()
    empty, seen, _ = panel(figure.axes[1])
    assert len(empty.get_offsets()) + len(seen.get_offsets()) == data.num_nodes - 1


@pytest.mark.parametrize('pos', [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
def test_nodes_on_a_line_are_drawn_on_a_readable_figure(pos: list[float]) -> None:
    data = small_digraph()
    place = torch.arange(data.num_nodes)[:, None] * torch.tensor(pos)
    figure = plot_mask_rows({'edges': AdjacencyMask(), 'all': PackingMask()}, data, 0, place)
    figure.canvas.draw()
    for axis in figure.axes[:2]:
        box = axis.get_window_extent()
        assert min(box.width, box.height) > 40  # pixels


def test_bad_arguments_are_named(subtests: pytest.Subtests) -> None:
    for argument, change in [
        ('masks', {'masks': {}}),
        ('masks', {'masks': AdjacencyMask()}),
        ('masks', {'masks': [AdjacencyMask()]}),
        ('mask', {'masks': {'three': 3}}),
        ('graph', {'graph': GRAPHS['empty'](), 'pos': POS[:0]}),
        ('node', {'node': 6}),
        ('pos', {'pos': POS[:, :1]}),
        ('pos', {'pos': POS * float('nan')}),
        ('columns', {'columns': 0}),
        ('head', {'head': 1}),
    ]:
        with subtests.test(argument=argument, change=change):
            arguments = {'masks': {'edges': AdjacencyMask()}, 'graph': small_digraph(), 'node': NODE, 'pos': POS}
            with pytest.raises(ValueError, match=f'^{argument}: got'):
                plot_mask_rows(**arguments | change)


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'matplotlib.figure', None)
    with pytest.raises(ImportError, match=r'pyg_topomask with its extra \[viz\]'):
        plot_mask_rows({'edges': AdjacencyMask()}, small_digraph(), NODE, POS)
