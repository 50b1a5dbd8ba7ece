r"""The attention of a trained model, as tables and plots."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
from tqdm import tqdm

from pyg_topomask.apps.diagnostics.attention_statistics import (
    attention_degrees,
    cumulative_attention,
    cumulative_full_attention,
    distance_to_full_attention,
)
from pyg_topomask.apps.inspect.mask_report import mean_or_zero
from pyg_topomask.apps.runs.checkpoint import BEST, differences, load_checkpoint
from pyg_topomask.apps.runs.tables import TableRow, markdown_table, save_figure, write_csv
from pyg_topomask.apps.viz import (
    plot_attention_degrees,
    plot_attention_graphs,
    plot_cumulative_attention,
    plot_distance_to_full_attention,
)
from pyg_topomask.apps.viz.layout import positions
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.configuration import FREE_OPTIONS, LENGTH_OPTION, load_config, run_name
from pyg_topomask.graphgym.data.loaders import create_loaders
from pyg_topomask.graphgym.names.attentions import ATTENTIONS
from pyg_topomask.graphgym.names.configured_attention import build_configured_attention, layer_option
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.nn.explicit_attention import ExplicitAttention
from pyg_topomask.nn.kmip_attention import KMIPAttention
from pyg_topomask.utils.checks import check_whole

#: The linear maps to queries, keys and values.
PROJECTIONS = ('lin_q', 'lin_k', 'lin_v')
#: Groups of options that define a model, its masks and its inputs.
MODEL_GROUPS = ('dataset', 'gnn', 'gt', 'model', 'topomask')
# The largest graph without positions to lay out.
LAID_OUT = 2000


@dataclass
class Recording:
    r"""The attention of a layer in one forward pass.

    Args:
        edge_index (torch.Tensor): Pairs :obj:`(j, i)`, :obj:`[2, nnz]`.
        alpha (torch.Tensor): Their coefficients, :obj:`[nnz, H]`.
        vectors (tuple of torch.Tensor): The queries, keys and values, each :obj:`[N, H, d]`.
    """

    edge_index: Tensor
    alpha: Tensor
    vectors: tuple[Tensor, ...] = ()


@contextmanager
def record_attention(model: Module) -> Iterator[dict[str, Recording]]:
    r"""A context that records the attention of each :class:`~pyg_topomask.nn.explicit_attention.ExplicitAttention` of a model,
    by name. The results of the model do not change. The last forward pass is kept.

    Args:
        model (torch.nn.Module): The model.
    """
    records: dict[str, Recording] = {}
    asked = {'return_attention_weights': True}
    handles = []
    for name, module in model.named_modules():
        if isinstance(module, ExplicitAttention):
            vectors: dict[str, Tensor] = {}
            for lin in PROJECTIONS:
                handles.append(getattr(module, lin).register_forward_hook(_keep(vectors, lin, module.heads)))
            handles.append(module.register_forward_pre_hook(lambda _, args, kwargs: (args, kwargs | asked), with_kwargs=True))
            handles.append(module.register_forward_hook(_note(records, name, vectors)))
    try:
        yield records
    finally:
        for handle in handles:
            handle.remove()


def _keep(vectors: dict[str, Tensor], lin: str, heads: int) -> Callable[..., None]:
    def hook(module: Module, inputs: Any, out: Tensor) -> None:
        vectors[lin] = out.detach().unflatten(-1, (heads, -1)) if out.size(0) > 0 else out.detach()

    return hook


def _note(records: dict[str, Recording], name: str, vectors: dict[str, Tensor]) -> Callable[..., Any]:
    def hook(module: Module, inputs: Any, outputs: Any) -> Any:
        out, (pairs, alpha) = outputs
        records[name] = Recording(pairs, alpha.detach(), tuple(vectors[lin] for lin in PROJECTIONS))
        return out

    return hook


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
    * :obj:`degrees.csv`, :obj:`cumulative.csv` and, for k-MIP attention, :obj:`full.csv`: out-degrees in the attention graphs,
      the weight of the largest coefficients, and the weight of the best keys in full attention with the distance to it;
    * plots of all of them, if Matplotlib is installed.

    Args:
        cfg_file (str or Path): The YAML.
        options (list, optional): Alternating keys and values that override it. (default: :obj:`()`)
        checkpoint (str or Path, optional): A checkpoint of :func:`~pyg_topomask.graphgym.train`. (default: :obj:`None`, the
            best model of the run with that YAML in :obj:`out`)
        graphs (int, optional): The number of graphs. (default: :obj:`1`)
        out (str or Path, optional): The output folder, instead of :obj:`cfg.out_dir`. (default: :obj:`None`)

    Returns:
        One dictionary for each layer, the columns of the table.

    Raises:
        ValueError: If there is no trained model, no layer computes coefficients, the checkpoint belongs to another model, or
            :obj:`graphs` is below 1.
    """
    check_whole(1, graphs=graphs)
    load_config(cfg_file, options)
    name = run_name(cfg_file)
    root = Path(cfg.out_dir if out is None else out)
    if checkpoint is None:
        checkpoint = root / name / str(cfg.seed) / BEST
    if not Path(checkpoint).is_file():
        raise ArgumentError(
            'checkpoint',
            f'{str(checkpoint)!r}, where nothing was saved',
            'what `python -m pyg_topomask train` saved with the same YAML and options',
        )
    state = load_checkpoint(Path(checkpoint))
    _check_same_model(checkpoint, state['config'])
    if (attention := build_configured_attention()) is not None:  # before data is loaded
        _check_explicit(attention)
    seed_everything(cfg.seed)  # as in training, because it determines random splits
    data = _first_graphs(graphs)
    model = create_model(to_device=False).eval()
    attentions = _check_explicit(model)
    try:
        model.model.load_state_dict(state['model'])
    except RuntimeError as error:
        reason = ' '.join(str(error).split())
        raise ArgumentError(
            'checkpoint', f'{checkpoint} of another model', f'checkpoints of the model in {cfg_file}', reason
        ) from error
    folder = root / name / 'attention'
    folder.mkdir(parents=True, exist_ok=True)
    bar = tqdm(data, desc='inspect-attention', unit='graph', disable=len(data) == 1 or not cfg.topomask.progress)
    recordings = [_run(model, batch) for batch in bar]
    called = [name for name in recordings[0] if all(name in recording for recording in recordings)]
    layers = [[recording[name] for name in called] for recording in recordings]
    rows = _write(folder, data, layers, [attentions[name] for name in called])
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
        raise ArgumentError(
            option, f'{value!r}, whose attention returns no coefficients', f"{', '.join(explicit)}, after '+' in gt.layer_type"
        )
    return attentions


