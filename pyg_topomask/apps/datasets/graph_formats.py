r"""Graphs of files in formats of other tools, and of other libraries."""

from __future__ import annotations

import gzip
import io
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import FaceToEdge

from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.utils.files import first_line

#: Ends of the names of lists of edges, and of files with graphs but no labels.
LISTS = ('.txt', '.edges', '.el')
FORMATS = ('.graph', '.metis', '.gr', *LISTS)
_REMEDY = 'save it with networkx.write_graphml or as a table of edges, and read that with GraphFile'


def load_graph(source: Any, weight: str | int | None = None) -> Data:
    r"""Returns a graph of a file, or of another library. An edge of an undirected graph is stored in both directions, and a
    self-loop once, with its weight. Parallel edges stay.

    - :obj:`.graph`, :obj:`.metis`: METIS, with weights of edges and nodes (:obj:`node_weight`, of shape :obj:`[N, w]`).
    - :obj:`.gr`: shortest paths of DIMACS (:obj:`p sp`), with a :obj:`length` of each arc. Arcs lead one way.
    - :obj:`.txt`, :obj:`.edges`, :obj:`.el`: the ids of two nodes in a line, as in SNAP. Edges lead one way. Lines that begin
      with :obj:`#` or :obj:`%` are comments.
    - :obj:`.off`, :obj:`.ply`, :obj:`.obj`: a mesh, by trimesh (extra :obj:`meshes`), with :obj:`pos` and :obj:`face`.
    - Graphs of igraph, rustworkx and networkit, with their weights.

    Files may also end in :obj:`.gz`. Nodes are numbered in the order of their ids. If ids are not 0 to :math:`N - 1`, they are
    in :obj:`n_id`, of shape :obj:`[N]`: METIS and DIMACS count from 1, and ids of rustworkx and networkit have gaps after nodes
    were removed. For GraphML and CSV, see :class:`GraphFile`, which also reads files with a table of labels.

    Args:
        source (str, Path or Any): The file, or the graph.
        weight (str or int, optional): The attribute with edge weights of a graph of igraph, or the key in edges of rustworkx
            that are dictionaries, by default :obj:`weight`; in a list of edges, the column, from 0. (default: :obj:`None`)

    Raises:
        ValueError: If a file is broken, with file and line, or the graph is of another kind.
        ImportError: If trimesh is not installed.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), 'path.metis')
        >>> _ = path.write_text('3 2\n2\n1 3\n2\n')
        >>> load_graph(path)
        Data(edge_index=[2, 4], num_nodes=3, n_id=[3])
    """
    if not isinstance(source, (str, Path)):
        library = type(source).__module__.partition('.')[0]
        if library not in _LIBRARIES:
            given, accepted = type(source).__name__, f'paths, and graphs of {", ".join(_LIBRARIES)}'
            remedy = 'use torch_geometric.utils.from_networkx(graph)' if library == 'networkx' else ''
            raise ArgumentError('source', given, accepted, remedy)
        return _LIBRARIES[library](source, 'weight' if weight is None else str(weight))
    path = Path(source)
    reader = _READERS.get(kind_of(path))
    if reader is None:
        raise ArgumentError('source', repr(str(source)), f'files that end in {", ".join(_READERS)}', _REMEDY)
    if not path.is_file():
        raise ArgumentError('source', f'{str(source)!r}, which is no file', 'files that exist')
    if weight is not None and reader is not _read_list:
        raise ArgumentError('weight', repr(weight), 'this only for lists of edges, igraph and rustworkx')
    return reader(path, weight)


def kind_of(path: Path) -> str:
    r"""Returns what the name of a file ends in, before :obj:`.gz`, in small letters."""
    return Path(path.stem if path.suffix == '.gz' else path).suffix.lower()


def _data(ids: np.ndarray, ends: Any, weights: Any = None, both: bool = False) -> Data:
    r"""Returns a graph of nodes with ascending ids, given the ids of the ends of its edges, :obj:`[2, E]`, also in the other
    direction if asked for.
    """
    ends = np.asarray(ends, np.int64).reshape(2, -1)
    edge_index = torch.from_numpy(np.searchsorted(ids, ends))
    weight = None if weights is None else torch.tensor(np.asarray(weights, np.float64), dtype=torch.get_default_dtype())
    if both:
        other = edge_index[0] != edge_index[1]
        edge_index = torch.cat([edge_index, edge_index[:, other].flip(0)], 1)
        weight = None if weight is None else torch.cat([weight, weight[other]])
    data = Data(edge_index=edge_index, num_nodes=len(ids))
    if weight is not None:
        data.edge_weight = weight
    if len(ids) and (ids[0] != 0 or ids[-1] != len(ids) - 1):
        data.n_id = torch.from_numpy(ids)
    return data


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with gzip.open(path, 'rt', encoding='utf-8-sig') if path.suffix == '.gz' else open(path, encoding='utf-8-sig') as file:
        try:
            yield from enumerate(file, 1)
        except (UnicodeDecodeError, EOFError, OSError) as error:
            raise ArgumentError(
                'source', f'{path}: {first_line(error)}', 'files of text, compressed as the name ends'
            ) from error


