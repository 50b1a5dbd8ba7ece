"""What a graph shows of graph random features: their entries, and their errors against dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from graphs import GRAPHS, ring, small_digraph, small_graph, trailing_empty_graphs
from grf_samples import F, make
from grids import covering
from numpy.typing import NDArray
from oracles import power_series, same_graph, weight_matrix
from torch import Tensor
from torch_geometric.data import Batch, Data

import pyg_topomask.apps.diagnostics.measured as measured
from pyg_topomask import Graph
from pyg_topomask.apps.diagnostics import compare_rows, load_constant, mask_error, measured_entries
from pyg_topomask.apps.diagnostics.measured import MaskError
from pyg_topomask.masks import GRFMask, PowerSeriesMask
from pyg_topomask.operators.base import MaskOperator

Array = NDArray[Any]
SEEDS = 400


def visited(mask: GRFMask, data: Data) -> Array:
    """Which nodes walks visit, with ones as modulation so that no load is lost: 0 or 1."""
    unit_mask = GRFMask(
        num_walks=mask.walk_settings.num_walks, p_halt=0.3, max_walk_length=2, modulation=torch.ones(3), asymmetric=True
    )
    return (unit_mask(data).to_dense()[0].detach().numpy() != 0).astype(int)


@pytest.mark.parametrize('budget', [2**25, 7])
@pytest.mark.parametrize('name', ['disconnected', 'directed', 'empty', 'trailing_empty_graph'])
def test_measured_entries(name: str, budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, '_PAIR_BUDGET', budget)
    data = GRAPHS[name]()
    features = visited(make(), data)
    counts = measured_entries(make(), data)
    np.testing.assert_array_equal(counts.features, features.sum(1))
    np.testing.assert_array_equal(counts.mask, (features @ features.T > 0).sum(1))
    if data.num_nodes > 3:
        rows = torch.tensor([2, 0])
        np.testing.assert_array_equal(measured_entries(make(), data, rows).mask, counts.mask[rows])
    one_hot = measured_entries(make(asymmetric=True), data)
    np.testing.assert_array_equal(one_hot.mask, features.sum(1))
    two = make(independent_ensembles=True)(data).to_dense()[0].detach().numpy() != 0
    np.testing.assert_array_equal(measured_entries(make(independent_ensembles=True), data).mask, two.sum(1))


VARIANTS: dict[str, dict[str, Any]] = {
    'one': {},
    'two': {'independent_ensembles': True},
    'one_hot_keys': {'asymmetric': True},
    'pairs': {'asymmetric': 'pairs'},
    'unnormalized': {'normalization': None},
    'two_heads': {'heads': 2, 'modulation': torch.tensor([F, [0.1, 0.4, 0.9]])},
}
COMPARED = ['undirected', 'directed', 'weighted', 'negative_weights', 'disconnected', 'no_edges', 'batch', 'parallel_edges']


def exact_mask(mask: GRFMask, data: Data) -> Array:
    matrix = weight_matrix(data, mask.walk_settings.normalization)
    query = np.stack([power_series(matrix, f) for f in mask.f.detach().double().numpy()])
    if mask.asymmetric is True:
        return query
    key = np.stack([power_series(matrix, f) for f in mask.key_f.detach().double().numpy()])
    return query @ key.transpose(0, 2, 1)


def norm(x: Array) -> Array:
    return np.sqrt((x**2).sum((1, 2)))


def ratio(a: Array, b: Array) -> Array:
    return np.divide(a, b, out=np.where(a == 0, 0.0, np.inf), where=b != 0)


@pytest.mark.parametrize(('name', 'variant', 'budget'), covering(COMPARED, VARIANTS, [2**22, 10]))
def test_mask_error_is_that_of_the_dense_matrices(
    name: str, variant: str, budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, '_ROW_BUDGET', budget)
    data, mask = GRAPHS[name](), make(**VARIANTS[variant])
    if variant == 'pairs':
        with torch.no_grad():
            mask.key_modulation.copy_(torch.tensor([[0.3, -0.6, 0.4]]))
    exact, estimate = exact_mask(mask, data), mask(data).to_dense().detach().double().numpy()
    deviation, diagonal = estimate - exact, np.eye(data.num_nodes)
    error = mask_error(mask, data, num_rows=10_000)
    expected = {
        'relative': ratio(norm(deviation), norm(exact)),
        'max_abs': np.abs(deviation).max((1, 2)),
        'diagonal_bias': ratio((deviation * diagonal).sum((1, 2)), (np.abs(exact) * diagonal).sum((1, 2))),
        'diagonal_error': ratio(norm(deviation * diagonal), norm(exact * diagonal)),
        'off_diagonal_bias': ratio((deviation * (1 - diagonal)).sum((1, 2)), (np.abs(exact) * (1 - diagonal)).sum((1, 2))),
        'off_diagonal_error': ratio(norm(deviation * (1 - diagonal)), norm(exact * (1 - diagonal))),
        'largest': np.abs(exact).max((1, 2)),
    }
    assert error.num_rows == data.num_nodes
    for key, value in expected.items():
        np.testing.assert_allclose(getattr(error, key), value, rtol=1e-4, atol=1e-6, err_msg=key)
    assert not (exact * (1 - same_graph(data))).any()


def test_rows_are_those_asked_for() -> None:
    data, mask, rows = small_digraph(), make(), torch.tensor([4, 1])
    blocks = list(compare_rows(mask, data, rows))
    assert torch.equal(torch.cat([nodes for nodes, _, _ in blocks]), rows)
    exact, estimate = (torch.cat([block[place] for block in blocks]) for place in (1, 2))
    np.testing.assert_allclose(exact[:, 0], exact_mask(mask, data)[0][rows], atol=1e-6)
    torch.testing.assert_close(estimate[:, 0], mask(data).to_dense()[0, rows].detach().double(), rtol=1e-5, atol=1e-6)
    some = mask_error(mask, data, num_rows=2, seed=3)
    chosen = torch.randperm(6, generator=torch.Generator().manual_seed(3))[:2]
    (block,) = compare_rows(mask, data, chosen)
    torch.testing.assert_close(some.max_abs, (block[2] - block[1]).abs().amax((0, 2)))


def test_generator_draws_other_walks_than_the_mask_has() -> None:
    data, mask = small_graph(), make()
    stored, drawn = mask_error(mask, data), mask_error(mask, data, generator=torch.Generator().manual_seed(1))
    assert torch.equal(stored.relative, mask_error(mask, data).relative)
    assert not torch.equal(stored.relative, drawn.relative)


def test_bias_is_on_the_diagonal_of_one_ensemble_and_nowhere_else() -> None:
    data = small_graph()

    def biases(**settings: Any) -> tuple[Tensor, Tensor]:
        errors = [mask_error(make(**settings), data, generator=torch.Generator().manual_seed(seed)) for seed in range(SEEDS)]
        samples = torch.tensor([[error.diagonal_bias, error.off_diagonal_bias] for error in errors])
        return samples.mean(0), samples.std(0) / SEEDS**0.5

    mean, error = biases()
    assert mean[0] > 5 * error[0]
    assert mean[1].abs() < 5 * error[1]
    mean, error = biases(independent_ensembles=True)
    assert (mean.abs() < 5 * error).all()


@pytest.mark.parametrize('data', [Data(num_nodes=0), Data(num_nodes=1), Batch.from_data_list(trailing_empty_graphs())])
def test_degenerate_graphs_give_finite_numbers(data: Data) -> None:
    error = mask_error(make(heads=2), data)
    assert all(value.isfinite().all() for value in vars(error).values() if isinstance(value, Tensor))


def test_estimate_without_an_exact_counterpart_has_infinite_relative_error() -> None:
    mask = make(normalization=None, modulation=torch.tensor([0.0, 1.0, 0.0]), asymmetric=True)
    opposite = Data(edge_index=torch.tensor([[0, 0], [1, 1]]), edge_weight=torch.tensor([1.0, -1.0]), num_nodes=2)
    errors = [mask_error(mask, opposite, generator=torch.Generator().manual_seed(seed)) for seed in range(20)]
    assert {error.relative.item() for error in errors} == {0.0, float('inf')}


@pytest.mark.parametrize('settings', [{}, {'asymmetric': True}], ids=['symmetric', 'asymmetric'])
def test_large_graph_without_the_dense_matrix(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MaskOperator, 'to_dense', lambda self: pytest.fail('formed the matrix'))
    nodes = 200_000
    graph, mask = Graph.from_tensors(ring(nodes), nodes), make(**settings)
    error = mask_error(mask, graph, num_rows=8)
    small = mask_error(mask, Graph.from_tensors(ring(50), 50), num_rows=50)
    assert isinstance(error, MaskError)
    torch.testing.assert_close(error.largest, small.largest)
    assert 0 < error.relative < 2
    assert measured_entries(mask, graph).mask.max() <= 9
    assert load_constant(mask, graph, walkwise=True) > 0


def test_modulation_that_was_learned_counts() -> None:
    data, mask = small_graph(), make(p_halt=0.0)
    before = load_constant(mask, data)
    with torch.no_grad():
        mask.modulation.mul_(2)
    torch.testing.assert_close(load_constant(mask, data), 2 * before)
    np.testing.assert_allclose(mask_error(mask, data).largest, exact_mask(mask, data).max(), rtol=1e-6)


def test_bad_arguments_are_named(subtests: pytest.Subtests) -> None:
    for argument, call in [
        ('num_rows', lambda: mask_error(make(), small_graph(), num_rows=0)),
        ('mask', lambda: mask_error(make(importance=False), small_graph())),
        ('mask', lambda: list(compare_rows(make(importance=False), small_graph(), torch.tensor([0])))),
        ('mask', lambda: mask_error(PowerSeriesMask(), small_graph())),
        ('mask', lambda: list(compare_rows(PowerSeriesMask(), small_graph(), torch.tensor([0])))),
        ('mask', lambda: measured_entries(PowerSeriesMask(), small_graph())),
        ('mask', lambda: load_constant(PowerSeriesMask(), small_graph())),
    ]:
        with subtests.test(argument=argument), pytest.raises(ValueError, match=f'^{argument}: got'):
            call()
