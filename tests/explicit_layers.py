"""Layers that form their attention, and what their equations give."""

from collections.abc import Callable

import numpy as np
import torch
from graphs import GRAPHS, small_digraph
from oracles import grf_loads, masked_attention, softmax_attention, weight_matrix
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


def grf_features(data: Data) -> np.ndarray:
    return np.einsum('l,lij->ij', 0.5 ** np.arange(5), grf_loads(data, num_walks=4, p_halt=0.5, hops=4))


def grf_matrix(data: Data) -> np.ndarray:
    return grf_features(data) @ grf_features(data).T


#: The masks of these layers, without the package.
MATRICES: dict[str, Callable[[Data], np.ndarray]] = {
    'softmax': lambda data: weight_matrix(data, 'sym') + np.eye(data.num_nodes),
    'softmax_shared': lambda data: weight_matrix(data, None) + np.eye(data.num_nodes),
    'softmax_no_loop': lambda data: weight_matrix(data, None),
    'softmax_transposed': lambda data: weight_matrix(data, None).T,
    'softmax_hadamard': grf_matrix,
    'grf_softmax': grf_matrix,
    'grf_softmax_asymmetric': grf_features,
    **dict.fromkeys(LINEAR, grf_features),
}


def favor(x: np.ndarray, projection: np.ndarray) -> np.ndarray:
    x = x / x.shape[-1] ** 0.25
    return np.exp(x @ projection.T - (x**2).sum(-1, keepdims=True) / 2)


#: Their feature maps, of which random ones are given the projection that was drawn.
FEATURE_MAPS: dict[str, Callable[[np.ndarray, ExplicitAttention], np.ndarray]] = {
    'asymmetric': lambda x, layer: np.where(x > 0, x + 1, np.exp(x)),
    'asymmetric_relu': lambda x, layer: np.maximum(x, 0),
    'asymmetric_favor': lambda x, layer: favor(x, layer.feature_map.projection.numpy()),
}


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


def expected_output(name: str, layer: ExplicitAttention, x: Tensor, data: Data) -> Tensor:
    """The output from the equations of mask, feature map and attention."""
    q, k, v = (tensor.numpy() for tensor in projected(layer, x))
    matrix = MATRICES[name](data)[None]
    if name in LINEAR:
        q, k = (FEATURE_MAPS[name](vectors, layer) for vectors in (q, k))
        inner = masked_attention(q, k, v, matrix)
    else:
        inner, _ = softmax_attention(q, k, v, matrix)
    return layer.lin_out(torch.from_numpy(inner).flatten(1))


def expected_coefficients(layer: ExplicitAttention, x: Tensor, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Output before the last projection, and coefficients [H, N, N], from the equation of attention and the layer's own mask
    and feature map.
    """
    q, k, v = projected(layer, x)
    matrix = layer.mask(data).to_dense().detach().double().numpy()
    if isinstance(layer, MaskedSoftmaxAttention):
        return softmax_attention(q.numpy(), k.numpy(), v.numpy(), matrix)
    q, k = (tensor.numpy() for tensor in layer.feature_map(q, k, Graph.from_data(data).segments))
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
