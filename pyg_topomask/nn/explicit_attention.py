r"""Attention as message passing of PyG, which its explainers look at, and attention that can return its coefficients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.inits import reset
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.edges import check_flow, row_and_col
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.nn.edge_terms import EdgeTerms, TermsOfPairs
from pyg_topomask.nn.inputs import (
    ReadsGraph,
    check_features,
    compiled_if_prepared,
    graph_for,
    input_of,
    linear,
    resolve_channels,
)
from pyg_topomask.utils.checks import check_choice, check_probability, check_size


class CoefficientMessages(MessagePassing):
    r"""Base class of attentions as message passing of PyG. They pass messages only where something looks at them, such as
    :class:`torch_geometric.explain.AttentionExplainer`.
    """

    def __init__(self, flow: str) -> None:
        check_flow(flow)
        super().__init__(aggr='add', flow=flow, node_dim=0)

    @property
    def looked_at(self) -> bool:
        r"""Whether an explainer or a hook of the user looks at the messages."""
        if hasattr(self, '_edge_type'):  # which PyG sets around the call
            raise ArgumentError('module', f'{type(self).__name__} in to_hetero_with_bases', 'attentions in to_hetero')
        return len(self._message_forward_hooks) > 0 or bool(self.explain)

    def propagate_coefficients(
        self, graph: Graph, pairs: Tensor, alpha: Tensor, v: Tensor, added: Tensor | None = None
    ) -> Tensor:
        r"""Returns :math:`\sum_j \alpha_{ij} (\mathbf{v}_j + \mathbf{u}_{ij})`, :obj:`[N, H, d]`, by messages. The pairs
        :math:`(i, j)` are distinct and in ascending order, :obj:`[2, nnz]`. :math:`\alpha_{ij}` is :obj:`[nnz, H]`, and
        :math:`\mathbf{u}_{ij}` :obj:`[nnz, H, d]`, or :obj:`None` for zeros.
        """
        # An explainer expects the edges first, in their order. The other pairs follow.
        first, rest = _split(pairs, *graph.row_and_col(self.flow))
        order = torch.cat([first, rest])
        shown = torch.nn.functional.pad(alpha, (0, 0, 0, 1))[order]  # -1 is the row of zeros
        added = None if added is None else torch.nn.functional.pad(added, (0, 0, 0, 0, 0, 1))[order]
        others = torch.stack(row_and_col(pairs[:, rest], self.flow))
        ends = torch.cat([graph.edge_index.long(), others], dim=1)
        out: Tensor = self.propagate(ends, alpha=shown, v=v, added=added, size=(graph.num_nodes, graph.num_nodes))
        return out.to(v.dtype)

    def _set_jittable_templates(self, raise_on_error: bool = False) -> None:
        r"""Generates no code of :meth:`propagate`, which takes PyG 20 ms for each layer, and explains one class alone."""

    def message(self, v_j: Tensor, alpha: Tensor, added: Tensor | None) -> Tensor:
        return alpha.unsqueeze(-1) * (v_j if added is None else v_j + added)

    def explain_message(self, inputs: Tensor, dim_size: int | None) -> Tensor:
        # PyG's explainers learn a weight of each edge. The other pairs follow the edges, and keep their weight.
        if self._edge_mask is None:
            raise ArgumentError('edge_mask', 'None', 'a weight for each edge, which an explainer of PyG sets')
        weight = self._edge_mask.sigmoid() if self._apply_sigmoid else self._edge_mask
        weight = torch.cat([weight, weight.new_ones(inputs.size(0) - weight.size(0))])
        return inputs * weight.view(-1, 1, 1)


def _split(pairs: Tensor, row: Tensor, col: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns the position of the pair of each edge (-1 for missing pairs and for duplicate edges), and the other pairs."""
    if pairs.size(1) == 0:
        return pairs.new_full((row.numel(),), -1), pairs.new_empty(0)
    size = int(torch.cat([pairs.flatten(), row, col]).max()) + 1
    keys = pairs[0] * size + pairs[1]  # ascending
    wanted = row * size + col
    place = torch.searchsorted(keys, wanted).clamp(max=keys.numel() - 1)
    _, inverse = wanted.unique(return_inverse=True)
    order = torch.arange(wanted.numel(), device=keys.device)
    earliest = order.new_full((wanted.numel(),), wanted.numel()).scatter_reduce_(0, inverse, order, 'amin')
    chosen = (keys[place] == wanted) & (earliest[inverse] == order)
    taken = torch.zeros_like(keys, dtype=torch.bool)
    taken[place[chosen]] = True
    return torch.where(chosen, place, -1), (~taken).nonzero().squeeze(1)


