from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.tu_data import load, split

# Undirected edges of graphs of 4, 1 and 3 nodes.
EDGES = [[(0, 1), (0, 3), (2, 3)], [], [(0, 2)]]
SIZES = [4, 1, 3]


def write(folder: Path, labels: list[int], **more: np.ndarray) -> None:
    (folder / 'tu_packed').mkdir()
    above, gap = [], []
    for size, edges in zip(SIZES, EDGES, strict=True):
        for node in range(size):
            neighbors = sorted(neighbor for low, neighbor in edges if low == node)
            above.append(len(neighbors))
            gap += list(np.diff([node, *neighbors]))
    sizes = np.tile(SIZES, len(labels) // 3)
    above, gap = above * (len(labels) // 3), gap * (len(labels) // 3)
    np.savez(
        folder / 'tu_packed' / 'DD.npz', n=np.uint16(sizes), y=np.uint8(labels), deg=np.uint8(above), gap=np.uint16(gap), **more
    )


@pytest.mark.parametrize('labelled', [False, True])
def test_packed_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labelled: bool) -> None:
    monkeypatch.setenv('PYG_TOPOMASK_DATA', str(tmp_path))
    write(tmp_path, [1, 0, 1], **({'node_label': np.uint8([3, 7, 7, 3, 9, 3, 3, 3])} if labelled else {}))
    graphs = load('DD', '')
    assert [graph.num_nodes for graph in graphs] == SIZES
    assert [graph.y.tolist() for graph in graphs] == [[1], [0], [1]]
    for graph, edges in zip(graphs, EDGES, strict=True):
        assert sorted(map(tuple, graph.edge_index.t().tolist())) == sorted(edges + [(high, low) for low, high in edges])
    features = [graph.x.argmax(1).tolist() if labelled else graph.x.flatten().tolist() for graph in graphs]
    assert features == ([[0, 1, 1, 0], [2], [0, 0, 0]] if labelled else [[2, 1, 1, 2], [0], [1, 0, 1]])


def test_folds_are_disjoint_stratified_and_fixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('PYG_TOPOMASK_DATA', str(tmp_path))
    write(tmp_path, [0, 1, 1] * 100)
    graphs = load('DD', '')
    folds = [split('DD', graphs, fold) for fold in range(10)]
    assert sorted(index for fold in folds for index in fold.test) == list(range(300))
    for fold in folds:
        assert sorted(fold.train + fold.val + fold.test) == list(range(300))
        for indices, size in ((fold.train, 243), (fold.val, 27), (fold.test, 30)):
            assert len(indices) == size
            assert sum(int(graphs[index].y) for index in indices) == size * 2 // 3
    assert folds[0] == split('DD', graphs, 0)
