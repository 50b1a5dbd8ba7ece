"""The hook, in the stand-in for GraphGPS and, where GRAPHGPS_DIR names a checkout, in GraphGPS itself."""

from __future__ import annotations

import copy
import pickle
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sklearn.metrics
import torch
from graphgps_layers import CHANNELS, HEADS, REAL, batch_of_paths, make
from grids import covering
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym.config import cfg, set_cfg
from yacs.config import CfgNode

from pyg_topomask.graphgym.graphgps import GPSLayerHook, hook_graphgps
from pyg_topomask.graphgym.names.attentions import ATTENTIONS
from pyg_topomask.graphs.graph import Graph

LOCAL = ['None', 'GCN', 'GIN', 'GENConv', 'GINE', 'GAT', 'PNA', 'CustomGatedGCN']

#: Warnings of GraphGPS itself, which was written for older versions of everything.
pytestmark = pytest.mark.filterwarnings('ignore')


def test_real_checkout() -> None:
    if REAL is None:
        pytest.skip('GRAPHGPS_DIR is not set to a checkout of GraphGPS')
    assert (Path(REAL) / 'graphgps' / 'layer' / 'gps_layer.py').is_file()


def expected(layer: Any, theirs: type, batch: Batch) -> Tensor:
    """The equations of a GPS layer, by parts of it: x' = norm(s + FF(s)), s = local + norm(x + attention(x))."""

    def norm(name: str, h: Tensor) -> Tensor:
        if layer.layer_norm:
            return getattr(layer, name)(h, batch.batch)
        return getattr(layer, name)(h) if layer.batch_norm else h

    attended = layer.topo_attn.attn(batch.x, batch.edge_index, batch=batch.batch, graph=Graph.from_data(batch))
    total = norm('norm1_attn', batch.x + layer.dropout_attn(attended))
    if layer.local_model is not None:
        # Theirs alone, up to where the feed-forward block would begin.
        stopped: list[Tensor] = []
        ff_block = theirs._ff_block
        theirs._ff_block = lambda self, x: stopped.append(x) or torch.zeros_like(x)
        try:
            theirs.forward(layer, copy.copy(batch))
        finally:
            theirs._ff_block = ff_block
        total = total + stopped[0]
    return norm('norm2', total + theirs._ff_block(layer, total))


# GraphGPS has a BigBird of its own.
@pytest.mark.parametrize(('name', 'local'), covering([name for name in ATTENTIONS if name != 'BigBird'], LOCAL))
def test_every_local_layer_with_every_attention(graphgps: SimpleNamespace, local: str, name: str) -> None:
    if name == 'Causal':
        cfg.topomask.Causal.order = None
    layer = make(graphgps, local, name).eval()
    batch = batch_of_paths()
    wanted = expected(layer, graphgps.theirs, batch)
    out = layer(copy.copy(batch)).x
    torch.testing.assert_close(out, wanted)
    out.square().sum().backward()
    gradients = [parameter.grad for parameter in layer.topo_attn.parameters()]
    assert any(gradient is not None and bool(gradient.abs().sum() > 0) for gradient in gradients)
    assert all(bool(gradient.isfinite().all()) for gradient in gradients if gradient is not None)


def test_attention_is_dropped_out_as_theirs_is(graphgps: SimpleNamespace) -> None:
    layer, batch = make(graphgps, 'None', 'Linear', dropout=1.0), batch_of_paths()
    torch.testing.assert_close(layer(copy.copy(batch)).x, expected(layer, graphgps.theirs, batch))


def test_masks_learn_edge_weights(graphgps: SimpleNamespace) -> None:
    cfg.dataset.edge_encoder, cfg.topomask.PowerSeries.edge_weights = True, 'learned'
    layer, batch = make(graphgps, 'GINE', 'PowerSeries').eval(), batch_of_paths()
    attention = layer.topo_attn
    torch.nn.init.normal_(attention.edge_weights.lin_out.weight)
    weight = attention.edge_weights(batch.edge_attr, batch.edge_index, batch.x)
    expected = attention.attn(batch.x, batch.edge_index, weight, batch.batch)
    torch.testing.assert_close(attention(batch), expected)
    layer(copy.copy(batch)).x.square().sum().backward()
    assert bool(attention.edge_weights.lin_edge.weight.grad.any())


