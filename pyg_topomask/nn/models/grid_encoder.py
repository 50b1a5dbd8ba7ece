r"""A Transformer encoder with topologically masked attention over a fixed grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn.inits import reset

from pyg_topomask.errors import ArgumentError
from pyg_topomask.feature_maps.feature_map import FeatureMap
from pyg_topomask.feature_maps.names import feature_map_of_name
from pyg_topomask.graphs.edges import grid_edges
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.masks import DenseMask, LowRankMask, Mask, PackingMask
from pyg_topomask.nn.inputs import check_heads, fit_mask
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.ops.masked_linear_attention import dense_linear_attention
from pyg_topomask.ops.softmax_attention import matrix_of_one_graph
from pyg_topomask.utils.checks import check_choice, check_probability, check_size, check_whole
from pyg_topomask.utils.functorch import outside_transforms

#: Creates the mask of a layer from the index of the layer, from 0.
LayerMask = Callable[[int], Mask | None]


class GridEncoder(torch.nn.Module):
    r"""Pre-norm Transformer layers over the tokens of a grid, with learned additive position embeddings, and their mean.

    Args:
        height (int): The rows of the grid.
        width (int): Its columns.
        channels (int): The hidden channels :math:`C`.
        depth (int): The number of layers.
        heads (int): The number of heads.
        mlp_channels (int): The hidden channels of the MLPs.
        mask (callable, optional): Called with the index of each layer, returns its :class:`~pyg_topomask.masks.Mask`, or
            :obj:`None` for no mask. A mask that samples new walks in each forward pass is refused.
            (default: :obj:`None`, no masks)
        feature_map (str or callable): :math:`\phi` of linear attention: a name, see
            :class:`~pyg_topomask.nn.MaskedLinearAttention`, or a function that returns a
            :class:`~pyg_topomask.feature_maps.FeatureMap` for the channels of a head. (default: :obj:`"relu"`)
        attention (str): :obj:`"linear"`, or :obj:`"softmax"` with :math:`\log M_{ij}` added to the scores. Softmax attention
            forms the mask as a matrix. The matrix must stay nonnegative, as with :obj:`GRFMask(positive=True)`.
            (default: :obj:`"linear"`)
        dropout (float): Dropout probability of the outputs of attention and MLP. (default: :obj:`0.0`)
        dense_limit (int): Up to this number of patches, linear attention forms the mask as one matrix for all images, which is
            fastest on small grids. On larger grids, it applies the mask to one graph with a copy of the grid for each image. It
            always forms the mask if its product costs as much as the matrix, as with
            :class:`~pyg_topomask.masks.DenseMask`. The two agree up to the error of the mask's product, such as the
            :obj:`tolerance` of a heat kernel. (default: :obj:`256`)
    """

    def __init__(
        self,
        height: int,
        width: int,
        channels: int,
        depth: int,
        heads: int,
        mlp_channels: int,
        mask: LayerMask | None = None,
        feature_map: str | Callable[[int], FeatureMap] = 'relu',
        attention: str = 'linear',
        dropout: float = 0.0,
        dense_limit: int = 256,
    ) -> None:
        super().__init__()
        check_size(depth=depth, mlp_channels=mlp_channels)
        check_whole(0, dense_limit=dense_limit)
        check_probability(dropout=dropout)
        if isinstance(mask, Mask) or not (mask is None or callable(mask)):
            given = 'a Mask' if isinstance(mask, Mask) else repr(mask)
            raise ArgumentError('mask', given, 'a function that makes a Mask for each layer, or None')
        self.shape = (height, width)
        self.position = torch.nn.Parameter(torch.empty(height * width, channels))
        self.blocks = torch.nn.ModuleList()
        for layer in range(depth):
            of_layer = None if mask is None else mask(layer)
            attend = GridAttention(channels, heads, of_layer, feature_map, attention, dense_limit)
            self.blocks.append(_Block(attend, channels, mlp_channels, dropout))
        self.norm = torch.nn.LayerNorm(channels)
        self._graphs: dict[tuple[int, torch.device], Graph] = {}
        torch.nn.init.normal_(self.position, std=0.02)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters, and redraws random features."""
        torch.nn.init.normal_(self.position, std=0.02)
        for module in (self.blocks, self.norm):
            reset(module)

    def forward(self, tokens: Tensor) -> Tensor:
        r"""Returns the mean of the encoded tokens, :obj:`[B, channels]`, for tokens :obj:`[B, height * width, channels]`."""
        x = tokens + self.position
        for block in self.blocks:
            x = block(x, self.graph)
        return self.norm(x).mean(dim=1)

    def graph(self, copies: int) -> Graph:
        r"""Returns one graph with the given number of copies of the grid, and its prepared masks. The graphs for one copy and
        for the last number of copies are kept.
        """
        device = self.position.device
        key = copies, device
        if key not in self._graphs:
            grid = 1, device
            with torch.inference_mode(False):  # validation may come before training
                self._graphs = {kept: self._graphs[kept] for kept in self._graphs if kept == grid} | {key: self._copies(copies)}
        return self._graphs[key]

    @outside_transforms
    def _copies(self, copies: int) -> Graph:
        nodes, device = self.position.size(0), self.position.device
        batch = torch.arange(copies, device=device)
        edge_index = (grid_edges(self.shape, device).unsqueeze(1) + (nodes * batch).unsqueeze(1)).flatten(1)
        batch_of_nodes = None if copies == 1 else batch.repeat_interleave(nodes)
        shape = torch.tensor([self.shape], device=device).expand(copies, -1)
        data = Data(grid_shape=shape)  # for Toeplitz masks
        return Graph(edge_index, copies * nodes, batch=batch_of_nodes, num_graphs=copies, data=data)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {'_graphs': {}}


