"""The graphs that tests run over, degenerate ones first."""

import torch
from grids import by_day
from torch import Tensor
from torch_geometric.data import Batch, Data


def random_edges(num_nodes: int, num_edges: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(num_nodes, (2, num_edges), generator=generator)


def random_tree(size: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    node = torch.arange(1, size)
    edges = torch.stack([(torch.rand(size - 1, generator=generator) * node).long(), node])
    return torch.randperm(size, generator=generator)[edges]


def path(num_nodes: int) -> Tensor:
    return torch.stack([torch.arange(num_nodes - 1), torch.arange(1, num_nodes)])


def ring(num_nodes: int) -> Tensor:
    nodes = torch.arange(num_nodes)
    following = (nodes + 1) % num_nodes
    return torch.stack([torch.cat([nodes, following]), torch.cat([following, nodes])])


def star(leaves: int) -> Tensor:
    edges = torch.stack([torch.zeros(leaves, dtype=torch.long), torch.arange(1, leaves + 1)])
    return torch.cat([edges, edges.flip(0)], dim=1)


def undirected(pairs: list[tuple[int, int]]) -> Tensor:
    forwards = torch.tensor(pairs).t()
    return torch.cat([forwards, forwards.flip(0)], dim=1)


def weighted(edge_index: Tensor, num_nodes: int, seed: int, negative: bool = False) -> Data:
    generator = torch.Generator().manual_seed(seed)
    weight = torch.rand(edge_index.size(1), generator=generator, dtype=torch.float64) + 0.2
    if negative:
        weight = weight * (1 - 2 * (torch.arange(weight.numel()) % 3 == 0).double())
    return Data(edge_index=edge_index, edge_weight=weight, num_nodes=num_nodes)


def no_edges() -> Tensor:
    return torch.empty(2, 0, dtype=torch.long)


def small_graph() -> Data:
    """An undirected graph of six nodes with a triangle, a branch and different degrees."""
    return Data(edge_index=undirected([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (3, 5)]), num_nodes=6)


def small_digraph() -> Data:
    """A directed, weighted graph of six nodes with a dead end (node 5)."""
    edge_index = torch.tensor([[0, 0, 1, 1, 2, 3, 3, 4, 4], [1, 2, 2, 4, 0, 0, 4, 5, 3]])
    return weighted(edge_index, 6, seed=1, negative=True)


def mixed_graph() -> Data:
    """Directed, with weights of both signs, parallel edges, a repeated self-loop, a dead end and a node without edges."""
    edge_index = torch.cat([small_digraph().edge_index, torch.tensor([[0, 2, 2], [1, 2, 2]])], dim=1)
    return weighted(edge_index, 7, seed=4, negative=True)


def small_weighted_graph() -> Data:
    """An undirected graph whose weights are equal in both directions."""
    data = small_graph()
    half = torch.tensor([0.5, 2.0, 1.0, -0.7, 0.3, 1.5, 1.0], dtype=torch.float64)
    data.edge_weight = torch.cat([half, half])
    return data


def uneven_graphs() -> list[Data]:
    """Graphs of 1, 2, 30 and 7 nodes; the last node of the largest one is isolated."""
    return [
        weighted(no_edges(), 1, seed=0),
        weighted(undirected([(0, 1)]), 2, seed=1),
        weighted(random_edges(29, 60, seed=2), 30, seed=2),
        weighted(ring(7), 7, seed=3),
    ]


def with_features(graphs: list[Data], channels: int = 8) -> list[Data]:
    """The same graphs with random features, all in single precision."""
    for seed, data in enumerate(graphs):
        data.x = torch.randn(data.num_nodes, channels, generator=torch.Generator().manual_seed(seed))
        data.edge_weight = data.edge_weight.float()
    return graphs


def trailing_empty_graphs() -> list[Data]:
    empty = weighted(no_edges(), 0, seed=0)
    return [weighted(ring(3), 3, seed=0), empty, weighted(ring(4), 4, seed=1), empty]


GRAPHS = {
    'empty': lambda: Data(edge_index=no_edges(), num_nodes=0),
    'no_edges': lambda: Data(edge_index=no_edges(), num_nodes=4),
    'no_edge_index': lambda: Data(num_nodes=3),
    'one_node': lambda: Data(edge_index=no_edges(), num_nodes=1),
    'self_loop': lambda: Data(edge_index=torch.tensor([[0], [0]]), num_nodes=1),
    'disconnected': lambda: Data(edge_index=undirected([(0, 1), (1, 2), (3, 4)]), num_nodes=6),
    'undirected': small_graph,
    'directed': lambda: Data(edge_index=small_digraph().edge_index, num_nodes=6),
    'weighted': small_weighted_graph,
    'negative_weights': small_digraph,
    'zero_weights': lambda: Data(edge_index=ring(4), edge_weight=torch.zeros(8, dtype=torch.float64), num_nodes=4),
    'parallel_edges': lambda: weighted(torch.tensor([[0, 0, 0, 1, 2, 2], [1, 1, 2, 0, 2, 2]]), 3, seed=4),
    'mixed': mixed_graph,
    'batch': lambda: Batch.from_data_list(uneven_graphs()),
    'trailing_empty_graph': lambda: Batch.from_data_list(trailing_empty_graphs()),
}

#: By day, what differs in kind stands in one graph and in one batch. At night, each kind stands alone as well.
DAILY = ('empty', 'mixed', 'batch')
GRAPH_NAMES = by_day(GRAPHS, DAILY)
NAMES_WITH_NODES = by_day([name for name in GRAPHS if name != 'empty'], DAILY)
#: Of single graphs with edges, which a transform takes.
SINGLE_GRAPHS = by_day(sorted(set(GRAPHS) - {'batch', 'trailing_empty_graph', 'no_edge_index'}), DAILY)
