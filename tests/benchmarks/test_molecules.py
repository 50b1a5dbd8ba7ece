"""Molecules of the files, with kinds as zeros and ones, and models that differ by their learned weights only."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from benchmarks.edge_features import PAIRS, table_of_gains, table_of_models
from benchmarks.molecule_training import MODELS, TASKS, Network
from benchmarks.molecules import ZINC_ATOM, ZINC_BOND, molecules_of_zinc


@pytest.fixture
def zinc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {}
    for part, sizes in {'val': [2, 3], 'test': [4]}.items():
        edges = [np.array([[*range(size - 1), *range(1, size)], [*range(1, size), *range(size - 1)]]) for size in sizes]
        arrays[f'{part}_x'] = generator.integers(ZINC_ATOM[0], size=sum(sizes))
        arrays[f'{part}_edge_index'] = np.concatenate(edges, 1)
        arrays[f'{part}_edge_attr'] = generator.integers(1, ZINC_BOND[0], size=arrays[f'{part}_edge_index'].shape[1])
        arrays[f'{part}_y'] = generator.normal(size=len(sizes)).astype(np.float32)
        arrays[f'{part}_node_ptr'] = np.cumsum([0, *sizes])
        arrays[f'{part}_edge_ptr'] = np.cumsum([0, *[each.shape[1] for each in edges]])
    (tmp_path / 'molecules').mkdir()
    np.savez(tmp_path / 'molecules' / 'zinc12k_val_test.npz', **arrays)
    monkeypatch.setenv('PYG_TOPOMASK_DATA', str(tmp_path))
    molecules_of_zinc.cache_clear()
    return arrays


def test_molecules_of_zinc(zinc: dict[str, np.ndarray]) -> None:
    molecules = molecules_of_zinc()
    assert [data.num_nodes for data in molecules] == [2, 3, 4]
    for name, size in {'x': ZINC_ATOM[0], 'edge_attr': ZINC_BOND[0]}.items():
        kinds = np.concatenate([zinc[f'{part}_{name}'] for part in ('val', 'test')])
        assert np.array_equal(torch.cat([data[name] for data in molecules]).numpy(), np.eye(size)[kinds])
    assert [float(data.y) for data in molecules] == [*zinc['val_y'], *zinc['test_y']]
    assert molecules[1].edge_index.tolist() == [[0, 1, 1, 2], [1, 2, 0, 1]]


def test_learned_weights_start_as_the_model_without(zinc: dict[str, np.ndarray]) -> None:
    molecules, outputs = molecules_of_zinc(), {}
    for model in MODELS:
        torch.manual_seed(0)
        outputs[model] = Network(MODELS[model], molecules[0]).eval()(Batch.from_data_list(molecules)).detach().numpy()
    assert len(PAIRS) == 5
    for without, learned in PAIRS.items():
        np.testing.assert_allclose(outputs[learned], outputs[without], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(('metric', 'sign'), [('RMSE', -1), ('ROC AUC', 1)])
def test_gains_are_positive_where_a_model_is_better(metric: str, sign: int) -> None:
    scores = {'PowerSeries': [0.5, 0.6, 0.7], 'PowerSeries, learned weights': [0.6, 0.71, 0.79], 'GINE': [0.6, 0.7, 0.8]}
    runs = {
        model: {seed: {'val_score': x, 'test_score': x, 'seconds': 1.0, 'parameters': 2} for seed, x in enumerate(values)}
        for model, values in scores.items()
    }
    (row,) = table_of_gains(runs, PAIRS, metric, sign > 0)
    gaps = np.array([0.1, 0.11, 0.09])
    error = gaps.std(ddof=1) / np.sqrt(3)
    assert row['gain, paired'] == f'{sign * 0.1:+.3f} ± {error:.3f}'
    assert row['verdict'] == ('better' if sign > 0 else 'worse')
    assert row['would have shown'] == pytest.approx(2 * error)
    rows = {row['model']: row for row in table_of_models(runs, list(PAIRS.values()), metric, sign > 0)}
    assert rows['PowerSeries, learned weights']['verdict'] == 'reference'
    assert rows['PowerSeries']['gain over the mask chosen, paired'] == f'{-sign * 0.1:+.3f} ± {error:.3f}'
    assert rows['PowerSeries']['verdict'] == ('worse' if sign > 0 else 'better')
    assert rows['GINE']['verdict'] == 'not distinguishable'


def test_every_set_has_its_own_molecules_in_validation_and_test(zinc: dict[str, np.ndarray]) -> None:
    molecules_of_zinc().extend(molecules_of_zinc()[0].clone() for _ in range(17))
    parts = TASKS['ZINC'].load(0)
    assert [len(part) for part in parts] == [16, 2, 2]
    assert {id(data) for part in parts for data in part} == {id(data) for data in molecules_of_zinc()}