class ExplicitAttention(ReadsGraph, CoefficientMessages, ABC):
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
        edge_dim (int, optional): Size of the edge features :obj:`edge_attr`. Pairs that are edges then have a learned bias
            :math:`b_{ij} = \mathbf{w}^{\top} \mathbf{e}_{ij} + c` of the logit, and the value :math:`\mathbf{v}_j +
            \mathbf{W} \mathbf{e}_{ij} + \mathbf{c}`, in each head. Both terms are 0 at first. With several edges of a pair,
            the bias is :math:`\log \operatorname{mean} \exp b`, and the term of the value is their mean, weighted by
            :math:`\exp b`. (default: :obj:`None`, no edge features)

    Shapes:
        - **input:** node features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*, batch vector :math:`(|\mathcal{V}|)` *(optional)*, with :obj:`edge_dim` edge
          features :math:`(|\mathcal{E}|, D)`
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
        edge_dim: int | None = None,
    ) -> None:
        super().__init__(flow)
        out_channels = resolve_channels(channels, out_channels, heads, divide=kq_dim is None or val_dim is None)
        check_probability(dropout=dropout)
        kq_dim = out_channels // heads if kq_dim is None else kq_dim
        val_dim = out_channels // heads if val_dim is None else val_dim
        check_size(kq_dim=kq_dim, val_dim=val_dim)
        check_choice(('linear', 'none'), head_agg=head_agg)
        if head_agg == 'none' and heads * val_dim != out_channels:
            given = f'{val_dim} for {heads} heads and {out_channels} output channels with head_agg="none"'
            raise ArgumentError('val_dim', given, 'out_channels / heads')
        self.channels = channels
        self.out_channels = out_channels
        self.heads = heads
        self.dropout = dropout
        self.lin_q = linear(channels, heads * kq_dim, bias=bias)
        self.lin_k = linear(channels, heads * kq_dim, bias=bias)
        self.lin_v = linear(channels, heads * val_dim, bias=bias)
        self.lin_out = linear(heads * val_dim, out_channels, bias=bias) if head_agg == 'linear' else torch.nn.Identity()
        self.edge_terms = None if edge_dim is None else EdgeTerms(edge_dim, heads, val_dim)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters."""
        super().reset_parameters()
        for module in (self.lin_q, self.lin_k, self.lin_v, self.lin_out, self.edge_terms):
            reset(module)

    @abstractmethod
    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, generator: torch.Generator | None, edge_attr: Tensor | None = None
    ) -> Tensor:
        r"""Returns the output of all heads, :obj:`[N, H, d_v]`, without storing the coefficients if this is cheaper. Only
        layers with :obj:`edge_dim` are given edge features.
        """

    @abstractmethod
    def coefficients(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        graph: Graph,
        generator: torch.Generator | None,
        terms: TermsOfPairs | None = None,
    ) -> tuple[Tensor, Tensor]:
        r"""Returns the distinct pairs :math:`(i, j)` in ascending order, :obj:`[2, nnz]`, and the coefficients
        :math:`\alpha_{ij}`, :obj:`[nnz, H]`. Only layers with :obj:`edge_dim` are given terms.
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
        edge_attr: Tensor | None = None,
    ) -> Any:
        r"""Runs the forward pass. The first arguments are those of :meth:`MaskedLinearAttention.forward
        <pyg_topomask.nn.MaskedLinearAttention.forward>`.

        Args:
            return_attention_weights (bool, optional): If :obj:`True`, also returns :obj:`(edge_index, alpha)`: the pairs
                :obj:`(j, i)` in which target :math:`i` attends to source :math:`j`, :obj:`[2, nnz]`, and the coefficients
                :math:`\alpha_{ij}`, :obj:`[nnz, heads]`. (default: :obj:`None`)
            edge_attr (torch.Tensor, optional): The edge features, :obj:`[E, edge_dim]`, with :obj:`edge_dim`.
                (default: :obj:`None`)
        """
        self._check_edge_attr(edge_index, edge_attr)
        check_features(x, *input_of(self.lin_q))
        q, k, v = (lin(x).unflatten(1, (self.heads, -1)) for lin in (self.lin_q, self.lin_k, self.lin_v))
        look = return_attention_weights or self.looked_at
        features = () if edge_attr is None else (edge_attr,)
        run = partial(self._look if look else self._attend, q, k, v, generator, features)
        # With edge features, it always runs eagerly.
        attend = compiled_if_prepared(run, None if features else graph, getattr(self, 'mask', None))
        out, *seen = attend(x, edge_index, edge_weight, batch, graph)
        out = torch.nn.functional.dropout(self.lin_out(out.flatten(1)), self.dropout, self.training)
        return (out, tuple(seen)) if return_attention_weights else out

    def _check_edge_attr(self, edge_index: Adj | None, edge_attr: Tensor | None) -> None:
        if self.edge_terms is None and edge_attr is not None:
            given = f'edge features for {type(self).__name__} without edge_dim, which reads none'
            raise ArgumentError('edge_attr', given, 'None, and layers with edge_dim=edge_attr.size(1)')
        if self.edge_terms is not None and edge_attr is None:
            raise ArgumentError('edge_attr', None, f'the features of the edges, [E, {input_of(self.edge_terms.lin_bias)[0]}]')
        if edge_attr is not None and is_sparse(edge_index):
            raise ArgumentError('edge_index', 'a sparse matrix', 'the edges in the order of their features, [2, E]')

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, generator: torch.Generator | None, features: tuple[Tensor, ...], *given: Any
    ) -> tuple[Tensor, ...]:
        graph = graph_for(self, *given)
        return (self.attend(q, k, v, graph, generator, *features),)

    def _look(
        self, q: Tensor, k: Tensor, v: Tensor, generator: torch.Generator | None, features: tuple[Tensor, ...], *given: Any
    ) -> tuple[Tensor, ...]:
        r"""Returns the output of all heads, the pairs and the coefficients."""
        graph = graph_for(self, *given)
        if not graph.segments.is_whole:
            raise ArgumentError('return_attention_weights', 'True on a sharded graph', 'False')
        terms = self.terms_of_edges(graph, *features)
        pairs, alpha = self.coefficients(q, k, v, graph, generator, *([] if terms is None else [terms]))
        added = None if terms is None else terms.values_at(pairs)
        return self.propagate_coefficients(graph, pairs, alpha, v, added), pairs.flip(0), alpha

    def terms_of_edges(self, graph: Graph, edge_attr: Tensor | None = None) -> TermsOfPairs | None:
        r"""Returns what edges add to the attention, or :obj:`None` without edge features."""
        return None if self.edge_terms is None or edge_attr is None else self.edge_terms(edge_attr, graph, self.flow)

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.channels}, {self.out_channels}, heads={self.heads})'
