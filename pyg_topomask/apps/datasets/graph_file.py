r"""Graphs of a file of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree

from pyg_topomask.apps.datasets.bases import MASKS, FileDataset, Transform
from pyg_topomask.apps.datasets.graph_readers import read_graphs
from pyg_topomask.apps.datasets.point_clouds import stratified
from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphs.edges import edge_weights_of
from pyg_topomask.utils.files import digest_of, digest_of_files

SHARES = (0.6, 0.2, 0.2)
#: The version of what is read of a file, which is read again if another one has stored it.
_FORMAT = 2


class GraphFile(FileDataset):
    r"""One graph with a label for each node, or many graphs with a label each or a label for each of their nodes, from a file:

    - :obj:`.pt`: a :class:`~torch_geometric.data.Data` or a list of them, saved by :func:`torch.save`. It is loaded with
      :obj:`weights_only`, which runs no code.
    - :obj:`.graphml`: one graph. Numbers of nodes and edges are features; :obj:`weight` of an edge is its weight.
    - :obj:`.csv`, :obj:`.tsv`: a table of edges, whose first line names the columns. The ends are the columns :obj:`source` and
      :obj:`target`, or else the first two; :obj:`weight` is the weight; further numbers are features. A second table
      :obj:`nodes` has the column :obj:`id`, or else its first, and labels and features. Ids may be text. A node without a
      label is in no split.
    - :obj:`.graph`, :obj:`.metis`, :obj:`.gr`, :obj:`.txt`, :obj:`.edges`, :obj:`.el`: METIS, DIMACS and lists of edges, see
      :func:`load_graph`, with a table :obj:`nodes`, whose ids are those of the file.

    Whole numbers and text are classes, other numbers are values to predict, and with :obj:`regression` all numbers. Several
    values of a graph that are 0 or 1 are several labels. Features of tables and GraphML are shifted and scaled to mean 0 and
    variance 1. Nodes without features have two: 1 and the logarithm of their degree. If a graph has :obj:`train_mask`,
    :obj:`val_mask` and :obj:`test_mask`, they are its split. Otherwise, 60 % of each class are for training, 20 % for
    validation and 20 % for testing, in a fixed order. Masks of several graphs are refused.

    Args:
        root (str): The folder in which the graphs are stored for the next time.
        split (str, optional): As in all data sets. (default: :obj:`None`)
        path (str): The file.
        nodes (str, optional): The table of nodes of a table of edges. (default: :obj:`None`)
        label (str, optional): The key, attribute or column of the labels. (default: :obj:`None`: :obj:`y` of PyG's objects, and
            otherwise :obj:`label`, :obj:`y` or :obj:`class`)
        directed (bool, optional): Whether edges of a table lead one way. PyG's objects and GraphML say it themselves.
            (default: :obj:`False`)
        regression (bool, optional): Whether whole numbers are values to predict, instead of classes. (default: :obj:`False`)
        digest (str, optional): The digest of the files, to notice that they have changed. (default: :obj:`None`)

    Raises:
        ValueError: If the file is broken, at the place that the message names, if labels are missing, infinite or all equal, or
            if a split is missing or empty.
    """

    def __init__(
        self,
        root: str,
        split: str | None = None,
        path: str = '',
        nodes: str | None = None,
        label: str | None = None,
        directed: bool = False,
        regression: bool = False,
        digest: str | None = None,
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
    ) -> None:
        files = [file for file in (path, nodes) if file]
        if Path(root).is_file():
            raise ArgumentError('root', f'{root!r}, which is a file', 'folders', f"write GraphFile('stored', path={root!r})")
        for name, file in (('path', path), ('nodes', nodes)):
            if file is not None and not Path(file).is_file():
                raise ArgumentError(name, f'{str(file)!r}, which is no file', 'files that exist')
        if digest not in (None, digest_of_files(*map(Path, files))):
            given = f'{digest}, but {" or ".join(map(str, files))} has changed'
            raise ArgumentError('digest', given, 'the digest of these files', 'to use them as they are, remove this argument')
        self.path, self.nodes, self.label, self.directed = Path(path), nodes, label, directed
        self.regression = regression
        self.raw_file_names = [str(Path(file).resolve()) for file in files]
        self.stem = f'{self.path.stem}_{digest_of([_FORMAT, label, directed, *["regression"] * regression]).hex()[:8]}'
        super().__init__(root, split, transform, pre_transform)

    def read(self) -> tuple[list[Data], dict[str, Tensor]]:
        graphs = read_graphs(self.path, None if self.nodes is None else Path(self.nodes), self.label, self.directed)
        if not graphs:
            raise ArgumentError('data', f'{self.path} without graphs', 'one graph or more')
        source = str(self.path)
        for index, graph in enumerate(graphs):
            _check_graph(graph, graphs[0], f'{source}, graph {index}')
        if all(graph.num_edges == 0 for graph in graphs):
            of_matrix = 'data.edge_index = to_edge_index(data.adj_t)[0].flip(0)' if 'adj_t' in graphs[0] else ''
            remedy = 'for points, connect neighbors first, with KNNGraph' if 'pos' in graphs[0] else of_matrix
            raise ArgumentError('data', f'{source} without edges', 'graphs with edges', remedy)
        parts = [_rows(graph['y']) for graph in graphs]
        sizes = [graph.num_nodes or 0 for graph in graphs]
        per_graph = len(graphs) > 1 and all(len(part) == 1 for part in parts)
        if not per_graph and [len(part) for part in parts] != sizes:
            given = f'{sum(map(len, parts))} labels for {len(graphs)} graphs of {sum(sizes)} nodes'
            raise ArgumentError('label', given, 'one label for each graph of two or more, or one for each node')
        labels, missing = _checked_labels(parts, str(self.nodes or self.path), self.regression, _outside_masks(graphs))
        for graph, part in zip(graphs, labels.split([1] * len(graphs) if per_graph else sizes), strict=True):
            graph['y'] = part
            if graph.x is None:
                degrees = degree(graph.edge_index[1], graph.num_nodes)
                graph.x = torch.stack([torch.ones_like(degrees), degrees.log1p()], dim=1)
        if len(graphs) == 1:
            _set_masks(graphs[0], missing, source)
            return [graphs[0]], {}
        if masks := [name for name in MASKS if name in graphs[0]]:
            shown = f'masks in each of {len(graphs)} graphs in {source}'
            remedy = 'remove them, or save one graph: Data(**Batch.from_data_list(graphs).to_dict())'
            raise ArgumentError(', '.join(masks), shown, 'masks of one graph', remedy)
        if bool(missing.any()):
            raise ArgumentError('label', f'{int(missing.sum())} missing labels in {source}', 'a label for each graph or node')
        strata = labels if per_graph and labels.dim() == 1 else torch.zeros(len(graphs))
        return graphs, _split(strata, f'graphs in {source}')


def _rows(y: Any) -> Tensor | list[Any]:
    r"""Returns the labels of a graph as numbers :obj:`[n]` or :obj:`[n, T]`, or as text."""
    if isinstance(y, Tensor):
        y = y.view(1) if y.dim() == 0 else y
        return y.squeeze(1) if y.dim() == 2 and y.size(1) == 1 else y
    return y if isinstance(y, list) else [y]


def _outside_masks(graphs: Sequence[Data]) -> Tensor:
    r"""Returns which nodes of one graph no mask selects, or a 0 if there are no masks."""
    masks = [mask for name in MASKS if isinstance(mask := graphs[0].get(name), Tensor)]
    fit = len(graphs) == 1 and masks and all(mask.shape == (graphs[0].num_nodes,) for mask in masks)
    return ~torch.stack(masks).bool().any(0) if fit else torch.tensor(False)


def _checked_labels(
    parts: Sequence[Tensor | list[Any]], source: str, regression: bool, outside: Tensor
) -> tuple[Tensor, Tensor]:
    r"""Returns classes from 0, :obj:`[n]`, or numbers :obj:`[n, T]`, and which labels are missing, :obj:`[n]`. So is a -1 of
    nodes :obj:`outside` all masks.
    """
    if all(isinstance(part, Tensor) for part in parts):
        y = torch.cat([part for part in parts if isinstance(part, Tensor)])
        if y.is_floating_point():
            missing = y.view(len(y), -1).isnan().any(1)
        else:
            missing = (y == -1) & outside if y.dim() == 1 else torch.zeros(len(y), dtype=torch.bool)
        given = y[~missing].numpy()
    else:
        texts = [None if value is None else str(value) for part in parts for value in part]
        none = torch.tensor([value is None for value in texts])
        missing = none | (torch.tensor([value == '-1' for value in texts]) & outside)
        given = _parsed(
            [value for value, skipped in zip(texts, missing.tolist(), strict=True) if value is not None and not skipped]
        )
    if regression and given.dtype.kind not in 'fiub':
        raise ArgumentError('regression', f'labels {given[0]!s} ... in {source}', 'this only for labels that are numbers')
    given = given.astype(np.float64) if regression else given
    if given.dtype.kind == 'f' and not np.isfinite(given).all():
        raise ArgumentError('label', f'infinite numbers in {source}', 'finite numbers')
    classes, index = np.unique(given, axis=0, return_inverse=True)
    if len(classes) < 2:
        shown = f'{classes.tolist()[0]} as the only label' if len(classes) else 'no label of any node or graph'
        raise ArgumentError('label', f'{shown} in {source}', 'labels with two values or more')
    if given.ndim == 1 and given.dtype.kind == 'i' and len(classes) > 2 and classes[0] == -1:
        warn(f'{source}: the label -1 is a class; leave missing labels of a table empty, or leave such nodes out of the masks')
    if given.ndim == 1 and given.dtype.kind == 'i' and len(classes) > max(20, len(given) // 5):
        warn(f'{source}: the labels are {len(classes)} whole numbers, and so classes; to predict numbers, use --regression')
    few_numbers = not regression and given.ndim == 1 and given.dtype.kind == 'f' and len(classes) <= 20
    if few_numbers and bool((classes == classes.round()).all()):
        warn(f'{source}: the labels {classes[0]}, {classes[1]} ... are numbers to predict; write classes as whole numbers')
    if given.ndim == 2 and given.shape[1] > 1 and bool(((given == 0) | (given == 1)).all() and (given.sum(1) == 1).all()):
        warn(f'{source}: each has one of {given.shape[1]} labels, which are learned one by one; for classes, use y.argmax(1)')
    if given.dtype.kind != 'f' and given.ndim == 1:
        labels = torch.zeros(len(missing), dtype=torch.long)
        labels[~missing] = torch.from_numpy(index.reshape(-1))
    else:
        labels = torch.zeros(len(missing), *given.reshape(len(given), -1).shape[1:])
        labels[~missing] = torch.from_numpy(given.reshape(len(given), -1)).float()
    return labels, missing


def _parsed(texts: list[str]) -> Any:
    r"""Returns text as whole numbers if all of it are such, or else as numbers, or else as it is."""
    for kind in (int, float) if not any('_' in text for text in texts) else ():  # Python reads 1_0 as 10
        try:
            return np.array([kind(text) for text in texts])
        except (ValueError, OverflowError):
            pass
    return np.array(texts)


def _set_masks(graph: Data, missing: Tensor, source: str) -> None:
    given = [name for name in MASKS if graph.get(name) is not None]
    if given and len(given) < len(MASKS):
        lacking = ', '.join(name for name in MASKS if name not in given)
        beside = f'none in {source}, beside {", ".join(given)}'
        raise ArgumentError(lacking, beside, 'all three masks, or none for a random split')
    if not given:
        labeled = (~missing).nonzero().squeeze(1)
        y = graph.y[labeled]
        for split, index in _split(y if y.dim() == 1 else torch.zeros(len(y)), f'labels in {source}').items():
            graph[f'{split}_mask'] = torch.zeros(graph.num_nodes or 0, dtype=torch.bool).index_fill(0, labeled[index], True)
    for name in MASKS:
        mask = graph[name]
        if mask.dim() != 1 or mask.dtype != torch.bool:
            remedy = f'for several splits, choose one: data.{name}[:, 0]' if mask.dim() == 2 else f'data.{name}.bool()'
            raise ArgumentError(name, f'{mask.dtype} of shape {list(mask.shape)}', f'booleans [{graph.num_nodes}]', remedy)
        if not bool(mask.any()):
            raise ArgumentError(name, f'no node in {source}', 'masks that select at least one')
        if bool((mask & missing).any()):
            raise ArgumentError(name, f'{int((mask & missing).sum())} nodes without a label', 'nodes with labels')
    if bool((torch.stack([graph[name] for name in MASKS]).sum(0) > 1).any()):
        raise ArgumentError(', '.join(MASKS), f'masks that share nodes in {source}', 'each node in one mask')


def _split(strata: Tensor, things: str) -> dict[str, Tensor]:
    splits, classes = stratified(strata, SHARES), len(strata.unique())
    for name, index in splits.items():
        if index.numel() == 0:
            given = f'{len(strata)} {things}' + f' with {classes} classes' * (classes > 1) + f', which leave no {name} split'
            accepted = 'some five of each class or more, or fewer classes' if classes > 1 else 'some five or more'
            raise ArgumentError('label', given, accepted)
    return splits


def _check_graph(graph: Data, first: Data, source: str) -> None:
    r"""Checks a graph, and turns its features and weights into floating point numbers."""
    try:
        graph.validate()
    except ValueError as error:
        raise ArgumentError('data', f'{source}: {error}', 'edge_index with nodes from 0 to num_nodes - 1') from error
    if not graph.num_nodes:
        raise ArgumentError('data', f'{source} without nodes', 'graphs with nodes')
    graph.edge_index = torch.empty(2, 0, dtype=torch.long) if graph.edge_index is None else graph.edge_index.long()
    name, weight = edge_weights_of(graph)
    if weight is not None:
        del graph[name]
        graph['edge_weight'] = weight
    if differing := (set(graph.to_dict()) ^ set(first.to_dict())) - {'num_nodes'}:
        raise ArgumentError('data', f'{source}, which differs from graph 0 in {", ".join(sorted(differing))}', 'the same keys')
    for name, count in (('x', graph.num_nodes), ('edge_attr', graph.num_edges), ('edge_weight', graph.num_edges)):
        if graph.get(name) is None:
            continue
        value = graph[name].to_dense().float()
        if value.size(0) != count:
            raise ArgumentError(name, f'{value.size(0)} rows in {source}', f'{count} rows')
        if not bool(value.isfinite().all()):
            raise ArgumentError(name, f'NaN or infinity in {source}', 'finite numbers', 'fill what is missing')
        graph[name] = (
            value.flatten() if name == 'edge_weight' else value.view(count, 1) if value.dim() == 1 else value.flatten(1)
        )
        if graph[name].shape[1:] != first[name].shape[1:]:
            given = f'{graph[name].size(1)} columns in {source}'
            raise ArgumentError(name, given, f'{first[name].size(1)}, as in graph 0')
    used = {'x', 'y', 'edge_index', 'edge_attr', 'edge_weight', 'pos', 'batch', '_num_nodes', *MASKS}
    unused = [name for name in graph.to_dict() if name not in used and (graph.is_node_attr(name) or graph.is_edge_attr(name))]
    if unused and graph is first:
        warn(f'{source}: {", ".join(unused)} are no features; for features, stack them in x or edge_attr')
