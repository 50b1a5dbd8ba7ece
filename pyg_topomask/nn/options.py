r"""The types of keyword arguments of layers that create their mask, for type checkers and editors. At runtime, signatures show
them with their defaults.
"""

from __future__ import annotations

from typing import TypedDict

from pyg_topomask.feature_maps.feature_map import FeatureMap
from pyg_topomask.masks.options import (
    AsymmetricGRFOptions,
    GRFOptions,
    HopOptions,
    PositiveGRFOptions,
    RWGNKOptions,
    SinDegreeOptions,
    ToeplitzOptions,
)


class _Projections(TypedDict, total=False):
    dropout: float
    bias: bool
    out_channels: int | None


class _Linear(_Projections, total=False):
    route: str
    sums: bool


class _LinearWithFeatures(_Linear, total=False):
    feature_map: str | FeatureMap


class GRFAttentionOptions(GRFOptions, _LinearWithFeatures, total=False):
    r"""Options of a :class:`~pyg_topomask.nn.GRFAttention`."""


class HopAttentionOptions(HopOptions, _LinearWithFeatures, total=False):
    r"""Options of a :class:`~pyg_topomask.nn.HopAttention`."""


class RWGNKAttentionOptions(RWGNKOptions, _LinearWithFeatures, total=False):
    r"""Options of a :class:`~pyg_topomask.nn.RWGNKAttention`."""


class SinDegreeAttentionOptions(SinDegreeOptions, _Linear, total=False):
    r"""Options of a :class:`~pyg_topomask.nn.SinDegreeAttention` but its feature map."""


class ToeplitzAttentionOptions(ToeplitzOptions, _LinearWithFeatures, total=False):
    r"""Options of a :class:`~pyg_topomask.nn.ToeplitzAttention` but the number of dimensions."""


class GRFSoftmaxAttentionOptions(PositiveGRFOptions, _Projections, total=False):
    r"""Options of a :class:`~pyg_topomask.nn.GRFSoftmaxAttention`."""

    attention_dropout: float
    edge_dim: int | None


class AsymmetricGRFAttentionOptions(AsymmetricGRFOptions, _Projections, total=False):
    r"""Options of an :class:`~pyg_topomask.nn.AsymmetricGRFAttention` but its feature map."""
