r"""Checks of a configuration before data is loaded, of its data, and of the first step, before anything is written."""

from __future__ import annotations

import copy
import sysconfig
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import InMemoryDataset
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.imports import pl
from torch_geometric.graphgym.logger import infer_task
from torch_geometric.loader import DataLoader

from pyg_topomask.apps.datasets.bases import SPLITS
from pyg_topomask.apps.train.metrics import METRICS, labelled_loss, own_losses
from pyg_topomask.apps.train.module import create_optimizer, create_scheduler, outputs_of_splits, takes_one_pass
from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphgym.configuration import defaults, option
from pyg_topomask.graphgym.data.datasets import FORMATS, check_dataset
from pyg_topomask.graphgym.data.edge_splits import draws_pairs, predicts_pairs
from pyg_topomask.graphgym.data.loaders import SAMPLERS
from pyg_topomask.graphgym.data.pyg_datasets import SPLIT_BY_SHARES
from pyg_topomask.graphgym.names.attentions import gps_attention_kwargs
from pyg_topomask.graphgym.names.encoders import edge_encoder, node_encoder
from pyg_topomask.graphgym.names.heads import HEADS, find_head
from pyg_topomask.graphgym.names.lookup import lookup
from pyg_topomask.graphgym.names.networks import ACTIVATIONS, LAYERS, MODELS, split_layer_type
from pyg_topomask.graphgym.names.positional_encodings import posenc_transforms
from pyg_topomask.utils.checks import MAX_SIZE, check_choice, check_not_negative, check_probability, check_whole
from pyg_topomask.utils.files import first_line

#: The smallest and the largest number that options accept. Larger sizes need absurd memory.
RANGES = {
    **dict.fromkeys(('gnn.dim_inner', 'gt.dim_hidden', 'gt.layers', 'gt.n_heads', 'num_threads'), (1, MAX_SIZE)),
    **dict.fromkeys(('gnn.layers_mp', 'share.num_splits', 'topomask.num_workers'), (-(2**31), MAX_SIZE)),
    **dict.fromkeys(('optim.batch_accumulation', 'optim.max_epoch'), (1, 2**31 - 1)),
    **dict.fromkeys(('train.batch_size', 'train.eval_period'), (1, 2**31 - 1)),
    **dict.fromkeys(('optim.num_warmup_epochs', 'optim.schedule_patience'), (0, 2**31 - 1)),
    **dict.fromkeys(('topomask.prepare_bytes', 'topomask.redraw_period'), (0, 2**31 - 1)),
    **dict.fromkeys(('gnn.layers_pre_mp', 'num_workers'), (0, MAX_SIZE)),
    'round': (0, 15),
    'seed': (0, 2**32 - 1),
}
#: Further names that GraphGym's network looks up.
NAMES_OF_GNN = {
    'gnn.act': register.act_dict,
    'gnn.layer_type': register.layer_dict,
    'gnn.stage_type': register.stage_dict,
}
#: Options of :func:`~pyg_topomask.graphgym.data.edge_splits.split_edges`.
OF_LINKS = tuple(
    f'dataset.{name}'
    for name in ('split', 'edge_train_mode', 'edge_message_ratio', 'edge_negative_sampling_ratio', 'resample_negative')
)
#: Networks that encode nodes and edges by name. Without an encoder, their first layer is linear in the features, that of
#: :obj:`gnn` only with layers before message passing.
WITH_ENCODERS = ('TopoGPSModel', 'CustomGNN', 'gnn')
#: Options of GraphGym and GraphGPS that this runner does not read, and the behavior instead.
UNREAD = {
    **{f'posenc_{name}.pass_as_var': 'encodings are appended to the node features' for name in ('LapPE', 'RWSE')},
    **{f'dataset.split{part}': 'the split is that of the data set' for part in ('', '_dir', '_mode')},
    'dataset.remove_feature': 'models read the features of the data set',
    'dataset.to_undirected': 'topomask.transforms [ToUndirected] adds the reverse edges',
    'dataset.resample_disjoint': 'the edges that models see in training stay',
    **dict.fromkeys(OF_LINKS[1:], 'this is for edges of one graph: dataset.task link_pred'),
    'dataset.edge_message_ratio': 'this is for dataset.task link_pred with dataset.edge_train_mode disjoint',
    'gnn.layer_type': 'the layers of TopoGPSModel are those of gt.layer_type',
    'gnn.layers_mp': 'the layers of TopoGPSModel are gt.layers',
    'gnn.stage_type': 'TopoGPSModel has residual connections, and those of CustomGNN are gnn.residual',
    'gt.gamma': 'only the layers of SAN have it, which are not here',
    'gt.residual': 'the layers of TopoGPSModel have residual connections',
    'gt.full_graph': 'which nodes attend to which is what the attention says',
    'run_multiple_splits': 'one split is trained on; --repeat trains with several seeds',
    'train.ckpt_best': 'checkpoints of the best and of the last epoch are always written',
    'train.ckpt_period': 'checkpoints are written after every epoch, or as often as 2 % of the time allows',
    'train.enable_ckpt': 'checkpoints are always written, for --resume',
    'train.epoch_resume': '--resume continues after the last checkpoint',
    'train.iter_per_epoch': 'an epoch is once over the data, but with saint samplers',
    'train.mode': 'models are trained as by custom',
    'train.skip_train_eval': 'metrics of training are those of its own forward passes',
    **{
        f'wandb.{key}': 'metrics are in metrics.csv and, with tensorboard_each_run, in TensorBoard'
        for key in ('use', 'entity', 'project', 'name')
    },
}


