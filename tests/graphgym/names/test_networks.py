from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from grids import covering
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loss import compute_loss
from torch_geometric.graphgym.register import act_dict, network_dict
from torch_geometric.transforms import ToSparseTensor
from yacs.config import CfgNode

from pyg_topomask.apps.train.module import create_optimizer
from pyg_topomask.graphgym.data.transforms import build_transforms
from pyg_topomask.graphgym.names.attentions import ATTENTIONS, ATTN_TYPES
from pyg_topomask.graphgym.names.layers import LOCAL_LAYERS
from pyg_topomask.graphgym.names.networks import TopoGPSModel, find_head, registered_modules
from pyg_topomask.nn import EdgeWeights, KMIPAttention
from pyg_topomask.walks.walk import sample_ensembles


def make_batch(dim_edge: int = 2, num_graphs: int = 4) -> Batch:
    """Rings of different sizes with random features, with labels and masks for tasks on nodes and on graphs."""
    generator = torch.Generator().manual_seed(0)
    graphs = []
    for size in range(5, 5 + num_graphs):
        source = torch.arange(size)
        # Trees want paths, the others get rings.
        target = source.roll(1)
        if cfg.gt.layer_type.endswith('Tree'):
            source, target = source[1:], target[1:]
        edge_index = torch.cat([torch.stack([source, target]), torch.stack([target, source])], dim=1)
        data = Data(x=torch.randn(size, 3, generator=generator), edge_index=edge_index)
        data.mask_left = data.mask_right = torch.rand(size, 2, generator=generator)
        data.grid_shape = torch.tensor([[size]])
        if dim_edge:
            data.edge_attr = torch.randn(edge_index.size(1), dim_edge, generator=generator)
        if cfg.dataset.task == 'graph':
            data.y = torch.randint(10, (1,), generator=generator)
        else:
            data.y = torch.randint(10, (size,), generator=generator)
            data.train_mask = torch.rand(size, generator=generator) < 0.7
        graphs.append(data)
    for transform in build_transforms(cfg.topomask.transforms):
        graphs = [transform(data) for data in graphs]
    batch = Batch.from_data_list(graphs)
    batch.split = 'train'
    cfg.share.dim_in, cfg.share.dim_edge = 3, dim_edge
    return batch


def build() -> tuple[TopoGPSModel, Batch]:
    batch = make_batch()
    return TopoGPSModel(3, 10), batch


def predict(model: TopoGPSModel, batch: Batch) -> tuple[Tensor, Tensor]:
    return model(batch.clone())


LAYERS = covering([*ATTENTIONS, *ATTN_TYPES], ['GINE', 'None'])


@pytest.mark.parametrize(('attention', 'local'), [layer for layer in LAYERS if layer.values != ('None', 'None')])
def test_every_attention(configure: Callable[..., None], attention: str, local: str) -> None:
    layer_type = f'{local}+{attention}'
    configure(f'gt.layer_type {layer_type}')
    cfg.topomask.Toeplitz.shape_dims = 1
    if layer_type.endswith('+Masked'):
        cfg.topomask.mask = CfgNode({'sum': ['Adjacency', {'PowerSeries': {'order': 2}}]})
    batch = make_batch()
    prediction, label = predict(TopoGPSModel(3, 10), batch)
    assert prediction.shape == (4, 10)
    assert label.shape == (4,)
    assert prediction.isfinite().all()


@pytest.mark.parametrize(('local', 'edges'), covering([name for name, layer in LOCAL_LAYERS.items() if layer], [True, False]))
def test_every_local_layer(configure: Callable[..., None], local: str, edges: bool) -> None:
    configure(f'gt.layer_type {local}+Linear dataset.edge_encoder {edges}')
    batch = make_batch(dim_edge=2 if edges else 0)
    torch.manual_seed(0)
    model = TopoGPSModel(3, 10)
    if LOCAL_LAYERS[local].edge_attr == 'demands' and not edges:
        with pytest.raises(ValueError, match=r'dataset.edge_encoder'):
            predict(model, batch)
        return
    model.eval()
    prediction, _ = predict(model, batch)
    if edges:
        batch.edge_attr = batch.edge_attr + 1
        changed = not torch.allclose(prediction, predict(model, batch)[0])
        assert changed == (LOCAL_LAYERS[local].edge_attr != 'ignores')


