r"""The attention of a trained model, as tables and plots."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric import seed_everything
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.model_builder import create_model
from torch_geometric.loader import DataLoader

from pyg_topomask.apps import diagnostics, viz
from pyg_topomask.apps.inspect.mask_report import largest_or_zero, mean_or_zero
from pyg_topomask.apps.runs.checkpoint import BEST, differences, load_checkpoint
from pyg_topomask.apps.runs.run import bar_of_graphs
from pyg_topomask.apps.runs.tables import TableRow, markdown_table, save_figure, write_csv
from pyg_topomask.apps.viz.drawing import positions
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.configuration import FREE_OPTIONS, LENGTH_OPTION, load_config, run_name
from pyg_topomask.graphgym.data.loaders import create_loaders
from pyg_topomask.graphgym.names.attentions import ATTENTIONS, build_configured_attention, layer_option
from pyg_topomask.graphgym.names.networks import registered_modules
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.nn.explicit_attention import ExplicitAttention
from pyg_topomask.nn.kmip_attention import KMIPAttention
from pyg_topomask.utils.checks import check_whole

#: Groups of options that define a model, its masks and its inputs.
MODEL_GROUPS = ('dataset', 'gnn', 'gt', 'model', 'topomask')
# The largest graph without positions to lay out.
LAID_OUT = 2000
# The curves over the number k of keys, by their columns.
WEIGHT, FULL_WEIGHT, DISTANCE = 'weight', 'weight in full attention', 'distance'


@dataclass
class Recording:
    r"""The attention of a layer in one forward pass."""

    #: Pairs :obj:`(j, i)`, :obj:`[2, nnz]`.
    edge_index: Tensor
    #: Their coefficients, :obj:`[nnz, H]`.
    alpha: Tensor
    #: The queries, keys and values, each :obj:`[N, H, d]`.
    vectors: tuple[Tensor, ...]


@contextmanager
def record_attention(model: Module) -> Iterator[dict[str, Recording]]:
    r"""A context that records the attention of each :class:`~pyg_topomask.nn.explicit_attention.ExplicitAttention` of a model,
    by name. The results of the model do not change. The last forward pass is kept.
    """
    records: dict[str, Recording] = {}
    asked = {'return_attention_weights': True}

    def ask(module: Module, args: Any, kwargs: Any) -> Any:
        return args, kwargs | asked

    def record(name: str, module: Any, args: Any, kwargs: Any, outputs: Any) -> Any:
        out, (edge_index, alpha) = outputs
        x = args[0] if args else kwargs['x']
        projections = (module.lin_q, module.lin_k, module.lin_v)
        vectors = (lin(x).detach().unflatten(1, (module.heads, -1)) for lin in projections)
        records[name] = Recording(edge_index, alpha.detach(), tuple(vectors))
        return out

    handles = []
    for name, module in model.named_modules():
        if isinstance(module, ExplicitAttention):
            handles.append(module.register_forward_pre_hook(ask, with_kwargs=True))
            handles.append(module.register_forward_hook(partial(record, name), with_kwargs=True))
    try:
        yield records
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def inspect_attention(
    cfg_file: str | Path,
    options: Sequence[str] = (),
    checkpoint: str | Path | None = None,
    graphs: int = 1,
    out: str | Path | None = None,
) -> list[TableRow]:
    r"""Runs a trained model on the first graphs of its test split and shows the attention of its layers, as in the thesis
    "Bringing k-MIP Attention to Graph Transformers" (Sec. 6.7, 6.8). It prints a table with a row per layer, and writes to
    :obj:`<out>/<name of the YAML>/attention`:

    * :obj:`layers.csv`, that table, and :obj:`attention-<graph>.csv`, each pair of nodes with the coefficients of the heads;
    * :obj:`degrees.csv`, :obj:`cumulative.csv` and, for k-MIP attention without edge features, :obj:`full.csv`: out-degrees in
      the attention graphs, the weight of the largest coefficients, and the weight of the best keys in full attention with the
      distance to it;
    * plots of all of them, if Matplotlib is installed.

    The checkpoint is by default that of the best model of the run with that YAML in :obj:`out`. Raises a :class:`ValueError` if
    there is none, it belongs to another model, or no layer computes coefficients.
    """
    check_whole(1, graphs=graphs)
    load_config(cfg_file, options)
    name = run_name(cfg_file)
    root = Path(cfg.out_dir if out is None else out)
    if checkpoint is None:
        checkpoint = root / name / str(cfg.seed) / BEST
    if not Path(checkpoint).is_file():
        accepted = 'what `pyg-topomask train` saved with the same YAML and options'
        raise ArgumentError('checkpoint', f'{str(checkpoint)!r}, where nothing was saved', accepted)
    state = load_checkpoint(Path(checkpoint))
    # Weights do not suffice for this check, because many attentions have weights with equal names and shapes.
    changed = differences(state['config'], cfg.dump(), (*FREE_OPTIONS, LENGTH_OPTION))
    if texts := [text for option, text in changed.items() if option.partition('.')[0] in MODEL_GROUPS]:
        raise ArgumentError('checkpoint', f'{checkpoint} of another model', 'checkpoints of this model', '; '.join(texts))
    if (attention := build_configured_attention()) is not None:  # before data is loaded
        _check_explicit(attention)
    seed_everything(cfg.seed)  # as in training, because it determines random splits
    data = [batch for batch, _ in zip(DataLoader(create_loaders()[-1].dataset), range(graphs), strict=False)]
    with registered_modules():
        model = create_model(to_device=False).eval()
    attentions = _check_explicit(model)
    try:
        model.model.load_state_dict(state['model'])
    except RuntimeError as error:
        accepted, reason = f'checkpoints of the model in {cfg_file}', ' '.join(str(error).split())
        raise ArgumentError('checkpoint', f'{checkpoint} of another model', accepted, reason) from error
    folder = root / name / 'attention'
    folder.mkdir(parents=True, exist_ok=True)
    recordings = []
    for batch in bar_of_graphs(data, 'inspect-attention', len(data), cfg.topomask.progress):
        with record_attention(model) as records:
            model(batch.clone().update({'split': 'test'}))
        recordings.append(records)
    called = [name for name in recordings[0] if all(name in recording for recording in recordings)]
    sizes = [int(batch.num_nodes) for batch in data]
    ks = [number for power in range(7) for number in (10**power, 2 * 10**power, 5 * 10**power) if number <= max(*sizes, 1)]
    layers = [_measured(attentions[name], [recording[name] for recording in recordings], sizes, ks) for name in called]
    rows = [_summary(index, layer, ks) for index, layer in enumerate(layers, 1)]
    _write(folder, layers, rows, ks)
    try:
        _draw(folder, layers, data, ks)
    except ImportError as error:
        print(f'no pictures: {error}', file=sys.stderr)
    print(markdown_table(rows))
    print(f'written to {folder}')
    return rows


def _check_explicit(model: Module) -> dict[str, ExplicitAttention]:
    r"""Returns the attentions of a model that compute coefficients, by name, and raises an error if there are none."""
    attentions = {name: module for name, module in model.named_modules() if isinstance(module, ExplicitAttention)}
    if not attentions:
        kinds = {name: kind if isinstance(kind, type) else get_type_hints(kind)['return'] for name, kind in ATTENTIONS.items()}
        explicit = [name for name, kind in kinds.items() if issubclass(kind, ExplicitAttention)]
        option, value = layer_option()
        accepted = f"{', '.join(explicit)}, after '+' in gt.layer_type, and feature_map: softmax for words of masks"
        raise ArgumentError(option, f'{value!r}, whose attention returns no coefficients', accepted)
    return attentions


@dataclass
class LayerAttention:
    r"""The attention of a layer, in lists with one entry for each graph."""

    module: Any
    recordings: list[Recording]
    #: The out-degrees of the nodes, :obj:`[N, H]`.
    degrees: list[Tensor]
    #: What depends on the number of keys :math:`k`, by the name of its column, :obj:`[len(ks), H]`.
    curves: dict[str, list[Tensor]]


def _measured(module: Any, recordings: list[Recording], sizes: list[int], ks: list[int]) -> LayerAttention:
    given = [(recording.edge_index, recording.alpha, size) for recording, size in zip(recordings, sizes, strict=True)]
    curves = {WEIGHT: [diagnostics.cumulative_attention(edge_index, alpha, ks, size) for edge_index, alpha, size in given]}
    # Full attention by queries and keys alone.
    if isinstance(module, KMIPAttention) and module.similarity == 'dot' and module.edge_terms is None:
        vectors = [recording.vectors for recording in recordings]
        curves[FULL_WEIGHT] = [diagnostics.cumulative_full_attention(q, k, ks) for q, k, _ in vectors]
        curves[DISTANCE] = [diagnostics.distance_to_full_attention(q, k, v, ks) for q, k, v in vectors]
    return LayerAttention(module, recordings, [diagnostics.attention_degrees(*each) for each in given], curves)


def _summary(index: int, layer: LayerAttention, ks: list[int]) -> TableRow:
    degrees, weight = torch.cat(layer.degrees), torch.stack(layer.curves[WEIGHT]).mean((0, 2))
    return {
        'layer': index,
        'attention': type(layer.module).__name__,
        'heads': layer.module.heads,
        'keys a node': mean_or_zero(degrees),
        'largest out-degree': largest_or_zero(degrees),
        'nobody attends to': mean_or_zero(degrees == 0),
        **{f'weight of the first {k}': float(share) for k, share in zip(ks, weight, strict=True) if k in (1, 10)},
    }


def _write(folder: Path, layers: list[LayerAttention], rows: list[TableRow], ks: list[int]) -> None:
    write_csv(folder / 'layers.csv', rows)
    heads = [f'head {head + 1}' for head in range(max(layer.module.heads for layer in layers))]
    for graph in range(len(layers[0].recordings)):
        write_csv(folder / f'attention-{graph}.csv', _pair_rows(layers, graph), ['layer', 'source', 'target', *heads])
    write_csv(folder / 'degrees.csv', _degree_rows(layers))
    write_csv(folder / 'cumulative.csv', _curve_rows(layers, ks, WEIGHT))
    if any(FULL_WEIGHT in layer.curves for layer in layers):
        write_csv(folder / 'full.csv', _curve_rows(layers, ks, FULL_WEIGHT, DISTANCE))


def _pair_rows(layers: list[LayerAttention], graph: int) -> Iterator[TableRow]:
    for index, layer in enumerate(layers, 1):
        recording = layer.recordings[graph]
        for (source, target), weights in zip(recording.edge_index.t().tolist(), recording.alpha.tolist(), strict=True):
            heads: TableRow = {f'head {head}': weight for head, weight in enumerate(weights, 1)}
            yield {'layer': index, 'source': source, 'target': target, **heads}


def _degree_rows(layers: list[LayerAttention]) -> Iterator[TableRow]:
    for index, layer in enumerate(layers, 1):
        for head, of_nodes in enumerate(torch.cat(layer.degrees).unbind(1), 1):
            values, counts = of_nodes.unique(return_counts=True)
            for degree, nodes in zip(values.tolist(), counts.tolist(), strict=True):
                yield {'layer': index, 'head': head, 'out-degree': degree, 'nodes': nodes, 'edges': degree * nodes}


def _curve_rows(layers: list[LayerAttention], ks: list[int], *names: str) -> Iterator[TableRow]:
    for index, layer in enumerate(layers, 1):
        # [names, ks, H] for each graph, if the layer has these curves
        for graph, curves in enumerate(zip(*(layer.curves.get(name, ()) for name in names), strict=True)):
            for head, values in enumerate(torch.stack(curves).unbind(2), 1):
                for k, numbers in zip(ks, values.t().tolist(), strict=True):
                    yield {'graph': graph, 'layer': index, 'head': head, 'k': k, **dict(zip(names, numbers, strict=True))}


def _draw(folder: Path, layers: list[LayerAttention], data: list[Data], ks: list[int]) -> None:
    def curves(name: str) -> list[Tensor]:
        return [torch.cat(layer.curves[name], dim=1) for layer in layers if name in layer.curves]

    save_figure(folder / 'degrees.png', viz.plot_attention_degrees([torch.cat(layer.degrees) for layer in layers]))
    save_figure(folder / 'cumulative.png', viz.plot_cumulative_attention(ks, curves(WEIGHT)))
    if curves(FULL_WEIGHT):
        save_figure(folder / 'cumulative-full.png', viz.plot_cumulative_attention(ks, curves(FULL_WEIGHT)))
        save_figure(folder / 'distance.png', viz.plot_distance_to_full_attention(ks, curves(DISTANCE)))
    for graph, batch in enumerate(data):
        if 'pos' not in batch and batch.num_nodes > LAID_OUT:
            print(f'no picture of graph {graph}: {batch.num_nodes} nodes without pos are too many to lay out', file=sys.stderr)
            continue
        pos = positions(Graph.from_data(batch), torch.arange(batch.num_nodes))
        attention = [(layer.recordings[graph].edge_index, layer.recordings[graph].alpha) for layer in layers]
        save_figure(folder / f'attention-{graph}.png', viz.plot_attention_graphs(attention, pos, batch.edge_index))
