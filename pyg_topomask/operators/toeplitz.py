r"""Products with d-level block-Toeplitz matrices, by fast Fourier transforms, or directly for few offsets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import scipy
import torch
import torch.nn.functional as F
from torch import Tensor

from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.forms import Slots
from pyg_topomask.utils.functorch import LoopedFunction, gradients
from pyg_topomask.utils.precision import widened

# The number of values to transform at a time on a CPU, so that a chunk stays in cache.
_CHUNK = 300_000
# The largest number of nonzero offsets for direct sums on a CPU, and the data types in which these are faster.
_DIRECT, _DIRECT_TYPES = 128, (torch.float32,)


@dataclass(eq=False, repr=False)
class Toeplitz(MaskOperator):
    r""":math:`M_{ij} = \xi(\mathbf{p}_i - \mathbf{p}_j)` for nodes at the positions :math:`\mathbf{p}` of a grid.

    Args:
        table (torch.Tensor): :math:`\xi` at the offsets from :math:`-w` to :math:`w` in each dimension,
            :obj:`[H, 2 w_1 + 1, ..., 2 w_d + 1]`, from 0 in the dimension :obj:`causal`, or at distances, :obj:`[H, w + 1]`.
        slot (torch.Tensor): The entry of the concatenated grids that holds each node, :obj:`[N]`.
        grids (tuple of torch.Tensor): For each shape of grid the nodes of its grids, :obj:`[graphs, *shape]`.
        kind (str): :obj:`"offset"` or :obj:`"distance"`.
        beyond (str): :math:`\xi` beyond the table: :obj:`"clip"` for its last entry, or :obj:`"zero"`.
        periodic (bool): Whether the grids are periodic.
        causal (int, optional): The dimension whose negative offsets have entries 0. (default: :obj:`None`)
        transposed (bool): Multiply by the transpose. (default: :obj:`False`)
    """

    table: Tensor
    slot: Tensor
    grids: tuple[Tensor, ...]
    kind: str
    beyond: str
    periodic: bool
    causal: int | None = None
    transposed: bool = False

    def apply(self, x: Tensor) -> Tensor:
        return self._on_grids(self.table, x, noise=False)

    def magnitude(self, x: Tensor) -> Tensor:
        return self._on_grids(self.table.abs(), x, noise=True)

    @property
    def T(self) -> MaskOperator:
        return replace(self, transposed=not self.transposed)

    def rows(self, slots: Slots, dtype: torch.dtype) -> Tensor:
        table, parts = self.table.to(dtype), []
        for nodes in self.grids:
            shape = nodes.shape[1:]
            rows = slots.range.clamp(max=math.prod(shape) - 1)
            entries = self.pairs(table, shape, rows).permute(2, 0, 1)
            parts.append(entries.expand(nodes.size(0), *entries.shape).flatten(0, 1))
        if len(parts) == 1:
            return parts[0]
        return torch.cat(parts).index_select(0, self.slot) if parts else table.new_zeros(0, self.heads, slots.range.numel())

    def pairs(self, table: Tensor, shape: Sequence[int], rows: Tensor | None = None) -> Tensor:
        r"""Returns the entries of pairs of points of a grid, by default all, :obj:`[H, rows, n]`."""
        offsets = [torch.arange(1 - size, size, device=table.device) for size in shape]
        # The place of a pair in the kernel is a difference of numbers of its points.
        place, stride = torch.zeros(1, dtype=torch.long, device=table.device), 1
        for size in reversed(shape):
            place = (torch.arange(size, device=table.device).unsqueeze(1) * stride + place).flatten()
            stride *= 2 * size - 1
        if self.periodic:
            offsets = [(each + size // 2) % size - size // 2 for each, size in zip(offsets, shape, strict=True)]
        some = place if rows is None else place[rows]
        difference = some.unsqueeze(1) - place
        entry = place[-1] + (-difference if self.transposed else difference)
        return self._kernel(table, offsets).flatten(1).index_select(1, entry.flatten()).view(-1, *entry.shape)

    def transform_sizes(self, table: Tensor, shape: Sequence[int]) -> list[int]:
        r"""Returns the size of the Fourier transform along each dimension of a grid: the size of a periodic grid, and otherwise
        a size with room for all nonzero offsets.
        """
        if self.periodic:
            return list(shape)
        return _with_room(shape, self._reach(table, shape))

    def _reach(self, table: Tensor, shape: Sequence[int]) -> list[int]:
        r"""Returns the largest nonzero offset along each dimension of a grid."""
        if self.beyond == 'clip':
            return [size - 1 for size in shape]
        return [min(size - 1, self._window(table, axis)) for axis, size in enumerate(shape)]

    def _window(self, table: Tensor, axis: int) -> int:
        r"""Returns the largest offset of a table along a dimension."""
        if self.kind == 'distance':
            return table.size(1) - 1
        return table.size(axis + 1) - 1 if axis == self.causal else table.size(axis + 1) // 2

    def _direct(self, table: Tensor, shape: Sequence[int]) -> list[int] | None:
        r"""Returns :meth:`_reach` if a sum over all offsets is faster than transforms."""
        if self.periodic or len(shape) > 3 or table.dtype not in _DIRECT_TYPES or table.device.type != 'cpu':
            return None
        reach = self._reach(table, shape)
        return reach if math.prod(2 * radius + 1 for radius in reach) <= _DIRECT else None

    def _on_grids(self, table: Tensor, x: Tensor, noise: bool) -> Tensor:
        grids = self.grids
        work = widened(x)
        table, products = table.to(work.dtype), []
        if not grids:  # a batch without graphs
            return torch.zeros_like(x)
        for nodes in grids:
            # If all grids have the same shape, they are in the order of the nodes.
            rows = work if len(grids) == 1 else work.index_select(0, nodes.flatten())
            grid = rows.reshape(*nodes.shape, *x.shape[1:])
            reach = self._direct(table, nodes.shape[1:])
            if reach is not None:
                kernel = self._kernel(table, [torch.arange(-radius, radius + 1, device=table.device) for radius in reach])
                product: Tensor = _Sum.apply(kernel, grid, self.transposed)
            else:
                sizes = self.transform_sizes(table, nodes.shape[1:])
                kernel = self._kernel(table, [_offsets(size, table.device) for size in sizes])
                product = _Convolution.apply(kernel, grid, self.transposed)
                if noise:
                    product = product.clamp(min=0.0) + _noise(kernel, grid)
            products.append(product.reshape(rows.shape))
        out = torch.cat(products).index_select(0, self.slot) if len(products) != 1 else products[0]
        return out.to(x.dtype)

    def _kernel(self, table: Tensor, offsets: Sequence[Tensor]) -> Tensor:
        r"""Returns :math:`\xi` at the given offsets along each dimension, :obj:`[H, *sizes]`."""
        if self.kind == 'distance':
            distance = torch.zeros((), dtype=torch.long, device=table.device)
            for axis, offset in enumerate(offsets):
                distance = distance + offset.abs().view(-1, *[1] * (len(offsets) - 1 - axis))
            table = self._padded(table, (0, 1))
            entry = distance.clamp(max=table.size(1) - 1)
            table = table.index_select(1, entry.flatten()).view(-1, *entry.shape)
        else:
            ends = ((0, 1) if axis == self.causal else (1, 1) for axis in reversed(range(len(offsets))))
            table = self._padded(table, [each for pair in ends for each in pair])
            for axis, offset in enumerate(offsets):
                window = self._window(table, axis)
                least = 0 if axis == self.causal else -window
                table = table.index_select(axis + 1, offset.clamp(least, window) - least)
        if self.causal is not None:
            later = offsets[self.causal] < 0
            table = table.masked_fill(later.view(-1, *[1] * (len(offsets) - 1 - self.causal)), 0)
        return table

    def _padded(self, table: Tensor, ends: Sequence[int]) -> Tensor:
        # The last entries also apply beyond the window.
        return F.pad(table, ends) if self.beyond == 'zero' else table


def _convolve(kernel: Tensor, grid: Tensor, flip: bool) -> Tensor:
    spectrum, sizes, shape = _kernel_spectrum(kernel, flip), kernel.shape[1:], grid.shape[1:-2]
    return _join(
        [_inverse(_spectrum(chunk, sizes) * spectrum, sizes, shape) for chunk in row] for row in _split(grid, sizes)
    ).view(grid.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    kernel, grid, ctx.flip = inputs
    ctx.save_for_backward(kernel, grid)


class _Convolution(LoopedFunction):
    r"""Circular convolution of kernels :obj:`[H or 1, *sizes]` with grids :obj:`[graphs, *shape, H, c]` padded by zeros, or,
    if :obj:`flip`, with the kernels reversed. Only the inputs are kept for the backward pass.
    """

    @staticmethod
    def forward(kernel: Tensor, grid: Tensor, flip: bool) -> Tensor:
        return _convolve(kernel, grid, flip)

    setup_context = staticmethod(_keep)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        kernel, grid = ctx.saved_tensors
        sizes, shape = kernel.shape[1:], grid.shape[1:-2]
        if not ctx.needs_input_grad[0]:
            return None, _Convolution.apply(kernel, grads[0], not ctx.flip), None
        if torch.is_grad_enabled():
            return *gradients(partial(_convolve, flip=ctx.flip), grads, kernel, grid), None
        of_kernel, rows, total = _kernel_spectrum(kernel, not ctx.flip), [], torch.zeros(())
        for left, right in zip(_split(grid, sizes), _split(grads[0], sizes), strict=True):
            rows.append(list[Tensor]())
            for chunk, grad in zip(left, right, strict=True):
                spectrum, upstream = _spectrum(chunk, sizes), _spectrum(grad, sizes)
                rows[-1].append(_inverse(upstream * of_kernel, sizes, shape))
                total = total + _correlation(spectrum, upstream, ctx.flip)
        return _kernel_of(total, kernel, sizes), _join(rows).view(grid.shape), None


def _sum(kernel: Tensor, grid: Tensor, flip: bool) -> Tensor:
    heads, columns = grid.shape[-2:]
    if grid.numel() == 0:
        return grid.clone()
    # Torch sums by the offset of the neighbor from the node, which is the negative offset of the mask.
    kernel = kernel if flip else kernel.flip(tuple(range(1, kernel.dim())))
    kernel = kernel.expand(heads, *kernel.shape[1:]).repeat_interleave(columns, 0).unsqueeze(1)
    # Heads and columns are channels, contiguous in memory as for the nodes.
    channels = grid.flatten(-2).movedim(-1, 1)
    if kernel.dim() == 3:  # torch is slower in one dimension than in two
        kernel, channels = kernel.unsqueeze(2), channels.unsqueeze(2)
    convolve = F.conv2d if kernel.dim() == 4 else F.conv3d
    padding = [size // 2 for size in kernel.shape[2:]]
    out: Tensor = convolve(channels, kernel, padding=padding, groups=heads * columns)
    return out.movedim(1, -1).reshape(grid.shape)


class _Sum(LoopedFunction):
    r"""As :class:`_Convolution`, without a transform, for kernels at the offsets :math:`-r, ..., r` along each dimension,
    :obj:`[H or 1, 2 r_1 + 1, ...]`.
    """

    @staticmethod
    def forward(kernel: Tensor, grid: Tensor, flip: bool) -> Tensor:
        return _sum(kernel, grid, flip)

    setup_context = staticmethod(_keep)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        kernel, grid = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *gradients(partial(_sum, flip=ctx.flip), grads, kernel, grid), None
        grad_kernel, grad_grid = None, _Sum.apply(kernel, grads[0], not ctx.flip)
        if ctx.needs_input_grad[0]:
            reach = [size // 2 for size in kernel.shape[1:]]
            sizes, total = _with_room(grid.shape[1:-2], reach), torch.zeros(())
            for left, right in zip(_split(grid, sizes), _split(grads[0], sizes), strict=True):
                for chunk, grad in zip(left, right, strict=True):
                    total = total + _correlation(_spectrum(chunk, sizes), _spectrum(grad, sizes), ctx.flip)
            grad_kernel = _kernel_of(total, kernel, sizes)
            for axis, (size, radius) in enumerate(zip(sizes, reach, strict=True), start=1):
                grad_kernel = grad_kernel.index_select(axis, torch.arange(-radius, radius + 1, device=grid.device) % size)
        return grad_kernel, grad_grid, None


def _with_room(shape: Sequence[int], reach: Sequence[int]) -> list[int]:
    r"""Returns the sizes of transforms in which offsets up to :obj:`reach` do not wrap around."""
    return [scipy.fft.next_fast_len(size + radius, real=True) for size, radius in zip(shape, reach, strict=True)]


def _correlation(grid: Tensor, grad: Tensor, flip: bool) -> Tensor:
    r"""Returns the gradient of a kernel's spectrum from those of grid and gradient, :obj:`[H, *frequencies]`."""
    return (grad.conj_physical() * grid if flip else grid.conj_physical() * grad).sum((0, 2))


