"""The transforms of torch.func on layers: gradients of autograd, and ensembles of layers one by one."""

from collections.abc import Callable

import pytest
import torch
from grids import by_day, covering
from small_layers import LAYERS, OF_EACH_KIND, example
from torch import Tensor
from torch.autograd import forward_ad
from torch.autograd.functional import hessian, jacobian
from torch.func import functional_call, grad, jacrev, jvp, vmap
from torch.nn import Module

from pyg_topomask import Graph
from pyg_topomask.errors import ArgumentError
from pyg_topomask.masks import GRFMask, HopMask
from pyg_topomask.nn import GRFAttention
from pyg_topomask.nn.models import Interlacer, TopologicalViT


def loss_of(layer: Module, graph: Graph) -> Callable[[dict[str, Tensor], Tensor], Tensor]:
    def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(layer, parameters, (x,), {'graph': graph}).square().sum()

    return loss


def gradients(loss: Callable[..., Tensor], parameters: dict[str, Tensor], x: Tensor) -> dict[str, Tensor]:
    leaves = {name: value.clone().requires_grad_() for name, value in parameters.items()}
    results = torch.autograd.grad(loss(leaves, x), list(leaves.values()), materialize_grads=True, allow_unused=True)
    return dict(zip(leaves, results, strict=True))


@pytest.mark.parametrize('name', by_day(LAYERS, OF_EACH_KIND))
def test_gradients_and_ensembles(name: str) -> None:
    layer, parameters, x, graph = example(name, 3, 5)
    loss = loss_of(layer, graph)
    # The graph is prepared under the transform, and then used without it.
    torch.testing.assert_close(grad(loss)(parameters, x), gradients(loss, parameters, x))
    members = [parameters, {name: 1.1 * value + 0.01 for name, value in parameters.items()}]
    stacked = {name: torch.stack([member[name] for member in members]) for name in parameters}
    torch.testing.assert_close(vmap(loss, (0, None))(stacked, x), torch.stack([loss(member, x) for member in members]))
    actual = vmap(grad(loss), (0, None))(stacked, x)
    for place, member in enumerate(members):
        torch.testing.assert_close({name: value[place] for name, value in actual.items()}, gradients(loss, member, x))


def test_walks_of_every_forward_pass_are_shared_by_an_ensemble() -> None:
    x, edge_index = torch.randn(6, 8), torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
    layer, graph = GRFAttention(8, heads=2, resample='forward'), Graph.from_tensors(edge_index, 6)
    first, second = vmap(lambda x: layer(x, graph=graph))(torch.stack([x, x]))
    torch.testing.assert_close(first, second)
    assert not torch.equal(layer(x, graph=graph), first)  # another forward pass


@pytest.mark.parametrize('name', ['linear', 'adjacency', 'kmip'])
def test_one_graph_with_inputs_stacked(name: str) -> None:
    layer, parameters, x, graph = example(name, 5)
    loss, inputs = loss_of(layer.eval(), graph), torch.stack([x, 2 * x, -x])
    torch.testing.assert_close(vmap(loss, (None, 0))(parameters, inputs), torch.stack([loss(parameters, x) for x in inputs]))


@pytest.mark.parametrize('name', ['adjacency', 'tree', 'tree_rings', 'tree_fft', 'tree_distance'])
def test_a_graph_made_under_a_transform(name: str) -> None:
    layer, _parameters, x, graph = example(name, 3, 5)

    def loss(x: Tensor) -> Tensor:
        return layer(x, graph.edge_index, batch=graph.batch).square().sum()

    leaf = x.clone().requires_grad_()
    torch.testing.assert_close(grad(loss)(x), torch.autograd.grad(loss(leaf), leaf)[0])


