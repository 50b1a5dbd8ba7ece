r"""Attention as message passing of PyG, which its explainers look at."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn.conv import MessagePassing

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.edges import check_flow, row_and_col
from pyg_topomask.graphs.graph import Graph


class CoefficientMessages(MessagePassing):
    r"""Base class of attentions as message passing of PyG. They pass messages only where something looks at them, such as
    :class:`torch_geometric.explain.AttentionExplainer`.

    Args:
        flow (str): The direction of attention along the edges.
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

    def propagate_coefficients(self, graph: Graph, pairs: Tensor, alpha: Tensor, v: Tensor) -> Tensor:
        r"""Returns :math:`\sum_j \alpha_{ij} \mathbf{v}_j`, :obj:`[N, H, d]`, by messages, for distinct pairs :math:`(i, j)` in
        ascending order, :obj:`[2, nnz]`, and :math:`\alpha_{ij}`, :obj:`[nnz, H]`.
        """
        # An explainer expects the edges first, in their order. The other pairs follow.
        first, rest = _split(pairs, *graph.row_and_col(self.flow))
        order = torch.cat([first, rest])
        shown = torch.nn.functional.pad(alpha, (0, 0, 0, 1))[order]  # -1 is the row of zeros
        added = torch.stack(row_and_col(pairs[:, rest], self.flow))
        ends = torch.cat([graph.edge_index.long(), added], dim=1)
        out: Tensor = self.propagate(ends, alpha=shown, v=v, size=(graph.num_nodes, graph.num_nodes))
        return out.to(v.dtype)

    def _set_jittable_templates(self, raise_on_error: bool = False) -> None:
        r"""Generates no code of :meth:`propagate`, which takes PyG 20 ms for each layer, and explains one class alone."""

    def message(self, v_j: Tensor, alpha: Tensor) -> Tensor:
        return alpha.unsqueeze(-1) * v_j

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
