r"""Measurements of the mask of a YAML on its data, as a table and a plot."""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg

from pyg_topomask.apps import diagnostics
from pyg_topomask.apps.runs.run import bar_of_graphs, check_writable
from pyg_topomask.apps.runs.tables import TableRow, markdown_table, save_figure, write_csv
from pyg_topomask.apps.viz import explore, plot_inspection, plot_mask
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.configuration import load_config, run_name
from pyg_topomask.graphgym.data.datasets import load_dataset
from pyg_topomask.graphgym.data.pyg_datasets import SPLIT_KEYS
from pyg_topomask.graphgym.data.transforms import build_transforms, take
from pyg_topomask.graphgym.names.attentions import (
    build_attention,
    build_configured_attention,
    configured_attention,
    layer_option,
)
from pyg_topomask.graphgym.names.networks import split_layer_type
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask, Mask, TreeMask
from pyg_topomask.nn.explicit_attention import ExplicitAttention
from pyg_topomask.transforms import AddGraphRandomFeatures
from pyg_topomask.utils.checks import check_whole
from pyg_topomask.utils.files import new_file, write_atomically
from pyg_topomask.walks.steps import SAMPLERS
from pyg_topomask.walks.walk import sample_ensembles

DELTA = 0.05
# The number of rows whose entries are counted, and the largest number of visits of an ensemble for the plot.
COUNTED_ROWS = 10_000
VISITS = 2**23
# The words whose masks a page shows beside that of the YAML.
COMPARED = ('GRF', 'PowerSeries', 'Hop', 'HeatKernel', 'Toeplitz', 'Tree', 'Linear')
# The most numbers in the rows that are inspected, and the largest distance that is counted separately.
ROWS = 2**24
MAX_HOPS = 4

# The columns of the table that is printed. The CSV has more.
HOPS = (*(f'{hops} hop{"s" * (hops != 1)}' for hops in range(MAX_HOPS + 1)), f'over {MAX_HOPS} hops')
PRINTED = ('graph', 'entries per row', *HOPS)
PRINTED_OF_TREES = ('graph', 'mean stretch', *HOPS)
PRINTED_OF_WALKS = (
    'graph',
    'nodes',
    'walks',
    'features per row',
    'mask entries per row',
    'error',
    'error, off the diagonal',
    'sampling, s',
)

NOTE_OF_WALKS = (
    'All values are for head 0 of the untrained attention. All heads share their walks. "features per row" is how many nodes '
    'the walks of a node visit, on average. Errors compare the estimate with the exact mask on at most {rows} rows, relative '
    'in the Frobenius norm. Where they are large, use more walks, or PowerSeries, which is exact: four times as many walks '
    'halve the error. "sampling, s" was timed once. inspect.csv has more columns: "bound" bounds the features per row by '
    'Lemma 3.3 of the GRF paper (95 %), or by the largest possible number with other lengths of walks, and "diagonal bias" is '
    'relative to the diagonal.'
)

_MEANS = 'Means over the heads of the untrained attention, on at most {rows} rows of the mask.'
_HOPS = (
    '"hops" is the share of the absolute weight of a row on nodes at that distance in the direction of attention, averaged '
    'over rows; the last share is that of nodes farther away or out of reach. inspect.csv has more columns.'
)
NOTE = f'{_MEANS} "entries per row" counts the entries that are not zero. {_HOPS}'
NOTE_OF_TREES = (
    f'{_MEANS} "stretch" is the distance between the ends of an edge in the spanning forests, divided by the length of the '
    f'edge. {_HOPS}'
)