def test_positions_are_for_two_local_layers(configure: Callable[..., None]) -> None:
    configure('gt.layer_type GCN+Linear posenc_EquivStableLapPE.enable True')
    with pytest.raises(
        ValueError, match=r'^posenc_EquivStableLapPE.enable: .*layer GCN, .*; accepted: True with GINE and Custom'
    ):
        TopoGPSModel(3, 10)
    configure('gt.layer_type GINE+Linear posenc_EquivStableLapPE.enable True')
    with pytest.raises(
        ValueError, match=r'^dataset.node_encoder_name: got .LinearNode. with .*: True; .*LinearNode\+EquivStable'
    ):
        TopoGPSModel(3, 10)
    for local in ('GINE', 'CustomGatedGCN'):
        configure(
            f'gt.layer_type {local}+Linear dataset.node_encoder_name LinearNode+EquivStableLapPE '
            'posenc_EquivStableLapPE.enable True posenc_EquivStableLapPE.eigen.max_freqs 4'
        )
        batch = make_batch()
        batch.EigVecs = torch.randn(batch.num_nodes, 4)
        model = TopoGPSModel(3, 10).eval()
        prediction, _ = predict(model, batch)
        batch.EigVecs = batch.EigVecs * 2
        assert not torch.allclose(prediction, predict(model, batch)[0])


def test_attention_reads_its_options(configure: Callable[..., None]) -> None:
    configure('topomask.GRF.num_walks 7')
    model, _ = build()
    assert model.layers[0].attn.mask.walk_settings.num_walks == 7


def test_options_of_the_authors_of_kmip(configure: Callable[..., None]) -> None:
    configure('gt.layer_type GINE+SparseAttention gt.sparse.k 3 gt.sparse.kq_dim 5 gt.sparse.random_attention True')
    attention = build()[0].layers[0].attn
    assert (attention.k, attention.random_fraction) == (3, 0.1)
    assert attention.lin_q.out_features == 5 * cfg.gt.n_heads
    # What is not said is the hidden size, as theirs, and heads are combined by a linear map.
    assert attention.lin_v.out_features == cfg.gt.dim_hidden * cfg.gt.n_heads
    assert attention.lin_out.out_features == cfg.gt.dim_hidden
    configure('gt.layer_type GINE+SparseAttention')
    attention = build()[0].layers[0].attn
    assert (attention.lin_q.out_features, attention.random_fraction) == (cfg.gt.dim_hidden * cfg.gt.n_heads, 0.0)


def test_dropout_is_that_of_coefficients_where_there_are_any(configure: Callable[..., None]) -> None:
    for word in ('KMIP', 'SparseAttention', 'Expander'):
        configure(f'gt.layer_type GINE+{word} gt.attn_dropout 0.3')
        attention = build()[0].layers[0].attn
        assert (attention.attention_dropout, attention.dropout) == (0.3, 0.0)
    configure('gt.layer_type GINE+GRF gt.attn_dropout 0.3')
    assert build()[0].layers[0].attn.dropout == 0.3


def test_layers_share_one_graph(configure: Callable[..., None]) -> None:
    configure('gt.layers 3')
    (model, batch), graphs = build(), []
    for layer in model.layers:
        layer.register_forward_pre_hook(lambda module, args, kwargs: graphs.append(kwargs['graph']), with_kwargs=True)
    predict(model, batch)
    assert len(graphs) == 3
    assert graphs[0] is graphs[1] is graphs[2]


def test_layers_before_message_passing(configure: Callable[..., None]) -> None:
    configure('dataset.node_encoder False gnn.layers_pre_mp 2')
    assert predict(*build())[0].shape == (4, 10)


