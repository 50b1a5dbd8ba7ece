r"""The settings of walks, a hashable value that masks and transforms share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

from torch import Tensor

from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphs.conventions import check_flow, check_normalization
from pyg_topomask.utils.checks import check_choice, check_size
from pyg_topomask.walks.lengths import GeometricLength, WalkLength, walk_length
from pyg_topomask.walks.samplers import SAMPLERS
from pyg_topomask.walks.transitions import TRANSITIONS


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
