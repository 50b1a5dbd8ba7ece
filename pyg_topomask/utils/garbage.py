r"""Garbage collection that passes over what libraries hold: hundreds of thousands of objects that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    r"""A block of imports, in which nothing is collected, and whose objects no later collection looks through."""
    enabled, first = gc.isenabled(), gc.get_freeze_count() == 0
    gc.disable()
    try:
        yield
    finally:
        if first:  # later, there may be garbage
            gc.freeze()
        if enabled:
            gc.enable()


@contextmanager
def frozen() -> Iterator[None]:
    r"""A block in which no collection looks through the objects that were there before."""
    first = gc.get_freeze_count() == 0
    if first:
        gc.freeze()
    try:
        yield
    finally:
        if first:
            gc.unfreeze()
