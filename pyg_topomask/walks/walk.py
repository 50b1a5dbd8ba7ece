r"""Random walks from every node at once, which may hand gradients on to edge weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.shared import graph_of_data
from pyg_topomask.graphs.sparse_pattern import stable_argsort
from pyg_topomask.machine.backend import kernel, uses_numba
from pyg_topomask.utils.checks import check_choice, checked_seed
from pyg_topomask.utils.functorch import is_exporting
from pyg_topomask.utils.random import Uniform, counter_uniform, draw_seed, seed_offset, seeds_of_ensembles
from pyg_topomask.walks.features import WalkFeatures
from pyg_topomask.walks.settings import SurvivalLength, WalkSettings
from pyg_topomask.walks.steps import SAMPLERS, Transitions, as_factor, has_parallel_edges, order_of_edges

# The settings of exported walks, beside the probabilities of their lengths.
_OPTIONS = ('num_walks', 'sampler', 'transition', 'normalization', 'flow', 'importance')
# The largest number of visits per chunk of start nodes.
_BUDGET = 2**25


def sample_walks(graph: Graph, settings: WalkSettings, seed: int, backend: str = 'auto') -> WalkFeatures:
    r"""Samples walks from every node and weights every visit by its inverse probability, from `"Linear Transformer Topological
    Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Eq. 9 and 10). A prefix of :math:`l` hops has
    the load :math:`\prod_{t=1}^{l} W_{\omega_t \omega_{t+1}} \, / \, p_{\omega_t \omega_{t+1}} \, / \, S_l`, where :math:`p`
    is the transition probability and :math:`S_l` the probability of at least :math:`l` hops. A walk ends early at a node
    whose row of :math:`\mathbf{W}` is empty. Start nodes are processed in chunks to bound the working memory.

    Args:
        graph (Graph): The graphs to walk on.
        settings (WalkSettings): The settings of the walks.
        seed (int): The walks of a graph depend only on this seed and the graph.
        backend (str): :obj:`"torch"`, :obj:`"numba"` (on a CPU with Numba installed; the same walks), or :obj:`"auto"` for the
            faster one available. (default: :obj:`"auto"`)

    Raises:
        ValueError: If the backend is unknown or does not support this device.
        ImportError: If :obj:`backend="numba"` and Numba is not installed.

    Example:
        >>> graph = Graph.from_tensors(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> sample_walks(graph, WalkSettings(num_walks=4, p_halt=0.0, max_walk_length=1), seed=0).load
        tensor([1., 1., 1., 1.])
    """
    if is_exporting():
        options = {name: getattr(settings, name) for name in _OPTIONS}
        text = json.dumps({**options, 'survival': settings.survival.tolist(), 'seed': int(seed)})
        start, visited, length, load = _drawn(graph.edge_index, graph.num_nodes, graph.edge_weight, graph.batch, text)
        return WalkFeatures(start, visited, length, load, graph.num_nodes, settings.max_walk_length)
    transitions = Transitions.of(graph, settings.normalization, settings.transition, settings.flow)
    start, visited, length, load = walks_from(
        range(graph.num_nodes), graph.segments.position, transitions, settings, seed, backend
    )
    return WalkFeatures(start, visited, length, load, graph.num_nodes, settings.max_walk_length)


def sample_ensembles(
    graph: Graph,
    settings: WalkSettings,
    seed: int | None,
    generator: torch.Generator | None = None,
    sample: Callable[[Graph, WalkSettings, int], WalkFeatures] = sample_walks,
) -> tuple[WalkFeatures, WalkFeatures]:
    r"""Samples walks and returns the features of the queries and of the keys, one object if they are the same. Without a seed,
    it is drawn from the generator.
    """
    seed = draw_seed(generator) if seed is None else checked_seed(seed=seed)
    of_queries, of_keys = seeds_of_ensembles(seed)
    query = sample(graph, settings, of_queries)
    return query, sample(graph, settings, of_keys) if settings.independent_ensembles else query


# A custom operator, so that an exported program draws the walks of the graph that it is given.
@torch.library.custom_op(
    'pyg_topomask::sample_walks',
    mutates_args=(),
    schema='(Tensor edge_index, SymInt num_nodes, Tensor? weight, Tensor? batch, str text) -> (Tensor, Tensor, Tensor, Tensor)',
)
def _drawn(
    edge_index: Tensor, num_nodes: int, weight: Tensor | None, batch: Tensor | None, text: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    options = json.loads(text)
    length, seed = SurvivalLength(tuple(options.pop('survival'))), options.pop('seed')
    settings = WalkSettings(p_halt=0.5, max_walk_length=length.longest, walk_length=length, **options)
    walks = sample_walks(Graph(edge_index, num_nodes, weight, batch), settings, seed)
    return walks.start.long(), walks.visited.long(), walks.length.long(), walks.load


@_drawn.register_fake
def _(edge_index: Tensor, num_nodes: int, weight: Tensor | None, *others: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    count = torch.library.get_ctx().new_dynamic_size()
    start, visited, length = (edge_index.new_empty(count, dtype=torch.long) for _ in range(3))
    dtype = torch.get_default_dtype() if weight is None else weight.dtype
    return start, visited, length, edge_index.new_empty(count, dtype=torch.promote_types(dtype, torch.float32))


def walks_from(
    nodes: range, position: Tensor, transitions: Transitions, settings: WalkSettings, seed: int, backend: str = 'auto'
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""Samples walks from some nodes, see :func:`sample_walks`, whose positions in their graphs are :obj:`[len(nodes)]`.
    Returns start, visited node, hops and load of the visits, in ascending order. Visits to the same node after the same number
    of hops are merged.
    """
    size, longest = transitions.first.size(0), settings.max_walk_length
    if _is_compiled(backend, transitions.first.device):
        start, visited, length, load = walk_compiled(nodes, position, transitions, settings, seed)
        return start, visited, length, load
    uniform = counter_uniform(seed, position, settings.num_walks, nodes.start)
    rows = max(1, _BUDGET // (1 + settings.num_walks * longest))
    parts = [nodes[begin : begin + rows] for begin in range(0, max(len(nodes), 1), rows)]
    chunks = [WalkFeatures.from_visits(*walk(transitions, settings, uniform, part), size, longest) for part in parts]
    start, visited, length, load = (
        torch.cat([getattr(chunk, name) for chunk in chunks]) for name in ('start', 'visited', 'length', 'load')
    )
    return start, visited, length, load


def _is_compiled(backend: str, device: torch.device) -> bool:
    check_choice(('auto', 'torch', 'numba'), backend=backend)
    if backend == 'torch':
        return False
    if backend == 'numba' and device.type != 'cpu':
        raise ArgumentError('backend', f'"numba" on {device}', '"torch"')
    available = uses_numba(device)
    if backend == 'numba' and not available:
        raise ImportError('backend="numba" needs Numba: install pyg_topomask with its extra [numba]')
    return available


@torch.compiler.disable  # torch.compile would read the kernels as Python
def walk_compiled(
    nodes: range, position: Tensor, transitions: Transitions, settings: WalkSettings, seed: int, merge: bool = True
) -> tuple[Tensor, ...]:
    r"""Samples walks as :func:`walks_from` by machine code. Without :obj:`merge`, returns every visit, and the edge before it,
    see :func:`~pyg_topomask.machine.walk.walk`.
    """
    compiled, sampler = kernel('walk.walk', transitions.first.device), SAMPLERS[settings.sampler]
    tables = transitions.first, transitions.edges, as_factor(transitions.edges), transitions.cumulative
    given = nodes, position, tables, settings.num_walks, settings.survival, seed_offset(seed)
    return compiled(*given, sampler.antithetic, sampler.coupled, sampler.repelling, settings.importance, merge)


def walk(
    transitions: Transitions, settings: WalkSettings, uniform: Uniform, nodes: range
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""Samples walks with the given random numbers, see :func:`sample_walks`. Returns every visit in the order of the walks:
    start, visited node, hops so far, and load divided by the number of walks.
    """
    start, visited, length, hops = crossed(transitions, settings, uniform, nodes)
    return start, visited, length, loads_of(hops, transitions.factor, settings, len(nodes))


#: The walkers before a hop that make it, :obj:`None` for all, the edge of each, and what the load is divided by for its length.
Hop = tuple[Tensor | None, Tensor, float]


def loads_of(hops: Sequence[Hop], factor: Tensor, settings: WalkSettings, num_nodes: int) -> Tensor:
    r"""Returns the loads of all visits of walks from some nodes, given the factor of each edge. Differentiable in it."""
    load = factor.new_full((num_nodes * settings.num_walks,), 1.0 / settings.num_walks)
    loads = [load.new_ones(num_nodes)]
    for kept, edge, ratio in hops:
        load = load if kept is None else load.index_select(0, kept)
        if settings.importance or factor.requires_grad:
            load = (load * factor.index_select(0, edge)).mul_(ratio)
        loads.append(load)
    return torch.cat(loads)


def _ratio(settings: WalkSettings, step: int) -> float:
    r"""Returns what the load of a walk is multiplied by at a hop, because of its length. Counts have no such factor."""
    survival = settings.survival
    return float(survival[step - 1] / survival[step]) if settings.importance else 1.0


def crossed(
    transitions: Transitions, settings: WalkSettings, uniform: Uniform, nodes: range
) -> tuple[Tensor, Tensor, Tensor, list[Hop]]:
    r"""Samples walks as :func:`walk`. Returns start, visited node and hops so far of every visit, and the hops."""
    sampler, survival, num_walks = SAMPLERS[settings.sampler](), settings.survival, settings.num_walks
    device, index = transitions.first.device, transitions.first.dtype
    wide = torch.int32 if transitions.first.size(0) * num_walks < 2**31 else torch.int64
    first = torch.arange(nodes.start, nodes.stop, device=device, dtype=index)
    walker = torch.arange(nodes.start * num_walks, nodes.stop * num_walks, device=device, dtype=wide)
    start = position = first.repeat_interleave(num_walks)
    length = sampler.lengths(uniform, walker, survival)
    row_start, degree = transitions.first.index_select(0, start).unbind(1)
    visits, hops = [(first, first)], list[Hop]()
    for step in range(1, survival.numel()):
        going = (length >= step) & (degree > 0)
        kept = None
        if not going.all():
            kept = going.nonzero().squeeze(1)
            walker, start, position, length, row_start, degree = (
                tensor.index_select(0, kept) for tensor in (walker, start, position, length, row_start, degree)
            )
        if walker.numel() == 0:
            break
        if transitions.cumulative is None:
            edge = row_start + sampler.hops(uniform, step, walker, start, position, degree)
        else:
            edge = transitions.choose(position, uniform(step, walker))
        position, row_start, degree, _ = transitions.edges.index_select(0, edge).unbind(1)
        visits.append((start, position))
        hops.append((kept, edge, _ratio(settings, step)))
    start, visited = (torch.cat(column) for column in zip(*visits, strict=True))
    steps = torch.arange(len(visits), device=device, dtype=index)
    counts = torch.tensor([len(column[0]) for column in visits], device=device)
    return start, visited, steps.repeat_interleave(counts, output_size=start.numel()), hops


def crossed_compiled(
    transitions: Transitions, settings: WalkSettings, position: Tensor, seed: int
) -> tuple[Tensor, Tensor, Tensor, list[Hop]]:
    r"""Samples the walks of :func:`crossed` from all nodes by machine code."""
    visits = walk_compiled(range(position.numel()), position, transitions, settings, seed, merge=False)
    order = stable_argsort(visits[2], settings.max_walk_length + 1)
    start, visited, length, _, edge = (column.index_select(0, order) for column in visits)
    first, *counts = length.bincount(minlength=1).tolist()
    walkers, going, hops = first * settings.num_walks, torch.arange(sum(counts[:1])), list[Hop]()
    for step, edges in enumerate(edge[first:].split(counts) if counts else (), start=1):
        hops.append((None if going.numel() == walkers else going, edges >> 1, _ratio(settings, step)))
        walkers, going = edges.numel(), (edges & 1).nonzero().squeeze(1)
    return start, visited, length, hops


class RandomWalks(NamedTuple):
    r"""What :func:`sample_random_walks` returns."""

    nodes: Tensor
    load: Tensor


@torch.no_grad()
def sample_random_walks(graph: Graph | Data, settings: WalkSettings, seed: int) -> RandomWalks:
    r"""Samples the walks of :func:`~pyg_topomask.walks.sample_walks` and returns them node by node. With the same settings and
    seed, they are the same walks, so that a feature is the mean of the loads of its visits:

    .. math::
        \phi_l(i)_v = \frac{1}{m} \sum_{w=1}^{m} \mathrm{load}_{i w l} \, [\mathrm{nodes}_{i w l} = v]

    A mask with one ensemble of walks, such as :obj:`GRFMask(seed=0)`, has those of the seed :obj:`2 * seed`. Memory is that of
    all visits, :math:`O(N m L)` for :math:`m` walks of up to :math:`L` hops.

    Args:
        graph (Graph or torch_geometric.data.Data): The graphs to walk on.
        settings (WalkSettings): The settings of the walks.
        seed (int): The walks of a graph depend only on this seed and the graph.

    Returns:
        (torch.Tensor, torch.Tensor): The nodes that each walk visits, :obj:`[N, m, L + 1]`, from its start on, int64, and the
        loads of its prefixes (Eq. 9 and 10 of `"Linear Transformer Topological Masking with Graph Random Features"
        <https://arxiv.org/abs/2410.03462>`_), of the same shape. After the end of a walk, the node is -1 and the load 0.

    Example:
        >>> graph = Graph.from_tensors(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> walks = sample_random_walks(graph, WalkSettings(num_walks=1, p_halt=0.0, max_walk_length=3), seed=0)
        >>> walks.nodes.squeeze(1).tolist()
        [[0, 1, 0, 1], [1, 0, 1, 0]]
    """
    graph = graph if isinstance(graph, Graph) else graph_of_data(graph)
    transitions = Transitions.of(graph, settings.normalization, settings.transition, settings.flow)
    size, walks, longest = graph.num_nodes, settings.num_walks, settings.max_walk_length
    uniform = counter_uniform(seed, graph.segments.position, walks)
    _, visited, length, hops = crossed(transitions, settings, uniform, range(size))
    load = loads_of(hops, transitions.factor, settings, size) * walks
    nodes = torch.full((size * walks, longest + 1), -1, device=graph.device)
    loads = load.new_zeros(nodes.shape)
    nodes[:, 0], loads[:, 0] = torch.arange(size, device=graph.device).repeat_interleave(walks), 1.0
    going = torch.arange(size * walks, device=graph.device)
    for step, (kept, *_) in enumerate(hops, start=1):
        going = going if kept is None else going[kept]
        made = length == step
        nodes[going, step], loads[going, step] = visited[made].long(), load[made]
    shape = size, walks, longest + 1
    return RandomWalks(nodes.view(shape), loads.view(shape))


@dataclass(frozen=True)
class CrossedEdges:
    r"""The walks of :func:`~pyg_topomask.walks.walk.sample_walks`, by the edges that they cross.

    Args:
        order (torch.Tensor): The edges in the order in which hops name them, :obj:`[E]`.
        inverse (torch.Tensor): The inverse probability of each edge in this order, :obj:`[E]`.
        hops (list): The edges that the walkers cross.
        features (WalkFeatures): The positions of the loads.
        slot (torch.Tensor): The place of each visit among them.
    """

    order: Tensor
    inverse: Tensor
    hops: Sequence[Hop]
    features: WalkFeatures
    slot: Tensor


def learned_walks(graph: Graph, settings: WalkSettings, seed: int, keep: bool = False) -> WalkFeatures:
    r"""Returns the walks of :func:`~pyg_topomask.walks.walk.sample_walks`, with loads that hand gradients on to the edge
    weights. The walks and the probabilities that drew them count as fixed, so that the gradient of a mask that is linear in
    the loads is unbiased. Graphs that differ in their weights alone may :obj:`keep` walks that do not depend on weights.
    """
    make = partial(_crossed, graph, settings, seed)
    fixed = keep and settings.transition == 'uniform' and not has_parallel_edges(graph)
    walks = graph.cached_of_edges(('walks', settings, seed), make) if fixed else make()
    weight = graph.normalized_weight(settings.normalization, settings.flow).to(graph.weight_dtype)
    weight = weight if settings.importance else weight.abs()  # counts have no sign
    load = loads_of(walks.hops, weight.index_select(0, walks.order) * walks.inverse, settings, graph.num_nodes)
    return walks.features.with_loads(load.new_zeros(walks.features.nnz).index_add(0, walks.slot, load))


@torch.no_grad()
def _crossed(graph: Graph, settings: WalkSettings, seed: int) -> CrossedEdges:
    transitions = Transitions.of(graph, settings.normalization, settings.transition, settings.flow)
    position, longest = graph.segments.position, settings.max_walk_length
    if uses_numba(graph.device):
        start, visited, length, hops = crossed_compiled(transitions, settings, position, seed)
    else:
        uniform = counter_uniform(seed, position, settings.num_walks, 0)
        start, visited, length, hops = crossed(transitions, settings, uniform, range(graph.num_nodes))
    ones = torch.ones(start.numel(), dtype=graph.weight_dtype, device=graph.device)
    features, slot = WalkFeatures.merged(start, visited, length, ones, graph.num_nodes, longest)
    _ = features.pattern  # copies share it
    order = order_of_edges(graph, settings.flow)
    if settings.transition == 'uniform':
        row = graph.row_and_col(settings.flow)[0].index_select(0, order)
        inverse = transitions.first[:, 1].index_select(0, row).to(graph.weight_dtype)
    else:
        weight = graph.normalized_weight(settings.normalization, settings.flow).to(graph.weight_dtype).index_select(0, order)
        inverse = transitions.factor.to(weight.dtype) / weight.masked_fill(weight == 0, 1.0)
    return CrossedEdges(order, inverse, hops, features, slot)
