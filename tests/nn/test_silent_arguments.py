"""Arguments that PyG users give, and that would have no effect, or another one, without a word."""

import warnings
from collections.abc import Callable
from functools import reduce

import networkx as nx
import pytest
import torch
from graphs import small_graph
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GCNConv, GPSConv
from torch_geometric.utils import from_networkx

from pyg_topomask import Graph, masks, nn
from pyg_topomask.errors import ArgumentError
from pyg_topomask.transforms import AddForest, AddGraphRandomFeatures, AddRandomWalkKernel

X = torch.randn(6, 16, generator=torch.Generator().manual_seed(0))
EDGES = small_graph().edge_index
WEIGHT = torch.rand(EDGES.size(1), generator=torch.Generator().manual_seed(1)) + 0.5


def messages(call: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter('always')
        call()
    assert {warning.filename for warning in record} <= {__file__}
    return [str(warning.message) for warning in record]


# Edge weights ------------------------------------------------------------------------------------------------------------


def weighted_networkx() -> Data:
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, 0.5), (1, 2, 2.0), (2, 3, 1.5), (3, 0, 3.0), (1, 4, 0.25), (4, 5, 1.0)])
    return from_networkx(graph)


@pytest.mark.parametrize('name', ['weight', 'edge_attr'])
@pytest.mark.filterwarnings('ignore:data. got edge_attr')
def test_weights_of_networkx_and_of_one_number_for_each_edge_are_read(name: str) -> None:
    data = weighted_networkx()
    weight = data.weight
    assert 'edge_weight' not in data
    del data.weight
    named = Data(edge_index=data.edge_index, edge_weight=weight, num_nodes=6)
    data[name] = weight
    assert torch.equal(Graph.from_data(data).edge_weight, weight)
    for mask in (masks.PowerSeriesMask(), masks.GRFMask(), masks.HeatKernelMask(lam=0.5)):
        assert torch.equal(mask(data).to_dense(), mask(named).to_dense())
        assert not torch.equal(mask(data).to_dense(), mask(small_graph()).to_dense())
    copies = [Data(edge_index=data.edge_index, num_nodes=6, **{name: weight}) for _ in range(2)]
    stored, expected = AddGraphRandomFeatures()(copies), AddGraphRandomFeatures()(named.clone())
    assert all(torch.equal(each.grf_load, expected.grf_load) for each in stored)
    masks.GRFMask()(Batch.from_data_list(stored))  # whose weights are those of the stored walks
    tree = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3, **{name: torch.tensor([2.0, 3.0])})
    assert torch.equal(masks.TreeMask()(AddForest()(tree)).to_dense(), masks.TreeMask()(tree).to_dense())
    assert masks.TreeMask().a.exp().pow(5).isclose(masks.TreeMask()(tree).to_dense()[0, 0, 2])


def test_features_of_edges_are_no_weights() -> None:
    features = (torch.rand(WEIGHT.numel(), 1), torch.ones(WEIGHT.numel(), dtype=torch.long), torch.rand(3))
    for edge_attr in features:  # of a linear encoder, of a table of bonds, and of something else
        assert Graph.from_data(Data(edge_index=EDGES, edge_attr=edge_attr, num_nodes=6)).edge_weight is None
    both = Data(edge_index=EDGES, edge_weight=WEIGHT, weight=2 * WEIGHT, edge_attr=3 * WEIGHT, num_nodes=6)
    assert Graph.from_data(both).edge_weight is WEIGHT
    message = messages(lambda: Graph.from_data(Data(edge_index=EDGES, edge_attr=WEIGHT, num_nodes=6)))
    assert message[0].startswith('data: got edge_attr of one number for each edge, which is used as edge weights')
    ring = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), weight=torch.tensor([1, 2, 3]), num_nodes=3)
    assert 'as many edges as nodes' in messages(lambda: Graph.from_data(ring))[0]


def test_a_shared_graph_is_new_if_its_weights_are() -> None:
    data = weighted_networkx()
    first = Graph.shared(data)
    assert Graph.shared(data) is first
    data.weight = data.weight + 1
    assert torch.equal(Graph.shared(data).edge_weight, data.weight)


UNWEIGHTED = {
    'hop': lambda: nn.HopAttention(16, 4),
    'linear': lambda: nn.MaskedLinearAttention(16, 4),
    'sin_degree': lambda: nn.SinDegreeAttention(16, 4),
    'rwgnk': lambda: nn.RWGNKAttention(16, 4),
    'softmax': lambda: nn.MaskedSoftmaxAttention(16, 4, masks.HopMask()),
    'kmip': lambda: nn.KMIPAttention(16, 4),
}


@pytest.mark.parametrize('name', UNWEIGHTED)
def test_weights_without_effect_warn_once(name: str) -> None:
    layer = UNWEIGHTED[name]().eval()
    outputs: list[Tensor] = []
    found = messages(lambda: outputs.extend(layer(X, EDGES, weight) for weight in (None, torch.ones_like(WEIGHT))))
    assert found == []
    found = messages(lambda: outputs.extend(layer(X, EDGES, WEIGHT) for _ in range(2)))
    assert len(found) == 1
    assert found[0].startswith(f'edge_weight: got weights, which have no effect in {type(layer).__name__}')
    assert all(torch.allclose(outputs[0], out) for out in outputs)
    other, data = UNWEIGHTED[name](), weighted_networkx()
    assert len(messages(lambda: other(X, graph=data))) == 1


