import copy
from collections.abc import Callable

import pytest
import torch
from explicit_layers import (
    CHANNELS,
    HEADS,
    LAYERS,
    features,
    graph_named,
    softmax,
)
from graphs import small_graph
from grids import covering
from torch import Tensor
from torch_geometric.nn import GCNConv, Sequential

from pyg_topomask.masks import AdjacencyMask
from pyg_topomask.nn import AsymmetricGRFAttention, GRFSoftmaxAttention, MaskedSoftmaxAttention, TopoGPSConv
from pyg_topomask.nn.explicit_attention import ExplicitAttention

# Modules --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', LAYERS)
def test_reset_changes_the_weights_and_restores_the_mask(name: str) -> None:
    layer = LAYERS[name]()
    before = copy.deepcopy(layer.state_dict())
    with torch.no_grad():
        for parameter in layer.mask.parameters():
            parameter.fill_(0.125)
    layer.reset_parameters()
    after = layer.state_dict()
    for key in before:
        if key.startswith('mask'):
            assert torch.equal(before[key], after[key]), key
        elif key.endswith(('weight', 'projection')):
            assert not torch.equal(before[key], after[key]), key


@pytest.mark.parametrize(
    'make',
    [
        lambda: MaskedSoftmaxAttention(-1, HEADS, AdjacencyMask(), out_channels=4),
        lambda: GRFSoftmaxAttention(-1, HEADS, out_channels=4),
        lambda: AsymmetricGRFAttention(-1, HEADS, out_channels=4),
    ],
)
def test_channels_are_inferred_at_the_first_call(make: Callable[[], ExplicitAttention]) -> None:
    layer, data = make(), small_graph()
    copied = copy.deepcopy(layer)
    x = features(data, 5)
    assert layer(x, data.edge_index).shape == (6, 4)
    assert layer.lin_q.weight.shape == (4, 5)
    copied.load_state_dict(layer.state_dict())
    assert torch.equal(copied(x, data.edge_index), layer(x, data.edge_index))
    assert copied(x, data.edge_index, return_attention_weights=True)[0].shape == (6, 4)


@pytest.mark.parametrize('name', LAYERS)
def test_inside_a_gps_layer_and_sequential(name: str) -> None:
    data, attn = graph_named('batch'), LAYERS[name]()
    x = features(data)
    layer = TopoGPSConv(CHANNELS, GCNConv(CHANNELS, CHANNELS), attn=attn, norm=None)
    out = layer(x, data.edge_index, data.batch, edge_weight=data.edge_weight)
    h = layer.conv(x, data.edge_index, edge_weight=data.edge_weight) + x
    h = h + attn(x, data.edge_index, data.edge_weight, data.batch) + x
    torch.testing.assert_close(out, h + layer.mlp(h))
    out.sum().backward()
    assert all(parameter.grad is not None for parameter in attn.parameters())
    model = Sequential('x, edge_index, edge_weight, batch', [(attn, 'x, edge_index, edge_weight, batch -> x'), torch.nn.ReLU()])
    expected = attn(x, data.edge_index, data.edge_weight, data.batch).relu()
    torch.testing.assert_close(model(x, data.edge_index, data.edge_weight, data.batch), expected)


# Dropout --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(('name', 'looked_at'), covering(LAYERS, [False, True]))
def test_dropout_of_the_output_in_training_only(name: str, looked_at: bool) -> None:
    data, layer = small_graph(), LAYERS[name](dropout=0.5)
    x = features(data)

    def run() -> Tensor:
        out = layer(x, data.edge_index, return_attention_weights=looked_at)
        return out[0] if looked_at else out

    dropped = run()
    assert (dropped == 0).any()
    layer.eval()
    whole = run()
    assert not (whole == 0).any()
    torch.testing.assert_close(dropped[dropped != 0], 2 * whole[dropped != 0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('name', ['softmax', 'grf_softmax'])
def test_dropout_of_the_coefficients_in_training_only(name: str) -> None:
    data, layer = small_graph(), LAYERS[name](attention_dropout=0.5)
    x = features(data)
    torch.manual_seed(1)
    dropped = layer(x, data.edge_index)
    torch.manual_seed(1)
    shown, (_, alpha) = layer(x, data.edge_index, return_attention_weights=True)
    torch.testing.assert_close(shown, dropped)
    layer.eval()
    whole, (_, kept) = layer(x, data.edge_index, return_attention_weights=True)
    torch.testing.assert_close(layer(x, data.edge_index), whole)
    assert not torch.allclose(whole, shown)
    assert (alpha == 0).any()
    assert not (kept == 0).any()
    torch.testing.assert_close(alpha[alpha != 0], 2 * kept[alpha != 0])


# Errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('looked_at', [False, True])
@pytest.mark.parametrize('name', ['grf_softmax', 'asymmetric'])
def test_too_many_entries_are_refused(name: str, looked_at: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    data, layer = small_graph(), LAYERS[name]()
    monkeypatch.setattr('pyg_topomask.operators.forms.MAX_ENTRIES', 5)
    with pytest.raises(ValueError, match=r'^mask: got .* entries per head; accepted: up to 5'):
        layer(features(data), data.edge_index, return_attention_weights=looked_at)


@pytest.mark.parametrize('looked_at', [False, True])
def test_masks_that_do_not_fit_are_refused(looked_at: bool) -> None:
    data = small_graph()
    x, settings = features(data), {'return_attention_weights': looked_at}
    with pytest.raises(ValueError, match=r'^mask: got the entry -'):
        softmax(AdjacencyMask(HEADS, -1.0))(x, data.edge_index, **settings)
    with pytest.raises(ValueError, match=r'^mask: got the entry -'):
        LAYERS['grf_softmax']()(x, data.edge_index, torch.full((14,), -1.0), **settings)
