import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from dense_attention import assert_dense_attention
from graphs import no_edges, path, random_tree, ring, undirected
from grids import at_night, by_day, covering
from numpy.typing import NDArray
from oracles import as_numpy, masked_attention
from scipy.sparse.csgraph import shortest_path
from torch import Tensor
from torch._dynamo.testing import CompileCounter
from torch_geometric.data import Batch, Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import LowRankMask, PackingMask
from pyg_topomask.masks.tree import TreeMask
from pyg_topomask.nn import MaskedLinearAttention
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.testing import assert_mask_operator
from pyg_topomask.transforms import AddForest, AddSpanningForest

Array = NDArray[Any]
A, B = torch.tensor([-0.5, -2.0]), torch.tensor([0.25, -1.0])
UNIT = 0.3
F = torch.tensor([[1.0, -0.5, 0.25, 2.0], [0.3, 0.0, 1.5, -1.0]])


def lengths(edge_index: Tensor, size: int, seed: int = 0) -> Data:
    weight = torch.rand(edge_index.size(1), generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.1
    return Data(edge_index=edge_index, edge_weight=weight, num_nodes=size)


def forests() -> list[Data]:
    """Forests of 1, 2, 15 (two trees and an isolated node) and 6 nodes (a star with edges that point inwards)."""
    star = torch.stack([torch.arange(1, 6), torch.zeros(5, dtype=torch.long)])
    return [
        lengths(no_edges(), 1),
        lengths(undirected([(1, 0)]), 2),
        lengths(torch.cat([random_tree(7), random_tree(7, 1) + 7], dim=1), 15),
        lengths(star, 6),
    ]


def messy() -> Data:
    """Edges in one direction or both, of different lengths, parallel ones, self-loops, lengths of 0."""
    edges = torch.tensor([[0, 1, 1, 2, 2, 3, 4, 4, 5], [1, 0, 2, 3, 3, 3, 2, 5, 4]])
    weight = torch.tensor([0.5, 0.75, 0.0, 2.0, 1.0, 7.0, 0.25, 1.5, 1.5], dtype=torch.float64)
    return Data(edge_index=edges, edge_weight=weight, num_nodes=7)


GRAPHS: dict[str, Callable[[], Data]] = {
    'empty': lambda: Data(edge_index=no_edges(), num_nodes=0),
    'no_edge_index': lambda: Data(num_nodes=3),
    'one_node': lambda: Data(edge_index=no_edges(), num_nodes=1),
    'unweighted': lambda: Data(edge_index=random_tree(14), num_nodes=14),
    'weighted': lambda: lengths(random_tree(14), 14),
    'path': lambda: lengths(path(12), 12),
    'messy': messy,
    'batch': lambda: Batch.from_data_list(forests()),
    'trailing_empty_graph': lambda: Batch.from_data_list(
        [lengths(random_tree(5), 5), lengths(no_edges(), 0), lengths(random_tree(3), 3), lengths(no_edges(), 0)]
    ),
}


NAMES = by_day(GRAPHS, ['empty', 'weighted', 'messy', 'batch'])


def distances(data: Data, weighted: bool) -> Array:
    """The shortest paths, through the shortest of parallel edges."""
    edges, weight, size, _ = as_numpy(data)
    if size == 0:
        return np.zeros((0, 0))
    matrix = np.full((size, size), np.inf)
    for (i, j), w in zip(edges.T, weight if weighted else np.ones_like(weight), strict=True):
        matrix[i, j] = matrix[j, i] = min(matrix[i, j], w)
    if not np.isfinite(matrix).any():
        return np.where(np.eye(size), 0, np.inf)
    # As a masked array, whose zeros are edges.
    return shortest_path(np.ma.masked_invalid(matrix), directed=False)


def exp_matrix(data: Data) -> Array:
    a, b = A.double().numpy()[:, None, None], B.double().numpy()[:, None, None]
    return np.exp(a * distances(data, True) + b)


def rounded(data: Data) -> Data:
    """Lengths in units of 0.3."""
    if data.edge_index is None:
        return data
    weight = torch.ones(data.num_edges, dtype=torch.float64) if data.edge_weight is None else data.edge_weight.double()
    return Data(
        edge_index=data.edge_index, edge_weight=torch.from_numpy(np.rint(weight.numpy() / UNIT)), num_nodes=data.num_nodes
    )


def distance_matrix(data: Data, f: Tensor = F, weighted: bool = False) -> Array:
    distance = distances(data, weighted)
    joined = np.isfinite(distance)
    place = np.minimum(np.where(joined, distance, 0).astype(int), f.size(1) - 1)
    return f.double().numpy()[:, place] * joined


CASES: dict[str, tuple[Callable[[], TreeMask], Callable[[Data], Array]]] = {
    'exp': (lambda: TreeMask(2, a=A, b=B), exp_matrix),
    'rings': (lambda: TreeMask(2, 'distance', max_distance=3, f=F, method='rings'), distance_matrix),
    'fft': (lambda: TreeMask(2, 'distance', max_distance=3, f=F, method='fft'), distance_matrix),
    'units': (
        lambda: TreeMask(2, 'distance', max_distance=3, f=F, unit=UNIT),
        lambda data: distance_matrix(rounded(data), weighted=True),
    ),
}


@pytest.mark.parametrize('graph', NAMES)
@pytest.mark.parametrize('case', CASES)
def test_mask_is_the_matrix_of_its_equation(case: str, graph: str) -> None:
    data, (make, matrix) = GRAPHS[graph](), CASES[case]
    actual = make().double()(data).to_dense().detach().numpy()
    assert actual.shape == (2, data.num_nodes, data.num_nodes)
    np.testing.assert_allclose(actual, matrix(data), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(('case', 'graph'), covering(CASES, NAMES))
def test_operator_behaves_as_its_matrix(case: str, graph: str) -> None:
    assert_mask_operator(CASES[case][0](), GRAPHS[graph]())


@pytest.mark.parametrize('max_distance', [0, 1, 30])
@pytest.mark.parametrize('method', ['rings', 'fft'])
def test_functions_of_any_length(method: str, max_distance: int) -> None:
    f = torch.randn(1, max_distance + 1, dtype=torch.float64)
    mask = TreeMask(1, 'distance', max_distance=max_distance, f=f, method=method).double()
    data = GRAPHS['batch']()
    np.testing.assert_allclose(mask(data).to_dense().detach().numpy(), distance_matrix(data, f), atol=1e-12)
    assert_mask_operator(mask, GRAPHS['messy']())


@pytest.mark.parametrize('stored', [False, True])
@pytest.mark.parametrize('case', CASES)
def test_batches_are_block_diagonal_in_the_masks_of_their_graphs(case: str, stored: bool) -> None:
    mask, graphs = CASES[case][0]().double(), forests()
    expected = [mask(data).to_dense() for data in graphs]
    graphs = [AddForest()(data) for data in graphs] if stored else graphs
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 2, 0]):
        actual = mask(Batch.from_data_list([graphs[index] for index in order])).to_dense()
        for head in range(2):
            torch.testing.assert_close(actual[head], torch.block_diag(*(expected[index][head] for index in order)))


