r"""How the walks of a mask are drawn, as one hashable value that masks and transforms share."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import torch

from pyg_topomask.graph import Graph, check_normalization
from pyg_topomask.walks.features import WalkFeatures
from pyg_topomask.walks.lengths import geometric_survival
from pyg_topomask.walks.sampler import SAMPLERS, sample_walks
from pyg_topomask.walks.uniform import counter_uniform, generator_uniform

__all__ = ['WalkSettings']


@dataclass(frozen=True)
class WalkSettings:
    r"""Settings of the walks that graph random features are made of.

    Args:
        num_walks (int): Walks per node and ensemble, from 1.
        p_halt (float): The probability that a walk halts before a hop, in :math:`[0, 1)`.
        max_walk_length (int): The largest number of hops.
        independent_ensembles (bool): Walk twice, once for the queries and once for the keys. (default: :obj:`False`)
        sampler (str): A name in :obj:`SAMPLERS`. (default: :obj:`"iid"`)
        normalization (str, optional): How :math:`\mathbf{W}` is made of the edge weights. (default: :obj:`"sym"`)

    Raises:
        ValueError: If an argument is outside its range.
    """

    num_walks: int
    p_halt: float
    max_walk_length: int
    independent_ensembles: bool = False
    sampler: str = 'iid'
    normalization: str | None = 'sym'

    def __post_init__(self) -> None:
        if not isinstance(self.num_walks, Integral) or self.num_walks < 1:
            raise ValueError(f'num_walks: got {self.num_walks}; accepted are numbers of walks from 1')
        geometric_survival(self.p_halt, self.max_walk_length)
        if self.sampler not in SAMPLERS:
            raise ValueError(f'sampler: got {self.sampler!r}; accepted are {sorted(SAMPLERS)}')
        check_normalization(self.normalization)

    def sample(
        self, graph: Graph, seed: int | None, generator: torch.Generator | None = None
    ) -> tuple[WalkFeatures, WalkFeatures]:
        r"""Walks on a graph, and returns the features of the queries and of the keys, one object if they are the same.

        Args:
            graph (Graph): The graphs.
            seed (int, optional): Makes the walks of a graph a function of this seed and of the graph alone, whatever batch it
                is in; :obj:`None` draws from :obj:`generator`.
            generator (torch.Generator, optional): The source of random numbers; :obj:`None` is torch's global one.
                (default: :obj:`None`)
        """
        survival, local_id = geometric_survival(self.p_halt, self.max_walk_length), graph.local_id

        def ensemble(index: int) -> WalkFeatures:
            if seed is None:
                uniform = generator_uniform(generator, graph.device)
            else:
                uniform = counter_uniform(2 * seed + index, local_id, self.num_walks)
            return sample_walks(graph, self.num_walks, survival, uniform, self.normalization, self.sampler)

        query = ensemble(0)
        return query, ensemble(1) if self.independent_ensembles else query
