"""Graphs of files in formats of other tools, and of other libraries."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.apps.datasets import load_graph


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith('.gz') else text.encode())
        return path

    return write


def dense(data: Data) -> Tensor:
    """The adjacency matrix, in which parallel edges add up."""
    weight = torch.ones(data.num_edges) if data.edge_weight is None else data.edge_weight
    matrix = torch.zeros(data.num_nodes, data.num_nodes)
    return matrix.index_put((data.edge_index[0], data.edge_index[1]), weight, accumulate=True)


#: The graph of the manual of METIS 5.1, Figure 2 (a), 7 nodes and 11 edges, with the weights of (b) and (c).
METIS = {
    '7 11': '5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n',
    '7 11 001': '5 1 3 2 2 1\n1 1 3 2 4 1\n5 3 4 2 2 2 1 2\n2 1 3 2 6 2 7 5\n1 1 3 3 6 2\n5 2 4 2 7 6\n6 6 4 5\n',
    '7 11 011': '4 5 1 3 2 2 1\n2 1 1 3 2 4 1\n5 5 3 4 2 2 2 1 2\n3 2 1 3 2 6 2 7 5\n1 1 1 3 3 6 2\n6 5 2 4 2 7 6\n2 6 6 4 5\n',
    '7 11 010 3': '1 2 0 5 3 2\n0 2 2 1 3 4\n4 1 1 5 4 2 1\n2 2 3 2 3 6 7\n1 1 1 1 3 6\n2 2 1 5 4 7\n1 2 1 6 4\n',
    '7 11 110': '9 4 5 3 2\n9 2 1 3 4\n9 5 5 4 2 1\n9 3 2 3 6 7\n9 1 1 3 6\n9 6 5 4 7\n9 2 6 4\n',
    '7 11 100': '9 5 3 2\n9 1 3 4\n9 5 4 2 1\n9 2 3 6 7\n9 1 3 6\n9 5 4 7\n9 6 4\n',
}
EDGES = {
    (1, 5): 1,
    (1, 3): 2,
    (1, 2): 1,
    (2, 3): 2,
    (2, 4): 1,
    (3, 5): 3,
    (3, 4): 2,
    (4, 6): 2,
    (4, 7): 5,
    (5, 6): 2,
    (6, 7): 6,
}


@pytest.mark.parametrize('header', METIS)
@pytest.mark.parametrize('name', ['a.graph', 'a.metis', 'a.graph.gz'])
def test_metis(write: Callable[[str, str], Path], header: str, name: str) -> None:
    data = load_graph(write(name, f'% comment\n{header}\n{METIS[header].replace(chr(10), chr(10) + "% more" + chr(10), 1)}'))
    expected = torch.zeros(7, 7)
    for (one, other), weight in EDGES.items():
        expected[one - 1, other - 1] = expected[other - 1, one - 1] = weight
    assert torch.equal(dense(data), expected if header == '7 11 001' or header == '7 11 011' else expected.sign())
    assert data.n_id.tolist() == [1, 2, 3, 4, 5, 6, 7]
    nodes = {
        '7 11 011': [[4], [2], [5], [3], [1], [6], [2]],
        '7 11 110': [[4], [2], [5], [3], [1], [6], [2]],
        '7 11 010 3': [[1, 2, 0], [0, 2, 2], [4, 1, 1], [2, 2, 3], [1, 1, 1], [2, 2, 1], [1, 2, 1]],
    }
    assert ('node_weight' in data) == (header in nodes)
    if header in nodes:
        assert data.node_weight.tolist() == nodes[header]


def test_metis_with_nodes_without_neighbors(write: Callable[[str, str], Path]) -> None:
    data = load_graph(write('a.graph', '4 1\n\n3\n2\n\n'))
    assert (data.edge_index.tolist(), data.num_nodes) == ([[1, 2], [2, 1]], 4)
    assert load_graph(write('b.graph', '2 0\n\n\n')).edge_index.shape == (2, 0)


DIMACS = 'c roads\np sp 4 3\na 1 2 803\na 2 1 803.5\nc more\na 4 4 1\n'


def test_dimacs(write: Callable[[str, str], Path]) -> None:
    data = load_graph(write('USA-road-d.NY.gr.gz', DIMACS))
    assert data.edge_index.tolist() == [[0, 1, 3], [1, 0, 3]]
    assert (data.length.tolist(), data.num_nodes, data.n_id.tolist()) == ([803, 803.5, 1], 4, [1, 2, 3, 4])
    assert data.edge_weight is None  # which would say how near two nodes are


def test_lists_of_snap(write: Callable[[str, str], Path]) -> None:
    text = '# Directed graph: web\r\n# FromNodeId\tToNodeId\r\n30\t1412\r\n30\t3352\r\n\r\n5\t30\r\n'
    data = load_graph(write('web.txt.gz', text))
    assert (data.edge_index.tolist(), data.n_id.tolist()) == ([[1, 1, 0], [2, 3, 1]], [5, 30, 1412, 3352])
    assert 'n_id' not in load_graph(write('a.edges', '% sym\n0 1\n2,0\n'))
    assert load_graph(write('none.txt', '# nothing\n')).num_nodes == 0
    path = write('a.txt', '0 1 0.5 8\n1 0 -2 9\n')
    with pytest.warns(
        UserWarning, match=r'a\.txt: columns after the first two are not read; .* name the column, from 0, by weight=2'
    ):
        assert load_graph(path).edge_weight is None
    assert load_graph(path, weight=2).edge_weight.tolist() == [0.5, -2]


def test_broken_files(write: Callable[[str, str], Path], subtests: pytest.Subtests) -> None:
    for name, text, message in [
        ('a.graph', '% c\n2 x\n', r"a\.graph, line 2: got '2 x'; accepted: numbers of nodes and edges, and perhaps a format"),
        ('a.graph', '', r"a\.graph, line 1: got ''; accepted: numbers of nodes"),
        ('a.graph', '2 1\n2\n%\n3\n', r"a\.graph, line 4: got '3' as word 1; accepted: neighbors from 1 to 2"),
        ('a.graph', '2 1 1\n2 1\n1\n', r'a\.graph, line 3: got 1 words; accepted: neighbors, each with a weight'),
        ('a.graph', '2 1 1\n2 0\n1 1\n', r"a\.graph, line 2: got '0' as word 1; accepted: weights of edges from 1"),
        ('a.graph', '2 1\n2\n', r'a\.graph, line 2: got the end of the file after 1 nodes; accepted: 2 lines of nodes'),
        ('a.graph', '2 1\n2\n1\n1\n', r"a\.graph, line 4: got '1'; accepted: 2 lines of nodes, as in the header"),
        ('a.graph', '2 2\n2\n1\n', r'a\.graph: 2 neighbors in all lines; accepted: 4, twice the number of edges'),
        ('a.gr', 'p sp 2 1\na 1 3 4\n', r"a\.gr, line 2: got '3' as word 2; accepted: nodes from 1 to 2"),
        ('a.gr', 'p sp 2 1\na 1 2 far\n', r"a\.gr, line 2: got 'far' as word 4; accepted: finite numbers"),
        ('a.gr', 'p tw 2 1\n1 2\n', r"a\.gr, line 1: got 'p tw 2 1'; accepted: 'p sp'"),
        ('a.gr', 'p sp 2 1\n1 2\n', r"a\.gr, line 2: got '1 2'; accepted: 'a', two nodes and a length"),
        ('a.gr', 'a 1 2 3\n', r"a\.gr, line 1: got 'a 1 2 3'"),
        ('a.gr', 'c\n', r"a\.gr without a line 'p sp'"),
        ('a.gr', 'p sp 2 2\na 1 2 3\n', r'a\.gr: 1 arcs; accepted: 2, as in the line p'),
        ('a.txt', '# c\n0 1\n0 x\n', r"a\.txt, line 3: got 'x' as word 2; accepted: ids of nodes from 0"),
        ('a.txt', '0 1\n0\n', r'a\.txt, line 2: got 1 words; accepted: two nodes'),
        ('a.txt', '0 1\n0 -1\n', r"a\.txt, line 2: got '-1' as word 2; accepted: ids of nodes from 0"),
        ('a.doc', '', r"source: got '.*a\.doc'; accepted: files that end in \.graph, .*; save it with networkx"),
    ]:
        with subtests.test(name=name, text=text), pytest.raises(ValueError, match=message):
            load_graph(write(name, text))
    with pytest.raises(ValueError, match=r"source: got 'absent.gr', which is no file"):
        load_graph('absent.gr')
    with pytest.raises(ValueError, match=r'weight: got 1; accepted: for a list of edges, a column from 2 on'):
        load_graph(write('a.txt', '0 1\n'), weight=1)
    with pytest.raises(ValueError, match=r'weight: got 2; accepted: this only for lists of edges'):
        load_graph(write('a.gr', DIMACS), weight=2)
    with pytest.raises(ValueError, match=r'source: got Graph; accepted: .*; use torch_geometric.utils.from_networkx'):
        load_graph(networkx.path_graph(2))
    with pytest.raises(ValueError, match=r'source: got int; accepted: paths, and graphs of igraph, rustworkx, networkit'):
        load_graph(3)


#: Two triangles with a common side.
VERTICES, FACES = ['0 0 0', '1 0 0', '0 1 0', '1 1 0.5'], ['0 1 2', '2 1 3']
PLY = 'ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\nelement face 2\n'
MESHES = {
    'a.off': '\n'.join(['OFF', '4 2 0', *VERTICES, *(f'3 {face}' for face in FACES), '']),
    'counts.off': '\n'.join(['OFF4 2 0', *VERTICES, *(f'3 {face}' for face in FACES), '']),  # ModelNet40
    'blank.off': '\n'.join(['OFF 4 2 0', *VERTICES, *(f'3 {face}' for face in FACES), '']),
    'a.ply': '\n'.join(
        [PLY + 'property list uchar int vertex_indices\nend_header', *VERTICES, *(f'3 {face}' for face in FACES), '']
    ),
    'a.obj': '\n'.join([*(f'v {vertex}' for vertex in VERTICES), 'f 1 2 3', 'f 3//1 2//1 4//1', '']),
    'a.off.gz': '\n'.join(['OFF', '# comment', '4 2 0', *VERTICES, *(f'3 {face}' for face in FACES), '']),
}


@pytest.mark.parametrize('name', MESHES)
def test_meshes(write: Callable[[str, str], Path], name: str) -> None:
    pytest.importorskip('trimesh')
    data = load_graph(write(name, MESHES[name]))
    assert data.pos.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0.5]]
    assert data.face.tolist() == [[0, 2], [1, 1], [2, 3]]
    sides = {(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)}
    assert {tuple(edge) for edge in data.edge_index.t().tolist()} == sides | {(j, i) for i, j in sides}


def test_broken_meshes(write: Callable[[str, str], Path]) -> None:
    pytest.importorskip('trimesh')
    for name, text in (('a.off', 'x'), ('a.off', 'OFF\n4 2 0\n0 0 0\n'), ('a.ply', 'ply\n'), ('a.obj', 'v 0 0 0\n')):
        with pytest.raises(ValueError, match=rf'source: got .*{name}(: .*; accepted: meshes as trimesh| with \d+ vertices)'):
            load_graph(write(name, text))


def test_igraph(subtests: pytest.Subtests) -> None:
    """igraph 1.0.0 counts a self-loop twice in get_adjacency() and once in get_adjacency_sparse(). Here it counts once."""
    igraph = pytest.importorskip('igraph')
    for directed in (False, True):
        graph = igraph.Graph(n=4, edges=[(0, 1), (1, 2), (2, 2), (0, 1)], directed=directed)
        graph.es['weight'], graph.es['km'] = [1.0, 2, 3, 4], [1, 1, 1, 5]
        expected = torch.zeros(4, 4)
        expected[0, 1], expected[1, 2], expected[2, 2] = 5, 2, 3
        expected = expected if directed else torch.maximum(expected, expected.t())
        assert torch.equal(dense(load_graph(graph)), expected)
        assert float(dense(load_graph(graph, weight='km'))[0, 1]) == 6
        assert torch.equal(dense(load_graph(graph, weight='km')) > 0, torch.tensor(graph.get_adjacency_sparse().toarray()) > 0)
    empty = load_graph(igraph.Graph(n=3))
    assert (empty.edge_index.shape, empty.num_nodes, empty.edge_weight) == ((2, 0), 3, None)


@pytest.mark.parametrize('payload', [float, lambda value: {'weight': value}, str, lambda value: None])
@pytest.mark.parametrize('directed', [False, True])
def test_rustworkx(payload: Callable[[int], Any], directed: bool) -> None:
    """rustworkx 0.18.1 keeps the indices of nodes after a removal, and adjacency_matrix counts the nodes that are left."""
    rustworkx = pytest.importorskip('rustworkx')
    graph = (rustworkx.PyDiGraph if directed else rustworkx.PyGraph)()
    graph.add_nodes_from([*'abcde'])
    graph.add_edges_from([(0, 2, payload(1)), (1, 2, payload(9)), (4, 3, payload(2)), (4, 4, payload(3))])
    graph.remove_node(1)
    data = load_graph(graph)
    expected = torch.zeros(4, 4)
    weighted = isinstance(payload(1), (float, dict))
    for row, column, weight in ((0, 1, 1), (3, 2, 2), (3, 3, 3)):
        expected[row, column] = weight if weighted else 1
    assert torch.equal(dense(data), expected if directed else torch.maximum(expected, expected.t()))
    assert data.n_id.tolist() == [0, 2, 3, 4] == [*graph.node_indexes()]


@pytest.mark.parametrize('directed', [False, True])
@pytest.mark.parametrize('weighted', [False, True])
def test_networkit(directed: bool, weighted: bool) -> None:
    networkit = pytest.importorskip('networkit')
    graph = networkit.Graph(5, weighted=weighted, directed=directed)
    for source, target, weight in ((0, 2, 1.5), (1, 2, 9), (4, 3, 2), (4, 4, 3)):
        graph.addEdge(source, target, weight)
    graph.removeNode(1)
    data = load_graph(graph)
    expected = torch.zeros(4, 4)
    for row, column, weight in ((0, 1, 1.5), (3, 2, 2), (3, 3, 3)):
        expected[row, column] = weight if weighted else 1
    assert torch.equal(dense(data), expected if directed else torch.maximum(expected, expected.t()))
    assert data.n_id.tolist() == [0, 2, 3, 4]
    assert (data.edge_weight is None) == (not weighted)
