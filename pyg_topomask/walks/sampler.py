r"""Random walks from every node at once."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.graph import Graph
from pyg_topomask.sparse_pattern import stable_argsort
from pyg_topomask.walks.features import WalkFeatures
from pyg_topomask.walks.lengths import lengths_from_uniform
from pyg_topomask.walks.uniform import Uniform

__all__ = ['SAMPLERS', 'IIDSampler', 'sample_walks', 'walk']


class IIDSampler:
    r"""Independent walkers: lengths and hops are drawn independently for every walk."""

    def lengths(self, uniform: Uniform, walkers: Tensor, survival: Tensor) -> Tensor:
        r"""Returns the number of hops of each walker."""
        return lengths_from_uniform(uniform(0, walkers), survival)

    def hops(self, uniform: Uniform, step: int, walkers: Tensor, degree: Tensor) -> Tensor:
        r"""Returns which of its :obj:`degree` out-edges each walker takes."""
        # Below 1 by at least the unit of rounding, a number times the degree never rounds up to the degree.
        return (uniform(step, walkers) * degree).to(degree.dtype)


SAMPLERS: dict[str, type[IIDSampler]] = {'iid': IIDSampler}


def sample_walks(
    graph: Graph,
    num_walks: int,
    survival: Tensor,
    uniform: Uniform,
    normalization: str | None = 'sym',
    sampler: str = 'iid',
) -> WalkFeatures:
    r"""Walks from every node and weighs every visit by the inverse of its probability, from `"Linear Transformer Topological
    Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Eq. 9 and 10): a prefix of :math:`l` hops has
    the load :math:`\prod_{t=1}^{l} W_{\omega_t \omega_{t+1}} \, deg(\omega_t) \, / \, S_l`, where :math:`S_l` is the
    probability that a walk makes at least :math:`l` hops. A walk ends early at a node without out-edges.

    Args:
        graph (Graph): The graphs to walk on.
        num_walks (int): Walks per node :math:`n`.
        survival (torch.Tensor): :math:`S_0, \dots, S_L`, see :func:`~pyg_topomask.walks.geometric_survival`.
        uniform (callable): The source of random numbers.
        normalization (str, optional): How :math:`\mathbf{W}` is made of the edge weights, see
            :meth:`~pyg_topomask.graph.Graph.normalized_weight`. (default: :obj:`"sym"`)
        sampler (str): A name in :obj:`SAMPLERS`. (default: :obj:`"iid"`)

    Example:
        >>> from pyg_topomask.walks import generator_uniform, geometric_survival
        >>> graph = Graph.from_tensors(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> uniform = generator_uniform(torch.Generator().manual_seed(0), graph.device)
        >>> sample_walks(graph, 4, geometric_survival(0.0, 1), uniform).load
        tensor([1., 1., 1., 1.])
    """
    visits = walk(graph, num_walks, survival, uniform, normalization, sampler)
    return WalkFeatures.from_visits(*visits, graph.num_nodes, survival.numel() - 1)


def walk(
    graph: Graph,
    num_walks: int,
    survival: Tensor,
    uniform: Uniform,
    normalization: str | None = 'sym',
    sampler: str = 'iid',
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""Walks as :func:`sample_walks` does, and returns every visit as it was made: start, visited node, hops made so far, and
    load divided by :obj:`num_walks`. The arguments are those of :func:`sample_walks`.
    """
    draw = SAMPLERS[sampler]()
    device, num_walkers = graph.device, graph.num_nodes * num_walks
    index = torch.int32 if max(num_walkers, graph.num_edges) < 2**31 else torch.int64
    first, edges, factor = _transitions(graph, normalization, index)
    nodes = torch.arange(graph.num_nodes, device=device, dtype=index)
    walker = torch.arange(num_walkers, device=device, dtype=index)
    start = nodes.repeat_interleave(num_walks)
    length = draw.lengths(uniform, walker, survival).to(index)
    row_start, degree = first.index_select(0, start).unbind(1)
    load = factor.new_full((num_walkers,), 1.0 / num_walks)
    visits = [(nodes, nodes, factor.new_ones(graph.num_nodes))]
    for step in range(1, survival.numel()):
        going = (length >= step) & (degree > 0)
        if not going.all():
            kept = going.nonzero().squeeze(1)
            walker, start, length, load, row_start, degree = (
                tensor.index_select(0, kept) for tensor in (walker, start, length, load, row_start, degree)
            )
        if walker.numel() == 0:
            break
        edge = row_start + draw.hops(uniform, step, walker, degree)
        position, row_start, degree = edges.index_select(0, edge).unbind(1)
        load = (load * factor.index_select(0, edge)).mul_(float(survival[step - 1] / survival[step]))
        visits.append((start, position, load))
    start, visited, load = (torch.cat(column) for column in zip(*visits, strict=True))
    steps = torch.arange(len(visits), device=device, dtype=index)
    counts = torch.tensor([len(own[0]) for own in visits], device=device)
    return start, visited, steps.repeat_interleave(counts, output_size=load.numel()), load


@torch.no_grad()
def _transitions(graph: Graph, normalization: str | None, index: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    r"""Returns first out-edge and out-degree of each node, :obj:`[N, 2]`; of each edge, in the order of its source, the target
    with those two numbers, :obj:`[E, 3]`, so that one look-up makes a hop; and its load factor :math:`W_{ij} \, deg(i)`.
    """
    order = stable_argsort(graph.edge_index[0])
    source, target = graph.edge_index[:, order]
    degree = torch.bincount(source, minlength=graph.num_nodes)
    first = torch.stack([degree.cumsum(0) - degree, degree], dim=1).to(index)
    factor = graph.normalized_weight(normalization)[order] * degree[source].to(graph.weight.dtype)
    return first, torch.cat([target.to(index).unsqueeze(1), first[target]], dim=1), factor
