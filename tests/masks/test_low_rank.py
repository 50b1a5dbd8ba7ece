import re

import pytest
import torch
from torch_geometric.data import Batch, Data

from pyg_topomask import Graph
from pyg_topomask.masks import LowRankMask, low_rank_operator


def pair(nodes: int, shift: float) -> Data:
    left = torch.arange(nodes, dtype=torch.float64).unsqueeze(1) + shift
    return Data(mask_left=left, mask_right=left + 1, num_nodes=nodes)


def test_factors_named_on_the_data_are_batched_with_it() -> None:
    graphs = [pair(2, 0.5), pair(3, -1.0)]
    mask = LowRankMask(2)
    expected = torch.block_diag(*(mask(data).to_dense()[0] for data in graphs))
    assert torch.equal(mask(Batch.from_data_list(graphs)).to_dense()[1], expected)
    assert torch.equal(mask(graphs[0]).to_dense()[0], graphs[0].mask_left @ graphs[0].mask_right.T)


def test_factors_may_be_learned() -> None:
    left, right = torch.nn.Parameter(torch.randn(3, 2)), torch.nn.Parameter(torch.randn(3, 2))
    mask = LowRankMask(left=left, right=right)
    assert {id(parameter) for parameter in mask.parameters()} == {id(left), id(right)}
    mask(Data(num_nodes=3)).to_dense().square().sum().backward()
    assert left.grad.any()
    assert right.grad.any()


def test_reset_restores_the_learned_factors() -> None:
    given, fixed = torch.randn(3, 2), torch.randn(3, 2)
    mask = LowRankMask(left=torch.nn.Parameter(given.clone()), right=fixed)
    assert list(mask.state_dict()) == ['left', 'right']
    with torch.no_grad():
        mask.left.mul_(2.0)
    mask.reset_parameters()
    assert torch.equal(mask.left, given)
    assert torch.equal(mask.right, fixed)


def test_missing_factor_is_named() -> None:
    with pytest.raises(ValueError, match=r"left: got the attribute name 'mask_left'"):
        LowRankMask()(Data(num_nodes=2))


@pytest.mark.parametrize('factor', [torch.ones(3), torch.ones(4, 1), torch.ones(3, 5, 1)])
def test_factor_that_does_not_fit_is_named(factor: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=r'^right: got'):
        LowRankMask(2, torch.ones(3, 1), factor)(Data(num_nodes=3))


@pytest.mark.parametrize('name', ['left', 'right'])
def test_factors_that_are_not_finite_are_named(name: str) -> None:
    bad = torch.tensor([[1.0], [float('nan')], [2.0]])
    for factor in (bad, torch.nn.Parameter(bad)):
        with pytest.raises(ValueError, match=rf'^{name}: got nan at \[1, 0\]; accepted: finite numbers'):
            LowRankMask(2, **{'left': torch.ones(3, 1), 'right': torch.ones(3, 1)} | {name: factor})
    data = Data(mask_left=torch.ones(3, 1), mask_right=torch.ones(3, 1), num_nodes=3)
    data[f'mask_{name}'] = bad
    with pytest.raises(ValueError, match=rf'^{name}: got nan at'):
        LowRankMask()(data)
    data[f'mask_{name}'] = [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match=rf"^{name}: got 'mask_{name}' with list; accepted: a tensor"):
        LowRankMask()(data)


def test_factors_on_the_data_are_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, mask, calls = Graph.from_data(pair(3, 0.5)), LowRankMask(), []
    monkeypatch.setattr('pyg_topomask.masks.low_rank.check_entries', lambda name, given: calls.append(name))
    for _ in range(2):
        mask(graph)
    assert calls == ['left', 'right']


def test_factors_without_columns_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r'^left: got shape \(3, 1, 0\) for 3 nodes and 1 heads; accepted: .* of rank r from 1'
    ):
        LowRankMask(1, torch.rand(3, 0), torch.rand(3, 0))(Data(num_nodes=3))


def test_operators_of_factors_that_do_not_fit_are_refused(subtests: pytest.Subtests) -> None:
    for left, right in [((2, 3, 1), (2, 3, 1)), ((3, 1), (3, 1)), ((3, 2, 1), (3, 2, 2)), ((3, 2, 1), (3, 3, 1))]:
        with subtests.test(left=left, right=right):
            graph = Graph.from_data(Data(num_nodes=3))
            with pytest.raises(
                ValueError, match=f'^left, right: got shapes {re.escape(f"{left} and {right}")} for 3 nodes; accepted:'
            ):
                low_rank_operator(graph, torch.ones(left), torch.ones(right))


def test_ranks_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match=r'^right: got rank 2 for left of rank 1'):
        LowRankMask(2, torch.ones(3, 1), torch.ones(3, 2))(Data(num_nodes=3))