def test_weights_with_effect_do_not_warn() -> None:
    for layer in (nn.GRFAttention(16, 4), nn.RWGNKAttention(16, 4, transition='weight'), nn.AsymmetricGRFAttention(16, 4)):
        assert messages(lambda layer=layer: layer(X, EDGES, WEIGHT)) == []


@pytest.mark.parametrize(
    ('conv', 'attn', 'warned'),
    [(GATConv, nn.HopAttention, 1), (GCNConv, nn.HopAttention, 0), (GATConv, nn.GRFAttention, 0), (None, nn.HopAttention, 1)],
)
def test_a_gps_layer_warns_of_weights_that_no_part_reads(conv: type | None, attn: type, warned: int) -> None:
    layer = nn.TopoGPSConv(16, None if conv is None else conv(16, 16), attn=attn(16, heads=4))
    found = messages(lambda: [layer(X, EDGES, edge_weight=WEIGHT) for _ in range(2)])
    assert len(found) == warned
    assert all('have no effect in HopAttention' in message for message in found)


def test_a_gps_layer_warns_if_only_its_attention_gets_the_weights() -> None:
    layer, graph = nn.TopoGPSConv(16, GCNConv(16, 16), attn=nn.GRFAttention(16, 4)), Graph(EDGES, 6, WEIGHT)
    assert messages(lambda: layer(X, EDGES, graph=graph, edge_weight=WEIGHT)) == []
    found = messages(lambda: [layer(X, EDGES, graph=graph) for _ in range(2)])
    assert found == ['edge_weight: got none for GCNConv, and weights in graph. Give edge_weight=graph.edge_weight.']


@pytest.mark.parametrize(
    'layer',
    [
        nn.GRFAttention(16, 4, importance=False, transition='weight'),
        nn.RWGNKAttention(16, 4, transition='weight', dynamic=True),
    ],
)
def test_weights_that_get_no_gradient_warn_once(layer: torch.nn.Module) -> None:
    learned = WEIGHT.clone().requires_grad_()
    found = messages(lambda: [layer(X, EDGES, learned) for _ in range(2)])
    assert len(found) == 1
    assert found[0].startswith('edge_weight: got weights that require a gradient, which')
    exact = nn.MaskedLinearAttention(16, 4, masks.PowerSeriesMask())
    assert messages(lambda: exact(X, EDGES, learned).square().sum().backward()) == []
    assert bool(learned.grad.any())


def test_data_without_edges_are_no_silent_graph() -> None:
    found = messages(lambda: nn.HopAttention(16, 4)(X, graph=Data(x=X)))
    assert found == ['graph: got data without edge_index for HopAttention, in which every node is alone then.']
    assert messages(lambda: nn.HopAttention(16, 4)(X, graph=Data(x=X, edge_index=EDGES[:, :0]))) == []
    assert messages(lambda: nn.KMIPAttention(16, 4)(X, graph=Data(x=X))) == []


def test_output_channels_are_no_heads() -> None:
    found = messages(lambda: nn.HopAttention(16, 16))
    assert len(found) == 1
    assert found[0].startswith('heads: got 16 for 16 channels, one for each head; the second argument is the number of heads')
    assert messages(lambda: nn.HopAttention(16, 4, out_channels=32)) == []
    with pytest.raises(ArgumentError, match=r'^heads: got 32 for 16 channels; .* out_channels=32 is the size of the output'):
        nn.HopAttention(16, 32)


# Attention that needs no edges -------------------------------------------------------------------------------------------

WITHOUT_EDGES = {
    'kmip': lambda: nn.KMIPAttention(16, 4, k=2),
    'kmip_expander': lambda: nn.KMIPAttention(16, 4, k=2, extra_edges='expander'),
    'linear': lambda: nn.MaskedLinearAttention(16, 4),
    'toeplitz': lambda: nn.ToeplitzAttention(16, 4),
    'causal': lambda: nn.MaskedLinearAttention(16, 4, masks.CausalMask()),
    'sum': lambda: nn.MaskedLinearAttention(16, 4, masks.CausalMask() + masks.PackingMask()),
    'expander': lambda: nn.MaskedSoftmaxAttention(16, 4, masks.ExpanderMask(input_edges=False)),
    'bigbird': lambda: nn.MaskedSoftmaxAttention(16, 4, masks.BigBirdMask()),
}


@pytest.mark.parametrize('name', WITHOUT_EDGES)
def test_attention_without_use_for_edges_needs_none(name: str) -> None:
    layer, empty, batch = WITHOUT_EDGES[name]().eval(), EDGES[:, :0], torch.tensor([0, 0, 1, 1, 1, 1])
    assert torch.equal(layer(X), layer(X, empty))
    assert torch.equal(layer(X, batch=batch), layer(X, empty, batch=batch))
    with torch.inference_mode():
        layer(X)


