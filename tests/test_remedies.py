"""Errors of what PyG users write by mistake: each says what to write instead, and that works."""

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.hypergraph_data import HyperGraphData
from torch_geometric.nn import GCNConv

from pyg_topomask import Graph, masks, nn
from pyg_topomask.errors import ArgumentError
from pyg_topomask.feature_maps import FavorFeatures
from pyg_topomask.graphgym.configuration import load_config
from pyg_topomask.graphgym.names.lookup import construct
from pyg_topomask.graphgym.names.masks import build_mask
from pyg_topomask.graphgym.names.networks import split_layer_type
from pyg_topomask.transforms import AddGraphRandomFeatures
from pyg_topomask.utils.configs import check_overrides, find_config

X = torch.randn(3, 16)
EDGES = torch.tensor([[0, 1, 2, 1], [1, 2, 0, 0]])
ATTENTION = nn.HopAttention(16, 4)

CASES: list[tuple[Callable[[], object], str, str]] = [
    (lambda: ATTENTION(X, EDGES.t()), 'edge_index', 'use edge_index.t()'),
    (lambda: ATTENTION(X, EDGES.float()), 'edge_index', 'use edge_index.long()'),
    (lambda: ATTENTION(X, EDGES.t().double()), 'edge_index', 'use edge_index.t().long()'),
    (lambda: ATTENTION(X, EDGES[:, :2].float()), 'edge_index', 'use edge_index.long()'),
    (lambda: ATTENTION(X, EDGES.tolist()), 'edge_index', 'use torch.tensor(edge_index)'),
    (lambda: ATTENTION(X, EDGES.numpy()), 'edge_index', 'use torch.from_numpy(edge_index)'),
    (lambda: ATTENTION(X, torch.eye(3)), 'edge_index', 'of a matrix, use torch_geometric.utils.dense_to_sparse(matrix)[0]'),
    (lambda: ATTENTION(X, EDGES + 1), 'edge_index', 'x, or num_nodes, needs a row for each of 4 nodes'),
    (lambda: ATTENTION(X, EDGES, torch.rand(4, 1)), 'edge_weight', 'use edge_weight.view(-1)'),
    (lambda: ATTENTION(X, EDGES, torch.ones(4, dtype=torch.bool)), 'edge_weight', 'use edge_weight.float()'),
    (lambda: nn.MaskedLinearAttention(16, 4, masks.HopMask), 'mask', 'make an object of the class, HopMask(...)'),
    (lambda: nn.MaskedSoftmaxAttention(16, 4, masks.HopMask), 'mask', 'make an object of the class, HopMask(...)'),
    (
        lambda: nn.HopAttention(16, 4, feature_map=FavorFeatures),
        'feature_map',
        'make an object of the class, FavorFeatures(...)',
    ),
    (lambda: nn.TopoGPSConv(16, None, attn=nn.HopAttention), 'attn', 'make an object of the class, HopAttention(...)'),
    (lambda: nn.TopoGPSConv(16, GCNConv, attn=ATTENTION), 'conv', 'make an object of the class, GCNConv(...)'),
    (lambda: masks.MultiHeadMask(masks.HopMask, masks.GRFMask()), 'masks', 'make an object of the class, HopMask(...)'),
    (
        lambda: AddGraphRandomFeatures(Data(edge_index=EDGES)),
        'AddGraphRandomFeatures',
        'make an object of the class, AddGraphRandomFeatures(...)',
    ),
    (lambda: masks.HopMask()(EDGES), 'data', 'of edges, use Data(edge_index=edge_index, num_nodes=num_nodes)'),
    (lambda: Graph.from_data(HeteroData()), 'data', 'use data.to_homogeneous()'),
    (
        lambda: Graph.from_data(HyperGraphData()),
        'data',
        'expand it to Data, with edges between all nodes of a hyperedge, or with a node for each hyperedge: '
        'edge_index=to_undirected(torch.stack([data.edge_index[0], data.edge_index[1] + data.num_nodes]))',
    ),
    (lambda: Graph.from_data(nx.path_graph(2)), 'data', 'use torch_geometric.utils.from_networkx(graph)'),
    (lambda: find_config('digit'), 'cfg', 'did you mean digits?; pyg-topomask list configs prints all names'),
    (lambda: check_overrides(['gt.layers=2']), 'options', 'instead of gt.layers=2, write gt.layers 2'),
    (lambda: split_layer_type('GINE+hop'), "gt.layer_type, after '+'", 'did you mean Hop?'),
    (lambda: split_layer_type('gine+Hop'), "gt.layer_type, before '+'", 'did you mean GINE?'),
    (lambda: split_layer_type('GINE+GRFAttention'), "gt.layer_type, after '+'", 'did you mean GRF?'),
    (lambda: build_mask({'sum': ['hop', 'Packing']}, 2), 'topomask.mask', 'did you mean Hop?'),
    (lambda: load_config('digits', ['gt.layer', '2']), 'gt.layer', 'did you mean layers?'),
    (lambda: load_config('digits', ['topomask.Hop.max_hop', '2']), 'topomask.Hop.max_hop', 'did you mean max_hops?'),
    (lambda: load_config('digits', ['topomask.hop.max_hops', '2']), 'topomask.hop.max_hops', 'did you mean Hop?'),
    (lambda: load_config('digits', ['max_epoch', '2']), 'max_epoch', 'did you mean optim.max_epoch?'),
    (lambda: load_config('digits', ['train.base_lr', '0.1']), 'train.base_lr', 'did you mean optim.base_lr?'),
]