def test_attention_reads_edge_features(graphgps: SimpleNamespace) -> None:
    cfg.dataset.edge_encoder, cfg.topomask.KMIP.edge_attr = True, True
    layer, batch = make(graphgps, 'GINE', 'KMIP').eval(), batch_of_paths()
    attention = layer.topo_attn
    torch.nn.init.normal_(attention.attn.edge_terms.lin_bias.weight)
    expected = attention.attn(batch.x, batch.edge_index, batch=batch.batch, edge_attr=batch.edge_attr)
    torch.testing.assert_close(attention(batch), expected)
    layer(copy.copy(batch)).x.square().sum().backward()
    assert bool(attention.attn.edge_terms.lin_bias.weight.grad.any())


@pytest.mark.parametrize('name', ['None', 'Transformer'])
@pytest.mark.parametrize('local', ['None', 'GINE', 'CustomGatedGCN'])
def test_theirs_are_bit_for_bit(graphgps: SimpleNamespace, local: str, name: str) -> None:
    if local == name:
        pytest.skip('a layer of no parts')
    results = []
    for layer_class in (graphgps.theirs, graphgps.module.GPSLayer):
        torch.manual_seed(0)
        layer = layer_class(CHANNELS, local, name, HEADS, dropout=0.3, attn_dropout=0.2)
        out = layer(batch_of_paths())
        out.x.sum().backward()
        results.append((repr(layer), layer.state_dict(), out.x, out.edge_attr, [p.grad for p in layer.parameters()]))
    (repr_a, state_a, x_a, edge_a, grad_a), (repr_b, state_b, x_b, edge_b, grad_b) = results
    assert repr_a == repr_b
    assert list(state_a) == list(state_b)
    assert all(torch.equal(state_a[key], state_b[key]) for key in state_a)
    assert torch.equal(x_a, x_b)
    assert torch.equal(edge_a, edge_b)
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(grad_a, grad_b, strict=True))


@pytest.mark.parametrize('norm', [{'layer_norm': True, 'batch_norm': False}, {'batch_norm': False}, {}])
@pytest.mark.parametrize('local', ['None', 'CustomGatedGCN'])
def test_norms(graphgps: SimpleNamespace, local: str, norm: dict[str, bool]) -> None:
    layer = make(graphgps, local, 'GRF', **norm).eval()
    batch = batch_of_paths()
    torch.testing.assert_close(layer(copy.copy(batch)).x, expected(layer, graphgps.theirs, batch))


def test_two_norms_are_refused_as_ever(graphgps: SimpleNamespace) -> None:
    with pytest.raises(ValueError, match='two types of normalization'):
        make(graphgps, 'GCN', 'GRF', layer_norm=True, batch_norm=True)


def test_edge_features_are_updated(graphgps: SimpleNamespace) -> None:
    ours, theirs = (make(graphgps, 'CustomGatedGCN', name).eval() for name in ('GRF', 'Transformer'))
    theirs.local_model.load_state_dict(ours.local_model.state_dict())
    before = batch_of_paths().edge_attr
    updated = ours(batch_of_paths()).edge_attr
    assert not torch.equal(updated, before)
    assert torch.equal(updated, theirs(batch_of_paths()).edge_attr)


@pytest.mark.parametrize('local', ['GINE', 'CustomGatedGCN'])
def test_equivariant_positions_reach_the_local_layer(graphgps: SimpleNamespace, local: str) -> None:
    try:
        make(graphgps, local, 'None', equivstable_pe=True)
    except AttributeError as error:
        pytest.skip(f'this GraphGPS cannot make its own {local} with this PyG: {error}')
    layer = make(graphgps, local, 'GRF', equivstable_pe=True).eval()
    batch = batch_of_paths()
    out = layer(copy.copy(batch)).x
    torch.testing.assert_close(out, expected(layer, graphgps.theirs, batch))
    moved = copy.copy(batch)
    moved.pe_EquivStableLapPE = 3 * batch.pe_EquivStableLapPE
    assert not torch.allclose(layer(moved).x, out)


