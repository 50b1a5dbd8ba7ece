from __future__ import annotations

import math

import pytest
from digits_run import configure, digits, few_digits, small  # noqa: F401


@pytest.fixture(autouse=True)
def checkpoint_after_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in a checkpoint does not depend on how fast this machine is."""
    monkeypatch.setattr('pyg_topomask.apps.runs.run.SHARE', math.inf)