class GridAttention(torch.nn.Module):
    r"""Multi-head attention of every image over one fixed graph. The arguments are those of :class:`GridEncoder`, with
    the mask of the layer.
    """

    def __init__(
        self,
        channels: int,
        heads: int,
        mask: Mask | None,
        feature_map: str | Callable[[int], FeatureMap],
        attention: str,
        dense_limit: int,
    ) -> None:
        super().__init__()
        check_heads(heads, channels)
        check_choice(('linear', 'softmax'), attention=attention)
        if mask is not None:
            fit_mask(mask, heads)
            # The states of the fixed grid are kept.
            if any(getattr(module, 'resample', 'never') != 'never' for module in mask.modules()):
                raise ArgumentError('mask', 'a mask that draws walks anew', 'masks with resample="never"')
        self.heads = heads
        self.attention = attention
        self.dense_limit = dense_limit
        self.mask = PackingMask() if mask is None and attention == 'linear' else mask
        # Matrices for one grid do not fit a graph of several copies.
        self.one_grid = mask is not None and any(isinstance(module, DenseMask | LowRankMask) for module in mask.modules())
        make = partial(feature_map_of_name, feature_map) if isinstance(feature_map, str) else feature_map
        self.feature_map = make(channels // heads) if attention == 'linear' else None
        self.lin_qkv = torch.nn.Linear(channels, 3 * channels)
        self.lin_out = torch.nn.Linear(channels, channels)

    def forward(self, x: Tensor, graph: Callable[[int], Graph]) -> Tensor:
        r"""Attends between the nodes of each image, :obj:`[B, n, channels]`. :obj:`graph` returns copies of the grid."""
        q, k, v = self.lin_qkv(x).unflatten(2, (3, self.heads, -1)).unbind(2)
        attend = self._softmax if self.attention == 'softmax' else self._linear
        return self.lin_out(attend(q, k, v, graph).flatten(2))

    def _linear(self, q: Tensor, k: Tensor, v: Tensor, graph: Callable[[int], Graph]) -> Tensor:
        assert self.feature_map is not None
        assert self.mask is not None
        images, nodes = v.shape[:2]
        segments = Segments.from_ptr(torch.arange(images + 1, device=v.device) * nodes, images * nodes)
        q, k = self.feature_map(q.flatten(0, 1), k.flatten(0, 1), segments)
        dense = nodes <= self.dense_limit
        if not (dense or self.one_grid):
            out: Tensor = masked_linear_attention(q, k, v.flatten(0, 1), self.mask(graph(images)))
            return out.view_as(v)
        mask = self.mask(graph(1))
        q, k = (features.unflatten(0, (images, nodes)) for features in (q, k))
        if dense or images == 0 or mask.cost >= nodes**2:
            return dense_linear_attention(q, k, v, mask)
        return torch.stack([masked_linear_attention(*image, mask) for image in zip(q, k, v, strict=True)])

    def _softmax(self, q: Tensor, k: Tensor, v: Tensor, graph: Callable[[int], Graph]) -> Tensor:
        q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
        if self.mask is None:
            return F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        matrix = matrix_of_one_graph(self.mask(graph(1)))
        # Some kernels have the error of their series.
        rounding = 16 * torch.finfo(matrix.dtype).eps * matrix.detach().abs().amax(dim=-1, keepdim=True)
        if bool((matrix < -rounding).any()):
            given = f'entries down to {matrix.min().item():.3g} for attention="softmax"'
            accepted = 'masks without negative entries, such as GRFMask(positive=True), whose entries stay positive in training'
            raise ArgumentError('mask', given, accepted)
        absent = matrix <= 0
        empty = absent.all(dim=-1, keepdim=True)
        # The fills avoid log(0) and rows of -inf. Their gradients would be NaN.
        bias = matrix.masked_fill(absent, 1.0).log().masked_fill(absent & ~empty, -math.inf)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.unsqueeze(0).to(q.dtype))
        return out.masked_fill(empty, 0.0).transpose(1, 2)

    def extra_repr(self) -> str:
        return f'heads={self.heads}, attention={self.attention!r}'


class _Block(torch.nn.Module):
    r"""Attention and MLP, each with a norm before it and a residual connection."""

    def __init__(self, attention: GridAttention, channels: int, mlp_channels: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = torch.nn.LayerNorm(channels)
        self.attention = attention
        self.norm2 = torch.nn.LayerNorm(channels)
        self.lin1 = torch.nn.Linear(channels, mlp_channels)
        self.lin2 = torch.nn.Linear(mlp_channels, channels)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, x: Tensor, graph: Callable[[int], Graph]) -> Tensor:
        x = x + self.dropout(self.attention(self.norm1(x), graph))
        return x + self.dropout(self.lin2(F.gelu(self.lin1(self.norm2(x)))))
