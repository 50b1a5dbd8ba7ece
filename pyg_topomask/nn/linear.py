r"""Linear layers."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn.dense import Linear as LazyLinear


def linear(in_channels: int, out_channels: int, bias: bool = True) -> Module:
    r"""Returns a :class:`torch.nn.Linear`, which libraries of adapters (LoRA) and of quantization look for, or PyG's layer for
    :obj:`-1` input channels, which the first call infers.
    """
    return (LazyLinear if in_channels == -1 else torch.nn.Linear)(in_channels, out_channels, bias)


def input_of(lin: Module) -> tuple[int, torch.dtype]:
    r"""Returns the input channels of a linear layer, :obj:`-1` before they are inferred, and the data type of its input. An
    adapter or a quantized layer may stand in its place.
    """
    channels = lin.in_channels if isinstance(lin, LazyLinear) else lin.in_features
    # A quantized layer has a method of this name, and takes float32.
    weight = lin.weight
    return int(channels), weight.dtype if isinstance(weight, Tensor) else torch.float32  # type: ignore[arg-type]
