r"""The variants of a mask that a page offers: other kernels, fewer hops, more walks."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.masks import GRFMask, HopMask, Mask, PowerSeriesMask
from pyg_topomask.masks.base.kernels import named_series
from pyg_topomask.walks.samplers import SAMPLERS

# The most numbers of hops to choose from.
_HOPS = 5


@dataclass(frozen=True)
class Variants:
    r"""The variants of a mask, each a head of one mask."""

    #: The heads of the mask, and then the kernels, by name.
    series: list[str]
    #: How many of them are heads.
    heads: int
    #: The numbers of hops; one ``None`` if the mask has none to choose.
    hops: list[int | None]
    #: The numbers of walks; empty if the mask does not walk.
    walks: list[int]
    #: Returns the mask with one head for each series and number of hops, the hops running faster, for a number of walks.
    make: Callable[[int | None], Mask]

    @property
    def size(self) -> int:
        r"""The number of matrices that the variants are, exact ones and estimates."""
        return len(self.series) * len(self.hops) * (1 + len(self.walks))


def variants_of(mask: Mask, kernels: Sequence[str], num_walks: Sequence[int], most: int) -> Variants:
    r"""Returns the variants of a mask: for masks that are series of the symmetrically normalized adjacency matrix, the kernels
    that their hops hold, and for masks of walks, the given numbers of walks up to :obj:`most`, beside that of the mask itself.
    """
    if type(mask) is GRFMask and mask.walk_settings.importance and mask.stitch == 1:
        return _of_walks(mask, kernels, num_walks, most)
    if type(mask) is PowerSeriesMask:
        normalization, flow = mask.normalization, mask.flow

        def power_series(alpha: Tensor) -> Mask:
            return PowerSeriesMask(len(alpha), alpha.size(1) - 1, alpha, 'alpha', normalization, False, False, flow)

        named = _named(kernels, mask.order, 1) if normalization == 'sym' else {}
        return _of_series(mask.alpha, named, [], lambda series, _: power_series(series))
    if type(mask) is HopMask:
        flow = mask.flow
        return _of_series(mask.f, {}, [], lambda f, _: HopMask(len(f), f.size(1) - 1, f, False, False, flow))
    heads = [f'{head + 1}' for head in range(mask.heads)]
    return Variants(heads, len(heads), [None], [], lambda _: copy.deepcopy(mask))


def _of_walks(mask: GRFMask, kernels: Sequence[str], num_walks: Sequence[int], most: int) -> Variants:
    settings = mask.walk_settings
    even = SAMPLERS[settings.sampler].paired
    walks = {int(number) for number in num_walks if number <= most and not (even and number % 2)} | {settings.num_walks}
    named = _named(kernels, settings.max_walk_length, 2 - (mask.asymmetric is True)) if settings.normalization == 'sym' else {}
    paired = mask.asymmetric == 'pairs'
    # With two modulations they stand one after the other.
    given = torch.cat([mask.f, mask.key_f], dim=1) if paired else mask.f

    def make(series: Tensor, number: int | None) -> Mask:
        f, *key = series.chunk(2, dim=1) if paired else (series,)
        options: dict[str, Any] = {name: getattr(settings, name) for name in asdict(settings)}
        options |= {'num_walks': settings.num_walks if number is None else number, 'asymmetric': mask.asymmetric}
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # of walks shorter than max_walk_length, as the mask itself did
            walking = GRFMask(len(f), modulation=f, positive=False, seed=mask.seed, **options)
        if walking.key_modulation is not None:
            walking.key_modulation.data.copy_(key[0])
        return walking

    return _of_series(given, named, sorted(walks), make, 2 if paired else 1)


def _named(kernels: Sequence[str], order: int, factors: int) -> dict[str, Tensor]:
    r"""Returns the series of the kernels that so many hops hold."""
    named = {}
    for name in kernels:
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            try:
                named[name] = named_series('kernels', name, order, 'max_walk_length', factors)
            except UserWarning:  # what is left out would be seen as the kernel
                continue
    return named


def _of_series(
    given: Tensor, named: dict[str, Tensor], walks: list[int], make: Callable[[Tensor, int | None], Mask], repeated: int = 1
) -> Variants:
    given = given.detach().cpu()
    alike = bool((given == given[:1]).all())
    heads = given[:1] if alike else given
    labels = ['all alike'] if alike and len(given) > 1 else [f'{head + 1}' for head in range(len(heads))]
    series = torch.cat([heads, *(named[name].to(heads.dtype).repeat(1, repeated) for name in named)])
    longest = series.size(1) // repeated - 1
    hops = sorted({round(number) for number in torch.linspace(min(1, longest), longest, _HOPS).tolist()})
    # After so many hops, the series ends.
    kept = (torch.arange(longest + 1) <= torch.tensor(hops)[:, None]).repeat(1, repeated)
    cut = (series[:, None] * kept).flatten(0, 1)
    return Variants([*labels, *named], len(labels), [*hops], walks, lambda number: make(cut, number))


def check_kernels(kernels: Sequence[str]) -> None:
    r"""Raises an error for what is no sequence of names of kernels."""
    if isinstance(kernels, str) or not all(isinstance(name, str) for name in kernels):
        raise ArgumentError('kernels', repr(kernels), 'sequences of names, such as ("heat", "heat:3")')
