"""Layers that form their attention, and what their equations give."""

from collections.abc import Callable

import numpy as np
import torch
from graphs import GRAPHS, small_digraph
from oracles import (
    masked_attention,
    softmax_attention,
)
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask import Graph
from pyg_topomask.masks import AdjacencyMask, GRFMask, Mask, PackingMask
from pyg_topomask.nn import AsymmetricGRFAttention, GRFSoftmaxAttention, MaskedSoftmaxAttention
from pyg_topomask.nn.explicit_attention import ExplicitAttention

CHANNELS, HEADS = 8, 2


def softmax(mask: Mask, **settings: object) -> MaskedSoftmaxAttention:
    return MaskedSoftmaxAttention(CHANNELS, HEADS, mask, **settings)


LAYERS: dict[str, Callable[..., ExplicitAttention]] = {
    'softmax': lambda **settings: softmax(AdjacencyMask(HEADS, normalization='sym'), **settings),
    'softmax_shared': lambda **settings: softmax(AdjacencyMask(), **settings),
    'softmax_no_loop': lambda **settings: softmax(AdjacencyMask(HEADS, None), **settings),
    'softmax_transposed': lambda **settings: softmax(AdjacencyMask(HEADS, None).T, **settings),
    'softmax_hadamard': lambda **settings: softmax(GRFMask(HEADS, positive=True) * PackingMask(), **settings),
    'grf_softmax': lambda **settings: GRFSoftmaxAttention(CHANNELS, HEADS, **settings),
    'grf_softmax_asymmetric': lambda **settings: GRFSoftmaxAttention(CHANNELS, HEADS, asymmetric=True, **settings),
    'asymmetric': lambda **settings: AsymmetricGRFAttention(CHANNELS, HEADS, **{'feature_map': 'elu'} | settings),
    'asymmetric_relu': lambda **settings: AsymmetricGRFAttention(CHANNELS, HEADS, **settings),
    'asymmetric_favor': lambda **settings: AsymmetricGRFAttention(CHANNELS, HEADS, feature_map='favor', **settings),
}
LINEAR = ['asymmetric', 'asymmetric_relu', 'asymmetric_favor']


def features(data: Data, channels: int = CHANNELS) -> Tensor:
    return torch.randn(data.num_nodes or 0, channels, generator=torch.Generator().manual_seed(3))


def graph_named(name: str) -> Data:
    """Masks of softmax attention are positive where the edge weights are."""
    data = GRAPHS[name]()
    if 'edge_weight' in data:
        data.edge_weight = data.edge_weight.abs().float()
    return data


def positive_digraph() -> Data:
    data = small_digraph()
    data.edge_weight = data.edge_weight.abs()
    return data


def projected(layer: ExplicitAttention, x: Tensor) -> tuple[Tensor, ...]:
    lins = (layer.lin_q, layer.lin_k, layer.lin_v)
    return tuple(lin(x).view(-1, layer.heads, layer.out_channels // layer.heads).detach() for lin in lins)


def expected_coefficients(layer: ExplicitAttention, x: Tensor, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Output before the last projection, and coefficients [H, N, N], from the equations and the dense mask."""
    q, k, v = projected(layer, x)
    matrix = layer.mask(data).to_dense().detach().double().numpy()
    if isinstance(layer, MaskedSoftmaxAttention):
        return softmax_attention(q.numpy(), k.numpy(), v.numpy(), matrix)
    q, k = (tensor.numpy() for tensor in layer.feature_map(q, k, data.get('batch'), Graph.from_data(data).num_graphs))
    share = np.einsum('nhm,khm->hnk', q, k) * matrix
    total = share.sum(-1, keepdims=True)
    coefficients = np.divide(share, total, out=np.zeros_like(share), where=total != 0)
    return masked_attention(q, k, v.numpy(), matrix), coefficients


def dense_coefficients(pairs: Tensor, alpha: Tensor, num_nodes: int) -> np.ndarray:
    """Coefficients of (source, target) pairs as [H, target, source]."""
    matrix = np.zeros((alpha.size(1), num_nodes, num_nodes))
    assert len(set(zip(*pairs.tolist(), strict=True))) == pairs.size(1)
    matrix[:, pairs[1].numpy(), pairs[0].numpy()] = alpha.detach().numpy().T
    return matrix
