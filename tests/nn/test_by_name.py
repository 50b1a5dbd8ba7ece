"""Attention layers by their words: the layer with the mask of that name, and errors."""

from typing import Any

import pytest
import torch
from graphs import small_graph
from torch.nn import Module
from torch_geometric.data import Data

from pyg_topomask import Graph, masks, nn
from pyg_topomask.graphgym.names.attentions import ATTENTIONS
from pyg_topomask.graphgym.names.masks import MASKS
from pyg_topomask.nn.by_name import LAYERS
from pyg_topomask.transforms import AddForest


def linear(mask: masks.Mask) -> Module:
    return nn.MaskedLinearAttention(8, 2, mask)


MATRIX = torch.rand(2, 6, 6)
#: The options of a word that are not its defaults, and the layer written out.
WRITTEN: dict[str, tuple[dict[str, Any], Any]] = {
    'Adjacency': ({'self_loop': 2.0}, lambda: linear(masks.AdjacencyMask(2, 2.0))),
    'AsymmetricGRF': ({'num_walks': 3}, lambda: nn.AsymmetricGRFAttention(8, 2, num_walks=3)),
    'BigBird': ({'window': 2}, lambda: nn.MaskedSoftmaxAttention(8, 2, masks.BigBirdMask(window=2))),
    'Causal': ({'strict': True}, lambda: linear(masks.CausalMask(2, strict=True))),
    'Dense': ({'matrix': MATRIX}, lambda: linear(masks.DenseMask(2, MATRIX))),
    'Expander': ({'degree': 2}, lambda: nn.MaskedSoftmaxAttention(8, 2, masks.ExpanderMask(degree=2))),
    'GRF': ({'num_walks': 3}, lambda: nn.GRFAttention(8, 2, num_walks=3)),
    'GRFSoftmax': ({'num_walks': 3}, lambda: nn.GRFSoftmaxAttention(8, 2, num_walks=3)),
    'HeatKernel': ({'lam': 2.0}, lambda: linear(masks.HeatKernelMask(2, lam=2.0))),
    'Hop': ({'max_hops': 1}, lambda: nn.HopAttention(8, 2, max_hops=1)),
    'Hypercube': ({'dim': 3}, lambda: linear(masks.HypercubeMask(2, 3))),
    'KMIP': ({'k': 3}, lambda: nn.KMIPAttention(8, 2, 3)),
    'LearnedFeatures': ({'num_nodes': 6}, lambda: linear(masks.LearnedFeaturesMask(2, 6))),
    'Linear': ({'feature_map': 'elu'}, lambda: nn.MaskedLinearAttention(8, 2, feature_map='elu')),
    'LowRank': ({'left': MATRIX[0], 'right': MATRIX[1]}, lambda: linear(masks.LowRankMask(2, MATRIX[0], MATRIX[1]))),
    'Padding': ({'valid': 'kept'}, lambda: linear(masks.PaddingMask(2, 'kept'))),
    'PowerSeries': ({'order': 3}, lambda: linear(masks.PowerSeriesMask(2, 3))),
    'RWGNK': ({'num_walks': 3}, lambda: nn.RWGNKAttention(8, 2, num_walks=3)),
    'SinDegree': ({'max_degree': 3}, lambda: nn.SinDegreeAttention(8, 2, max_degree=3)),
    'StochasticRPE': ({'num_features': 8}, lambda: linear(masks.StochasticRPEMask(2, num_features=8))),
    'Toeplitz': ({'shape_dims': 1, 'window': 2}, lambda: nn.ToeplitzAttention(8, 2, window=2)),
    'Tree': ({'a': -2.0}, lambda: linear(masks.TreeMask(2, a=-2.0))),
}


def graph_with_everything(word: str) -> Data:
    """The small graph, or for masks of trees and of binary codes a path and a cube."""
    if word == 'Tree':
        edges = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
        return AddForest()(Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1), num_nodes=6))
    if word == 'Hypercube':
        return Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=8)
    data = small_graph()
    data.kept = torch.tensor([True, True, False, True, True, True])
    return data


@pytest.mark.parametrize('word', LAYERS)
def test_a_word_is_the_layer_written_out(word: str) -> None:
    options, written = WRITTEN[word]
    torch.manual_seed(0)
    actual = nn.attention(word, 8, heads=2, **options)
    torch.manual_seed(0)
    expected, data = written(), graph_with_everything(word)
    assert type(actual) is type(expected) or word == 'Toeplitz'
    for name, value in expected.state_dict().items():
        assert torch.equal(actual.state_dict()[name], value), name
    x, graph = torch.randn(data.num_nodes, 8), Graph.from_data(data)
    out = actual(x, graph=graph)
    assert out.shape == x.shape
    assert torch.equal(out, expected(x, graph=graph))


@pytest.mark.parametrize('word', ['PowerSeries', 'GRF', 'KMIP'])
def test_words_take_sizes_of_outputs(word: str) -> None:
    out = nn.attention(word, 8, heads=2, out_channels=4)(torch.randn(6, 8), graph=Graph.from_data(small_graph()))
    assert out.shape == (6, 4)


def test_every_mask_and_every_word_of_a_yaml_has_a_layer() -> None:
    assert {name for name in MASKS if name != 'Packing'} <= set(LAYERS)
    assert set(ATTENTIONS) - {'SparseAttention', 'Masked'} <= set(LAYERS)


@pytest.mark.parametrize(
    ('word', 'options', 'message'),
    [
        ('HeatKernal', {}, r"^word: got 'HeatKernal'; accepted: Adjacency, .*; did you mean HeatKernel\?$"),
        ('hop', {}, r'did you mean Hop\?$'),
        ('HopMask', {}, r'did you mean Hop\?$'),
        ('Hop', {'max_hop': 2}, r'^max_hop: got an option that Hop has not; accepted: .*; did you mean max_hops\?$'),
        ('PowerSeries', {'orders': 2}, r'did you mean order\?$'),
    ],
)
def test_a_wrong_word_names_the_right_one(word: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        nn.attention(word, 8, **options)