@pytest.mark.parametrize('layer', [nn.HopAttention(16, 4), nn.KMIPAttention(16, 4, extra_edges='input')])
def test_attention_along_edges_needs_them(layer: torch.nn.Module) -> None:
    with pytest.raises(ArgumentError, match=r'^edge_index: got None; accepted: the edges, \[2, E\], or data as graph='):
        layer(X)


# No attention ------------------------------------------------------------------------------------------------------------


def test_no_attention_is_not_softmax_attention() -> None:
    with pytest.raises(
        ArgumentError, match=r"^attn: got None with attn_type='multihead'; .* no global attention is attn_type=No"
    ):
        nn.TopoGPSConv(16, GCNConv(16, 16), attn=None)
    assert nn.TopoGPSConv(16, GCNConv(16, 16), attn=None, attn_type=None).attn is None
    for attn_type in ('multihead', 'performer'):
        assert nn.TopoGPSConv(16, None, attn_type=attn_type, attn='pyg').attn_type == attn_type
    assert nn.TopoGPSConv(16, None, attn_type='performer', attn=None).attn_type == 'performer'
    with pytest.raises(ArgumentError, match=r"^attn: got 'GRF'; accepted: a module, .* and \"pyg\""):
        nn.TopoGPSConv(16, None, attn='GRF')


# Stored walks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('transform', 'layer'),
    [(AddGraphRandomFeatures, nn.GRFAttention), (AddRandomWalkKernel, nn.RWGNKAttention)],
)
def test_a_layer_that_does_not_see_stored_walks_says_so(transform: type, layer: type) -> None:
    data = transform(num_walks=8)(small_graph())
    other = Data(edge_index=data.edge_index.clone(), num_nodes=6)
    attention = layer(16, heads=4)
    assert messages(lambda: attention(X, other.edge_index)) == []
    assert messages(lambda: attention(X, data.edge_index, graph=Graph.from_data(data))) == []
    assert messages(lambda: nn.HopAttention(16, 4)(X, data.edge_index)) == []
    found = messages(lambda: layer(16, heads=4)(X, data.edge_index))
    assert len(found) == 1
    assert found[0].startswith(f'graph: got none, and {transform.__name__} has stored walks on the data of edge_index')


# Attention as the local layer of PyG's GPS layer -------------------------------------------------------------------------

BEYOND_EDGES = {
    'linear': lambda: nn.MaskedLinearAttention(16, 4),
    'sin_degree': lambda: nn.SinDegreeAttention(16, 4),
    'toeplitz': lambda: nn.ToeplitzAttention(16, 4),
    'kmip': lambda: nn.KMIPAttention(16, 4),
    'expander': lambda: nn.MaskedSoftmaxAttention(16, 4, masks.ExpanderMask()),
    'bigbird': lambda: nn.MaskedSoftmaxAttention(16, 4, masks.BigBirdMask()),
}


class Around(torch.nn.Module):
    """A local layer of the user, which calls an attention."""

    def __init__(self, attention: torch.nn.Module) -> None:
        super().__init__()
        self.attention = torch.nn.Sequential(torch.nn.Identity(), attention)

    def forward(self, x: Tensor, edge_index: Tensor, **kwargs: object) -> Tensor:
        return self.attention[1](x, edge_index, **kwargs)

    def reset_parameters(self) -> None:
        self.attention[1].reset_parameters()


@pytest.mark.parametrize('name', BEYOND_EDGES)
def test_attention_in_gps_layers_of_pyg_does_not_mix_graphs(name: str) -> None:
    data = Batch.from_data_list([small_graph(), small_graph()])
    x = torch.randn(12, 16)
    for around in (lambda layer: layer, Around, lambda layer: reduce(lambda inner, _: Around(inner), range(6), layer)):
        gps = GPSConv(16, around(BEYOND_EDGES[name]()), heads=4, norm=None).eval()
        with pytest.raises(ArgumentError, match=r'^batch: got None for several graphs: GPSConv of PyG gives its conv no batch'):
            gps(x, data.edge_index, data.batch)
        out = gps(x, data.edge_index, data.batch, graph=Graph.from_data(data))
        alone = [gps(part, EDGES, graph=Graph(EDGES, 6)) for part in x.split(6)]
        torch.testing.assert_close(out, torch.cat(alone), rtol=1e-4, atol=1e-4)
        assert gps(x[:6], EDGES, torch.zeros(6, dtype=torch.long)).shape == (6, 16)  # one graph
        assert gps(x[:6], EDGES).shape == (6, 16)


def test_attention_along_edges_in_gps_layers_of_pyg_keeps_graphs_apart() -> None:
    data, x = Batch.from_data_list([small_graph(), small_graph()]), torch.randn(12, 16)
    gps = GPSConv(16, nn.HopAttention(16, 4), heads=4, norm=None).eval()
    alone = [gps(part, EDGES) for part in x.split(6)]
    torch.testing.assert_close(gps(x, data.edge_index, data.batch), torch.cat(alone), rtol=1e-4, atol=1e-4)
