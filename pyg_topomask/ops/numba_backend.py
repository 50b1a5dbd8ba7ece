r"""The choice between tensors and machine code by Numba."""

from __future__ import annotations

import torch

__all__ = ['BACKENDS', 'uses_numba']

BACKENDS = ('auto', 'torch', 'numba')


def uses_numba(backend: str, device: torch.device) -> bool:
    r"""Returns whether machine code serves: for :obj:`"auto"` on a CPU where Numba works.

    Args:
        backend (str): :obj:`"auto"`, :obj:`"torch"` or :obj:`"numba"`.
        device (torch.device): Where to compute.

    Raises:
        ValueError: If the backend is unknown or does not serve the device.
        ImportError: If :obj:`backend="numba"` and Numba is not installed, or not made for the NumPy that is.
    """
    if backend not in BACKENDS:
        raise ValueError(f'backend: got {backend!r}; accepted are {list(BACKENDS)}')
    if backend == 'numba' and device.type != 'cpu':
        raise ValueError(f'backend: got "numba" on {device}; accepted is "torch"')
    if backend == 'torch' or device.type != 'cpu':
        return False
    try:
        import numba  # noqa: F401
    except ImportError as error:
        if backend == 'auto':
            return False
        raise ImportError(f'backend="numba" needs Numba: install pyg_topomask with its extra [numba] ({error})') from error
    return True