@pytest.mark.parametrize('name', ['gelu', 'swish', 'lrelu_03'])
def test_activations_of_graphgps(configure: Callable[..., None], name: str) -> None:
    configure(f'gnn.act {name} gnn.layers_pre_mp 1')
    model, batch = build()
    x = torch.linspace(-2, 2, 9)
    erf = torch.tensor([math.erf(value / math.sqrt(2)) for value in x.tolist()])
    expected = {'gelu': x * (1 + erf) / 2, 'swish': x / (1 + (-x).exp()), 'lrelu_03': torch.where(x < 0, 0.3 * x, x)}[name]
    for layers in (model.pre_mp, model.layers):  # the MLP of GraphGym's heads has relu for any gnn.act
        acts = [module for module in layers.modules() if type(module).__module__ == 'torch.nn.modules.activation']
        assert acts
        assert all(torch.allclose(act(x), expected, atol=1e-6) for act in acts)
    assert predict(model, batch)[0].isfinite().all()
    assert name not in act_dict  # GraphGPS registers it itself


@pytest.mark.parametrize('norm', ['layer_norm True gt.batch_norm False', 'layer_norm False gt.batch_norm False'])
def test_norms(configure: Callable[..., None], norm: str) -> None:
    configure(f'gt.{norm}')
    assert predict(*build())[0].isfinite().all()


def test_graphs_without_nodes_have_a_prediction(configure: Callable[..., None]) -> None:
    configure('gnn.head san_graph')
    batch = Batch.from_data_list([Data(x=torch.ones(size, 8), y=torch.zeros(1)) for size in (2, 0, 3, 0)])
    prediction, label = find_head()(8, 3)(batch)
    assert prediction.shape == (4, 3)
    assert label.shape == (4,)
    torch.testing.assert_close(prediction[1], prediction[3])


@pytest.mark.parametrize('layer_type', ['None+Transformer', 'None+Performer', 'GCN+Transformer'])
def test_heads_that_do_not_divide_the_channels(configure: Callable[..., None], layer_type: str) -> None:
    configure(f'gt.layer_type {layer_type} gt.n_heads 3 gt.dim_hidden 8 dataset.edge_encoder False')
    with pytest.raises(ValueError, match=r'^gt.n_heads: got 3 for 8 channels; accepted: divisors'):
        TopoGPSModel(8, 3)


def test_heads_of_a_graphgym_layer(configure: Callable[..., None]) -> None:
    configure(
        'model.type gnn gnn.layer_type grf_attention gnn.att_heads 3 dataset.node_encoder False dataset.edge_encoder False'
    )
    with pytest.raises(ValueError, match=r'^gnn.att_heads: got 3 for 8 channels'):
        network_dict['gnn'](dim_in=8, dim_out=10)


