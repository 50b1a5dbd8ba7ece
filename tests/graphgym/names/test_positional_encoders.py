"""The encoders LapPE, RWSE and EquivStableLapPE, by their equations in NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from graphs import ring
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym.config import cfg, set_cfg

import pyg_topomask.graphgym  # noqa: F401
from pyg_topomask.graphgym.names.encoders import node_encoder
from pyg_topomask.graphgym.names.positional_encodings import AddEigenvectors, AddReturnProbabilities

SIZES = (1, 2, 6)


@pytest.fixture(autouse=True)
def _options() -> Iterator[None]:
    set_cfg(cfg)
    cfg.share.dim_in = 3
    cfg.posenc_LapPE.merge_from_list(['model', 'DeepSet', 'dim_pe', 4, 'layers', 2])
    cfg.posenc_LapPE.eigen.max_freqs = 4
    cfg.posenc_RWSE.merge_from_list(['model', 'Linear', 'dim_pe', 4, 'raw_norm_type', 'BatchNorm'])
    cfg.posenc_RWSE.kernel.times = [1, 2, 3, 4, 5]
    cfg.posenc_EquivStableLapPE.eigen.max_freqs = 4
    cfg.posenc_EquivStableLapPE.enable = True
    yield
    set_cfg(cfg)


def graphs() -> list[Data]:
    torch.manual_seed(0)
    plain = [Data(x=torch.randn(size, 3), edge_index=ring(size)) for size in SIZES]
    return [AddReturnProbabilities(cfg.posenc_RWSE.kernel.times)(AddEigenvectors(4, 'sym')(data)) for data in plain]


def affine(x: np.ndarray, linear: torch.nn.Linear) -> np.ndarray:
    return x @ linear.weight.detach().numpy().T + linear.bias.detach().numpy()


def encoded(name: str, data: Data, training: bool = False) -> tuple[torch.nn.Module, Tensor]:
    torch.manual_seed(1)
    encoder = node_encoder(name)(10).train(training)
    return encoder, encoder(data).x


@pytest.mark.parametrize('layers', [1, 3])
@pytest.mark.parametrize('post_layers', [0, 2])
def test_deep_sets_of_eigenvectors(layers: int, post_layers: int) -> None:
    cfg.posenc_LapPE.layers, cfg.posenc_LapPE.post_layers = layers, post_layers
    for data in graphs():
        encoder, out = encoded('LapPE', data.clone())
        total = np.zeros((data.num_nodes, 4))
        for frequency in range(min(data.num_nodes, 4)):
            values = torch.stack([data.EigVecs[:, frequency], data.EigVals[:, frequency, 0]], 1).numpy()
            for linear in encoder.network[::2]:
                values = affine(values, linear).clip(min=0)
            total += values
        for linear in encoder.post[::2] if post_layers else []:
            total = affine(total, linear).clip(min=0)
        np.testing.assert_allclose(
            out.detach().numpy(), np.concatenate([affine(data.x.numpy(), encoder.lin_x), total], 1), atol=1e-5
        )


def test_return_probabilities_are_normalized_over_the_batch() -> None:
    batch = Batch.from_data_list(graphs())
    encoder, out = encoded('RWSE', batch.clone(), training=True)
    returns = batch.pestat_RWSE.numpy()
    normal = (returns - returns.mean(0)) / np.sqrt(returns.var(0) + 1e-5)
    expected = np.concatenate([affine(batch.x.numpy(), encoder.lin_x), affine(normal, encoder.network)], 1)
    np.testing.assert_allclose(out.detach().numpy(), expected, atol=1e-5)


def test_eigenvectors_as_positions_take_no_channels() -> None:
    batch = Batch.from_data_list(graphs())
    encoder = node_encoder('LinearNode+EquivStableLapPE')(10)
    out = encoder(batch.clone())
    expected = affine(np.nan_to_num(batch.EigVecs.numpy()), encoder.encoder2.lin)
    np.testing.assert_allclose(out.pe_EquivStableLapPE.detach().numpy(), expected, atol=1e-5)
    np.testing.assert_allclose(out.x.detach().numpy(), affine(batch.x.numpy(), encoder.encoder1.encoder), atol=1e-5)
    alone = node_encoder('EquivStableLapPE')(3)(batch.clone())
    assert torch.equal(alone.x, batch.x)
    assert alone.pe_EquivStableLapPE.shape == (sum(SIZES), 3)


@pytest.mark.parametrize('model', ['DeepSet', 'Transformer'])
@pytest.mark.parametrize('name', ['LapPE', 'RWSE', 'LinearNode+LapPE', 'LinearNode+LapPE+RWSE', 'LapPE+RWSE'])
def test_a_batch_is_one_by_one_and_finite(name: str, model: str) -> None:
    cfg.posenc_LapPE.model, cfg.posenc_RWSE.model = model, 'mlp'
    for options in (cfg.posenc_LapPE, cfg.posenc_RWSE):
        options.raw_norm_type = 'BatchNorm'
    together = encoded(name, Batch.from_data_list(graphs()))[1]
    alone = torch.cat([encoded(name, data)[1] for data in graphs()])
    torch.testing.assert_close(together, alone)
    assert together.shape == (sum(SIZES), 10)
    encoder, out = encoded(name, Batch.from_data_list(graphs()), training=True)
    out.square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in encoder.parameters())


def test_signs_are_random_in_training_and_seeded() -> None:
    batch = Batch.from_data_list(graphs())
    encoder = node_encoder('LapPE')(10)
    seen = {tuple(encoder(batch.clone()).x.flatten().tolist()) for _ in range(200)}
    assert len(seen) == 2**4
    torch.manual_seed(3)
    first = encoder(batch.clone()).x
    torch.manual_seed(3)
    assert torch.equal(encoder(batch.clone()).x, first)
    encoder.eval()
    assert torch.equal(encoder(batch.clone()).x, encoder(batch.clone()).x)


@pytest.mark.parametrize(
    ('name', 'options', 'message'),
    [
        ('LapPE', ['posenc_LapPE.dim_pe', 10], r'posenc_LapPE.dim_pe: got 10; accepted: whole numbers from 1 to 9'),
        ('LapPE', ['posenc_LapPE.model', 'none'], "posenc_LapPE.model: got 'none'; accepted: DeepSet, Transformer"),
        ('LapPE', ['posenc_LapPE.layers', 0], 'posenc_LapPE.layers: got 0'),
        (
            'LapPE',
            ['posenc_LapPE.model', 'Transformer', 'posenc_LapPE.n_heads', 3],
            'n_heads: got 3; accepted: divisors of the 4',
        ),
        ('RWSE', ['posenc_RWSE.model', 'DeepSet'], 'posenc_RWSE.model: got .deepset.; accepted: linear, mlp'),
        ('RWSE', ['posenc_RWSE.raw_norm_type', 'layer'], 'raw_norm_type: got .layer.; accepted: none, batchnorm'),
        ('Nothing+LapPE', [], "node_encoder_name: got 'Nothing'"),
        (
            'EquivStableLapPE',
            ['posenc_EquivStableLapPE.enable', False],
            r'enable: got False with the encoder .*; accepted: True',
        ),
        ('EquivStableLapPE', [], r'got EquivStableLapPE alone, .*; accepted: 10 features, or .* LinearNode\+EquivStableLapPE'),
        ('LinearNode+SignNet', [], r'got .LinearNode\+SignNet.*; instead: the encoder LapPE .*checkout'),
    ],
)
def test_bad_options(name: str, options: list[object], message: str) -> None:
    cfg.merge_from_list(options)
    with pytest.raises(ValueError, match=message):
        node_encoder(name)(10)


def test_missing_statistics_are_named() -> None:
    with pytest.raises(ValueError, match=r'^posenc_LapPE: got data without EigVals; accepted: .*enable: True'):
        node_encoder('LapPE')(10)(Data(x=torch.randn(2, 3)))
