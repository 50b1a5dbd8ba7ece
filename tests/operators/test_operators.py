import math
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from graphs import small_digraph
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import AdjacencyMask, DenseMask, GRFMask, HeatKernelMask, PackingMask, PowerSeriesMask
from pyg_topomask.operators.base import Heads, MaskOperator, low_rank_operator
from pyg_topomask.operators.composed import Alternatives
from pyg_topomask.operators.description import build, describe


def bind(heads: int = 2) -> MaskOperator:
    return GRFMask(heads, 4, 0.3, 3, independent_ensembles=True).double()(small_digraph())


def factors(heads: int, rank: int) -> MaskOperator:
    left, right = (torch.randn(6, heads, rank, dtype=torch.float64) for _ in range(2))
    return low_rank_operator(Graph.from_data(small_digraph()), left, right)


def close(actual: MaskOperator, expected: Tensor) -> None:
    torch.testing.assert_close(actual.to_dense(), expected, rtol=1e-9, atol=1e-9)


def test_algebra_is_that_of_the_matrices() -> None:
    a, b, c = bind(), bind().T, factors(2, 3)
    x, y, z = (operator.to_dense() for operator in (a, b, c))
    close(a + b + c, x + y + z)
    close(2 * a, 2 * x)
    close(a * 0.5, 0.5 * x)
    close(-a, -x)
    close(a * c, x * z)
    close(c * a, x * z)
    close(c * c, z * z)
    close((a + c) * c, (x + z) * z)
    close((a * c).T, (x * z).transpose(1, 2))
    close((3.0 * (a + b.T)).T, 3 * (x + y.transpose(1, 2)).transpose(1, 2))


@pytest.mark.parametrize('heads', [(1, 2), (2, 1)])
def test_one_of_two_factors_may_have_one_head(heads: tuple[int, int]) -> None:
    left, right = (torch.randn(6, size, 3, dtype=torch.float64) for size in heads)
    product = bind(1) * low_rank_operator(Graph.from_data(small_digraph()), left, right)
    assert product.heads == 2
    close(product, bind(1).to_dense() * torch.einsum('ihr,jhr->hij', left.expand(6, 2, 3), right.expand(6, 2, 3)))


def test_numbers_per_head_scale_heads() -> None:
    scale = torch.tensor([2.0, -3.0])
    close(scale * bind(), scale.view(2, 1, 1) * bind().to_dense())
    close(bind(1) * scale, scale.view(2, 1, 1) * bind(1).to_dense())


def test_one_head_acts_alike_on_any_number_of_heads() -> None:
    operator, x = bind(1), torch.randn(6, 5, 2, dtype=torch.float64)
    torch.testing.assert_close(operator.matmul(x), torch.einsum('nk,khc->nhc', operator.to_dense()[0], x))
    close(bind(1) + factors(2, 1) * 0.0, bind(1).to_dense().expand(2, -1, -1))


def sparse_derivations() -> dict[str, MaskOperator]:
    one, adjacency = bind(1), AdjacencyMask(2).double()(small_digraph())
    return {
        'transpose': bind().T,
        'multiple': bind() * 2.0,
        'low rank': bind() * factors(2, 3),
        'sum': bind() + adjacency + one,
        'sum on one pattern': adjacency + 2.0 * adjacency,
        'transposed sum': (bind() + adjacency).T,
        'side by side': Heads((one, adjacency)),
        'sum of those side by side': Heads((one, one.T)) + adjacency,
    }


@pytest.mark.parametrize('name', sparse_derivations())
def test_what_is_made_of_sparse_masks_has_entries(name: str) -> None:
    operator = sparse_derivations()[name]
    entries = operator.entries()
    assert entries.pattern.nnz <= operator.entries.max_nnz
    matrix = torch.zeros(operator.heads, 6, 6, dtype=torch.float64)
    matrix[:, entries.pattern.row.long(), entries.pattern.col.long()] = entries.value
    close(operator, matrix)
    assert torch.equal(entries.pattern.col_t.long(), entries.pattern.row.long()[entries.pattern.perm_t.long()])


def test_entries_of_sums_and_of_heads_have_gradients() -> None:
    grf, adjacency = GRFMask(2, 4, 0.3, 3).double(), AdjacencyMask(2).double()
    weight, parameters = torch.randn(1, 6, 6, dtype=torch.float64), [grf.modulation, *adjacency.parameters()]
    graph = Graph.from_data(small_digraph())
    for operator in (grf(graph) + adjacency(graph), Heads((grf(graph), adjacency(graph)))):
        entries = operator.entries()
        chosen = weight[:, entries.pattern.row.long(), entries.pattern.col.long()]
        gradients = torch.autograd.grad((entries.value * chosen).sum(), parameters, retain_graph=True)
        expected = torch.autograd.grad((operator.to_dense() * weight).sum(), parameters)
        for actual, wanted in zip(gradients, expected, strict=True):
            torch.testing.assert_close(actual, wanted)


