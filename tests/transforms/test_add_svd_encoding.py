"""Structural encodings by singular vectors: what they multiply to, for every kind of graph."""

import warnings

import numpy as np
import pytest
import torch
from graphs import GRAPHS, SINGLE_GRAPHS, no_edges, random_edges, ring, small_digraph, small_graph, weighted
from grids import covering
from numpy.typing import NDArray
from oracles import weight_matrix
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import Compose, ToUndirected
from torch_geometric.utils import grid

from pyg_topomask.transforms import add_svd_encoding
from pyg_topomask.transforms.add_svd_encoding import AddSVDEncoding

PAIRS = torch.tensor([[0, 0, 1, 2, 2, 2, 0], [0, 1, 1, 0, 3, 4, 0]])  # users 0 to 3, items 0 to 5; one pair twice


def bipartite(both_directions: bool = True) -> Data:
    edges = torch.stack([PAIRS[0], PAIRS[1] + 4])
    if both_directions:
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    return Data(edge_index=edges, num_nodes=10, num_users=4)


def user_item_matrix() -> NDArray[np.float64]:
    matrix = np.zeros((4, 6))
    matrix[tuple(PAIRS.numpy())] = 1.0
    return matrix


def quiet(transform: AddSVDEncoding, data: Data | HeteroData) -> Data | HeteroData:
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return transform(data)


def truncated(matrix: NDArray[np.float64], rank: int) -> NDArray[np.float64]:
    left, value, right = np.linalg.svd(matrix, full_matrices=False)
    return (left[:, :rank] * value[:rank]) @ right[:rank]


def assert_encodings(left: torch.Tensor, right: torch.Tensor, matrix: NDArray[np.float64], rank: int) -> None:
    """U sqrt(S) and V sqrt(S), whatever the signs and rotations: their products, and their Gram matrices."""
    left, right = left.double().numpy(), right.double().numpy()
    values = np.zeros(rank)
    singular_values = np.linalg.svd(matrix, compute_uv=False)[:rank] if matrix.size else np.zeros(0)
    values[: len(singular_values)] = singular_values
    if matrix.size:
        np.testing.assert_allclose(left @ right.T, truncated(matrix, rank), atol=1e-5)
    for encoding in (left, right):
        np.testing.assert_allclose(encoding.T @ encoding, np.diag(values), atol=1e-5)


@pytest.mark.parametrize(('name', 'normalization'), covering(SINGLE_GRAPHS, [None, 'sym', 'rw']))
def test_any_graph(name: str, normalization: str | None) -> None:
    data = GRAPHS[name]()
    num_nodes, rank = data.num_nodes or 0, 8
    out = quiet(AddSVDEncoding(rank, normalization=normalization), data)
    assert out.svd_encoding.shape == (num_nodes, 2 * rank)
    assert out.svd_encoding.dtype == torch.float32
    left, right = out.svd_encoding.split(rank, dim=1)
    matrix = weight_matrix(data, normalization, 'target_to_source')
    assert_encodings(left, right, matrix, rank)
    for encoding, used in ((left, matrix.any(1)), (right, matrix.any(0))):
        assert not encoding[torch.from_numpy(~used)].any()
    assert (out.num_nodes or 0, out.num_edges) == (num_nodes, data.num_edges)
    assert 'svd_encoding' not in data


def test_ranks_below_the_full_one_keep_the_largest_values() -> None:
    data = weighted(random_edges(12, 40, seed=1), 12, seed=1)
    full = np.linalg.svd(weight_matrix(data, None, 'target_to_source'), compute_uv=False)
    assert full[3] - full[4] > 0.05
    left, right = AddSVDEncoding(4)(data).svd_encoding.split(4, dim=1)
    assert_encodings(left, right, weight_matrix(data, None, 'target_to_source'), 4)


def test_few_values_of_large_symmetric_matrices() -> None:
    edges, weight = random_edges(200, 500, seed=1), torch.rand(500)
    graphs = [
        Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1), edge_weight=torch.cat([weight, weight]), num_nodes=200),
        Data(edge_index=grid(10, 20)[0], num_nodes=200),  # with repeated values
        Data(edge_index=torch.tensor([[3, 7, 7, 90], [7, 3, 90, 7]]), num_nodes=200),  # with two values
    ]
    for data, together in zip(graphs, AddSVDEncoding(8)(graphs), strict=True):
        encoding, matrix = AddSVDEncoding(8)(data).svd_encoding, weight_matrix(data, None, 'target_to_source')
        assert torch.equal(encoding, together.svd_encoding)
        left, right = encoding.double().numpy().reshape(200, 2, 8).swapaxes(0, 1)
        values = np.linalg.svd(matrix, compute_uv=False)[:8]
        np.testing.assert_allclose(left.T @ left, np.diag(values), atol=1e-5)
        np.testing.assert_allclose(matrix @ right, left * values, atol=1e-5)


