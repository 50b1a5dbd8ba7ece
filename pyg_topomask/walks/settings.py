r"""The settings of walks, a hashable value that masks and transforms share, and the distributions of their lengths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphs.edges import check_flow, check_normalization
from pyg_topomask.utils.checks import check_above_zero, check_choice, check_size, is_number
from pyg_topomask.walks.steps import SAMPLERS, TRANSITIONS


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


@dataclass(frozen=True)
class WalkSettings:
    r"""Settings of the walks of graph random features, from `"Linear Transformer Topological Masking with Graph
    Random Features" <https://arxiv.org/abs/2410.03462>`_ (Sec. 3.4).

    Args:
        num_walks (int): Walks per node and ensemble.
        p_halt (float): The probability that a walk halts before a hop, in :math:`[0, 1)`; with :obj:`0`, all walks have
            :obj:`max_walk_length` hops.
        max_walk_length (int): The largest number of hops.
        independent_ensembles (bool): Use separate walks for the queries and the keys. (default: :obj:`False`)
        sampler (str): The dependence between walkers: :obj:`"iid"`, :obj:`"antithetic"`, :obj:`"coupled"`,
            :obj:`"repelling"`, :obj:`"repelling_antithetic"` or :obj:`"repelling_coupled"`. (default: :obj:`"iid"`)
        transition (str): The transition probabilities: :obj:`"uniform"`, or :obj:`"weight"` for probabilities proportional to
            :math:`|W_{ij}|`. (default: :obj:`"uniform"`)
        normalization (str, optional): That of :math:`\mathbf{W}`, see :class:`~pyg_topomask.masks.AdjacencyMask`. With
            :obj:`None`, a mask warns if the powers grow faster than its modulation decays. (default: :obj:`"sym"`)
        walk_length (WalkLength or str, optional): The distribution of lengths, which replaces the geometric one of
            :obj:`p_halt`: :obj:`"poisson:<mean>"`, :obj:`"fixed:<hops>"`, :obj:`"survival:1,<probability>,..."`, or an object
            of :mod:`pyg_topomask.walks`. A distribution with a largest number of hops needs a :obj:`max_walk_length` of at
            least this number. A larger :obj:`max_walk_length` gives a warning. (default: :obj:`None`)
        importance (bool): Weight visits by edge weights and inverse probabilities (Eq. 10). :obj:`False` counts visits, as in
            the ablation of App. C.2 (Eq. 24). Counts do not estimate a function of :math:`\mathbf{W}`. (default: :obj:`True`)
        flow (str): The direction of attention along edges, see :class:`~pyg_topomask.masks.AdjacencyMask`. With
            :obj:`"source_to_target"`, a walker goes against the edges. (default: :obj:`"source_to_target"`)

    Raises:
        ValueError: If an argument is outside its range, or arguments conflict.
    """

    num_walks: int
    p_halt: float
    max_walk_length: int
    independent_ensembles: bool = False
    sampler: str = 'iid'
    transition: str = 'uniform'
    normalization: str | None = 'sym'
    walk_length: WalkLength | str | None = None
    importance: bool = True
    flow: str = 'source_to_target'

    def __post_init__(self) -> None:
        check_size(num_walks=self.num_walks)
        check_choice(SAMPLERS, sampler=self.sampler)
        check_choice(TRANSITIONS, transition=self.transition)
        sampler = SAMPLERS[self.sampler]
        if sampler.paired and self.num_walks % 2 == 1:
            given = f'{self.num_walks} for sampler={self.sampler!r}, whose walkers come in pairs'
            raise ArgumentError('num_walks', given, 'even numbers')
        if sampler.repelling and self.transition != 'uniform':
            given = f'{self.transition!r} for sampler={self.sampler!r}, whose walkers share the edges evenly'
            raise ArgumentError('transition', given, '"uniform"')
        check_normalization(self.normalization)
        check_flow(self.flow)
        GeometricLength(self.p_halt)
        if self.walk_length is not None:
            object.__setattr__(self, 'walk_length', walk_length(self.walk_length))
        _ = self.survival
        for name in ('num_walks', 'max_walk_length'):  # possibly NumPy integers, which overflow
            object.__setattr__(self, name, int(getattr(self, name)))
        object.__setattr__(self, 'p_halt', float(self.p_halt))  # stored walks compare its text
        self._check_longest()

    def _check_longest(self) -> None:
        longest = self.walk_length.longest if isinstance(self.walk_length, WalkLength) else None
        if longest is None:
            return
        if longest > self.max_walk_length:
            given = f'{self.max_walk_length}, which cuts walks of {self.walk_length}'
            raise ArgumentError('max_walk_length', given, f'numbers of hops from {longest}')
        # Counted visits do not need walks of all lengths.
        if self.importance and longest < self.max_walk_length:
            warn(
                f'max_walk_length is {self.max_walk_length}, but no walk of {self.walk_length} makes more than '
                f'{longest} hops: higher powers are left out, whatever the modulation says.'
            )

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.text})'

    @property
    def text(self) -> str:
        r"""The settings without a default and those that differ from it, for a short :obj:`repr`."""
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return ', '.join(f'{name}={value!r}' for name, (value, default) in values.items() if value != default)

    @property
    def weighted(self) -> bool:
        r"""Whether edge weights change the visits, or which walks are likely."""
        return self.importance or self.transition == 'weight'

    @cached_property
    def survival(self) -> Tensor:
        r"""The probabilities :math:`S_0, \dots, S_L` of at least :math:`t` hops."""
        length = GeometricLength(self.p_halt) if self.walk_length is None else walk_length(self.walk_length)
        return length.survival(self.max_walk_length)
