from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from graphs import small_digraph, small_graph, uneven_graphs
from grids import covering
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.masks import (
    AdjacencyMask,
    CausalMask,
    DenseMask,
    ExpanderMask,
    GRFMask,
    HeatKernelMask,
    HopMask,
    HypercubeMask,
    LowRankMask,
    Mask,
    MultiHeadMask,
    PackingMask,
    PowerSeriesMask,
    RWGNKMask,
    SumMask,
    ToeplitzMask,
    TransposedMask,
    TreeMask,
    low_rank_operator,
    sparse_operator,
)
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.testing import assert_mask_operator


class CountingMask(PackingMask):
    """Counts how often it is prepared."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.times = name, 0

    def settings(self) -> str:
        return self.name

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> None:
        self.times += 1


def test_masks_of_equal_settings_prepare_once_for_a_graph() -> None:
    graph, first, second, different = Graph.from_data(small_graph()), CountingMask('a'), CountingMask('a'), CountingMask('b')
    for mask in (first, second, different, first, first.T, 2.0 * second, first + different):
        mask(graph)
    assert (first.times, second.times, different.times) == (1, 0, 1)


def test_data_is_prepared_anew_at_every_call() -> None:
    mask = CountingMask('a')
    mask(small_graph()), mask(small_graph())
    assert mask.times == 2


@pytest.mark.parametrize(
    ('first', 'second'),
    [
        (GRFMask(), GRFMask(resample='forward')),
        (GRFMask(seed=0) + PackingMask(), GRFMask(seed=1) + PackingMask()),
        (GRFMask(seed=0).T, GRFMask(seed=1).T),
        (2.0 * GRFMask(num_walks=2), 2.0 * GRFMask(num_walks=3)),
    ],
)
def test_compositions_of_masks_that_prepare_differently_share_nothing(first: Mask, second: Mask) -> None:
    graph = Graph.from_data(small_digraph())
    alone = second(Graph.from_data(small_digraph())).to_dense() if 'forward' not in repr(second) else None
    first(graph)
    assert first.settings() != second.settings()
    if alone is not None:
        assert torch.equal(second(graph).to_dense(), alone)


def test_scale_may_be_learned() -> None:
    scale = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
    mask = AdjacencyMask(2, None) * scale
    assert any(parameter is scale for parameter in mask.parameters())
    mask(small_graph()).to_dense().sum().backward()
    assert scale.grad.tolist() == [14.0, 14.0]


def test_composed_masks_reset_their_parts() -> None:
    mask = GRFMask(2) + AdjacencyMask(2)
    before = {name: value.clone() for name, value in mask.state_dict().items()}
    with torch.no_grad():
        for parameter in mask.parameters():
            parameter.add_(1.0)
    mask.reset_parameters()
    assert all(torch.equal(value, before[name]) for name, value in mask.state_dict().items())


def test_masks_of_other_numbers_of_heads_do_not_combine() -> None:
    with pytest.raises(ValueError, match=r'^heads: got'):
        PackingMask(2) + PackingMask(3)
    with pytest.raises(ValueError, match=r'^heads: got'):
        PackingMask(2) * PackingMask(3)


@pytest.mark.parametrize('make', [small_graph, small_digraph, lambda: Batch.from_data_list(uneven_graphs())])
def test_product_of_sparse_masks(make: Callable[[], Data]) -> None:
    data, walks = make(), GRFMask(2, num_walks=3).double()
    torch.nn.init.uniform_(walks.modulation)
    edges = AdjacencyMask().double()
    expected = edges(data).to_dense() * walks(data).to_dense()
    product = edges * walks
    assert_mask_operator(product, data)
    torch.testing.assert_close(product(data).to_dense(), expected)
    product(data).to_dense().square().sum().backward()
    gradient = walks.modulation.grad
    walks.modulation.grad = None
    (edges(data).to_dense() * walks(data).to_dense()).square().sum().backward()
    torch.testing.assert_close(gradient, walks.modulation.grad)


class Unknown(HeatKernelMask):
    form = None


def test_masks_that_are_neither_sparse_nor_of_low_rank_have_no_entrywise_product(subtests: pytest.Subtests) -> None:
    for factors in [
        (DenseMask(matrix=torch.ones(6, 6)), AdjacencyMask()),
        (GRFMask(), HeatKernelMask()),
        (GRFMask(), PackingMask() * (HeatKernelMask() + GRFMask())),
        (2.0 * HeatKernelMask().T, PackingMask() * GRFMask()),
        (HeatKernelMask(), MultiHeadMask(GRFMask(), GRFMask())),
        (HeatKernelMask(), PowerSeriesMask()),
        (ToeplitzMask(), 2.0 * PowerSeriesMask().T),
    ]:
        with subtests.test(factors=factors):
            for left, right in (factors, factors[::-1]):
                with pytest.raises(ValueError, match=r'^masks: got the entrywise product of \w+ and \w+; .*two sparse masks'):
                    _ = left * right


def test_the_product_of_causal_and_toeplitz_masks_names_what_does_the_same() -> None:
    with pytest.raises(ValueError, match=r'^masks: got .*use ToeplitzMask\(causal=0\)'):
        _ = CausalMask() * ToeplitzMask(1, 1)


def test_what_is_not_known_before_the_masks_are_bound_is_told_then() -> None:
    product = GRFMask() * Unknown()
    assert product.form is None
    with pytest.raises(ValueError, match=r'^mask: got the entrywise product of .* and .*two sparse masks'):
        product(small_graph())


@pytest.mark.parametrize(
    ('mask', 'form'),
    [
        (PackingMask() * PackingMask(), 'low_rank'),
        (PackingMask() * Unknown() * PackingMask(), None),
        (PackingMask() * (2.0 * HeatKernelMask()), 'product'),
        (GRFMask().T * AdjacencyMask() * PackingMask(), 'sparse'),
        (GRFMask() + AdjacencyMask(), 'sparse'),
        (GRFMask() + PackingMask(), 'product'),
        (GRFMask() + Unknown(), None),
        (MultiHeadMask(PackingMask(), PackingMask()), 'low_rank'),
        (MultiHeadMask(PackingMask(), AdjacencyMask()), 'product'),
        (MultiHeadMask(GRFMask(), AdjacencyMask()), 'sparse'),
    ],
)
def test_form_of_composed_masks(mask: Mask, form: str | None) -> None:
    assert mask.form == form
    operator = mask(small_graph())
    if form == 'product':
        assert_mask_operator(mask, small_graph())
    assert form in (None, {(True, False): 'sparse', (False, True): 'low_rank'}.get(offered(operator), 'product'))


def offered(operator: MaskOperator) -> tuple[bool, bool]:
    """Whether it has entries, and factors."""
    return operator.entries is not None, operator.low_rank is not None


class NoOperator(PackingMask):
    def bind(self, graph: Graph, state: None) -> Tensor:
        return torch.ones(1, graph.num_nodes, graph.num_nodes)


@pytest.mark.parametrize('mask', [NoOperator(), NoOperator() + PackingMask(), MultiHeadMask(PackingMask(), NoOperator())])
def test_bind_has_to_return_an_operator(mask: Mask) -> None:
    with pytest.raises(ValueError, match=r'^NoOperator.bind: got a Tensor; accepted: a MaskOperator, .*; DenseMask takes'):
        mask(small_graph())


class OneForAllHeads(Mask):
    """Weighs all pairs by a number that all heads share."""

    def __init__(self, heads: int = 1, bound_heads: int = 1) -> None:
        super().__init__(heads)
        self.bound_heads, self.weight = bound_heads, torch.nn.Parameter(torch.tensor(2.0))

    def prepare(self, graph: Graph) -> Tensor:  # type: ignore[override]
        return torch.ones(graph.num_nodes, self.bound_heads, 1)

    def bind(self, graph: Graph, state: Tensor) -> MaskOperator:
        return low_rank_operator(graph, state.to(self.weight.dtype) * self.weight, state.to(self.weight.dtype))


def test_one_bound_head_serves_all_heads() -> None:
    assert_mask_operator(OneForAllHeads(3), small_graph())
    dense = MultiHeadMask(OneForAllHeads(2), PackingMask())(small_graph()).to_dense()
    torch.testing.assert_close(dense[:, 0, 0], torch.tensor([2.0, 2.0, 1.0]))
    with pytest.raises(
        ValueError, match=r'^OneForAllHeads.bind: got an operator of 2 heads; accepted: the 3 of the mask, or 1'
    ):
        OneForAllHeads(3, bound_heads=2)(small_graph())


@pytest.mark.parametrize(('rows', 'columns'), [(5, 5), (3, 3), (4, 5)])
def test_patterns_of_another_size_are_refused(rows: int, columns: int) -> None:
    graph = Graph.from_tensors(torch.tensor([[0], [1]]), num_nodes=4)
    pattern, _ = SparsePattern.from_pairs(torch.tensor([0]), torch.tensor([1]), rows, columns)
    with pytest.raises(ValueError, match=f'^pattern: got {rows} rows and {columns} columns; accepted: 4 rows and columns'):
        sparse_operator(graph, pattern, torch.ones(1, 1))


def test_entries_are_numbers() -> None:
    graph = Graph.from_tensors(torch.tensor([[0], [1]]), num_nodes=2)
    pattern, _ = SparsePattern.from_pairs(*graph.edge_index, 2, 2)
    with pytest.raises(ValueError, match=r'^value: got torch.bool; accepted: floating point numbers'):
        sparse_operator(graph, pattern, torch.ones(1, 1, dtype=torch.bool))


@pytest.mark.parametrize('scale', [[2, -1], (2.0, -1.0), np.array([2.0, -1.0])])
def test_sequences_and_arrays_scale_heads(scale: Any) -> None:
    expected = (PackingMask(2) * torch.tensor([2.0, -1.0]))(small_graph()).to_dense()
    assert torch.equal((PackingMask(2) * scale)(small_graph()).to_dense(), expected)
    assert torch.equal((scale * PackingMask(2))(small_graph()).to_dense(), expected)


@pytest.mark.parametrize('make', [lambda: HopMask(2), lambda: GRFMask(), lambda: HopMask(2) + PackingMask()])
def test_a_seed_is_no_generator(make: Callable[[], Mask]) -> None:
    with pytest.raises(ValueError, match=r'^generator: got 0; accepted: torch.Generator and None$'):
        make()(small_graph(), generator=0)


@pytest.mark.parametrize(
    ('mask', 'seed'),
    covering(
        [GRFMask, partial(GRFMask, stitch=2), partial(GRFMask, independent_ensembles=True), RWGNKMask],
        [-(2**63), -1, 2**63 - 1, 2**64 - 1],
    ),
)
def test_every_seed_of_torch_draws_walks(mask: Callable[..., Mask], seed: int) -> None:
    first, second, other = (mask(seed=number)(small_graph()).to_dense() for number in (seed, seed % 2**64, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


@pytest.mark.parametrize('scale', [torch.ones(3), torch.ones(2, 2), torch.ones(0)])
def test_scale_of_another_shape_is_refused(scale: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=r'^scale: got'):
        PackingMask(2) * scale


@pytest.mark.parametrize('scale', [float('nan'), torch.tensor([1.0, float('inf')])])
def test_scale_that_is_not_finite_is_refused(scale: float | torch.Tensor) -> None:
    with pytest.raises(ValueError, match=r'^scale: got .*(nan|inf)\]?; accepted: finite numbers'):
        AdjacencyMask(2) * scale


def test_masks_show_their_parts() -> None:
    text = repr(GRFMask(2, num_walks=7) * PackingMask(2))
    assert 'num_walks=7' in text
    assert 'PackingMask' in text


@pytest.mark.parametrize(
    ('mask', 'text'),
    [
        (AdjacencyMask(4), 'AdjacencyMask(heads=4, normalization=None, edges followed)'),
        (
            AdjacencyMask(4, None, 'rw', 'target_to_source'),
            "AdjacencyMask(heads=4, self_loop=None, normalization='rw', flow='target_to_source', edges followed)",
        ),
        (
            PowerSeriesMask(2, positive=False),
            "PowerSeriesMask(heads=2, order=4, normalization='sym', positive=False, edges followed)",
        ),
        (HopMask(2, f='geometric'), 'HopMask(heads=2, max_hops=2, positive=True, edges followed, f=geometric)'),
        (
            ExpanderMask(4, degree=2, seed=3, input_edges=False),
            'ExpanderMask(heads=4, degree=2, input_edges=False, seed=3, edges unused)',
        ),
    ],
)
def test_masks_show_what_is_not_the_default(mask: Mask, text: str) -> None:
    assert repr(mask) == text


def test_given_tensors_are_copied() -> None:
    scale, factor, matrix = torch.tensor(2.0), torch.rand(3, 2).t(), torch.rand(2, 2).t()
    masks = (PackingMask() * scale, PackingMask() * scale, LowRankMask(1, factor, factor), DenseMask(matrix=matrix))
    stored = [tensor for mask in masks for tensor in mask.state_dict().values()]
    assert len({tensor.data_ptr() for tensor in stored}) == len(stored) == 5
    assert all(tensor.is_contiguous() for tensor in stored)
    expected = [tensor.clone() for tensor in stored]
    for given in (scale, factor, matrix):
        given.fill_(5.0)
    assert all(map(torch.equal, stored, expected))


def test_differences_and_quotients() -> None:
    data, mask = small_graph(), AdjacencyMask(2, 3.0)
    dense, packing = mask(data).to_dense(), PackingMask(2)
    torch.testing.assert_close((mask - packing)(data).to_dense(), dense - 1.0)
    torch.testing.assert_close((mask / 4.0)(data).to_dense(), dense / 4.0)
    torch.testing.assert_close((mask(data) - packing(data)).to_dense(), dense - 1.0)
    torch.testing.assert_close(
        (mask(data) / torch.tensor([2.0, 4.0])).to_dense(), dense / torch.tensor([2.0, 4.0]).view(2, 1, 1)
    )
    for wrong in (1.0, 1, 'mask'):
        with pytest.raises(TypeError):
            mask - wrong
        with pytest.raises(TypeError):
            wrong + mask


@pytest.mark.parametrize(('arguments', 'got'), [((), r'\[\]'), (([PackingMask()],), r"\['list'\]")])
def test_parts_are_masks(arguments: tuple[Any, ...], got: str) -> None:
    with pytest.raises(ValueError, match=f'^masks: got {got}; accepted: masks, 1 or more, as separate arguments'):
        SumMask(*arguments)


def test_transpose_is_of_one_mask() -> None:
    with pytest.raises(TypeError):
        TransposedMask(PackingMask(), PackingMask())  # type: ignore[call-arg]


def test_sum_of_a_list() -> None:
    data, masks = small_graph(), [AdjacencyMask(2, 3.0), PackingMask(2), AdjacencyMask(2)]
    torch.testing.assert_close(sum(masks)(data).to_dense(), sum(mask(data).to_dense() for mask in masks))
    torch.testing.assert_close(sum(mask(data) for mask in masks).to_dense(), sum(mask(data).to_dense() for mask in masks))


def test_reset_restores_a_learned_scale() -> None:
    mask = PackingMask() * torch.nn.Parameter(torch.tensor(2.0))
    with torch.no_grad():
        mask.scale.fill_(7.0)
    mask.reset_parameters()
    assert mask.scale.item() == 2.0


@pytest.mark.parametrize(
    'mask',
    [
        HeatKernelMask(2, lam=[0.3, 7.0]),
        HypercubeMask(2, lam=[0.3, 7.0]),
        RWGNKMask(2, None, lam=torch.tensor([0.3, 7.0], dtype=torch.float64)),
    ],
)
def test_reset_in_float64_gives_the_number_asked_for(mask: Any) -> None:
    assert mask.lam.dtype == torch.float32
    mask.double().reset_parameters()
    torch.testing.assert_close(mask.lam.detach(), torch.tensor([0.3, 7.0], dtype=torch.float64), rtol=1e-15, atol=0.0)


@pytest.mark.parametrize('learnable', [True, False])
def test_tree_reset_in_float64_gives_the_numbers_asked_for(learnable: bool) -> None:
    mask = TreeMask(2, a=-0.3, b=0.7, learnable=learnable)
    assert mask.a.dtype == torch.float32
    mask.double().reset_parameters()
    torch.testing.assert_close(mask.a.detach(), torch.tensor([-0.3, -0.3], dtype=torch.float64), rtol=1e-15, atol=0.0)
    kept = mask.b if learnable else mask.fixed[1]
    torch.testing.assert_close(kept.detach(), torch.tensor([0.7, 0.7], dtype=torch.float64), rtol=1e-15, atol=0.0)


def test_scale_that_would_not_be_learned_is_refused() -> None:
    scale = torch.tensor(2.0, requires_grad=True)
    for factor in (scale, 2 * scale):
        with pytest.raises(ValueError, match=r'^scale: got a tensor that requires a gradient'):
            AdjacencyMask(2) * factor
    (AdjacencyMask(2)(small_graph()) * scale).to_dense().sum().backward()
    assert scale.grad is not None


@pytest.mark.parametrize('divided', [AdjacencyMask(2), AdjacencyMask(2)(small_graph())], ids=['mask', 'operator'])
def test_division_by_zero_is_refused(divided: object) -> None:
    for zero in (0, 0.0):
        with pytest.raises(ValueError, match=r'^scale: got a division by 0'):
            divided / zero


def test_an_unknown_series_names_all_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"^coefficients: got 'hop'; accepted: hops, heat, .*; did you mean hops\?"):
        PowerSeriesMask(coefficients='hop')
    with pytest.raises(ValueError, match=r"^modulation: got 'heatt'; accepted: hops, heat, .*; did you mean heat\?"):
        GRFMask(modulation='heatt')
