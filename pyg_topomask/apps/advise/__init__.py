r"""Advice on whether a mask helps on a data set, from trainings with and without masks."""

from __future__ import annotations

from pyg_topomask.apps.advise.advise import advise

__all__ = ['advise']