@pytest.mark.parametrize('local', ['GINE', 'CustomGatedGCN'])
def test_missing_edge_features_are_told(graphgps: SimpleNamespace, local: str) -> None:
    batch = batch_of_paths()
    batch.edge_attr = None
    with pytest.raises(ValueError, match=r'^edge_attr: got none for .*set dataset.edge_encoder: True'):
        make(graphgps, local, 'GRF')(batch)


def test_attempt_with_a_name_of_ours_draws_no_parameters(graphgps: SimpleNamespace) -> None:
    ours, none = (make(graphgps, 'GINE', name).local_model.state_dict() for name in ('KMIP', 'None'))
    assert all(torch.equal(value, none[key]) for key, value in ours.items())


def test_layers_prepare_once(graphgps: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Graph] = []
    original = Graph.from_data.__func__

    def count(cls: type[Graph], data: Data) -> Graph:
        made.append(original(cls, data))
        return made[-1]

    monkeypatch.setattr(Graph, 'from_data', classmethod(count))
    layers = [make(graphgps, 'GCN', 'GRF') for _ in range(3)]
    batch = batch_of_paths()
    for _ in range(2):  # forward passes over one batch, whose edges stay
        batch = layers[0](batch)
        prepared = len(made[-1]._states)
        batch = layers[2](layers[1](batch))
        assert len(made) == 1
        assert len(made[-1]._states) == prepared > 0
    assert set(batch.keys()) == set(batch_of_paths().keys()) | {'batch', 'ptr'}


def test_walks_drawn_in_the_forward_pass_are_new(graphgps: SimpleNamespace) -> None:
    cfg.topomask.GRF.resample = 'forward'
    layer = make(graphgps, 'None', 'GRF', batch_norm=False)
    batch = batch_of_paths()
    first, second = (layer(copy.copy(batch)).x for _ in range(2))
    assert not torch.allclose(first, second)


def test_batch_equals_one_by_one(graphgps: SimpleNamespace) -> None:
    layer = make(graphgps, 'GINE', 'GRF', layer_norm=True, batch_norm=False).eval()
    batch = batch_of_paths()
    alone = torch.cat([layer(Batch.from_data_list([data])).x for data in batch.to_data_list()])
    torch.testing.assert_close(layer(batch).x, alone)


def test_unknown_names(graphgps: SimpleNamespace) -> None:
    with pytest.raises(ValueError, match=r'Nonsense\. Accepted .*Performer.*, and GRF, '):
        make(graphgps, 'GCN', 'Nonsense')
    with pytest.raises(ValueError, match=r'Unsupported local GNN model: Nonsense$'):
        make(graphgps, 'Nonsense', 'GRF')


def test_weights_are_logged_where_there_are_any(graphgps: SimpleNamespace) -> None:
    layer = make(graphgps, 'GCN', 'GRFSoftmax', log_attn_weights=True).eval()
    batch = batch_of_paths()
    out = layer(copy.copy(batch)).x
    torch.testing.assert_close(out, expected(layer, graphgps.theirs, batch))
    weights = layer.attn_weights
    assert weights.shape == (3, HEADS, 5, 5)
    present = torch.arange(5) < torch.tensor([5, 1, 3])[:, None]
    torch.testing.assert_close(weights.sum(-1), present[:, None].expand(3, HEADS, 5).float())
    assert not bool(weights[~(present[:, :, None] & present[:, None, :])[:, None].expand_as(weights)].any())
    # The rows attend: of the largest graph, weights times values are what the heads return.
    attention = layer.topo_attn.attn
    values = attention.lin_v(batch.x[:5]).view(5, HEADS, -1).transpose(0, 1)
    attended = attention.lin_out((weights[0] @ values).transpose(0, 1).flatten(1))
    direct = attention(batch.x, batch.edge_index, batch=batch.batch)
    torch.testing.assert_close(attended, direct[:5])


