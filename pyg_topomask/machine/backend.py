r"""The lookup of kernels: which function has machine code on which device."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import torch

# The file of this folder that holds each kernel.
_KERNELS = {
    'attend_entries': 'entries',
    'attend_entries_backward': 'entries',
    'attend_softmax': 'entries',
    'attend_softmax_backward': 'entries',
    'attend_prepared_blocks': 'blocks',
    'attend_prepared_blocks_backward': 'blocks',
    'attend_low_rank_batch': 'low_rank',
    'attend_low_rank_batch_backward': 'low_rank',
    'attend_polynomial': 'polynomial',
    'attend_polynomial_backward': 'polynomial',
    'polynomial_action': 'polynomial',
    'polynomial_action_backward': 'polynomial',
    'polynomial_blocks': 'polynomial',
    'attend_tree': 'tree',
    'attend_tree_backward': 'tree',
    'tree_product': 'tree',
    'tree_product_backward': 'tree',
    'preorder': 'tree',
    'in_range': 'scaling',
    'search': 'topk',
    'walk': 'walk',
    'meet': 'pairs',
    'squares': 'pairs',
    'blocks_of_sums': 'pairs',
    'contracted': 'forest',
    'depths': 'forest',
    'forest_hops': 'forest',
    'rooted': 'forest',
    'counts_within': 'hops',
    'labelled_pairs': 'hops',
    'pairs_within': 'hops',
    'edges_fit': 'edges',
    'normalized_weight': 'edges',
    'edge_hashes': 'hashes',
    'pattern_of_pairs': 'patterns',
    'patterns_of_visits': 'patterns',
    'power_loads': 'powers',
    'spectral_bound': 'powers',
}


def kernel(name: str, device: torch.device) -> Any:
    r"""Returns a kernel by name, or :obj:`None` if there is none on the device, and the plain version computes."""
    return _loaded(name) if uses_numba(device) else None


@cache
def _loaded(name: str) -> Callable[..., Any]:
    # When it is first called for: Numba takes longer to import than this package.
    return getattr(import_module(f'pyg_topomask.machine.{_KERNELS[name]}'), name)


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