@pytest.mark.parametrize('nodes', [40, 200])
def test_few_values_of_large_asymmetric_matrices(nodes: int) -> None:
    data = Data(edge_index=random_edges(nodes, 3 * nodes, seed=1), num_nodes=nodes)
    for normalization, graph in ((None, data), ('rw', ToUndirected()(data))):
        matrix, rank = weight_matrix(graph, normalization, 'target_to_source'), 1
        assert not np.allclose(matrix, matrix.T)
        left, right = AddSVDEncoding(rank, normalization=normalization)(graph).svd_encoding.split(rank, dim=1)
        assert_encodings(left, right, matrix, rank)


@pytest.mark.parametrize('rank', [1, 3, 4, 9])
@pytest.mark.parametrize('both_directions', [True, False])
def test_users_and_items(both_directions: bool, rank: int) -> None:
    data = quiet(AddSVDEncoding(rank), bipartite(both_directions))
    assert data.svd_encoding.shape == (10, rank)
    assert_encodings(data.svd_encoding[:4], data.svd_encoding[4:], user_item_matrix(), rank)
    assert not data.svd_encoding[[3, 6, 9]].any()  # a user without interactions, and items without
    argument = bipartite()
    del argument.num_users
    assert torch.equal(quiet(AddSVDEncoding(rank, num_users=4), argument).svd_encoding, data.svd_encoding)
    swapped = Data(edge_index=torch.stack([PAIRS[1], PAIRS[0] + 6]), num_nodes=10, num_users=6)
    encoding = quiet(AddSVDEncoding(rank), swapped).svd_encoding
    assert_encodings(encoding[:6], encoding[6:], user_item_matrix().T, rank)


def test_weighted_interactions_are_averaged() -> None:
    data = bipartite()
    data.edge_weight = torch.tensor([1.0, 2.0, 0.5, 3.0, 1.5, 1.0, 2.0] * 2)
    matrix = np.zeros((4, 6))
    matrix[tuple(PAIRS.numpy())] = [1.0, 2.0, 0.5, 3.0, 1.5, 1.0, 2.0]
    matrix[0, 0] = 1.5
    encoding = AddSVDEncoding(4)(data).svd_encoding
    assert_encodings(encoding[:4], encoding[4:], matrix, 4)


@pytest.mark.parametrize('name', ['edge_weight', 'weight', 'edge_attr'])
@pytest.mark.filterwarnings('ignore:data. got edge_attr')
def test_weights_of_heterogeneous_data_have_the_names_of_others(name: str) -> None:
    weight, data, both = torch.tensor([1.0, 2.0, 0.5, 3.0, 1.5, 1.0, 2.0]), hetero(), bipartite(both_directions=False)
    data['user', 'buys', 'item'][name] = both[name] = weight
    out = AddSVDEncoding(3)(data)
    expected = AddSVDEncoding(3)(both).svd_encoding
    assert torch.equal(torch.cat([out['user'].svd_encoding, out['item'].svd_encoding]), expected)
    assert not torch.equal(expected, AddSVDEncoding(3)(bipartite()).svd_encoding)
    data['user', 'follows', 'user'].edge_index, data['user', 'follows', 'user'][name] = ring(4), torch.arange(1.0, 9.0)
    encoding = AddSVDEncoding(3, edge_type=('user', 'follows', 'user'))(data)['user'].svd_encoding
    alone = Data(edge_index=ring(4), num_nodes=4, edge_weight=torch.arange(1.0, 9.0))
    assert torch.equal(encoding, AddSVDEncoding(3)(alone).svd_encoding)


@pytest.mark.parametrize('normalization', ['sym', 'rw'])
def test_normalized_user_item_matrix(normalization: str) -> None:
    matrix = user_item_matrix()
    users, items = matrix.sum(1, keepdims=True), matrix.sum(0, keepdims=True)
    scale = np.sqrt(users * items) if normalization == 'sym' else users
    expected = matrix / np.where(matrix > 0, scale, 1.0)
    encoding = AddSVDEncoding(4, normalization=normalization)(bipartite()).svd_encoding
    assert_encodings(encoding[:4], encoding[4:], expected, 4)