@pytest.mark.parametrize('route', ['features', 'blocks'])
@pytest.mark.parametrize('case', CASES)
def test_masked_attention_and_its_gradients_against_the_dense_matrix(case: str, route: str) -> None:
    data, mask = GRAPHS['batch'](), CASES[case][0]().double()
    if mask.kind == 'distance':  # positive, so that no denominator vanishes
        with torch.no_grad():
            mask.raw_f.abs_().add_(0.1)
    assert_dense_attention(mask(data), dense_mask(mask, data), list(mask.parameters()), route=route)


@pytest.mark.parametrize('kind', ['exp', 'distance'])
def test_blocks_of_several_spanning_forests(kind: str) -> None:
    add = AddSpanningForest('random', num_trees=3)
    data = Batch.from_data_list([add(Data(edge_index=ring(size), num_nodes=size)) for size in (3, 8, 5)])
    operator = TreeMask(2, kind).double()(data)
    assert operator.blocks is not None
    q, k, v = torch.rand(3, data.num_nodes, 2, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    out = masked_linear_attention(q, k, v, operator, 'blocks').detach().numpy()
    np.testing.assert_allclose(out, masked_attention(q.numpy(), k.numpy(), v.numpy(), operator.to_dense().detach().numpy()))


@pytest.mark.parametrize('b', [20.0, -30.0])
def test_blocks_in_half_precision_do_not_overflow(b: float) -> None:
    data = Batch.from_data_list([Data(edge_index=path(20), num_nodes=20)] * 8)
    layer, x = MaskedLinearAttention(16, 2, TreeMask(2, b=b)), torch.randn(160, 16)
    expected = layer(x, data.edge_index, batch=data.batch).half()
    for layer.route in ('blocks', 'features'):
        out = layer.half()(x.half(), data.edge_index, batch=data.batch)
        torch.testing.assert_close(out, expected, atol=5e-3, rtol=0)


@pytest.mark.parametrize('kind', [at_night('exp'), 'distance'])
def test_trees_of_other_depths_are_not_compiled_again(kind: str) -> None:
    torch._dynamo.reset()
    counter, layer = CompileCounter(), MaskedLinearAttention(8, 2, TreeMask(2, kind))
    compiled, counts = torch.compile(layer, backend=counter), []
    with torch.no_grad():
        for size in range(5, 11):
            graph = Graph.from_data(Batch.from_data_list([Data(edge_index=path(size), num_nodes=size)] * 2))
            x = torch.rand(2 * size, 8)
            torch.testing.assert_close(layer(x, graph=graph), compiled(x, graph=graph))
            counts.append(counter.frame_count)
    assert counts[2] == counts[-1]


def dense_mask(mask: TreeMask, data: Data) -> Tensor:
    weighted = mask.kind == 'exp' or mask.unit is not None
    distance = torch.from_numpy(distances(data if mask.unit is None else rounded(data), weighted))
    joined = distance.isfinite()
    if mask.kind == 'exp':
        return (mask.a.view(-1, 1, 1) * distance.masked_fill(~joined, 0) + mask.b.view(-1, 1, 1)).exp() * joined
    return mask.f[:, distance.masked_fill(~joined, 0).long().clamp(max=mask.max_distance)] * joined


@pytest.mark.parametrize('learnable', [True, False])
def test_gradients_reach_the_edge_weights(learnable: bool) -> None:
    data, x = messy(), torch.randn(7, 2, 2, dtype=torch.float64)
    mask = TreeMask(2, a=A, b=B, learnable=learnable).double()

    def products(weight: Tensor) -> tuple[Tensor, Tensor]:
        operator = mask(Graph.from_tensors(data.edge_index, 7, weight))
        return operator.matmul(x), masked_linear_attention(x.abs(), x.abs(), x, operator, 'features')

    weight = data.edge_weight + torch.tensor([0, 0, 0.1, 0, 0, 0, 0, 0, 0.2])  # away from ties, and from 0
    assert torch.autograd.gradcheck(products, weight.requires_grad_())


def test_parameters_are_those_given_and_a_stays_below_zero() -> None:
    mask = TreeMask(3, a=torch.tensor([-1e-6, -1.0, -100.0]), b=0.5)
    torch.testing.assert_close(mask.a, torch.tensor([-1e-6, -1.0, -100.0]))
    assert mask.b.tolist() == [0.5, 0.5, 0.5]
    with torch.no_grad():
        mask.raw_a.fill_(-1.0)
    assert (mask.a < 0).all()
    mask.reset_parameters()
    torch.testing.assert_close(mask.a, torch.tensor([-1e-6, -1.0, -100.0]))
    assert TreeMask(kind='distance', max_distance=2).f.tolist() == [[1.0, 0.5, 0.25]]
    assert TreeMask(kind='distance', max_distance=2, positive=False).raw_f.tolist() == [[1.0, 0.5, 0.25]]
    assert TreeMask(kind='distance', max_distance=1, f=torch.tensor([1.0, 0.0])).raw_f.tolist() == [[1.0, 0.0]]
    assert not list(TreeMask(learnable=False).parameters())


def test_algebra() -> None:
    left, right = torch.randn(7, 2, 2, dtype=torch.float64), torch.randn(7, 2, 2, dtype=torch.float64)
    product = TreeMask(2, a=A, b=B) * LowRankMask(2, left, right)
    assert_mask_operator(product + 2.0 * TreeMask(2, 'distance', max_distance=3, f=F).T + PackingMask(), messy())


def test_large_forests_are_never_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MaskOperator, 'to_dense', lambda self: pytest.fail('formed the matrix'))
    size = 200_000
    small = Batch.from_data_list([Data(edge_index=random_tree(20, seed), num_nodes=20) for seed in range(5000)])
    near = torch.exp(-3.0 * torch.arange(9))  # nothing is left farther away
    masks = [TreeMask(a=-3.0), TreeMask(kind='distance', max_distance=8, f=near)]
    for data in (Data(edge_index=path(size), num_nodes=size), Data(edge_index=random_tree(size), num_nodes=size), small):
        graph = Graph.from_data(data)
        x = torch.rand(graph.num_nodes, 1, 1, requires_grad=True)
        totals = []
        for mask in masks:
            out = masked_linear_attention(x, x, x, mask(graph))
            out.sum().backward()
            assert out.isfinite().all()
            assert x.grad.isfinite().all()
            totals.append(out.detach())
        torch.testing.assert_close(*totals, rtol=0, atol=1e-3)  # transforms err relative to the largest numbers


