r"""The hook into `GraphGPS <https://github.com/rampasek/GraphGPS>`_, whose files stay as they are.

What is replaced: the class :obj:`GPSLayer` in the namespace of :obj:`graphgps.network.gps_model`, where :obj:`GPSModel` looks
it up, and in forks such as `Exphormer <https://github.com/hamed1375/Exphormer>`_ the classes :obj:`MultiLayer` and
:obj:`SingleLayer` in that of :obj:`graphgps.network.multi_model`; each by a subclass of itself that builds the attentions of
this package where :obj:`gt.layer_type` names one, and otherwise does what it did. A name that :obj:`GPSLayer` itself knows
stays its own. The function that declares GraphGPS's options :obj:`gt` declares after them the :obj:`gt.sparse` of the k-MIP
authors' configurations, where it is missing. Nothing else is replaced. The data sets that GraphGPS has stored are read with any
PyTorch: since version 2.6 :func:`torch.load` refuses what PyG's graphs consist of unless it is told otherwise.

This happens when this module is imported, if :obj:`graphgps` is there by then, and whenever GraphGym's :obj:`set_cfg` is
called, which every run does after its imports: the options that a model of GraphGPS reads do not exist earlier.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from torch.nn import Module
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage
from torch_geometric.graphgym import register
from yacs.config import CfgNode

from pyg_topomask.graphgym.configuration import GRAPHGPS_SCHEMA
from pyg_topomask.graphgym.graphgps.hooked_layers import GPSLayerHook, MultiLayerHook, SingleLayerHook
from pyg_topomask.graphgym.names.svd_encoder import register_svd_encoders


class _DeclareWithSparse:
    r"""GraphGPS's function that declares :obj:`gt`, and then :obj:`gt.sparse` with our defaults where it has none."""

    def __init__(self, declare: Callable[[CfgNode], None]) -> None:
        self.declare = declare

    def __call__(self, node: CfgNode) -> None:
        self.declare(node)
        declare_sparse(node)


def declare_sparse(node: CfgNode) -> None:
    r"""Declares the options :obj:`gt.sparse` where they are missing.

    Args:
        node (yacs.config.CfgNode): The configuration, which has a group :obj:`gt`.
    """
    prefix = 'gt.sparse.'
    options = {key.removeprefix(prefix): value for key, value in GRAPHGPS_SCHEMA['cfg_gt'].items() if key.startswith(prefix)}
    node.gt.setdefault('sparse', CfgNode(options))


#: Modules of GraphGPS and its forks, a class in each that is replaced, and what is put in front of it.
_HOOKS: tuple[tuple[str, str, type[Module]], ...] = (
    ('graphgps.network.gps_model', 'GPSLayer', GPSLayerHook),
    ('graphgps.network.multi_model', 'MultiLayer', MultiLayerHook),
    ('graphgps.network.multi_model', 'SingleLayer', SingleLayerHook),
)


def hook_graphgps(node: CfgNode | None = None) -> None:
    r"""Makes the models of GraphGPS that are imported by now know the attentions of this package, registers
    :obj:`X+SVDSE` for its node encoders :obj:`X`, and lets its stored graphs be loaded; harmless when repeated.

    Args:
        node (yacs.config.CfgNode, optional): The configuration that :obj:`set_cfg` is at work on. (default: :obj:`None`)
    """
    torch.serialization.add_safe_globals([DataEdgeAttr, DataTensorAttr, GlobalStorage])
    for module_name, name, hook in _HOOKS:
        module = sys.modules.get(module_name)
        theirs = getattr(module, name, None)
        if theirs is not None and not issubclass(theirs, hook):
            # Under their name, by which pickle finds it.
            setattr(module, name, type(name, (hook, theirs), {'__module__': module_name, '__doc__': theirs.__doc__}))
    declare = register.config_dict.get('cfg_gt')
    if declare is not None and not isinstance(declare, _DeclareWithSparse):
        register.config_dict['cfg_gt'] = _DeclareWithSparse(declare)
        if node is not None and 'gt' in node:
            declare_sparse(node)  # theirs has run before
    register_svd_encoders()


register.config_dict.setdefault('topomask_graphgps', hook_graphgps)
hook_graphgps()
