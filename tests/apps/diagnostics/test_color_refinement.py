from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
import torch_geometric.transforms as T
from graphs import GRAPH_NAMES, GRAPHS, no_edges, random_edges, ring, undirected
from grids import covering
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GINEConv, global_add_pool

from pyg_topomask import Graph
from pyg_topomask.apps.diagnostics.color_refinement import color_refinement, wl_equivalent
from pyg_topomask.nn import TopoGPSConv
from pyg_topomask.nn.kmip_attention import KMIPAttention

RING = [(node, (node + 1) % 6) for node in range(6)]
BRIDGED = [(0, 6), (6, 7), (7, 8), (8, 9), (9, 1)]
TWO_RINGS = [(node, (node + 1) % 5) for node in range(5)] + [(5 + node, 5 + (node + 1) % 5) for node in range(5)] + [(0, 5)]
#: Pairs that the 1-WL test does not tell apart although they differ.
PAIRS = {
    'hexagon, two triangles': (
        Data(edge_index=ring(6), num_nodes=6),
        Data(edge_index=torch.cat([ring(3), ring(3) + 3], 1), num_nodes=6),
    ),
    'decalin, bicyclopentyl': (
        Data(edge_index=undirected(RING + BRIDGED), num_nodes=10),
        Data(edge_index=undirected(TWO_RINGS), num_nodes=10),
    ),
}


def refined_by_hand(edges: np.ndarray, colors: list[Any], labels: list[Any], graph: np.ndarray | None) -> list[int]:
    """Straight from the definitions: with graphs, over all pairs of nodes of a graph (Def. 8)."""
    colors = list(colors)
    for _ in range(len(colors) + 1):
        new = []
        for v, color in enumerate(colors):
            into = [(repr(colors[u]), repr(e)) for (u, w), e in zip(edges.T, labels, strict=True) if w == v]
            if graph is not None:
                pairs = {(int(u), int(w)): e for (u, w), e in zip(edges.T, labels, strict=True)}
                members = np.flatnonzero(graph == graph[v])
                into = [(repr(colors[u]), repr(((u, v) in pairs, u == v, pairs.get((u, v))))) for u in members]
            new.append((color, tuple(sorted(into))))
        names = {key: number for number, key in enumerate(dict.fromkeys(new))}
        colors = [names[key] for key in new]
    return colors


def same_partition(first: Any, second: Any) -> bool:
    first, second = list(map(int, first)), list(map(int, second))
    return len(set(zip(first, second, strict=True))) == len(set(first)) == len(set(second))


