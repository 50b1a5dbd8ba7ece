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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.utils import to_dense_adj
from yacs.config import CfgNode

from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphgym.configuration import GRAPHGPS_SCHEMA
from pyg_topomask.graphgym.names.attentions import (
    ATTENTIONS,
    attention_options,
    build_attention,
    build_edge_weights,
    configured_options,
    edge_features,
)
from pyg_topomask.graphgym.names.encoders import register_svd_encoders
from pyg_topomask.graphgym.names.layers import LOCAL_LAYERS
from pyg_topomask.graphs.graph import Graph


class GlobalAttention(Module):
    r"""An attention of this package that is called with a batch, like the layers of GraphGPS, with the options of
    :obj:`cfg.topomask.<name>`. The layers of a forward pass share the prepared masks of the batch. With :obj:`log_weights`, the
    coefficients of the last call are in :obj:`weights`. Attentions that compute none, and graph tokens of GraphGPS, which the
    edges of a batch do not count, raise an error.
    """

    def __init__(self, name: str, channels: int, heads: int, dropout: float = 0.0, log_weights: bool = False) -> None:
        super().__init__()
        if 'GraphormerBias' in str(cfg.dataset.node_encoder_name).split('+') and cfg.graphormer.use_graph_token:
            remedy = 'GraphGPS inserts the tokens before the nodes of each graph, but does not renumber the edges'
            raise ArgumentError('graphormer.use_graph_token', f'True with the attention {name!r}', 'False', remedy)
        self.name = name
        self.options = configured_options(name)
        self.attn = build_attention(name, channels, heads, dropout)
        self.edge_weights = build_edge_weights(name, self.attn, channels)
        self.log_weights = log_weights
        self.weights: Tensor | None = None
        if log_weights and 'return_attention_weights' not in inspect.signature(self.attn.forward).parameters:
            raise NotImplementedError(
                f'train.mode log-attn-weights: got gt.layer_type with {name!r}, which never computes attention weights; '
                f"accepted: attentions over a mask's entries, such as AsymmetricGRF and GRFSoftmax"
            )

    def forward(self, batch: Data) -> Tensor:
        graph = Graph.shared(batch)
        if self.edge_weights is not None:
            graph = self.edge_weights.weigh(graph, batch.get('edge_attr'), batch.x)
        kwargs = {'return_attention_weights': True} if self.log_weights else {}
        kwargs |= edge_features(self.attn, batch)
        out = self.attn(batch.x, graph.edge_index, batch=graph.batch, graph=graph, **kwargs)
        if self.log_weights:
            out, (pairs, alpha) = out
            # As GraphGPS logs them, [num_graphs, heads, N_max, N_max].
            dense = to_dense_adj(pairs.flip(0), graph.segments.index, alpha.detach(), graph.segments.largest, graph.num_graphs)
            self.weights = dense.permute(0, 3, 1, 2).cpu()
        return out

    def get_extra_state(self) -> dict[str, Any]:
        return {'name': self.name, 'options': self.options}

    def set_extra_state(self, state: dict[str, Any] | str) -> None:
        if isinstance(state, str):  # of version 0.1.0
            state = {'name': state, 'options': {}}
        if state['name'] != self.name:
            raise ArgumentError('checkpoint', f'one of the attention {state["name"]!r}', f'{self.name!r}, as in gt.layer_type')
        trained = state['options']
        changed = [f'{key} {value!r}' for key, value in trained.items() if self.options.get(key, ()) != value]
        if changed:
            # GraphGPS restores gt and gnn of a pretrained model, but not topomask.
            trained_with = ', '.join(changed)
            warn(f'checkpoint: got one that was trained with {trained_with}; give these options again')

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        _, strict, _, _, errors = args
        if strict and not any(key.startswith(prefix) for key in state_dict):
            errors.append(f'checkpoint: got one without {prefix}*, of another gt.layer_type; accepted: one of {self.name!r}.')
        super()._load_from_state_dict(state_dict, prefix, *args)


@contextmanager
def _known_names(theirs: str, refusal: str) -> Iterator[None]:
    r"""Adds the attentions of this package to the error of a constructor that rejects a part of :obj:`gt.layer_type`."""
    try:
        yield
    except ValueError as error:
        if refusal not in str(error):
            raise
        known = ', '.join(ATTENTIONS)
        raise ValueError(f'{error}. Accepted in gt.layer_type are attentions of {theirs}, and {known}') from error


