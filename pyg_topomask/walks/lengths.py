r"""Distributions of walk lengths. Their survival probabilities also weight the loads of walks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_above_zero, check_size, is_number


@dataclass(frozen=True)
class WalkLength(ABC):
    r"""A distribution of the number of hops of a walk."""

    @abstractmethod
    def probabilities(self, hops: Tensor) -> Tensor:
        r"""Returns :math:`P(\text{length} \ge t)` for numbers of hops :math:`t`, in float64."""

    def survival(self, max_walk_length: int) -> Tensor:
        r"""Returns :math:`S_0, \dots, S_L`, the probabilities of at least :math:`t` hops. Every walk ends after :math:`L` hops,
        :obj:`max_walk_length`.
        """
        check_size(0, max_walk_length=max_walk_length)
        return self.probabilities(torch.arange(max_walk_length + 1, dtype=torch.float64))

    @property
    def longest(self) -> int | None:
        r"""The largest possible number of hops, or :obj:`None` if there is no bound."""
        return None


@dataclass(frozen=True)
class GeometricLength(WalkLength):
    r"""Halting with the same probability before each hop, :math:`S_t = (1 - p_{halt})^t`, as in `"Linear Transformer
    Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Sec. 3.4).

    Args:
        p_halt (float): The halting probability, in :math:`[0, 1)`; with :obj:`0`, all walks have the largest length.

    Example:
        >>> GeometricLength(0.5).survival(max_walk_length=2)
        tensor([1.0000, 0.5000, 0.2500], dtype=torch.float64)
    """

    p_halt: float

    def __post_init__(self) -> None:
        if not (is_number(self.p_halt) and 0 <= self.p_halt < 1):
            raise ArgumentError('p_halt', repr(self.p_halt), 'numbers in [0, 1)')
        object.__setattr__(self, 'p_halt', float(self.p_halt))

    def probabilities(self, hops: Tensor) -> Tensor:
        return (1.0 - self.p_halt) ** hops


@dataclass(frozen=True)
class FixedLength(WalkLength):
    r"""Every walk makes the given number of hops.

    Args:
        hops (int): The number of hops.

    Example:
        >>> FixedLength(1).survival(max_walk_length=2)
        tensor([1., 1., 0.], dtype=torch.float64)
    """

    hops: int

    def __post_init__(self) -> None:
        check_size(0, hops=self.hops)
        object.__setattr__(self, 'hops', int(self.hops))

    def probabilities(self, hops: Tensor) -> Tensor:
        return (hops <= self.hops).double()

    @property
    def longest(self) -> int:
        return int(self.hops)


@dataclass(frozen=True)
class PoissonLength(WalkLength):
    r"""The number of hops has a Poisson distribution, :math:`S_t = P(t, \mu)`, the regularized incomplete gamma function. It
    samples the lengths with the largest weight in a heat kernel most often.

    Args:
        mean (float): The mean number of hops :math:`\mu`, above 0.

    Example:
        >>> PoissonLength(1.0).survival(max_walk_length=2)
        tensor([1.0000, 0.6321, 0.2642], dtype=torch.float64)
    """

    mean: float

    def __post_init__(self) -> None:
        check_above_zero(mean=self.mean)
        object.__setattr__(self, 'mean', float(self.mean))

    def probabilities(self, hops: Tensor) -> Tensor:
        mean = torch.tensor(float(self.mean), dtype=torch.float64)
        result: Tensor = torch.special.gammainc(hops.clamp(min=1), mean)
        return result.masked_fill(hops == 0, 1.0)


@dataclass(frozen=True)
class SurvivalLength(WalkLength):
    r"""Any distribution, given by its survival probabilities.

    Args:
        given (tuple of float): :math:`S_0 = 1 \ge S_1 \ge \dots`; longer walks do not occur.

    Example:
        >>> SurvivalLength((1.0, 0.7)).survival(max_walk_length=2)
        tensor([1.0000, 0.7000, 0.0000], dtype=torch.float64)
    """

    given: tuple[float, ...]

    def __post_init__(self) -> None:
        given = tuple(self.given) if isinstance(self.given, Iterable) else ()
        if given[:1] != (1,) or not all(map(is_number, given)) or any(not 0 <= b <= a for a, b in pairwise(given)):
            raise ArgumentError('given', repr(self.given), 'probabilities that start at 1 and do not ascend')
        object.__setattr__(self, 'given', tuple(map(float, given)))

    def probabilities(self, hops: Tensor) -> Tensor:
        result = torch.zeros_like(hops)
        shown = min(len(hops), len(self.given))
        result[:shown] = torch.tensor(self.given[:shown], dtype=torch.float64)
        return result

    @property
    def longest(self) -> int:
        return sum(probability > 0 for probability in self.given) - 1


#: Constructors of distributions by their names in configurations, called with the numbers after the name.
WALK_LENGTHS: dict[str, Callable[..., WalkLength]] = {
    'geometric': GeometricLength,
    'fixed': lambda hops: FixedLength(int(hops) if hops.is_integer() else hops),
    'poisson': PoissonLength,
    'survival': lambda *given: SurvivalLength(given),
}


def walk_length(given: WalkLength | str) -> WalkLength:
    r"""Parses :obj:`"geometric:0.5"`, :obj:`"fixed:3"`, :obj:`"poisson:2.0"` or :obj:`"survival:1,0.7,0.3"` into a
    distribution. Returns a distribution unchanged.

    Example:
        >>> walk_length('fixed:3')
        FixedLength(hops=3)
    """
    if isinstance(given, WalkLength):
        return given
    name, _, numbers = str(given).partition(':')
    try:
        return WALK_LENGTHS[name](*map(float, numbers.split(',')))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        accepted = (
            '"geometric:<p_halt>", "fixed:<hops>", "poisson:<mean>", "survival:1,<probability>,..." and WalkLength objects'
        )
        raise ArgumentError('walk_length', repr(given), accepted) from error
