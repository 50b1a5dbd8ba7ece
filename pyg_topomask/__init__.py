r"""Topological masks for linear attention, for PyTorch Geometric and GraphGPS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyg_topomask.graphs.graph import Graph

__version__ = '0.1.0'

__all__ = ['Graph', '__version__']


def __getattr__(name: str) -> Any:
    # The command line prints its help without waiting for torch.
    if name == 'Graph':
        from pyg_topomask.graphs.graph import Graph

        return Graph
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
