"""Rows of masks, and which nodes they are of."""

import pytest
import torch
from graphs import ring
from torch_geometric.data import Data

from pyg_topomask.apps.diagnostics import mask_rows, weight_by_hops
from pyg_topomask.masks import PackingMask, PowerSeriesMask
from pyg_topomask.nn import HopAttention


def test_rows_of_masks_in_float64_are_too() -> None:
    mask = PowerSeriesMask(2, 3).double()
    data = Data(edge_index=ring(7), num_nodes=7)
    rows = mask_rows(mask, data, torch.arange(7))
    torch.testing.assert_close(rows, mask(data).to_dense(), rtol=1e-14, atol=1e-15)


def test_a_boolean_mask_names_nodes() -> None:
    data, mask = Data(edge_index=ring(6), num_nodes=6), PowerSeriesMask()
    chosen, nodes = torch.tensor([False, True, False, False, True, False]), torch.tensor([1, 4])
    torch.testing.assert_close(mask_rows(mask, data, chosen), mask_rows(mask, data, nodes))
    torch.testing.assert_close(weight_by_hops(mask, data, 2, chosen), weight_by_hops(mask, data, 2, nodes))


def test_nodes_may_be_numbers_and_lists() -> None:
    data, mask = Data(edge_index=ring(6), num_nodes=6), PowerSeriesMask()
    torch.testing.assert_close(mask_rows(mask, data, 4), mask_rows(mask, data, torch.tensor([4])))
    torch.testing.assert_close(mask_rows(mask, data, [4, 1]), mask_rows(mask, data, torch.tensor([4, 1])))
    assert mask_rows(mask, data, []).shape == (1, 0, 6)


def test_layers_are_no_masks() -> None:
    with pytest.raises(ValueError, match=r'^mask: got HopAttention; accepted: a Mask, for example layer.mask'):
        mask_rows(HopAttention(8), Data(edge_index=ring(6), num_nodes=6), 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    'nodes', [6, [0, 6], torch.tensor([0, 6]), torch.tensor([-1]), torch.tensor([0.0]), torch.tensor([True])]
)
def test_nodes_that_do_not_exist_are_refused(nodes: int | list[int] | torch.Tensor) -> None:
    data = Data(edge_index=ring(6), num_nodes=6)
    for call in (mask_rows, lambda *arguments: weight_by_hops(*arguments[:2], 2, arguments[2])):
        with pytest.raises(ValueError, match=r'^nodes: got'):
            call(PackingMask(), data, nodes)


def test_rows_need_nodes() -> None:
    with pytest.raises(ValueError, match=r'^nodes: got None; accepted: whole numbers from 0 to 5'):
        mask_rows(PackingMask(), Data(edge_index=ring(6), num_nodes=6), None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r'^nodes: got 0; accepted: no numbers, as the graph has no nodes'):
        mask_rows(PackingMask(), Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=0), 0)