def _check_same_model(checkpoint: str | Path, config: str) -> None:
    r"""Raises an error if the model in a checkpoint has different options. Weights do not suffice for this check, because many
    attentions have weights with equal names and shapes."""
    changed = differences(config, cfg.dump(), (*FREE_OPTIONS, LENGTH_OPTION))
    texts = [text for option, text in changed.items() if option.partition('.')[0] in MODEL_GROUPS]
    if texts:
        raise ArgumentError('checkpoint', f'{checkpoint} of another model', 'checkpoints of this model', '; '.join(texts))


def _first_graphs(count: int) -> list[Data]:
    dataset = create_loaders()[-1].dataset
    loader = DataLoader(dataset, batch_size=1)
    return [batch for batch, _ in zip(loader, range(min(count, len(dataset))), strict=False)]


def _run(model: Module, batch: Data) -> dict[str, Recording]:
    batch = batch.clone()
    batch.split = 'test'
    with record_attention(model) as records:
        model(batch)
    return records


def _write(folder: Path, data: list[Data], recordings: list[list[Recording]], modules: list[Any]) -> list[TableRow]:
    sizes = [int(batch.num_nodes) for batch in data]
    ks = [number for power in range(7) for number in (10**power, 2 * 10**power, 5 * 10**power) if number <= max(*sizes, 1)]
    degrees: list[list[Tensor]] = []
    cumulative: list[list[Tensor]] = []
    full: list[list[tuple[Tensor, Tensor]]] = []
    rows: list[TableRow] = []
    for index, module in enumerate(modules):
        layer = [layers[index] for layers in recordings]
        degrees.append([attention_degrees(r.edge_index, r.alpha, size) for r, size in zip(layer, sizes, strict=True)])
        cumulative.append([cumulative_attention(r.edge_index, r.alpha, ks, size) for r, size in zip(layer, sizes, strict=True)])
        searched = isinstance(module, KMIPAttention) and module.similarity == 'dot'
        full.append([_compare_to_full(recording, ks) for recording in layer if searched])
        rows.append(_summary(index, module, torch.cat(degrees[-1]), torch.stack(cumulative[-1]).mean((0, 2)), ks))
    write_csv(folder / 'layers.csv', rows)
    for graph, layers in enumerate(recordings):
        heads = [f'head {head + 1}' for head in range(max(recording.alpha.size(1) for recording in layers))]
        write_csv(folder / f'attention-{graph}.csv', _pairs(layers), ['layer', 'source', 'target', *heads])
    write_csv(folder / 'degrees.csv', _degree_rows(degrees))
    write_csv(folder / 'cumulative.csv', _curve_rows(ks, [[{'weight': curve} for curve in layer] for layer in cumulative]))
    compared = [[{'weight in full attention': w, 'distance': d} for w, d in layer] for layer in full]
    if any(compared):
        write_csv(folder / 'full.csv', _curve_rows(ks, compared))
    try:
        _draw(folder, data, recordings, ks, degrees, cumulative, [layer for layer in full if layer])
    except ImportError as error:
        print(f'no pictures: {error}', file=sys.stderr)
    return rows