def hetero(relation: str = 'buys') -> HeteroData:
    data = HeteroData()
    data['user'].num_nodes, data['item'].num_nodes = 4, 6
    data['user', relation, 'item'].edge_index = PAIRS
    return data


def test_heterogeneous_data() -> None:
    expected = AddSVDEncoding(3)(bipartite()).svd_encoding
    for data in (hetero(), ToUndirected()(hetero()), hetero('reviews')):
        out = AddSVDEncoding(3)(data)
        assert torch.equal(torch.cat([out['user'].svd_encoding, out['item'].svd_encoding]), expected)
    data = hetero()
    data['user', 'follows', 'user'].edge_index = ring(4)
    with pytest.raises(ValueError, match=r'^edge_type: got None'):
        AddSVDEncoding(3)(data)
    with pytest.raises(ValueError, match=r'^edge_type: got'):
        AddSVDEncoding(3, edge_type=('user', 'sells', 'item'))(data)
    assert torch.equal(AddSVDEncoding(3, edge_type=('user', 'buys', 'item'))(data)['item'].svd_encoding, expected[4:])
    encoding = AddSVDEncoding(3, edge_type=('user', 'follows', 'user'))(data)['user'].svd_encoding
    assert encoding.shape == (4, 6)
    assert torch.equal(encoding, AddSVDEncoding(3)(Data(edge_index=ring(4), num_nodes=4)).svd_encoding)


def large(num_users: int = 300, num_items: int = 200) -> tuple[Data, NDArray[np.float64]]:
    """Interactions between five groups of users and items, whose leading singular values stand apart."""
    generator = np.random.default_rng(0)
    same = (np.arange(num_users) % 5)[:, None] == (np.arange(num_items) % 5)
    chance = np.array([0.9, 0.75, 0.6, 0.5, 0.4])[np.arange(num_users) % 5][:, None] * same + 0.01
    matrix = (generator.random((num_users, num_items)) < chance).astype(float)
    row, col = torch.from_numpy(np.stack(matrix.nonzero()))
    return Data(edge_index=torch.stack([row, col + num_users]), num_nodes=num_users + num_items, num_users=num_users), matrix


