r"""The masks that the diagnostics of graph random features accept."""

from __future__ import annotations

from pyg_topomask.errors import ArgumentError
from pyg_topomask.masks import GRFMask


def check_grf_mask(mask: GRFMask, estimates: bool = True) -> None:
    r"""Raises an error unless the mask is a :class:`~pyg_topomask.masks.GRFMask`. If :obj:`estimates` is set to :obj:`True`, it
    also rejects features that count visits, because they do not estimate a function of the adjacency matrix. Stitched masks are
    rejected, because the paper's bounds are those of one walk.
    """
    if not isinstance(mask, GRFMask):
        raise ArgumentError('mask', type(mask).__name__, 'a GRFMask', verb='is')
    if mask.stitch > 1:
        raise ArgumentError('mask', f'stitch={mask.stitch}, whose walks are chains', 'masks with stitch=1')
    if estimates and not mask.walk_settings.importance:
        raise ArgumentError('mask', 'importance=False, which counts visits', 'masks with importance=True')
