r"""Masks estimated by graph random features."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.adjacency import AdjacencyMask
from pyg_topomask.masks.base.kinds import LogarithmicMask, WalkingMask, warn_of_directed, warn_of_lost_gradient
from pyg_topomask.masks.base.series import initial_series, resolve_positive
from pyg_topomask.masks.power_series import warn_of_growth
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.composed import Alternatives, Chain
from pyg_topomask.utils.checks import check_choice, check_size, checked_seed
from pyg_topomask.utils.options import options_of
from pyg_topomask.utils.random import seed_of_factor
from pyg_topomask.walks import WalkSettings
from pyg_topomask.walks.features import WalkFeatures
from pyg_topomask.walks.pairs import PairedWalks, paired_walks
from pyg_topomask.walks.stored import load_walks

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pyg_topomask.masks.options import FeatureWalkOptions


@options_of(WalkSettings)
class GRFMask(WalkingMask, LogarithmicMask):
    r"""A learnable function of the weighted adjacency matrix, estimated by random walks, from `"Linear Transformer
    Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Sec. 3.3, Eq. 9 and 10, Algorithm 1):

    .. math::
        \hat{\mathbf{M}} = \hat{\Phi} \hat{\Psi}^{\top}, \qquad \mathbb{E} \, \hat{\Phi} = \sum_{l=0}^{L} f_l \mathbf{W}^l

    Here :math:`\mathbf{W}` is the normalized adjacency matrix, and the mask learns the modulation :math:`f` of each head. On an
    undirected graph, :math:`\mathbb{E} \, \hat{M}_{ij} = \sum_k \alpha_k (\mathbf{W}^k)_{ij}` with :math:`\alpha = f * f`
    (convolution). On a directed graph, it is the entry of :math:`(\sum_l f_l \mathbf{W}^l) (\sum_l f_l
    \mathbf{W}^l)^{\top}`. With one ensemble of walks for queries and keys (:math:`\hat{\Psi} = \hat{\Phi}`), this holds for
    :math:`i \ne j`, and the diagonal is biased upwards. With two independent ensembles, all entries are unbiased.

    There are two kinds of asymmetric features (App. D). :obj:`asymmetric="pairs"` has a second modulation for the keys
    (:math:`\alpha = f^{(1)} * f^{(2)}`, Eq. 25 and 26). :obj:`asymmetric=True` has keys without walks (:math:`\hat{\Psi} =
    \mathbf{I}`, Eq. 27 to 30, Algorithm 2 without the factor :math:`n` of its line 11, which cancels). A node then attends to
    the nodes that its walks visit, and :math:`\mathbb{E} \, \hat{\mathbf{M}} = \sum_l f_l \mathbf{W}^l` for all entries, on
    directed graphs too.

    Walks that :class:`~pyg_topomask.transforms.AddGraphRandomFeatures` has stored on the data override :obj:`num_walks`,
    :obj:`sampler` and :obj:`seed`. Training with :obj:`resample="forward"` ignores them. They need at least
    :obj:`max_walk_length` hops, two ensembles for :obj:`independent_ensembles=True`, and the :obj:`normalization`,
    :obj:`importance` and :obj:`flow` of the mask; with :obj:`importance=False`, also its :obj:`p_halt`, :obj:`walk_length` and
    :obj:`transition`. Gradients flow to the modulation and, unless the walks are stored or count visits, to edge weights that
    require them. The walks and their probabilities count as fixed: the gradients are unbiased where the mask is. Equal graphs
    get equal walks.

    With :obj:`stitch` :math:`s > 1`, short walks are stitched to long ones, as in `"Computationally-efficient Graph Modeling
    with Refined Graph Random Features" <https://arxiv.org/abs/2510.07716>`_ (abstract; the equations are our derivation):

    .. math::
        \hat{\mathbf{M}} = \hat{\Phi}_1 \cdots \hat{\Phi}_s \, (\hat{\Psi}_1 \cdots \hat{\Psi}_s)^{\top}, \qquad
        \mathbb{E} \, \hat{\Phi}_r = \sum_{l=0}^{L} f_l \mathbf{W}^l

    All factors have the same modulation and independent walks. With two independent ensembles on an undirected graph,
    :math:`\alpha` is the convolution of :math:`2s` equal :math:`f`. With :obj:`asymmetric=True`, :math:`\mathbb{E} \,
    \hat{\mathbf{M}} = (\sum_l f_l \mathbf{W}^l)^s`. With one ensemble, every entry is biased, and not only the diagonal: the
    two factors in the middle share their walks, and the outer factors spread the bias of their diagonal. A stitched mask does
    not list its entries, so softmax attention and entrywise products with sparse masks reject it. It does not use stored walks.

    A product takes at most :math:`O(s N n L)` multiplications, for any number of edges.

    With :obj:`asymmetric=True`, edges are followed: a node attends to nodes from which edges lead to it. Otherwise, attention
    has no direction: walks go against the edges, and nodes whose walks meet attend to each other. The mask then warns once of a
    directed graph.

    Args:
        heads (int): The number of heads, each with its own modulation. (default: that of the layer, or :obj:`1`)
        num_walks (int): Walks per node and ensemble :math:`n`. (default: :obj:`4`)
        p_halt (float): The probability that a walk halts before a hop, in :math:`[0, 1)`; with :obj:`0`, all walks have
            :obj:`max_walk_length` hops. (default: :obj:`0.5`)
        max_walk_length (int): The largest number of hops :math:`L`. (default: :obj:`4`)
        modulation (torch.Tensor or str, optional): The initial :math:`f`, :obj:`[L + 1]` or :obj:`[heads, L + 1]`, or a name
            as for the :obj:`coefficients` of a :class:`~pyg_topomask.masks.PowerSeriesMask`. :obj:`None` is
            :math:`f_l = 2^{-l}`. With the name of a kernel, the mask initially estimates this kernel, and :math:`f` is the
            root of its series, see :func:`~pyg_topomask.masks.deconvolve`. (default: :obj:`None`)
        asymmetric (bool or str): :obj:`False`; :obj:`True` for keys without walks; or :obj:`"pairs"` for a second modulation
            :attr:`key_modulation` of the keys, initially equal to that of the queries. (default: :obj:`False`)
        resample (str): When to sample walks that are not stored. With :obj:`"never"`, they depend only on :obj:`seed` and the
            graph, and are the same in any batch. With :obj:`"forward"`, every forward pass in training mode samples new walks,
            once for all layers that share a :class:`~pyg_topomask.graphs.Graph`. A layer that is called twice in a forward pass
            samples new walks at its second call. Under activation checkpointing, a repeated call gets the same walks, if the
            layer is called at most 64 times in a forward pass. (default: :obj:`"never"`)
        seed (int): The seed of walks that are not resampled. Layers with different seeds have different walks.
            (default: :obj:`0`)
        share_modulation (bool): Learn one modulation for all heads. (default: :obj:`False`)
        positive (bool, optional): Learn the logarithm of the modulation, see :class:`~pyg_topomask.masks.PowerSeriesMask`.
            Softmax attention requires it. (default: :obj:`None`)
        stitch (int): The number of walks per chain :math:`s`, each of at most :obj:`max_walk_length` hops. A node has :math:`n`
            walks per factor, and up to :math:`n^s` chains. (default: :obj:`1`)

    Raises:
        ValueError: If an argument is outside its range, arguments conflict, or the data stores walks for :obj:`stitch` above 1.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes and weighted edges
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
        - **parameters:** :obj:`modulation` :math:`(H, L + 1)`, or :math:`(1, L + 1)` if shared, :obj:`key_modulation` of the
          same shape if :obj:`asymmetric="pairs"`

    Example:
        >>> from torch_geometric.data import Data
        >>> mask = GRFMask(heads=2, num_walks=8, p_halt=0.5, max_walk_length=3)
        >>> mask(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)).to_dense().shape
        torch.Size([2, 2, 2])
    """

    form: str | None = 'sparse'
    renumbers = 'state'
    weights_by_head = True

    def __init__(
        self,
        heads: int = 1,
        num_walks: int = 4,
        p_halt: float = 0.5,
        max_walk_length: int = 4,
        modulation: Tensor | str | None = None,
        asymmetric: bool | str = False,
        resample: str = 'never',
        seed: int = 0,
        share_modulation: bool = False,
        positive: bool | None = None,
        stitch: int = 1,
        **options: Unpack[FeatureWalkOptions],
    ) -> None:
        super().__init__(heads)
        self._walk(WalkSettings(num_walks, p_halt, max_walk_length, **options), resample)
        check_size(1, stitch=stitch)
        check_choice((False, True, 'pairs'), asymmetric=asymmetric)
        asymmetric = asymmetric if isinstance(asymmetric, str) else bool(asymmetric)  # 1 is True
        if asymmetric is True and self.walk_settings.independent_ensembles:
            raise ArgumentError('independent_ensembles', 'True with asymmetric=True, where keys have no walks', 'False')
        self.seed = checked_seed(seed=seed)
        self.stitch = int(stitch)
        if self.stitch > 1:
            self.form = 'product'
        self.asymmetric = asymmetric
        factors = self.stitch * (1 if asymmetric is True else 2)
        initial, dtype = initial_series('modulation', modulation, heads, max_walk_length + 1, 'max_walk_length', factors)
        if share_modulation:
            if not bool((initial == initial[:1]).all()):
                raise ArgumentError('share_modulation', 'True for a modulation that differs between heads', 'False')
            initial = initial[:1]
        self._begin(initial, resolve_positive('modulation', initial.to(dtype), positive))
        self.modulation = torch.nn.Parameter(torch.empty_like(initial, dtype=dtype))
        self.key_modulation = torch.nn.Parameter(torch.empty_like(initial, dtype=dtype)) if asymmetric == 'pairs' else None
        self.reset_parameters()

    @property
    def f(self) -> Tensor:
        r"""The modulation of the queries, :obj:`[heads, L + 1]`."""
        return self._numbers(self.modulation).expand(self.heads, -1)

    @property
    def key_f(self) -> Tensor:
        r"""The modulation of the keys, :obj:`[heads, L + 1]`."""
        return self.f if self.key_modulation is None else self._numbers(self.key_modulation).expand(self.heads, -1)

    @property
    def direction(self) -> str:  # type: ignore[override]
        return 'followed' if self.asymmetric is True else 'both ways'

    @property
    def learns_weights(self) -> bool:  # type: ignore[override]
        return self.walk_settings.importance

    def settings(self) -> Hashable:
        return type(self), self.walk_settings, self.seed, self.stitch, self.fresh

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> PairedWalks:
        drawn, weight = generator is not None or self.fresh, graph.edge_weight
        learned = self.learns_weights and weight is not None and weight.requires_grad
        stored = None if drawn else load_walks(graph, self.walk_settings)
        if stored is not None or not learned:
            warn_of_lost_gradient(self, graph)
        if stored is not None:
            if self.stitch > 1:
                raise ArgumentError('stitch', f'{self.stitch} for data with stored walks', '1, or data without stored walks')
            return PairedWalks(*stored)
        seeds = [None if drawn else seed_of_factor(self.seed, factor) for factor in range(self.stitch)]
        again = self.fresh or self.stitch > 1
        first, *stitched = (paired_walks(graph, self.walk_settings, seed, generator, again, learned) for seed in seeds)
        first.stitched = tuple(stitched)
        return first

    def bind(self, graph: Graph, state: PairedWalks) -> MaskOperator:
        if self.asymmetric is not True:
            warn_of_directed(self, graph, 'asymmetric=True (in a YAML the word AsymmetricGRF)')
        f = self.f
        key_f = self.key_f if self.asymmetric == 'pairs' else f
        if self.walk_settings.normalization is None and self.walk_settings.importance and graph.segments.is_whole:
            adjacency = graph.state(AdjacencyMask(1, None, flow=self.flow))
            warn_of_growth(self, graph, adjacency, f if key_f is f else torch.cat([f, key_f]))

        def features(walks: WalkFeatures, series: Tensor) -> MaskOperator:
            return walks.operator(graph, walks.values(series), self.heads)

        if self.asymmetric is True and self.stitch == 1:
            return features(state.query, f)

        def product() -> MaskOperator:
            queries, keys = [], []
            for factor in (state, *state.stitched):
                query = features(factor.query, f)
                queries.append(query)
                if self.asymmetric is not True:
                    same = factor.key is factor.query and key_f is f
                    keys.append(query.T if same else features(factor.key, key_f).T)
            return Chain((*queries, *reversed(keys)))

        entries = None if self.stitch > 1 else state.listed(lambda walks: walks.entries(f, key_f))
        return Alternatives(product, entries, segments=graph.segments, heads=self.heads, cost=state.num_features)

    def extra_repr(self) -> str:
        return f'heads={self.heads}, {self.walk_settings.text}{self._changed()}{self._directed()}'
