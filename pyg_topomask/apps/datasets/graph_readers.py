r"""Readers of graphs in files: PyG's objects in a file of torch, GraphML, and tables in CSV."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import EdgeStorage, GlobalStorage, NodeStorage
from torch_geometric.utils import coalesce, to_undirected

from pyg_topomask.apps.datasets.bases import MASKS
from pyg_topomask.apps.datasets.graph_formats import FORMATS, kind_of, load_graph
from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.utils.files import first_line

#: Names of the columns with the two ends of an edge, which are otherwise the first two.
_ENDS = (('source', 'target'), ('src', 'dst'), ('from', 'to'))
#: What stands for a missing value, as in pandas.
_MISSING = (None, '', 'nan', 'NaN', '-nan', '-NaN', 'NA', 'N/A', 'n/a', '<NA>', '#N/A', '#NA', 'null', 'NULL', 'None')
#: Names of the column with labels, if none is given.
LABELS = ('label', 'y', 'class')
#: The namespace of GraphML.
_GRAPHML = 'http://graphml.graphdrawing.org/xmlns'
# What may be loaded is a setting of the process.
_LOADING = Lock()
#: What a file of torch may hold beside tensors. The last two are what PyG caches, of which torch cannot fill a defaultdict.
_SAFE: tuple[Any, ...] = (
    *(Data, DataEdgeAttr, DataTensorAttr, GlobalStorage, NodeStorage, EdgeStorage),
    (lambda *name: name, 'torch_geometric.data.storage.AttrType'),
    (lambda *kind: {}, 'collections.defaultdict'),
)
#: What a file of torch has to hold, and the remedy.
_OBJECTS = ('objects Data of PyG with edge_index, one or a list', "save a data set by torch.save(list(dataset), 'graphs.pt')")
#: What else PyG's users save: the end of the name that torch refuses, what it is, and the remedy.
_KINDS = {
    'storage.BaseStorage': ('HeteroData', "torch.save(data.to_homogeneous(), 'graph.pt'), if its edges are alike"),
    'DynamicInheritanceGetter': ('a Batch', "torch.save(batch.to_data_list(), 'graphs.pt')"),
}
_OF_NETWORKX = "save a graph of networkx by networkx.write_graphml(graph, 'graph.graphml')"


@dataclass
class Table:
    r"""Columns of text or values, each row with its place in a file, which errors name."""

    places: list[str] = field(default_factory=list)
    columns: dict[str, list[Any]] = field(default_factory=dict)

    def numbers(self, source: str, strict: bool) -> tuple[dict[str, list[float]], list[str]]:
        r"""Returns the columns of numbers, and the names of the others. If strict, raises an error for a value that is missing
        or is no finite number in a column whose first value is a number.
        """
        numbers: dict[str, list[float]] = {}
        others = []
        for name, values in self.columns.items():
            if not _is_numeric(next((value for value in values if not _is_missing(value)), None)):
                others.append(name)
                continue
            parsed = [_number(value) for value in values]
            if None in parsed and not strict:
                others.append(name)
                continue
            if None in parsed:
                accepted = 'finite numbers in this column, as in its first value'
                raise self._error(source, name, parsed.index(None), accepted)
            numbers[name] = [value for value in parsed if value is not None]
        return numbers, others

    def masks(self, source: str) -> dict[str, Tensor]:
        r"""Removes the columns of :obj:`MASKS`, and returns them as booleans, :obj:`[n]`. Raises an error for another value."""
        masks = {}
        for name, column in [(name, _named(self.columns, name)) for name in MASKS]:
            if column is None:
                continue
            flags = [{'true': 1.0, 'false': 0.0}.get(str(value).lower(), _number(value)) for value in self.columns[column]]
            if wrong := [row for row, flag in enumerate(flags) if flag not in (0, 1)]:
                raise self._error(source, column, wrong[0], 'true, false, 1 and 0 in this column')
            masks[name] = torch.tensor(flags, dtype=torch.bool)
            del self.columns[column]
        return masks

    def _error(self, source: str, column: str, row: int, accepted: str) -> ArgumentError:
        value = self.columns[column][row]
        given = f'{"no value" if value is None else repr(value)} in {self.places[row]}, column {column}'
        return ArgumentError(source, given, accepted, 'fill it, or remove the column')


def _is_missing(value: Any) -> bool:
    return value in _MISSING or value != value  # NaN


def _is_numeric(value: Any) -> bool:
    r"""Returns whether a value stands for a number, which may be infinite."""
    return _number(value) is not None or str(value).strip().lstrip('+-').lower() in ('inf', 'infinity')


def _number(value: Any) -> float | None:
    try:
        number = math.nan if value is None else float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _named(columns: Collection[str], *names: str) -> str | None:
    r"""Returns the column with the first of these names that there is, in small or capital letters."""
    known = {column.lower(): column for column in columns}
    return next((known[name] for name in names if name in known), None)


def read_graphs(path: Path, nodes: Path | None = None, label: str | None = None, directed: bool = False) -> list[Data]:
    r"""Reads the graphs of a file, with labels :obj:`y` as numbers, or as a list of text where a file has text. Raises an error
    that names the place if the file is of no known kind, is broken, or has no labels of this name.
    """
    kind = kind_of(path) if kind_of(path) in FORMATS else path.suffix.lower()
    reader = _READERS.get(kind)
    if reader is None:
        raise ArgumentError('data', str(path), f'files that end in {", ".join(_READERS)}', _OF_NETWORKX)
    for name, file in (('data', path), ('nodes', nodes)):
        if file is not None and not file.is_file():
            raise ArgumentError(name, f'{str(file)!r}, which is no file', 'files that exist')
    if nodes is not None and reader is not _read_csv:
        raise ArgumentError('nodes', str(nodes), 'a table of nodes beside a table of edges in CSV')
    if nodes is None and kind in FORMATS:
        raise ArgumentError('nodes', None, f'a table with labels of the nodes of {path}', 'give one with --nodes')
    if directed and reader is not _read_csv:
        raise ArgumentError('directed', directed, 'this only for tables of edges', 'other files say it themselves')
    return reader(path, nodes, label, directed)


def _read_torch(path: Path, nodes: Path | None, label: str | None, directed: bool) -> list[Data]:
    try:
        stored = _load_safely(path)
    except Exception as error:  # of many kinds, if it is another file
        held = re.search(r'GLOBAL (\S+)', str(error))
        given = f'{path}, which holds {held[1]}' if held else f'{path}, which is no file of torch ({type(error).__name__})'
        remedy = _OF_NETWORKX if held and held[1].startswith('networkx') else _OBJECTS[1]
        for name, (kind, better) in _KINDS.items():
            if held and held[1].endswith(name):
                given, remedy = f'{path}, which holds {kind} of PyG', f'save its graphs: {better}'
        raise ArgumentError('data', given, _OBJECTS[0], remedy) from error
    graphs = stored if isinstance(stored, list) else [stored]
    for index, graph in enumerate(graphs):
        if not isinstance(graph, Data):
            place = f', entry {index}' if isinstance(stored, list) else ''
            raise ArgumentError('data', f'{type(graph).__name__} in {path}{place}', *_OBJECTS)
        vars(graph._store).pop('_cached_attr', None)
        graph['y'] = _labels_of(graph, label, f'{path}, graph {index}')
    return graphs


def _load_safely(path: Path) -> Any:
    with _LOADING:
        allowed = torch.serialization.get_safe_globals()
        try:
            torch.serialization.clear_safe_globals()
            torch.serialization.add_safe_globals([*{*allowed, *_SAFE} - {defaultdict}])
            return torch.load(path, map_location='cpu', weights_only=True)
        finally:
            torch.serialization.clear_safe_globals()
            torch.serialization.add_safe_globals(allowed)


def _labels_of(graph: Data, label: str | None, source: str) -> Any:
    name = label or 'y'
    if graph.get(name) is None:
        others = [key for key in graph.to_dict() if key not in ('x', 'num_nodes', 'pos') and not key.endswith('_mask')]
        keys = ', '.join(key for key in others if not graph.is_edge_attr(key))
        remedy = 'name them with --label' if keys else 'set data.y to the labels'
        raise ArgumentError('label', f'{name!r}, which {source} lacks', keys or 'data with labels y', remedy)
    labels = graph[name]
    del graph[name]  # which are no features
    return labels


def _read_graphml(path: Path, nodes: Path | None, label: str | None, directed: bool) -> list[Data]:
    from xml.etree.ElementTree import ParseError

    import networkx

    try:
        graph = _networkx_graph(path)
    except ParseError as error:
        line, column = error.position
        given = f'{path}, line {line}, column {column + 1}: {error.msg.partition(": line")[0]}'
        raise ArgumentError('data', given, 'GraphML') from error
    except (networkx.NetworkXException, ValueError, KeyError, UnicodeDecodeError) as error:
        raise ArgumentError('data', f'{path}: {first_line(error)}', 'GraphML as networkx reads it') from error
    table, number = _table(graph.nodes(data=True), 'node'), {name: index for index, name in enumerate(graph)}
    edges = list(graph.edges(data=True))
    links = _table(((f'{u} - {v}', attributes) for u, v, attributes in edges), 'edge')
    ends = [[number[u] for u, _, _ in edges], [number[v] for _, v, _ in edges]]
    return [_assemble(str(path), table, links, ends, label, graph.is_directed())]


def _networkx_graph(path: Path) -> Any:
    r"""Reads GraphML by networkx (3.6.1), also that of networkit (11.3), which has no namespace, and of rustworkx (0.18.1), in
    which a key of nodes and another of edges have one id. networkx takes the last one for both.
    """
    from xml.etree import ElementTree

    import networkx

    root = ElementTree.parse(path).getroot()
    for element in root.iter():
        if not element.tag.startswith('{'):
            element.tag = f'{{{_GRAPHML}}}{element.tag}'
    keys = {(key.get('for'), key.get('id')) for key in root.findall(f'{{{_GRAPHML}}}key')}
    shared = {name for kind, name in keys if kind == 'node'} & {name for kind, name in keys if kind == 'edge'}
    for kind in ('node', 'edge'):
        values = root.iterfind(f'.//{{{_GRAPHML}}}{kind}/{{{_GRAPHML}}}data')
        for element, name in [(key, 'id') for key in root if key.get('for') == kind] + [(value, 'key') for value in values]:
            if element.get(name) in shared:
                element.set(name, f'{kind} {element.get(name)}')
    return networkx.parse_graphml(ElementTree.tostring(root, 'unicode'))


def _table(rows: Any, kind: str) -> Table:
    rows = list(rows)
    names = dict.fromkeys(name for _, attributes in rows for name in attributes)
    columns = {name: [attributes.get(name) for _, attributes in rows] for name in names}
    return Table([f'{kind} {name}' for name, _ in rows], columns)


def _read_csv(path: Path, nodes: Path | None, label: str | None, directed: bool) -> list[Data]:
    links = _links(path) if kind_of(path) in FORMATS else _read_table(path)
    first, second = list(links.columns)[:2]
    pairs = [(_named(links.columns, one), _named(links.columns, other)) for one, other in _ENDS]
    source, target = next(((one, other) for one, other in pairs if one and other), (first, second))
    names = list(zip(*(map(_id, links.columns.pop(end)) for end in (source, target)), strict=True))
    if nodes is None:
        table, known = Table(), list(dict.fromkeys(name for pair in names for name in pair))
    else:
        table = _read_table(nodes)
        column = _named(table.columns, 'id') or next(iter(table.columns))
        known = [_id(name) for name in table.columns.pop(column)]
        for file, name, others in ((path, source, known), (nodes, column, [name for pair in names for name in pair])):
            if name in others:
                given = f'the node {name!r} in line 1'
                raise ArgumentError(str(file), given, 'names of columns in line 1, such as source,target')
    number = {name: index for index, name in enumerate(known)}
    if len(number) < len(known):
        row = next(row for row, name in enumerate(known) if name in known[:row])
        raise ArgumentError('nodes', f'{known[row]!r} in {table.places[row]} again', 'each node once')
    for place, pair in zip(links.places, names, strict=True):
        for name in pair:
            if name not in number:
                given = f'no name in {place}' if name is None else f'{name!r} in {place}, which {nodes} lacks'
                raise ArgumentError('data', given, 'nodes of the table of nodes')
    ends = [[number[name] for name in side] for side in zip(*names, strict=True)] or [[], []]
    return [_assemble(str(nodes or path), table, links, ends, label, directed, len(known))]


def _links(path: Path) -> Table:
    r"""Returns the edges of a file of another tool, with the ids of nodes as in the file."""
    graph = load_graph(path)
    ids = graph.n_id if 'n_id' in graph else torch.arange(graph.num_nodes or 0)
    columns = {
        name: [str(int(node)) for node in ids[side]] for name, side in zip(('source', 'target'), graph.edge_index, strict=True)
    }
    numbers = {name: graph[key].tolist() for name, key in (('weight', 'edge_weight'), ('length', 'length')) if key in graph}
    return Table([f'{path}, edge {number}' for number in range(graph.num_edges)], {**columns, **numbers})


def _id(name: str | None) -> str | None:
    r"""Returns the name of a node, without the :obj:`.0` of whole numbers in a column that had missing values."""
    return name and re.sub(r'^(-?\d+)\.0+$', r'\1', name)


def _read_table(path: Path) -> Table:
    content = path.read_bytes()
    try:
        text = content.decode('utf-8-sig')
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b'\n') + 1
        raise ArgumentError(str(path), f'line {line}: {first_line(error)}', 'tables in CSV, in UTF-8') from error
    first = next(iter(text.splitlines()), '')
    reader = csv.reader(io.StringIO(text, newline=''), delimiter=max(',;\t', key=first.count), skipinitialspace=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        kept = [(place, name) for place, name in enumerate(header) if name and not name.startswith('Unnamed: ')]
        names = [name for _, name in kept]
        if len(kept) < 2 or any(_number(name) is not None for name in header) or len({*names}) < len(kept):
            given = f'{first!r} in line 1'
            raise ArgumentError(str(path), given, 'different names of two or more columns, such as source,target,weight')
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise ArgumentError(str(path), f'line {reader.line_num}: {first_line(error)}', 'tables in CSV') from error
    for line, row in rows:
        if len(row) != len(header):
            raise ArgumentError(str(path), f'{len(row)} columns in line {line}', f'{len(header)}, as in line 1')
    columns = {name: [row[place].strip() or None for _, row in rows] for place, name in kept}
    return Table([f'{path}, line {line}' for line, _ in rows], columns)


def _assemble(
    source: str,
    nodes: Table,
    edges: Table,
    ends: Sequence[Sequence[int]],
    label: str | None,
    directed: bool,
    num_nodes: int | None = None,
) -> Data:
    of_csv, num_nodes = num_nodes is not None, len(nodes.places) if num_nodes is None else num_nodes
    # Coordinates of OSMnx are x and y.
    names = LABELS if of_csv or not {'x', 'y'} <= {*nodes.columns} else [each for each in LABELS if each != 'y']
    name = label or _named(nodes.columns, *names)
    if name not in nodes.columns:
        accepted = ', '.join(nodes.columns) or 'nodes with labels'
        table = 'give a table of nodes with --nodes' if of_csv else 'write an attribute of each node'
        remedy = 'name one of these columns with --label' if nodes.columns else table
        raise ArgumentError('label', f'{name or "no label"}, which {source} lacks', accepted, remedy)
    y = [None if _is_missing(value) else value for value in nodes.columns.pop(name)]
    masks = nodes.masks('nodes')
    edges.columns.pop(_named(edges.columns, 'id') or '', None)  # of the file, not of the network
    features, ignored = nodes.numbers('nodes', strict=of_csv)
    weights, more = edges.numbers('data', strict=of_csv)
    if ignored := ignored + more:
        columns = ', '.join(ignored)
        warn(f'{source}: the columns {columns} are no numbers, or not everywhere, and are not used; encode them as numbers')
    edge_index = torch.tensor(ends, dtype=torch.long)
    weight = weights.pop(_named(weights, 'weight') or '', None)
    attributes: dict[str, Tensor] = {}
    if weight is not None:
        attributes['edge_weight'] = torch.tensor(weight)
    if weights:
        attributes['edge_attr'] = _standardized(weights)
    # Repeated edges become one. Without directions, each line is an edge in both.
    merge, keys = coalesce if directed else to_undirected, list(attributes)
    edge_index, values = merge(edge_index, [attributes[key] for key in keys], num_nodes, reduce='mean')
    attributes = dict(zip(keys, values, strict=True))
    x = _standardized(features) if features else None
    data = Data(x=x, edge_index=edge_index, num_nodes=num_nodes, **attributes, **masks)
    data['y'] = y
    return data


def _standardized(columns: dict[str, list[float]]) -> Tensor:
    r"""Returns columns as features of mean 0 and variance 1, because networks do not learn from years beside shares."""
    values = torch.tensor(list(columns.values()), dtype=torch.float64).t()
    spread = values.std(0, correction=0)
    return ((values - values.mean(0)) / torch.where(spread > 0, spread, 1)).float().contiguous()


_READERS: dict[str, Callable[[Path, Path | None, str | None, bool], list[Data]]] = {
    **dict.fromkeys(('.pt', '.pth'), _read_torch),
    '.graphml': _read_graphml,
    **dict.fromkeys(('.csv', '.tsv', *FORMATS), _read_csv),
}