@pytest.mark.parametrize(
    ('make', 'shapes'),
    [
        (lambda: TopologicalViT(8, 2, 1, 10, 8, 1, 2, 16, mask=lambda i: GRFMask(2, seed=i), dense_limit=0), [(3, 1, 8, 8)]),
        (lambda: TopologicalViT(8, 2, 1, 10, 8, 1, 2, 16, mask=lambda i: HopMask(2)), [(3, 1, 8, 8)]),
        (lambda: Interlacer(5, 8, 2, num_layers=1), [(7, 5), (7, 2)]),
        (lambda: Interlacer(5, 8, 2, num_layers=1, local='message_passing'), [(7, 5), (7, 2)]),
        (lambda: Interlacer(5, 8, 2, num_layers=1, local='message_passing', num_anchors=3), [(7, 5), (7, 2)]),
    ],
    ids=['sparse grid', 'dense grid', 'walks', 'message passing', 'anchors'],
)
def test_models_that_make_graphs(make: Callable[[], Module], shapes: list[tuple[int, ...]]) -> None:
    torch.manual_seed(0)
    model = make().double().eval()
    for value in model.parameters():  # Interlacer starts with output 0
        torch.nn.init.normal_(value, std=0.5)
    inputs = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    parameters = dict(model.named_parameters())

    def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(model, parameters, (x, *inputs[1:])).square().sum()

    actual = grad(loss)(parameters, inputs[0])  # the first call of the model
    torch.testing.assert_close(actual, gradients(loss, parameters, inputs[0]))
    stacked = {name: torch.stack([value, 1.1 * value]) for name, value in parameters.items()}
    members = [loss({name: value[place] for name, value in stacked.items()}, inputs[0]) for place in range(2)]
    torch.testing.assert_close(vmap(loss, (0, None))(stacked, inputs[0]), torch.stack(members))


def test_second_derivatives() -> None:
    layer, parameters, x, graph = example('kmip', 3, 5)
    loss = loss_of(layer.eval(), graph)

    def penalty(parameters: dict[str, Tensor]) -> Tensor:
        return grad(loss, argnums=1)(parameters, x).square().sum()

    def reference(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        leaf = x.clone().requires_grad_()
        return torch.autograd.grad(loss(parameters, leaf), leaf, create_graph=True)[0].square().sum()

    torch.testing.assert_close(grad(penalty)(parameters), gradients(reference, parameters, x))


@pytest.mark.parametrize(('name', 'sizes'), covering(by_day(LAYERS, OF_EACH_KIND), [(3,), (1, 2)]))
def test_jacobians_and_hessians(name: str, sizes: tuple[int, ...]) -> None:
    layer, _, x, graph = example(name, *sizes)

    def loss(x: Tensor) -> Tensor:
        return layer(x, graph=graph).square().sum()

    layer.eval()
    torch.testing.assert_close(jacrev(lambda x: layer(x, graph=graph))(x), jacobian(lambda x: layer(x, graph=graph), x))
    torch.testing.assert_close(jacrev(jacrev(loss))(x), hessian(loss, x))


def test_transformed_edge_weights_are_refused() -> None:
    layer, _, x, graph = example('adjacency', 3)
    with pytest.raises(ArgumentError, match='edge_weight'):
        grad(lambda weight: layer(x, graph.edge_index, weight).sum())(torch.ones(graph.num_edges))


def test_forward_mode_is_refused_by_name() -> None:
    layer, _, x, graph = example('adjacency', 3, 5)
    with pytest.raises(NotImplementedError, match=r'attend_entries.*forward-mode'):
        jvp(lambda x: layer(x, graph=graph), (x,), (x,))
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match=r'attend_entries.*forward-mode'):
        layer(forward_ad.make_dual(x, x), graph=graph)


def test_drawn_pairs_are_refused_in_a_batch() -> None:
    layer, parameters, x, graph = example('kmip', 3, 5)
    layer.extra_edges = 'input'
    loss = loss_of(layer, graph)
    torch.testing.assert_close(grad(loss)(parameters, x), gradients(loss, parameters, x))
    with pytest.raises(ArgumentError, match='extra_edges'):
        vmap(loss, (None, 0))(parameters, torch.stack([x, -x]))