def test_fft_on_many_nodes() -> None:
    """Ones everywhere count the nodes of each tree."""
    sizes = [30_000, 1, 500]
    batch = Batch.from_data_list([Data(edge_index=random_tree(size), num_nodes=size) for size in sizes])
    mask = TreeMask(kind='distance', max_distance=4, f=torch.ones(5), method='fft')
    out = mask(batch).matmul(torch.ones(batch.num_nodes, 1, 1)).flatten()
    torch.testing.assert_close(out, torch.tensor(sizes).repeat_interleave(torch.tensor(sizes)).float())


# Bad input ------------------------------------------------------------------------------------------------------------


def test_bad_arguments(subtests: pytest.Subtests) -> None:
    for arguments, message in [
        ({'kind': 'gauss'}, r"^kind: got 'gauss'; accepted: exp, distance"),
        ({'method': 'dense'}, r"^method: got 'dense'"),
        ({'a': torch.tensor([-1.0, -2.0])}, r'^a: got shape \(2,\); accepted: a number and \[1\], one for each head'),
        ({'b': float('nan')}, r'^b: got nan'),
        ({'b': 100.0}, r'^b: got \[100\.0\]; accepted: numbers from -40\.0 to 40\.0'),
        ({'f': torch.ones(17)}, r'^f: got a tensor for kind="exp"'),
        ({'kind': 'distance', 'f': torch.ones(3)}, r'^f: got shape \(3,\); accepted: \[17\] .* each distance from 0'),
        ({'kind': 'distance', 'a': -5.0}, r'^a: got -5\.0 for kind="distance"; accepted: -1\.0, or kind="exp"'),
        ({'kind': 'distance', 'b': torch.ones(1)}, r'^b: got a tensor for kind="distance"'),
        ({'max_distance': 3}, r'^max_distance: got 3 for kind="exp"; accepted: 16, or kind="distance"'),
        ({'method': 'fft'}, r"^method: got 'fft' for kind=\"exp\""),
        ({'unit': 0.5}, r'^unit: got 0\.5 for kind="exp"; accepted: None, or kind="distance"'),
        ({'kind': 'distance', 'unit': 0.0}, r'^unit: got 0\.0; accepted: finite numbers above 0'),
        (
            {'kind': 'distance', 'unit': 1.0, 'method': 'rings'},
            r"^method: got 'rings' with a unit; accepted: \['auto'",
        ),
        ({'max_distance': -1}, r'^max_distance: got -1; accepted: whole numbers from 0'),
    ]:
        with subtests.test(arguments=arguments, message=message), pytest.raises(ValueError, match=message):
            TreeMask(**arguments)


