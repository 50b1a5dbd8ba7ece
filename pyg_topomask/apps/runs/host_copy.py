r"""Numbers of a device that the host reads later."""

from __future__ import annotations

import torch
from torch import Tensor


class HostCopy:
    r"""Copies of tensors in the memory of the host. A CUDA device makes them while the host goes on, until it reads them."""

    def __init__(self, *tensors: Tensor) -> None:
        self._copies = [tensor.detach().to('cpu', non_blocking=tensor.is_cuda) for tensor in tensors]
        self._made = torch.cuda.Event() if any(tensor.is_cuda for tensor in tensors) else None
        if self._made is not None:
            self._made.record()

    def read(self) -> list[Tensor]:
        r"""Returns the copies. Waits for what the device computed before them, not for what came after."""
        if self._made is not None:
            self._made.synchronize()
        return self._copies
