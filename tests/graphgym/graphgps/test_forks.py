"""The hook in forks of GraphGPS: that of the authors of k-MIP attention, and Exphormer's, with layers of many models."""

from __future__ import annotations

import copy
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from graphgps_layers import CHANNELS, HEADS, batch_of_paths, make
from torch_geometric.data import Batch
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, set_cfg

from pyg_topomask.graphgym.graphgps import GPSLayerHook, MultiLayerHook, SingleLayerHook
from pyg_topomask.graphgym.names.attentions import ATTENTIONS
from pyg_topomask.graphs.graph import Graph

#: Warnings of GraphGPS itself, which was written for older versions of everything.
pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.fixture
def kmip_fork(graphgps: SimpleNamespace) -> SimpleNamespace:
    """The hook before a layer as in the k-MIP authors' repository: norm and dropout have other names, and an attention ours."""

    class GPSLayer(graphgps.theirs):
        def __init__(self, dim_h: int, local: str, name: str, heads: int, *args: Any, sparse_cfg: Any = None, **kwargs: Any):
            super().__init__(dim_h, local, 'Transformer' if name == 'SparseAttention' else name, heads, *args, **kwargs)
            for prefix in ('norm1', 'dropout'):
                self._modules[f'{prefix}_global'] = self._modules.pop(f'{prefix}_attn')

        def forward(self, batch: Batch) -> Batch:
            if self.self_attn is not None:
                self.norm1_attn, self.dropout_attn = self.norm1_global, self.dropout_global
            return super().forward(batch)

    module = SimpleNamespace(GPSLayer=type('GPSLayer', (GPSLayerHook, GPSLayer), {}))
    return SimpleNamespace(theirs=GPSLayer, module=module, original=graphgps)


@pytest.mark.parametrize('norm', [{'layer_norm': True, 'batch_norm': False}, {}])
def test_other_names_of_norm_and_dropout(kmip_fork: SimpleNamespace, norm: dict[str, bool]) -> None:
    fork, plain = (make(layer, 'GINE', 'KMIP', **norm).eval() for layer in (kmip_fork, kmip_fork.original))
    assert not hasattr(fork, 'norm1_attn')
    assert torch.equal(fork(batch_of_paths()).x, plain(batch_of_paths()).x)


def test_attention_that_the_checkout_knows_stays_its_own(kmip_fork: SimpleNamespace) -> None:
    torch.manual_seed(0)
    theirs = kmip_fork.theirs(CHANNELS, 'CustomGatedGCN', 'SparseAttention', HEADS, pna_degrees=[0, 4, 4], bigbird_cfg=None)
    layer = make(kmip_fork, 'CustomGatedGCN', 'SparseAttention')
    assert layer.topo_attn is None
    assert torch.equal(layer.eval()(batch_of_paths()).x, theirs.eval()(batch_of_paths()).x)
    assert make(kmip_fork.original, 'CustomGatedGCN', 'SparseAttention').topo_attn is not None


@pytest.mark.filterwarnings('error:topomask')
def test_options_that_the_attention_of_the_checkout_does_not_read_warn(kmip_fork: SimpleNamespace) -> None:
    make(kmip_fork, 'GINE', 'SparseAttention')
    cfg.topomask.SparseAttention.edge_attr = True
    with pytest.warns(UserWarning, match=r"^topomask.SparseAttention.edge_attr: .* 'SparseAttention', which is GraphGPS's own"):
        make(kmip_fork, 'GINE', 'SparseAttention')


def test_options_of_the_k_mip_authors(graphgps: SimpleNamespace) -> None:
    assert cfg.gt.sparse.k == 10
    cfg.gt.sparse.k = 2
    cfg.gt.layers = 12345
    set_cfg(cfg)
    assert (cfg.gt.sparse.k, cfg.gt.layers) == (10, 3)  # both are declared anew


def fork_layer(name: str, **kwargs: Any) -> Any:
    torch.manual_seed(0)
    options = {'dropout': 0.0, 'layer_norm': True, 'batch_norm': False, 'bigbird_cfg': None, 'exp_edges_cfg': None}
    layer_class = getattr(sys.modules['graphgps.network.multi_model'], name)
    return layer_class(dim_h=CHANNELS, num_heads=HEADS, **{**options, **kwargs}).eval()


