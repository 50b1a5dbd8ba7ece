r"""The statistics that GraphGPS's positional encodings read, for use without GraphGPS."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from scipy.linalg import eigh
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.transforms import BaseTransform
from torch_geometric.utils import degree, get_laplacian, is_undirected, to_dense_adj, to_undirected

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.names.positional_encoders import walk_lengths
from pyg_topomask.utils.checks import check_choice, check_whole


class AddEigenvectors(BaseTransform):
    r"""Adds the smallest eigenvalues of the Laplacian, :obj:`EigVals` of shape :obj:`[N, max_freqs, 1]`, and its eigenvectors
    of length 1, :obj:`EigVecs` of shape :obj:`[N, max_freqs]`. A graph with fewer nodes has NaN instead. Edges count in both
    directions.
    """

    def __init__(self, max_freqs: int, normalization: str | None) -> None:
        self.max_freqs = max_freqs
        self.normalization = normalization

    def forward(self, data: Data) -> Data:
        size, edge_index = data.num_nodes, data.edge_index
        if not is_undirected(edge_index, num_nodes=size):
            edge_index = to_undirected(edge_index, num_nodes=size)
        laplacian = get_laplacian(edge_index, normalization=self.normalization, dtype=torch.double, num_nodes=size)
        dense = to_dense_adj(laplacian[0], edge_attr=laplacian[1], max_num_nodes=size)[0]
        values, vectors = map(torch.from_numpy, eigh(dense.numpy(), subset_by_index=[0, min(size, self.max_freqs) - 1]))
        missing = (0, self.max_freqs - values.numel())
        values, vectors = (F.pad(t.float(), missing, value=float('nan')) for t in (values.clamp(min=0), vectors))
        data.EigVals, data.EigVecs = values.repeat(size, 1).unsqueeze(2), vectors
        return data


class AddReturnProbabilities(BaseTransform):
    r"""Adds the probabilities that walks of some lengths from a node end there, :obj:`pestat_RWSE` of shape
    :obj:`[N, len(lengths)]`. PyG's :obj:`AddRandomWalkPE` counts edges that occur twice once.
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        self.lengths = list(lengths)

    def forward(self, data: Data) -> Data:
        (source, _), size = data.edge_index, data.num_nodes
        share = 1 / degree(source, size).clamp(min=1)[source]
        step = to_dense_adj(data.edge_index, edge_attr=share, max_num_nodes=size)[0]
        power, returns = step, [step.diagonal()]
        for _ in range(max(self.lengths) - 1):
            power = power @ step
            returns.append(power.diagonal())
        data.pestat_RWSE = torch.stack(returns, 1)[:, [length - 1 for length in self.lengths]]
        return data


def posenc_transforms() -> list[BaseTransform]:
    r"""Returns the transforms for the enabled groups :obj:`posenc_LapPE`, :obj:`posenc_EquivStableLapPE` and
    :obj:`posenc_RWSE`. In a checkout of GraphGPS, its
    own loader adds their statistics.
    """
    if 'posenc' in register.config_dict:
        return []
    transforms: list[BaseTransform] = []
    groups = [group for group in ('posenc_LapPE', 'posenc_EquivStableLapPE') if cfg[group].enable]
    for group in groups:
        eigen = cfg[group].eigen
        check_whole(1, **{f'{group}.eigen.max_freqs': eigen.max_freqs})
        check_choice(['L2'], **{f'{group}.eigen.eigvec_norm': eigen.eigvec_norm})
        kinds = {'none': None, 'sym': 'sym'}
        if eigen.laplacian_norm.lower() not in kinds:  # of a matrix that is not symmetric, GraphGPS reads one triangle
            raise ArgumentError(f'{group}.eigen.laplacian_norm', repr(eigen.laplacian_norm), ', '.join(kinds))
        if eigen != cfg[groups[0]].eigen:
            raise ArgumentError(f'{group}.eigen', dict(eigen), f'those of {groups[0]}: {dict(cfg[groups[0]].eigen)}')
        if group == groups[-1]:
            transforms.append(AddEigenvectors(eigen.max_freqs, kinds[eigen.laplacian_norm.lower()]))
    if cfg.posenc_RWSE.enable:
        transforms.append(AddReturnProbabilities(walk_lengths()))
    return transforms