def _kernel_of(spectrum: Tensor, kernel: Tensor, sizes: Sequence[int]) -> Tensor:
    r"""Transforms back. The gradient of a shared kernel is the sum over heads."""
    spectrum = spectrum.sum(0, keepdim=True) if kernel.size(0) == 1 else spectrum
    return torch.fft.irfftn(spectrum, s=list(sizes), dim=tuple(range(1, kernel.dim())))


def _kernel_spectrum(kernel: Tensor, flip: bool) -> Tensor:
    spectrum: Tensor = torch.fft.rfftn(kernel, dim=tuple(range(1, kernel.dim()))).unsqueeze(1)
    return spectrum.conj_physical() if flip else spectrum


def _split(grid: Tensor, sizes: Sequence[int]) -> list[tuple[Tensor, ...]]:
    r"""Splits grids :obj:`[graphs, *shape, H, c]` by graphs and columns, so that a transform stays in cache."""
    numbers = grid.size(-2) * math.prod(sizes)
    return [_chunks(row, -1, numbers) for row in _chunks(grid, 0, numbers * grid.size(-1))]


def _join(rows: Iterable[list[Tensor]]) -> Tensor:
    return torch.cat([torch.cat(row, -1) for row in rows])


def _chunks(x: Tensor, axis: int, numbers: int) -> tuple[Tensor, ...]:
    r"""Splits a dimension on a CPU, given the number of values per index."""
    total = x.size(axis) * numbers if x.device.type == 'cpu' else 1
    return x.chunk(min(-(-total // _CHUNK), x.size(axis)), axis) if total > _CHUNK else (x,)


def _spectrum(grid: Tensor, sizes: Sequence[int]) -> Tensor:
    r"""Transforms grids :obj:`[graphs, *shape, H, c]` to :obj:`[graphs, H, c, *frequencies]`."""
    # One dimension at a time, so that rows of padding are never transformed.
    out: Tensor = torch.fft.rfft(grid.movedim((-2, -1), (1, 2)).contiguous(), n=sizes[-1])
    for axis in range(-2, -len(sizes) - 1, -1):
        out = torch.fft.fft(out, n=sizes[axis], dim=axis)
    return out


def _inverse(spectrum: Tensor, sizes: Sequence[int], shape: Sequence[int]) -> Tensor:
    r"""Transforms back, and removes the padding."""
    out: Tensor = spectrum
    for axis in range(-len(sizes), -1):
        out = torch.fft.ifft(out, dim=axis).narrow(axis, 0, shape[axis])
    out = torch.fft.irfft(out, n=sizes[-1]).narrow(-1, 0, shape[-1])
    return out.movedim((1, 2), (-2, -1))


def _noise(kernel: Tensor, grid: Tensor) -> Tensor:
    r"""Returns a bound on the rounding error of a convolution, which spreads over the whole transform. Takes grids
    :obj:`[graphs, *shape, H, c]` and returns :obj:`[graphs, 1, ..., H, c]`.
    """
    axes, entries = tuple(range(1, grid.dim() - 2)), kernel.flatten(1).unsqueeze(-1)
    norm: Tensor = torch.linalg.vector_norm(grid, dim=axes, keepdim=True)
    spread = entries.sum(1) * norm / math.sqrt(kernel[0].numel())
    return spread + entries.amax(1) * grid.amax(axes, keepdim=True)


def _offsets(size: int, device: torch.device) -> Tensor:
    r"""The offset of each position of a transform, from :math:`-\lfloor n / 2 \rfloor`."""
    half = size // 2
    return (torch.arange(size, device=device) + half) % size - half
