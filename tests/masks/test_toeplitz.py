import math
from itertools import product

import numpy as np
import pytest
import torch
from dense_attention import assert_dense_attention
from graphs import ring
from grids import covering
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.toeplitz import ToeplitzMask
from pyg_topomask.nn import ToeplitzAttention
from pyg_topomask.operators.base import low_rank_operator
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.testing import assert_mask_operator
from pyg_topomask.transforms.geometry import AddGridShape, ToGridGraph

SHAPES = {
    1: [(5,), (1,), (8,), (0,), (5,)],
    2: [(3, 4), (4, 3), (1, 5), (3, 4), (2, 2), (0, 3)],
    3: [(2, 3, 2), (1, 1, 3), (2, 3, 2)],
    4: [(2, 1, 2, 2)],
}
OPTIONS = covering(('offset', 'distance'), ('clip', 'zero'), (False, True), strength=2)
CAUSAL = covering(('offset', 'distance'), ('clip', 'zero'))


def grids(*shapes: tuple[int, ...]) -> Data:
    graphs = [AddGridShape(shape)(Data(num_nodes=math.prod(shape))) for shape in shapes]
    return graphs[0] if len(graphs) == 1 else Batch.from_data_list(graphs)


@pytest.fixture(params=['transforms', 'sums'])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few offsets are summed up without a transform, which is otherwise done in float32 alone."""
    if request.param == 'sums':
        monkeypatch.setattr('pyg_topomask.operators.toeplitz._DIRECT_TYPES', (torch.float32, torch.float64))


def random_mask(
    dims: int, kind: str, beyond: str, periodic: bool = False, window: int = 2, causal: int | None = None
) -> ToeplitzMask:
    mask = ToeplitzMask(2, dims, kind, window, beyond, periodic, causal=causal).double()
    with torch.no_grad():
        mask.table.copy_(torch.randn(mask.table.shape, generator=torch.Generator().manual_seed(dims)))
    return mask


def matrix(mask: ToeplitzMask, shape: tuple[int, ...]) -> Tensor:
    """xi(p_i - p_j), entry by entry, from the table of the mask."""
    points = list(np.ndindex(*shape))
    rows = []
    for p, q in product(points, points):
        offset = [a - b for a, b in zip(p, q, strict=True)]
        if mask.periodic:
            offset = [(o + n // 2) % n - n // 2 for o, n in zip(offset, shape, strict=True)]
        if mask.kind == 'distance':
            distance, (window,) = sum(map(abs, offset)), mask.window
            outside, entry = distance > window, (min(distance, window),)
        else:
            outside = any(abs(o) > w for o, w in zip(offset, mask.window, strict=True))
            starts = [0 if axis == mask.causal else -w for axis, w in enumerate(mask.window)]
            entry = tuple(min(max(o, s), w) - s for o, s, w in zip(offset, starts, mask.window, strict=True))
        later = mask.causal is not None and offset[mask.causal] < 0
        value = mask.table[(slice(None), *entry)]
        rows.append(torch.zeros_like(value) if later or (outside and mask.beyond == 'zero') else value)
    size = len(points)
    return torch.stack(rows, dim=1).view(-1, size, size) if rows else torch.zeros(mask.heads, 0, 0)


def batch_matrix(mask: ToeplitzMask, shapes: list[tuple[int, ...]]) -> Tensor:
    blocks = [matrix(mask, shape).double() for shape in shapes]
    return torch.stack([torch.block_diag(*(block[head] for block in blocks)) for head in range(mask.heads)])


# The equation ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures('both_ways')
@pytest.mark.parametrize(('kind', 'beyond', 'periodic', 'dims'), covering(OPTIONS, [1, 2, 3, 4]))
def test_matrix_of_one_grid_and_of_many(dims: int, kind: str, beyond: str, periodic: bool) -> None:
    mask = random_mask(dims, kind, beyond, periodic)
    for shapes in ([SHAPES[dims][0]], [SHAPES[dims][0]] * 2, SHAPES[dims]):
        operator, expected = mask(grids(*shapes)), batch_matrix(mask, shapes)
        torch.testing.assert_close(operator.to_dense(), expected, rtol=0, atol=1e-12)
        torch.testing.assert_close(operator.T.to_dense(), expected.transpose(1, 2), rtol=0, atol=1e-12)


@pytest.mark.usefixtures('both_ways')
@pytest.mark.parametrize(('kind', 'beyond', 'periodic'), OPTIONS)
def test_operator_behaves_as_its_matrix(kind: str, beyond: str, periodic: bool) -> None:
    assert_mask_operator(random_mask(2, kind, beyond, periodic), grids((2, 3), (0, 3), (1, 1), (2, 3)))
    assert_mask_operator(random_mask(1, kind, beyond, periodic).T, grids((4,)))


@pytest.mark.usefixtures('both_ways')
@pytest.mark.parametrize(('kind', 'beyond', 'grid'), covering(CAUSAL, [(1, 0), (2, 0), (2, 1), (3, 1)]))
def test_matrix_without_entries_of_later_nodes(kind: str, beyond: str, grid: tuple[int, int]) -> None:
    dims, causal = grid
    mask = random_mask(dims, kind, beyond, causal=causal)
    for shapes in ([SHAPES[dims][0]], SHAPES[dims]):
        operator, expected = mask(grids(*shapes)), batch_matrix(mask, shapes)
        torch.testing.assert_close(operator.to_dense(), expected, rtol=0, atol=1e-12)
        torch.testing.assert_close(operator.T.to_dense(), expected.transpose(1, 2), rtol=0, atol=1e-12)
    assert_mask_operator(mask, grids(*SHAPES[dims][:3]))
    with torch.no_grad():
        mask.table.abs_()
    for route in ('features', 'blocks'):
        assert_dense_attention(mask(grids(*SHAPES[dims])), batch_matrix(mask, SHAPES[dims]), [mask.table], route=route)


@pytest.mark.parametrize('positive', [False, True])
def test_training_gives_later_nodes_no_entries(positive: bool) -> None:
    mask, nodes = ToeplitzMask(2, 1, window=3, initial='tanh', positive=positive, causal=0), Data(num_nodes=9)
    optimizer = torch.optim.AdamW(mask.parameters(), lr=0.1)
    before = mask(nodes).to_dense().detach()
    torch.testing.assert_close(before[0, :4, 0], torch.tensor(np.tanh(1) ** np.arange(4)).float())
    for _ in range(3):
        optimizer.zero_grad()
        mask(nodes).to_dense().sum().neg().backward()
        optimizer.step()
    after, later = mask(nodes).to_dense().detach(), torch.ones(9, 9).triu(1).bool()
    assert (after - before)[:, ~later].abs().min() > 0.05
    assert after[:, later].abs().max() < 1e-6  # the rounding of transforms


def test_earlier_outputs_do_not_read_later_nodes() -> None:
    layer, x = ToeplitzAttention(8, 2, window=4, beyond='zero', causal=0), torch.randn(40, 8)
    changed = torch.cat([x[:25], torch.randn(15, 8)])
    out, other = (layer(each, batch=torch.zeros(40, dtype=torch.long)) for each in (x, changed))
    assert torch.equal(out[:25], other[:25])
    assert not torch.isclose(out[25:], other[25:]).all(1).any()


@pytest.mark.usefixtures('both_ways')
@pytest.mark.parametrize('window', [(0, 3), (5, 1), (20, 20)])
def test_windows_of_each_dimension(window: tuple[int, int]) -> None:
    for beyond in ('clip', 'zero'):
        mask = ToeplitzMask(2, 2, window=window, beyond=beyond).double()
        torch.nn.init.normal_(mask.table)
        torch.testing.assert_close(mask(grids((4, 7))).to_dense(), matrix(mask, (4, 7)), rtol=0, atol=1e-12)


def test_distances_are_those_of_shortest_paths() -> None:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    data = ToGridGraph()(torch.rand(1, 3, 5))
    edges = data.edge_index.numpy()
    distance = shortest_path(coo_array((np.ones(edges.shape[1]), edges), shape=(15, 15)))
    mask = ToeplitzMask(1, 2, 'distance', 6, initial=torch.randn(7)).double()
    expected = mask.table.detach()[0, torch.from_numpy(distance).long()]
    torch.testing.assert_close(mask(data).to_dense()[0].detach(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize('kind', ['offset', 'distance'])
@pytest.mark.parametrize(('name', 'lam'), [('tanh', 1.0), ('tanh:0.3', 0.3)])
def test_tanh_of_the_distance(name: str, lam: float, kind: str) -> None:
    dense = ToeplitzMask(2, 2, kind, 8, initial=name).double()(grids((3, 4))).to_dense().detach()
    points = np.array(list(np.ndindex(3, 4)))
    distance = np.abs(points[:, None] - points[None]).sum(-1)
    np.testing.assert_allclose(dense.numpy(), np.stack([np.tanh(lam) ** distance] * 2), atol=1e-6)


def test_positive_tables_are_learned_as_logarithms() -> None:
    mask = ToeplitzMask(1, 1, 'distance', 2, initial=torch.tensor([1.0, 0.5, 2.0]), positive=True)
    torch.testing.assert_close(mask(grids((3,))).to_dense()[0, 0], torch.tensor([1.0, 0.5, 2.0]))
    with torch.no_grad():
        mask.table.fill_(-3.0)
    assert (mask(grids((3,))).to_dense() > 0).all()


def test_tables_are_those_given_and_reset_to() -> None:
    given = torch.randn(2, 3, 5)
    mask = ToeplitzMask(2, 2, window=(1, 2), initial=given)
    assert torch.equal(mask.table, given)
    torch.nn.init.zeros_(mask.table)
    mask.reset_parameters()
    assert torch.equal(mask.table, given)
    assert torch.equal(ToeplitzMask(3, 2, 'distance', 4).table, torch.ones(3, 5))


# Attention ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures('both_ways')
@pytest.mark.parametrize(('kind', 'beyond', 'periodic'), OPTIONS)
def test_attention_and_all_its_gradients_are_those_of_the_dense_matrix(kind: str, beyond: str, periodic: bool) -> None:
    mask = random_mask(2, kind, beyond, periodic)
    with torch.no_grad():
        mask.table.abs_()
    expected = batch_matrix(mask, SHAPES[2])
    assert_dense_attention(mask(grids(*SHAPES[2])), expected, [mask.table], route='features')
    assert_dense_attention(mask(grids(*SHAPES[2])).T, expected.transpose(1, 2), [mask.table], route='features')


@pytest.mark.parametrize(('kind', 'beyond', 'periodic'), OPTIONS)
@pytest.mark.parametrize('dims', SHAPES)
def test_blocks_look_up_the_entries_of_pairs(dims: int, kind: str, beyond: str, periodic: bool) -> None:
    mask, data = random_mask(dims, kind, beyond, periodic), grids(*SHAPES[dims])
    with torch.no_grad():
        mask.table.abs_()
    graph = Graph.from_data(data)
    for window in (2, 1):  # tables of different sizes on the same graph
        if window == 1:
            mask = ToeplitzMask(2, dims, kind, 1, beyond, periodic).double()
        operator = mask(graph)
        assert operator.blocks is not None
        assert_dense_attention(operator, batch_matrix(mask, SHAPES[dims]), [mask.table], route='blocks')


def test_large_tables_have_no_blocks() -> None:
    assert ToeplitzMask(1, 3, window=16)(grids((2, 2, 2))).blocks is None


@pytest.mark.usefixtures('both_ways')
@pytest.mark.parametrize(
    ('periodic', 'shape', 'dtype'), covering([False, True], [(40, 50), (2000,), (9, 11, 13)], [torch.float32, torch.float64])
)
def test_rows_whose_window_is_empty_give_exactly_zero(shape: tuple[int, ...], periodic: bool, dtype: torch.dtype) -> None:
    """The transforms leave noise there, which must not be taken for weight; rows with weight must be kept."""
    mask, size = ToeplitzMask(1, len(shape), 'distance', 2, 'zero', periodic).to(dtype), math.prod(shape)
    generator = torch.Generator().manual_seed(0)
    for share in (0.5, 0.01):
        k = (torch.rand(size, 1, 4, generator=generator, dtype=dtype) + 0.1) * (
            torch.rand(size, 1, 1, generator=generator) < share
        )
        k[0] = 1.0
        q, v = torch.rand(size, 1, 4, generator=generator, dtype=dtype) + 0.1, torch.ones(size, 1, 2, dtype=dtype)
        out = masked_linear_attention(q, k, v, mask(grids(shape)))
        near = mask.double()(grids(shape)).matmul((k.sum(-1, keepdim=True) > 0).double()).round() > 0
        mask.to(dtype)
        torch.testing.assert_close(out, near.to(dtype).expand_as(out), rtol=1e-3, atol=1e-3)
        assert not out[~near.squeeze(2)].any()


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_half_precision_and_autocast(dtype: torch.dtype) -> None:
    mask, data = ToeplitzMask(2, 2, initial='tanh'), grids((6, 7), (3, 3))
    x = torch.randn(51, 2, 3)
    expected = mask(data).matmul(x)
    out = mask.to(dtype)(data).matmul(x.to(dtype))
    assert out.dtype == dtype
    torch.testing.assert_close(out.float(), expected, rtol=0.05, atol=0.1)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        q = torch.rand(51, 2, 3)
        actual = masked_linear_attention(q, q, x, mask.float()(data))
    torch.testing.assert_close(actual, masked_linear_attention(q, q, x, mask(data)))


@pytest.mark.usefixtures('both_ways')
@pytest.mark.parametrize(('beyond', 'heads', 'transposed'), covering(['clip', 'zero'], [1, 2], [False, True], strength=2))
def test_chunks_change_nothing(heads: int, transposed: bool, beyond: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mask, data = ToeplitzMask(heads, 2, 'offset', 2, beyond).double(), grids((3, 4), (3, 4), (2, 2), (3, 4))
    torch.nn.init.normal_(mask.table)
    x = torch.randn(40, 2, 5, dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(40, 2, 5, dtype=torch.float64)

    def product_and_gradients() -> tuple[Tensor, ...]:
        operator = mask(data).T if transposed else mask(data)
        out = operator.matmul(x)
        return out.detach(), *torch.autograd.grad(out, (x, mask.table), upstream)

    expected = product_and_gradients()
    for chunk in (1, 100, 1000):
        monkeypatch.setattr('pyg_topomask.operators.toeplitz._CHUNK', chunk)
        torch.testing.assert_close(product_and_gradients(), expected)


@pytest.mark.usefixtures('both_ways')
def test_gradients_of_gradients() -> None:
    mask, data = ToeplitzMask(1, 2, initial='tanh').double(), grids((2, 3))
    x = torch.randn(6, 2, 1, dtype=torch.float64, requires_grad=True)

    def product(x: Tensor, table: Tensor) -> Tensor:
        return torch.func.functional_call(mask, {'table': table}, (data,)).matmul(x)

    assert torch.autograd.gradgradcheck(product, (x, mask.table.detach().requires_grad_()), fast_mode=True)


def test_product_with_low_rank() -> None:
    mask, graph = random_mask(2, 'distance', 'zero', False), Graph.from_data(grids((3, 4)))
    left, right = torch.randn(2, 12, 2, 2, dtype=torch.float64)
    expected = torch.einsum('nhr,khr->hnk', left, right) * matrix(mask, (3, 4))
    torch.testing.assert_close((mask(graph) * low_rank_operator(graph, left, right)).to_dense(), expected)


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('data', [Data(num_nodes=4), Graph.from_tensors(ring(4), 4)])
def test_missing_shape_names_the_transforms(data: Data | Graph) -> None:
    with pytest.raises(ValueError, match=r'^grid_shape: got a graph without it.*AddGridShape or transforms\.ToGridGraph'):
        ToeplitzMask()(data)


@pytest.mark.parametrize(
    ('shape', 'message'),
    [
        ([[2, 3]], r'\[2, 3\] for graph 0 of 4 nodes.*AddGridShape'),
        ([[-2, -2]], r'\[-2, -2\] for graph 0'),
        ([[4]], r'shape \(1, 1\).*shape_dims=2.*AddGridShape'),
        ([[2, 2], [2, 2]], r'shape \(2, 2\).*for 1 graphs'),
        ([[2.0, 2.0]], r'shape \(1, 2\) of torch.float32'),
    ],
)
def test_shapes_that_do_not_fit_are_named(shape: list, message: str) -> None:
    with pytest.raises(ValueError, match=f'^grid_shape: got {message}'):
        ToeplitzMask()(Data(num_nodes=4, grid_shape=torch.tensor(shape)))


def test_the_graph_of_a_batch_that_does_not_fit_is_named() -> None:
    batch = Batch.from_data_list([grids((2, 2)), Data(num_nodes=3, grid_shape=torch.tensor([[2, 2]]))])
    with pytest.raises(ValueError, match=r'^grid_shape: got \[2, 2\] for graph 1 of 3 nodes'):
        ToeplitzMask()(batch)


@pytest.mark.parametrize(
    ('given', 'text'),
    [
        ({'causal': 2}, '2; accepted: whole numbers from 0 to 1'),
        ({'causal': True}, 'True; accepted: whole numbers'),
        ({'causal': 0, 'periodic': True}, '0 for periodic=True, in which no position is later; accepted: None'),
    ],
)
def test_time_that_does_not_fit_is_named(given: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError, match=f'^causal: got {text}'):
        ToeplitzMask(1, 2, **given)


def test_batch_without_graphs() -> None:
    data = Data(grid_shape=torch.empty(0, 2, dtype=torch.long))
    graph = Graph(torch.empty(2, 0, dtype=torch.long), 0, batch=torch.empty(0, dtype=torch.long), num_graphs=0, data=data)
    assert ToeplitzMask(2)(graph).matmul(torch.empty(0, 2, 3)).shape == (0, 2, 3)
