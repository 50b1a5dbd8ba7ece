"""Arguments that constructors refuse: one for each check. The error has the name of the first argument of each case."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch

from pyg_topomask import masks, nn, transforms
from pyg_topomask.feature_maps import FavorFeatures
from pyg_topomask.nn import models
from pyg_topomask.walks import WalkSettings

Arguments = dict[str, Any]


class Refused(NamedTuple):
    make: Callable[..., object]
    cases: list[Arguments]
    base: Arguments = {}


#: What the settings of walks refuse, and all that takes them the first of these.
WALKS: list[Arguments] = [
    {'num_walks': 0},
    {'num_walks': 3, 'sampler': 'antithetic'},
    {'p_halt': 1.0},
    {'max_walk_length': -1},
    {'max_walk_length': 3, 'walk_length': 'fixed:6'},
    {'sampler': 'unknown'},
    {'transition': 'unknown'},
    {'transition': 'weight', 'sampler': 'repelling'},
    {'walk_length': 'unknown:2'},
]
#: What all layers that attend refuse.
LAYER: list[Arguments] = [{'heads': 3}, {'dropout': 1.5}, {'channels': 0}]
LINEAR: list[Arguments] = [*LAYER, {'feature_map': 'unknown'}, {'route': 'unknown'}]
NAN = torch.tensor([1.0, math.nan])

REFUSED = {
    'WalkSettings': Refused(
        WalkSettings,
        [
            *WALKS,
            {'num_walks': 5, 'sampler': 'repelling_antithetic'},
            {'num_walks': 5, 'sampler': 'coupled'},
            {'normalization': 'unknown'},
            {'max_walk_length': 2, 'walk_length': 'survival:1,0.7,0.3,0.1'},
        ],
        {'num_walks': 2, 'p_halt': 0.5, 'max_walk_length': 2},
    ),
    'AddGraphRandomFeatures': Refused(transforms.AddGraphRandomFeatures, [WALKS[0], {'normalization': 'unknown'}]),
    'AddRandomWalkKernel': Refused(transforms.AddRandomWalkKernel, WALKS[:1]),
    'AddSVDEncoding': Refused(
        transforms.AddSVDEncoding,
        [{'rank': 0}, {'num_users': -1}, {'num_iterations': -1}, {'normalization': 'both'}],
        {'rank': 2},
    ),
    'GRFMask': Refused(
        masks.GRFMask,
        [
            WALKS[0],
            {'heads': 0},
            {'normalization': 'unknown'},
            {'resample': 'always'},
            {'asymmetric': 'keys'},
            {'independent_ensembles': True, 'asymmetric': True},
            {'share_modulation': True, 'heads': 2, 'max_walk_length': 1, 'modulation': torch.eye(2)},
            {'modulation': torch.ones(3), 'max_walk_length': 3},
            {'modulation': torch.ones(3, 4), 'max_walk_length': 3, 'heads': 2},
            {'modulation': torch.tensor([1.0, 0.0]), 'max_walk_length': 1, 'positive': True},
            {'modulation': NAN, 'max_walk_length': 1},
            {'modulation': 'random_walk', 'positive': True},
            {'modulation': 'unknown'},
            {'modulation': f'cosine:{math.pi / 2}', 'max_walk_length': 2},
            {'modulation': 'random_walk:1e30', 'asymmetric': True},
        ],
    ),
    'RWGNKMask': Refused(
        masks.RWGNKMask,
        [
            WALKS[0],
            {'heads': 0},
            {'lam': -0.5},
            {'lam': 0.0},
            {'lam': 1e30},
            {'lam': torch.ones(3), 'heads': 2},
            {'alpha': -1.0},
            {'resample': 'epoch'},
        ],
    ),
    'PowerSeriesMask': Refused(
        masks.PowerSeriesMask,
        [
            {'heads': 0},
            {'order': -1},
            {'parameterization': 'beta'},
            {'normalization': 'unknown'},
            {'coefficients': torch.ones(2), 'order': 2},
            {'coefficients': torch.ones(3, 3), 'order': 2, 'heads': 2},
            {'coefficients': torch.ones(5), 'order': 4, 'parameterization': 'f'},
            {'coefficients': NAN, 'order': 1},
            {'coefficients': torch.tensor([-1.0, 1.0]), 'order': 2, 'parameterization': 'f'},
            {'coefficients': 'cosine:2', 'order': 4, 'parameterization': 'f'},
            {'coefficients': 'unknown'},
            {'coefficients': torch.tensor([1.0, -0.5]), 'order': 1, 'positive': True},
            {'coefficients': torch.tensor([1.0, -1.0]), 'order': 2, 'parameterization': 'f', 'positive': True},
        ],
    ),
    'HeatKernelMask': Refused(
        masks.HeatKernelMask, [{'kind': 'heat'}, {'lam': -1.0}, {'lam': [1.0, 2.0, 3.0]}, {'tolerance': 0.0}], {'heads': 2}
    ),
    'SinDegreeMask': Refused(masks.SinDegreeMask, [{'heads': 0}, {'max_degree': -1}, {'embedding_dim': 0}, {'flow': 'up'}]),
    'StochasticRPEMask': Refused(masks.StochasticRPEMask, [{'num_sines': 0}, {'num_features': 0}, {'gain': math.nan}]),
    'ToeplitzMask': Refused(
        masks.ToeplitzMask,
        [
            {'heads': 0},
            {'shape_dims': 0},
            {'shape_dims': 24, 'window': 3},
            {'kind': 'l2'},
            {'beyond': 'wrap'},
            {'window': -1},
            {'window': (1, 2, 3)},
            {'window': (1, 2), 'kind': 'distance'},
            {'initial': 'heat'},
            {'initial': torch.ones(3)},
            {'initial': torch.full((17, 17), torch.nan)},
            {'initial': torch.zeros(17, 17), 'positive': True},
        ],
    ),
    'MaskedLinearAttention': Refused(
        nn.MaskedLinearAttention,
        [
            *LINEAR,
            {'heads': 2, 'out_channels': 7},
            {'channels': -2, 'out_channels': 4},
            {'out_channels': 0},
            {'out_channels': None, 'channels': -1},
            {'mask': 'GRF'},
            {'mask': masks.GRFMask(4)},
            {'feature_map': FavorFeatures(3)},
        ],
        {'channels': 8, 'heads': 2},
    ),
    'MaskedSoftmaxAttention': Refused(
        nn.MaskedSoftmaxAttention,
        [
            *LAYER,
            {'heads': 2, 'out_channels': 7},
            {'out_channels': None, 'channels': -1},
            {'mask': masks.GRFMask(4)},
            {'mask': None},
            {'attention_dropout': 1.5},
        ],
        {'channels': 8, 'heads': 2, 'mask': masks.AdjacencyMask()},
    ),
    **{
        kind.__name__: Refused(
            kind,
            [WALKS[0], *LAYER, {'modulation': torch.ones(3)}, {'normalization': 'unknown'}, {'resample': 'unknown'}, more],
            {'channels': 8, 'heads': 2},
        )
        for kind, more in (
            (nn.GRFAttention, {'feature_map': 'unknown'}),
            (nn.GRFSoftmaxAttention, {'modulation': torch.tensor([1.0, -1.0]), 'max_walk_length': 1}),
            (nn.AsymmetricGRFAttention, {'feature_map': 'unknown'}),
        )
    },
    'RWGNKAttention': Refused(
        nn.RWGNKAttention, [WALKS[0], *LINEAR, {'lam': -1.0}, {'alpha': -1.0}], {'channels': 8, 'heads': 2}
    ),
    'HopAttention': Refused(nn.HopAttention, [*LINEAR, {'max_hops': -1}], {'channels': 8, 'heads': 2}),
    'SinDegreeAttention': Refused(nn.SinDegreeAttention, [*LINEAR, {'flow': 'up'}], {'channels': 8, 'heads': 2}),
    'ToeplitzAttention': Refused(
        nn.ToeplitzAttention, [*LINEAR, {'kind': 'up'}, {'shape_dims': 0}], {'channels': 8, 'heads': 2}
    ),
    'MaskEncoding': Refused(nn.MaskEncoding, [{'mask': masks.HopMask}, {'dim': 0}], {'mask': masks.HopMask(), 'dim': 2}),
    'KMIPAttention': Refused(
        nn.KMIPAttention,
        [
            *LAYER,
            {'edge_dim': 0},
            {'k': 0},
            {'k_steps': 0},
            {'kq_dim': 0},
            {'val_dim': 3, 'head_agg': 'none'},
            {'head_agg': 'sum'},
            {'backend': 'magic'},
            {'similarity': 'l1'},
            {'extra_edges': 'some'},
            {'expander_degree': 3},
            {'random_fraction': -0.1},
            {'diversity': math.nan},
            {'attention_dropout': 1.5},
        ],
        {'channels': 8, 'heads': 2},
    ),
    'EdgeWeights': Refused(nn.EdgeWeights, [{'edge_dim': 0}, {'channels': -2}, {'hidden_channels': 0}], {'edge_dim': 2}),
    'GatedGCNConv': Refused(nn.GatedGCNConv, [{'channels': 0}, {'dropout': 1.5}], {'channels': 2}),
    'GKAT': Refused(
        models.GKAT,
        [
            {'heads': ()},
            {'heads': (0, 1)},
            {'heads': (2, 2), 'readout': None, 'project': False},
            {'hidden_channels': 0},
            {'readout': 'unknown'},
            {'readout_channels': 0, 'readout': 'mf'},
            {'readout_channels': 77},
            {'lin_channels': 0},
            {'num_features': 4, 'feature_map': 'relu'},
            {'feature_map': 'unknown'},
            {'dropout': -0.1},
            {'lam': -1.0},
        ],
        {'in_channels': 5, 'hidden_channels': 4, 'out_channels': 3},
    ),
    'Interlacer': Refused(
        models.Interlacer,
        [
            {'in_channels': 0},
            {'channels': 0},
            {'out_channels': 0},
            {'local': 'gnn'},
            {'num_anchors': 4},
            {'num_anchors': 0, 'local': 'message_passing'},
            {'num_hops': 0},
            {'heads': 3},
            {'max_step': 0.0},
        ],
        {'in_channels': 5, 'channels': 8},
    ),
    'MGFormer': Refused(
        models.MGFormer,
        [
            {'num_users': -1},
            {'embedding_dim': 0},
            {'svd_dim': -1},
            {'layers': 0},
            {'heads': 3},
            {'mask': 'triangle'},
            {'mask': masks.GRFMask(2), 'heads': 4},
            {'feature_map': 'unknown'},
            {'dropout': 1.5},
        ],
        {'num_users': 5, 'num_items': 7, 'embedding_dim': 8},
    ),
}


@pytest.mark.parametrize('name', REFUSED)
def test_bad_arguments_are_named(name: str, subtests: pytest.Subtests) -> None:
    refused = REFUSED[name]
    for arguments in refused.cases:
        with subtests.test(**arguments), pytest.raises(ValueError, match=f'^{next(iter(arguments))}: got'):
            refused.make(**refused.base | arguments)