def inspect(
    cfg_file: str | Path,
    options: Sequence[str] = (),
    graphs: int = 8,
    out: str | Path | None = None,
    num_rows: int = 64,
    html: str | Path | None = None,
) -> list[TableRow]:
    r"""Measures the mask of the attention that a YAML configures on the first graphs of its data set, prints a table, and
    writes it to :obj:`<out>/<name of the YAML>/inspect.csv` and :obj:`inspect.md`, with a picture of the largest of these
    graphs (:obj:`inspect.png`) where Matplotlib is installed: of graph random features how well walks estimate the mask, of
    other masks how far they look. Walks that a transform would store for these graph random features are drawn here instead,
    with the settings and the seed of the transform. With :obj:`html`, it also writes the page of
    :func:`~pyg_topomask.apps.viz.explore`, with the mask beside those of other words on the same graph.

    Each graph is a row of the table, and at most :obj:`num_rows` rows of its mask are looked at. Raises a :class:`ValueError`
    if the attention has no mask, or walks that a transform would store do not fit it.
    """
    check_whole(1, graphs=graphs, num_rows=num_rows)
    page = None if html is None else new_file('html', html)
    load_config(cfg_file, options)
    folder = Path(cfg.out_dir if out is None else out) / run_name(cfg_file)
    check_writable(folder)
    mask = _configured_mask()
    walks = isinstance(mask, GRFMask)
    transforms = _take_walking_transforms() if walks else []
    dataset = load_dataset(cfg.dataset.format, cfg.dataset.name, cfg.dataset.dir)
    take(dataset, SPLIT_KEYS)  # the indices of the splits belong to the data set, and would break its slicing into graphs
    data = [dataset[index] for index in range(min(graphs, len(dataset)))]
    drawn = max(range(len(data)), key=lambda index: data[index].num_nodes or 0)
    if isinstance(mask, GRFMask) and transforms and mask.resample == 'never':
        _walk_as_stored(mask, transforms, data[0])
    if page is not None:
        _write_page(page, mask, drawn, data[drawn], cfg_file)
    first = [Graph.from_data(graph) for graph in data]
    measure: Any = _inspect_mask
    if isinstance(mask, GRFMask):
        first = [Graph(graph.edge_index, graph.num_nodes, graph.edge_weight) for graph in first]  # without stored walks
        # With Numba, the first walk compiles.
        sample_ensembles(Graph.from_tensors(torch.tensor([[0, 1], [1, 0]]), num_nodes=2), mask.walk_settings, seed=0)
        with torch.no_grad():
            mask, measure = mask.of_head(0), _inspect_walks  # all heads share the walks
    bar = bar_of_graphs(first, 'inspect', len(first), cfg.topomask.progress)
    rows = [measure(index, mask, graph, num_rows) for index, graph in enumerate(bar)]
    folder.mkdir(parents=True, exist_ok=True)
    columns, note = PRINTED, NOTE
    if walks:
        columns, note = PRINTED_OF_WALKS, NOTE_OF_WALKS
    elif isinstance(mask, TreeMask):
        columns, note = PRINTED_OF_TREES, NOTE_OF_TREES
    table, note = markdown_table([{column: row[column] for column in columns} for row in rows]), note.format(rows=num_rows)
    print(f'{table}\n\n{textwrap.fill(note, 120)}\n')
    what = 'Graph random features' if walks else 'The mask'
    title = f'# {what} of {Path(cfg_file).name} with {layer_option()[1]} on {cfg.dataset.name}'
    write_atomically(folder / 'inspect.md', f'{title}\n\n{note}\n\n`{mask}`\n\n{table}\n'.encode())
    write_csv(folder / 'inspect.csv', rows)
    _draw(mask, first[drawn], num_rows, folder / 'inspect.png')
    print(f'written to {folder}')
    return rows


def _configured_mask() -> Mask:
    name, (option, value) = configured_attention(), layer_option()
    if option == 'model.type':
        raise ArgumentError('model.type', f'{value!r} for inspect', 'TopoGPSModel and gnn, whose layers a YAML names')
    if cfg.model.type == 'TopoGPSModel':
        split_layer_type(cfg.gt.layer_type)
    attention = build_configured_attention()
    mask = getattr(attention, 'mask', None)
    if not isinstance(mask, Mask):
        given, accepted = f'{value!r}, whose attention is {name}', 'attentions that have a mask, such as GRF'
        remedy = 'inspect-attention shows what it attends to in a trained model'
        raise ArgumentError(option, given, accepted, remedy if isinstance(attention, ExplicitAttention) else '')
    if getattr(attention, 'dynamic', False):
        raise ArgumentError(f'topomask.{name}.dynamic', 'True for inspect, which has no attention that walks follow', 'False')
    return mask.eval()


def _write_page(path: Path, mask: Mask, index: int, data: Data, cfg_file: str | Path) -> None:
    r"""Writes a page with the mask, and with those of other words that the data has all it needs for."""
    name = configured_attention()
    masks = {name: mask}
    for word in COMPARED:
        if word == name:
            continue
        other = cast('Mask', build_attention(word, mask.heads, mask.heads).mask)
        with suppress(ArgumentError):
            other(Graph.from_data(data))
            masks[word] = other
    title = f'Mask {name} of {Path(cfg_file).name} on {cfg.dataset.name}, graph {index}'
    write_atomically(path, explore(masks, data, title=title).html.encode())
    print(f'page written to {path}')


def _take_walking_transforms() -> list[AddGraphRandomFeatures]:
    r"""Removes the transforms that store walks from the configuration, and returns them."""
    entries = cfg.topomask.transforms or []
    built = build_transforms(entries)
    cfg.topomask.transforms = [
        entry for entry, transform in zip(entries, built, strict=True) if not isinstance(transform, AddGraphRandomFeatures)
    ]
    return [transform for transform in built if isinstance(transform, AddGraphRandomFeatures)]


