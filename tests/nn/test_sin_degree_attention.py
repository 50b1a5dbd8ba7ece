import pytest
import torch
from graphs import small_graph, uneven_graphs, with_features

from pyg_topomask.masks.sin_degree import SinDegreeMask
from pyg_topomask.nn.masked_linear_attention import MaskedLinearAttention
from pyg_topomask.nn.sin_degree_attention import SinDegreeAttention
from pyg_topomask.testing import assert_batch_invariant, assert_permutation_equivariant


def test_batch_invariance() -> None:
    assert_batch_invariant(SinDegreeAttention(8, 2), with_features(uneven_graphs()), tolerance=1e-5)


def test_permutation_equivariance() -> None:
    data = small_graph()
    assert_permutation_equivariant(SinDegreeAttention(8, 2, feature_map='elu'), torch.randn(6, 8), data.edge_index)


def test_layer_is_linear_attention_under_its_mask() -> None:
    data, layer = small_graph(), SinDegreeAttention(8, 2, max_degree=3, embedding_dim=5, flow='target_to_source')
    reference = MaskedLinearAttention(8, 2, SinDegreeMask(2, 3, 5, 'target_to_source'), 'simplex')
    reference.load_state_dict(layer.state_dict())
    x = torch.randn(6, 8)
    assert torch.equal(layer(x, data.edge_index), reference(x, data.edge_index))


def test_gradients_reach_every_parameter() -> None:
    data, layer = small_graph(), SinDegreeAttention(8, 2)
    layer(torch.randn(6, 8), data.edge_index).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in layer.parameters())


@pytest.mark.parametrize(
    ('name', 'arguments'),
    [('heads', {'heads': 3}), ('flow', {'flow': 'up'}), ('feature_map', {'feature_map': 'unknown'})],
)
def test_bad_arguments_are_named(name: str, arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f'^{name}: got'):
        SinDegreeAttention(**{'channels': 8} | arguments)
