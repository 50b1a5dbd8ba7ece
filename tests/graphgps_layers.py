"""Where a GraphGPS lies, and layers of it with the batches that they read."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg

STANDIN = Path(__file__).parent / 'graphgym' / 'graphgps_standin'
REAL = os.environ.get('GRAPHGPS_DIR')
CHECKOUTS = {'standin': STANDIN, **({'GRAPHGPS_DIR': Path(REAL)} if REAL else {})}
CHANNELS, HEADS = 8, 2


@contextmanager
def imported(checkout: Path) -> Iterator[None]:
    """Has the graphgps of a checkout imported, and takes back all that its import registers."""
    registries = [value for name, value in vars(register).items() if name.endswith('_dict')]
    before, saved = [dict(registry) for registry in registries], cfg.clone()
    sys.path.insert(0, str(checkout))
    try:
        importlib.import_module('graphgps')
        yield
    finally:
        sys.path.remove(str(checkout))
        for name in [name for name in sys.modules if name.partition('.')[0] == 'graphgps']:
            del sys.modules[name]
        for registry, entries in zip(registries, before, strict=True):
            registry.clear()
            registry.update(entries)
        cfg.clear()
        cfg.update(saved)


def path(num_nodes: int, seed: int) -> Data:
    """A path, which is a grid and a forest as well, with all that some attention or local layer reads."""
    torch.manual_seed(seed)
    forwards = torch.stack([torch.arange(num_nodes - 1), torch.arange(1, num_nodes)])
    return Data(
        x=torch.randn(num_nodes, CHANNELS),
        edge_index=torch.cat([forwards, forwards.flip(0)], dim=1),
        edge_attr=torch.randn(2 * num_nodes - 2, CHANNELS),
        grid_shape=torch.tensor([[num_nodes, 1]]),
        mask_left=torch.rand(num_nodes, 2),
        mask_right=torch.rand(num_nodes, 2),
        pe_EquivStableLapPE=torch.randn(num_nodes, 4),
        y=torch.tensor([seed % 2]),
    )


def batch_of_paths() -> Batch:
    return Batch.from_data_list([path(5, 0), path(1, 1), path(3, 2)])


def make(graphgps: SimpleNamespace, local: str, name: str, **kwargs: Any) -> Any:
    options = {'pna_degrees': [0, 4, 4], 'bigbird_cfg': None, **kwargs}
    torch.manual_seed(0)
    return graphgps.module.GPSLayer(CHANNELS, local, name, HEADS, **options)
