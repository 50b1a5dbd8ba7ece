r"""A GPS layer with any attention."""

from __future__ import annotations

import inspect
from functools import singledispatch
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module, MultiheadAttention
from torch_geometric.data import Data
from torch_geometric.nn import GPSConv
from torch_geometric.nn.attention import PerformerAttention
from torch_geometric.nn.attention.performer import generalized_kernel, linear_attention
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.inits import reset
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse, to_dense_batch

from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask
from pyg_topomask.masks.base.kinds import LEARNS_WEIGHTS
from pyg_topomask.nn.edge_weights import EdgeWeights
from pyg_topomask.nn.explicit_attention import ExplicitAttention
from pyg_topomask.nn.inputs import as_graph, check_heads
from pyg_topomask.nn.masked_linear_attention import MaskedLinearAttention
from pyg_topomask.utils.checks import check_probability, check_size
from pyg_topomask.utils.options import instance_of


class TopoGPSConv(GPSConv):
    r"""The GPS layer of `"Recipe for a General, Powerful, Scalable Graph Transformer" <https://arxiv.org/abs/2205.12454>`_
    with any attention layer. Local message passing and global attention run in parallel, each with a residual connection
    and a norm. An MLP follows their sum. The other arguments are those of :class:`torch_geometric.nn.GPSConv`.

    Args:
        channels (int): Size of each input sample.
        conv (MessagePassing, optional): The local message passing layer. If it returns :obj:`(x, edge_attr)`, as
            :class:`~pyg_topomask.nn.GatedGCNConv` does, it updates the edge features, and must include dropout and a residual
            connection.
        heads (int, optional): The number of heads of PyG's own attention. It does not apply to :obj:`attn`.
            (default: :obj:`1`)
        dropout (float, optional): Dropout probability of intermediate embeddings. (default: :obj:`0.`)
        attn_type (str, optional): PyG's own attention, if :obj:`attn` is not given: :obj:`"multihead"`, :obj:`"performer"`, or
            :obj:`None` for no global attention. :obj:`"performer"` leaves out the keys of padding, which PyG 2.8.1 counts.
            (default: :obj:`"multihead"`)
        attn (torch.nn.Module or str, optional): An attention layer called as
            :obj:`attn(x, edge_index, edge_weight=edge_weight, batch=batch, graph=graph)`, which replaces PyG's own.
            :obj:`"pyg"` is the attention of :obj:`attn_type`. :obj:`None` needs :obj:`attn_type=None` beside it, which is no
            global attention. (default: :obj:`"pyg"`)
        edge_weights (EdgeWeights, optional): Learns the edge weights of the mask of :obj:`attn` from :obj:`edge_attr`. Edge
            weights that are given multiply them. (default: :obj:`None`)

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
        attn: Module | str | None = 'pyg',
        edge_weights: EdgeWeights | None = None,
    ) -> None:
        attn = _replacing(attn, attn_type)
        check_probability(dropout=dropout)
        _check_layers(channels, conv, heads, attn_type, attn_kwargs, attn)
        if edge_weights is not None:
            _check_edge_weights(edge_weights, attn)
        self_attention = attn is None and attn_type is not None
        # PyG's layer always creates an attention. Create the smallest one, and replace it.
        kind, size = (attn_type, heads) if self_attention else ('multihead', 1)
        super().__init__(channels, conv, size, dropout, act, act_kwargs, norm, norm_kwargs, kind, attn_kwargs)
        self.heads = getattr(attn, 'heads', heads)
        self.replaces_attention = not self_attention
        self._hands_edge_attr_on = getattr(attn, 'edge_terms', None) is not None
        #: Whether attention reads edge features, by itself or by its edge weights.
        self.reads_edge_attr = edge_weights is not None or self._hands_edge_attr_on
        self._told_of_features = conv is not None or self.reads_edge_attr
        # What attention reads and the local layer does not take. PyG raises its own error for what neither takes.
        read = {'edge_weight': attn is not None, 'edge_attr': self.reads_edge_attr}
        taken = {name for name in read if conv is not None and _takes(conv, name)}
        self._kept_from_conv = {name for name in read if read[name]} - taken
        self._told_of_weights = 'edge_weight' not in taken
        if not self._told_of_weights and isinstance(attn, MaskedLinearAttention | ExplicitAttention):
            attn.told_of_weights = True  # the weights have an effect in the local layer
        if self.replaces_attention:
            self.attn = attn
            self.attn_type = None if attn is None else type(attn).__name__
        self.edge_weights = edge_weights

    def reset_parameters(self) -> None:
        if not self.replaces_attention:
            if isinstance(self.attn, MultiheadAttention):
                self.attn.out_proj.reset_parameters()  # which torch's own reset leaves, but for the bias
            super().reset_parameters()
            return
        for module in (self.conv, self.attn, self.edge_weights, *self.mlp, self.norm1, self.norm2, self.norm3):
            reset(module)

    def forward(
        self,
        x: Tensor,
        edge_index: Adj,
        batch: Tensor | None = None,
        *,
        graph: Graph | Data | None = None,
        **kwargs: Any,
    ) -> Any:
        r"""Runs the forward pass.

        Args:
            x (torch.Tensor): The node features, :obj:`[N, channels]`.
            edge_index (torch.Tensor or SparseTensor): The edge indices, :obj:`[2, E]`, or :obj:`adj_t`, for :obj:`conv`, and
                for :obj:`attn` if :obj:`graph` is not given.
            batch (torch.Tensor, optional): The graph of each node, :obj:`[N]`. (default: that of :obj:`graph`)
            graph (Graph or Data, optional): Passed on to :obj:`attn`, so that layers share prepared masks.
                (default: :obj:`None`)
            **kwargs: Passed on to :obj:`conv`. :obj:`edge_weight` is passed on to :obj:`attn`, and to :obj:`conv` if it takes
                it. :obj:`edge_weights` and an :obj:`attn` with :obj:`edge_dim` read :obj:`edge_attr`, which is passed on to
                :obj:`conv` if it takes it. Without :obj:`conv`, :obj:`edge_weight` and :obj:`edge_attr` are accepted. The layer
                warns once of edge features that nothing reads.

        Returns:
            torch.Tensor or (torch.Tensor, torch.Tensor): The node features, :obj:`[N, channels]`, and the edge
            features if :obj:`conv` updates them.
        """
        graph = Graph.shared(graph) if isinstance(graph, Data) else graph
        check_layer(graph, self)
        if self.conv is None and (unknown := set(kwargs) - {'edge_weight', 'edge_attr'}):
            raise TypeError(f'TopoGPSConv.forward() got an unexpected keyword argument {min(unknown)!r}')
        if not self._told_of_weights and isinstance(graph, Graph) and 'edge_weight' not in kwargs and graph.is_weighted:
            self._told_of_weights = True
            warn(
                f'edge_weight: got none for {type(self.conv).__name__}, and weights in graph. '
                'Give edge_weight=graph.edge_weight.'
            )
        if not self._told_of_features and kwargs.get('edge_attr') is not None and not torch.compiler.is_compiling():
            self._told_of_features = True
            warn('edge_attr: got edge features, which have no effect here: neither conv nor attn reads them')
        if batch is None:  # norms and attentions of PyG need it too
            batch = getattr(graph, 'batch', None)
        # Norms and attentions of PyG index by this. Gradients of torch's scatter are wrong with int32 indices.
        index = None if batch is None else batch.long()
        hs, edge_attr = [], None
        if self.conv is not None:  # Local MPNN.
            h = self._convolve(x, edge_index, graph, kwargs)
            if isinstance(h, tuple):
                h, edge_attr = h
                hs.append(self._norm(h, self.norm1, index))
            else:
                hs.append(self._residual(h, x, self.norm1, index))
        if self.attn is not None:  # Global attention.
            if self.replaces_attention:
                h = self._attend(x, edge_index, kwargs.get('edge_weight'), kwargs.get('edge_attr'), batch, graph)
            else:
                h = _attend_as_pyg(self.attn, x, index)
            hs.append(self._residual(h, x, self.norm2, index))
        out = sum(hs) if hs else x  # Combine local and global outputs.
        out = self._norm(out + self.mlp(out), self.norm3, index)
        return out if edge_attr is None else (out, edge_attr)

    def _convolve(self, x: Tensor, edge_index: Adj, graph: Graph | None, kwargs: dict[str, Any]) -> Any:
        r"""Returns the output of the local layer, which may be :obj:`(x, edge_attr)`."""
        if isinstance(edge_index, Tensor) and not is_sparse(edge_index):
            edge_index = edge_index.long()
        kwargs = {name: value for name, value in kwargs.items() if name not in self._kept_from_conv}
        h = convolve(graph, self.conv, x, edge_index, **kwargs)
        if isinstance(h, tuple) and (len(h) != 2 or not isinstance(h[1], Tensor | None)):
            kinds = ', '.join(type(item).__name__ for item in h)
            raise ArgumentError('conv', f'a layer that returns ({kinds})', 'layers that return x, or (x, edge_attr)')
        return h

    def _attend(
        self, x: Tensor, edges: Adj, weight: Tensor | None, edge_attr: Tensor | None, batch: Tensor | None, graph: Graph | None
    ) -> Tensor:
        assert self.attn is not None
        edges = graph.edge_index if isinstance(graph, Graph) else edges
        if self.edge_weights is not None:
            graph = self._weighed(x, edge_attr, edges, weight, batch, graph)
            edges, weight, batch = graph.edge_index, None, graph.batch
        features = {'edge_attr': edge_attr} if self._hands_edge_attr_on else {}
        out: Tensor = self.attn(x, edges, edge_weight=weight, batch=batch, graph=graph, **features)
        return out

    @torch.compiler.disable  # weights are checked, and their mask prepared, at every call
    def _weighed(self, x: Tensor, edge_attr: Tensor | None, *given: Any) -> Graph:
        assert self.edge_weights is not None
        return self.edge_weights.weigh(as_graph(x, *given), edge_attr, x)

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


def _attend_as_pyg(attn: Module, x: Tensor, batch: Tensor | None) -> Tensor:
    if x.size(0) == 0:  # to_dense_batch fails without nodes
        return x
    h, mask = to_dense_batch(x, batch)
    if isinstance(attn, PerformerAttention):
        return _performer(attn, h, mask)[mask]
    h, _ = attn(h, h, h, key_padding_mask=~mask, need_weights=False)
    return h[mask]


def _performer(attn: PerformerAttention, x: Tensor, mask: Tensor) -> Tensor:
    r"""PyG's Performer without the keys of padding, which PyG 2.8.1 leaves in the denominator."""
    q, k, v = (lin(x).unflatten(-1, (attn.heads, -1)).transpose(1, 2) for lin in (attn.q, attn.k, attn.v))
    projection = attn.fast_attn
    q, k = (generalized_kernel(heads, projection.projection_matrix, projection.kernel) for heads in (q, k))
    is_key = mask | ~mask.any(1, keepdim=True)  # A graph without nodes has a denominator too: gradients of 1 / 0 are NaN.
    out = linear_attention(q, k * is_key[:, None, :, None], v)
    return attn.dropout(attn.attn_out(out.transpose(1, 2).flatten(2)))


