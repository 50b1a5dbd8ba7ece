r"""Checks of a configuration before data is loaded, and warnings about options that the runner does not read."""

from __future__ import annotations

import torch
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg

from pyg_topomask.apps.train.metrics import METRICS
from pyg_topomask.apps.train.optim import create_optimizer, create_scheduler
from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphgym.configuration import defaults, option
from pyg_topomask.graphgym.data.datasets import FORMATS, check_dataset
from pyg_topomask.graphgym.data.loaders import SAMPLERS
from pyg_topomask.graphgym.data.posenc import posenc_transforms
from pyg_topomask.graphgym.data.pyg_datasets import SPLIT_BY_SHARES
from pyg_topomask.graphgym.names.attentions import gps_attention_kwargs
from pyg_topomask.graphgym.names.encoders import edge_encoder, node_encoder
from pyg_topomask.graphgym.names.lookup import lookup
from pyg_topomask.graphgym.names.networks import ACTIVATIONS, LAYERS, find_head, split_layer_type
from pyg_topomask.utils.checks import MAX_SIZE, check_choice, check_not_negative, check_probability, check_whole

#: The smallest and the largest number that options accept. Larger sizes need absurd memory.
RANGES = {
    **dict.fromkeys(('gnn.dim_inner', 'gt.dim_hidden', 'gt.layers', 'gt.n_heads', 'num_threads'), (1, MAX_SIZE)),
    **dict.fromkeys(('gnn.layers_mp', 'share.num_splits', 'topomask.num_workers'), (-(2**31), MAX_SIZE)),
    **dict.fromkeys(('optim.batch_accumulation', 'optim.max_epoch'), (1, 2**31 - 1)),
    **dict.fromkeys(('train.batch_size', 'train.eval_period'), (1, 2**31 - 1)),
    **dict.fromkeys(('optim.num_warmup_epochs', 'optim.schedule_patience'), (0, 2**31 - 1)),
    **dict.fromkeys(('topomask.prepare_bytes', 'topomask.redraw_period'), (0, 2**31 - 1)),
    'num_workers': (0, MAX_SIZE),
    'seed': (0, 2**32 - 1),
}
#: Further names that GraphGym's network looks up.
NAMES_OF_GNN = {
    'gnn.act': register.act_dict,
    'gnn.layer_type': register.layer_dict,
    'gnn.stage_type': register.stage_dict,
}
#: Options of GraphGym and GraphGPS that this runner does not read, and the behavior instead.
UNREAD = {
    **{f'posenc_{name}.pass_as_var': 'encodings are appended to the node features' for name in ('LapPE', 'RWSE')},
    **{f'dataset.split{part}': 'the split is that of the data set' for part in ('', '_dir', '_mode')},
    'gnn.layer_type': 'the layers of TopoGPSModel are those of gt.layer_type',
    'gnn.layers_mp': 'the layers of TopoGPSModel are gt.layers',
    'gnn.stage_type': 'TopoGPSModel has residual connections, and those of CustomGNN are gnn.residual',
    'gt.full_graph': 'which nodes attend to which is what the attention says',
    'run_multiple_splits': 'one split is trained on; --repeat trains with several seeds',
    'train.ckpt_best': 'checkpoints of the best and of the last epoch are always written',
    'train.ckpt_period': 'checkpoints are written after every epoch',
    'train.enable_ckpt': 'checkpoints are always written, for --resume',
    'train.epoch_resume': '--resume continues after the last finished epoch',
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
    check_not_negative(**{path: option(path) for path in ('optim.base_lr', 'optim.weight_decay', 'optim.min_lr')})
    if cfg.optim.clip_grad_norm and not cfg.optim.clip_grad_norm_value > 0:
        raise ArgumentError('optim.clip_grad_norm_value', cfg.optim.clip_grad_norm_value, 'numbers above 0')
    check_choice(('argmax', 'argmin'), metric_agg=cfg.metric_agg)
    check_choice(('batch', 'graph'), **{'topomask.shard': cfg.topomask.shard})
    check_choice(SAMPLERS, **{path: option(path) for path in ('train.sampler', 'val.sampler')})
    lookup('model.type', cfg.model.type, register.network_dict)
    if len(register.loader_dict) == 1:  # no loader of the user or of GraphGPS
        check_dataset(cfg.dataset.format, cfg.dataset.name)
    if cfg.model.type in ('TopoGPSModel', 'CustomGNN', 'gnn'):
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
    if cfg.gnn.head == 'graph':
        lookup('model.graph_pooling', cfg.model.graph_pooling, register.pooling_dict)
    for name in cfg.custom_metrics:
        lookup('custom_metrics', name, register.metric_dict)
    if not cfg.custom_metrics:
        lookup('dataset.task_type, without custom_metrics', cfg.dataset.task_type, {'classification': (), **METRICS})
    create_scheduler(create_optimizer([torch.nn.Parameter(torch.zeros(1))]))


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
        return cfg.dataset.format not in FORMATS or (path == 'dataset.split' and cfg.dataset.format in SPLIT_BY_SHARES)
    if path.startswith('gnn.'):
        return cfg.model.type not in ('TopoGPSModel', *(['CustomGNN'] if path == 'gnn.stage_type' else []))
    if path == 'train.iter_per_epoch':
        return any('saint' in group.sampler for group in (cfg.train, cfg.val))
    return path == 'train.mode' and cfg.train.mode in ('custom', 'standard')