def _walk_as_stored(mask: GRFMask, transforms: list[AddGraphRandomFeatures], data: Data) -> None:
    r"""Gives a mask the settings of the last transform that stores walks."""
    for transform in transforms:
        data = transform(data)
    mask.prepare(Graph.from_data(data))  # refuses walks that do not fit, as training does
    settings, stored = mask.walk_settings, transforms[-1]
    mask.walk_settings = replace(
        stored.settings, max_walk_length=settings.max_walk_length, independent_ensembles=settings.independent_ensembles
    )
    mask.seed = stored.seed


def _inspect_walks(index: int, mask: GRFMask, graph: Graph, num_rows: int) -> TableRow:
    settings = mask.walk_settings
    start = time.perf_counter()
    sample_ensembles(graph, settings, mask.seed)
    seconds = time.perf_counter() - start
    error = diagnostics.mask_error(mask, graph, num_rows)
    chosen = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))[:COUNTED_ROWS]
    entries = diagnostics.measured_entries(mask, graph, chosen)
    at_most = 1 + settings.num_walks * settings.max_walk_length
    if settings.walk_length is None and not SAMPLERS[settings.sampler].paired:
        at_most = diagnostics.sparsity_bound(settings.num_walks, settings.p_halt, DELTA, settings.max_walk_length)
    return {
        'graph': index,
        'nodes': graph.num_nodes,
        'edges': graph.num_edges,
        'walks': settings.num_walks,
        'features per row': mean_or_zero(entries.features),
        'most': largest_or_zero(entries.features),
        'bound': at_most,
        'mask entries per row': mean_or_zero(entries.mask),
        'error': float(error.relative),
        'error, off the diagonal': float(error.off_diagonal_error),
        'diagonal bias': float(error.diagonal_bias),
        'largest entry': float(error.largest),
        'largest deviation': float(error.max_abs),
        'sampling, s': seconds,
    }


def _inspect_mask(index: int, mask: Mask, graph: Graph, num_rows: int) -> TableRow:
    start = time.perf_counter()
    mask(graph)
    seconds = time.perf_counter() - start
    nodes = _some_nodes(graph, num_rows)
    rows = diagnostics.mask_rows(mask, graph, nodes)
    counts = (rows != 0).sum(2)
    shares = diagnostics.weight_by_hops(mask, graph, MAX_HOPS, nodes, rows).mean(0).tolist()
    return {
        'graph': index,
        'nodes': graph.num_nodes,
        'edges': graph.num_edges,
        'entries per row': mean_or_zero(counts),
        'most': largest_or_zero(counts),
        'smallest entry': float(rows.min()) if rows.numel() > 0 else None,
        'largest entry': float(rows.max()) if rows.numel() > 0 else None,
        **dict(zip(HOPS, shares, strict=True)),
        **(_stretch(graph) if isinstance(mask, TreeMask) else {}),
        'preparing, s': seconds,
    }


def _stretch(graph: Graph) -> TableRow:
    stretch = diagnostics.edge_stretch(graph)
    if stretch.numel() == 0:
        return {'mean stretch': None, 'largest stretch': None}
    return {'mean stretch': float(stretch.mean()), 'largest stretch': float(stretch.max())}


def _some_nodes(graph: Graph, num_rows: int) -> Tensor:
    count = min(num_rows, max(1, ROWS // max(graph.num_nodes, 1)))
    return torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))[:count].to(graph.device)


def mean_or_zero(count: Tensor) -> float:
    r"""Returns the mean of numbers, or 0 if there are none."""
    return float(count.double().mean()) if count.numel() > 0 else 0.0


def largest_or_zero(count: Tensor) -> int:
    r"""Returns the largest of whole numbers, or 0 if there are none."""
    return int(count.max()) if count.numel() > 0 else 0


def _draw(mask: Mask, graph: Graph, num_rows: int, path: Path) -> None:
    if graph.num_nodes == 0:
        print('no picture: the graphs have no nodes', file=sys.stderr)
        return
    most = max(2, VISITS // graph.num_nodes)
    numbers = [2**exponent for exponent in range(7) if 2**exponent <= most]
    try:
        if isinstance(mask, GRFMask):
            figure = plot_inspection(mask, graph, num_walks=numbers, num_rows=num_rows)
        else:
            figure = plot_mask(mask, graph, max_hops=MAX_HOPS, nodes=_some_nodes(graph, num_rows))
    except ImportError as error:
        print(f'no picture: {error}', file=sys.stderr)
    else:
        save_figure(path, figure)