@pytest.mark.parametrize('kind', ['exp', 'distance'])
def test_a_cycle_is_refused_and_named(kind: str) -> None:
    batch = Batch.from_data_list([*forests(), lengths(ring(3), 3)])
    with pytest.raises(ValueError, match=r'^edge_index: got a graph with a cycle through the nodes \[2\d, 2\d, 2\d\];'):
        TreeMask(kind=kind)(batch)


def test_negative_lengths_are_refused_where_lengths_count() -> None:
    data = messy()
    data.edge_weight[2] = -0.5
    with pytest.raises(ValueError, match=r'^edge_weight: got -0\.5 for kind="exp"; accepted: lengths from 0'):
        TreeMask()(data)
    with pytest.raises(ValueError, match=r'^edge_weight: got -0\.5 for unit=2\.0'):
        TreeMask(kind='distance', unit=2.0)(data)
    assert TreeMask(kind='distance')(data).to_dense().isfinite().all()


def test_units_that_are_too_small_are_refused() -> None:
    with pytest.raises(ValueError, match=r'^unit: got 1e-12 for trees [\d,]+ units deep; accepted: .* up to 1,048,576'):
        TreeMask(kind='distance', unit=1e-12)(messy())
    with pytest.raises(ValueError, match=r'^unit: got 1\.0 for trees 1,048,577 units deep; accepted: .* up to 1,048,576'):
        TreeMask(kind='distance', unit=1.0)(Data(edge_index=path(2), edge_weight=torch.tensor([2.0**20 + 1]), num_nodes=2))


