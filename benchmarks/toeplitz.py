r"""Toeplitz masks on a grid against the dense mask and against bare Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from benchmarks.harness import interleaved_medians, write_table
from pyg_topomask.masks.toeplitz import ToeplitzMask
from pyg_topomask.transforms.geometry import AddGridShape

__all__ = ['run']

# Heads and columns a head: one vector a head, and value channels with the denominator.
BLOCKS = ((1, 1), (1, 17), (4, 17), (1, 65))


def run(quick: bool, folder: Path) -> None:
    rows: list[dict[str, Any]] = []
    for shape in ((16, 16),) if quick else ((32, 32), (64, 64), (64, 65), (8, 24, 24)):
        for window in (4, max(shape) - 1):
            for heads, columns in BLOCKS[:2] if quick else BLOCKS:
                rows.append(_measure(shape, window, heads, columns, 3 if quick else 9))
    if not quick:
        rows += [_measure((128, 128), window, 1, 17, 5) for window in (4, 127)]
        # Where the dense matrix would not fit.
        rows += [_measure(shape, 512, 1, 17, 5, dense=False) for shape in ((256, 256), (512, 512))]
    note = (
        'Products M x on one grid in float32, with one table of signed offsets per head, for x of "columns" columns per head. '
        'The window of 4 is zero beyond. It has 81 offsets in two dimensions, which are summed without transforms, and 729 in '
        'three. The other window has every offset. "dense" multiplies by the given dense mask. "two FFTs" is only '
        f'torch.fft.rfftn and irfftn of the contiguous columns, on the grid padded to twice its '
        f'size.{"" if quick else _judge(rows)}'
    )
    write_table('toeplitz', 'Toeplitz masks by Fourier transform', note, rows, folder)


def _judge(rows: list[dict[str, Any]]) -> str:
    r"""Says how far the targets are reached on a grid of 64 x 64."""
    measured = [row for row in rows if row['grid'] == '64x64']
    gains, bare = ([row['dense ms'] / row[key] for row in measured] for key in ('ms', 'two FFTs ms'))
    fast, fast_bare, near = (sum(reached) for reached in zip(*map(_reached, measured), strict=True))
    return (
        f' One target at 64x64 is 20 times the speed of "dense". It is reached in {fast} of {len(measured)} rows (at most '
        f'{max(gains):.3g}), and by the two transforms alone in {fast_bare} (at most {max(bare):.3g}). The other is at most '
        f'twice the time of the two transforms, and is reached in {near} rows.'
    )


def _reached(row: dict[str, Any]) -> tuple[bool, bool, bool]:
    return row['dense / ours'] >= 20, row['dense ms'] >= 20 * row['two FFTs ms'], row['ours / two FFTs'] <= 2


@torch.no_grad()
def _measure(shape: tuple[int, ...], window: int, heads: int, columns: int, repeats: int, dense: bool = True) -> dict[str, Any]:
    size = math.prod(shape)
    mask = ToeplitzMask(heads, len(shape), window=window, beyond='zero')
    mask.table.uniform_()
    operator = mask(AddGridShape(shape)(Data(num_nodes=size)))
    x = torch.randn(size, heads, columns)
    grid, padded = torch.randn(heads, columns, *shape), tuple(2 * side for side in shape)
    axes = tuple(range(-len(shape), 0))

    def ours() -> object:
        return operator.matmul(x)

    def transforms() -> object:
        return torch.fft.irfftn(torch.fft.rfftn(grid, s=padded, dim=axes), s=padded, dim=axes)

    functions: dict[str, Callable[[], object]] = {'two FFTs': transforms, 'ToeplitzMask': ours}
    if dense:
        matrix, block = operator.to_dense().contiguous(), x.transpose(0, 1).contiguous()
        functions['dense'] = lambda: torch.matmul(matrix, block)
    seconds = interleaved_medians(functions, repeats)
    ours_seconds = seconds['ToeplitzMask']
    return {
        'grid': 'x'.join(map(str, shape)),
        'window': window,
        'heads': heads,
        'columns': columns,
        'ms': ours_seconds * 1e3,
        'dense ms': seconds.get('dense', math.nan) * 1e3,
        'two FFTs ms': seconds['two FFTs'] * 1e3,
        'dense / ours': seconds.get('dense', math.nan) / ours_seconds,
        'ours / two FFTs': ours_seconds / seconds['two FFTs'],
    }