@pytest.mark.parametrize(('whole', 'seed'), covering([False, True], range(6)))
def test_colors_are_those_of_the_definition(whole: bool, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    edges = torch.unique(random_edges(12, 14 + 2 * seed, seed), dim=1)
    batch = torch.arange(12) // 5
    edges = edges[:, batch[edges[0]] == batch[edges[1]]] if whole else edges
    colors = torch.randint(2, (12,), generator=generator)
    labels = torch.randint(2, (edges.size(1), 2), generator=generator)
    actual = color_refinement(edges, 12, colors, labels, batch if whole else None)
    expected = refined_by_hand(edges.numpy(), colors.tolist(), labels.tolist(), batch.numpy() if whole else None)
    assert same_partition(actual, expected)


@pytest.mark.parametrize('seed', range(4))
def test_colors_are_those_of_networkx(seed: int) -> None:
    graph = nx.gnm_random_graph(20, 24, seed=seed)
    nx.set_node_attributes(graph, 'alike', 'kind')
    edges = undirected(list(graph.edges))
    for steps in (1, 2, 20):
        hashes = nx.weisfeiler_lehman_subgraph_hashes(graph, node_attr='kind', iterations=steps)
        numbers = {value: number for number, value in enumerate({hashes[node][-1] for node in graph})}
        expected = [numbers[hashes[node][-1]] for node in range(20)]
        assert same_partition(color_refinement(edges, 20, max_iterations=steps), expected)


@pytest.mark.parametrize('seed', range(4))
def test_equivalence_is_that_of_networkx(seed: int) -> None:
    first, second = nx.random_regular_graph(3, 10, seed=seed), nx.gnm_random_graph(10, 15, seed=seed)
    for graph in (first, second):
        nx.set_node_attributes(graph, 'alike', 'kind')
    hashes = [nx.weisfeiler_lehman_graph_hash(graph, node_attr='kind', iterations=10) for graph in (first, second)]
    graphs = [Data(edge_index=undirected(list(graph.edges)), num_nodes=10) for graph in (first, second)]
    assert wl_equivalent(*graphs) == (hashes[0] == hashes[1])
    assert wl_equivalent(graphs[1], graphs[1])


def test_long_lists_of_neighbors() -> None:
    """Stars of 1 to 40 leaves: centres differ by the lengths of their lists alone."""
    sizes, first = torch.arange(1, 41), 40
    center = torch.repeat_interleave(torch.arange(40), sizes)
    leaves = first + torch.arange(center.numel())
    colors = color_refinement(torch.stack([leaves, center]), first + center.numel())
    assert colors[:40].unique().numel() == 40
    assert colors[40:].unique().numel() == 1


@pytest.mark.parametrize('pair', PAIRS)
def test_classic_pairs_are_equivalent_until_encodings_come(pair: str) -> None:
    first, second = (data.clone() for data in PAIRS[pair])
    assert wl_equivalent(first, second)
    graph = Batch.from_data_list([first, second])
    colors = color_refinement(graph.edge_index, graph.num_nodes, batch=graph.batch)
    assert torch.equal(*(color.sort().values for color in colors.split(first.num_nodes)))
    walk = T.AddRandomWalkPE(6)
    first, second = walk(first), walk(second)
    for data in (first, second):
        data.walks = (1e5 * data.random_walk_pe).round()
    assert not wl_equivalent(first, second, attrs=['walks'])


def test_whole_graphs_tell_loops_and_other_graphs() -> None:
    loops = Data(edge_index=torch.tensor([[0, 1], [0, 1]]), num_nodes=2)
    edge = Data(edge_index=undirected([(0, 1)]), num_nodes=2)
    assert wl_equivalent(loops, edge)
    both = Batch.from_data_list([loops, edge])
    assert color_refinement(both.edge_index, 4).unique().numel() == 1
    assert color_refinement(both.edge_index, 4, batch=both.batch).unique().numel() == 2


def test_colors_do_not_depend_on_the_order_of_the_nodes() -> None:
    edges, order = random_edges(15, 25, seed=3), torch.randperm(15)
    colors = color_refinement(edges, 15)
    assert torch.equal(color_refinement(order[edges], 15)[order], colors)


def test_edge_attributes_and_sizes_count() -> None:
    first, second = (Data(edge_index=ring(4), bond=torch.ones(8), num_nodes=4) for _ in range(2))
    second.bond = torch.tensor([1.0, 1, 1, 2, 1, 1, 1, 2])
    assert wl_equivalent(first, second)
    assert not wl_equivalent(first, second, edge_attrs=['bond'])
    assert not wl_equivalent(first, Data(edge_index=ring(5), num_nodes=5))
    assert not wl_equivalent(Data(edge_index=ring(3), num_nodes=3), Data(num_nodes=3))
    assert wl_equivalent(first, second, edge_attrs=['bond'], max_iterations=0)


def test_edges_of_adj_t_count() -> None:
    star = torch.tensor([[0, 0, 0, 0, 1, 2, 3, 1], [1, 2, 3, 1, 0, 0, 0, 0]])
    first, second = (
        T.ToSparseTensor(layout=torch.sparse_csr)(Data(edge_index=edges, num_nodes=4)) for edges in (ring(4), star)
    )
    assert not wl_equivalent(first, second)
    assert wl_equivalent(first, Data(edge_index=ring(4), num_nodes=4))


def test_large_whole_numbers_beside_fractions_are_compared_exactly() -> None:
    first, second = (Data(edge_index=no_edges(), num_nodes=1, id=torch.tensor([2**24 + i]), h=torch.ones(1)) for i in range(2))
    assert not wl_equivalent(first, second, ['id', 'h'])
    assert wl_equivalent(first, first.clone(), ['id', 'h'])


@pytest.mark.parametrize('name', GRAPH_NAMES)
def test_every_graph(name: str) -> None:
    graph = Graph.from_data(GRAPHS[name]())
    for batch in (None, torch.zeros(graph.num_nodes).long() if graph.batch is None else graph.batch):
        colors = color_refinement(graph.edge_index, graph.num_nodes, batch=batch)
        assert colors.shape == (graph.num_nodes,)
        again = color_refinement(graph.edge_index, graph.num_nodes, colors, batch=batch, max_iterations=1)
        assert same_partition(again, colors)


class GPS(torch.nn.Module):
    """Two layers of the k-MIP graph Transformer, and a sum over the nodes."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.embed = torch.nn.Linear(channels, 16)
        self.layers = torch.nn.ModuleList(
            TopoGPSConv(
                16,
                GINEConv(torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16)), edge_dim=1),
                attn=KMIPAttention(16, heads=2, k=4),
                norm=None,
            )
            for _ in range(2)
        )

    def forward(self, x: Tensor, data: Batch) -> Tensor:
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x, data.edge_index, data.batch, edge_attr=torch.ones(data.num_edges, 1), graph=Graph.from_data(data))
        return global_add_pool(x, data.batch)


def outputs(pair: str, encode: Any = None) -> Tensor:
    graphs = [data.clone() for data in PAIRS[pair]]
    for index, data in enumerate(graphs):
        encoded = data if encode is None else encode(data)
        names = [name for name in ('random_walk_pe', 'laplacian_eigenvector_pe') if name in encoded]
        x = encoded[names[0]] if names else torch.ones(data.num_nodes, 3)
        graphs[index] = Data(x=x, edge_index=data.edge_index)
    torch.manual_seed(0)
    batch = Batch.from_data_list(graphs)
    with torch.no_grad():
        return GPS(batch.x.size(1)).eval()(batch.x, batch)


@pytest.mark.parametrize('pair', PAIRS)
def test_gps_model_does_not_separate_the_pair_without_encodings(pair: str) -> None:
    first, second = outputs(pair)
    torch.testing.assert_close(first, second, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    'encode', [T.AddRandomWalkPE(6), T.AddLaplacianEigenvectorPE(3, is_undirected=True)], ids=['walks', 'laplacian']
)
@pytest.mark.parametrize('pair', PAIRS)
def test_gps_model_separates_the_pair_with_encodings(pair: str, encode: Any) -> None:
    first, second = outputs(pair, encode)
    assert (first - second).abs().max() > 0.01


def test_bad_arguments_are_named(subtests: pytest.Subtests) -> None:
    for argument, call in [
        ('edge_index', lambda: color_refinement(torch.zeros(3, 2).long(), 1)),
        ('edge_index', lambda: color_refinement(torch.tensor([[0], [2]]), 2)),
        ('colors', lambda: color_refinement(ring(3), 3, torch.zeros(4))),
        ('edge_colors', lambda: color_refinement(ring(3), 3, edge_colors=torch.zeros(3, 1))),
        ('batch', lambda: color_refinement(ring(3), 3, batch=torch.zeros(2).long())),
        ('batch', lambda: color_refinement(ring(3), 3, batch=torch.tensor([-1, -1, -1]))),
        ('batch', lambda: color_refinement(ring(3), 3, batch=torch.zeros(3))),
        ('max_iterations', lambda: color_refinement(ring(3), 3, max_iterations=-1)),
        ('attrs', lambda: wl_equivalent(*PAIRS['hexagon, two triangles'], attrs=['x'])),
        ('edge_attrs', lambda: wl_equivalent(*PAIRS['hexagon, two triangles'], edge_attrs=['edge_attr'])),
        ('attrs', lambda: wl_equivalent(*[Data(x=torch.zeros(2), edge_index=ring(3), num_nodes=3)] * 2, attrs=['x'])),
        ('attrs', lambda: wl_equivalent(*(Data(x=torch.ones(3, size), edge_index=ring(3)) for size in (1, 2)), attrs=['x'])),
    ]:
        with subtests.test(argument=argument), pytest.raises(ValueError, match=f'^{argument}: got'):
            call()


def test_attributes_of_nothing() -> None:
    no_edges = Data(edge_index=torch.empty(2, 0, dtype=torch.long), edge_attr=torch.empty(0, 3), num_nodes=2)
    assert wl_equivalent(no_edges, no_edges, edge_attrs=['edge_attr'])
    empty = Data(edge_index=torch.empty(2, 0, dtype=torch.long), x=torch.empty(0, 3), num_nodes=0)
    assert wl_equivalent(empty, empty, attrs=['x'])


def test_self_loops_of_one_color_are_no_edges_of_the_next() -> None:
    """Node 0 has a self-loop of the first color, node 1 an edge of the second, and node 2 nothing."""
    edges, edge_colors = torch.tensor([[0, 2], [0, 1]]), torch.tensor([0, 1])
    colors = color_refinement(edges, 3, edge_colors=edge_colors, batch=torch.zeros(3, dtype=torch.long), max_iterations=1)
    assert len(colors.unique()) == 3