def test_masks_of_different_units_share_a_state() -> None:
    graph, f = Graph.from_data(messy()), torch.rand(1, 9, dtype=torch.float64)
    for unit in (0.25, 0.5, 0.25):
        mask = TreeMask(kind='distance', max_distance=8, f=f, unit=unit).double()
        whole = messy().update({'edge_weight': torch.from_numpy(np.rint(messy().edge_weight.numpy() / unit))})
        np.testing.assert_allclose(mask(graph).to_dense().detach().numpy(), distance_matrix(whole, f, True), atol=1e-12)


def test_masks_of_other_functions_share_the_distances() -> None:
    graph = Graph.from_data(GRAPHS['batch']())
    graph.edge_weight = None
    x = torch.rand(3, graph.num_nodes, 2, 3, generator=torch.Generator().manual_seed(0))
    for options in ({}, {'kind': 'distance', 'max_distance': 2}, {'kind': 'distance'}):
        operator = TreeMask(2, **options)(graph)
        out, expected = (masked_linear_attention(*x, operator, route) for route in ('blocks', 'features'))
        torch.testing.assert_close(out, expected)


@pytest.mark.parametrize('kind', ['exp', 'distance'])
def test_deep_trees_have_no_blocks(kind: str) -> None:
    size = 2**13 + 2
    path = Data(edge_index=torch.stack([torch.arange(size - 1), torch.arange(1, size)]), num_nodes=size)
    batch = Batch.from_data_list([path, Data(edge_index=no_edges(), num_nodes=1)])
    assert TreeMask(kind=kind)(batch).blocks is None


def test_steep_functions_begin_where_they_are_given() -> None:
    mask = TreeMask(2, a=torch.tensor([-100.0, -25.0]))
    torch.testing.assert_close(mask.a.detach(), torch.tensor([-100.0, -25.0]))
    assert mask(GRAPHS['unweighted']()).to_dense().isfinite().all()


def test_growth_is_refused_at_the_limit() -> None:
    size = 12
    path = Data(edge_index=torch.stack([torch.arange(size - 1), torch.arange(1, size)]), num_nodes=size)
    limit = math.log(1e-3 / torch.finfo(torch.float64).eps) / 2 / (size - 1)
    expected = torch.exp(0.99 * limit * (torch.arange(size).view(-1, 1) - torch.arange(size)).abs())
    torch.testing.assert_close(TreeMask(a=0.99 * limit, learnable=False)(path).to_dense()[0], expected, rtol=1e-3, atol=0)
    with pytest.raises(ValueError, match=r'^a: got '):
        TreeMask(a=1.01 * limit, learnable=False)(path)


