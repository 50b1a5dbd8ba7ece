r"""Walks node by node, for people who look at them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.shared import graph_of_data
from pyg_topomask.walks.settings import WalkSettings
from pyg_topomask.walks.transitions import Transitions
from pyg_topomask.walks.uniform import counter_uniform
from pyg_topomask.walks.walk import crossed, loads_of


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
