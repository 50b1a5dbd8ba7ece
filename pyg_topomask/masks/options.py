r"""The types of keyword arguments that layers, masks and transforms hand on, for type checkers and editors. At runtime,
signatures show them with their defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from torch import Tensor

from pyg_topomask.walks.settings import WalkLength


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


class _Sampling(TypedDict, total=False):
    p_halt: float
    max_walk_length: int
    resample: str


class _Modulation(_Sampling, total=False):
    num_walks: int
    seed: int
    modulation: Tensor | str | None
    share_modulation: bool


class AsymmetricGRFOptions(_Modulation, VisitOptions, total=False):
    r"""Options of a :class:`~pyg_topomask.masks.GRFMask` with :obj:`asymmetric=True`."""

    positive: bool | None


class PositiveGRFOptions(_Modulation, FeatureWalkOptions, total=False):
    r"""Options of a :class:`~pyg_topomask.masks.GRFMask` with :obj:`positive=True`."""

    asymmetric: bool | str


class GRFOptions(PositiveGRFOptions, total=False):
    r"""Options of a :class:`~pyg_topomask.masks.GRFMask`."""

    positive: bool | None
    stitch: int


class UnseededRWGNKOptions(_Sampling, KernelWalkOptions, total=False):
    r"""Options of a :class:`~pyg_topomask.masks.RWGNKMask` but its seed."""

    num_walks: int | None
    lam: Tensor | float
    alpha: float
    learnable: bool


class RWGNKOptions(UnseededRWGNKOptions, total=False):
    r"""Options of a :class:`~pyg_topomask.masks.RWGNKMask`."""

    seed: int


class HopOptions(TypedDict, total=False):
    r"""Options of a :class:`~pyg_topomask.masks.HopMask`."""

    max_hops: int
    f: Tensor | str
    learnable: bool
    positive: bool | None
    flow: str
    path_weights: str | None


class SinDegreeOptions(TypedDict, total=False):
    r"""Options of a :class:`~pyg_topomask.masks.SinDegreeMask`."""

    max_degree: int
    embedding_dim: int
    flow: str | None
    degree_attr: str | None


class ToeplitzOptions(TypedDict, total=False):
    r"""Options of a :class:`~pyg_topomask.masks.ToeplitzMask` but the number of dimensions."""

    kind: str
    window: int | Sequence[int]
    beyond: str
    periodic: bool
    initial: Tensor | str | None
    positive: bool
    causal: int | None
