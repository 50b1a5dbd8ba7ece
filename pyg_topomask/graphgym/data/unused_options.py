r"""Warnings about options that nothing reads with the configured model and data set."""

from __future__ import annotations

import sys
from typing import Any

from torch_geometric.graphgym.config import cfg
from yacs.config import CfgNode

from pyg_topomask.errors import warn
from pyg_topomask.graphgym.configuration import defaults, option
from pyg_topomask.graphgym.data.transforms import PREPARES_FOR, reads_walks, walks_of
from pyg_topomask.graphgym.names.attentions import ATTENTIONS, layer_option, named_attentions
from pyg_topomask.graphgym.names.models import MODELS


def warn_of_unused_options() -> None:
    r"""Warns about options that nothing reads.

    A YAML may contain options of attentions that :obj:`gt.layer_type` does not name, so these cause a warning only on the
    command line. Other options cause a warning if they differ from their defaults.
    """
    entries = cfg.topomask.transforms or []
    transforms = [name for entry in entries for name in ([entry] if isinstance(entry, str) else entry)]
    walking = [name for name in transforms if name in PREPARES_FOR]
    layer, value = layer_option()
    layers = f'{layer} {value!r}'
    is_model, has_attention = cfg.model.type in MODELS, cfg.model.type not in (*MODELS, 'CustomGNN')
    if is_model or layer != 'model.type':  # a network of the user may read options of attentions
        _warn_of_attentions(walking, layers)

    encoder = cfg.dataset.node_encoder_name if cfg.dataset.node_encoder else None
    encodes = 'SVDSE' in str(encoder).split('+') or 'AddSVDEncoding' in transforms
    without_model = f'{layers}, whose arguments are topomask.model'
    readers = {
        'topomask.model': (is_model, f'model.type {cfg.model.type!r}'),
        'topomask.dataset': (cfg.dataset.format == 'topomask', f'dataset.format {cfg.dataset.format!r}'),
        'topomask.svd': (encodes, f'dataset.node_encoder_name {encoder!r} and without AddSVDEncoding'),
        'gt': (has_attention, without_model if is_model else layers),
        'model.graph_pooling': (not is_model, without_model),
        'dataset.node_encoder': (not is_model or cfg.model.type == 'GKAT', without_model),
        'posenc_EquivStableLapPE': (layer == 'gt.layer_type' or not cfg.posenc_EquivStableLapPE.enable, layers),
    }
    before = defaults()
    for path, (is_read, where) in readers.items():
        changed = _changed(option(path), option(path, before))
        if changed and not is_read:
            warn(f'{path}: got {", ".join(changed)}, which nothing reads with {where}')
    for name in walking:
        if not has_attention and (cfg.model.type, name) != ('GKAT', 'AddRandomWalkKernel'):
            warn(f'topomask.transforms: got {name}, whose walks nothing reads with {layers}')
    if cfg.topomask.redraw_period:
        warn(f'topomask.redraw_period: got {cfg.topomask.redraw_period}, which only pyg-topomask train reads')


def _warn_of_attentions(walking: list[str], layers: str) -> None:
    used = named_attentions()
    if reads_walks():
        used |= {walks_of(name)[0] for name in walking}
    if cfg.model.type in ('TopologicalViT', 'ViViT'):
        used.add('Masked')  # their mask is topomask.mask
    groups = {f'topomask.{name}': name for name in ATTENTIONS}
    groups |= {'topomask.mask': 'Masked', 'gt.sparse': 'SparseAttention'}
    for path, name in groups.items():
        given = [word for word in sys.argv if word == path or word.startswith(f'{path}.')]
        if given and name not in used:
            warn(f'{", ".join(given)}: got an option that nothing reads with {layers}')


def _changed(value: Any, default: Any) -> list[str]:
    r"""Returns the options of a group that differ from their defaults, or the value of an option that does."""
    if not isinstance(value, CfgNode):
        return [] if value == default else [repr(value)]
    return [key for key, setting in value.items() if key not in default or setting != default[key]]
