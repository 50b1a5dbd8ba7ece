"""The hook, in the stand-in for GraphGPS and, where GRAPHGPS_DIR names a checkout, in GraphGPS itself."""

from __future__ import annotations

import copy
import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, set_cfg

import pyg_topomask.graphgym
from pyg_topomask.__main__ import main
from pyg_topomask.graph import Graph
from pyg_topomask.graphgym.attentions import ATTENTIONS
from pyg_topomask.graphgym.graphgps import GPSLayerHook, MultiLayerHook, SingleLayerHook, hook_graphgps

STANDIN = Path(__file__).parent / 'graphgps_standin'
REAL = os.environ.get('GRAPHGPS_DIR')
CHECKOUTS = {'standin': STANDIN, **({'GRAPHGPS_DIR': Path(REAL)} if REAL else {})}
LOCAL = ['None', 'GCN', 'GIN', 'GENConv', 'GINE', 'GAT', 'PNA', 'CustomGatedGCN']
CHANNELS, HEADS = 8, 2

#: Warnings of GraphGPS itself, which was written for older versions of everything.
pytestmark = pytest.mark.filterwarnings('ignore')


def test_real_checkout() -> None:
    if REAL is None:
        pytest.skip('GRAPHGPS_DIR is not set to a checkout of GraphGPS')
    assert (Path(REAL) / 'graphgps' / 'layer' / 'gps_layer.py').is_file()


@pytest.fixture(scope='module', params=CHECKOUTS.values(), ids=CHECKOUTS.keys())
def graphgps(request: pytest.FixtureRequest) -> Iterator[SimpleNamespace]:
    """Imports a GraphGPS, and takes back all that its import registers."""
    registries = [value for name, value in vars(register).items() if name.endswith('_dict')]
    before, saved = [dict(registry) for registry in registries], cfg.clone()
    sys.path.insert(0, str(request.param))
    try:
        importlib.import_module('graphgps')
        layer = importlib.import_module('graphgps.layer.gps_layer').GPSLayer
        fork = sys.modules.get('graphgps.layer.multi_model_layer')
        set_cfg(cfg)
        yield SimpleNamespace(theirs=layer, module=sys.modules['graphgps.network.gps_model'], fork=fork, folder=request.param)
    finally:
        sys.path.remove(str(request.param))
        for name in [name for name in sys.modules if name.partition('.')[0] == 'graphgps']:
            del sys.modules[name]
        for registry, entries in zip(registries, before, strict=True):
            registry.clear()
            registry.update(entries)
        cfg.clear()
        cfg.update(saved)


@pytest.fixture(autouse=True)
def options(request: pytest.FixtureRequest) -> None:
    """Starts every test with the default options and a mask for the attention Masked."""
    if 'graphgps' in request.fixturenames:
        request.getfixturevalue('graphgps')
        set_cfg(cfg)
        cfg.topomask.mask.update({'GRF': {'num_walks': 2}})


def path(num_nodes: int, seed: int) -> Data:
    """A path, which is a grid and a forest as well, with all that some attention or local layer reads."""
    torch.manual_seed(seed)
    forwards = torch.stack([torch.arange(num_nodes - 1), torch.arange(1, num_nodes)])
    return Data(
        x=torch.randn(num_nodes, CHANNELS),
        edge_index=torch.cat([forwards, forwards.flip(0)], dim=1),
        edge_attr=torch.randn(2 * num_nodes - 2, CHANNELS),
        grid_shape=torch.tensor([[num_nodes, 1]]),
        mask_left=torch.rand(num_nodes, 2),
        mask_right=torch.rand(num_nodes, 2),
        pe_EquivStableLapPE=torch.randn(num_nodes, 4),
        y=torch.tensor([seed % 2]),
    )


def batch_of_paths() -> Batch:
    return Batch.from_data_list([path(5, 0), path(1, 1), path(3, 2)])


def make(graphgps: SimpleNamespace, local: str, name: str, **kwargs: Any) -> Any:
    options = {'pna_degrees': [0, 4, 4], 'bigbird_cfg': None, **kwargs}
    torch.manual_seed(0)
    return graphgps.module.GPSLayer(CHANNELS, local, name, HEADS, **options)


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
        own = theirs._ff_block
        theirs._ff_block = lambda self, x: stopped.append(x) or torch.zeros_like(x)
        try:
            theirs.forward(layer, copy.copy(batch))
        finally:
            theirs._ff_block = own
        total = total + stopped[0]
    return norm('norm2', total + theirs._ff_block(layer, total))


