r"""The types of keyword arguments that describe walks, for type checkers and editors. At runtime, signatures show them with
their defaults.
"""

from __future__ import annotations

from typing import TypedDict

from pyg_topomask.walks.lengths import WalkLength


class WalkOptions(TypedDict, total=False):
    r"""How walks go."""

    sampler: str
    transition: str
    walk_length: WalkLength | str | None
    flow: str


class VisitOptions(WalkOptions, total=False):
    r"""How walks go, and what their visits weigh."""

    normalization: str | None
    importance: bool


class KernelWalkOptions(WalkOptions, total=False):
    r"""The options of walks of the random walks graph-nodes kernel."""

    independent_ensembles: bool


class FeatureWalkOptions(VisitOptions, total=False):
    r"""The options of walks of graph random features."""

    independent_ensembles: bool
