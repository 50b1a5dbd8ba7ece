"""MGFormer: the paper's equations in NumPy, and what the model asks of its data."""

import copy
import itertools

import numpy as np
import pytest
import torch
from grids import covering
from numpy.typing import NDArray
from oracles import masked_attention
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask import Graph
from pyg_topomask.feature_maps import FavorFeatures
from pyg_topomask.masks import DenseMask, GRFMask
from pyg_topomask.nn.models.mgformer import MGFormer
from pyg_topomask.transforms.add_svd_encoding import AddSVDEncoding

PAIRS = torch.tensor([[0, 0, 1, 2, 2, 2], [0, 1, 1, 0, 3, 4]])  # users 0 to 3, items 0 to 5
Matrix = NDArray[np.float64]


def interactions(svd_dim: int = 3) -> Data:
    edges = torch.stack([PAIRS[0], PAIRS[1] + 4])
    data = Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1), num_nodes=10, num_users=4)
    return AddSVDEncoding(svd_dim)(data) if svd_dim > 0 else data


def model(**options: object) -> MGFormer:
    return MGFormer(**{'num_users': 4, 'num_items': 6, 'embedding_dim': 5, 'svd_dim': 3} | options).double()


def numpy(tensor: Tensor) -> Matrix:
    return tensor.detach().double().numpy()


def elu(x: Matrix) -> Matrix:
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def simplex(layer: torch.nn.Module, x: Matrix) -> Matrix:
    """Eq. 7 with the softmax scale folded in."""
    x = x / x.shape[-1] ** 0.25
    projection = numpy(layer.feature_map.projection)
    return np.exp(x @ projection.T - 0.5 * (x**2).sum(-1, keepdims=True)) / np.sqrt(len(projection))


def sin_degree(layer: torch.nn.Module) -> Matrix:
    degree = np.array([2, 1, 3, 0, 2, 2, 0, 1, 1, 0])
    z = 1 / (1 + np.exp(-numpy(layer.mask.embedding)[degree] @ numpy(layer.mask.weight).T)).T
    return np.sin(np.pi / 4 * (z[:, :, None] + z[:, None, :]))


def adjacency(layer: torch.nn.Module) -> Matrix:
    matrix = np.zeros((10, 10))
    user, item = PAIRS.numpy()
    matrix[user, item + 4] = matrix[item + 4, user] = 1.0
    return np.stack([matrix + weight * np.eye(10) for weight in numpy(layer.mask.self_loop)])


MASKS = {'sin_degree': sin_degree, 'adjacency': adjacency, None: lambda layer: np.ones((1, 10, 10))}


def expected_output(mgformer: MGFormer, data: Data, mask: str | None, feature_map: str) -> Matrix:
    x = (
        np.concatenate([numpy(mgformer.embedding), numpy(data.svd_encoding)], axis=1)
        if mgformer.svd_dim
        else numpy(mgformer.embedding)
    )
    for layer in mgformer.layers:
        size = (len(x), layer.heads, -1)
        q, k = ((x @ numpy(lin.weight).T).reshape(size) for lin in (layer.lin_q, layer.lin_k))
        q, k = (elu(vectors) if feature_map == 'elu' else simplex(layer, vectors) for vectors in (q, k))
        out = masked_attention(q, k, x.reshape(size), MASKS[mask](layer)).reshape(len(x), -1)
        x = x + out if mgformer.residual else out
    return x


@pytest.mark.parametrize(('mask', 'feature_map', 'svd_dim'), covering(MASKS, ['simplex', 'elu'], [3, 0], strength=2))
def test_model_is_that_of_the_paper(mask: str | None, feature_map: str, svd_dim: int) -> None:
    data, mgformer = interactions(svd_dim), model(mask=mask, feature_map=feature_map, svd_dim=svd_dim)
    torch.nn.init.normal_(mgformer.embedding)
    users, items = mgformer(data)
    assert (users.shape, items.shape) == ((4, 5 + svd_dim), (6, 5 + svd_dim))
    np.testing.assert_allclose(numpy(torch.cat([users, items])), expected_output(mgformer, data, mask, feature_map), atol=1e-10)


@pytest.mark.parametrize('residual', [True, False])
def test_layers_heads_and_residuals(residual: bool) -> None:
    data, mgformer = interactions(), model(layers=3, heads=2, residual=residual)
    torch.nn.init.normal_(mgformer.embedding)
    expected = expected_output(mgformer, data, 'sin_degree', 'simplex')
    np.testing.assert_allclose(numpy(torch.cat(mgformer(data))), expected, atol=1e-10)


