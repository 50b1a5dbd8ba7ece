"""The statistics of positional encodings, by their definitions in NumPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.graphgym.config import cfg, set_cfg
from torch_geometric.transforms import AddRandomWalkPE, BaseTransform, Compose

import pyg_topomask.graphgym  # noqa: F401
from pyg_topomask.graphgym.data.transforms import apply_in_memory
from pyg_topomask.graphgym.names.positional_encodings import AddEigenvectors, AddReturnProbabilities, posenc_transforms

#: Graphs by name: with edges that occur twice and in one direction, without edges, in two parts, larger than asked for.
GRAPHS = {
    'directed': (5, [[0, 1, 1, 2, 3, 0], [1, 2, 2, 0, 4, 3]]),
    'twice': (3, [[0, 1, 0, 1, 1, 2], [1, 0, 1, 0, 2, 1]]),
    'node': (1, [[], []]),
    'isolated': (3, [[], []]),
    'parts': (8, [[0, 1, 2, 3, 4, 5], [1, 0, 3, 2, 5, 4]]),
}


def graph(name: str) -> Data:
    size, edges = GRAPHS[name]
    return Data(edge_index=torch.tensor(edges, dtype=torch.long), num_nodes=size)


@pytest.mark.parametrize('normalization', [None, 'sym'])
@pytest.mark.parametrize('name', GRAPHS)
def test_eigenvectors(name: str, normalization: str | None) -> None:
    size, edges = GRAPHS[name]
    adjacency = np.zeros((size, size))
    for source, target in zip(*edges, strict=True):
        adjacency[source, target] += 1
    if (adjacency > 0).tolist() != (adjacency > 0).T.tolist():
        adjacency = np.maximum(adjacency, adjacency.T).clip(max=1)
    degree = adjacency.sum(1)
    if normalization is None:
        laplacian = np.diag(degree) - adjacency
    else:
        scale = np.where(degree > 0, 1 / np.sqrt(np.maximum(degree, 1)), 0)
        laplacian = np.eye(size) - scale[:, None] * adjacency * scale
    data = AddEigenvectors(4, normalization)(graph(name))
    values, vectors = data.EigVals.numpy(), data.EigVecs.numpy()
    assert values.shape == (size, 4, 1)
    assert vectors.shape == (size, 4)
    kept = min(size, 4)
    assert np.isnan(values[:, kept:]).all()
    assert np.isnan(vectors[:, kept:]).all()
    np.testing.assert_allclose(values[:, :kept, 0], np.tile(np.linalg.eigvalsh(laplacian)[:kept], (size, 1)), atol=1e-6)
    np.testing.assert_allclose(laplacian @ vectors[:, :kept], values[0, :kept, 0] * vectors[:, :kept], atol=1e-6)
    np.testing.assert_allclose(vectors[:, :kept].T @ vectors[:, :kept], np.eye(kept), atol=1e-6)


@pytest.mark.parametrize('name', GRAPHS)
def test_return_probabilities(name: str) -> None:
    size, edges = GRAPHS[name]
    step = np.zeros((size, size))
    for source, target in zip(*edges, strict=True):
        step[source, target] += 1 / edges[0].count(source)
    returns = AddReturnProbabilities([1, 2, 5])(graph(name)).pestat_RWSE
    expected = np.stack([np.diag(np.linalg.matrix_power(step, length)) for length in (1, 2, 5)], 1)
    np.testing.assert_allclose(returns.numpy(), expected, atol=1e-6)


@pytest.mark.parametrize(
    ('transform', 'message'),
    [
        (AddRandomWalkPE(3), 'AddRandomWalkPE of torch_geometric divides by their sums, but does not multiply by them'),
        (AddReturnProbabilities([1, 2]), 'no effect in posenc_RWSE'),
        (AddEigenvectors(2, None), 'no effect in posenc_LapPE'),
    ],
)
def test_weights_that_an_encoding_does_not_read(transform: BaseTransform, message: str) -> None:
    set_cfg(cfg)
    for weight in (2.0, 1.0, None):
        data = graph('parts')
        data.edge_weight = None if weight is None else torch.full((6,), weight)
        dataset = InMemoryDataset()
        dataset.data, dataset.slices = dataset.collate([data, data])
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter('always')
            apply_in_memory(dataset, Compose([transform]))
        texts = [str(warning.message) for warning in seen if 'edge_weight' in str(warning.message)]
        assert len(texts) == (weight == 2.0)
        assert all(message in text for text in texts)


def test_the_enabled_groups_choose_the_transforms() -> None:
    set_cfg(cfg)
    assert posenc_transforms() == []
    cfg.posenc_LapPE.enable, cfg.posenc_LapPE.eigen.laplacian_norm = True, 'none'
    cfg.posenc_RWSE.enable, cfg.posenc_RWSE.kernel.times_func = True, ' range(1, 9,2) '
    cfg.posenc_EquivStableLapPE.enable, cfg.posenc_EquivStableLapPE.eigen.laplacian_norm = True, 'none'
    eigenvectors, returns = posenc_transforms()
    assert (eigenvectors.max_freqs, eigenvectors.normalization, returns.lengths) == (10, None, [1, 3, 5, 7])


def test_two_groups_share_their_eigenvectors() -> None:
    set_cfg(cfg)
    cfg.posenc_LapPE.enable = cfg.posenc_EquivStableLapPE.enable = True
    cfg.posenc_EquivStableLapPE.eigen.max_freqs = 4
    with pytest.raises(ValueError, match=r"^posenc_EquivStableLapPE.eigen: got .*'max_freqs': 4.*; accepted: .*posenc_LapPE"):
        posenc_transforms()


def test_bad_options(subtests: pytest.Subtests) -> None:
    for group, option, value, message in [
        ('RWSE', 'times_func', '__import__("os").getcwd()', 'times_func: got .*; accepted: a range'),
        ('RWSE', 'times_func', 'range(3)', r'times: got \[0, 1, 2\]; accepted: lengths of walks, from 1'),
        ('RWSE', 'times', [], r'times: got \[\]; accepted'),
        ('LapPE', 'laplacian_norm', 'rw', "laplacian_norm: got 'rw'; accepted: none, sym"),
        ('LapPE', 'eigvec_norm', 'wavelength', 'eigvec_norm: got .wavelength.; accepted: L2'),
        ('LapPE', 'max_freqs', 0, 'max_freqs: got 0; accepted: whole numbers from 1'),
    ]:
        with subtests.test(group=group, option=option, value=value, message=message):
            set_cfg(cfg)
            options = cfg[f'posenc_{group}']
            options.enable = True
            (options.eigen if group == 'LapPE' else options.kernel)[option] = value
            with pytest.raises(ValueError, match=message):
                posenc_transforms()
