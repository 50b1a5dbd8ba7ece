from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip('yacs')

from graphgps_layers import CHECKOUTS, imported
from torch_geometric.graphgym.config import cfg, set_cfg

from pyg_topomask.apps.datasets import digits as digits_module
from pyg_topomask.graphgym.configuration import load_config

CONFIGS = Path(__file__).parents[2] / 'graphgps_configs'
DIGITS = CONFIGS / 'digits.yaml'

#: Makes the digits' run small enough for a test.
SMALL = """
gt.layers 1 gt.n_heads 2 gt.dim_hidden 8 gt.dropout 0.1 gnn.dim_inner 8 train.batch_size 256
optim.max_epoch 3 optim.num_warmup_epochs 0 topomask.progress False topomask.transforms ['AddGraphRandomFeatures']
"""


@pytest.fixture
def small() -> list[str]:
    return SMALL.split()


@pytest.fixture
def digits() -> Path:
    return DIGITS


@pytest.fixture
def few_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    images, labels = digits_module.digit_images()
    monkeypatch.setattr(digits_module, 'digit_images', lambda: (images[:300], labels[:300]))


@pytest.fixture
def configure() -> Callable[..., None]:
    """Loads the digits' configuration with overrides, given as one string."""

    def load(options: str = '', cfg_file: Path = DIGITS) -> None:
        load_config(cfg_file, [*SMALL.split(), *options.split()])

    return load


@pytest.fixture(scope='module', params=CHECKOUTS.values(), ids=CHECKOUTS.keys())
def imported_graphgps(request: pytest.FixtureRequest) -> Iterator[SimpleNamespace]:
    with imported(request.param):
        layer = importlib.import_module('graphgps.layer.gps_layer').GPSLayer
        fork = sys.modules.get('graphgps.layer.multi_model_layer')
        set_cfg(cfg)
        yield SimpleNamespace(theirs=layer, module=sys.modules['graphgps.network.gps_model'], fork=fork, folder=request.param)


@pytest.fixture
def graphgps(imported_graphgps: SimpleNamespace) -> SimpleNamespace:
    """A GraphGPS with the default options and a mask for the attention Masked."""
    set_cfg(cfg)
    cfg.topomask.mask.update({'GRF': {'num_walks': 2}})
    return imported_graphgps
