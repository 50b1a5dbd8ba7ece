r"""The options :obj:`cfg.topomask`, and a stand-in for the part of GraphGPS's schema that the shipped YAMLs use."""

from __future__ import annotations

from typing import Any

from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from yacs.config import CfgNode

from pyg_topomask.graphgym.attentions import ATTENTIONS, attention_options
from pyg_topomask.graphgym.svd_encoder import SVD_OPTIONS

__all__ = ['declare_config']

#: Options that GraphGPS declares, with its defaults, by the name under which it registers the function that does so.
GRAPHGPS_SCHEMA: dict[str, dict[str, Any]] = {
    'cfg_gt': {
        'gt.layer_type': 'GINE+GRF',
        'gt.layers': 3,
        'gt.n_heads': 8,
        'gt.dim_hidden': 64,
        'gt.full_graph': True,
        'gt.gamma': 1e-5,
        'gt.pna_degrees': [],
        'gt.dropout': 0.0,
        'gt.attn_dropout': 0.0,
        'gt.layer_norm': False,
        'gt.batch_norm': True,
        'gt.residual': True,
        'gt.sparse.k': 10,
        'gt.sparse.kq_dim': None,
        'gt.sparse.val_dim': None,
        'gt.sparse.head_agg': 'Linear',
        'gt.sparse.random_attention': False,
        'gt.sparse.random_fraction': 0.1,
    },
    'extended_optim': {
        'optim.batch_accumulation': 1,
        'optim.reduce_factor': 0.1,
        'optim.schedule_patience': 10,
        'optim.min_lr': 0.0,
        'optim.num_warmup_epochs': 50,
        'optim.clip_grad_norm': False,
        'optim.clip_grad_norm_value': 1.0,
    },
    'dataset_cfg': {
        'dataset.node_encoder_num_types': 0,
        'dataset.edge_encoder_num_types': 0,
    },
    'split': {
        'dataset.split_mode': 'standard',
        'dataset.split_index': 0,
        'dataset.split_dir': './splits',
        'run_multiple_splits': [],
    },
    'overwrite_defaults': {'train.mode': 'standard'},
    'extended_cfg': {'name_tag': '', 'train.ckpt_best': False},
    'custom_gnn': {'gnn.residual': False},
    'cfg_wandb': {'wandb.use': False, 'wandb.entity': '', 'wandb.project': '', 'wandb.name': ''},
}


def _declare(node: CfgNode, options: dict[str, Any]) -> None:
    for key, default in options.items():
        *groups, name = key.split('.')
        target = node
        for group in groups:
            target = target.setdefault(group, CfgNode())
        # A list is copied, or else a run's changes would become the next run's defaults.
        target[name] = list(default) if isinstance(default, list) else default


def declare_config(node: CfgNode) -> None:
    r"""Declares the options of this package in a configuration of GraphGym.

    * :obj:`topomask.<name>` holds the options of the attention :obj:`<name>`, one for each keyword argument of its class;
    * :obj:`topomask.mask` describes the mask of the attention :obj:`Masked`, or of a vision Transformer, see
      :func:`~pyg_topomask.graphgym.composed_mask.build_mask`; on the command line it is one line of YAML,
      ``topomask.mask "{sum: [GRF, SinDegree]}"``, which replaces that of the file (where :obj:`main.py` of GraphGPS is run
      by itself, it is to be called :obj:`topomask.Masked.mask`);
    * :obj:`topomask.model` holds the arguments of the model where :obj:`model.type` is one of
      :obj:`~pyg_topomask.graphgym.models.MODELS`, but for the sizes that the data set;
    * :obj:`topomask.dataset` holds the arguments of the data set where :obj:`dataset.format` is :obj:`topomask`;
    * :obj:`topomask.transforms` lists transforms to apply once to every graph when the dataset is loaded, each either a
      name or ``{name: {argument: value}}``, on the command line in one line of YAML as well; those that store walks are left
      out if no attention of a GPS model reads walks;
    * :obj:`topomask.svd` holds the options of the encoder :obj:`SVDSE`, see
      :class:`~pyg_topomask.graphgym.svd_encoder.SVDNodeEncoder`;
    * :obj:`topomask.redraw_period` is the number of epochs after which the standalone runner draws random features anew;
      :obj:`0` keeps them;
    * :obj:`topomask.num_workers` is the number of processes among which the graphs are divided for the transforms; it pays
      where these take some ten milliseconds a graph, as :obj:`AddSVDEncoding` does, and not for walks;
    * :obj:`topomask.progress` shows progress bars;
    * :obj:`share.dim_edge` and :obj:`share.dim_history` are set by the loader to the sizes of the edge features and of the
      steps that led to where particles are.

    Where GraphGPS is not imported, its options that our configurations use are declared as well, so that one YAML runs
    in both. Those that GraphGPS declares are left alone.

    Args:
        node (yacs.config.CfgNode): The configuration.
    """
    node.topomask = CfgNode({name: attention_options(name) for name in ATTENTIONS})
    node.topomask.mask = CfgNode(new_allowed=True)
    node.topomask.svd = CfgNode(dict(SVD_OPTIONS))
    node.topomask.model = CfgNode(new_allowed=True)
    node.topomask.dataset = CfgNode(new_allowed=True)
    node.topomask.transforms = []
    node.topomask.redraw_period = 0
    node.topomask.num_workers = 0
    node.topomask.progress = True
    node.share.dim_edge = 0
    node.share.dim_history = 0
    for owner, options in GRAPHGPS_SCHEMA.items():
        if owner not in register.config_dict:
            _declare(node, options)


register.config_dict.setdefault('topomask', declare_config)
# GraphGym set its defaults when it was imported, before this registration: without this, `cfg.topomask` would exist
# only after the next `set_cfg`.
if 'topomask' not in cfg:
    declare_config(cfg)