@pytest.mark.parametrize('layer_type', ['GCN+None', 'None+Adjacency', 'GCN+Adjacency'])
def test_edge_weights_count(configure: Callable[..., None], layer_type: str) -> None:
    configure(f'gt.layer_type {layer_type} dataset.edge_encoder False')
    batch = make_batch(dim_edge=0)
    model = TopoGPSModel(3, 10).eval()
    plain, _ = predict(model, batch)
    batch.edge_weight = torch.ones(batch.num_edges)
    torch.testing.assert_close(predict(model, batch)[0], plain)
    batch.edge_weight[: batch.num_edges // 3] = 9.0
    assert not predict(model, batch)[0].allclose(plain, atol=1e-3)


LEARNING = {
    'Adjacency',
    'AsymmetricGRF',
    'Expander',
    'GRF',
    'GRFSoftmax',
    'HeatKernel',
    'Hop',
    'Masked',
    'PowerSeries',
    'RWGNK',
    'Tree',
}
#: Words that learn edge weights with an option.
BY_OPTION = {
    'Expander': 'topomask.Expander.input_weights True',
    'Hop': 'topomask.Hop.path_weights mean',
    'RWGNK': 'topomask.RWGNK.transition weight',
}


@pytest.mark.parametrize(
    ('attention', 'local'), covering(sorted(LEARNING), ['None', 'GCN', 'GINE', 'GENConv', 'CustomGatedGCN'], strength=1)
)
def test_masks_learn_edge_weights_from_encoded_features(configure: Callable[..., None], attention: str, local: str) -> None:
    option = f'topomask.{attention}.edge_weights learned dataset.edge_encoder True topomask.transforms []'
    option += f' {BY_OPTION[attention]}' if attention in BY_OPTION else ''
    configure(f'gt.layer_type {local}+{attention} {option}')
    if attention == 'Masked':
        cfg.topomask.mask = CfgNode({'sum': ['Adjacency', {'HeatKernel': {}}]})
    batch = make_batch(dim_edge=2)
    torch.manual_seed(0)
    model = TopoGPSModel(3, 10).eval()
    cfg.topomask[attention].edge_weights = None
    torch.manual_seed(0)
    prediction, plain = predict(model, batch)[0], predict(TopoGPSModel(3, 10).eval(), batch)[0]
    assert prediction.shape == plain.shape
    for layer in model.layers:
        torch.nn.init.normal_(layer.edge_weights.lin_out.weight)
    learned, _ = predict(model, batch)
    assert not torch.allclose(learned, prediction, atol=1e-4)
    learned.square().sum().backward()
    assert all(bool(layer.edge_weights.lin_edge.weight.grad.any()) for layer in model.layers)
    assert bool(model.encoder.edge_encoder.encoder.weight.grad.any())
    assert (attention in ('HeatKernel', 'Masked')) == model.layers[0].edge_weights.symmetric


def test_heads_learn_edge_weights_of_their_own(configure: Callable[..., None]) -> None:
    option = 'topomask.PowerSeries.edge_weights learned_per_head dataset.edge_encoder True topomask.transforms []'
    configure(f'gt.layer_type None+PowerSeries gt.n_heads 2 {option}')
    batch, model = make_batch(dim_edge=2), TopoGPSModel(3, 10).eval()
    for layer in model.layers:
        torch.nn.init.normal_(layer.edge_weights.lin_out.weight)
    learned, _ = predict(model, batch)
    learned.square().sum().backward()
    assert all(layer.edge_weights.lin_out.weight.grad.any(1).tolist() == [True, True] for layer in model.layers)


def test_other_words_refuse_learned_edge_weights(configure: Callable[..., None]) -> None:
    for word in sorted(ATTENTIONS.keys() - LEARNING | BY_OPTION.keys()):
        configure(f'gt.layer_type GINE+{word} topomask.{word}.edge_weights learned')
        cfg.share.dim_edge = 2
        with pytest.raises(ValueError, match=rf'^topomask.{word}.edge_weights: got "learned" for {word}, .*Adjacency, Asym'):
            TopoGPSModel(3, 10)
    for value, encoder, message in (
        ('yes', True, r"'yes'; accepted: \"learned\", \"learned_per_head\" and null"),
        ('learned', False, '"learned" without'),
    ):
        configure(f'gt.layer_type None+Adjacency topomask.Adjacency.edge_weights {value} dataset.edge_encoder {encoder}')
        cfg.share.dim_edge = 2
        with pytest.raises(ValueError, match=rf'^topomask.Adjacency.edge_weights: got {message}'):
            TopoGPSModel(3, 10)
    configure('gt.layer_type None+Tree topomask.Tree.edge_weights learned topomask.Tree.kind distance')
    cfg.share.dim_edge = 2
    with pytest.raises(ValueError, match=r'^topomask.Tree.edge_weights: got "learned" for Tree'):
        TopoGPSModel(3, 10)


#: Words whose attention reads edge features, with the option that makes it softmax attention.
READING = {
    'BigBird': '',
    'Expander': '',
    'GRFSoftmax': '',
    'KMIP': 'topomask.KMIP.k 3',
    'Hop': 'topomask.Hop.feature_map softmax topomask.Hop.edge_weights null',
    'PowerSeries': 'topomask.PowerSeries.feature_map softmax topomask.PowerSeries.edge_weights learned',
    'Masked': 'topomask.Masked.feature_map softmax',
}


@pytest.mark.parametrize(('word', 'local'), covering(READING, ['None', 'GCN', 'GINE', 'CustomGatedGCN'], strength=1))
def test_attentions_read_encoded_edge_features(configure: Callable[..., None], word: str, local: str) -> None:
    option = f'topomask.{word}.edge_attr True dataset.edge_encoder True topomask.transforms [] {READING[word]}'
    configure(f'gt.layer_type {local}+{word} {option}')
    if word == 'Masked':
        cfg.topomask.mask = CfgNode({'sum': ['Adjacency', 'SinDegree']})
    batch, model = make_batch(dim_edge=2), TopoGPSModel(3, 10).eval()
    prediction, _ = predict(model, batch)
    for layer in model.layers:
        torch.nn.init.normal_(layer.attn.edge_terms.lin_bias.weight)
    changed, _ = predict(model, batch)
    assert not torch.allclose(changed, prediction, atol=1e-4)
    changed.square().sum().backward()
    assert all(bool(layer.attn.edge_terms.lin_bias.weight.grad.any()) for layer in model.layers)
    assert bool(model.encoder.edge_encoder.encoder.weight.grad.any())


def test_other_words_refuse_edge_features(configure: Callable[..., None]) -> None:
    for word in sorted(ATTENTIONS.keys() - {'BigBird', 'Expander', 'GRFSoftmax', 'KMIP'}):
        configure(f'gt.layer_type GINE+{word} topomask.{word}.edge_attr True')
        cfg.share.dim_edge = 2
        with pytest.raises(
            ValueError,
            match=rf'^topomask.{word}.edge_attr: got True for {word}, which .*; accepted: False; BigBird, Expander, ',
        ):
            TopoGPSModel(3, 10)
    configure('gt.layer_type None+KMIP topomask.KMIP.edge_attr True dataset.edge_encoder False')
    with pytest.raises(ValueError, match=r'^topomask.KMIP.edge_attr: got True without encoded edge features; .*LinearEdgeAttr'):
        TopoGPSModel(3, 10)


def test_layers_of_graphgym_read_edge_features(configure: Callable[..., None]) -> None:
    configure(
        'model.type gnn gnn.layer_type kmip_attention gnn.att_heads 2 topomask.KMIP.edge_attr True dataset.edge_encoder True'
    )
    batch = make_batch(dim_edge=2)
    with registered_modules():
        model = network_dict['gnn'](dim_in=3, dim_out=10)
    model(batch)[0].square().sum().backward()
    attentions = [module for module in model.modules() if isinstance(module, KMIPAttention)]
    assert len(attentions) == cfg.gnn.layers_mp
    assert all(bool(module.edge_terms.lin_bias.weight.grad.any()) for module in attentions)


def test_layers_of_graphgym_learn_edge_weights(configure: Callable[..., None]) -> None:
    configure(
        'model.type gnn gnn.layer_type powerseries_attention gnn.att_heads 2 topomask.PowerSeries.edge_weights learned '
        'dataset.edge_encoder True'
    )
    batch = make_batch(dim_edge=2)
    with registered_modules():
        model = network_dict['gnn'](dim_in=3, dim_out=10).eval()
    weights = [module for module in model.modules() if isinstance(module, EdgeWeights)]
    assert len(weights) == cfg.gnn.layers_mp
    for module in weights:
        torch.nn.init.normal_(module.lin_out.weight)
    model(batch.clone())[0].square().sum().backward()
    assert all(bool(module.lin_edge.weight.grad.any()) for module in weights)


@pytest.mark.parametrize('local', ['GAT', 'GATv2', 'GatedGCN', 'GENConv', 'PNA'])
def test_edge_features_without_an_encoder_are_not_used(configure: Callable[..., None], local: str) -> None:
    configure(f'gt.layer_type {local}+None dataset.edge_encoder False')
    batch = make_batch(dim_edge=8)
    model = TopoGPSModel(3, 10).eval()
    prediction, _ = predict(model, batch)
    del batch.edge_attr
    torch.testing.assert_close(prediction, predict(model, batch)[0])


def test_edges_as_adj_t(configure: Callable[..., None]) -> None:
    configure('gt.layer_type GCN+Adjacency dataset.edge_encoder False')
    batch = make_batch(dim_edge=0)
    model = TopoGPSModel(3, 10).eval()
    prediction, _ = predict(model, batch)
    sparse = ToSparseTensor()(batch.clone())
    assert sparse.edge_index is None
    torch.testing.assert_close(predict(model, sparse)[0], prediction)


@pytest.mark.parametrize('head', ['graph', 'san_graph'])
def test_graph_heads(configure: Callable[..., None], head: str) -> None:
    configure(f'gnn.head {head}')
    assert predict(*build())[0].shape == (4, 10)


def test_inductive_node_head(configure: Callable[..., None]) -> None:
    configure('gnn.head inductive_node dataset.task node')
    batch = make_batch()
    assert predict(TopoGPSModel(3, 10), batch)[0].shape == (batch.num_nodes, 10)


def test_type_encoders(configure: Callable[..., None]) -> None:
    configure('dataset.node_encoder_name TypeDictNode dataset.edge_encoder_name TypeDictEdge')
    batch = make_batch()
    with pytest.raises(ValueError, match=r'^dataset.node_encoder_num_types: got 0; accepted:'):
        TopoGPSModel(3, 10)
    cfg.dataset.node_encoder_num_types, cfg.dataset.edge_encoder_num_types = 3, 2
    batch.x = torch.arange(batch.num_nodes).view(-1, 1) % 3
    batch.edge_attr = torch.arange(batch.num_edges) % 2
    assert predict(TopoGPSModel(3, 10), batch)[0].shape == (4, 10)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ('gt.layer_type None+None', "gt.layer_type: got 'None\\+None'; accepted: a local layer"),
        ('gt.layer_type GRF', "gt.layer_type: got 'GRF'; accepted: '<local layer>\\+<attention>'"),
        ('gt.layer_type GINE+GRF+GRF', "gt.layer_type: got 'GINE\\+GRF\\+GRF'; accepted:"),
        ('gt.layer_type GINE+GRX', "gt.layer_type, after '\\+': got 'GRX'; accepted: .*GRF.*Performer"),
        ('gt.layer_type GINX+GRF', "gt.layer_type, before '\\+': got 'GINX'; accepted: .*GCN"),
        ('gt.dim_hidden 16', 'gt.dim_hidden, gnn.dim_inner: got 16 and 8 for 8 channels'),
        ('gt.layer_norm True', 'gt.layer_norm, gt.batch_norm: got True for both'),
        ('gt.n_heads 3 gt.layer_type GAT+None', 'gt.n_heads: got 3 for 8 channels'),
        ('gnn.head nonsense', "gnn.head: got 'nonsense'; accepted: .*graph.*san_graph"),
        ('gnn.act nonsense', "gnn.act: got 'nonsense'; accepted: .*relu"),
        ('dataset.node_encoder_name nonsense', "dataset.node_encoder_name: got 'nonsense'; accepted: .*LinearNode"),
        ('dataset.edge_encoder_name nonsense', "dataset.edge_encoder_name: got 'nonsense'; accepted: .*LinearEdge"),
    ],
)
def test_bad_configuration(configure: Callable[..., None], options: str, message: str) -> None:
    configure(options)
    cfg.share.dim_in, cfg.share.dim_edge = 3, 2
    with pytest.raises(ValueError, match=message):
        TopoGPSModel(3, 10)


