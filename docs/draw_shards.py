r"""Draws a graph in two shards, and what one process holds: python docs/draw_shards.py"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

mpl.use('Agg')
import matplotlib.pyplot as plt

COLORS = ('tab:blue', 'tab:orange')


def graph(num_nodes: int = 40, radius: float = 0.24) -> tuple[NDArray[np.float64], list[tuple[int, int]]]:
    r"""Returns positions in the unit square, from left to right, and the pairs of near ones."""
    position = np.random.default_rng(4).random((num_nodes, 2))
    position = position[position[:, 0].argsort()]
    pairs = [(i, j) for i in range(num_nodes) for j in range(i) if np.linalg.norm(position[i] - position[j]) < radius]
    return position, pairs


def draw(axes: plt.Axes, held: NDArray[np.bool_], title: str, text: str) -> None:
    r"""Draws the edges to the nodes that are held, and the nodes at both ends."""
    position, pairs = graph()
    shard = (np.arange(len(position)) >= len(position) // 2).astype(int)
    shown = held.copy()
    for i, j in pairs:
        if held[i] or held[j]:
            shown[[i, j]] = True
            cut = shard[i] != shard[j]
            axes.plot(*position[[i, j]].T, color='crimson' if cut else '0.7', lw=1.4 if cut else 0.8, zorder=1)
    for node in np.flatnonzero(shown):
        color = COLORS[shard[node]]
        face = color if held[node] else 'white'
        axes.scatter(*position[node], s=70, facecolor=face, edgecolor=color, linewidth=1.6, zorder=2)
    axes.set_title(title)
    axes.text(0.5, -0.06, text, ha='center', va='top', transform=axes.transAxes, fontsize=9)
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    axes.axis('off')


def main() -> None:
    everything = np.ones(40, dtype=bool)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6))
    draw(left, everything, 'the graph', 'two shards, and in red the edges between them')
    own = np.arange(40) < 20
    text = 'its nodes, and as circles its halo:\nonly the rows of these are sent by the other process'
    draw(right, own, 'what process 0 holds', text)
    figure.subplots_adjust(bottom=0.16, wspace=0.08)
    figure.savefig(Path(__file__).with_name('shards.png'), dpi=110)


if __name__ == '__main__':
    main()
