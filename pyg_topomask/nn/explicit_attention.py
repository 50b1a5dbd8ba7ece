r"""Attention that can return its coefficients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.inits import reset
from torch_geometric.typing import Adj

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.flow import check_flow, row_and_col
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.nn.inputs import ReadsGraph, check_features, compiled_if_prepared, graph_for, resolve_channels
from pyg_topomask.nn.linear import input_of, linear
from pyg_topomask.utils.checks import check_choice, check_probability, check_size


class ExplicitAttention(ReadsGraph, MessagePassing, ABC):
    r"""Base class of multi-head attention over a sparse set of pairs of nodes. :obj:`return_attention_weights=True` also
    returns its coefficients. :class:`torch_geometric.explain.AttentionExplainer` can read them.

    Args:
        channels (int): Size of each input sample; :obj:`-1` is inferred at the first call, and needs :obj:`out_channels`.
        heads (int): The number of heads.
        dropout (float): Dropout probability of the output. (default: :obj:`0.0`)
        bias (bool): Learn additive biases in the projections. (default: :obj:`True`)
        out_channels (int, optional): Size of each output sample. (default: :obj:`channels`)
        kq_dim (int, optional): Size of the queries and keys of a head. (default: :obj:`out_channels // heads`)
        val_dim (int, optional): Size of the values of a head. (default: :obj:`out_channels // heads`)
        head_agg (str): :obj:`"linear"` maps the values of all heads to the output; :obj:`"none"` concatenates them.
            (default: :obj:`"linear"`)
        flow (str): The direction of attention along the edges. With :obj:`"source_to_target"`, as in PyG, the target of an
            edge attends to its source. With :obj:`"target_to_source"`, the source attends to the target.
            (default: :obj:`"source_to_target"`)

    Shapes:
        - **input:** node features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*, batch vector :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** node features :math:`(|\mathcal{V}|, F_{out})`, or with :obj:`return_attention_weights=True`
          :math:`((|\mathcal{V}|, F_{out}), ((2, nnz), (nnz, H)))`
    """

    def __init__(
        self,
        channels: int,
        heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        out_channels: int | None = None,
        kq_dim: int | None = None,
        val_dim: int | None = None,
        head_agg: str = 'linear',
        flow: str = 'source_to_target',
    ) -> None:
        check_flow(flow)
        super().__init__(aggr='add', flow=flow, node_dim=0)
        out_channels = resolve_channels(channels, out_channels, heads, divide=kq_dim is None or val_dim is None)
        check_probability(dropout=dropout)
        kq_dim = out_channels // heads if kq_dim is None else kq_dim
        val_dim = out_channels // heads if val_dim is None else val_dim
        check_size(kq_dim=kq_dim, val_dim=val_dim)
        check_choice(('linear', 'none'), head_agg=head_agg)
        if head_agg == 'none' and heads * val_dim != out_channels:
            raise ArgumentError(
                'val_dim',
                f'{val_dim} for {heads} heads and {out_channels} output channels with head_agg="none"',
                'out_channels / heads',
            )
        self.channels = channels
        self.out_channels = out_channels
        self.heads = heads
        self.dropout = dropout
        self.lin_q = linear(channels, heads * kq_dim, bias=bias)
        self.lin_k = linear(channels, heads * kq_dim, bias=bias)
        self.lin_v = linear(channels, heads * val_dim, bias=bias)
        self.lin_out = linear(heads * val_dim, out_channels, bias=bias) if head_agg == 'linear' else torch.nn.Identity()

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters."""
        super().reset_parameters()
        for module in (self.lin_q, self.lin_k, self.lin_v, self.lin_out):
            reset(module)

    @abstractmethod
    def attend(self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, generator: torch.Generator | None) -> Tensor:
        r"""Returns the output of all heads, :obj:`[N, H, d_v]`, without storing the coefficients if this is cheaper."""

    @abstractmethod
    def coefficients(
        self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor]:
        r"""Returns the distinct pairs :math:`(i, j)` in ascending order, :obj:`[2, nnz]`, and the coefficients
        :math:`\alpha_{ij}`, :obj:`[nnz, H]`.
        """

    def forward(
        self,
        x: Tensor,
        edge_index: Adj | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        graph: Graph | Data | None = None,
        generator: torch.Generator | None = None,
        return_attention_weights: bool | None = None,
    ) -> Any:
        r"""Runs the forward pass. The first arguments are those of :meth:`MaskedLinearAttention.forward
        <pyg_topomask.nn.MaskedLinearAttention.forward>`.

        Args:
            return_attention_weights (bool, optional): If :obj:`True`, also returns :obj:`(edge_index, alpha)`: the pairs
                :obj:`(j, i)` in which target :math:`i` attends to source :math:`j`, :obj:`[2, nnz]`, and the coefficients
                :math:`\alpha_{ij}`, :obj:`[nnz, heads]`. (default: :obj:`None`)
        """
        check_features(x, *input_of(self.lin_q))
        q, k, v = (lin(x).unflatten(1, (self.heads, -1)) for lin in (self.lin_q, self.lin_k, self.lin_v))
        looked_at = return_attention_weights or len(self._message_forward_hooks) > 0 or self.explain
        attend = compiled_if_prepared(self._look if looked_at else self._attend, graph, getattr(self, 'mask', None))
        out, *seen = attend(q, k, v, generator, x, edge_index, edge_weight, batch, graph)
        out = torch.nn.functional.dropout(self.lin_out(out.flatten(1)), self.dropout, self.training)
        return (out, tuple(seen)) if return_attention_weights else out

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, generator: torch.Generator | None, *given: Any) -> tuple[Tensor, ...]:
        return (self.attend(q, k, v, graph_for(self, *given), generator),)

    def _look(self, q: Tensor, k: Tensor, v: Tensor, generator: torch.Generator | None, *given: Any) -> tuple[Tensor, ...]:
        r"""Returns the output of all heads, the pairs and the coefficients."""
        graph = graph_for(self, *given)
        if not graph.segments.is_whole:
            raise ArgumentError('return_attention_weights', 'True on a sharded graph', 'False')
        (row, col), alpha = self.coefficients(q, k, v, graph, generator)
        pairs = torch.stack([col, row])
        # An explainer expects the edges first, in their order. The other pairs follow.
        first, rest = _split(pairs, *graph.row_and_col(self.flow))
        order = torch.cat([first, rest])
        shown = torch.nn.functional.pad(alpha, (0, 0, 0, 1))[order]  # -1 is the row of zeros
        added = torch.stack(row_and_col(torch.stack([row, col])[:, rest], self.flow))
        ends = torch.cat([graph.edge_index.long(), added], dim=1)
        # Not self.propagate, for which PyG may generate code that explains the class above alone.
        size = (graph.num_nodes, graph.num_nodes)
        out = MessagePassing.propagate(self, ends, alpha=shown, v=v, size=size).to(v.dtype)
        return out, pairs, alpha

    def message(self, v_j: Tensor, alpha: Tensor) -> Tensor:
        return alpha.unsqueeze(-1) * v_j

    def explain_message(self, inputs: Tensor, dim_size: int | None) -> Tensor:
        # PyG's explainers learn a weight of each edge. The other pairs follow the edges, and keep their weight.
        if self._edge_mask is None:
            raise ArgumentError('edge_mask', 'None', 'a weight for each edge, which an explainer of PyG sets')
        weight = self._edge_mask.sigmoid() if self._apply_sigmoid else self._edge_mask
        weight = torch.cat([weight, weight.new_ones(inputs.size(0) - weight.size(0))])
        return inputs * weight.view(-1, 1, 1)

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.channels}, {self.out_channels}, heads={self.heads})'


def _split(pairs: Tensor, row: Tensor, col: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns the position of the pair of each edge (-1 for missing pairs and for duplicate edges), and the other pairs."""
    if pairs.size(1) == 0:
        return pairs.new_full((row.numel(),), -1), pairs.new_empty(0)
    size = int(torch.cat([pairs.flatten(), row, col]).max()) + 1
    keys = pairs[1] * size + pairs[0]  # ascending: entries are in order of row and column
    wanted = row * size + col
    place = torch.searchsorted(keys, wanted).clamp(max=keys.numel() - 1)
    _, inverse = wanted.unique(return_inverse=True)
    order = torch.arange(wanted.numel(), device=keys.device)
    earliest = order.new_full((wanted.numel(),), wanted.numel()).scatter_reduce_(0, inverse, order, 'amin')
    chosen = (keys[place] == wanted) & (earliest[inverse] == order)
    taken = torch.zeros_like(keys, dtype=torch.bool)
    taken[place[chosen]] = True
    return torch.where(chosen, place, -1), (~taken).nonzero().squeeze(1)