def test_edge_encoder_without_edge_features(configure: Callable[..., None]) -> None:
    configure()
    cfg.share.dim_in, cfg.share.dim_edge = 3, 0
    with pytest.raises(ValueError, match=r"the dataset 'digits' has no edge features"):
        TopoGPSModel(3, 10)


@pytest.mark.parametrize('name', ['grf_attention', 'linear_attention', 'adjacency_attention'])
def test_plain_graphgym_layer(configure: Callable[..., None], name: str) -> None:
    configure(f'dataset.node_encoder False gnn.layer_type {name} gnn.layers_mp 2 gnn.att_heads 2 dataset.edge_encoder False')
    batch = make_batch()
    model = network_dict['gnn'](dim_in=3, dim_out=10)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters() if 'attn' in name}
    assert before
    prediction, label = predict(model, batch)
    assert prediction.shape == (4, 10)
    compute_loss(prediction, label)[0].backward()
    create_optimizer(model.parameters()).step()
    assert any(not torch.equal(before[name], model.get_parameter(name)) for name in before)


def test_plain_graphgym_layers_walk_once_per_forward(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    configure(
        'dataset.node_encoder False gnn.layer_type grf_attention gnn.layers_mp 3 gnn.att_heads 2 dataset.edge_encoder False'
    )
    cfg.topomask.GRF.resample = 'forward'
    walked = []

    def walk(*args: Any) -> Any:
        walked.append(args)
        return sample_ensembles(*args)

    monkeypatch.setattr('pyg_topomask.walks.pairs.sample_ensembles', walk)
    batch = make_batch()
    model = network_dict['gnn'](dim_in=3, dim_out=10)
    x = batch.x
    for forward in range(2):
        batch.x = x
        model(batch)
        assert len(walked) == forward + 1
