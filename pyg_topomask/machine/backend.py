r"""The lookup of kernels: which function has machine code on which device."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import torch


def kernel(name: str, device: torch.device) -> Any:
    r"""Returns a kernel, named by its file in this folder and its function, as in :obj:`"topk.search"`, or :obj:`None` if there
    is no machine code on the device, and the plain version computes.
    """
    return _loaded(name) if uses_numba(device) else None


@torch.compiler.disable  # torch.compile would read the kernels as Python
def call_kernel(name: str, device: torch.device, *arguments: Any) -> Any:
    r"""Calls a kernel outside of what torch.compile traces."""
    return kernel(name, device)(*arguments)


@cache
def _loaded(name: str) -> Callable[..., Any]:
    # When it is first called for: Numba takes longer to import than this package.
    file, function = name.split('.')
    return getattr(import_module(f'pyg_topomask.machine.{file}'), function)


def uses_numba(device: torch.device) -> bool:
    r"""Returns whether to use compiled code: on a CPU, if Numba is installed and supports the installed NumPy."""
    if device.type != 'cpu' or not has_numba():
        return False
    if not torch.compiler.is_compiling():  # which would read it as Python
        _announce_compilation()
    return True


def has_numba() -> bool:
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


@cache
def _announce_compilation() -> None:
    r"""Has a line printed when Numba compiles code of this package. Code that an earlier process compiled is only loaded."""
    from numba.core import event

    class Announcement(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            if event.data['dispatcher'].py_func.__module__.startswith('pyg_topomask.'):
                _print_once('Numba compiles code of pyg_topomask; this takes some seconds, and the result is kept')

        def on_end(self, event: Any) -> None:
            pass

    event.register('numba:compile', Announcement())


@cache
def _print_once(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
