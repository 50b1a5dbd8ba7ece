"""Positional encodings equal those of a checkout of GraphGPS."""

from __future__ import annotations

import importlib
import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from graphgps_layers import REAL, imported
from graphs import ring
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, load_cfg, set_cfg

from pyg_topomask.graphgym.names.networks import TopoGPSModel
from pyg_topomask.graphgym.names.positional_encodings import (
    AddEigenvectors,
    AddReturnProbabilities,
    posenc_transforms,
    walk_lengths,
)

pytestmark = pytest.mark.filterwarnings('ignore')  # GraphGPS was written for older versions of everything


def graphs() -> list[Data]:
    torch.manual_seed(0)
    tailed = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]])
    edges = [(4, tailed), (1, torch.empty(2, 0, dtype=torch.long)), (12, ring(12)[:, : ring(12).size(1) - 1])]
    return [Data(x=torch.randn(size, 3), edge_index=index, edge_attr=torch.rand(index.size(1))) for size, index in edges]


@pytest.mark.parametrize(('file', 'name'), [('cifar10', 'LapPE'), ('enzymes', 'RWSE'), ('cifar10', 'EquivStableLapPE')])
def test_statistics_parameters_and_outputs(file: str, name: str) -> None:
    if REAL is None:
        pytest.skip('GRAPHGPS_DIR is not set to a checkout of GraphGPS')
    path = Path(__file__).parents[3] / 'graphgps_configs' / 'graphgps' / f'{file}.yaml'
    with imported(Path(REAL)):
        set_cfg(cfg)
        opts = ['gt.layer_type', 'CustomGatedGCN+Transformer', 'dataset.edge_encoder_name', 'DummyEdge']
        if name == 'EquivStableLapPE':
            eigen = [
                'posenc_LapPE.enable',
                'False',
                'posenc_EquivStableLapPE.enable',
                'True',
                f'posenc_{name}.eigen.max_freqs',
                '8',
            ]
            opts += [*eigen, 'dataset.node_encoder_name', f'LinearNode+{name}']
        load_cfg(cfg, SimpleNamespace(cfg_file=str(path), opts=opts))
        cfg.share.dim_in, cfg.share.dim_edge = 3, 1
        cfg.posenc_RWSE.kernel.times = lengths = walk_lengths() if cfg.posenc_RWSE.enable else [1]
        compute = importlib.import_module('graphgps.transform.posenc_stats').compute_posenc_stats
        assert posenc_transforms() == []
        # GraphGPS takes the normalization of the Laplacian from the group posenc_LapPE.
        transform = AddReturnProbabilities(lengths) if name == 'RWSE' else AddEigenvectors(8, None)
        given = []
        for data in graphs():
            theirs, mine = compute(data.clone(), [name], data.is_undirected(), cfg), transform(data.clone())
            for key in ('EigVals', 'pestat_RWSE'):
                if key in theirs:
                    torch.testing.assert_close(mine[key], theirs[key].float(), equal_nan=True, atol=1e-5, rtol=1e-5)
            if name != 'RWSE' and data.num_nodes == 4:  # without equal eigenvalues, eigenvectors are so up to signs
                torch.testing.assert_close(mine.EigVecs.abs(), theirs.EigVecs.abs(), equal_nan=True, atol=1e-5, rtol=1e-5)
            given.append(theirs)
        batch = Batch.from_data_list(given)
        theirs = register.network_dict['GPSModel'](3, 10).eval()
        assert 'pyg_topomask' not in type(theirs.encoder.node_encoder).__module__
        for name in [
            word for word in register.node_encoder_dict if {'LapPE', 'RWSE', 'EquivStableLapPE'} & set(str(word).split('+'))
        ]:
            del register.node_encoder_dict[name]  # as without GraphGPS
        mine = TopoGPSModel(3, 10).eval()
        assert 'pyg_topomask' in type(mine.encoder.node_encoder).__module__
        parts = [(mine.encoder, theirs.encoder), (mine.post_mp, theirs.post_mp)]
        for layer, other in zip(mine.layers, theirs.layers, strict=True):
            pairs = {
                'conv': 'local_model',
                'attn': 'self_attn',
                'norm1': 'norm1_local',
                'norm2': 'norm1_attn',
                'norm3': 'norm2',
            }
            parts += [(getattr(layer, ours), getattr(other, name)) for ours, name in pairs.items()]
            parts += [(layer.mlp, torch.nn.Sequential(other.ff_linear1, other.ff_linear2))]
        copied = 0
        for ours, others in parts:
            for parameter, other in itertools.zip_longest(ours.parameters(), others.parameters()):
                parameter.data.copy_(other)
                copied += parameter.numel()
        assert copied == sum(map(torch.numel, mine.parameters())) == sum(map(torch.numel, theirs.parameters()))
        torch.testing.assert_close(mine(batch.clone())[0], theirs(batch.clone())[0])