def check_options() -> None:
    r"""Checks the configuration before data is loaded."""
    for path, bounds in RANGES.items():
        check_whole(*bounds, **{path: option(path)})
    check_probability(**{'gt.dropout': cfg.gt.dropout})
    rates = ('optim.base_lr', 'optim.weight_decay', 'optim.min_lr', 'optim.momentum')
    check_not_negative(**{path: option(path) for path in rates})
    if cfg.optim.clip_grad_norm and not cfg.optim.clip_grad_norm_value > 0:
        raise ArgumentError('optim.clip_grad_norm_value', cfg.optim.clip_grad_norm_value, 'numbers above 0')
    check_choice(('argmax', 'argmin'), metric_agg=cfg.metric_agg)
    check_choice(('batch', 'graph'), **{'topomask.shard': cfg.topomask.shard})
    check_choice(SAMPLERS, **{path: option(path) for path in ('train.sampler', 'val.sampler')})
    if cfg.dataset.task in ('edge', 'link_pred'):  # samplers number the nodes of a part anew, but not those of pairs
        for path in ('train.sampler', 'val.sampler'):
            check_choice(['full_batch'], **{f'{path}, for dataset.task {cfg.dataset.task}': option(path)})
    lookup('model.type', cfg.model.type, register.network_dict)
    if len(register.loader_dict) == 1:  # no loader of the user or of GraphGPS
        check_dataset(cfg.dataset.format, cfg.dataset.name)
    if cfg.model.type in WITH_ENCODERS:
        _check_head()
        if cfg.dataset.node_encoder:
            node_encoder(cfg.dataset.node_encoder_name)
        if cfg.dataset.edge_encoder:
            edge_encoder(cfg.dataset.edge_encoder_name)
        posenc_transforms()
        find_head()
    if cfg.model.type == 'TopoGPSModel':
        _, attention = split_layer_type(cfg.gt.layer_type)
        gps_attention_kwargs(attention, cfg.gt.dim_hidden, cfg.gt.n_heads, cfg.gt.attn_dropout)
    if cfg.model.type == 'CustomGNN':
        lookup('gnn.layer_type', cfg.gnn.layer_type, LAYERS)
    if cfg.model.type == 'gnn':
        for path, known in NAMES_OF_GNN.items():
            lookup(path, option(path), known, ACTIVATIONS if path == 'gnn.act' else {})
    if cfg.gnn.head in ('edge', 'inductive_edge', 'link_pred'):
        check_choice(('concat', 'cosine_similarity', 'dot'), **{'model.edge_decoding': cfg.model.edge_decoding})
    if cfg.gnn.head == 'graph':
        lookup('model.graph_pooling', cfg.model.graph_pooling, register.pooling_dict)
    for name in cfg.custom_metrics:
        lookup('custom_metrics', name, register.metric_dict)
    if not cfg.custom_metrics:
        lookup('dataset.task_type, without custom_metrics', cfg.dataset.task_type, {'classification': (), **METRICS})
    create_scheduler(create_optimizer([torch.nn.Parameter(torch.zeros(1))]))


