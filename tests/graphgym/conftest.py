from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

pytest.importorskip('yacs')

from digits_run import configure, digits, few_digits, small  # noqa: F401
from graphgps_layers import CHECKOUTS, imported
from torch_geometric.graphgym.config import cfg, set_cfg


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
