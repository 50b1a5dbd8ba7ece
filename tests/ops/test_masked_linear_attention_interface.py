"""Masked linear attention: the choice of a route, what is refused, torch.compile, and the custom operators."""

from dataclasses import replace

import pytest
import torch
from graphs import ring, small_graph
from linear_masks import inputs, numbers
from torch_geometric.data import Batch, Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.masks import AdjacencyMask, GRFMask, HeatKernelMask, Mask, PackingMask, PowerSeriesMask
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.composed import Alternatives
from pyg_topomask.operators.description import describe
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.ops.routes import choice
from pyg_topomask.ops.routes.choice import choose_route


def bound(mask: Mask, num_nodes: int = 6) -> MaskOperator:
    return mask(Data(edge_index=ring(num_nodes), num_nodes=num_nodes))


# Routes ---------------------------------------------------------------------------------------------------------------


def test_routes_that_a_mask_does_not_offer_are_refused() -> None:
    for mask, route in ((PackingMask(), 'edges'), (GRFMask(), 'low_rank'), (AdjacencyMask() + PackingMask(), 'edges')):
        with pytest.raises(ValueError, match=r'^route: got'):
            choose_route(bound(mask), 4, 4, route)
    with pytest.raises(ValueError, match=r"^route: got 'unknown' for this mask; .*auto.*edges.*features"):
        choose_route(bound(GRFMask()), 4, 4, 'unknown')


def test_route_follows_the_cost() -> None:
    assert choose_route(bound(PackingMask()), 16, 16) == 'low_rank'
    assert choose_route(bound(AdjacencyMask()), 16, 16) == 'edges'
    assert choose_route(bound(GRFMask(num_walks=2), 1000), 16, 16) == 'edges'
    assert choose_route(bound(GRFMask(num_walks=64, p_halt=0.0, max_walk_length=32), 200), 1, 1) == 'features'
    assert choose_route(bound(AdjacencyMask() + AdjacencyMask()), 16, 16) == 'edges'
    assert all(choose_route(bound(GRFMask()), 4, 4, route) == route for route in ('features', 'blocks', 'edges'))
    assert choose_route(bound(HeatKernelMask(), 40), 16, 16) == 'blocks'
    batch = Graph.from_data(Batch.from_data_list([Data(num_nodes=20)] * 3))
    assert choose_route(PackingMask()(batch), 16, 16) == 'low_rank'
    few = Graph.from_data(Batch.from_data_list([Data(num_nodes=5)] * 3))
    assert choose_route(PackingMask()(few), 16, 16) == 'blocks'
    assert choose_route(PackingMask()(batch), 2, 2) == 'low_rank'
    assert choose_route(bound(HeatKernelMask(), 200), 4, 4) == choose_route(bound(HeatKernelMask(), 2000), 16, 16) == 'features'


def test_machine_code_is_worth_more_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    adjacency = bound(AdjacencyMask())
    for worth, compiled in ((1, False), (2, True)):
        monkeypatch.setattr(choice, 'uses_numba', lambda *arguments, compiled=compiled: compiled)
        for most, route in ((worth * 272 * 33, 'edges'), (worth * 272 * 33 + 1, 'features')):
            entries = replace(adjacency.entries, max_nnz=most)
            operator = Alternatives(adjacency, entries, segments=Segments(2**20), cost=33 * 33)
            assert choose_route(operator, 16, 16) == route


def test_too_many_entries_are_formed_on_no_route() -> None:
    adjacency = bound(AdjacencyMask())

    def mask_of(most: int, heads: int = 1) -> MaskOperator:
        entries = replace(adjacency.entries, max_nnz=most)
        return Alternatives(adjacency, entries, segments=adjacency.segments, heads=heads, cost=2**40)

    assert choose_route(mask_of(2**28), 16, 16) == choose_route(mask_of(2**26, 4), 16, 16) == 'edges'
    assert choose_route(mask_of(2**28 + 1), 16, 16) == choose_route(mask_of(2**26 + 1, 4), 16, 16) == 'blocks'
    few, many = mask_of(2**28), mask_of(2**28 + 1)
    q = torch.ones(adjacency.segments.num_nodes, 1, 2)
    expected = masked_linear_attention(q, q, q, few, 'edges')
    torch.testing.assert_close(masked_linear_attention(q, q, q, many), expected)
    with pytest.raises(ValueError, match=r'^mask: got .* 268,435,457 entries per head; accepted: up to 268,435,456'):
        masked_linear_attention(q, q, q, many, 'edges')