class _Broken(ArgumentError):
    r"""A line of a file that cannot be read."""

    def __init__(self, path: Path, number: int, given: str, accepted: str) -> None:
        super().__init__(f'{path}, line {number}', given, accepted)


def _whole(path: Path, number: int, words: Sequence[str], low: int, high: float, what: str) -> list[int]:
    r"""Returns words as whole numbers of a range, or raises an error that names the first other word and its column."""
    for column, word in enumerate(words, 1):
        if not (word.isascii() and word.lstrip('-').isdecimal() and low <= int(word) <= high):
            upper = f' to {high:.0f}' if math.isfinite(high) else ''
            raise _Broken(path, number, f'{word!r} as word {column}', f'{what} from {low}{upper}')
    return [int(word) for word in words]


def _read_metis(path: Path, weight: Any) -> Data:
    lines = ((number, line.split()) for number, line in _lines(path) if not line.startswith('%'))
    number, header = next(lines, (1, []))
    kind = header[2] if len(header) > 2 else ''
    if not 2 <= len(header) <= 4 or not all(map(str.isdecimal, header)) or not set(kind) <= {'0', '1'}:
        raise _Broken(path, number, repr(' '.join(header)), 'numbers of nodes and edges, and perhaps a format such as 011')
    num_nodes, num_edges = int(header[0]), int(header[1])
    sized, weighted_nodes, weighted = (digit == '1' for digit in kind.zfill(3)[-3:])
    constraints = (int(header[3]) if len(header) > 3 else 1) if weighted_nodes else 0
    first, step = sized + constraints, 1 + weighted
    ends: list[list[int]] = [[], []]
    weights: list[int] = []
    node_weights: list[list[int]] = []
    node = 0
    for number, words in lines:
        if node == num_nodes:
            if words:
                raise _Broken(path, number, f'{" ".join(words)[:60]!r}', f'{num_nodes} lines of nodes, as in the header')
            continue
        node += 1
        if len(words) < first or (len(words) - first) % step:
            accepted = f'{first} weights of the node and ' * (first > 0) + 'neighbors' + ', each with a weight' * weighted
            raise _Broken(path, number, f'{len(words)} words', accepted)
        node_weights.append(_whole(path, number, words[sized:first], 0, math.inf, 'weights of nodes'))
        neighbors = _whole(path, number, words[first::step], 1, num_nodes, 'neighbors')
        ends[0] += [node] * len(neighbors)
        ends[1] += neighbors
        weights += _whole(path, number, words[first + 1 :: 2], 1, math.inf, 'weights of edges') if weighted else []
    if node < num_nodes:
        raise _Broken(path, number, f'the end of the file after {node} nodes', f'{num_nodes} lines of nodes, as in the header')
    if len(ends[0]) != 2 * num_edges:
        given = f'{len(ends[0])} neighbors in all lines'
        raise ArgumentError('source', f'{path}: {given}', f'{2 * num_edges}, twice the number of edges in the header')
    data = _data(np.arange(1, num_nodes + 1), ends, weights if weighted else None)
    if constraints:
        data.node_weight = torch.tensor(node_weights).view(num_nodes, constraints)
    return data


def _read_dimacs(path: Path, weight: Any) -> Data:
    size: list[int] | None = None
    ends: list[list[int]] = [[], []]
    weights: list[float] = []
    for number, line in _lines(path):
        words = line.split()
        if not words or words[0] == 'c':
            continue
        if words[0] == 'p' and size is None:
            if words[1:2] != ['sp'] or len(words) != 4:
                raise _Broken(path, number, repr(line.strip()[:60]), "'p sp', the number of nodes and that of arcs")
            size = _whole(path, number, words[2:], 0, math.inf, 'numbers')
        elif words[0] == 'a' and len(words) == 4 and size is not None:
            tail, head = _whole(path, number, words[1:3], 1, size[0], 'nodes')
            ends[0].append(tail)
            ends[1].append(head)
            weights.append(_finite(path, number, words[3], 4))
        else:
            accepted = "'a', two nodes and a length, after a line 'p sp', and comments that begin with 'c'"
            raise _Broken(path, number, repr(line.strip()[:60]), accepted)
    if size is None:
        raise ArgumentError('source', f"{path} without a line 'p sp'", 'shortest paths of DIMACS')
    if size[1] != len(weights):
        raise ArgumentError('source', f'{path}: {len(weights)} arcs', f'{size[1]}, as in the line p')
    data = _data(np.arange(1, size[0] + 1), ends)
    data.length = torch.tensor(weights)
    return data


