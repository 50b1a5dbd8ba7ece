r"""The command that says whether a mask helps on a data set."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import yaml  # type: ignore[import-untyped]
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg

from pyg_topomask.apps.advise.candidates import GraphProfile, candidates, counts_of_classes, profile
from pyg_topomask.apps.advise.report import Chance, decide, draw, page, table
from pyg_topomask.apps.advise.trials import Trials, describe
from pyg_topomask.apps.datasets import GraphFile
from pyg_topomask.apps.runs.run import check_writable, locked
from pyg_topomask.apps.runs.tables import markdown_table, save_figure
from pyg_topomask.apps.train.checks import check_options
from pyg_topomask.apps.train.metrics import LOWER_IS_BETTER, metric_best, regression_scores
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.configuration import load_config
from pyg_topomask.graphgym.data.edge_splits import predicts_pairs
from pyg_topomask.graphgym.data.loaders import create_loaders
from pyg_topomask.utils.checks import check_above_zero, check_whole
from pyg_topomask.utils.configs import find_config, is_recommendation, parse_yaml
from pyg_topomask.utils.files import digest_of_files, write_atomically

#: What is tried without a YAML and a file: a short training on random trees, on two threads, where there are as many.
BUILT_IN = 'lookup-trees'
SHORT = ('optim.max_epoch', '18', 'optim.num_warmup_epochs', '2', 'train.eval_period', '2', 'num_threads', '2')
#: The tasks with one class for each sample.
CLASSES = ('classification', 'classification_binary', 'classification_multi')


def advise(
    cfg_file: str | Path | None = None,
    options: Sequence[str] = (),
    data: str | Path | None = None,
    nodes: str | Path | None = None,
    label: str | None = None,
    directed: bool = False,
    regression: bool = False,
    seeds: int = 3,
    minutes: float = 20.0,
    out: str | Path | None = None,
    resume: bool = False,
) -> dict[str, Any]:
    r"""Says whether a mask helps on a data set. It reads the graphs, trains the same network without a mask and with masks that
    fit, with the same seeds and epochs, and compares the best of both.

    The models without a mask are the local layer alone, twice as many of these layers, and the local layer beside unmasked
    linear attention, and on small graphs beside softmax attention. The last model has the first mask without message passing.
    With the first seed, all models train a third of the epochs, at least three. The best two without a mask and the best three
    with one go on, also with further seeds. If the time does not suffice, all trainings have fewer epochs, and then fewer
    seeds. The folder :obj:`<out>/advise-<name>` gets :obj:`advise.json` with all numbers, the page :obj:`advise.html`, the
    picture :obj:`advise.png` where Matplotlib is installed, the configuration :obj:`best.yaml` of the best model, and the
    trainings.

    Args:
        cfg_file (str or Path, optional): A YAML with a GPS model, of this package or of GraphGPS. (default: :obj:`None`, a
            short training on random trees, which need no file)
        options (list, optional): Alternating keys and values that override the YAML. (default: :obj:`()`)
        data (str or Path, optional): A file of graphs instead, see :class:`~pyg_topomask.apps.datasets.GraphFile`.
            (default: :obj:`None`)
        nodes (str or Path, optional): The table of nodes of a table of edges. (default: :obj:`None`)
        label (str, optional): The name of the labels in the file. (default: :obj:`None`)
        directed (bool, optional): Whether edges of a table lead one way. (default: :obj:`False`)
        regression (bool, optional): Whether labels that are whole numbers are numbers to predict, instead of classes.
            (default: :obj:`False`)
        seeds (int, optional): The number of seeds. (default: :obj:`3`)
        minutes (float, optional): The time for all trainings. (default: :obj:`20.0`)
        out (str or Path, optional): The folder of results, instead of :obj:`cfg.out_dir`. (default: :obj:`None`)
        resume (bool, optional): Whether to keep what an earlier call has trained. (default: :obj:`False`)

    Raises:
        ValueError: If an argument, the file or the configuration is invalid; the message names the place and the remedy.

    Returns:
        What :obj:`advise.json` has: the profile of the graphs, the models with their metrics, and the verdict.
    """
    check_whole(1, seeds=seeds)
    check_above_zero(minutes=minutes)
    if data is not None and cfg_file is not None:
        raise ArgumentError('data', f'{data} beside cfg {cfg_file}', 'one of the two', 'a YAML names its data itself')
    of_data = {'nodes': nodes, 'label': label, 'directed': directed or None, 'regression': regression or None}
    of_data = {name: given for name, given in of_data.items() if given is not None}
    if data is None:
        for name, given in of_data.items():
            raise ArgumentError(name, given, 'this only beside data', 'a YAML names its data itself')
        folder, cfg_file, options = _of_yaml(cfg_file, options, out)
    else:
        folder = Path('results' if out is None else out) / f'advise-{Path(data).stem}'
        check_writable(folder)
        config, cfg_file, options = own_config(data, folder / 'data', of_data), folder / 'base.yaml', list(options)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(cfg_file, yaml.safe_dump(config, sort_keys=False).encode())
    load_config(cfg_file, options)
    if cfg.model.type != 'TopoGPSModel':
        raise ArgumentError('model.type', repr(cfg.model.type), 'TopoGPSModel and GPSModel, whose attention a word selects')
    check_options()
    check_whole(0, 2**32 - seeds, seed=cfg.seed)  # the seeds that follow fit, too
    if 2 * cfg.optim.num_warmup_epochs > cfg.optim.max_epoch:  # a shortened training would only warm up
        options = [*options, 'optim.num_warmup_epochs', str(cfg.optim.max_epoch // 10)]
    graphs, chance = _graphs()
    found = profile(graphs, cfg.dataset.task_type in CLASSES)
    models, left_out = candidates(found)
    del graphs
    tried = [f'{model.name.partition("+")[2]} ({model.why})' for model in models[:-1] if model.masked]
    sentences = _sentences(found, tried, left_out)
    title = f'Does a mask help on {Path(cfg_file).stem if data is None else Path(data).name}?'
    print(f'{title}\n\n' + '\n'.join(sentences) + '\n', flush=True)

    trials = Trials(cfg_file, options, models, seeds, minutes, folder, resume)
    with locked(folder):
        results = trials.run()
    masked, without = trials.of(True), trials.of(False)
    if not masked or not without:
        kind = 'without' if masked else 'with'
        raise ValueError(f'no model {kind} a mask could be trained: {"; ".join(dict.fromkeys(trials.failures.values()))}')
    late = {model.name: trials.late_gain(model) for model in models if model.name in without}
    verdict = decide(masked, without, trials.metric, trials.maximize, chance, late)
    winner = verdict.masked if verdict.word == 'gain' else verdict.without
    report = {
        'title': title,
        'profile': asdict(found),
        'sentences': sentences,
        'metric': trials.metric,
        'maximize': trials.maximize,
        'seeds': trials.seeds,
        'epochs': trials.epochs,
        'models': list(describe(trials)),
        'verdict': asdict(verdict),
        'winner': winner,
        'yaml': _yaml(cfg_file, [*trials.options, *next(model.options for model in models if model.name == winner)]),
        'notes': _notes(trials, len(results), bool(chance.labels)),
        'command': shlex.join(['pyg-topomask', 'train', '--cfg', str(folder / 'best.yaml'), '--out', str(folder)]),
    }
    _write(report, folder)
    return report


def _of_yaml(cfg_file: str | Path | None, options: Sequence[str], out: str | Path | None) -> tuple[Path, str | Path, list[str]]:
    r"""Returns the folder of results, the configuration and the options."""
    cfg_file, options = (BUILT_IN, [*SHORT, *options]) if cfg_file is None else (cfg_file, list(options))
    path = find_config(cfg_file)
    if is_recommendation(path):
        raise ArgumentError('cfg', f'{str(cfg_file)!r}, a configuration of recommendation', 'configurations of networks')
    load_config(cfg_file, options)
    folder = Path(cfg.out_dir if out is None else out) / f'advise-{Path(cfg_file).stem}'
    check_writable(folder)
    return folder, cfg_file, options


def _graphs() -> tuple[list[Data], Chance]:
    r"""Returns the graphs, and what a model reaches on the last split that learns nothing from them."""
    loaders = create_loaders()
    if cfg.dataset.task == 'graph':
        graphs = [graph for loader in loaders for graph in loader.dataset]
        labels = [[graph.y for graph in loader.dataset] for loader in (loaders[0], loaders[-1])]
    else:
        # Samplers of GraphSAINT are their own data set.
        single = loaders[0].dataset is loaders[0] or not hasattr(loaders[0].dataset, '__getitem__')
        graphs = [loaders[0].data] if single else list(loaders[0].dataset)
        masks = ('train_mask', 'test_mask' if 'test_mask' in graphs[0] else 'val_mask')
        labels = [[graph.y[graph[name]] for graph in graphs if name in graph] for name in masks]
    first, last = labels
    if predicts_pairs() or not last:
        return graphs, Chance()
    task, metric = cfg.dataset.task_type, metric_best()
    if task in CLASSES and metric == 'accuracy':
        return graphs, Chance(counts_of_classes(last))
    if task == 'regression' and metric in LOWER_IS_BETTER[1:]:
        train, test = (
            torch.cat([y.reshape(y.size(0) if y.dim() > 0 else 1, -1) for y in split if y.numel() > 0]).double()
            for split in (first, last)
        )
        best = train.nanquantile(0.5, dim=0) if metric == 'mae' else train.nanmean(0)
        return graphs, Chance(error=regression_scores(test, best.expand_as(test))[metric])
    return graphs, Chance()


def _sentences(found: GraphProfile, masks: Sequence[str], left_out: Sequence[str]) -> list[str]:
    r"""Returns what the graphs are, how far a label could reach, and which masks fit at what cost."""
    size = f'{found.nodes:,} nodes' if found.nodes == found.largest else f'{found.nodes:,} nodes, at most {found.largest:,}'
    many = f'{found.graphs:,} graphs of {size}' if found.graphs > 1 else f'One graph of {size}'
    kind = ' trees' if found.forest else ' grids' if found.grid else ''
    way = f'{found.one_way:.0%} of the edges lead one way' if found.directed else f'undirected{kind}'
    weights = 'with weights (larger is nearer)' if found.weighted else 'without weights'
    weights += ', with features of edges' * bool(cfg.dataset.edge_encoder)
    data = f'{many}, {found.degree:.1f} edges a node: {way}, {weights}.'
    if found.majority is not None:
        data += f' The most frequent class has {found.majority:.0%} of the labels.'
    if found.equal_labels is not None and found.by_chance is not None:
        data += f' Edges join equal labels in {found.equal_labels:.0%} of cases, by chance in {found.by_chance:.0%}.'
    layers = min(int(cfg.gt.layers), len(found.within) - 1)
    share = found.within[layers] / found.reaching
    seen = f'{layers} layers of message passing see {found.within[layers]:,.0f} nodes from a node'
    reach = f'{seen}, {share:.0%} of those within reach. The largest distance seen is {found.farthest}.'
    reach += ' A mask seldom helps where message passing sees most of a graph.' if share > 0.8 else ''
    fitting = f'Masks that fit: {"; ".join(masks)}.'
    return [data, reach, fitting + (f' Left out: {"; ".join(left_out)}.' if left_out else '')]


def _notes(trials: Trials, count: int, of_labels: bool) -> list[str]:
    seeds = len(trials.seeds)
    notes = [
        f'The {count} models have the same seeds, epochs and data. With the first seed, all trained a third of the '
        'epochs, at least three. The best two without a mask and the best three with one, by validation, went on.',
        'The test metric is that of the epoch with the best validation. Errors are standard errors over seeds. The verdict '
        'compares the two best models seed by seed, from two standard errors on.',
    ]
    if of_labels:
        notes[-1] += ' It adds the chance in few test labels.'
    if trials.epochs < trials.planned:
        given = f'--minutes {trials.minutes:g} left {trials.epochs} of {trials.planned} epochs'
        notes.append(f'{given}. For all, repeat the command with more minutes and another --out.')
    if seeds < trials.wanted:
        more = f'For the others, repeat the command with --resume --minutes {trials.minutes:g}.'
        notes.append(f'The time was over after {seeds} of {trials.wanted} seeds. {more}')
    if 2 <= seeds <= 3:
        share = 30 if seeds == 2 else 18
        more = ' For more, repeat the command with --resume --seeds 10.' * (seeds == trials.wanted)
        notes.append(f'With {seeds} seeds, {share} % of equal models differ by two standard errors.{more}')
    notes.append('Seconds are those of training, and MiB the memory that it took at its peak, beside what the process held.')
    notes += [f'{name} failed: {failure}' for name, failure in trials.failures.items()]
    return notes


def _yaml(cfg_file: str | Path, options: Sequence[str]) -> str:
    r"""Returns a configuration with options in it."""
    config = parse_yaml(find_config(cfg_file).read_text(encoding='utf-8'))
    for key, value in zip(options[::2], options[1::2], strict=True):
        *groups, name = key.split('.')
        node = config
        for group in groups:
            if not isinstance(node.get(group), dict):
                node[group] = {}
            node = node[group]
        node[name] = parse_yaml(value)
    text: str = yaml.safe_dump(config, sort_keys=False)
    return text


def _write(report: dict[str, Any], folder: Path) -> None:
    print(f'{markdown_table(table(report))}\n\n{report["verdict"]["sentence"]}\n')
    print('\n'.join(report['notes'][1:]) + '\n')
    try:
        save_figure(folder / 'advise.png', draw(report))
    except ImportError as error:
        print(f'no picture: {error}')
    write_atomically(folder / 'best.yaml', report['yaml'].encode())
    write_atomically(folder / 'advise.html', page(report).encode())
    write_atomically(folder / 'advise.json', (json.dumps(report, indent=1) + '\n').encode())
    without = '' if report['verdict']['word'] == 'gain' else ' without a mask'
    print(f'Best in validation{without}: {report["winner"]}. To train it: {report["command"]}')
    print(f'Written to {folder}: advise.html, advise.json, advise.png, best.yaml')


#: The channels of the network.
WIDTH = 64


def own_config(data: str | Path, folder: Path, arguments: Mapping[str, Any]) -> dict[str, Any]:
    r"""Returns a configuration of a small network for the graphs of a file, whose processed graphs are stored in a folder. The
    other arguments and the errors are those of :class:`~pyg_topomask.apps.datasets.GraphFile`.
    """
    arguments = {'path': str(Path(data).resolve()), **arguments}
    if 'nodes' in arguments:
        arguments['nodes'] = str(Path(arguments['nodes']).resolve())
    dataset = GraphFile(str(folder), **arguments)
    arguments['digest'] = digest_of_files(*map(Path, dataset.raw_paths))  # a changed file is another configuration
    graph, one_graph = dataset[0], len(dataset) == 1
    classes = not graph.y.is_floating_point()
    per_graph = len(dataset._data.y) == len(dataset)  # the first graph may have one node
    labels = 1 if classes else graph.y.size(1)
    several = not classes and labels > 1 and bool(((dataset._data.y == 0) | (dataset._data.y == 1)).all())
    task = 'classification' if classes else 'classification_multilabel' if several else 'regression'
    metric = {'classification': 'accuracy', 'classification_multilabel': 'average_precision', 'regression': 'mae'}[task]
    loss = 'mse' if task == 'regression' else 'cross_entropy'
    epochs = 100 if one_graph else 40
    edge_features = 'edge_attr' in graph
    return {
        'metric_best': metric,
        **({'custom_metrics': [metric]} if several else {}),
        'dataset': {
            'dir': str(folder),
            'format': 'topomask',
            'name': 'file',
            'task': 'node' if one_graph else 'graph',
            'task_type': task,
            'transductive': one_graph,
            'node_encoder': True,
            'node_encoder_name': 'LinearNode',
            'node_encoder_bn': False,
            'edge_encoder': edge_features,
            **({'edge_encoder_name': 'LinearEdgeAttr', 'edge_encoder_bn': False} if edge_features else {}),
        },
        'topomask': {'dataset': arguments},
        'train': {'batch_size': 1 if one_graph else 32, 'eval_period': 1},
        'model': {'type': 'TopoGPSModel', 'loss_fun': loss, 'graph_pooling': 'mean'},
        'gt': {
            'layer_type': 'GINE+None' if edge_features else 'SAGE+None',
            'layers': 3,
            'n_heads': 4,
            'dim_hidden': WIDTH,
            'dropout': 0.1,
            'batch_norm': True,
        },
        'gnn': {
            'head': 'node' if one_graph else 'graph' if per_graph else 'inductive_node',
            'layers_pre_mp': 0,
            'layers_post_mp': 1,
            'dim_inner': WIDTH,
            'act': 'relu',
        },
        'optim': {
            'optimizer': 'adamW',
            'weight_decay': 1e-4,
            'base_lr': 0.003,
            'max_epoch': epochs,
            'scheduler': 'cosine_with_warmup',
            'num_warmup_epochs': epochs // 10,
            'clip_grad_norm': True,
        },
    }