def _check_head() -> None:
    head = cfg.dataset.task if cfg.gnn.head == 'default' else cfg.gnn.head
    known = ('edge', 'graph', 'link_pred', 'node', *HEADS)  # others are the user's
    if head in known and len({name in ('edge', 'link_pred') for name in (cfg.dataset.task, head)}) == 2:
        given = f'{cfg.dataset.task!r}, {head!r}'
        raise ArgumentError('dataset.task, gnn.head', given, 'edge or link_pred for both, or for none of them')


def warn_of_unread_options() -> None:
    r"""Warns about options that differ from their defaults and that only GraphGPS reads."""
    before = defaults()
    for path, instead in UNREAD.items():
        if option(path) != option(path, before) and not _is_read(path):
            warn(f'{path}: got {option(path)!r}, which train does not read: {instead}')


def _is_read(path: str) -> bool:
    r"""Returns whether an option of :obj:`UNREAD` is read, or equals the actual behavior."""
    if path.startswith('dataset.'):
        # A user's own loader may read it.
        by_shares = path == 'dataset.split' and cfg.dataset.format in SPLIT_BY_SHARES
        of_links = path in OF_LINKS and cfg.dataset.task == 'link_pred'
        if path == 'dataset.edge_message_ratio':
            of_links &= cfg.dataset.edge_train_mode == 'disjoint'
        of_links |= path == 'dataset.resample_negative' and cfg.gnn.head == 'inductive_edge'
        return by_shares or of_links or cfg.dataset.format not in FORMATS
    if path.startswith('gnn.'):
        return cfg.model.type not in ('TopoGPSModel', *(['CustomGNN'] if path == 'gnn.stage_type' else []))
    if path == 'train.iter_per_epoch':
        return any('saint' in group.sampler for group in (cfg.train, cfg.val))
    return path == 'train.mode' and cfg.train.mode in ('custom', 'standard')


def check_data(loaders: Sequence[Any]) -> None:
    r"""Raises an error unless all stored masks and labels fit the task. A data set that makes them when it is read is known by
    its first batch only.
    """
    for split, loader in zip(SPLITS, loaders, strict=False):
        if isinstance(loader.dataset, InMemoryDataset) and (loader.dataset.transform is None or draws_pairs(loader.dataset)):
            _check_features(loader.dataset._data)
            _check_sizes(loader.dataset)
            labels = _stored_labels(loader.dataset, split) if len(loader.dataset) > 0 else torch.empty(0)
            if labels is not None and labels.size(0) == 0:
                given = f'no sample in the {split} split of data set {cfg.dataset.name!r}'
                raise ArgumentError('dataset.split', given, 'at least one graph, or one node of the mask, in each split')
            if labels is not None:
                check_labels(labels, split)
                _check_tasks(labels, split)


def _check_sizes(dataset: InMemoryDataset) -> None:
    r"""Raises an error if a graph that is to be classified has no nodes: a batch may have no row for it."""
    if cfg.model.type in WITH_ENCODERS and cfg.gnn.head == 'graph' and 'x' in (dataset.slices or {}):
        sizes = dataset.slices['x'].diff()[torch.tensor(dataset.indices())]
        if bool((sizes == 0).any()):
            given = f'no node in graph {dataset.indices()[int((sizes == 0).nonzero()[0])]} of data set {cfg.dataset.name!r}'
            raise ArgumentError('x', given, 'at least one in each graph')


