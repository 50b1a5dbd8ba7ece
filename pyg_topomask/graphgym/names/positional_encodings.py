r"""The positional encodings of GraphGPS, for use without it: what the loader stores, and the node encoders that read it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from scipy.linalg import eigh
from torch import Tensor
from torch.nn import BatchNorm1d, Identity, Linear, Module, ReLU, Sequential, TransformerEncoder, TransformerEncoderLayer
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.transforms import BaseTransform
from torch_geometric.utils import degree, get_laplacian, is_undirected, to_dense_adj, to_undirected

from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_choice, check_whole, is_whole

#: Where a batch has the encodings that local layers read.
POSITIONS = 'pe_EquivStableLapPE'


class AppendingEncoder(Module):
    r"""Appends encodings to the node features, with the options of a group that has :obj:`dim_pe`, their number of channels.
    With :obj:`expand_x`, the node features are mapped to the remaining channels first. Otherwise, they already have this size.
    """

    def __init__(self, group: str, options: Mapping[str, Any], dim_emb: int, expand_x: bool) -> None:
        super().__init__()
        check_whole(1, dim_emb - 1, **{f'{group}.dim_pe': options['dim_pe']})  # below the encoded channels
        self.dim_pe: int = options['dim_pe']
        self.lin_x = Linear(cfg.share.dim_in, dim_emb - self.dim_pe) if expand_x else None

    def encoding(self, batch: Data) -> Tensor:
        r"""Returns the encodings of the nodes, :obj:`[N, dim_pe]`."""
        raise NotImplementedError

    def forward(self, batch: Data) -> Data:
        encoding = self.encoding(batch)
        x = batch.x if self.lin_x is None else self.lin_x(batch.x.to(self.lin_x.weight.dtype))
        batch.x = torch.cat([x, encoding], dim=-1)
        return batch


def _statistic(group: str, batch: Data, *names: str) -> list[Tensor]:
    r"""Returns what the loader has stored for a group of options."""
    if any(name not in batch for name in names):
        raise ArgumentError(group, f'data without {names[0]}', f'{group}.enable: True, with which the loader adds it')
    return [batch[name] for name in names]


def _relu_mlp(size: int, dim: int, layers: int) -> Sequential:
    r"""So many linear maps with a ReLU after each, of twice the width in between."""
    widths = [size, *[2 * dim] * (layers - 1), dim]
    return Sequential(*(module for pair in pairwise(widths) for module in (Linear(*pair), ReLU())))


def _raw_norm(group: str, options: Mapping[str, Any], size: int) -> Module:
    check_choice(('none', 'batchnorm'), **{f'{group}.raw_norm_type': options['raw_norm_type'].lower()})
    return BatchNorm1d(size) if options['raw_norm_type'].lower() == 'batchnorm' else Identity()


class LapPENodeEncoder(AppendingEncoder):
    r"""GraphGPS's encoding of the eigenvectors of the Laplacian, :obj:`posenc_LapPE`. A network maps each pair of an eigenvalue
    and the entry of its eigenvector at a node, and the encoding of the node is the sum over the eigenvectors that its graph
    has. In training, each eigenvector gets a random sign in each batch, because signs are arbitrary.
    """

    def __init__(self, dim_emb: int, expand_x: bool = True) -> None:
        group, options = 'posenc_LapPE', cfg.posenc_LapPE
        super().__init__(group, options, dim_emb, expand_x)
        check_choice(('DeepSet', 'Transformer'), **{f'{group}.model': options.model})
        check_whole(1, **{f'{group}.layers': options.layers})
        check_whole(0, **{f'{group}.post_layers': options.post_layers})
        dim = self.dim_pe
        self.raw_norm = _raw_norm(group, options, options.eigen.max_freqs)
        self.lin_pair: Module = Identity()
        self.network: Module
        if options.model == 'Transformer':
            check_whole(1, **{f'{group}.n_heads': options.n_heads})
            if dim % options.n_heads:
                raise ArgumentError(f'{group}.n_heads', options.n_heads, f'divisors of the {dim} channels of {group}.dim_pe')
            self.lin_pair = Linear(2, dim)
            layer = TransformerEncoderLayer(dim, options.n_heads, batch_first=True)
            self.network = TransformerEncoder(layer, options.layers, enable_nested_tensor=False)
        else:
            self.network = _relu_mlp(2, dim, options.layers)
        self.post = _relu_mlp(dim, dim, options.post_layers) if options.post_layers else Identity()

    def encoding(self, batch: Data) -> Tensor:
        values, vectors = _statistic('posenc_LapPE', batch, 'EigVals', 'EigVecs')
        if self.training:
            vectors = vectors * (2.0 * torch.randint(2, (vectors.size(1),), device=vectors.device) - 1.0)
        pairs = torch.stack([vectors, values.squeeze(2).to(vectors.dtype)], dim=2).to(next(self.network.parameters()).dtype)
        absent = vectors.isnan()  # of a graph with fewer eigenvectors than asked for
        encoded = self.lin_pair(self.raw_norm(pairs.masked_fill(absent.unsqueeze(2), 0.0)))
        masked = {'src_key_padding_mask': absent} if isinstance(self.network, TransformerEncoder) else {}
        encoded = self.network(encoded, **masked).masked_fill(absent.unsqueeze(2), 0.0)
        out: Tensor = self.post(encoded.sum(1))
        return out


class RWSENodeEncoder(AppendingEncoder):
    r"""GraphGPS's encoding of the probabilities that a random walk is back at its node, :obj:`posenc_RWSE`, by a linear map or
    an MLP.
    """

    def __init__(self, dim_emb: int, expand_x: bool = True) -> None:
        group, options = 'posenc_RWSE', cfg.posenc_RWSE
        super().__init__(group, options, dim_emb, expand_x)
        model, steps = options.model.lower(), len(walk_lengths())
        check_choice(('linear', 'mlp'), **{f'{group}.model': model})
        self.raw_norm = _raw_norm(group, options, steps)
        if model == 'mlp':
            check_whole(1, **{f'{group}.layers': options.layers})
        self.network = _relu_mlp(steps, self.dim_pe, options.layers) if model == 'mlp' else Linear(steps, self.dim_pe)

    def encoding(self, batch: Data) -> Tensor:
        (returns,) = _statistic('posenc_RWSE', batch, 'pestat_RWSE')
        out: Tensor = self.network(self.raw_norm(returns.to(next(self.network.parameters()).dtype)))
        return out


class EquivStableLapPENodeEncoder(Module):
    r"""GraphGPS's linear map of the eigenvectors of the Laplacian, :obj:`posenc_EquivStableLapPE`. The node features stay as
    they are. The local layers :obj:`GINE` and :obj:`CustomGatedGCN` weigh messages by the distance of these encodings.
    """

    #: Channels of the node features that hold the encodings.
    dim_pe = 0

    def __init__(self, dim_emb: int, expand_x: bool = True) -> None:
        super().__init__()
        group, options = 'posenc_EquivStableLapPE', cfg.posenc_EquivStableLapPE
        if not options.enable:  # local layers would not read them
            raise ArgumentError(f'{group}.enable', 'False with the encoder EquivStableLapPE', 'True')
        if expand_x and cfg.share.dim_in != dim_emb:
            given = f'EquivStableLapPE alone, which leaves {cfg.share.dim_in} features as they are'
            accepted = f'{dim_emb} features, or names such as LinearNode+EquivStableLapPE'
            raise ArgumentError('dataset.node_encoder_name', given, accepted)
        self.raw_norm = _raw_norm(group, options, options.eigen.max_freqs)
        self.lin = Linear(options.eigen.max_freqs, dim_emb)

    def forward(self, batch: Data) -> Data:
        (vectors,) = _statistic('posenc_EquivStableLapPE', batch, 'EigVecs')
        # A graph may have fewer eigenvectors than asked for.
        batch[POSITIONS] = self.lin(self.raw_norm(vectors.nan_to_num(nan=0.0).to(self.lin.weight.dtype)))
        return batch


def walk_lengths() -> list[int]:
    r"""Returns the lengths of the walks of :obj:`posenc_RWSE.kernel`: its :obj:`times`, or those of its :obj:`times_func`, a
    text such as :obj:`"range(1, 17)"`, which is not evaluated.
    """
    kernel = cfg.posenc_RWSE.kernel
    times = list(kernel.times)
    if kernel.times_func:
        words = re.fullmatch(r'range\((\d+(?:, *\d+){0,2})\)', kernel.times_func.strip())
        if words is None:
            raise ArgumentError('posenc_RWSE.kernel.times_func', repr(kernel.times_func), "a range, such as 'range(1, 17)'")
        times = list(range(*map(int, words[1].split(','))))
    if not times or not all(is_whole(time, 1) for time in times):
        raise ArgumentError('posenc_RWSE.kernel.times', times, 'lengths of walks, from 1, at least one')
    return times


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
