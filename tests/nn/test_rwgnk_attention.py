"""RWGNK attention: what the mask makes of it, its dynamic walks, and large inputs."""

import numpy as np
import pytest
import torch
from graphs import small_digraph, small_graph, uneven_graphs, with_features
from oracles import confidence
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Data

from pyg_topomask import Graph
from pyg_topomask.feature_maps import IdentityFeatures
from pyg_topomask.nn.named_attention import RWGNKAttention
from pyg_topomask.testing import assert_batch_invariant, assert_permutation_equivariant
from pyg_topomask.transforms import AddRandomWalkKernel


def run(layer: RWGNKAttention, data: Data) -> Tensor:
    graph = Graph.from_data(data)
    return layer(data.x, graph.edge_index, graph.edge_weight, graph.batch, graph=graph)


def test_exact_attention_does_not_depend_on_the_order_of_the_nodes() -> None:
    layer = RWGNKAttention(8, 2, num_walks=None, feature_map='elu')
    assert_permutation_equivariant(layer, torch.randn(6, 8), small_graph().edge_index, tolerance=1e-5)


# Dynamic walks --------------------------------------------------------------------------------------------------------


def attention_hops(layer: RWGNKAttention, x: Tensor, data: Data, weighted: bool = False) -> np.ndarray:
    """Each head's absolute attention to the sources of a node's edges, times absolute weights if asked for, normalised, and
    averaged over the heads.
    """
    q = (x @ layer.lin_q.weight.t() + layer.lin_q.bias).view(len(x), layer.heads, -1).detach().numpy()
    k = (x @ layer.lin_k.weight.t() + layer.lin_k.bias).view(len(x), layer.heads, -1).detach().numpy()
    probability = np.zeros((len(x), len(x)))
    least = -np.inf if isinstance(layer.feature_map, IdentityFeatures) else 0.0
    for head in range(layer.heads):
        for i in range(len(x)):
            edges = data.edge_index[1] == i
            ends = data.edge_index[0, edges].numpy()
            weight = np.abs(data.edge_weight[edges].numpy()) if weighted else np.ones(len(ends))
            score = weight * np.abs(np.maximum(k[ends, head], least) @ np.maximum(q[i, head], least))
            if len(ends) > 0:
                share = score / score.sum() if score.sum() > 0 else weight / weight.sum()
                np.add.at(probability[i], ends, share / layer.heads)
    return probability


def walked(layer: RWGNKAttention, *arguments: object, **keywords: object) -> tuple[Tensor, Graph, np.ndarray]:
    """The output of a layer, the graph that its mask walks on, and the mask."""
    seen: list[tuple[Graph, np.ndarray]] = []
    hook = layer.mask.register_forward_hook(lambda _, given, mask: seen.append((given[0], mask.to_dense().detach().numpy())))
    try:
        out = layer(*arguments, **keywords)
    finally:
        hook.remove()
    ((graph, mask),) = seen
    return out, graph, mask


@pytest.mark.parametrize(('weighted', 'feature_map'), [(False, 'relu'), (True, 'relu'), (False, 'identity')])
def test_exact_kernel_of_the_attention(weighted: bool, feature_map: str) -> None:
    data, x = small_digraph(), torch.randn(6, 8)
    layer = RWGNKAttention(
        8,
        2,
        dynamic=True,
        num_walks=None,
        max_walk_length=2,
        lam=0.5,
        alpha=0.0,
        transition='weight' if weighted else 'uniform',
        feature_map=feature_map,
    )
    with torch.no_grad():
        layer.lin_q.bias[:4] = -9.0  # of no edges of the first head ReLU leaves any weight
    _, graph, mask = walked(layer, x, data.edge_index, data.edge_weight)
    step = attention_hops(layer, x, data, weighted)
    assert np.ptp(step[step > 0]) > 0.1
    np.testing.assert_allclose(graph.weight.numpy(), step[data.edge_index[1], data.edge_index[0]], atol=1e-6)
    frequency = np.eye(6) + 0.5 * step + 0.25 * step @ step
    np.testing.assert_allclose(mask[1], frequency @ frequency.T, atol=1e-5)


def test_walkers_hop_with_the_probabilities_of_the_attention() -> None:
    data, walks, x = small_digraph(), 4000, torch.randn(6, 8)
    layer = RWGNKAttention(8, 2, dynamic=True, num_walks=walks, max_walk_length=1, lam=1.0, alpha=0.0, learnable=False)
    _, _, mask = walked(layer, x, data.edge_index, generator=torch.Generator().manual_seed(0))
    step = attention_hops(layer, x, data)
    frequency = np.eye(6) + step
    np.testing.assert_allclose(mask[0], frequency @ frequency.T, atol=confidence(36) * 2 / np.sqrt(walks))
    assert np.abs(mask[0] - np.eye(6)).max() > 0.1


def test_walks_of_features_whose_products_overflow_are_those_of_the_edges() -> None:
    data = small_digraph()
    layer = RWGNKAttention(8, 2, dynamic=True, num_walks=None, feature_map='relu').double()
    for lin in (layer.lin_q, layer.lin_k):
        lin.weight.data.abs_()
    _, graph, mask = walked(layer, 1e200 * (torch.rand(6, 8, dtype=torch.float64) + 1), data.edge_index)
    degree = torch.bincount(data.edge_index[1], minlength=6)
    torch.testing.assert_close(graph.weight, degree[data.edge_index[1]].float().reciprocal())
    assert np.isfinite(mask).all()