def test_gradients_reach_every_parameter_and_are_right() -> None:
    data, mgformer = interactions(), model(max_degree=4)
    torch.nn.init.normal_(mgformer.embedding)
    names = [name for name, _ in mgformer.named_parameters()]

    def run(*values: Tensor) -> Tensor:
        return torch.cat(torch.func.functional_call(mgformer, dict(zip(names, values, strict=True)), (graph,)))

    graph = Graph.from_data(data)
    inputs = [value.detach().clone().requires_grad_() for value in mgformer.parameters()]
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True)
    torch.cat(mgformer(data)).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in mgformer.parameters())


@pytest.mark.parametrize('mask', ['sin_degree', 'adjacency', None])
def test_graphs_and_data_are_the_same_to_it(mask: str | None) -> None:
    data, mgformer = interactions(), model(mask=mask)
    graph = Graph.from_data(data)
    for first, second in zip(mgformer(data), mgformer(graph), strict=True):
        torch.testing.assert_close(first, second)


@pytest.mark.parametrize(
    ('nodes', 'mask', 'layers', 'residual', 'route'),
    covering([[6, 0, 6, 3, 9], []], ['sin_degree', 'adjacency', None], [1, 2], [True, False], ['auto', 'features'], strength=2),
)
def test_outputs_and_gradients_of_some_nodes(
    nodes: list[int], mask: str | None, layers: int, residual: bool, route: str
) -> None:
    data, index = interactions(), torch.tensor(nodes, dtype=torch.long)
    mgformer = model(mask=mask, layers=layers, residual=residual, route=route, heads=2)
    torch.nn.init.normal_(mgformer.embedding)
    some = mgformer(data, index)
    expected = expected_output(mgformer, data, mask, 'simplex')[index.numpy()]
    np.testing.assert_allclose(numpy(some), expected, atol=1e-10)
    parameters = list(mgformer.parameters())
    weight = torch.randn(len(nodes), 8, dtype=torch.double)
    full = torch.cat(mgformer(data)).index_select(0, index)
    grads = [torch.autograd.grad((out * weight).sum(), parameters, materialize_grads=True) for out in (some, full)]
    for some_grad, full_grad in zip(*grads, strict=True):
        torch.testing.assert_close(some_grad, full_grad)


def test_last_layer_has_no_queries_but_those_of_the_nodes() -> None:
    data, mgformer = interactions(), model(layers=2)
    sizes: list[list[int]] = []
    for layer in mgformer.layers:
        layer.lin_q.register_forward_pre_hook(lambda _, inputs: sizes.append(list(inputs[0].shape)))
    mgformer(data, torch.tensor([1, 5]))
    assert sizes == [[10, 8], [2, 8]]


@pytest.mark.parametrize('nodes', [torch.tensor([10]), torch.tensor([-1]), torch.tensor(1), torch.tensor([1.0])])
def test_bad_nodes_are_named(nodes: Tensor) -> None:
    with pytest.raises(ValueError, match=r'^nodes: got'):
        model()(interactions(), nodes)


def test_masks_and_feature_maps_may_be_modules() -> None:
    data, shared = interactions(), GRFMask(2)
    mgformer = model(mask=shared, heads=2, layers=2, feature_map=FavorFeatures(4, 16))
    assert mgformer.layers[0].mask is mgformer.layers[1].mask is shared
    assert torch.cat(mgformer(data)).isfinite().all()
    ones = model(mask=DenseMask(1, torch.ones(10, 10)))
    plain = model(mask=None)
    plain.load_state_dict({name: value for name, value in ones.state_dict().items() if 'mask' not in name})
    torch.testing.assert_close(torch.cat(ones(data)), torch.cat(plain(data)))


def test_users_and_items_without_interactions_are_embedded_and_learn() -> None:
    data, mgformer = interactions(), model()
    torch.nn.init.normal_(mgformer.embedding)
    users, items = mgformer(data)
    (users[3].square().sum() + items[5].square().sum()).backward()
    assert users.isfinite().all()
    assert mgformer.embedding.grad.isfinite().all()
    assert mgformer.embedding.grad[3].any()


def test_renaming_items_renames_their_rows() -> None:
    data, mgformer = interactions(), model()
    torch.nn.init.normal_(mgformer.embedding)
    order = torch.cat([torch.arange(4), 4 + torch.randperm(6)])
    renamed = Data(edge_index=torch.argsort(order)[data.edge_index], num_nodes=10, svd_encoding=data.svd_encoding[order])
    permuted = copy.deepcopy(mgformer)
    with torch.no_grad():
        permuted.embedding.copy_(mgformer.embedding[order])
    torch.testing.assert_close(torch.cat(permuted(renamed)), torch.cat(mgformer(data))[order])


