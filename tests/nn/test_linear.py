"""Projections as torch's linear layers, so that adapters and quantization find them."""

from __future__ import annotations

import pytest
import torch
from graphs import ring
from public_modules import MODULES
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn.dense import Linear as LazyLinear

from pyg_topomask.masks import AdjacencyMask
from pyg_topomask.nn import GatedGCNConv, GRFAttention, KMIPAttention, MaskedSoftmaxAttention
from pyg_topomask.nn.models import GKAT, Interlacer

LAYERS = {
    'linear': lambda channels: GRFAttention(channels, 2, out_channels=8),
    'softmax': lambda channels: MaskedSoftmaxAttention(channels, 2, AdjacencyMask(2), out_channels=8),
    'kmip': lambda channels: KMIPAttention(channels, 2, out_channels=8, k=3),
}


class LoRA(Module):
    """What PEFT 0.17 puts in the place of a torch.nn.Linear: an update of low rank, and the size and weight of the layer."""

    def __init__(self, base: torch.nn.Linear) -> None:
        super().__init__()
        self.base_layer, self.in_features = base.requires_grad_(False), base.in_features
        self.down = torch.nn.Linear(base.in_features, 2, bias=False)
        self.up = torch.nn.Linear(2, base.out_features, bias=False)
        torch.nn.init.zeros_(self.up.weight)

    @property
    def weight(self) -> Tensor:
        return self.base_layer.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.base_layer(x) + self.up(self.down(x))


def test_every_projection_of_known_width_is_one_of_torch() -> None:
    of_pyg = ('conv.', 'lin_out.lins.')  # a convolution, and the MLP of GKAT
    for name, make in MODULES.items():
        ours = [module for key, module in make().named_modules() if not key.startswith(of_pyg)]
        assert LazyLinear not in map(type, ours), name


def test_unknown_widths_are_inferred() -> None:
    for layer in (*(make(-1) for make in LAYERS.values()), GKAT(-1, 4, 2, heads=(2, 1), lin_channels=4), Interlacer(-1, 4, 8)):
        assert any(isinstance(module, LazyLinear) for module in layer.modules())


@pytest.mark.parametrize('name', LAYERS)
def test_state_dicts_of_pygs_layers_load(name: str) -> None:
    torch.manual_seed(0)
    layer, lazy, x = LAYERS[name](6), LAYERS[name](-1), torch.randn(5, 6)
    expected = lazy(x, ring(5))  # all layers of PyG, as every layer had them
    assert list(layer.state_dict()) == list(lazy.state_dict())
    layer.load_state_dict(lazy.state_dict())
    torch.testing.assert_close(layer(x, ring(5)), expected, rtol=0, atol=0)


@pytest.mark.parametrize('name', LAYERS)
def test_adapters_of_low_rank(name: str) -> None:
    torch.manual_seed(0)
    layer, x = LAYERS[name](6), torch.randn(5, 6)
    expected = layer(x, ring(5))
    for key, module in list(layer.named_children()):
        if isinstance(module, torch.nn.Linear):
            setattr(layer, key, LoRA(module))
    torch.testing.assert_close(layer(x, ring(5)), expected)
    layer(x, ring(5)).square().sum().backward()
    trained = {key for key, weight in layer.named_parameters() if weight.grad is not None and 'lin_' in key}
    assert trained == {f'{lin}.{part}.weight' for lin in ('lin_q', 'lin_k', 'lin_v', 'lin_out') for part in ('up', 'down')}


@pytest.mark.filterwarnings('ignore:.*:DeprecationWarning', 'ignore:torch.quantize_per_tensor')
@pytest.mark.parametrize('name', [*LAYERS, 'gated'])
def test_dynamic_quantization(name: str) -> None:
    """torch 2.13: weights of 8 bits. An error of a 255th of the largest weight and input for each product."""
    torch.manual_seed(0)
    layer, x = GatedGCNConv(6) if name == 'gated' else LAYERS[name](6), torch.randn(5, 6)
    more = (torch.randn(10, 6),) if name == 'gated' else ()
    quantized = torch.ao.quantization.quantize_dynamic(layer.eval(), {torch.nn.Linear}, dtype=torch.qint8)
    kinds = {type(module).__module__ for key, module in quantized.named_children() if key.startswith('lin_')}
    assert kinds == {'torch.ao.nn.quantized.dynamic.modules.linear'}
    out, expected = (each(x, ring(5), *more) for each in (quantized, layer))
    out, expected = (each[0] if name == 'gated' else each for each in (out, expected))
    error = (out - expected).abs().max()
    assert 0 < error < 0.1 * expected.abs().max()
