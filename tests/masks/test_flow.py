"""The direction of attention: PyG's by default, the other one on request."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from graphs import GRAPHS, small_digraph, small_graph
from oracles import grf_loads, hop_matrix, path_products, power_series, weight_matrix
from scipy.linalg import expm
from torch_geometric.data import Batch, Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import SimpleConv
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

from pyg_topomask import Graph, masks
from pyg_topomask.apps.diagnostics import compare_rows, load_constant, weight_by_hops
from pyg_topomask.masks import (
    AdjacencyMask,
    ExpanderMask,
    GRFMask,
    HeatKernelMask,
    HopMask,
    Mask,
    PowerSeriesMask,
    RWGNKMask,
    SinDegreeMask,
)
from pyg_topomask.nn import (
    AsymmetricGRFAttention,
    GRFAttention,
    GRFSoftmaxAttention,
    KMIPAttention,
    MaskedLinearAttention,
    MaskedSoftmaxAttention,
    RWGNKAttention,
    SinDegreeAttention,
)
from pyg_topomask.nn.models import GKAT
from pyg_topomask.ops import knn_graph
from pyg_topomask.transforms import AddGraphRandomFeatures, AddRandomWalkKernel, KNNGraph

FLOWS = ['source_to_target', 'target_to_source']


def equal_hops(data: Data, flow: str) -> np.ndarray:
    """The probabilities of the hops of a simple random walk."""
    bare = Data(edge_index=data.edge_index, num_nodes=data.num_nodes)
    return weight_matrix(bare, 'rw', flow)


def frequencies(data: Data, flow: str) -> np.ndarray:
    return power_series(equal_hops(data, flow), 0.5 ** np.arange(3))


def heat(data: Data, flow: str) -> np.ndarray:
    matrix = weight_matrix(data, None, flow)
    degree = np.abs(matrix).sum(0)
    return expm(0.5 * (matrix / np.where(degree > 0, degree, 1.0) - np.diag(degree > 0)))


F = torch.tensor([[1.0, 0.5, -0.25]])
#: Masks with a direction, and their matrices on a directed graph.
MASKS: dict[str, tuple[Callable[..., Mask], Callable[[Data, str], np.ndarray]]] = {
    **{
        f'adjacency_{normalization}': (
            lambda flow, normalization=normalization: AdjacencyMask(1, None, normalization, flow=flow),
            lambda data, flow, normalization=normalization: weight_matrix(data, normalization, flow),
        )
        for normalization in ('sym', 'rw', None)
    },
    'series': (
        lambda flow: PowerSeriesMask(order=3, normalization='rw', flow=flow),
        lambda data, flow: power_series(weight_matrix(data, 'rw', flow), 0.5 ** np.arange(4)),
    ),
    'path_weights': (
        lambda flow: HopMask(1, 2, F, flow=flow, path_weights='mean'),
        lambda data, flow: hop_matrix(F, data, flow)[0] * path_products(data, 2, np.mean, flow),
    ),
    'hop': (lambda flow: HopMask(1, 2, F, flow=flow), lambda data, flow: hop_matrix(F, data, flow)[0]),
    'heat': (lambda flow: HeatKernelMask(kind='random_walk_laplacian', lam=0.5, flow=flow), heat),
    'grf': (
        lambda flow: GRFMask(1, 4, 0.3, 2, asymmetric=True, flow=flow),
        lambda data, flow: np.einsum('l,lij->ij', 0.5 ** np.arange(3), grf_loads(data, 4, 0.3, 2, flow=flow)),
    ),
    'rwgnk': (
        lambda flow: RWGNKMask(num_walks=None, max_walk_length=2, lam=0.5, alpha=0.0, flow=flow),
        lambda data, flow: frequencies(data, flow) @ frequencies(data, flow).T,
    ),
    'expander': (
        lambda flow: ExpanderMask(degree=2, flow=flow),
        lambda data, flow: np.where(
            weight_matrix(data, None, flow) + ExpanderMask(degree=2, input_edges=False)(data).to_dense()[0].numpy() != 0, 1, 0
        ),
    ),
}


def matrix_of(mask: Mask, data: Data) -> np.ndarray:
    return mask.double()(data).to_dense()[0].detach().numpy()


@pytest.mark.parametrize('flow', FLOWS)
@pytest.mark.parametrize('name', MASKS)
def test_masks_have_the_direction_of_the_flow(name: str, flow: str) -> None:
    make, matrix = MASKS[name]
    mask, data = make(flow), small_digraph()
    assert inspect.signature(type(mask)).parameters['flow'].default == 'source_to_target'
    wanted, reverse = (matrix(data, direction) for direction in (FLOWS if flow == FLOWS[0] else FLOWS[::-1]))
    actual = matrix_of(mask, data)
    np.testing.assert_allclose(actual, wanted, rtol=1e-6, atol=1e-6)
    assert not np.allclose(actual, reverse, atol=1e-3)


def test_a_row_mean_is_the_mean_of_the_messages() -> None:
    data, x = GRAPHS['directed'](), torch.randn(6, 3)
    operator = AdjacencyMask(self_loop=None, normalization='rw')(data)
    expected = SimpleConv(aggr='mean')(x, data.edge_index)
    torch.testing.assert_close(operator.matmul(x.unsqueeze(1)).squeeze(1), expected)


# Explicit attention ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('flow', FLOWS)
@pytest.mark.parametrize(
    'make',
    [
        lambda flow: MaskedSoftmaxAttention(8, 2, AdjacencyMask(self_loop=None, flow=flow)),
        lambda flow: GRFSoftmaxAttention(8, 2, p_halt=0.0, max_walk_length=1, asymmetric=True, num_walks=200, flow=flow),
        lambda flow: AsymmetricGRFAttention(8, 2, p_halt=0.0, max_walk_length=1, num_walks=200, feature_map='elu', flow=flow),
        lambda flow: KMIPAttention(8, 2, k=1, extra_edges='input', flow=flow),
    ],
    ids=['softmax', 'grf_softmax', 'asymmetric', 'kmip'],
)
def test_explicit_layers_return_edges_from_sources_to_targets(make: Callable[[str], Any], flow: str) -> None:
    """Messages go from edge_index[0], which is attended to, to edge_index[1], as the edges of the graph do by default."""
    data, layer = GRAPHS['directed'](), make(flow)
    x = torch.randn(6, 8)
    out, (edge_index, alpha) = layer(x, data.edge_index, return_attention_weights=True)
    edges = data.edge_index if flow == 'source_to_target' else data.edge_index.flip(0)
    wanted = set(zip(*edges.tolist(), strict=True))
    assert wanted <= set(zip(*edge_index.tolist(), strict=True))
    if not isinstance(layer, KMIPAttention):
        loops = {(node, node) for node in range(6)}
        assert set(zip(*edge_index.tolist(), strict=True)) - loops == wanted
    value = layer.lin_v(x).view(6, 2, 4)
    received = torch.zeros(6, 2, 4).index_add(0, edge_index[1], alpha.unsqueeze(2) * value[edge_index[0]])
    torch.testing.assert_close(layer.lin_out(received.flatten(1)), out, rtol=1e-4, atol=1e-5)
    assert layer.flow == flow


# Sampled neighborhoods ------------------------------------------------------------------------------------------------


def random_digraph() -> Data:
    edge_index = torch.randint(60, (2, 150), generator=torch.Generator().manual_seed(0))
    return Data(x=torch.randn(60, 8), edge_index=edge_index, edge_weight=torch.rand(150) + 0.1, num_nodes=60)


def two_hops() -> MaskedLinearAttention:
    return MaskedLinearAttention(8, 2, PowerSeriesMask(2, 2, normalization='rw'), feature_map='elu')


def neighborhood_by_hand(data: Data, seeds: list[int]) -> Data:
    """A batch as NeighborLoader makes it: the seeds first, and edges from neighbors to the nodes that they were drawn for."""
    nodes, edges, frontier = [*seeds], [], [*seeds]
    for _ in range(2):
        reached = []
        for target in frontier:
            for edge in (data.edge_index[1] == target).nonzero().flatten().tolist():
                edges.append(edge)
                source = int(data.edge_index[0, edge])
                if source not in nodes:
                    nodes.append(source)
                    reached.append(source)
        frontier = reached
    place = {node: position for position, node in enumerate(nodes)}
    edge_index = torch.tensor([[place[int(end)] for end in data.edge_index[:, edge]] for edge in edges]).t()
    return Data(x=data.x[nodes], edge_index=edge_index, edge_weight=data.edge_weight[edges], num_nodes=len(nodes))


def neighborhood(data: Data, seeds: list[int]) -> Data:
    if not (WITH_PYG_LIB or WITH_TORCH_SPARSE):  # which NeighborLoader needs
        return neighborhood_by_hand(data, seeds)
    loader = NeighborLoader(data, [-1, -1], input_nodes=torch.tensor(seeds), batch_size=len(seeds))
    batch: Data = next(iter(loader))
    return batch


@pytest.mark.parametrize('sample', [neighborhood_by_hand, neighborhood])
def test_seeds_of_sampled_batches_attend_to_their_neighborhood(sample: Callable[[Data, list[int]], Data]) -> None:
    data, layer, seeds = random_digraph(), two_hops(), [3, 17, 41]
    batch = sample(data, seeds)
    assert batch.num_nodes < data.num_nodes
    whole = layer(data.x, data.edge_index, data.edge_weight)
    sampled = layer(batch.x, batch.edge_index, batch.edge_weight)
    torch.testing.assert_close(sampled[:3], whole[seeds])
    against = MaskedLinearAttention(8, 2, PowerSeriesMask(2, 2, normalization='rw', flow='target_to_source'), 'elu')
    against.load_state_dict(layer.state_dict())
    whole = against(data.x, data.edge_index, data.edge_weight)
    assert not torch.allclose(against(batch.x, batch.edge_index, batch.edge_weight)[:3], whole[seeds], atol=1e-3)


# What is shared and stored --------------------------------------------------------------------------------------------


@pytest.mark.parametrize('flow', FLOWS)
@pytest.mark.parametrize(
    ('transform', 'mask'), [(AddGraphRandomFeatures, GRFMask), (AddRandomWalkKernel, RWGNKMask)], ids=['grf', 'rwgnk']
)
def test_stored_walks_of_another_flow_are_refused(transform: type, mask: type[Mask], flow: str) -> None:
    data, opposite = small_digraph(), FLOWS[flow == FLOWS[0]]
    stored = transform(flow=flow)(data)
    for source in (stored, Batch.from_data_list([stored, stored])):
        expected = mask(flow=flow)(Batch.from_data_list([data, data]) if 'batch' in source else data)
        torch.testing.assert_close(mask(flow=flow)(source).to_dense(), expected.to_dense())
        with pytest.raises(ValueError, match=f"^data: got walks stored with .*flow='{flow}'.*; accepted: .*flow='{opposite}'"):
            mask(flow=opposite)(source)


def test_walks_in_the_form_of_another_version_are_refused() -> None:
    data = AddGraphRandomFeatures()(small_graph())
    data.grf_sizes = data.grf_sizes[:, :7]
    with pytest.raises(ValueError, match=r'^data: got walks in the form of another version.*run AddGraphRandomFeatures again'):
        GRFMask()(data)


# Diagnostics ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('flow', FLOWS)
def test_diagnostics_follow_the_flow_of_the_mask(flow: str) -> None:
    data, reverse = small_digraph(), small_digraph()
    reverse.edge_index = data.edge_index.flip(0)
    mask, reverse_mask = (GRFMask(1, 4, 0.3, 2, flow=direction) for direction in (flow, FLOWS[flow == FLOWS[0]]))
    rows = torch.arange(6)
    for actual, expected in zip(compare_rows(mask, data, rows), compare_rows(reverse_mask, reverse, rows), strict=True):
        for one, two in zip(actual, expected, strict=True):
            torch.testing.assert_close(one, two)
    for walkwise in (False, True):
        torch.testing.assert_close(load_constant(mask, data, walkwise), load_constant(reverse_mask, reverse, walkwise))
    adjacency = AdjacencyMask(self_loop=None, flow=flow)
    shares = torch.tensor([[0.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(weight_by_hops(adjacency, data, 2), shares)
    torch.testing.assert_close(weight_by_hops(adjacency.T, data, 2, flow=reverse_mask.flow), shares)


# Arguments ------------------------------------------------------------------------------------------------------------


OTHERS: list[Callable[[str], object]] = [
    *(make for make, _ in MASKS.values()),
    lambda flow: SinDegreeMask(flow=flow),
    lambda flow: GRFAttention(8, flow=flow),
    lambda flow: AsymmetricGRFAttention(8, flow=flow),
    lambda flow: GRFSoftmaxAttention(8, flow=flow),
    lambda flow: RWGNKAttention(8, flow=flow),
    lambda flow: SinDegreeAttention(8, flow=flow),
    lambda flow: KMIPAttention(8, flow=flow),
    lambda flow: GKAT(4, 4, 2, flow=flow),
    lambda flow: AddGraphRandomFeatures(flow=flow),
    lambda flow: AddRandomWalkKernel(flow=flow),
    lambda flow: KNNGraph(flow=flow),
    lambda flow: knn_graph(torch.rand(3, 2), 1, flow=flow),
    lambda flow: Graph.from_data(small_graph()).row_and_col(flow),
]


def test_other_flows_are_named(subtests: pytest.Subtests) -> None:
    for place, make in enumerate(OTHERS):
        for flow in FLOWS:
            make(flow)
        for flow in ('out', '', 1, True):
            with (
                subtests.test(place=place),
                pytest.raises(ValueError, match=rf'^flow: got {flow!r}; accepted: source_to_target, target_to_source'),
            ):
                make(flow)


def test_composed_masks_have_the_flow_of_their_masks() -> None:
    forwards, backwards = masks.AdjacencyMask(), AdjacencyMask(flow='target_to_source')
    assert (2.0 * backwards).flow == (backwards + masks.PackingMask()).flow == forwards.T.flow == 'target_to_source'
    assert backwards.T.flow == (forwards + forwards).flow == 'source_to_target'
    assert (forwards + backwards).flow is None
    assert (masks.PackingMask() + masks.PackingMask()).T.flow is None


def test_hops_are_counted_in_the_direction_of_a_composed_mask() -> None:
    path = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    for mask in (masks.AdjacencyMask().T, 2.0 * masks.AdjacencyMask(flow='target_to_source'), masks.AdjacencyMask()):
        shares = weight_by_hops(mask, path, max_hops=1)
        torch.testing.assert_close(shares.detach(), torch.tensor([[2 / 3, 1 / 3, 0.0]]))