def assert_attends(model: Any, batch: Batch) -> None:
    """A global model of Exphormer's repository: norm(x + attention(x)), with an attention of ours."""
    attended = model.self_attn.attn(batch.x, batch.edge_index, batch=batch.batch, graph=Graph.from_data(batch))
    torch.testing.assert_close(model(copy.copy(batch)), model.norm1_attn(batch.x + attended, batch.batch))


def test_layer_of_many_models(graphgps: SimpleNamespace) -> None:
    if graphgps.fork is None:
        pytest.skip('this checkout has no multi_model_layer')
    batch = batch_of_paths()
    layer = fork_layer('MultiLayer', model_types=['GCN', 'GRF', 'Transformer', 'Linear'])
    assert isinstance(layer, MultiLayerHook)
    for model in (layer.models[1], layer.models[3]):
        assert_attends(model, batch)
    total = sum(model(copy.copy(batch)) for model in layer.models)
    expected = layer.norm2(total + layer._ff_block(total), batch.batch)
    torch.testing.assert_close(layer(copy.copy(batch)).x, expected)
    with pytest.raises(ValueError, match=r'Nonsense\. Accepted .* GRF'):
        fork_layer('MultiLayer', model_types=['GCN', 'Nonsense'])
    # The BigBird of the repository, whose options are missing here, and not ours.
    for name, models in (('MultiLayer', {'model_types': ['GCN', 'BigBird']}), ('SingleLayer', {'model_type': 'BigBird'})):
        with pytest.raises((AttributeError, TypeError, ValueError)):
            fork_layer(name, **models)


def test_layer_of_one_model(graphgps: SimpleNamespace) -> None:
    if graphgps.fork is None:
        pytest.skip('this checkout has no multi_model_layer')
    batch = batch_of_paths()
    for name in ATTENTIONS.keys() - {'BigBird'}:  # which is an attention of the repository
        if name == 'Causal':
            cfg.topomask.Causal.order = None
        layer = fork_layer('SingleLayer', model_type=name)
        assert isinstance(layer, SingleLayerHook)
        assert_attends(layer.model, batch)
        torch.testing.assert_close(layer(copy.copy(batch)).x, layer.model(copy.copy(batch)).relu())
    with pytest.raises(ValueError, match=r'Nonsense\. Accepted .* GRF'):
        fork_layer('SingleLayer', model_type='Nonsense')


@pytest.mark.parametrize(('name', 'models'), [('MultiLayer', ['GCN', 'Transformer']), ('SingleLayer', 'GCN')])
def test_layers_of_the_fork_are_bit_for_bit(graphgps: SimpleNamespace, name: str, models: list[str] | str) -> None:
    if graphgps.fork is None:
        pytest.skip('this checkout has no multi_model_layer')
    argument = {'model_types' if name == 'MultiLayer' else 'model_type': models}
    hooked = fork_layer(name, **argument)
    torch.manual_seed(0)
    theirs = getattr(graphgps.fork, name)(dim_h=CHANNELS, num_heads=HEADS, layer_norm=True, batch_norm=False, **argument).eval()
    batch = batch_of_paths()
    assert type(hooked) is not type(theirs)
    assert repr(hooked) == repr(theirs)
    assert torch.equal(hooked(copy.copy(batch)).x, theirs(copy.copy(batch)).x)


@pytest.mark.parametrize(('network', 'layer_type'), [('MultiModel', 'GCN+GRF+Linear'), ('SingleModel', 'GRF')])
def test_models_of_the_fork_train(graphgps: SimpleNamespace, network: str, layer_type: str) -> None:
    if graphgps.fork is None:
        pytest.skip('this checkout has no multi_model_layer')
    cfg.gt.update({'layer_type': layer_type, 'layers': 2, 'n_heads': HEADS, 'dim_hidden': CHANNELS})
    cfg.gnn.update({'head': 'san_graph', 'dim_inner': CHANNELS, 'layers_pre_mp': 1})
    cfg.dataset.update({'node_encoder': False, 'edge_encoder': False})
    cfg.model.graph_pooling = 'mean'
    torch.manual_seed(0)
    model = register.network_dict[network](dim_in=CHANNELS, dim_out=2)
    before = {name: parameter.clone() for name, parameter in model.named_parameters() if 'self_attn.attn.' in name}
    prediction, true = model(batch_of_paths())
    torch.nn.functional.cross_entropy(prediction, true).backward()
    torch.optim.Adam(model.parameters(), 0.1).step()
    changed = {name for name, parameter in model.named_parameters() if name in before and not parameter.equal(before[name])}
    assert {name.split('.')[1] for name in changed} == {'0', '1'}
