r"""What the masks of the configured attention prepare, stored once for every graph of a data set."""

from __future__ import annotations

import logging
import re
import warnings
from typing import Any

import torch
from torch_geometric.data import InMemoryDataset
from torch_geometric.graphgym.config import cfg

from pyg_topomask.graphgym.names.configured_attention import build_configured_attention, named_attentions
from pyg_topomask.graphgym.names.masks import configured_tree
from pyg_topomask.transforms import PrepareMasks
from pyg_topomask.transforms.prepare_masks import masks_to_store

#: Words of attentions and masks whose masks have something to store.
STORING = {'Hop'}


def prepares_masks(dataset: Any) -> list[PrepareMasks]:
    r"""Returns the transform that stores what the masks of the configured attention prepare, as a list, which is empty if they
    have nothing to store, for a data set of one graph, which is prepared once anyway, or if :obj:`topomask.prepare_bytes` is 0.
    """
    most, names = cfg.topomask.prepare_bytes, named_attentions()
    if most == 0 or cfg.topomask.shard == 'graph' or not isinstance(dataset, InMemoryDataset) or len(dataset) < 2:
        return []
    if 'Masked' in names:
        names |= set(re.findall(r'\w+', str(configured_tree(cfg.topomask.Masked.mask))))
    if not names & STORING:
        return []
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter('ignore')  # they warn when the model is created
        attention = build_configured_attention()
    masks = [] if attention is None else masks_to_store(attention)
    return [PrepareMasks(*masks, max_bytes=most)] if masks else []


def log_bytes(dataset: InMemoryDataset, transform: PrepareMasks) -> None:
    r"""Logs the bytes that a transform has stored for a graph, and how many graphs are too large."""
    for stored, mask in transform.stored():
        pairs, sizes = (dataset._data[name] for name in stored.names)
        too_large = int(((sizes[:, 0] > 0) & (sizes[:, 4] == 0)).sum())
        logging.info(
            '%s stores %.0f bytes a graph; %d of %d graphs are above topomask.prepare_bytes %d, and prepared in every batch',
            type(mask).__name__, pairs.nbytes / len(sizes), too_large, len(sizes), transform.max_bytes,
        )  # fmt: skip
