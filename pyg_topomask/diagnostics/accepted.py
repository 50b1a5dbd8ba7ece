r"""What the diagnostics of graph random features accept."""

from __future__ import annotations

from pyg_topomask.masks import GRFMask

__all__ = ['check_estimates', 'check_walks']


def check_walks(mask: GRFMask) -> None:
    if not isinstance(mask, GRFMask):
        raise ValueError(f'mask: got {type(mask).__name__}; accepted is a GRFMask')


def check_estimates(mask: GRFMask) -> None:
    check_walks(mask)
    if not mask.walk_settings.importance:
        raise ValueError(
            'mask: got importance=False, which counts visits and estimates no function of the adjacency matrix; accepted are '
            'masks with importance=True'
        )