def test_sums_with_a_mask_without_entries_have_none() -> None:
    assert (bind() + factors(2, 3)).entries is None
    assert Heads((bind(), factors(2, 3))).entries is None


def test_low_rank_masks_keep_their_factors() -> None:
    for operator in (factors(2, 3).T, factors(1, 3) + factors(2, 1), factors(2, 2) * factors(1, 2), 2.0 * factors(2, 3)):
        left, right = operator.low_rank.left, operator.low_rank.right
        close(operator, torch.einsum('nhr,khr->hnk', left.expand(-1, 2, -1), right.expand(-1, 2, -1)))


def test_factors_of_masks_side_by_side_keep_their_digits() -> None:
    """The first of them has fewer."""
    left, right = torch.rand(2, 6, 2, 2, dtype=torch.float64)
    left[:, 0], right[:, 0] = left[:, 0].float().double(), right[:, 0].float().double()
    heads = [factors(1, 2).with_factors(left[:, head : head + 1], right[:, head : head + 1]) for head in range(2)]
    heads[0] = heads[0].with_factors(heads[0].left.float(), heads[0].right.float())
    close(Heads(tuple(heads)).low_rank, torch.einsum('nhr,khr->hnk', left, right))


def test_rounding_does_not_add_up_over_a_large_graph_of_a_batch() -> None:
    size = 200_000
    graph = Graph(torch.empty(2, 0, dtype=torch.long), size + 1, batch=torch.arange(size + 1) // size)
    out = PackingMask()(graph).matmul(torch.full((size + 1, 1, 1), 0.1))
    np.testing.assert_allclose(out[0, 0].item(), size * float(np.float32(0.1)), rtol=1e-6)


def test_gradients_reach_scale_and_factors() -> None:
    scale = torch.randn(2, dtype=torch.float64, requires_grad=True)
    left, right = (torch.randn(6, 2, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    graph, operator = Graph.from_data(small_digraph()), bind()

    def dense(scale: Tensor, left: Tensor, right: Tensor) -> Tensor:
        return (scale * operator * low_rank_operator(graph, left, right)).to_dense()

    assert torch.autograd.gradcheck(dense, (scale, left, right))


@pytest.mark.parametrize('shape', [(5, 2, 3), (6, 3, 3), (6, 2)])
def test_input_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r'^x: got shape'):
        bind().matmul(torch.zeros(shape, dtype=torch.float64))


def test_input_of_integers_is_refused() -> None:
    with pytest.raises(ValueError, match=r'^x: got shape .* of torch.int64; accepted: floating point numbers'):
        bind().matmul(torch.ones(6, 2, 3, dtype=torch.long))


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_sums_in_half_precision_do_not_stand_still(dtype: torch.dtype) -> None:
    graph = Graph.from_tensors(torch.stack([torch.arange(5000), torch.zeros(5000, dtype=torch.long)]), 5000)
    out = AdjacencyMask(self_loop=None)(graph).matmul(torch.ones(5000, 1, 1, dtype=dtype))
    assert out.dtype == dtype
    assert out[0].item() == pytest.approx(5000, rel=0.01)


def test_operators_of_other_graphs_do_not_combine() -> None:
    foreign = PackingMask()(Data(num_nodes=5))
    with pytest.raises(ValueError, match=r'^mask: .* different graphs'):
        bind() + foreign
    with pytest.raises(ValueError, match=r'^mask: .* different graphs'):
        bind() * foreign


def test_operators_of_other_numbers_of_heads_do_not_combine() -> None:
    with pytest.raises(ValueError, match=r'^heads: got'):
        bind(2) + bind(3)


def test_entrywise_product_needs_low_rank() -> None:
    with pytest.raises(ValueError, match='low rank'):
        bind() * bind()


@pytest.mark.parametrize('scale', [torch.ones(3), torch.ones(2, 1), torch.ones(0)])
def test_scale_of_another_shape_is_refused(scale: Tensor) -> None:
    with pytest.raises(ValueError, match=r'^scale: got'):
        bind() * scale


@pytest.mark.parametrize('operand', ['mask', None, object()])
def test_other_types_do_not_combine(operand: object) -> None:
    with pytest.raises(TypeError):
        bind() + operand
    with pytest.raises(TypeError):
        bind() * operand


def test_operators_are_made_again_from_tensors_and_a_text() -> None:
    x = torch.randn(6, 2, 3, dtype=torch.float64)
    matrix = DenseMask(matrix=torch.ones(6, 6).double())(small_digraph())
    for operator in (bind(), matrix, factors(1, 2), AdjacencyMask()(small_digraph()), bind().T * factors(2, 2) + bind()):
        tensors, text = describe(operator)
        again = build(text, tensors)
        assert torch.equal(again.apply(x), operator.apply(x))
        assert torch.equal(again.T.magnitude(x.abs()), operator.T.magnitude(x.abs()))


def operator_class(factor: float) -> type[MaskOperator]:
    @dataclass(eq=False, repr=False)
    class Operator(MaskOperator):
        def apply(self, x: Tensor) -> Tensor:
            return factor * x

        @property
        def T(self) -> MaskOperator:
            return self

    return Operator


def test_classes_of_one_name_have_texts_of_their_own() -> None:
    for kind in [operator_class(2.0), operator_class(3.0)]:
        tensors, text = describe(kind())
        assert type(build(text, tensors)) is kind


def test_representation_tells_heads_nodes_and_graphs() -> None:
    assert repr(factors(2, 3)) == 'LowRank(heads=2, num_nodes=6, num_graphs=1)'


@pytest.mark.parametrize('scale', [1e39, float('inf'), float('nan')])
def test_scale_that_is_not_finite_is_refused(scale: float) -> None:
    operator = AdjacencyMask()(Graph.from_tensors(small_digraph().edge_index, 6))
    with pytest.raises(ValueError, match=r'^scale: got .*; accepted: finite numbers of torch.float32'):
        operator * scale


def test_lists_divide_heads() -> None:
    mask, graph = AdjacencyMask(2), small_digraph()
    torch.testing.assert_close((mask / [2.0, 4])(graph).to_dense(), mask(graph).to_dense() / torch.tensor([[[2.0]], [[4.0]]]))
    torch.testing.assert_close((mask(graph) / [2.0, 4]).to_dense(), (mask / [2.0, 4])(graph).to_dense())


def test_alternatives_of_alternatives_are_built_from_the_last_product() -> None:
    operator = bind()
    for product in (operator, lambda: bind().T):
        several = Alternatives(product, segments=operator.segments, heads=2)
        tensors, text = describe(several)
        x = torch.randn(6, 2, 3, dtype=torch.float64)
        assert torch.equal(build(text, tensors).apply(x), several.apply(x))


def test_transposes_of_masks_with_machine_code_have_it() -> None:
    operator = PowerSeriesMask(2)(small_digraph())
    assert operator.has_machine_code()
    assert operator.T.has_machine_code()


def test_settings_may_be_numbers_of_numpy() -> None:
    operator = HeatKernelMask(2, 'adjacency', tolerance=np.float64(1e-4))(small_digraph())
    tensors, text = describe(operator)
    x = torch.rand(6, 2, 3)
    assert torch.equal(build(text, tensors).apply(x), operator.apply(x))


@dataclass(eq=False, repr=False)
class Clipped(MaskOperator):
    value: Tensor
    bound: float = math.inf
    dtype_of_sums: torch.dtype = torch.float64
    place: torch.device = torch.device('cpu')  # noqa: RUF009
    calls: int = field(default=0, init=False)

    def apply(self, x: Tensor) -> Tensor:
        return (self.value.clamp(max=self.bound).unsqueeze(-1) * x).to(self.dtype_of_sums)

    @property
    def T(self) -> MaskOperator:
        return self


def test_settings_without_a_literal_and_fields_that_no_argument_sets_are_described() -> None:
    tensors, text = describe(Clipped(torch.ones(2, 1)))
    built = build(text, tensors)
    assert (built.bound, built.dtype_of_sums, built.place) == (math.inf, torch.float64, torch.device('cpu'))


def test_a_setting_that_no_text_describes_is_named() -> None:
    with pytest.raises(ValueError, match=r'the field frozenset\(\{1\}\) of frozenset.*tensors, operators, numbers'):
        describe(Clipped(torch.ones(2, 1), bound=frozenset({1})))  # type: ignore[arg-type]


def test_forms_of_a_mask_have_its_factors() -> None:
    low, sparse = factors(2, 3), bind()
    both = Alternatives(low)
    assert both.is_low_rank
    close(both * sparse, low.to_dense() * sparse.to_dense())
    assert repr(both) == repr(low)
