r"""Masks estimated by graph random features."""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch_geometric.data import Data

from pyg_topomask.capabilities import Entries, Product, SparseEntries
from pyg_topomask.checks import check_whole
from pyg_topomask.graph import Graph
from pyg_topomask.masks.adjacency import AdjacencyMask
from pyg_topomask.masks.logarithmic import LogarithmicMask
from pyg_topomask.masks.modulation import deconvolve, kernel_series, naming, resolve_positive, series_parameter, warn_of_cut
from pyg_topomask.masks.power_series import warn_of_growth
from pyg_topomask.masks.sparse import sparse_operator
from pyg_topomask.operators import MaskOperator
from pyg_topomask.ops.sparse_matmul import spmm
from pyg_topomask.sparse_pattern import SparsePattern
from pyg_topomask.structures import MaskStructure
from pyg_topomask.walks import PairLoads, WalkFeatures, WalkLength, WalkSettings, sample_ensembles
from pyg_topomask.walks.features import count_pairs

__all__ = ['GRFMask', 'GRFState']


@dataclass(frozen=True)
class GRFStructure(MaskStructure):
    r""":math:`\hat{\Phi} \hat{\Psi}^{\top}` of sparse features. Tensors: values and pattern of the one, then of the other."""

    def apply(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        (query, query_pattern), (key, key_pattern) = _halves(tensors)
        collected = spmm(key_pattern, key.to(x.dtype), x, transpose=True)
        return spmm(query_pattern, query.to(x.dtype), collected)

    def magnitude(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        return self.apply([tensor.abs() if tensor.is_floating_point() else tensor for tensor in tensors], x)

    def transpose(self, tensors: Sequence[Tensor]) -> tuple[MaskStructure, tuple[Tensor, ...]]:
        half = len(tensors) // 2
        return self, (*tensors[half:], *tensors[:half])


def _halves(tensors: Sequence[Tensor]) -> list[tuple[Tensor, SparsePattern]]:
    half = len(tensors) // 2
    return [(part[0], SparsePattern(*part[1:])) for part in (tensors[:half], tensors[half:])]


@dataclass
class GRFState:
    r"""The walks that a :class:`GRFMask` is bound to: those of the queries and those of the keys, which may be the same."""

    query: WalkFeatures
    key: WalkFeatures
    _pairs: dict[tuple[torch.dtype, bool], PairLoads] = field(default_factory=dict)

    @cached_property
    def num_pairs(self) -> int:
        return count_pairs(self.query, self.key)

    def entries(self, query_modulation: Tensor, key_modulation: Tensor) -> Entries:
        r"""Returns the entries of the mask for modulations of shape :obj:`[H, L + 1]`."""
        form = query_modulation.dtype, key_modulation is query_modulation
        if form not in self._pairs:
            with torch.inference_mode(False):  # kept, and perhaps trained with later
                self._pairs[form] = PairLoads(self.query, self.key, *form)
        pairs = self._pairs[form]
        return Entries(pairs.pattern, pairs.values(query_modulation, key_modulation))

    def store(self, data: Data, settings: WalkSettings) -> None:
        r"""Stores the walks on the data of one graph, under names and in sizes that PyG batches and slices correctly. They
        replace those that are there.
        """
        for key in [f'{name}_{part}' for name in _NAMES for part in _PARTS if f'{name}_{part}' in data]:
            del data[key]  # perhaps of a second ensemble
        graph = Graph.from_data(data)
        ensembles = [self.query] if self.key is self.query else [self.query, self.key]
        for name, walks in zip(_NAMES, ensembles, strict=False):
            # PyG takes a tensor with as many rows as there are nodes or edges for one of their attributes, and slices it.
            stored = walks.nnz
            while graph.num_nodes > 0 and stored in (graph.num_nodes, graph.num_edges):
                stored += 1
            padding = (0, stored - walks.nnz)
            data[f'{name}_index'] = pad(torch.stack([walks.start, walks.visited]).long(), padding)
            data[f'{name}_length'] = pad(walks.length.long(), padding)
            data[f'{name}_load'] = pad(walks.load, padding)
            num_nodes, num_edges, code = graph.fingerprint[0].tolist()
            sizes = [num_nodes, num_edges, code, stored, walks.nnz, walks.max_walk_length, _code(settings)]
            data[f'{name}_sizes'] = torch.tensor([sizes], device=walks.load.device)

    @classmethod
    def load(cls, graph: Graph, settings: WalkSettings, transform: str = 'AddGraphRandomFeatures') -> GRFState | None:
        r"""Returns the walks that a transform has stored on the data that :obj:`graph` was made from, or :obj:`None`.

        Raises:
            ValueError: If the data has changed since they were stored, or they do not fit the settings.
        """
        data = graph.data
        if data is None:
            return None
        found = [name for name in _NAMES if any(f'{name}_{part}' in data for part in _PARTS)]
        ensembles = [_load(graph, data, name, settings, transform) for name in found]
        return cls(ensembles[0], ensembles[-1])._fit(settings, transform) if ensembles else None

    def _fit(self, settings: WalkSettings, transform: str) -> GRFState:
        hops, apart = settings.max_walk_length, settings.independent_ensembles
        found = min(self.query.max_walk_length, self.key.max_walk_length)
        if found < hops:
            raise ValueError(
                f'max_walk_length: got {hops}, but the stored walks end after {found} hops; accepted are at most {found}, or '
                f'walks that {transform} stored with a larger max_walk_length'
            )
        if apart and self.key is self.query:
            raise ValueError(
                f'independent_ensembles: got True, but the data stores one ensemble; run {transform} again with '
                f'independent_ensembles=True'
            )
        query = self.query.truncate(hops)
        return GRFState(query, self.key.truncate(hops) if apart else query)


_NAMES = ('grf', 'grf_key')
_CODES = {'sym': 0, 'rw': 1, None: 2}
_COUNTED = 4  # a multiple of it is added for visits that are counted, not weighed
_PARTS = ('index', 'length', 'load', 'sizes')


def _code(settings: WalkSettings) -> int:
    code = _CODES[settings.normalization]
    if settings.importance:
        return code
    # What is counted depends on how walks are drawn.
    drawn = settings.p_halt if settings.walk_length is None else settings.walk_length, settings.transition
    return code + _COUNTED * (1 + zlib.crc32(repr(drawn).encode()))


def _load(graph: Graph, data: Data, name: str, settings: WalkSettings, transform: str) -> WalkFeatures:
    missing = [f'{name}_{part}' for part in _PARTS if f'{name}_{part}' not in data]
    if missing:
        raise ValueError(f'data: got stored walks without {missing}; run {transform} again')
    index, length, load, sizes = (data[f'{name}_{part}'] for part in _PARTS)
    fingerprint, stored, kept, longest, codes = sizes.view(-1, 7).split([3, 1, 1, 1, 1], dim=1)
    total = int(stored.sum())
    if not torch.equal(fingerprint, graph.fingerprint) or {index.size(1), length.numel(), load.numel()} != {total}:
        raise ValueError(
            f'data: got stored walks of {int(fingerprint[:, 0].sum())} nodes, {int(fingerprint[:, 1].sum())} edges and {total} '
            f'visits that do not fit this graph of {graph.num_nodes} nodes and {graph.num_edges} edges; it has changed since '
            f'they were stored: run {transform} again, after the transforms that change it'
        )
    others = codes[codes != _code(settings)]
    if others.numel() > 0:
        found = int(others[0])
        normalization = next(own for own, number in _CODES.items() if number == found % _COUNTED)
        raise ValueError(
            f'data: got walks stored with normalization={normalization!r} and importance={found < _COUNTED}; accepted are '
            f'normalization={settings.normalization!r}, importance={settings.importance} and, for walks that are counted, '
            f'p_halt={settings.p_halt}, walk_length={settings.walk_length} and transition={settings.transition!r}: run '
            f'{transform} again with these, or store no walks, which every mask then draws for itself'
        )
    if not torch.equal(stored, kept):
        position = torch.arange(total, device=load.device) - (stored.cumsum(0) - stored).squeeze(1).repeat_interleave(
            stored.squeeze(1)
        )
        own = position < kept.squeeze(1).repeat_interleave(stored.squeeze(1))
        index, length, load = index[:, own], length[own], load[own]
    walks = WalkFeatures(index[0], index[1], length, load, graph.num_nodes, int(longest.max()) if len(longest) > 0 else 0)
    return walks.truncate(int(longest.min()) if len(longest) > 0 else 0)


class GRFMask(LogarithmicMask):
    r"""A learnable function of the weighted adjacency matrix, estimated by random walks, from `"Linear Transformer Topological
    Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Sec. 3.3, Eq. 9 and 10, Algorithm 1):

    .. math::
        \hat{\mathbf{M}} = \hat{\Phi} \hat{\Psi}^{\top}, \qquad \mathbb{E} \, \hat{\Phi} = \sum_{l=0}^{L} f_l \mathbf{W}^l

    On an undirected graph :math:`\mathbb{E} \, \hat{M}_{ij} = \sum_k \alpha_k (\mathbf{W}^k)_{ij}` with
    :math:`\alpha = f * f`; on a directed one it is the entry of
    :math:`(\sum_l f_l \mathbf{W}^l) (\sum_l f_l \mathbf{W}^l)^{\top}`. With one ensemble of walks (:math:`\hat{\Psi} =
    \hat{\Phi}`) this holds for :math:`i \ne j`, and the diagonal is biased upwards; two independent ensembles are unbiased
    everywhere.

    Asymmetric features (App. D) take another modulation for the keys, :obj:`asymmetric="pairs"` (:math:`\alpha = f^{(1)} *
    f^{(2)}`, Eq. 25 and 26), or leave the keys where they are, :obj:`asymmetric=True` (:math:`\hat{\Psi} = \mathbf{I}`,
    Eq. 27 to 30, Algorithm 2 without the factor :math:`n` of its line 11, which cancels): a node then attends to the nodes
    that its own walks visit, and :math:`\mathbb{E} \, \hat{\mathbf{M}} = \sum_l f_l \mathbf{W}^l` everywhere, on directed
    graphs too.

    Walks that :class:`~pyg_topomask.transforms.AddGraphRandomFeatures` has stored on the data are used where there are any,
    but not in training with :obj:`resample="forward"`. Their :obj:`num_walks`, :obj:`sampler` and :obj:`seed` then count, not
    those given here. Equal to theirs have to be :obj:`normalization` and :obj:`importance`, and with :obj:`importance=False`
    also :obj:`p_halt`, :obj:`walk_length` and :obj:`transition`, on which the expectation of weighted visits does not depend.
    They need at least :obj:`max_walk_length` hops, and two ensembles for :obj:`independent_ensembles=True`. Gradients flow to
    the modulation, not to the edge weights. Equal graphs are walked alike.

    Args:
        heads (int): The number of heads, each with its own modulation. (default: :obj:`1`)
        num_walks (int): Walks per node and ensemble :math:`n`. (default: :obj:`4`)
        p_halt (float): The probability that a walk halts before a hop, in :math:`[0, 1)`; :obj:`0` means walks of
            :obj:`max_walk_length` hops. (default: :obj:`0.5`)
        max_walk_length (int): The largest number of hops :math:`L`. (default: :obj:`4`)
        modulation (torch.Tensor or str, optional): The initial :math:`f`, :obj:`[L + 1]` or :obj:`[heads, L + 1]`; or a kernel
            in :func:`~pyg_topomask.masks.kernel_series`, as :obj:`"heat"`, :obj:`"heat:0.5"` or :obj:`"random_walk:2:p=3"`,
            that the mask estimates at first, which warns where :obj:`max_walk_length` leaves out any power of a polynomial or
            a tenth of a series; :obj:`None` for :math:`f_l = 2^{-l}`. (default: :obj:`None`)
        independent_ensembles (bool): Walk twice, once for the queries and once for the keys. (default: :obj:`False`)
        asymmetric (bool or str): :obj:`False`; :obj:`True` for keys without walks; :obj:`"pairs"` for a modulation of
            the keys' own, :attr:`key_modulation`, which starts equal. (default: :obj:`False`)
        sampler (str): How walkers depend on each other: a name in :obj:`pyg_topomask.walks.SAMPLERS`.
            (default: :obj:`"iid"`)
        transition (str): :obj:`"uniform"` over the out-edges, or :obj:`"weight"` for hops with probabilities proportional to
            :math:`|W_{ij}|`. (default: :obj:`"uniform"`)
        normalization (str, optional): :obj:`"sym"` for :math:`\mathbf{W} = \mathbf{D}_{out}^{-1/2} \mathbf{A}
            \mathbf{D}_{in}^{-1/2}` with degrees from the absolute weights, :obj:`"rw"` for
            :math:`\mathbf{D}_{out}^{-1} \mathbf{A}`, :obj:`None` for :math:`\mathbf{A}`, which warns where the powers grow
            faster than the modulation falls. (default: :obj:`"sym"`)
        resample (str): When walks are drawn that are not stored: :obj:`"never"` (walks are a function of :obj:`seed` and
            the graph alone, equal in any batch) or :obj:`"forward"` (anew in every forward pass in training mode, once for
            all layers that share a :class:`~pyg_topomask.graph.Graph`). (default: :obj:`"never"`)
        seed (int): The seed of walks that are not drawn anew; layers with other seeds walk other walks. (default: :obj:`0`)
        walk_length (WalkLength or str, optional): The distribution of lengths in place of the geometric one of
            :obj:`p_halt`: :obj:`"poisson:<mean>"`, :obj:`"fixed:<hops>"`, :obj:`"survival:1,<probability>,..."`, or an object
            of :mod:`pyg_topomask.walks`. Where it has a largest number of hops, :obj:`max_walk_length` is at least that, and
            warns if it is more. (default: :obj:`None`)
        importance (bool): Weigh visits by edge weights and inverse probabilities; :obj:`False` counts visits, the ad-hoc
            kernel of the ablation (App. C.2, Eq. 24), which estimates no function of :math:`\mathbf{W}`.
            (default: :obj:`True`)
        share_modulation (bool): Learn one modulation for all heads. (default: :obj:`False`)
        positive (bool, optional): Learn the logarithm of the modulation, which stays above 0: training is steadier, and
            softmax attention needs it. :obj:`None` is :obj:`True` where all initial numbers are above 0.
            (default: :obj:`None`)

    Raises:
        ValueError: If an argument is outside its range, arguments exclude each other, or the modulation does not have
            :math:`L + 1` entries per head.

    Example:
        >>> from torch_geometric.data import Data
        >>> mask = GRFMask(heads=2, num_walks=8, p_halt=0.5, max_walk_length=3)
        >>> mask(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)).to_dense().shape
        torch.Size([2, 2, 2])
    """

    def __init__(
        self,
        heads: int = 1,
        num_walks: int = 4,
        p_halt: float = 0.5,
        max_walk_length: int = 4,
        modulation: Tensor | str | None = None,
        independent_ensembles: bool = False,
        asymmetric: bool | str = False,
        sampler: str = 'iid',
        transition: str = 'uniform',
        normalization: str | None = 'sym',
        resample: str = 'never',
        seed: int = 0,
        walk_length: WalkLength | str | None = None,
        importance: bool = True,
        share_modulation: bool = False,
        positive: bool | None = None,
    ) -> None:
        super().__init__(heads)
        self.walk_settings = WalkSettings(
            num_walks=num_walks,
            p_halt=p_halt,
            max_walk_length=max_walk_length,
            independent_ensembles=independent_ensembles,
            sampler=sampler,
            transition=transition,
            normalization=normalization,
            walk_length=walk_length,
            importance=importance,
        )
        check_whole(seed=seed)
        if resample not in ('never', 'forward'):
            raise ValueError(f'resample: got {resample!r}; accepted are "never" and "forward"')
        if asymmetric not in (False, True, 'pairs'):
            raise ValueError(f'asymmetric: got {asymmetric!r}; accepted are False, True and "pairs"')
        asymmetric = asymmetric if isinstance(asymmetric, str) else bool(asymmetric)  # 1 is True
        if asymmetric is True and independent_ensembles:
            raise ValueError('independent_ensembles: got True for asymmetric=True, whose keys do not walk; accepted is False')
        self.resample = resample
        self.seed = seed
        self.asymmetric = asymmetric
        dtype = torch.get_default_dtype() if isinstance(modulation, str) else None
        if modulation is None:
            modulation = 0.5 ** torch.arange(max_walk_length + 1)
        elif isinstance(modulation, str):
            warn_of_cut('modulation', 'max_walk_length', max_walk_length, modulation, features=asymmetric is not True)
            with naming('modulation'):
                series = kernel_series(modulation, max_walk_length)
                modulation = series if asymmetric is True else deconvolve(series)
        initial = series_parameter('modulation', modulation, heads, max_walk_length + 1, dtype)
        if share_modulation:
            if not bool((initial == initial[:1]).all()):
                raise ValueError('share_modulation: got True for a modulation that differs between heads; accepted is False')
            initial = initial[:1]
        self._begin(initial, resolve_positive('modulation', initial.to(dtype), positive))
        self.modulation = torch.nn.Parameter(torch.empty_like(initial, dtype=dtype))
        self.key_modulation = torch.nn.Parameter(torch.empty_like(initial, dtype=dtype)) if asymmetric == 'pairs' else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self._reset(self.modulation, self.key_modulation)

    @property
    def f(self) -> Tensor:
        r"""The modulation of the queries, :obj:`[heads, L + 1]`."""
        return self._numbers(self.modulation).expand(self.heads, -1)

    @property
    def key_f(self) -> Tensor:
        r"""The modulation of the keys, :obj:`[heads, L + 1]`."""
        return self.f if self.key_modulation is None else self._numbers(self.key_modulation).expand(self.heads, -1)

    @property
    def fresh(self) -> bool:
        return self.resample == 'forward' and self.training

    def settings(self) -> Hashable:
        return type(self), self.walk_settings, self.seed, self.fresh

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> GRFState:
        if generator is None and not self.fresh:
            stored = GRFState.load(graph, self.walk_settings)
            return GRFState(*sample_ensembles(graph, self.walk_settings, self.seed)) if stored is None else stored
        return GRFState(*sample_ensembles(graph, self.walk_settings, None, generator))

    def bind(self, graph: Graph, state: GRFState) -> MaskOperator:
        f, query_pattern, key_pattern = self.f, state.query.pattern, state.key.pattern
        key_f = self.key_f if self.asymmetric == 'pairs' else f
        if self.walk_settings.normalization is None and self.walk_settings.importance:
            adjacency = AdjacencyMask(1, None).prepared(graph)
            warn_of_growth(self, graph, adjacency, f if key_f is f else torch.cat([f, key_f]))
        if self.asymmetric is True:
            return sparse_operator(graph, query_pattern, state.query.values(f), self.heads)

        def tensors() -> tuple[Tensor, ...]:
            query = state.query.values(f)
            same = state.key is state.query and key_f is f
            key = query if same else state.key.values(key_f)
            return (query, *query_pattern.tensors, key, *key_pattern.tensors)

        product = Product(GRFStructure(), tensors, cost=query_pattern.nnz + key_pattern.nnz)
        entries = SparseEntries(lambda: state.entries(f, key_f), state.num_pairs)
        return MaskOperator(graph.segments, self.heads, product, entries=entries)

    def extra_repr(self) -> str:
        return (
            f'heads={self.heads}, {self.walk_settings}, asymmetric={self.asymmetric!r}, resample={self.resample!r}, '
            f'positive={self.positive}'
        )