def test_growth_is_refused_where_rounding_would_show() -> None:
    path = Data(edge_index=torch.stack([torch.arange(199), torch.arange(1, 200)]), num_nodes=200)
    for a in (0.5, 1e3):
        with pytest.raises(ValueError, match=r'^a: got .* for trees with paths of length 199; .* up to 0\.0\d+, or below 0'):
            TreeMask(a=a, learnable=False)(path)
    short = GRAPHS['unweighted']()
    mask = TreeMask(2, a=torch.tensor([0.4, 0.0]), learnable=False).double()
    expected = np.exp(np.array([0.4, 0.0])[:, None, None] * distances(short, True))
    np.testing.assert_allclose(mask(short).to_dense().numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(('tree', 'a'), [('path', 0.048), ('random', 0.5)])
def test_growth_on_trees_of_hundreds_of_nodes(tree: str, a: float) -> None:
    """In float32, with entries up to a million."""
    size, generator = 300, torch.Generator().manual_seed(0)
    edges = path(size) if tree == 'path' else random_tree(size, seed=0)
    data = Data(edge_index=edges, num_nodes=size)
    matrix, mask = torch.from_numpy(np.exp(a * distances(data, False))), TreeMask(a=a)(data)
    assert matrix.max() > 100
    torch.testing.assert_close(mask.to_dense()[0], matrix.float(), rtol=1e-3, atol=0)
    q, k, v = (torch.rand(size, 1, 3, generator=generator) for _ in range(3))
    expected = masked_attention(q.numpy(), k.numpy(), v.numpy(), matrix.unsqueeze(0).numpy())
    np.testing.assert_allclose(masked_linear_attention(q, k, v, mask).detach(), expected, rtol=1e-3)


def test_a_of_either_sign_is_learned() -> None:
    data = Data(edge_index=path(8), num_nodes=8)
    mask, wanted = TreeMask(2, a=torch.tensor([0.2, -0.1])), torch.tensor([-0.1, 0.2])
    torch.testing.assert_close(mask.a.detach(), torch.tensor([0.2, -0.1]))
    matrix = torch.exp(wanted.view(2, 1, 1) * torch.from_numpy(distances(data, False)))
    optimizer = torch.optim.Adam(mask.parameters(), lr=0.02)
    for _ in range(200):
        optimizer.zero_grad()
        (mask(data).to_dense() - matrix).square().sum().backward()
        optimizer.step()
    torch.testing.assert_close(mask.a.detach(), wanted, rtol=0, atol=0.02)
    other = TreeMask(2)
    other.load_state_dict(mask.state_dict())
    assert torch.equal(other(data).to_dense(), mask(data).to_dense())
    other.reset_parameters()
    torch.testing.assert_close(other.a.detach(), torch.tensor([-1.0, -1.0]))
    with torch.no_grad():
        mask.raw_a.fill_(3.0)
    with pytest.raises(ValueError, match=r'^a: got 3 for trees with paths of length 7; accepted: numbers up to 2\.0'):
        mask(data)


def test_growth_in_half_precision_has_the_limit_of_single_precision() -> None:
    path = Data(edge_index=torch.stack([torch.arange(9), torch.arange(1, 10)]), num_nodes=10)
    mask = TreeMask(a=0.125, learnable=False)
    torch.testing.assert_close(mask.bfloat16()(path).to_dense().float(), mask.float()(path).to_dense(), rtol=1e-2, atol=0)


def test_empty_batch_members() -> None:
    batch = Batch.from_data_list([Data(edge_index=no_edges(), num_nodes=size) for size in (0, 3, 0)])
    for kind in ('exp', 'distance'):
        torch.testing.assert_close(TreeMask(kind=kind)(batch).to_dense().detach(), torch.eye(3).unsqueeze(0))


def test_fixed_numbers_are_in_the_checkpoint() -> None:
    data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    mask, restored = TreeMask(2, a=-0.1, b=0.5, learnable=False), TreeMask(2, a=-2.0, learnable=False)
    began = restored(data).to_dense()
    restored.load_state_dict(mask.state_dict())
    assert torch.equal(restored(data).to_dense(), mask(data).to_dense())
    restored.reset_parameters()
    assert torch.equal(restored(data).to_dense(), began)