def _compare_to_full(recording: Recording, ks: Sequence[int]) -> tuple[Tensor, Tensor]:
    q, k, v = recording.vectors
    return cumulative_full_attention(q, k, ks), distance_to_full_attention(q, k, v, ks)


def _summary(index: int, module: Any, degrees: Tensor, weight: Tensor, ks: Sequence[int]) -> TableRow:
    return {
        'layer': index + 1,
        'attention': type(module).__name__,
        'heads': module.heads,
        'keys a node': mean_or_zero(degrees),
        'largest out-degree': int(degrees.max()) if degrees.numel() > 0 else 0,
        'nobody attends to': mean_or_zero(degrees == 0),
        **{f'weight of the first {k}': float(share) for k, share in zip(ks, weight, strict=True) if k in (1, 10)},
    }


def _pairs(layers: list[Recording]) -> Iterator[TableRow]:
    for index, recording in enumerate(layers):
        for (source, target), weights in zip(recording.edge_index.t().tolist(), recording.alpha.tolist(), strict=True):
            heads: TableRow = {f'head {head + 1}': weight for head, weight in enumerate(weights)}
            yield {'layer': index + 1, 'source': source, 'target': target, **heads}


def _degree_rows(degrees: list[list[Tensor]]) -> Iterator[TableRow]:
    for layer, graphs in enumerate(degrees):
        for head, of_nodes in enumerate(torch.cat(graphs).unbind(1)):
            values, counts = of_nodes.unique(return_counts=True)
            for degree, nodes in zip(values.tolist(), counts.tolist(), strict=True):
                yield {'layer': layer + 1, 'head': head + 1, 'out-degree': degree, 'nodes': nodes, 'edges': degree * nodes}


def _curve_rows(ks: Sequence[int], layers: list[list[dict[str, Tensor]]]) -> Iterator[TableRow]:
    for layer, graphs in enumerate(layers):
        for graph, curves in enumerate(graphs):
            heads = next(iter(curves.values())).size(1)
            for head in range(heads):
                for place, k in enumerate(ks):
                    values: TableRow = {name: float(curve[place, head]) for name, curve in curves.items()}
                    yield {'graph': graph, 'layer': layer + 1, 'head': head + 1, 'k': k, **values}


def _draw(
    folder: Path,
    data: list[Data],
    recordings: list[list[Recording]],
    ks: Sequence[int],
    degrees: list[list[Tensor]],
    cumulative: list[list[Tensor]],
    full: list[list[tuple[Tensor, Tensor]]],
) -> None:
    save_figure(folder / 'degrees.png', plot_attention_degrees([torch.cat(layer) for layer in degrees]))
    save_figure(folder / 'cumulative.png', plot_cumulative_attention(ks, [torch.cat(layer, dim=1) for layer in cumulative]))
    if full:
        weights = [torch.cat([weight for weight, _ in layer], dim=1) for layer in full]
        distances = [torch.cat([distance for _, distance in layer], dim=1) for layer in full]
        save_figure(folder / 'cumulative-full.png', plot_cumulative_attention(ks, weights))
        save_figure(folder / 'distance.png', plot_distance_to_full_attention(ks, distances))
    for graph, (batch, layers) in enumerate(zip(data, recordings, strict=True)):
        if 'pos' not in batch and batch.num_nodes > LAID_OUT:
            print(f'no picture of graph {graph}: {batch.num_nodes} nodes without pos are too many to lay out', file=sys.stderr)
            continue
        pos = positions(Graph.from_data(batch), torch.arange(batch.num_nodes))
        attention = [(recording.edge_index, recording.alpha) for recording in layers]
        save_figure(folder / f'attention-{graph}.png', plot_attention_graphs(attention, pos, batch.edge_index))
