from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip('yacs')

from pyg_topomask.datasets import digits as digits_module
from pyg_topomask.graphgym.settings import load_config

CONFIGS = Path(__file__).parents[2] / 'graphgps_configs'
DIGITS = CONFIGS / 'digits-GPS+GRF.yaml'

#: Makes the digits' run small enough for a test.
SMALL = """
gt.layers 1 gt.n_heads 2 gt.dim_hidden 8 gt.dropout 0.1 gnn.dim_inner 8 train.batch_size 256
optim.max_epoch 3 optim.num_warmup_epochs 0 topomask.progress False
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