@pytest.mark.parametrize('local', LOCAL)
@pytest.mark.parametrize('name', ATTENTIONS)
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


@pytest.fixture
def kmip_fork(graphgps: SimpleNamespace) -> SimpleNamespace:
    """The hook before a layer as in the k-MIP authors' repository: norm and dropout have other names, and an attention ours."""

    class GPSLayer(graphgps.theirs):
        def __init__(self, dim_h: int, local: str, name: str, heads: int, *args: Any, sparse_cfg: Any = None, **kwargs: Any):
            super().__init__(dim_h, local, 'Transformer' if name == 'SparseAttention' else name, heads, *args, **kwargs)
            for part in ('norm1', 'dropout'):
                self._modules[f'{part}_global'] = self._modules.pop(f'{part}_attn')

        def forward(self, batch: Batch) -> Batch:
            if self.self_attn is not None:
                self.norm1_attn, self.dropout_attn = self.norm1_global, self.dropout_global
            return super().forward(batch)

    module = SimpleNamespace(GPSLayer=type('GPSLayer', (GPSLayerHook, GPSLayer), {}))
    return SimpleNamespace(theirs=GPSLayer, module=module, original=graphgps)


@pytest.mark.parametrize('norm', [{'layer_norm': True, 'batch_norm': False}, {}])
def test_other_names_of_norm_and_dropout(kmip_fork: SimpleNamespace, norm: dict[str, bool]) -> None:
    fork, plain = (make(own, 'GINE', 'KMIP', **norm).eval() for own in (kmip_fork, kmip_fork.original))
    assert not hasattr(fork, 'norm1_attn')
    assert torch.equal(fork(batch_of_paths()).x, plain(batch_of_paths()).x)


def test_attempt_with_a_name_of_ours_draws_no_parameters(graphgps: SimpleNamespace) -> None:
    ours, none = (make(graphgps, 'GINE', name).local_model.state_dict() for name in ('KMIP', 'None'))
    assert all(torch.equal(own, none[key]) for key, own in ours.items())


def test_attention_that_the_checkout_knows_stays_its_own(kmip_fork: SimpleNamespace) -> None:
    torch.manual_seed(0)
    theirs = kmip_fork.theirs(CHANNELS, 'CustomGatedGCN', 'SparseAttention', HEADS, pna_degrees=[0, 4, 4], bigbird_cfg=None)
    layer = make(kmip_fork, 'CustomGatedGCN', 'SparseAttention')
    assert layer.topo_attn is None
    assert torch.equal(layer.eval()(batch_of_paths()).x, theirs.eval()(batch_of_paths()).x)
    assert make(kmip_fork.original, 'CustomGatedGCN', 'SparseAttention').topo_attn is not None


def test_layers_prepare_once_per_forward(graphgps: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Graph] = []
    original = Graph.from_data.__func__

    def count(cls: type[Graph], data: Data) -> Graph:
        made.append(original(cls, data))
        return made[-1]

    monkeypatch.setattr(Graph, 'from_data', classmethod(count))
    layers = [make(graphgps, 'GCN', 'GRF') for _ in range(3)]
    batch = batch_of_paths()
    for forward in range(2):
        batch = layers[0](batch)
        prepared = len(made[-1]._states)
        batch = layers[2](layers[1](batch))
        assert len(made) == forward + 1
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
    with pytest.raises(ValueError, match="got one of the attention 'Linear'; accepted is 'GRF'"):
        grf.load_state_dict(linear.state_dict())
    with pytest.raises(RuntimeError, match=r"without topo_attn\.\*, of another gt.layer_type; accepted is one of 'GRF'"):
        grf.load_state_dict(transformer.state_dict())


def test_layers_are_copied_and_pickled(graphgps: SimpleNamespace) -> None:
    layer = make(graphgps, 'GCN', 'GRF').eval()
    wanted = layer(batch_of_paths()).x
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(batch_of_paths()).x, wanted)