def _check_features(data: Any) -> None:
    r"""Raises an error if a model of this package or of GraphGym cannot read stored features, or would turn them into NaN."""
    x = data.get('x')
    read_as_they_are = not cfg.dataset.node_encoder or cfg.dataset.node_encoder_name.split('+')[0] == 'LinearNode'
    if cfg.model.type in WITH_ENCODERS[: 3 if cfg.gnn.layers_pre_mp > 0 else 2] and read_as_they_are:
        dtype = torch.get_default_dtype()
        if not isinstance(x, Tensor) or x.dim() != 2 or x.dtype != dtype:
            given = 'none' if not isinstance(x, Tensor) else f'shape {list(x.shape)} of {x.dtype}'
            remedy = f'x.to({dtype}), and x.unsqueeze(1) for one number'
            remedy = 'topomask.transforms [Constant] adds features' if x is None else remedy
            raise ArgumentError('x', f'{given} in data set {cfg.dataset.name!r}', f'{dtype} of shape [nodes, features]', remedy)
    for name in ('x', 'edge_attr', 'edge_weight') if cfg.model.type in (*MODELS, *WITH_ENCODERS) else ():
        values = data.get(name)
        if isinstance(values, Tensor) and not bool(values.isfinite().all()):
            row = int((~values.isfinite()).nonzero()[0, 0])
            given = f'NaN or infinite numbers in data set {cfg.dataset.name!r}, first in row {row} of {list(values.shape)}'
            raise ArgumentError(name, given, 'finite numbers')


def _stored_labels(dataset: InMemoryDataset, split: str) -> Tensor | None:
    r"""Returns the labels of a split, or :obj:`None` where they are not stored in :obj:`y`, or as those of pairs."""
    key, name = 'edge_label' if cfg.gnn.head == 'inductive_edge' else 'y', f'{split}_mask'
    labels = dataset._data.get(key)
    if not isinstance(labels, Tensor) or cfg.dataset.task not in ('graph', 'node'):
        return None
    if key in (dataset.slices or {}) and len(dataset.indices()) < dataset.slices[key].numel() - 1:
        starts = dataset.slices[key].tolist()
        labels = torch.cat([labels[starts[index] : starts[index + 1]] for index in dataset.indices()])
    mask = dataset._data.get(name)
    fits = isinstance(mask, Tensor) and mask.dtype == torch.bool and mask.shape == labels.shape[:1]
    if cfg.gnn.head != 'node' or (len(dataset) > 1 and not fits):
        return labels
    if not fits:
        found = 'none' if mask is None else f'shape {list(mask.shape)} of {mask.dtype}'
        raise ArgumentError(name, f'{found} in data set {cfg.dataset.name!r}', f'torch.bool of shape [{labels.size(0)}]')
    return labels[mask]


