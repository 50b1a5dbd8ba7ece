"""Graph random features whose walks are stitched: products of features of short walks."""

from collections.abc import Callable
from functools import reduce

import numpy as np
import pytest
import torch
from graphs import GRAPHS, small_digraph, small_graph, small_weighted_graph, uneven_graphs
from grf_samples import DIAGONAL
from grids import covering
from numpy.typing import NDArray
from oracles import confidence, grf_loads, masked_attention, power_series, standard_scores, weight_matrix
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask.apps import diagnostics
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import AdjacencyMask, GRFMask, MultiHeadMask, PackingMask
from pyg_topomask.ops.masked_linear_attention import masked_linear_attention
from pyg_topomask.testing import assert_mask_operator
from pyg_topomask.transforms import AddGraphRandomFeatures

Matrix = NDArray[np.float64]
MODULATION = torch.tensor([[1.0, 0.5, -0.25], [0.75, 0.0, 0.5]], dtype=torch.float64)
KINDS = {
    'one_ensemble': {},
    'two_ensembles': {'independent_ensembles': True},
    'pairs': {'asymmetric': 'pairs'},
    'keys_without_walks': {'asymmetric': True},
}


def stitched(stitch: int = 3, **settings: object) -> GRFMask:
    mask = GRFMask(2, 3, 0.3, 2, MODULATION, stitch=stitch, **settings).double()
    if mask.key_modulation is not None:
        torch.nn.init.normal_(mask.key_modulation, generator=torch.Generator().manual_seed(0))
    return mask


# Walks that return, and so would depend on themselves if two factors had the same walks.
F = [0.3, 1.0, 1.0]


def make(**settings: object) -> GRFMask:
    return GRFMask(**{'num_walks': 2, 'p_halt': 0.3, 'max_walk_length': 2, 'modulation': torch.tensor(F)} | settings)


def explicit(data: Data, mask: GRFMask) -> Matrix:
    """The product of the features of walks that are walked one by one, [H, N, N]."""

    def side(f: Tensor, keys: bool) -> Matrix:
        loads = [grf_loads(data, 3, 0.3, 2, seed=factor * 2**32, keys=keys) for factor in range(mask.stitch)]
        return reduce(np.matmul, (np.einsum('hl,lij->hij', f.detach().double().numpy(), load) for load in loads))

    query = side(mask.f, keys=False)
    if mask.asymmetric is True:
        return query
    return query @ side(mask.key_f, mask.walk_settings.independent_ensembles).transpose(0, 2, 1)


