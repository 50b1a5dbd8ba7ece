"""The layers that are named after their mask: linear attention under it, gradients, and arguments."""

import pytest
import torch
from graphs import small_graph

from pyg_topomask import masks, nn

# The layer, its mask, and arguments of the mask that differ from their defaults.
LAYERS = {
    'grf': (nn.GRFAttention, masks.GRFMask, {'num_walks': 8, 'seed': 5}),
    'hop': (nn.HopAttention, masks.HopMask, {'max_hops': 2}),
    'rwgnk': (nn.RWGNKAttention, masks.RWGNKMask, {'num_walks': 8, 'p_halt': 0.2, 'lam': 0.5, 'alpha': 0.5, 'seed': 5}),
    'rwgnk_exact': (nn.RWGNKAttention, masks.RWGNKMask, {'num_walks': None}),
    'sin_degree': (nn.SinDegreeAttention, masks.SinDegreeMask, {'max_degree': 3, 'flow': 'target_to_source'}),
    'toeplitz': (nn.ToeplitzAttention, masks.ToeplitzMask, {'shape_dims': 1, 'window': 2, 'kind': 'distance'}),
}


@pytest.mark.parametrize('name', LAYERS)
def test_layer_is_linear_attention_under_its_mask(name: str) -> None:
    layer, mask, options = LAYERS[name]
    actual, data, x = layer(8, 2, **options, feature_map='elu'), small_graph(), torch.randn(6, 8)
    expected = nn.MaskedLinearAttention(8, 2, mask(2, **options), 'elu')
    expected.load_state_dict(actual.state_dict())
    out = actual(x, data.edge_index)
    assert torch.equal(out, expected(x, data.edge_index))
    out.square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in actual.parameters())
