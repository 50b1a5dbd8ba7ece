"""SVDSE alone and behind other encoders, with stored encodings."""

from collections.abc import Iterator

import pytest

pytest.importorskip('yacs')

import torch
from graphs import ring
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, set_cfg
from torch_geometric.utils.smiles import x_map
from yacs.config import CfgNode

from pyg_topomask.graphgym.names.encoders import (
    NODE_ENCODERS,
    SVD_OPTIONS,
    SmilesNodeEncoder,
    SVDNodeEncoder,
    register_svd_encoders,
)
from pyg_topomask.transforms.add_svd_encoding import AddSVDEncoding


@pytest.fixture(autouse=True)
def _options() -> Iterator[None]:
    before = cfg.topomask.get('svd'), cfg.share.dim_in
    cfg.topomask.svd = CfgNode({**SVD_OPTIONS, 'rank': 3, 'dim_pe': 4})
    cfg.share.dim_in = 5
    yield
    if before[0] is None:
        del cfg.topomask['svd']
    else:
        cfg.topomask.svd = before[0]
    cfg.share.dim_in = before[1]


def batch(rank: int = 3, **attributes: object) -> Batch:
    graphs = [Data(x=torch.randn(size, 5), edge_index=ring(size), **attributes) for size in (5, 6)]
    return Batch.from_data_list([AddSVDEncoding(rank)(data) for data in graphs])


def test_features_and_encodings_are_mapped_and_joined() -> None:
    data, encoder = batch(), SVDNodeEncoder(10).eval()
    x, encoding = data.x, data.svd_encoding
    expected = torch.cat([encoder.lin_x(x), encoder.lin_svd(encoding)], dim=1)
    torch.testing.assert_close(encoder(data).x, expected)
    assert expected.shape == (11, 10)


@pytest.mark.parametrize('name', ['LinearNode', 'Twice', 'SVDSE+Twice'])
def test_composition_with_encoders_that_others_register(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Twice(torch.nn.Module):
        def __init__(self, emb_dim: int) -> None:
            super().__init__()
            self.emb_dim = emb_dim

        def forward(self, data: Data) -> Data:
            data.x = 2 * torch.ones(data.num_nodes, self.emb_dim)
            return data

    registry = dict(register.node_encoder_dict)
    monkeypatch.setattr(register, 'node_encoder_dict', registry)
    registry['Twice'] = Twice
    registry['SVDSE+Twice'] = Twice
    register_svd_encoders()
    if name == 'SVDSE+Twice':
        assert f'{name}+SVDSE' not in registry
        return
    encoder = registry[f'{name}+SVDSE'](10).eval()
    data = batch()
    first, encoding = data.x, data.svd_encoding
    out = encoder(data).x
    assert out.shape == (11, 10)
    torch.testing.assert_close(out[:, 6:], encoder.encoder2.lin_svd(encoding))
    torch.testing.assert_close(out[:, :6], encoder.encoder1(Data(x=first, num_nodes=11)).x)
    registry['LinearNode'] = Twice  # registered later, it is preferred to our stand-in
    assert isinstance(registry['LinearNode+SVDSE'](10).encoder1, Twice)


def test_registered_names() -> None:
    names = {'SVDSE', *(f'{name}+SVDSE' for name in NODE_ENCODERS)}
    assert names <= set(register.node_encoder_dict)
    before = dict(register.node_encoder_dict)
    register_svd_encoders()
    assert register.node_encoder_dict == before


def test_encoders_registered_later_are_composed_when_a_run_sets_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = dict(register.node_encoder_dict)
    monkeypatch.setattr(register, 'node_encoder_dict', registry)
    registry['Later+LapPE'] = torch.nn.Identity  # as GraphGPS does, imported after this package
    assert 'Later+LapPE+SVDSE' not in registry
    set_cfg(CfgNode())
    assert 'Later+LapPE+SVDSE' in registry


def test_signs_are_random_in_training_per_graph_and_singular_value() -> None:
    cfg.topomask.svd.dim_pe = 6
    data, encoder = batch(), SVDNodeEncoder(10, expand_x=False)
    with torch.no_grad():
        encoder.lin_svd.weight.copy_(torch.eye(6))
        encoder.lin_svd.bias.zero_()
    encoding, seen = data.svd_encoding, set()
    for _ in range(40):
        out = encoder(data.clone()).x[:, 5:]
        torch.testing.assert_close(out.abs(), encoding.abs())
        for rows in (slice(0, 5), slice(5, 11)):
            signs = (out[rows] * encoding[rows]).sum(0).sign()
            assert torch.equal(signs[:3], signs[3:])  # the two vectors of a pair flip together
            seen.add((rows.start, *signs[:3].int().tolist()))
    assert len(seen) == 16
    cfg.topomask.svd.sign_flip = False
    fixed = SVDNodeEncoder(10)
    assert torch.equal(fixed(data.clone()).x, fixed(data.clone()).x)
    encoder.eval()
    assert torch.equal(encoder(data.clone()).x[:, 5:], encoding)


def test_single_graphs_and_gradients() -> None:
    data = AddSVDEncoding(3)(Data(x=torch.randn(4, 5), edge_index=ring(4)))
    encoder = SVDNodeEncoder(10)
    encoder(data).x.square().sum().backward()
    assert all(parameter.grad.any() for parameter in encoder.parameters())


def test_bipartite_encodings_have_rank_channels() -> None:
    cfg.topomask.svd.bipartite = True
    edges = torch.tensor([[0, 0, 1, 2], [3, 4, 4, 5]])
    data = AddSVDEncoding(3)(Data(x=torch.randn(6, 5), edge_index=edges, num_users=3))
    assert SVDNodeEncoder(10)(data).x.shape == (6, 10)


def test_missing_and_other_encodings_are_named() -> None:
    with pytest.raises(ValueError, match=r'^SVDSE: got data without a tensor svd_encoding; .*\{AddSVDEncoding: \{rank: 3\}\}'):
        SVDNodeEncoder(10)(Data(x=torch.randn(4, 5), edge_index=ring(4)))
    with pytest.raises(ValueError, match=r'^SVDSE: got svd_encoding of 4 channels; accepted: .* 6 channels'):
        SVDNodeEncoder(10)(batch(rank=2))


@pytest.mark.parametrize(('name', 'value'), [('rank', 0), ('dim_pe', 0), ('dim_pe', 10)])
def test_bad_options_are_named(name: str, value: int) -> None:
    cfg.topomask.svd[name] = value
    with pytest.raises(ValueError, match=rf'^topomask.svd.{name}: got {value}'):
        SVDNodeEncoder(10)


def test_columns_after_the_kinds_of_an_atom_are_mapped_by_a_matrix() -> None:
    cfg.share.dim_in = len(x_map) + 2
    encoder, more = SmilesNodeEncoder(4), torch.randn(3, 2)
    x = torch.cat([torch.ones(3, len(x_map)), more], dim=1)
    of_kinds = sum(embedding.weight[1] for embedding in encoder.kinds.embeddings)
    torch.testing.assert_close(encoder(Data(x=x)).x, of_kinds + more @ encoder.further.weight.t())