def test_training_draws_walks_anew_and_evaluation_does_not() -> None:
    data, x = small_graph(), torch.randn(6, 8)
    layer, graph = RWGNKAttention(8, 2, dynamic=True, feature_map='elu'), Graph.from_tensors(data.edge_index, 6)
    assert not torch.equal(layer(x, graph=graph), layer(x, graph=graph))
    torch.manual_seed(0)
    first = layer(x, graph=graph)
    torch.manual_seed(0)
    assert torch.equal(first, layer(x, graph=graph))
    layer.eval()
    assert torch.equal(layer(x, graph=graph), layer(x, graph=Graph.from_tensors(data.edge_index, 6)))
    other = RWGNKAttention(8, 2, dynamic=True, feature_map='elu', seed=1).eval()
    other.load_state_dict(layer.state_dict())
    assert not torch.equal(layer(x, graph=graph), other(x, graph=graph))
    with torch.no_grad():
        before = walked(layer, x, graph=graph)[1].weight
        layer.lin_q.weight.mul_(-3.0)
        assert not torch.allclose(before, walked(layer, x, graph=graph)[1].weight)


@pytest.mark.parametrize('num_walks', [4, None])
def test_dynamic_walks_stay_within_their_graph(num_walks: int | None) -> None:
    layer = RWGNKAttention(8, 2, dynamic=True, feature_map='elu', num_walks=num_walks).eval()
    assert_batch_invariant(layer, with_features(uneven_graphs()), tolerance=1e-4)


@pytest.mark.parametrize('reentrant', [False, True])
def test_checkpointing_repeats_dynamic_walks(reentrant: bool) -> None:
    data, layer = small_graph(), RWGNKAttention(8, 2, dynamic=True, feature_map='elu')
    x = torch.randn(6, 8, requires_grad=True)
    gradients = []
    for again in (False, True):
        torch.manual_seed(0)
        out = checkpoint(layer, x, data.edge_index, use_reentrant=reentrant) if again else layer(x, data.edge_index)
        gradients.append(torch.autograd.grad(out.square().sum(), x)[0] if not reentrant else _gradient(out, x))
    torch.testing.assert_close(*gradients)


def _gradient(out: Tensor, x: Tensor) -> Tensor:
    """Reentrant checkpointing works with backward() alone."""
    x.grad = None
    out.square().sum().backward()
    return x.grad.clone()


def test_dynamic_walks_under_transforms_and_compiled() -> None:
    data, x = small_graph(), torch.randn(6, 8)
    layer = RWGNKAttention(8, 2, dynamic=True, feature_map='elu').eval()
    expected = layer(x, data.edge_index)
    out = torch.func.functional_call(layer, dict(layer.named_parameters()), (x, data.edge_index))
    torch.testing.assert_close(out, expected)
    gradient = torch.func.grad(lambda x: layer(x, data.edge_index).square().sum())(x)
    given = x.clone().requires_grad_()
    torch.testing.assert_close(gradient, torch.autograd.grad(layer(given, data.edge_index).square().sum(), given)[0])
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(layer, backend='eager')(x, data.edge_index), expected)
    with pytest.raises(ValueError, match=r'^dynamic: got True under vmap'):
        torch.vmap(lambda x: layer(x, data.edge_index))(torch.stack([x, x]))
    with pytest.raises(ValueError, match=r'^dynamic: got True under torch.export'):
        torch.export.export(layer, (x, data.edge_index), strict=False)


def test_what_dynamic_walks_cannot_do_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^resample: got 'forward' with dynamic=True"):
        RWGNKAttention(8, 2, dynamic=True, resample='forward')
    with pytest.raises(ValueError, match=r"^dynamic: got 'no'; accepted: False, True"):
        RWGNKAttention(8, 2, dynamic='no')
    with pytest.raises(ValueError, match=r"^sampler: got 'repelling' with dynamic=True"):
        RWGNKAttention(8, 2, dynamic=True, sampler='repelling')
    data = AddRandomWalkKernel()(small_graph())
    layer = RWGNKAttention(8, 2, dynamic=True).eval()
    with pytest.warns(UserWarning, match=r'^graph: got stored walks'):
        layer(torch.randn(6, 8), graph=Graph.from_data(data))


def test_dynamic_walks_tell_what_edge_weights_do() -> None:
    data, x, weight = small_graph(), torch.randn(6, 8), torch.full((14,), 2.0, requires_grad=True)
    with pytest.warns(UserWarning, match=r'^edge_weight: got weights, which have no effect in RWGNKAttention'):
        RWGNKAttention(8, 2, dynamic=True)(x, data.edge_index, weight.detach())
    with pytest.warns(UserWarning, match=r'^edge_weight: got weights that require a gradient'):
        RWGNKAttention(8, 2, dynamic=True, transition='weight')(x, data.edge_index, weight)


@pytest.mark.parametrize('size', [1e-30, 1e25])
def test_dynamic_walks_of_tiny_and_large_features(size: float) -> None:
    data, x = small_digraph(), torch.randn(6, 8)
    layer = RWGNKAttention(8, 2, dynamic=True, bias=False, num_walks=None)
    _, graph, _ = walked(layer, x, data.edge_index)
    out, scaled, _ = walked(layer, size * x, data.edge_index)
    torch.testing.assert_close(scaled.weight, graph.weight)
    assert out.isfinite().all()


def test_dynamic_walks_pass_on_features_that_are_not_finite() -> None:
    data, x = small_digraph(), torch.randn(6, 8)
    for wrong in (float('nan'), float('inf')):
        x[0] = wrong
        assert RWGNKAttention(8, 2, dynamic=True)(x, data.edge_index)[0].isnan().all()


def test_text_of_a_dynamic_layer() -> None:
    assert repr(RWGNKAttention(8, 2, dynamic=True)).endswith(', dynamic=True)')
    assert 'dynamic' not in repr(RWGNKAttention(8, 2))
