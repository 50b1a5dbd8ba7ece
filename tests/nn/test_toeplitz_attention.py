import numpy as np
import pytest
import torch
from scipy.linalg import toeplitz
from torch_geometric.data import Data

from pyg_topomask.nn import ToeplitzAttention
from pyg_topomask.transforms import AddGridShape

NO_EDGES = torch.empty(2, 0, dtype=torch.long)


def expected(layer: ToeplitzAttention, x: torch.Tensor, table: np.ndarray) -> np.ndarray:
    """Linear attention with ReLU features on a line, from its definition, head by head."""
    offset = np.arange(len(x))
    window = table.shape[1] // 2
    outputs = []
    q, k, v = (lin(x).detach().numpy().reshape(len(x), 2, -1) for lin in (layer.lin_q, layer.lin_k, layer.lin_v))
    for head in range(2):
        column = table[head][np.clip(offset, -window, window) + window]
        row = table[head][np.clip(-offset, -window, window) + window]
        weight = toeplitz(column, row) * (np.maximum(q[:, head], 0) @ np.maximum(k[:, head], 0).T)
        total = weight.sum(1, keepdims=True)
        outputs.append(weight @ v[:, head] / np.where(total == 0, 1, total))  # rows without weight are zero
    return layer.lin_out(torch.from_numpy(np.concatenate(outputs, axis=1))).detach().numpy()


def test_sequences_of_a_batch_are_lines() -> None:
    table = torch.rand(2, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.1
    layer = ToeplitzAttention(8, heads=2, window=3, initial=table).double()
    x = torch.randn(12, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    batch = torch.tensor([0] * 7 + [2] * 5)
    actual = layer(x, NO_EDGES, batch=batch).detach().numpy()
    outputs = [expected(layer, sequence, table.numpy()) for sequence in (x[:7], x[7:])]
    np.testing.assert_allclose(actual, np.concatenate(outputs), rtol=1e-9, atol=1e-12)


def test_grids() -> None:
    data = AddGridShape((2, 3))(Data(x=torch.randn(6, 8), edge_index=NO_EDGES))
    layer = ToeplitzAttention(8, 2, shape_dims=2)
    assert layer(data.x, NO_EDGES, graph=data).shape == (6, 8)
    with pytest.raises(ValueError, match=r'^grid_shape: got a graph without it'):
        layer(data.x, NO_EDGES)
