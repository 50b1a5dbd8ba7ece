import pytest
import torch
from graphs import ring
from torch_geometric.data import Batch, Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import AdjacencyMask
from pyg_topomask.masks.low_rank import PaddingMask
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.testing import assert_mask_operator


def padded() -> Batch:
    valid = [[True, True, False], [False], [True, False, True, True]]
    return Batch.from_data_list([Data(valid=torch.tensor(row), num_nodes=len(row)) for row in valid])


def matrix() -> torch.Tensor:
    data = padded()
    allowed = (data.batch.unsqueeze(0) == data.batch.unsqueeze(1)) & data.valid.unsqueeze(0) & data.valid.unsqueeze(1)
    return allowed.double().expand(2, -1, -1)


def test_matrix() -> None:
    assert torch.equal(PaddingMask(2)(padded()).to_dense().double(), matrix())
    assert_mask_operator(PaddingMask(2), padded())
    assert_mask_operator(PaddingMask(), Data(valid=torch.zeros(0, dtype=torch.bool), num_nodes=0))


def test_padded_nodes_neither_attend_nor_are_attended() -> None:
    data, q = padded(), torch.rand(8, 2, 3)
    out = masked_linear_attention(q, q, q, PaddingMask(2)(data))
    assert not out[~data.valid].any()
    changed = q.masked_fill(~data.valid.view(-1, 1, 1), 1e3)
    torch.testing.assert_close(masked_linear_attention(changed, changed, changed, PaddingMask(2)(data)), out)


def test_product_leaves_padded_nodes_out_of_any_mask() -> None:
    data = Data(edge_index=ring(4), real=torch.tensor([True, True, True, False]), num_nodes=4)
    product = (AdjacencyMask() * PaddingMask(valid='real'))(data).to_dense()
    assert not product[:, 3].any()
    assert not product[:, :, 3].any()
    assert torch.equal(product[:, :3, :3], AdjacencyMask()(data).to_dense()[:, :3, :3])


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"^valid: got the attribute name 'valid', which the data lacks"):
        PaddingMask()(Graph.from_tensors(ring(3), 3))
    for wrong in (torch.ones(3), torch.ones(2, dtype=torch.bool), [True] * 3):
        with pytest.raises(ValueError, match=r"^valid: got 'valid' with"):
            PaddingMask()(Data(valid=wrong, num_nodes=3))