@pytest.mark.parametrize('sizes', [(300, 200), (200, 300)])
def test_randomized_decomposition_of_large_matrices(sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    data, matrix = large(*sizes)
    exact = AddSVDEncoding(4)(data).svd_encoding
    monkeypatch.setattr(add_svd_encoding, '_DENSE_ENTRIES', 0)
    encoding = AddSVDEncoding(4)(data).svd_encoding
    assert_encodings(encoding[: sizes[0]], encoding[sizes[0] :], matrix, 4)
    torch.testing.assert_close(encoding, exact, rtol=0, atol=1e-5)  # signs are fixed
    rough = [AddSVDEncoding(4, num_iterations=0, seed=seed)(data).svd_encoding for seed in (0, 0, 1)]
    assert torch.equal(rough[0], rough[1])
    assert not torch.equal(rough[0], rough[2])
    torch.manual_seed(5)
    before = torch.get_rng_state()
    AddSVDEncoding(4)(data)
    assert torch.equal(torch.get_rng_state(), before)


def test_randomized_decomposition_of_repeated_values_and_of_deficient_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(add_svd_encoding, '_DENSE_ENTRIES', 0)
    data = Data(edge_index=ring(40), num_nodes=40)  # every singular value but one comes twice or more
    encoding = AddSVDEncoding(5)(data).svd_encoding
    assert encoding.isfinite().all()
    ones = Data(edge_index=torch.cartesian_prod(torch.arange(30), torch.arange(30)).t(), num_nodes=30)
    left, right = AddSVDEncoding(4)(ones).svd_encoding.split(4, dim=1)
    assert_encodings(left, right, np.ones((30, 30)), 4)
    assert not left[:, 1:].any()
    nothing = AddSVDEncoding(4)(Data(edge_index=no_edges(), num_nodes=9)).svd_encoding
    assert not nothing.any()


def test_signs_follow_the_largest_entry_under_permutations() -> None:
    data = weighted(random_edges(9, 30, seed=3), 9, seed=3)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    renamed = Data(edge_index=torch.argsort(order)[data.edge_index], edge_weight=data.edge_weight, num_nodes=9)
    encoding = AddSVDEncoding(6)(data).svd_encoding
    torch.testing.assert_close(AddSVDEncoding(6)(renamed).svd_encoding, encoding[order], rtol=0, atol=1e-5)
    left = encoding[:, :6]
    assert (left.gather(0, left.abs().argmax(0, keepdim=True)) > 0).all()


def test_padding_warns_once() -> None:
    transform = AddSVDEncoding(8)
    with pytest.warns(UserWarning, match='rank: got 8 for a matrix of 6 rows and 6 columns'):
        padded = transform(small_graph()).svd_encoding
    transform(Data(edge_index=ring(4), num_nodes=4))  # a second warning would be an error
    assert padded.shape == (6, 16)
    assert not padded[:, 6:8].any()
    assert not padded[:, 14:].any()
    assert AddSVDEncoding(8)(GRAPHS['empty']()).svd_encoding.shape == (0, 16)


def test_batches_of_encoded_graphs() -> None:
    transform = Compose([ToUndirected(), AddSVDEncoding(3)])
    graphs = [transform(Data(edge_index=ring(size), num_nodes=size)) for size in (5, 30, 7)]
    batch = Batch.from_data_list(graphs)
    assert torch.equal(batch.svd_encoding, torch.cat([data.svd_encoding for data in graphs]))
    kept = graphs[1].subgraph(torch.arange(4))
    assert torch.equal(kept.svd_encoding, graphs[1].svd_encoding[:4])
    with pytest.raises(ValueError, match=r'^data: got a batch'):
        transform(batch)


def test_users_that_are_no_number_are_named(subtests: pytest.Subtests) -> None:
    for num_users in [1.9, '4', torch.tensor([4, 4]), torch.tensor(4.0)]:
        with subtests.test(num_users=num_users):
            data = bipartite()
            data.num_users = num_users
            with pytest.raises(ValueError, match=r'^num_users: got .*; accepted: whole numbers from 0'):
                AddSVDEncoding(2)(data)


def test_users_that_do_not_fit_the_edges_are_named(subtests: pytest.Subtests) -> None:
    for num_users in [-1, 11, 2, 6]:
        with subtests.test(num_users=num_users):
            data = bipartite()
            data.num_users = num_users
            with pytest.raises(ValueError, match=f'^num_users: got {num_users}'):
                AddSVDEncoding(2)(data)
            with pytest.raises(ValueError, match=r'^data: got'):
                AddSVDEncoding(2)('data')


def test_arguments_of_no_use_to_the_data_are_refused() -> None:
    with pytest.raises(ValueError, match=r'^num_users: got 4 for HeteroData'):
        AddSVDEncoding(2, num_users=4)(hetero())
    with pytest.raises(ValueError, match=r"^edge_type: got \('a', 'b', 'c'\) for Data; accepted: None"):
        AddSVDEncoding(2, edge_type=('a', 'b', 'c'))(bipartite())


@pytest.mark.parametrize(('end', 'node', 'message'), [(0, 5, "5 of 4 of type 'user'"), (1, 9, "9 of 6 of type 'item'")])
def test_nodes_of_types_that_are_not_there_are_named(end: int, node: int, message: str) -> None:
    data = hetero()
    data['user', 'buys', 'item'].edge_index = PAIRS.clone()
    data['user', 'buys', 'item'].edge_index[end, 3] = node
    with pytest.raises(ValueError, match=f'^data: got node {message} in edges'):
        AddSVDEncoding(2)(data)


def test_directed_graphs_tell_sources_from_targets() -> None:
    left, right = AddSVDEncoding(4)(small_digraph()).svd_encoding.split(4, dim=1)
    assert not torch.allclose(left, right, atol=1e-2)


def test_hetero_data_that_does_not_fit_is_named() -> None:
    data = HeteroData()
    data['user'].num_nodes, data['item'].num_nodes = 2, 2
    data['user', 'likes', 'item'].edge_weight = torch.ones(3)
    with pytest.raises(ValueError, match=r'^data: got edges .*likes.* without edge_index'):
        AddSVDEncoding(1)(data)
    data['user', 'likes', 'item'].edge_index = torch.tensor([[0, 1], [1, 0]])
    for weight in (torch.ones(3), torch.ones(2, 1)):
        data['user', 'likes', 'item'].edge_weight = weight
        with pytest.raises(ValueError, match=r'^edge_weight: got shape .* for 2 edges'):
            AddSVDEncoding(1)(data)


def test_representation_tells_all_options_by_which_pyg_knows_processed_files(subtests: pytest.Subtests) -> None:
    for option in [
        {'normalization': 'sym'},
        {'seed': 1},
        {'num_users': 2},
        {'num_iterations': 3},
        {'edge_type': ('a', 'b', 'c')},
    ]:
        with subtests.test(option=option):
            assert repr(AddSVDEncoding(2, **option)) != repr(AddSVDEncoding(2))