def _takes(conv: Module, argument: str) -> bool:
    parameters = inspect.signature(conv.forward).parameters
    return argument in parameters or any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())


def _replacing(attn: Module | str | None, attn_type: str | None) -> Module | None:
    r"""Returns the attention that replaces PyG's own, or :obj:`None`."""
    if attn is None and attn_type == 'multihead':
        given = "None with attn_type='multihead'"
        accepted = 'an attention layer'
        remedy = "no global attention is attn_type=None, and PyG's softmax attention is attn='pyg', or no argument attn"
        raise ArgumentError('attn', given, accepted, remedy)
    if isinstance(attn, str) and attn != 'pyg':
        raise ArgumentError('attn', repr(attn), 'a module, for example GRFAttention(64, heads=4), and "pyg"')
    return None if isinstance(attn, str) else attn


def _check_layers(
    channels: int,
    conv: MessagePassing | None,
    heads: int,
    attn_type: str | None,
    attn_kwargs: dict[str, Any] | None,
    attn: Module | None,
) -> None:
    r"""Raises an error unless the layers of a GPS layer fit each other."""
    if isinstance(heads, Module):
        raise ArgumentError('heads', type(heads).__name__, 'whole numbers, and attentions as attn=')
    check_size(channels=channels, heads=heads)
    if attn_type not in (None, 'multihead', 'performer'):
        remedy = f'an attention of this package is an argument attn, for example attn=GRFAttention({channels}, heads=4)'
        raise ArgumentError('attn_type', repr(attn_type), 'None, "multihead" and "performer", attentions of PyG', remedy)
    if conv is not None and not isinstance(conv, Module):
        raise ArgumentError(
            'conv', repr(conv), f'None and a local layer, for example GCNConv({channels}, {channels})', instance_of(conv)
        )
    if (attn is not None or attn_type is None) and attn_kwargs:
        raise ArgumentError('attn_kwargs', f'{attn_kwargs!r}, which no attention of PyG uses here', 'None')
    if attn is None:
        if attn_type is not None:
            check_heads(heads, channels)
        return
    if not isinstance(attn, Module):
        raise ArgumentError('attn', repr(attn), f'a module, for example GRFAttention({channels}, heads=4)', instance_of(attn))
    if isinstance(attn, Mask):
        layer = f'MaskedLinearAttention({channels}, heads={attn.heads}, mask={type(attn).__name__}(...))'
        raise ArgumentError('attn', f'the mask {type(attn).__name__}', f'a layer under it, for example {layer}')
    out_channels = getattr(attn, 'out_channels', channels)
    if out_channels != channels:
        raise ArgumentError('attn', f'{out_channels} output channels', f'channels={channels}')
    if attn_type == 'performer':
        raise ArgumentError('attn_type', "'performer' with attn, which replaces it", '"multihead" (the default) and None')
    if heads not in (1, getattr(attn, 'heads', heads)):
        raise ArgumentError('heads', f'{heads} with attn, which has {attn.heads} heads', f'1 and {attn.heads}')


def _check_edge_weights(edge_weights: EdgeWeights, attn: Module | None) -> None:
    r"""Raises an error unless edge weights may be learned for an attention."""
    if not isinstance(edge_weights, EdgeWeights):
        accepted = 'None and an EdgeWeights, such as EdgeWeights(edge_dim=8)'
        raise ArgumentError('edge_weights', repr(edge_weights), accepted, instance_of(edge_weights))
    if attn is None or not getattr(attn, 'learns_weights', True):
        given = f'an EdgeWeights for {type(getattr(attn, "mask", attn)).__name__}, which hands no gradient on to edge weights'
        raise ArgumentError('edge_weights', given, f'None, and attentions under {LEARNS_WEIGHTS}')
