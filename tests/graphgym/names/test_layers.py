from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym.config import cfg
from torch_geometric.nn import PNAConv

from pyg_topomask.graphgym.names.layers import LOCAL_LAYERS, local_layer
from pyg_topomask.graphgym.names.networks import TopoGPSModel
from pyg_topomask.nn.local_layers import GatedGCNConv


def make_model(configure: Callable[..., None], layer_type: str, options: str = '') -> tuple[TopoGPSModel, Batch]:
    configure(f'gt.layer_type {layer_type} gt.layers 3 {options}')
    cfg.share.dim_in, cfg.share.dim_edge = 3, 2
    edge_index = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    graphs = [
        Data(x=torch.randn(4, 3), edge_index=edge_index, edge_attr=torch.randn(4, 2), y=torch.tensor([label]))
        for label in (0, 1)
    ]
    return TopoGPSModel(3, 10), Batch.from_data_list(graphs)


def test_every_name_of_graphgps_is_known(subtests: pytest.Subtests) -> None:
    for name in ['GCN', 'GIN', 'GENConv', 'GINE', 'GAT', 'PNA', 'CustomGatedGCN', 'None']:
        with subtests.test(name=name):
            assert name in LOCAL_LAYERS


@pytest.mark.parametrize('attention', ['Linear', 'GRFSoftmax', 'Transformer', 'None'])
def test_edge_features_travel_through_the_layers(configure: Callable[..., None], attention: str) -> None:
    model, batch = make_model(configure, f'CustomGatedGCN+{attention}')
    seen: list[tuple[Tensor, Tensor]] = []
    for layer in model.layers:
        layer.conv.register_forward_hook(
            lambda module, inputs, kwargs, out: seen.append((kwargs['edge_attr'], out[1])), with_kwargs=True
        )
    prediction, _ = model(batch)
    prediction.sum().backward()
    assert len(seen) == 3
    for (_, handed_on), (received, _) in pairwise(seen):
        assert received is handed_on
    assert all(layer.conv.lin_edge.weight.grad.any() for layer in model.layers)


def test_gated_gcn_takes_the_options_of_the_layer(configure: Callable[..., None]) -> None:
    model, _ = make_model(configure, 'CustomGatedGCN+Linear', 'gt.dropout 0.3 gnn.act elu')
    conv = model.layers[0].conv
    assert isinstance(conv, GatedGCNConv)
    assert conv.dropout == 0.3
    assert isinstance(conv.act, torch.nn.ELU)
    assert conv.residual


def test_gated_gcn_needs_edge_features(configure: Callable[..., None]) -> None:
    model, batch = make_model(configure, 'CustomGatedGCN+Linear', 'dataset.edge_encoder False')
    with pytest.raises(ValueError, match=r'^edge_attr: got .* for GatedGCNConv; accepted: \[E, 8\]; '):
        model(batch)


def test_degrees_of_pna_do_not_change_its_output(configure: Callable[..., None]) -> None:
    layer = local_layer('PNA')
    configure()
    x, edge_index = torch.randn(4, 8), torch.tensor([[0, 1, 2], [1, 2, 1]])
    conv = layer.build(8, 2, torch.nn.ReLU, None)
    assert isinstance(conv, PNAConv)
    cfg.gt.pna_degrees = [0, 10, 200]
    conv_with_degrees = layer.build(8, 2, torch.nn.ReLU, None)
    conv_with_degrees.load_state_dict(conv.state_dict(), strict=False)
    torch.testing.assert_close(conv_with_degrees(x, edge_index), conv(x, edge_index))