def _finite(path: Path, number: int, word: str, column: int) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _Broken(path, number, f'{word!r} as word {column}', 'finite numbers as weights')
    return value


def _read_list(path: Path, weight: str | int | None) -> Data:
    column = None if weight is None else int(weight) if str(weight).isdecimal() and int(weight) >= 2 else -1
    if column == -1:
        raise ArgumentError('weight', repr(weight), 'for a list of edges, a column from 2 on')
    ends: list[list[int]] = [[], []]
    weights: list[float] = []
    widest = 2
    for number, line in _lines(path):
        words = line.replace(',', ' ').split()
        if not words or words[0][0] in '#%':
            continue
        if len(words) < (2 if column is None else column + 1):
            raise _Broken(path, number, f'{len(words)} words', 'two nodes' if column is None else f'{column + 1} words')
        widest = max(widest, len(words))
        source, target = _whole(path, number, words[:2], 0, 2**63 - 1, 'ids of nodes')
        ends[0].append(source)
        ends[1].append(target)
        if column is not None:
            weights.append(_finite(path, number, words[column], column + 1))
    if widest > 2 and column is None:
        warn(f'{path}: columns after the first two are not read; for edge weights, name the column, from 0, by weight=2')
    return _data(np.unique(np.array(ends, np.int64)), ends, None if column is None else weights)


def _read_mesh(path: Path, weight: Any) -> Data:
    try:
        import trimesh
    except ImportError as error:
        raise ImportError('meshes need trimesh: install pyg_topomask with its extra [meshes]') from error
    kind = kind_of(path)[1:]
    content = gzip.decompress(path.read_bytes()) if path.suffix == '.gz' else path.read_bytes()
    try:
        mesh = trimesh.load(io.BytesIO(content), file_type=kind, force='mesh', process=False)
        pos, face = np.array(mesh.vertices, np.float64), np.array(mesh.faces, np.int64).reshape(-1, 3)
    except Exception as error:  # of many kinds
        raise ArgumentError('source', f'{path}: {first_line(error)}', f'meshes as trimesh reads .{kind}') from error
    if len(face) == 0 or face.min() < 0 or face.max() >= len(pos):
        given = f'{path} with {len(pos)} vertices and {len(face)} faces'
        raise ArgumentError('source', given, 'meshes with faces of vertices that exist')
    data = Data(pos=torch.tensor(pos, dtype=torch.get_default_dtype()), face=torch.from_numpy(face).t().contiguous())
    return FaceToEdge(remove_faces=False)(data)


def _of_igraph(graph: Any, weight: str) -> Data:
    weights = graph.es[weight] if weight in graph.es.attributes() else None
    ends = np.array(graph.get_edgelist(), np.int64).reshape(-1, 2).T
    return _data(np.arange(graph.vcount()), ends, weights, both=not graph.is_directed())


def _of_rustworkx(graph: Any, weight: str) -> Data:
    ends = np.array(graph.edge_list(), np.int64).reshape(-1, 2).T
    values = [value.get(weight) if isinstance(value, dict) else value for value in graph.edges()]
    weights = values if values and all(isinstance(value, (int, float)) for value in values) else None
    directed = hasattr(graph, 'successors')
    return _data(np.sort(np.array(graph.node_indexes(), np.int64)), ends, weights, both=not directed)


def _of_networkit(graph: Any, weight: str) -> Data:
    edges = list(graph.iterEdgesWeights())
    ids = np.sort(np.array(list(graph.iterNodes()), np.int64))
    ends = np.array([edge[:2] for edge in edges], np.int64).reshape(-1, 2).T
    weights = [edge[2] for edge in edges] if graph.isWeighted() else None
    return _data(ids, ends, weights, both=not graph.isDirected())


_READERS: dict[str, Callable[[Path, Any], Data]] = {
    **dict.fromkeys(('.graph', '.metis'), _read_metis),
    '.gr': _read_dimacs,
    **dict.fromkeys(LISTS, _read_list),
    **dict.fromkeys(('.off', '.ply', '.obj'), _read_mesh),
}
_LIBRARIES: dict[str, Callable[[Any, str], Data]] = {
    'igraph': _of_igraph,
    'rustworkx': _of_rustworkx,
    'networkit': _of_networkit,
}