def test_hooked_once(graphgps: SimpleNamespace) -> None:
    before = graphgps.module.GPSLayer
    assert issubclass(before, GPSLayerHook)
    assert issubclass(before, graphgps.theirs)
    hook_graphgps()
    set_cfg(cfg)
    assert graphgps.module.GPSLayer is before


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


def test_layer_of_one_model(graphgps: SimpleNamespace) -> None:
    if graphgps.fork is None:
        pytest.skip('this checkout has no multi_model_layer')
    batch = batch_of_paths()
    for name in ATTENTIONS:
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


CONFIG = """
dataset: {format: random, name: paths, task: graph, task_type: classification, dir: data, node_encoder: True,
  node_encoder_name: LinearNode, edge_encoder: True, edge_encoder_name: LinearEdge}
model: {type: GPSModel, loss_fun: cross_entropy, graph_pooling: mean}
gt: {layer_type: CustomGatedGCN+GRF, layers: 2, n_heads: 2, dim_hidden: 8}
gnn: {head: san_graph, dim_inner: 8}
train: {batch_size: 2}
optim: {max_epoch: 2}
topomask: {transforms: [AddGraphRandomFeatures], progress: False}
"""


def run_standin(folder: Path, command: list[str], *options: str) -> str:
    (folder / 'config.yaml').write_text(CONFIG)
    root = Path(pyg_topomask.graphgym.__file__).parents[2]
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(root), os.environ.get('PYTHONPATH', '')])}
    options = ('out_dir', str(folder / 'results'), *options)
    arguments = [sys.executable, '-W', 'ignore', *command, '--cfg', 'config.yaml', *options]
    result = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_both_ways_to_run_a_checkout(tmp_path: Path) -> None:
    outputs = []
    for name, script in {'launched': '', 'imported': 'import pyg_topomask.graphgym\n'}.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / 'graphgps').symlink_to(STANDIN / 'graphgps')
        # The one line may stand after the import of graphgps as well, which launching never does.
        head, _, tail = (STANDIN / 'main.py').read_text().partition('import torch\n')
        (folder / 'main.py').write_text(f'{head}{script}import torch\n{tail}')
        command = ['-m', 'pyg_topomask', 'graphgps'] if name == 'launched' else ['main.py']
        outputs.append(run_standin(folder, command))
    assert outputs[0] == outputs[1]
    assert 'epoch 1 loss' in outputs[0]


#: A composed mask, and encodings behind an encoder that GraphGPS alone registers.
MASK_AND_ENCODINGS = [
    *('gt.layer_type', 'CustomGatedGCN+Masked', 'topomask.Masked.mask', '{sum: [GRF, SinDegree]}'),
    *('dataset.node_encoder_name', 'VOCNode+SVDSE', 'topomask.svd.rank', '2', 'topomask.svd.dim_pe', '2'),
    *('topomask.transforms', "['AddGraphRandomFeatures', 'AddSVDEncoding']"),
]


def test_masks_and_encodings_in_either_order_of_imports(tmp_path: Path) -> None:
    outputs = []
    for name in ('launched', 'first', 'second'):
        folder = tmp_path / name
        folder.mkdir()
        (folder / 'graphgps').symlink_to(STANDIN / 'graphgps')
        main, line = (STANDIN / 'main.py').read_text(), 'import pyg_topomask.graphgym\n'
        order = {'launched': main, 'first': line + main, 'second': main.replace('import torch\n', f'{line}import torch\n', 1)}
        (folder / 'main.py').write_text(order[name])
        if name == 'launched':
            options = [word.replace('topomask.Masked.mask', 'topomask.mask') for word in MASK_AND_ENCODINGS]
            outputs.append(run_standin(folder, ['-m', 'pyg_topomask', 'graphgps'], *options))
        else:
            outputs.append(run_standin(folder, ['main.py'], *MASK_AND_ENCODINGS))
    assert outputs[0] == outputs[1] == outputs[2]
    assert 'epoch 1 loss' in outputs[0]


def test_only_in_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(['graphgps', '--cfg', 'x.yaml']) == 2
    assert 'accepted is a checkout of GraphGPS' in capsys.readouterr().err