def test_weights_are_not_logged_elsewhere(graphgps: SimpleNamespace) -> None:
    assert not hasattr(make(graphgps, 'GCN', 'GRFSoftmax'), 'attn_weights')
    with pytest.raises(NotImplementedError, match="'GRF', which never computes attention weights"):
        make(graphgps, 'GCN', 'GRF', log_attn_weights=True)
    with pytest.raises(NotImplementedError):
        make(graphgps, 'GCN', 'None', log_attn_weights=True)


def test_checkpoints(graphgps: SimpleNamespace) -> None:
    grf, linear, transformer = (make(graphgps, 'GCN', name) for name in ('GRF', 'Linear', 'Transformer'))
    grf.load_state_dict(make(graphgps, 'GCN', 'GRF').state_dict())
    with pytest.raises(ValueError, match="got one of the attention 'Linear'; accepted: 'GRF'"):
        grf.load_state_dict(linear.state_dict())
    with pytest.raises(RuntimeError, match=r"without topo_attn\.\*, of another gt.layer_type; accepted: one of 'GRF'"):
        grf.load_state_dict(transformer.state_dict())


def test_other_options_than_those_of_a_checkpoint_are_named(graphgps: SimpleNamespace) -> None:
    def attention(**options: Any) -> Any:
        cfg.topomask.AsymmetricGRF.update(options)
        return make(graphgps, 'GCN', 'AsymmetricGRF')

    trained = attention(flow='target_to_source', num_walks=8).state_dict()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        attention().load_state_dict(trained)
    with pytest.warns(UserWarning, match=r"trained with topomask.AsymmetricGRF.flow 'target_to_source'; give these options"):
        attention(flow='source_to_target').load_state_dict(trained)
    cfg.topomask.mask = CfgNode({'scale': [2.0, 'GRF']})
    trained = make(graphgps, 'GCN', 'Masked').state_dict()
    cfg.topomask.mask = CfgNode({'Adjacency': CfgNode()})
    with pytest.warns(UserWarning, match=r"trained with topomask.mask.scale \[2.0, 'GRF'\]; give"):
        make(graphgps, 'GCN', 'Masked').load_state_dict(trained, strict=False)


def test_graph_tokens_are_refused(graphgps: SimpleNamespace) -> None:
    cfg.dataset.node_encoder_name = 'LinearNode+GraphormerBias'
    cfg.graphormer = CfgNode({'use_graph_token': True})
    with pytest.raises(ValueError, match=r"^graphormer.use_graph_token: got True with the attention 'GRF'; accepted: False"):
        make(graphgps, 'GCN', 'GRF')
    make(graphgps, 'GCN', 'None')
    cfg.graphormer.use_graph_token = False
    make(graphgps, 'GCN', 'GRF')


def test_layers_are_copied_and_pickled(graphgps: SimpleNamespace) -> None:
    layer = make(graphgps, 'GCN', 'GRF').eval()
    wanted = layer(batch_of_paths()).x
    for duplicate in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(duplicate(batch_of_paths()).x, wanted)


def test_hooked_once(graphgps: SimpleNamespace) -> None:
    before = graphgps.module.GPSLayer
    assert issubclass(before, GPSLayerHook)
    assert issubclass(before, graphgps.theirs)
    hook_graphgps()
    set_cfg(cfg)
    assert graphgps.module.GPSLayer is before


def test_logger_computes_root_mean_squared_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = ModuleType('graphgps.logger')
    logger.mean_squared_error = sklearn.metrics.mean_squared_error  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, 'graphgps.logger', logger)
    hook_graphgps()
    hook_graphgps()
    true, predicted = torch.randn(2, 7, 3, generator=torch.Generator().manual_seed(0))
    squares = ((true - predicted) ** 2).numpy().mean(0)
    assert logger.mean_squared_error(true, predicted) == pytest.approx(squares.mean(), rel=1e-6)
    assert logger.mean_squared_error(true, predicted, squared=False) == pytest.approx(np.sqrt(squares).mean(), rel=1e-6)


def test_what_data_lacks_is_named(graphgps: SimpleNamespace) -> None:
    batch = batch_of_paths()
    del batch.mask_left
    with pytest.raises(ValueError, match=r"'mask_left', which the data lacks; .*; it comes with .*in topomask.transforms"):
        make(graphgps, 'GCN', 'LowRank')(batch)
