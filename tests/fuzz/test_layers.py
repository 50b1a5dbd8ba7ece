"""Every layer and model on graphs of every kind."""

import copy
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from fuzz.strategies import (
    CHANNELS,
    DTYPES,
    NORMALIZATIONS,
    SAMPLERS,
    arguments,
    assert_finite,
    assert_same,
    assert_unchanged,
    attempt,
    attributed,
    batches,
    edges,
    fuzz,
    graphs,
    snapshot,
)
from grids import covering
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import scatter

from pyg_topomask import Graph, masks, nn
from pyg_topomask.feature_maps.names import FEATURE_MAPS
from pyg_topomask.nn import models

pytestmark = pytest.mark.filterwarnings('ignore:(The spectral radius|max_walk_length is|order is)')

HEADS = st.sampled_from([1, 2])
MAPS = st.sampled_from(sorted(FEATURE_MAPS))
WALKS: dict[str, st.SearchStrategy[Any]] = {
    'channels': st.just(CHANNELS),
    'heads': HEADS,
    'num_walks': st.sampled_from([2, 4]),
    'p_halt': st.sampled_from([0.0, 0.5]),
    'max_walk_length': st.integers(0, 4),
    'sampler': SAMPLERS,
}


class SelfAttention(nn.ExplicitAttention):
    """A user's own attention, of every node to itself."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, generator: torch.Generator | None) -> Tensor:
        return v

    def coefficients(
        self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        return torch.arange(graph.num_nodes).expand(2, -1), v.new_ones(graph.num_nodes, self.heads)


def attend(layer: torch.nn.Module, data: Data) -> Tensor:
    return layer(data.x, data.edge_index, data.get('edge_weight'), data.get('batch'))


def attend_with_weights(layer: torch.nn.Module, data: Data) -> Tensor:
    ends, given = data.edge_index.long(), {}
    if layer.edge_terms is not None:
        given['edge_attr'] = (data.x[ends[0]] - data.x[ends[1]]).clamp(-1.0, 1.0)
    arguments = data.x, data.edge_index, data.get('edge_weight'), data.get('batch')
    out, (_, alpha) = layer(*arguments, return_attention_weights=True, **given)
    assert alpha.isfinite().all() or not data.x.isfinite().all()
    return out


def attend_to_data(layer: torch.nn.Module, data: Data) -> Tensor:
    return layer(data.x, data.edge_index, graph=data)


def convolve(layer: torch.nn.Module, data: Data) -> Tensor:
    ends = data.edge_index.long()
    positions = data.x if layer.gate is not None else None
    out, edge = layer(data.x, data.edge_index, data.x[ends[0]] + data.x[ends[1]], positions)
    assert edge.isfinite().all() or not data.x.isfinite().all()
    return out


def weigh(layer: torch.nn.Module, data: Data) -> Tensor:
    """The sum of the weights of the edges to each node."""
    ends = data.edge_index.long()
    weight = layer(data.x[ends[0]] - data.x[ends[1]], data.edge_index, data.x).to(data.x.dtype)
    return data.x.new_zeros(data.num_nodes, CHANNELS).index_add(0, ends[1], weight.unsqueeze(1).expand(-1, CHANNELS))


def encode(layer: torch.nn.Module, data: Data) -> Tensor:
    """The mean of the features of the pairs of each node."""
    pairs, features = layer(data)
    return data.x[:, :1] + scatter(features.to(data.x.dtype), pairs[1], dim_size=data.num_nodes, reduce='mean')


def gps(layer: torch.nn.Module, data: Data) -> Tensor:
    # PyG's own convolutions take int64 alone.
    return layer(data.x, data.edge_index.long(), data.get('batch'))


def move(layer: torch.nn.Module, data: Data) -> Tensor:
    return layer(data.x, data.pos, data.get('batch'))


def classify(layer: torch.nn.Module, data: Data) -> Tensor:
    """An image, or a video of two frames, for each node of the graph."""
    shape = (2, 1, 4, 4) if isinstance(layer, models.ViViT) else (1, 4, 4)
    return layer(data.x[:, :1].reshape(-1, *(1 for _ in shape)).expand(-1, *shape))


def recommend(layer: torch.nn.Module, data: Data) -> Tensor:
    """On a ring of 4 nodes, in which users and items alternate."""
    return torch.cat(layer(Data(edge_index=torch.tensor([0, 2, 1, 3])[data.edge_index], num_nodes=4)))


class Case(NamedTuple):
    make: st.SearchStrategy[torch.nn.Module]
    call: Callable[[torch.nn.Module, Data], Tensor] = attend
    base: dict[str, Any] = {'channels': CHANNELS, 'out_channels': CHANNELS}  # what its constructor needs
    size: int = CHANNELS
    per_node: bool = True


IMAGES = {'image_size': 4, 'patch_size': 2, 'in_channels': 1, 'num_classes': CHANNELS, 'channels': 4, 'depth': 1, 'heads': 2}
IMAGES |= {'mlp_channels': 4}
VIDEOS = IMAGES | {'num_frames': 2, 'tubelet_frames': 1, 'temporal_depth': 1}
LAYERS = {
    'AsymmetricGRFAttention': Case(
        st.builds(nn.AsymmetricGRFAttention, **WALKS, feature_map=MAPS, normalization=NORMALIZATIONS), attend_with_weights
    ),
    'ExplicitAttention': Case(
        st.builds(SelfAttention, st.just(CHANNELS), HEADS), attend_with_weights, {'channels': 4, 'heads': 2, 'out_channels': 4}
    ),
    'GRFAttention': Case(
        st.builds(
            nn.GRFAttention,
            **WALKS,
            feature_map=MAPS,
            normalization=NORMALIZATIONS,
            asymmetric=st.sampled_from([False, True, 'pairs']),
            route=st.sampled_from(['auto', 'features', 'edges']),
        )
    ),
    'GRFSoftmaxAttention': Case(
        st.builds(nn.GRFSoftmaxAttention, **WALKS, asymmetric=st.booleans(), normalization=NORMALIZATIONS)
    ),
    'EdgeWeights': Case(
        st.builds(nn.EdgeWeights, st.just(CHANNELS), st.sampled_from([None, CHANNELS]), symmetric=st.booleans()),
        weigh,
        {'edge_dim': CHANNELS},
    ),
    'MaskEncoding': Case(
        st.builds(nn.MaskEncoding, st.builds(masks.HopMask, HEADS), st.just(CHANNELS)),
        encode,
        {'mask': masks.HopMask(2), 'dim': CHANNELS},
    ),
    'GatedGCNConv': Case(
        st.builds(nn.GatedGCNConv, st.just(CHANNELS), positional=st.booleans()), convolve, {'channels': CHANNELS}
    ),
    'KMIPAttention': Case(
        st.builds(
            nn.KMIPAttention,
            st.just(CHANNELS),
            HEADS,
            k=st.sampled_from([1, 3, 10**6]),
            edge_dim=st.sampled_from([None, CHANNELS]),
            similarity=st.sampled_from(['dot', 'cosine', 'distance']),
            backend=st.sampled_from(['auto', 'dense', 'chunked', 'tree', 'faiss']),
            extra_edges=st.sampled_from([None, 'input', 'expander', 'both']),
            deterministic=st.booleans(),
        ),
        attend_with_weights,
    ),
    'MaskedLinearAttention': Case(
        st.builds(
            nn.MaskedLinearAttention,
            st.just(CHANNELS),
            st.just(2),
            mask=st.one_of(
                st.none(),
                st.builds(masks.AdjacencyMask),
                st.builds(masks.CausalMask),
                st.builds(masks.PowerSeriesMask, normalization=st.sampled_from(['sym', 'rw'])),
                st.builds(masks.ToeplitzMask, shape_dims=st.just(1)),
                st.builds(masks.PaddingMask),
                st.builds(masks.LowRankMask),
            ),
            feature_map=MAPS,
        ),
        attend_to_data,
    ),
    'MaskedSoftmaxAttention': Case(
        st.builds(
            nn.MaskedSoftmaxAttention,
            st.just(CHANNELS),
            HEADS,
            mask=st.one_of(st.builds(masks.AdjacencyMask), st.builds(masks.ExpanderMask)),
        ),
        attend_with_weights,
        {'channels': CHANNELS, 'out_channels': CHANNELS, 'heads': 2, 'mask': masks.ExpanderMask()},
    ),
    'HopAttention': Case(st.builds(nn.HopAttention, st.just(CHANNELS), HEADS, max_hops=st.integers(0, 3), feature_map=MAPS)),
    'RWGNKAttention': Case(st.builds(nn.RWGNKAttention, **WALKS, feature_map=MAPS)),
    'SinDegreeAttention': Case(
        st.builds(nn.SinDegreeAttention, st.just(CHANNELS), HEADS, max_degree=st.sampled_from([1, 512]), feature_map=MAPS)
    ),
    'ToeplitzAttention': Case(
        st.builds(nn.ToeplitzAttention, st.just(CHANNELS), HEADS, window=st.integers(0, 3), feature_map=MAPS)
    ),
    'TopoGPSConv': Case(
        st.builds(
            # No norm: that of a batch refuses to train with a single node.
            lambda attn, conv, attn_type: nn.TopoGPSConv(CHANNELS, conv, norm=None, attn_type=attn_type, attn=attn),
            st.one_of(
                st.just('pyg'), st.builds(nn.GRFAttention, st.just(CHANNELS)), st.builds(nn.KMIPAttention, st.just(CHANNELS))
            ),
            st.one_of(st.none(), st.builds(GCNConv, st.just(CHANNELS), st.just(CHANNELS))),
            st.sampled_from([None, 'multihead']),
        ),
        gps,
        {'channels': CHANNELS, 'conv': None},
    ),
    'GKAT': Case(
        st.builds(
            models.GKAT,
            st.just(CHANNELS),
            st.just(3),
            st.just(CHANNELS),
            st.just((2, 1)),
            readout=st.sampled_from([None, 'sum', 'mean', 'max', 'mf', 'dm']),
            num_walks=st.sampled_from([None, 2]),
            explicit=st.booleans(),
        ),
        attend_to_data,  # a batch vector alone tells nothing of graphs without nodes at the end
        {'in_channels': CHANNELS, 'hidden_channels': 3, 'out_channels': CHANNELS},
        per_node=False,
    ),
    'Interlacer': Case(
        st.builds(
            models.Interlacer,
            st.just(CHANNELS),
            st.just(4),
            local=st.sampled_from(['grf', None]),
            num_neighbors=st.sampled_from([1, 3, 50]),
            num_walks=st.just(4),
        )
        | st.builds(
            models.Interlacer,
            st.just(CHANNELS),
            st.just(4),
            local=st.just('message_passing'),
            num_neighbors=st.sampled_from([1, 3, 50]),
            num_anchors=st.sampled_from([None, 1, 2, 50]),
        ),
        move,
        {'in_channels': CHANNELS, 'channels': 4},
        size=3,
    ),
    'MGFormer': Case(st.nothing(), recommend, {'num_users': 2, 'num_items': 2, 'svd_dim': 0}, size=64),
    'TopologicalViT': Case(
        st.builds(
            lambda **settings: models.TopologicalViT(**IMAGES, **settings),
            attention=st.sampled_from(['linear', 'softmax']),
            feature_map=MAPS,
            mask=st.sampled_from([None, lambda layer: masks.GRFMask(2, seed=layer, positive=True)]),
            dense_limit=st.sampled_from([0, 256]),
        ),
        classify,
        IMAGES,
    ),
    'ViViT': Case(
        st.builds(
            lambda **settings: models.ViViT(**VIDEOS, **settings),
            attention=st.sampled_from(['linear', 'softmax']),
            mask=st.sampled_from([None, lambda layer: masks.GRFMask(2, seed=layer, positive=True)]),
        ),
        classify,
        VIDEOS,
    ),
}
NAMES = {*nn.__all__, *models.__all__} - {'attention'}  # which makes the others
KINDS_OF = {name: getattr(nn, name, None) or getattr(models, name) for name in NAMES}
KINDS_OF['ExplicitAttention'] = SelfAttention
DRAWN = sorted(set(LAYERS) - {'MGFormer'})  # which has embeddings for so many nodes
# Layers that read the arguments edge_index, edge_weight and batch, each checked alike.
CHECKED = sorted(
    name for name, kind in KINDS_OF.items() if issubclass(kind, nn.ExplicitAttention | nn.MaskedLinearAttention | models.GKAT)
)


def test_every_public_name_is_fuzzed() -> None:
    assert set(LAYERS) == NAMES


def shape(case: Case, layer: torch.nn.Module, data: Data) -> tuple[int, int]:
    pooled = not case.per_node and layer.readout is not None
    return (data.num_graphs if 'batch' in data else 1) if pooled else data.num_nodes, case.size


@pytest.mark.parametrize('name', DRAWN)
@fuzz(5)
@given(st.data())
def test_outputs_are_finite_and_repeatable_and_overwrite_nothing(name: str, data: st.DataObject) -> None:
    case, dtype = LAYERS[name], data.draw(st.sampled_from(DTYPES))
    graph = data.draw(st.one_of(graphs(dtype=dtype), batches(graphs(dtype=dtype))))
    layer = data.draw(case.make).to(dtype).train(data.draw(st.booleans()))
    graph.x = (graph.x * data.draw(st.sampled_from([0.0, 1.0, 30.0]))).requires_grad_()
    before, again = snapshot(graph), copy.deepcopy(layer)
    torch.manual_seed(1)
    out = case.call(layer, graph)
    torch.manual_seed(1)
    assert torch.equal(out, case.call(again, graph))
    assert out.shape == shape(case, layer, graph)
    assert out.dtype == dtype
    assert_unchanged(graph, before)
    assert_finite(out, graph.x, *layer.parameters())
    with torch.no_grad():
        case.call(layer, graph)
    assert_unchanged(graph, before)


@pytest.mark.parametrize('name', DRAWN)
@fuzz(3)
@given(st.data())
def test_outputs_of_a_batch_are_those_of_its_graphs(name: str, data: st.DataObject) -> None:
    case = LAYERS[name]
    batch = data.draw(batches(graphs(dtype=torch.float64)))
    layer = data.draw(case.make).double().eval()
    expected = [case.call(layer, graph) for graph in batch.to_data_list()]
    assert_same(case.call(layer, batch), torch.cat(expected))


@pytest.mark.parametrize(('name', 'value'), covering(DRAWN, [float('nan'), float('inf'), -float('inf')]))
def test_what_is_not_finite_is_refused_or_stays_in_its_graph(name: str, value: float) -> None:
    case = LAYERS[name]

    @fuzz(2)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        batch = data.draw(batches())
        layer = data.draw(case.make).eval()
        # What forms one matrix of all graphs, to compare with, multiplies NaN by zero.
        assume(batch.num_nodes > 0 and not any(type(module).__name__ == '_ExplicitAttention' for module in layer.modules()))
        bad = data.draw(st.integers(0, batch.num_nodes - 1))
        unaffected = torch.ones(batch.num_graphs, dtype=torch.bool)
        unaffected[batch.batch[bad]] = False
        expected = case.call(layer, batch)
        if case.per_node or layer.readout is None:
            unaffected = unaffected[batch.batch]
        batch.x[bad, 0] = value
        out = attempt(lambda: case.call(layer, batch), ['x', 'q', 'k', 'edge_attr'])
        if out is not None:
            assert_same(out[unaffected], expected[unaffected])

    check()


WRONG: list[tuple[str, Callable[[Data], Tensor]]] = [
    ('x', lambda data: data.x[:, 1:]),
    ('x', lambda data: data.x[0]),
    ('x', lambda data: data.x.unsqueeze(0)),
    ('x', lambda data: data.x.long()),
    ('x', lambda data: data.x.double()),
    ('edge_index', lambda data: data.edge_index + 3),
    ('edge_index', lambda data: data.edge_index - 1),
    ('edge_index', lambda data: data.edge_index.float()),
    ('edge_index', lambda data: data.edge_index.t()),
    ('edge_index', lambda data: data.edge_index[0]),
    ('edge_weight', lambda data: torch.ones(1)),
    ('edge_weight', lambda data: torch.full((8,), float('nan'))),
    ('edge_weight', lambda data: torch.ones(8, 1)),
    ('edge_weight', lambda data: torch.ones(8, dtype=torch.bool)),
    ('batch', lambda data: torch.tensor([0, 1, 0, 1])),
    ('batch', lambda data: torch.tensor([-1, 0, 0, 0])),
    ('batch', lambda data: torch.zeros(3, dtype=torch.long)),
    ('batch', lambda data: torch.zeros(4)),
]


@pytest.mark.parametrize('name', CHECKED)
def test_wrong_inputs_are_named(name: str) -> None:
    layer = KINDS_OF[name](**LAYERS[name].base)
    for key, wrong in WRONG:
        graph = attributed(edges('ring', 4, 0), 4, 0)
        graph[key] = wrong(graph)
        with pytest.raises(ValueError, match=rf'^{key}: got '):
            attend(layer, graph)


@pytest.mark.parametrize(
    'name', sorted(set(LAYERS) - {'EdgeWeights', 'ExplicitAttention', 'Interlacer'})
)  # the first and the last begin with zeros
def test_saved_numbers_give_the_same_outputs_and_a_reset_gives_those_of_its_seed(name: str) -> None:
    case, graph = LAYERS[name], attributed(edges('ring', 4, 0), 4, 0)
    first, second = (KINDS_OF[name](**case.base).eval() for _ in range(2))
    second.load_state_dict(first.state_dict())
    expected = case.call(first, graph)
    assert torch.equal(case.call(second, graph), expected)
    assert torch.equal(case.call(pickle.loads(pickle.dumps(first)), graph), expected)
    with torch.no_grad():
        # A reset leaves nothing of what was learned. That of PyG's 2.8.1 layer leaves the last matrix of torch's attention.
        for number in (*second.parameters(), *second.buffers()):
            number.add_(1)
    for layer in (first, second):
        torch.manual_seed(5)
        layer.reset_parameters()
    out = case.call(first, graph)
    assert torch.equal(case.call(second, graph), out)
    assert not torch.equal(out, expected) or not list(first.parameters())


# The constructor of TopoGPSConv is PyG's, with PyG's messages.
@pytest.mark.parametrize('name', sorted(set(LAYERS) - {'TopoGPSConv'}))
@fuzz(12)
@given(st.data())
def test_arguments_are_refused_by_name_or_do(name: str, data: st.DataObject) -> None:
    kind, case = KINDS_OF[name], LAYERS[name]
    given_arguments = data.draw(arguments(kind, case.base))
    names = [*given_arguments, 'x', 'edge_attr', 'pos', 'images', 'videos', 'graph', 'grid_shape', 'Could not resolve']
    layer = attempt(lambda: kind(**given_arguments), names)
    graph = attributed(edges('ring', 4, 0), 4, 0)
    out = None if layer is None else attempt(lambda: case.call(layer, graph), names)
    if out is not None:
        assert_finite(out, *layer.parameters())