@pytest.mark.parametrize('graph', ['weighted', 'batch', 'negative_weights'])
@pytest.mark.parametrize('kind', KINDS)
def test_mask_is_the_product_of_the_features_of_its_walks(kind: str, graph: str) -> None:
    data = GRAPHS[graph]()
    mask = stitched(**KINDS[kind])
    expected = explicit(data, mask)
    np.testing.assert_allclose(mask(data).to_dense().detach().numpy(), expected, rtol=1e-5, atol=1e-6)
    transposed = mask.T(data).to_dense().detach().numpy()
    np.testing.assert_allclose(transposed, expected.transpose(0, 2, 1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ('kind', 'graph'), covering(['two_ensembles', 'keys_without_walks'], ['empty', 'one_node', 'negative_weights', 'batch'])
)
def test_operator_behaves_as_its_matrix(kind: str, graph: str) -> None:
    assert_mask_operator(stitched(2, **KINDS[kind]), GRAPHS[graph]())


COPIES = 500


def scores(mask: GRFMask, data: Data, expected: Matrix) -> Matrix:
    """Standard scores of the mean over copies of the graph, which have different walks because they are one graph."""
    copies = Batch.from_data_list([data] * COPIES)
    copies.batch = torch.zeros_like(copies.batch)
    blocks = mask(Graph(copies.edge_index, copies.num_nodes, copies.get('edge_weight'))).to_dense()[0].unfold(0, 6, 6)
    blocks = blocks.unflatten(1, (COPIES, 6)).diagonal(dim1=0, dim2=1).permute(2, 1, 0)
    return standard_scores(blocks.detach().double().numpy(), expected)


def expected_mask(data: Data, stitch: int, **settings: object) -> Matrix:
    feature = np.linalg.matrix_power(power_series(weight_matrix(data, 'sym'), np.array(F)), stitch)
    return feature if settings.get('asymmetric') is True else feature @ feature.T


@pytest.mark.parametrize('kind', ['two_ensembles', 'keys_without_walks'])
@pytest.mark.parametrize(
    ('graph', 'stitch', 'sampler'),
    [(small_weighted_graph, 2, 'iid'), (small_digraph, 2, 'repelling_antithetic'), (small_graph, 3, 'iid')],
)
def test_factors_are_independent_and_the_mask_is_unbiased(
    kind: str, graph: Callable[[], Data], stitch: int, sampler: str
) -> None:
    data = graph()
    mask = make(stitch=stitch, sampler=sampler, **KINDS[kind])
    z_scores = scores(mask, data, expected_mask(data, stitch, **KINDS[kind]))
    assert np.abs(z_scores).max() < confidence(6 * 36)


def test_one_ensemble_is_positive_semidefinite_and_biased() -> None:
    data, mask = small_graph(), make(stitch=2)
    z_scores = scores(mask, data, expected_mask(data, 2))
    assert z_scores[DIAGONAL].min() > confidence(36)
    assert np.abs(z_scores[~DIAGONAL]).max() > confidence(36)
    assert torch.linalg.eigvalsh(mask(data).to_dense()).min() > -1e-5


@pytest.mark.parametrize(('asymmetric', 'factors'), [(False, 6), (True, 3)])
def test_kernel_by_its_name_is_the_product_of_all_factors(asymmetric: bool, factors: int) -> None:
    """exp(-t L) = exp(-t L / n)^n."""
    f = GRFMask(max_walk_length=8, modulation='heat:3', asymmetric=asymmetric, stitch=3).f.detach().double().numpy()[0]
    time = 3 / factors
    expected = np.exp(-time) * np.cumprod([1.0, *(time / np.arange(1, 9))])
    np.testing.assert_allclose(f, expected, rtol=1e-5)


def test_hops_that_leave_a_kernel_out_warn() -> None:
    with pytest.warns(UserWarning, match=r'^max_walk_length is 1, which leaves out \d+% of the kernel .*; about 4 is needed'):
        GRFMask(max_walk_length=1, modulation='heat:8', stitch=3)
    with pytest.warns(UserWarning, match='^max_walk_length is 0, but the kernel .*; 1 reaches them'):
        GRFMask(max_walk_length=0, modulation='random_walk:p=4', stitch=2)
    GRFMask(max_walk_length=1, modulation='random_walk:p=4', stitch=2)


@pytest.mark.parametrize('kind', KINDS)
def test_gradients_of_the_modulation(kind: str) -> None:
    data, mask = small_weighted_graph(), stitched(2, positive=False, **KINDS[kind])
    graph, parameters = Graph.from_data(data), dict(mask.named_parameters())

    def dense(*values: Tensor) -> Tensor:
        return torch.func.functional_call(mask, dict(zip(parameters, values, strict=True)), (graph,)).to_dense()

    values = tuple(parameter.detach().clone().requires_grad_() for parameter in parameters.values())
    assert torch.autograd.gradcheck(dense, values)


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('route', ['auto', 'features'])
def test_linear_attention_is_that_of_the_matrix(kind: str, route: str) -> None:
    data, mask = Batch.from_data_list(uneven_graphs()), stitched(2, positive=False, **KINDS[kind])
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.rand(data.num_nodes, 2, size, generator=generator, dtype=torch.float64) for size in (3, 3, 5))
    expected = masked_attention(q.numpy(), k.numpy(), v.numpy(), explicit(data, mask))
    out = masked_linear_attention(q, k, v, mask(data), route)
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_heads_with_different_stitches_and_compositions() -> None:
    data = small_weighted_graph()
    heads = MultiHeadMask(make(stitch=2), make())(data).to_dense()
    torch.testing.assert_close(heads, torch.cat([make(stitch=2)(data).to_dense(), make()(data).to_dense()]))
    composed = (2.0 * make(stitch=2) + PackingMask())(data).to_dense()
    torch.testing.assert_close(composed, 2.0 * heads[:1] + 1.0)


def test_factors_seeds_and_draws_differ() -> None:
    data = small_graph()
    state = make(stitch=3, num_walks=8).prepare(Graph.from_data(data))
    following = make(stitch=3, num_walks=8, seed=1).prepare(Graph.from_data(data))
    loads = [factor.query.load.tolist() for each in (state, following) for factor in (each, *each.stitched)]
    assert all(loads[i] != loads[j] for i in range(6) for j in range(i))
    mask = make(stitch=2, resample='forward')
    assert not torch.equal(mask(data).to_dense(), mask(data).to_dense())
    assert torch.equal(mask.eval()(data).to_dense(), make(stitch=2)(data).to_dense())


def test_bad_numbers_are_named(subtests: pytest.Subtests) -> None:
    for stitch in [0, -1, 1.5, '2']:
        with subtests.test(stitch=stitch), pytest.raises(ValueError, match=r'^stitch: got'):
            GRFMask(stitch=stitch)


REFUSALS = {
    'stored': lambda data: make(stitch=2)(AddGraphRandomFeatures(3, 0.3, 2)(data)),
    'hadamard': lambda data: make(stitch=2) * AdjacencyMask(),
    'bound': lambda data: diagnostics.load_constant(make(stitch=2), data),
}


def test_what_needs_entries_or_one_walk_is_refused(subtests: pytest.Subtests) -> None:
    for case, argument in [('stored', 'stitch'), ('hadamard', 'masks'), ('bound', 'mask')]:
        with subtests.test(case=case, argument=argument), pytest.raises(ValueError, match=f'^{argument}: got'):
            REFUSALS[case](small_graph())
