r"""A GPS layer with any attention."""

from __future__ import annotations

import inspect
from functools import singledispatch
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module, MultiheadAttention
from torch_geometric.nn import GPSConv
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.inits import reset
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse, to_dense_batch

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask
from pyg_topomask.nn.input_checks import check_heads
from pyg_topomask.utils.checks import check_probability, check_size


class TopoGPSConv(GPSConv):
    r"""The GPS layer of `"Recipe for a General, Powerful, Scalable Graph Transformer" <https://arxiv.org/abs/2205.12454>`_
    with any attention layer. Local message passing and global attention run in parallel, each with a residual connection
    and a norm. An MLP follows their sum. The arguments are those of :class:`torch_geometric.nn.GPSConv`, and :obj:`attn`.

    Args:
        channels (int): Size of each input sample.
        conv (MessagePassing, optional): The local message passing layer. If it returns :obj:`(x, edge_attr)`, as
            :class:`~pyg_topomask.nn.GatedGCNConv` does, it updates the edge features, and must include dropout and a residual
            connection.
        heads (int, optional): The number of heads of PyG's own attention. It does not apply to :obj:`attn`.
            (default: :obj:`1`)
        dropout (float, optional): Dropout probability of intermediate embeddings. (default: :obj:`0.`)
        act (str, optional): The non-linear activation function. (default: :obj:`"relu"`)
        act_kwargs (dict, optional): Arguments of the activation function. (default: :obj:`None`)
        norm (str, optional): The normalization function. (default: :obj:`"batch_norm"`)
        norm_kwargs (dict, optional): Arguments of the normalization function. (default: :obj:`None`)
        attn_type (str, optional): PyG's own attention, if :obj:`attn` is not given: :obj:`"multihead"`, :obj:`"performer"`, or
            :obj:`None` for no global attention. (default: :obj:`"multihead"`)
        attn_kwargs (dict, optional): Arguments of PyG's own attention. (default: :obj:`None`)
        attn (torch.nn.Module, optional): An attention layer called as
            :obj:`attn(x, edge_index, edge_weight=edge_weight, batch=batch, graph=graph)`, which replaces PyG's own.
            (default: :obj:`None`)

    Raises:
        ValueError: If :obj:`attn` is not a module, does not return :obj:`channels` channels, or is combined with arguments of
            PyG's own attention, or if the heads of PyG's own attention do not divide the channels.

    Shapes:
        - **input:** node features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)`, batch vector
          :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** node features :math:`(|\mathcal{V}|, F)`, or if :obj:`conv` updates edge features
          :math:`((|\mathcal{V}|, F), (|\mathcal{E}|, D))`

    Example:
        >>> import torch
        >>> from pyg_topomask.nn import GRFAttention
        >>> layer = TopoGPSConv(16, conv=None, attn=GRFAttention(16, heads=4), norm='layer_norm')
        >>> layer(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    def __init__(
        self,
        channels: int,
        conv: MessagePassing | None,
        heads: int = 1,
        dropout: float = 0.0,
        act: str = 'relu',
        act_kwargs: dict[str, Any] | None = None,
        norm: str | None = 'batch_norm',
        norm_kwargs: dict[str, Any] | None = None,
        attn_type: str | None = 'multihead',
        attn_kwargs: dict[str, Any] | None = None,
        *,
        attn: Module | None = None,
    ) -> None:
        if isinstance(heads, Module):
            raise ArgumentError('heads', type(heads).__name__, 'whole numbers, and attentions as attn=')
        check_size(channels=channels, heads=heads)
        check_probability(dropout=dropout)
        if attn_type not in (None, 'multihead', 'performer'):
            remedy = f'an attention of this package is an argument attn, for example attn=GRFAttention({channels}, heads=4)'
            raise ArgumentError('attn_type', repr(attn_type), 'None, "multihead" and "performer", attentions of PyG', remedy)
        if conv is not None and not isinstance(conv, Module):
            raise ArgumentError('conv', repr(conv), f'None and a local layer, for example GCNConv({channels}, {channels})')
        if attn is not None and not isinstance(attn, Module):
            raise ArgumentError('attn', repr(attn), f'a module, for example GRFAttention(channels={channels})')
        if isinstance(attn, Mask):
            layer = f'MaskedLinearAttention({channels}, heads={attn.heads}, mask={type(attn).__name__}(...))'
            wrapped = f'a layer under it, for example {layer}'
            raise ArgumentError('attn', f'the mask {type(attn).__name__}', wrapped)
        out_channels = getattr(attn, 'out_channels', channels)
        if out_channels != channels:
            raise ArgumentError('attn', f'{out_channels} output channels', f'channels={channels}')
        replaced = attn is not None or attn_type is None
        if attn is not None and attn_type == 'performer':
            raise ArgumentError('attn_type', "'performer' with attn, which replaces it", '"multihead" (the default) and None')
        if replaced and attn_kwargs:
            raise ArgumentError('attn_kwargs', f'{attn_kwargs!r}, which no attention of PyG uses here', 'None')
        if attn is not None and heads not in (1, getattr(attn, 'heads', heads)):
            raise ArgumentError('heads', f'{heads} with attn, which has {attn.heads} heads', f'1 and {attn.heads}')
        if not replaced:
            check_heads(heads, channels)
        # PyG's layer always creates an attention. Create the smallest one, and replace it.
        super().__init__(
            channels,
            conv,
            1 if replaced else heads,
            dropout,
            act,
            act_kwargs,
            norm,
            norm_kwargs,
            'multihead' if replaced else attn_type,
            None if replaced else attn_kwargs,
        )
        self.heads = getattr(attn, 'heads', heads)
        self.replaces_attention = replaced
        # PyG raises its own error for edge weights that neither layer takes.
        self.weighted_conv = attn is None or conv is None or _takes(conv, 'edge_weight')
        if replaced:
            self.attn = attn
            self.attn_type = None if attn is None else type(attn).__name__

    def reset_parameters(self) -> None:
        if not self.replaces_attention:
            super().reset_parameters()
            return
        for module in (self.conv, self.attn, *self.mlp, self.norm1, self.norm2, self.norm3):
            reset(module)

    def forward(
        self,
        x: Tensor,
        edge_index: Adj,
        batch: Tensor | None = None,
        *,
        graph: Graph | None = None,
        **kwargs: Any,
    ) -> Any:
        r"""Runs the forward pass.

        Args:
            x (torch.Tensor): The node features, :obj:`[N, channels]`.
            edge_index (torch.Tensor or SparseTensor): The edge indices, :obj:`[2, E]`, or :obj:`adj_t`, for :obj:`conv`, and
                for :obj:`attn` if :obj:`graph` is not given.
            batch (torch.Tensor, optional): The graph of each node, :obj:`[N]`. (default: that of :obj:`graph`)
            graph (Graph, optional): Passed on to :obj:`attn`, so that layers share prepared masks.
                (default: :obj:`None`)
            **kwargs: Passed on to :obj:`conv`. :obj:`edge_weight` is passed on to :obj:`attn`, and to :obj:`conv` if it takes
                it. Without :obj:`conv`, :obj:`edge_weight` and :obj:`edge_attr` are accepted.

        Returns:
            torch.Tensor or (torch.Tensor, torch.Tensor): The node features, :obj:`[N, channels]`, and the edge
            features if :obj:`conv` updates them.
        """
        check_layer(graph, self)
        if self.conv is None and (unknown := set(kwargs) - {'edge_weight', 'edge_attr'}):
            raise TypeError(f'TopoGPSConv.forward() got an unexpected keyword argument {min(unknown)!r}')
        if batch is None:  # norms and attentions of PyG need it too
            batch = getattr(graph, 'batch', None)
        # PyG's convolutions and norms index by these. Gradients of torch's scatter are wrong with int32 indices.
        index = None if batch is None else batch.long()
        local_edges = edge_index.long() if isinstance(edge_index, Tensor) and not is_sparse(edge_index) else edge_index
        hs, edge_attr = [], None
        if self.conv is not None:
            local = kwargs if self.weighted_conv else {name: value for name, value in kwargs.items() if name != 'edge_weight'}
            h = convolve(graph, self.conv, x, local_edges, **local)
            if isinstance(h, tuple):
                if len(h) != 2 or not isinstance(h[1], Tensor | None):
                    kinds = ', '.join(type(item).__name__ for item in h)
                    raise ArgumentError('conv', f'a layer that returns ({kinds})', 'layers that return x, or (x, edge_attr)')
                h, edge_attr = h
                hs.append(self._norm(h, self.norm1, index))
            else:
                hs.append(self._residual(h, x, self.norm1, index))
        if self.attn is not None:
            if self.replaces_attention:
                edges = graph.edge_index if isinstance(graph, Graph) else edge_index
                h = self.attn(x, edges, edge_weight=kwargs.get('edge_weight'), batch=batch, graph=graph)
            else:
                h = _attend_as_pyg(self.attn, x, index)
            hs.append(self._residual(h, x, self.norm2, index))
        out = sum(hs) if hs else x
        out = out + self.mlp(out)
        out = self._norm(out, self.norm3, index)
        return out if edge_attr is None else (out, edge_attr)

    def _residual(self, h: Tensor, x: Tensor, norm: Module | None, batch: Tensor | None) -> Tensor:
        return self._norm(F.dropout(h, p=self.dropout, training=self.training) + x, norm, batch)

    def _norm(self, h: Tensor, norm: Module | None, batch: Tensor | None) -> Tensor:
        if norm is None:
            return h
        return norm(h, batch=batch) if self.norm_with_batch else norm(h)


@singledispatch
def convolve(graph: object, conv: Module, x: Tensor, edge_index: Adj, **kwargs: Any) -> Any:
    r"""Calls a convolution. On a graph of several processes, it receives messages of all."""
    return conv(x, edge_index, **kwargs)


@singledispatch
def check_layer(graph: object, layer: Module) -> None:
    r"""Raises an error for a layer that would not see all nodes, as it might on a graph of several processes."""


def _takes(conv: Module, name: str) -> bool:
    r"""Whether the layer takes the keyword argument."""
    parameters = inspect.signature(conv.forward).parameters
    return name in parameters or any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())


def _attend_as_pyg(attn: Module, x: Tensor, batch: Tensor | None) -> Tensor:
    if x.size(0) == 0:  # to_dense_batch fails without nodes
        return x
    h, mask = to_dense_batch(x, batch)
    if isinstance(attn, MultiheadAttention):
        h, _ = attn(h, h, h, key_padding_mask=~mask, need_weights=False)
    else:
        h = attn(h, mask=mask)
    return h[mask]