class GPSLayerHook(Module):
    r"""The hook for GraphGPS's :obj:`GPSLayer`. Local layers, norms, dropout and the feed-forward block are those of GraphGPS.
    Its attentions do not change. If a fork has an attention with the same name as one of this package, the attention of the
    fork is used.
    """

    attn_dropout: float
    layer_norm: bool
    batch_norm: bool
    local_gnn_type: str

    def __init__(
        self, dim_h: int, local_gnn_type: str, global_model_type: str, num_heads: int, *args: Any, **kwargs: Any
    ) -> None:
        ours, log_weights, state = False, False, torch.get_rng_state()
        try:
            with _known_names('GraphGPS (None, Transformer, BiasedTransformer, Performer, BigBird)', refusal='global'):
                super().__init__(dim_h, local_gnn_type, global_model_type, num_heads, *args, **kwargs)
        except (NotImplementedError, ValueError) as error:
            ours = global_model_type in ATTENTIONS and 'global' in str(error)
            if not ours:
                raise
        else:
            _warn_of_unused_options(global_model_type)
        if ours:
            # The rejected attempt has drawn parameters of the local layer.
            torch.set_rng_state(state)
            log_weights = kwargs.pop('log_attn_weights', False)
            super().__init__(dim_h, local_gnn_type, 'None', num_heads, *args, **kwargs)
        self.topo_attn: GlobalAttention | None = None
        self._attended: Tensor | None = None
        if ours:
            self.topo_attn = GlobalAttention(global_model_type, dim_h, num_heads, self.attn_dropout, log_weights)
            self.global_model_type = global_model_type

    def forward(self, batch: Data) -> Data:
        local = LOCAL_LAYERS.get(self.local_gnn_type)
        if local is not None and local.edge_attr == 'demands' and batch.get('edge_attr') is None:
            local.edge_kwargs(batch, batch.x.size(1))  # GraphGPS would end in an AttributeError of None
        if self.topo_attn is not None:
            # The k-MIP authors' repository calls them norm1_global and dropout_global.
            name = 'attn' if hasattr(self, 'dropout_attn') else 'global'
            h = batch.x + getattr(self, f'dropout_{name}')(self.topo_attn(batch))
            if self.layer_norm:
                h = getattr(self, f'norm1_{name}')(h, batch.batch)
            if self.batch_norm:
                h = getattr(self, f'norm1_{name}')(h)
            self._attended = h
            if self.topo_attn.weights is not None:
                self.attn_weights = self.topo_attn.weights
        try:
            out: Data = super().forward(batch)
        finally:
            self._attended = None
        return out

    def _ff_block(self, x: Tensor) -> Tensor:
        # GraphGPS adds the residual to the sum of the local and the global output. Here, x is only the local output.
        if self._attended is None:
            return super()._ff_block(x)  # type: ignore[misc]
        return self._attended + super()._ff_block(x + self._attended)  # type: ignore[misc]


def _warn_of_unused_options(name: str) -> None:
    r"""Warns if options of an attention of this package are set, but GraphGPS uses its own of the same name."""
    default = attention_options(name) if name in ATTENTIONS else {}
    unused = [f'topomask.{name}.{key}' for key, value in default.items() if cfg.topomask[name][key] != value]
    if unused:
        warn(f"{', '.join(unused)}: got values for the attention {name!r}, which is GraphGPS's own here and does not read them")


def _is_ours(name: str) -> bool:
    r"""Whether a name of Exphormer's repository is an attention of this package, and none of the repository."""
    return name in ATTENTIONS and name != 'BigBird'


def _attend_with(model: Any, name: str, channels: int, heads: int, dropout: float) -> None:
    r"""Replaces the attention of a :obj:`GlobalModel` of Exphormer's repository, and keeps its residual, dropout and norm."""
    model.self_attn = GlobalAttention(name, channels, heads, dropout)
    # The type whose attention is called with the batch itself.
    model.global_model_type = 'Exphormer'


class MultiLayerHook(Module):
    r"""The hook for the :obj:`MultiLayer` of Exphormer's repository, which sums any number of models."""

    attn_dropout: float
    models: ModuleList

    def __init__(self, dim_h: int, model_types: list[str], num_heads: int, **kwargs: Any) -> None:
        theirs = ['Transformer' if _is_ours(name) else name for name in model_types]
        for name in theirs:
            _warn_of_unused_options(name)
        with _known_names('the repository', refusal='layer type'):
            super().__init__(dim_h=dim_h, model_types=theirs, num_heads=num_heads, **kwargs)
        self.model_types = model_types
        for model, name in zip(self.models, model_types, strict=True):
            if _is_ours(name):
                _attend_with(model, name, dim_h, num_heads, self.attn_dropout)


class SingleLayerHook(Module):
    r"""The hook for the :obj:`SingleLayer` of Exphormer's repository, one model and an activation."""

    attn_dropout: float
    model: Module

    def __init__(self, dim_h: int, model_type: str, num_heads: int, **kwargs: Any) -> None:
        ours = _is_ours(model_type)
        _warn_of_unused_options('' if ours else model_type)
        with _known_names('the repository', refusal='layer type'):
            super().__init__(dim_h=dim_h, model_type='Transformer' if ours else model_type, num_heads=num_heads, **kwargs)
        if ours:
            self.model_type = model_type
            _attend_with(self.model, model_type, dim_h, num_heads, self.attn_dropout)


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
