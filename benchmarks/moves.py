r"""How many files one forward pass enters, and how often it moves between them: :obj:`python -m benchmarks.moves [--hops]`.

A reader who follows the pass with a debugger opens these files. A move is a call or a return that changes the file, among the
files of one package: calls of torch count as part of the file that makes them.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
import torch_geometric
from torch_geometric.nn import GATConv, GCNConv, GPSConv

import pyg_topomask
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.nn import GRFAttention

__all__ = ['Moves', 'count_moves', 'main']

#: A caller and what it calls in another file.
Hop = tuple[CodeType | None, CodeType]


class Moves:
    r"""The files that a call enters, the moves between them, and the calls that make them.

    Args:
        folder (Path): The folder of the package whose files count.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: set[str] = set()
        self.moves = 0
        self.hops: Counter[Hop] = Counter()
        self._stack: list[CodeType] = []

    def watch(self, frame: FrameType, event: str, _: Any) -> None:
        r"""The function for :func:`sys.setprofile`."""
        code = frame.f_code
        if event not in ('call', 'return') or not Path(code.co_filename).is_relative_to(self.folder):
            return
        if event == 'return':
            if self._stack:  # the first return is that of the counter itself
                self._stack.pop()
                self.moves += bool(self._stack) and self._stack[-1].co_filename != code.co_filename
            return
        caller = self._stack[-1] if self._stack else None
        self._stack.append(code)
        self.files.add(code.co_filename)
        if caller is None or caller.co_filename != code.co_filename:
            self.moves += 1
            self.hops[caller, code] += 1

    def described_hops(self) -> list[str]:
        r"""Returns a line for each hop: how often, from where, to where, and what the callee says it is for."""
        return [
            f'{count:4} {self._place(caller)} -> {self._place(callee)}: {_purpose(callee)}'
            for (caller, callee), count in self.hops.most_common()
        ]

    def _place(self, code: CodeType | None) -> str:
        return 'user' if code is None else f'{Path(code.co_filename).relative_to(self.folder)}:{code.co_name}'


def count_moves(call: Callable[[], object], package: Any = pyg_topomask) -> Moves:
    r"""Returns the moves of a call, the second one, after which nothing is left to compile.

    Args:
        call (callable): The call.
        package (module): The package whose files count. (default: :obj:`pyg_topomask`)
    """
    call()
    counted = Moves(Path(package.__file__).parent)
    sys.setprofile(counted.watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return counted


def main() -> None:
    r"""Prints the files and moves of a layer of ours and of two layers of PyG."""
    parser = argparse.ArgumentParser(prog='python -m benchmarks.moves', description=main.__doc__)
    parser.add_argument('--hops', action='store_true', help='also list the calls of the first row that change the file')
    hops = parser.parse_args().hops
    x, edge_index = torch.randn(100, 64), torch.randint(100, (2, 400))
    attention, graph = GRFAttention(64, heads=4), Graph.from_tensors(edge_index, num_nodes=100)
    gat, gps = GATConv(64, 16, heads=4), GPSConv(64, GCNConv(64, 64), heads=4, attn_type='performer')
    rows = {
        'GRFAttention on a prepared graph': count_moves(lambda: attention(x, graph=graph)),
        'GRFAttention on new edges': count_moves(lambda: attention(x, edge_index)),
        "PyG's GATConv": count_moves(lambda: gat(x, edge_index), torch_geometric),
        "PyG's GPSConv with Performer": count_moves(lambda: gps(x, edge_index), torch_geometric),
    }
    for name, counted in rows.items():
        print(f'{name}: {len(counted.files)} files, {counted.moves} moves')
    if hops:
        print(*next(iter(rows.values())).described_hops(), sep='\n')


def _purpose(code: CodeType) -> str:
    text = code.co_consts[0] if code.co_consts and isinstance(code.co_consts[0], str) else ''
    return ' '.join(text.split()).partition('. ')[0]


if __name__ == '__main__':
    main()
