r"""Garbage collection that passes over what libraries hold: hundreds of thousands of objects that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Whether objects are set apart, here or by the caller. Python would count them one by one, for a fifth of a second.
_apart = False


def _set_apart() -> bool:
    r"""Sets all living objects apart, unless some are already, and returns whether it did."""
    global _apart
    if _apart:
        return False
    _apart = True
    if gc.get_freeze_count() > 0:
        return False
    gc.freeze()
    return True


@contextmanager
def importing() -> Iterator[None]:
    r"""A block of imports, in which nothing is collected, and whose objects no later collection looks through."""
    enabled, clean = gc.isenabled(), not _apart  # later, there may be garbage
    gc.disable()
    try:
        yield
    finally:
        if clean:
            _set_apart()
        if enabled:
            gc.enable()


@contextmanager
def frozen() -> Iterator[None]:
    r"""A block in which no collection looks through the objects that were there before."""
    global _apart
    first = _set_apart()
    try:
        yield
    finally:
        if first:
            gc.unfreeze()
            _apart = False
