r"""The hook into `GraphGPS <https://github.com/rampasek/GraphGPS>`_, without changes to its files.

The hook replaces the class :obj:`GPSLayer` in the namespace of :obj:`graphgps.network.gps_model`, where :obj:`GPSModel` looks
it up. In forks such as `Exphormer <https://github.com/hamed1375/Exphormer>`_, it replaces :obj:`MultiLayer` and
:obj:`SingleLayer` in :obj:`graphgps.network.multi_model`. Each class is replaced by a subclass that builds the attentions of
this package if :obj:`gt.layer_type` names one, and otherwise behaves as before. Names of :obj:`GPSLayer` keep their meaning.
The function that declares GraphGPS's options :obj:`gt` also declares :obj:`gt.sparse` of the k-MIP authors' configurations, if
it is missing. Two things that newer libraries dropped are restored: :func:`torch.load` loads the stored data sets of GraphGPS,
which have classes of PyG, and the :obj:`mean_squared_error` of its logger takes :obj:`squared`. Nothing else is replaced.

The hook runs when this module is imported, if :obj:`graphgps` is already imported, and whenever GraphGym's :obj:`set_cfg` is
called. Every run calls it after its imports, and the options of GraphGPS's models do not exist earlier.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage
from torch_geometric.graphgym import register
from yacs.config import CfgNode

from pyg_topomask.graphgym.configuration import GRAPHGPS_SCHEMA
from pyg_topomask.graphgym.graphgps.hooked_layers import GPSLayerHook, MultiLayerHook, SingleLayerHook
from pyg_topomask.graphgym.names.encoders import register_svd_encoders

#: Where a layer class of GraphGPS or of a fork is replaced: the module, the name of the class in it, and the hook.
_HOOKS: tuple[tuple[str, str, type[Module]], ...] = (
    ('graphgps.network.gps_model', 'GPSLayer', GPSLayerHook),
    ('graphgps.network.multi_model', 'MultiLayer', MultiLayerHook),
    ('graphgps.network.multi_model', 'SingleLayer', SingleLayerHook),
)


def declare_sparse(node: CfgNode) -> None:
    r"""Declares the options :obj:`gt.sparse` with our defaults, in a configuration that has :obj:`gt` and lacks them."""
    node.gt.setdefault('sparse', CfgNode(GRAPHGPS_SCHEMA['cfg_gt']['gt']['sparse']))


def _declare_with_sparse(declare: Callable[[CfgNode], None], node: CfgNode) -> None:
    r"""GraphGPS's function that declares :obj:`gt`, followed by :obj:`gt.sparse`."""
    declare(node)
    declare_sparse(node)


def _mean_squared_error(true: Tensor, predicted: Tensor, squared: bool = True) -> float:
    r"""The function of scikit-learn, with the argument that its version 1.6 removed."""
    from sklearn import metrics

    error = metrics.mean_squared_error if squared else metrics.root_mean_squared_error
    return float(error(true, predicted))


def hook_graphgps(node: CfgNode | None = None) -> None:
    r"""Adds the attentions of this package to the imported models of GraphGPS, registers :obj:`X+SVDSE` for its node encoders
    :obj:`X`, and allows loading its stored graphs. It may be called repeatedly, also with the configuration of a running
    :obj:`set_cfg`.
    """
    torch.serialization.add_safe_globals([DataEdgeAttr, DataTensorAttr, GlobalStorage])
    for module_name, name, hook in _HOOKS:
        module = sys.modules.get(module_name)
        theirs = getattr(module, name, None)
        if theirs is not None and not issubclass(theirs, hook):
            # Under the original name, which pickle uses.
            setattr(module, name, type(name, (hook, theirs), {'__module__': module_name, '__doc__': theirs.__doc__}))
    logger = sys.modules.get('graphgps.logger')
    if logger is not None and 'squared' not in inspect.signature(logger.mean_squared_error).parameters:
        vars(logger).update(mean_squared_error=_mean_squared_error)
    declare = register.config_dict.get('cfg_gt')
    if declare is not None and getattr(declare, 'func', None) is not _declare_with_sparse:
        register.config_dict['cfg_gt'] = partial(_declare_with_sparse, declare)
        if node is not None and 'gt' in node:
            declare_sparse(node)  # GraphGPS's function has run before
    register_svd_encoders()


register.config_dict.setdefault('topomask_graphgps', hook_graphgps)
hook_graphgps()
