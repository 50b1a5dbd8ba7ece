r"""Masks of random walks."""

from __future__ import annotations

from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.utils.checks import check_choice
from pyg_topomask.walks import WalkSettings


class WalkingMask(Mask):
    r"""A mask that samples walks, once or in every forward pass of training."""

    walk_settings: WalkSettings
    resample: str
    learns_weights = False  # type: ignore[assignment]

    def _walk(self, settings: WalkSettings, resample: str) -> None:
        check_choice(('never', 'forward'), resample=resample)
        self.walk_settings = settings
        self.resample = resample

    @property
    def flow(self) -> str:
        r"""The direction of attention along edges."""
        return self.walk_settings.flow

    @property
    def fresh(self) -> bool:
        return self.resample == 'forward' and self.training

    @property
    def weighted(self) -> bool:  # type: ignore[override]
        return self.walk_settings.weighted