def test_blocks_that_are_too_large_are_refused() -> None:
    mask = bound(PowerSeriesMask(), 2**14 + 1)
    q = torch.ones(mask.segments.num_nodes, 1, 1)
    with pytest.raises(ValueError, match=r'^route: got "blocks" for .*268,435,456'):
        masked_linear_attention(q, q, q, mask, 'blocks')


# Errors ---------------------------------------------------------------------------------------------------------------


def test_shapes_that_disagree_are_named(subtests: pytest.Subtests) -> None:
    for name, shapes in [
        ('k', ((6, 2, 3), (6, 2, 4), (6, 2, 4))),
        ('k', ((6, 2), (6, 2), (6, 2, 4))),
        ('v', ((6, 2, 3), (6, 2, 3), (5, 2, 4))),
        ('v', ((6, 2, 3), (6, 2, 3), (6, 1, 4))),
        ('v', ((6, 2, 3), (6, 2, 3), (6, 2))),
        ('mask', ((5, 2, 3), (5, 2, 3), (5, 2, 4))),
        ('mask', ((6, 3, 3), (6, 3, 3), (6, 3, 4))),
    ]:
        with subtests.test(name=name, shapes=shapes), pytest.raises(ValueError, match=f'^{name}: got'):
            masked_linear_attention(*(torch.ones(shape) for shape in shapes), bound(GRFMask(2)))


def test_rows_that_do_not_fit_are_named() -> None:
    q, k, v = inputs(6)
    index, mask = torch.tensor([1, 2]), PackingMask()(small_graph())
    pair = PackingMask()(Batch.from_data_list([Data(num_nodes=3)] * 2))
    for queries, operator, route in (
        (q, mask, 'auto'),
        (q[:2, :1], mask, 'auto'),
        (q[:2], mask, 'features'),
        (q[:2], pair, 'auto'),
    ):
        with pytest.raises(ValueError, match=r'^rows: got'):
            masked_linear_attention(queries, k, v, operator, route, index)
    with pytest.raises(ValueError, match=r'^rows: got rows of .*; accepted: masks of low rank on one graph'):
        masked_linear_attention(q[:2], k, v, bound(GRFMask(2)), rows=index)
    for outside in (torch.tensor([1, 6]), torch.tensor([-1, 2]), torch.tensor([1.0, 2.0])):
        with pytest.raises(ValueError, match=r'^rows: got .*; accepted: '):
            masked_linear_attention(q[:2], k, v, mask, rows=outside)


# Compilation ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings('ignore:The .grad attribute:UserWarning')  # of torch 2.15 about its own check
@pytest.mark.parametrize('route', ['features', 'edges', 'blocks', 'low_rank'])
def test_custom_operators_pass_the_checks_of_torch(route: str) -> None:
    operator = GRFMask(2).double()(small_graph())
    q, k, v = (tensor.requires_grad_() for tensor in inputs(6))
    constants, ops = Segments(6, torch.tensor([0, 0, 1, 1, 1, 3])).constants(), torch.ops.pyg_topomask
    if route == 'low_rank':
        left, right = (numbers(6, 2, 3).requires_grad_() for _ in range(2))
        for factors in ([left, right], []):
            for given in (constants, constants[:1]):
                torch.library.opcheck(ops.attend_low_rank_batch, (q, k, v, factors, given, '', 1))
    elif route == 'blocks':
        operator = GRFMask(2).double()(Batch.from_data_list([Data(num_nodes=2), Data(num_nodes=4)]))
        tensors, text = describe(operator)
        constants = operator.segments.constants()
        torch.library.opcheck(ops.attend_blocks, (q, k, v, [each.detach() for each in tensors], constants, text, 2))
    elif route == 'edges':
        entries = operator.entries()
        value = entries.value.detach().requires_grad_()
        torch.library.opcheck(torch.ops.pyg_topomask.attend_entries, (q, k, v, [value], list(entries.pattern.tensors), '', 2))
    else:
        tensors, text = describe(operator)
        tensors = [each.detach() for each in tensors]
        torch.library.opcheck(torch.ops.pyg_topomask.attend_features, (q, k, v, tensors, [], text, 2))