def check_labels(labels: Tensor, split: str) -> None:
    r"""Raises an error unless the loss and the metrics of the task can use the labels of a split."""
    name = 'edge_label' if cfg.gnn.head == 'inductive_edge' else f'{split}_edge_label' if predicts_pairs() else 'y'
    task, several = infer_task(), labels.dim() > 1 and labels.size(1) > 1
    where = f'in the {split} split of data set {cfg.dataset.name!r}'
    known = labels[~labels.isnan()]
    if labels.numel() > 0 and known.numel() == 0:
        raise ArgumentError(name, f'NaN for every label {where}', 'at least one label')
    if task == 'regression' and not cfg.custom_metrics and bool(known.isinf().any()):
        raise ArgumentError(name, f'infinite numbers {where}', 'finite numbers for regression, and NaN for no label')
    if task in ('classification_multi', 'classification_binary') and several and not cfg.custom_metrics:
        given = f'{cfg.dataset.task_type!r}, of one label for each sample, for labels of shape {list(labels.shape)}'
        accepted = 'one label for each sample, and for several labels custom_metrics'
        raise ArgumentError('dataset.task_type', given, accepted)
    found = known.unique()
    if task == 'classification_binary' and not bool(((found == 0) | (found == 1)).all()):
        given = f'{cfg.dataset.task_type!r}, of two classes, for the labels {_some(found)} {where}'
        accepted = 'the labels 0 and 1, and for more of them classification_multi'
        raise ArgumentError('dataset.task_type', given, accepted)
    if own_losses() or (several and task == 'classification_multi'):
        return
    if task == 'classification_multi' and not bool(torch.isin(found, torch.arange(cfg.share.dim_out).to(found)).all()):
        accepted = f'the classes 0 to {cfg.share.dim_out - 1}'
        remedy = f'{name} = torch.unique({name}, return_inverse=True)[1] numbers them'
        raise ArgumentError(name, f'the labels {_some(found)} {where}', accepted, remedy)
    if task == 'classification_multilabel' and bool(((found < 0) | (found > 1)).any()):
        raise ArgumentError(name, f'the labels {_some(found)} {where}', 'numbers from 0 to 1, and NaN for no label')


def _some(values: Tensor) -> str:
    r"""Returns numbers as text, and no more than ten."""
    texts = [f'{value:g}' for value in values[:10].tolist()]
    return ', '.join(texts) + (', ...' if values.numel() > 10 else '')


def _check_tasks(labels: Tensor, split: str) -> None:
    r"""Says how many tasks :obj:`average_precision` leaves out, as the evaluators of OGB do."""
    if 'average_precision' not in cfg.custom_metrics:
        return
    tasks = labels.view(labels.size(0), -1)
    out = ~((tasks == 0).any(0) & (tasks == 1).any(0))
    if bool(out.any()):
        given = f'{int(out.sum())} of {out.numel()} tasks without a positive or without a negative label in the {split} split'
        if bool(out.all()) and split == 'val' and cfg.metric_best == 'average_precision':
            raise ArgumentError('y', given, 'at least one task with both, for metric_best average_precision')
        warn(f'y: got {given}, which average_precision leaves out')


def check_single_samples(network: torch.nn.Module, loader: Any) -> None:
    r"""Raises an error if a training batch of the run has too few nodes or graphs for batch normalization, which needs two."""
    norms = [module for module in network.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)]
    if not norms or type(loader) is not DataLoader or min(map(len, loader.batch_sampler)) > 1:
        return
    order, alone = loader.batch_sampler.sampler, set()
    for epoch in range(cfg.optim.max_epoch):
        order.set_epoch(epoch)
        alone |= {batch[0] for batch in loader.batch_sampler if len(batch) == 1}
    index = min(alone, key=lambda index: loader.dataset[index].num_nodes)
    batch = loader.collate_fn([loader.dataset[index]])
    nodes, batch.split = batch.num_nodes, 'train'
    try:
        with pl.utilities.seed.isolate_rng(), torch.no_grad():
            copy.deepcopy(network).train()(batch.to(next(network.parameters()).device))
    except ValueError as error:
        if not str(error).startswith('Expected more than 1 value per channel'):
            raise
        given = f'{cfg.train.batch_size} for {len(loader.dataset)} training graphs of data set {cfg.dataset.name!r}'
        given += f', of which graph {index} with {nodes} node(s) is a batch alone; batch normalization needs two rows'
        remedy = 'gt.batch_norm False gt.layer_norm True normalizes each node alone'
        raise ArgumentError('train.batch_size', given, 'sizes after which the last batch has two graphs', remedy) from error


