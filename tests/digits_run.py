"""Fixtures of small runs on the digits, for tests of training and of what GraphGym registers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pyg_topomask.apps.datasets import images as digits_module

CONFIGS = Path(__file__).parents[1] / 'graphgps_configs'
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
    monkeypatch.setattr(digits_module, 'digit_images', lambda: (images[:200], labels[:200]))


@pytest.fixture
def configure() -> Callable[..., None]:
    """Loads the digits' configuration with overrides, given as one string."""
    from pyg_topomask.graphgym.configuration import load_config

    def load(options: str = '', cfg_file: Path = DIGITS) -> None:
        load_config(cfg_file, [*SMALL.split(), *options.split()])

    return load