def test_the_error_says_what_to_write(subtests: pytest.Subtests) -> None:
    for make, argument, remedy in CASES:
        with subtests.test(argument=argument, remedy=remedy):
            with pytest.raises(ArgumentError) as raised:
                make()
            assert (raised.value.argument, raised.value.remedy) == (argument, remedy)


def test_heads_that_do_not_divide_the_channels_are_told_the_divisors() -> None:
    with pytest.raises(
        ArgumentError, match=r'^heads: got 3 for 16 channels; accepted: divisors of the channels: 1, 2, 4, 8, 16$'
    ):
        nn.HopAttention(16, 3)
    with pytest.raises(ArgumentError, match=r': 1, 7, 49$'):
        nn.KMIPAttention(49, 4)


def test_a_checkpoint_of_shared_heads_says_how_to_load_it() -> None:
    old = nn.MaskedLinearAttention(16, 4, masks.HopMask(heads=1)).state_dict()
    with pytest.raises(RuntimeError, match=r'mask: the mask took the 4 heads of its layer; heads=1 makes one that all share'):
        nn.MaskedLinearAttention(16, 4, masks.HopMask()).load_state_dict(old)
    nn.MaskedLinearAttention(16, 4, masks.HopMask(heads=1)).load_state_dict(old)


def test_an_unknown_argument_of_a_yaml_names_the_right_one() -> None:
    with pytest.raises(ArgumentError) as raised:
        construct('topomask.mask.Hop', masks.HopMask, {'max_hop': 2}, heads=2)
    assert raised.value.remedy.endswith('; did you mean max_hops?')


@pytest.mark.parametrize(
    ('text', 'key', 'meant'), [('gt: {layer: 2}', 'gt.layer', 'layers'), ('optimizer: {}', 'optimizer', 'optim')]
)
def test_an_unknown_key_of_a_file_names_the_right_one(tmp_path: object, text: str, key: str, meant: str) -> None:
    path = tmp_path / 'own.yaml'
    path.write_text(text)
    with pytest.raises(ArgumentError) as raised:
        load_config(path)
    assert (raised.value.argument, raised.value.remedy) == (key, f'did you mean {meant}?')


def test_what_the_errors_say_works() -> None:
    expected = ATTENTION(X, EDGES)
    for edges in (EDGES.t().double().t().long(), torch.tensor(EDGES.tolist()), torch.from_numpy(np.array(EDGES))):
        assert torch.equal(ATTENTION(X, edges), expected)