#: Options that may not fit the data, which only the first step reveals.
SUSPECTS = ('dataset.task', 'gnn.head', 'model.loss_fun')
#: Further options of this kind, and the options that enable them.
ENCODERS = {'dataset.node_encoder_name': 'dataset.node_encoder', 'dataset.edge_encoder_name': 'dataset.edge_encoder'}


def try_first_step(network: torch.nn.Module, loaders: Sequence[Any], device: torch.device) -> None:
    r"""Moves a network to a device and computes the loss of the first batch of each split in evaluation mode, without changing
    random number generators. Raises a :class:`ValueError` if this fails for any reason except lack of memory.
    """
    network.to(device).eval()
    with pl.utilities.seed.isolate_rng(), torch.no_grad():
        splits: list[tuple[str, ...]] = [(split,) for split in SPLITS[: len(loaders)]]
        if takes_one_pass(network, loaders) and len(loaders[0].dataset) == 1:
            splits = [SPLITS[: len(loaders)]]
        for some, loader in zip(splits, loaders, strict=False):
            _step(network, loader, some, device)
    network.train()


def _step(network: torch.nn.Module, loader: Any, splits: Sequence[str], device: torch.device) -> None:
    split = splits[0]
    try:
        # Not by iterating over the loader, which would start its workers and draw from its generator.
        batch = loader.collate_fn([loader.dataset[index] for index in next(iter(loader.batch_sampler))]).to(device)
        one_graph = len(loader.dataset) == 1
        if cfg.gnn.head == 'inductive_node' and 'train_mask' in batch:
            if one_graph:
                accepted = 'node, because inductive_node trains on all nodes of a graph'
                raise ArgumentError('gnn.head', "'inductive_node' for one graph with train_mask", accepted)
            if split == 'train':
                given = "'inductive_node' for graphs with train_mask, which it does not read"
                remedy = 'to train on those of the mask: dataset.task node gnn.head node'
                warn(f'gnn.head: got {given}, but trains on all nodes of training graphs; {remedy}')
        for split, pred, true, _ in outputs_of_splits(network, batch, splits):
            mask = f'{split}_mask'
            # Samplers of GraphSAINT are their own data set. Another shard of a graph may have the nodes.
            whole = one_graph and loader.dataset is not loader and cfg.topomask.shard == 'batch'
            if whole and mask in batch and not bool(batch[mask].any()):
                raise ArgumentError(mask, 'no node', 'masks that select at least one')
            labelled_loss(pred, true)
            check_labels(true, split)
    except (torch.OutOfMemoryError, ArgumentError):
        raise
    except (AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        if str(error).startswith('Loss function'):
            accepted = 'cross_entropy, l1, mse, weighted_cross_entropy, and what losses take that are registered with GraphGym'
            raise ArgumentError('model.loss_fun', repr(cfg.model.loss_fun), accepted) from error
        suspects = [*SUSPECTS, *(name for name, enabled in ENCODERS.items() if option(enabled))]
        values = ', '.join(repr(option(path)) for path in suspects)
        end = f'{type(error).__name__}: {first_line(error)}{_place(error)}'
        given = f'{values}, with which the first {split} batch ends in {end}'
        several_graphs = len(loader.dataset) > 1 and loader.dataset is not loader
        remedy = 'for labels of nodes in several graphs: dataset.task graph gnn.head inductive_node'
        remedy = remedy if cfg.dataset.task == 'node' and several_graphs else ''
        raise ArgumentError(', '.join(suspects), given, 'what fits the data set', remedy) from error


def _place(error: BaseException) -> str:
    r"""Returns where an error passed the user's code, or an empty text if it did not."""
    libraries = (Path(sysconfig.get_path('stdlib')), Path(__file__).parents[2])
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not {'site-packages', 'dist-packages'}.intersection(Path(frame.filename).parts)
        and not any(map(Path(frame.filename).is_relative_to, libraries))
        and not frame.filename.startswith('<')
    ]
    return f' ({frames[-1].filename}, line {frames[-1].lineno}, in {frames[-1].name})' if frames else ''