def test_dropout_acts_in_training_alone() -> None:
    data, mgformer = interactions(), model(dropout=0.5)
    assert not torch.equal(mgformer(data)[0], mgformer(data)[0])
    mgformer.eval()
    assert torch.equal(mgformer(data)[0], mgformer(data)[0])


def test_signs_of_structural_encodings_flip_in_training_alone() -> None:
    data, mgformer = interactions(), model(sign_flip=True)
    torch.nn.init.normal_(mgformer.embedding)
    encoding, outputs = data.svd_encoding, set()
    expected = {}
    for signs in itertools.product([1.0, -1.0], repeat=3):  # one sign for both ends of a pair of singular vectors
        data.svd_encoding = encoding * torch.tensor(signs)
        expected[signs] = expected_output(mgformer, data, 'sin_degree', 'simplex')
    data.svd_encoding = encoding
    for _ in range(60):
        output = numpy(torch.cat(mgformer(data)))
        (signs,) = (signs for signs, one in expected.items() if np.allclose(output, one, atol=1e-10))
        outputs.add(signs)
    assert len(outputs) > 4
    np.testing.assert_allclose(numpy(torch.cat(mgformer.eval()(data))), expected[1.0, 1.0, 1.0], atol=1e-10)


def test_paper_s_size_of_structural_encodings_is_that_of_the_embeddings() -> None:
    mgformer = MGFormer(2, 3, embedding_dim=8)
    assert (mgformer.svd_dim, mgformer.channels) == (8, 16)
    assert mgformer.layers[0].lin_q.weight.shape == (16, 16)
    assert 'MGFormer(2, 3, embedding_dim=8' in repr(mgformer)


def test_data_that_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match=r'^svd_dim: got 3 for data without .* AddSVDEncoding\(rank=3, num_users=4\)'):
        model()(interactions(0))
    with pytest.raises(ValueError, match=r'^svd_dim: got 3 for data without a tensor svd_encoding'):
        model()(Data(edge_index=interactions(0).edge_index, num_nodes=10, svd_encoding=[[0.0] * 3] * 10))
    with pytest.raises(ValueError, match=r'^svd_dim: got 3 for svd_encoding of shape \(10, 2\)'):
        model()(interactions(2))
    with pytest.raises(ValueError, match=r'^graph: got 10 nodes; accepted: 4 users and then 5 items'):
        model(num_items=5)(interactions())
    graph = interactions()
    graph.num_users = 3
    with pytest.raises(ValueError, match=r'^graph: got num_users = 3; accepted: 4 users and then 6 items'):
        model()(graph)


@pytest.mark.parametrize('given', [3, np.int64(3), torch.tensor(3)])
def test_number_of_users_is_that_of_every_graph(given: object) -> None:
    graph = interactions()
    model()(Batch.from_data_list([graph]))
    graph.num_users = given
    with pytest.raises(ValueError, match=r'^graph: got num_users = 3; accepted: 4 users and then 6 items'):
        model()(graph)
    half = Data(edge_index=torch.tensor([[0, 3], [3, 0]]), num_nodes=5, num_users=2)
    with pytest.raises(ValueError, match=r'^graph: got num_users = \[2, 2\]; accepted: 4 users and then 6 items'):
        model(svd_dim=0)(Batch.from_data_list([half, half]))


@pytest.mark.parametrize(
    ('added', 'message'),
    [
        ([[0], [9]], 'edges without their reverse; accepted: each interaction in both directions; torch.cat'),
        ([[0, 0, 9], [9, 9, 0]], 'edges without their reverse'),
        ([[0, 8], [9, 0]], 'edges without their reverse'),
        ([[0, 1], [1, 0]], r'an edge between \[0, 1\], two users or two items; accepted: edges between users and items'),
        ([[8], [8]], r'an edge between \[8, 8\], two users or two items'),
    ],
)
def test_edges_are_interactions_in_both_directions(added: list[list[int]], message: str) -> None:
    data, mgformer = interactions(0), model(svd_dim=0)
    data.edge_index = torch.cat([data.edge_index, torch.tensor(added)], dim=1)[:, torch.randperm(12 + len(added[0]))]
    graph = Graph.from_data(data)
    for _ in range(2):
        with pytest.raises(ValueError, match=f'^graph: got {message}'):
            mgformer(graph)


def test_repeated_interactions_and_none_are_accepted() -> None:
    data, mgformer = interactions(0), model(svd_dim=0)
    for edge_index in (data.edge_index.repeat(1, 2), data.edge_index.int(), data.edge_index[:, :0]):
        assert torch.cat(mgformer(Data(edge_index=edge_index, num_nodes=10))).isfinite().all()
