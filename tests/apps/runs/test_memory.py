r"""Memory that a block keeps, and gives back at its end."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
import torch

from pyg_topomask.apps.runs.memory import keeping_memory

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != 'glibc', reason='of the allocator of glibc')


def resident() -> int:
    pages = int(Path('/proc/self/statm').read_text().split()[1])
    return pages * 4096


def made_and_freed() -> int:
    before = resident()
    torch.ones(2**25)
    return resident() - before


def test_freed_memory_is_kept_until_the_block_ends() -> None:
    before = resident()
    assert made_and_freed() < 2**20
    with keeping_memory():
        assert made_and_freed() > 2**26
        assert made_and_freed() < 2**20  # nothing new
    assert resident() - before < 2**24
    assert made_and_freed() < 2**20
