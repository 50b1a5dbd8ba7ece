r"""Rows of linear attention, beside the dense equation and the output of the layer."""

import pytest
import torch

from pyg_topomask.apps.diagnostics import attention_rows, mask_rows
from pyg_topomask.masks import PowerSeriesMask
from pyg_topomask.nn import GRFAttention, HopAttention, KMIPAttention, MaskedLinearAttention, RWGNKAttention, SinDegreeAttention
from tests.devices import batch

LAYERS = {
    'hop': lambda: HopAttention(8, heads=2, max_hops=2),
    'grf': lambda: GRFAttention(8, heads=2, num_walks=4),
    'sin-degree': lambda: SinDegreeAttention(8, heads=2),
    'power series': lambda: MaskedLinearAttention(8, heads=2, mask=PowerSeriesMask(2), feature_map='elu'),
    'dynamic kernel': lambda: RWGNKAttention(8, 2, dynamic=True, feature_map='elu').eval(),
    'features of a graph': lambda: MaskedLinearAttention(8, heads=2, feature_map='derf'),
    'no mask': lambda: MaskedLinearAttention(8, heads=2, feature_map='elu'),
}


@pytest.mark.parametrize('name', LAYERS)
def test_rows_times_values_are_the_output(name: str) -> None:
    data = batch()
    layer = LAYERS[name]().double()
    x = torch.randn(data.num_nodes, 8, dtype=torch.float64)
    rows = attention_rows(layer, range(data.num_nodes), x, data.edge_index, batch=data.batch)
    values = layer.lin_v(x).view(-1, 2, 4)
    out = layer.lin_out(torch.einsum('hij,jhc->ihc', rows, values).flatten(1))
    torch.testing.assert_close(out, layer(x, data.edge_index, batch=data.batch))
    assert not rows[:, data.batch[:, None] != data.batch].any()


def test_equation() -> None:
    data = batch()
    layer = HopAttention(8, heads=2, max_hops=2, feature_map='elu').double()
    x = torch.randn(data.num_nodes, 8, dtype=torch.float64)
    nodes = torch.tensor([4, 0])
    rows = attention_rows(layer, nodes, x, graph=data)
    q, k = (torch.nn.functional.elu(lin(x)).add(1).view(-1, 2, 4).detach().numpy() for lin in (layer.lin_q, layer.lin_k))
    mask = mask_rows(layer.mask, data, nodes).numpy()
    for head in range(2):
        weight = mask[head] * (q[nodes, head] @ k[:, head].T)
        torch.testing.assert_close(rows[head], torch.from_numpy(weight / weight.sum(1, keepdims=True)))


def test_zero_rows_stay_zero() -> None:
    layer = HopAttention(8, heads=2)
    with torch.no_grad():
        layer.lin_q.weight.zero_()
        layer.lin_q.bias.fill_(-1.0)
    rows = attention_rows(layer, [0, 1], torch.randn(3, 8), torch.tensor([[0, 1], [1, 0]]))
    assert torch.equal(rows, torch.zeros(2, 2, 3))


def test_other_layers_are_refused() -> None:
    with pytest.raises(ValueError, match=r'^layer: got KMIPAttention; accepted: linear attention'):
        attention_rows(KMIPAttention(8), 0, torch.randn(3, 8), torch.empty(2, 0, dtype=torch.long))


def test_huge_features_stay_finite() -> None:
    data = batch()
    layer = HopAttention(8, heads=2, max_hops=2)
    rows = attention_rows(layer, range(data.num_nodes), 1e25 * torch.randn(data.num_nodes, 8), graph=data)
    assert rows.isfinite().all()
    assert rows.any()


def test_features_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match=r'^x: got shape \(3, 4\)'):
        attention_rows(HopAttention(8), 0, torch.randn(3, 4), torch.empty(2, 0, dtype=torch.long))
