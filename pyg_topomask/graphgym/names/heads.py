r"""The heads of GraphGPS that GraphGym lacks: graphs through a pyramid, and nodes or pairs of nodes of several graphs."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module, Sequential
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.head import GNNEdgeHead
from torch_geometric.graphgym.models.layer import MLP, new_layer_config

from pyg_topomask.graphgym.names.lookup import lookup

# Numbers of the features of pairs that are ranked at a time, and the relative and absolute difference of equal scores.
_BUDGET, _EQUAL = 2**24, (1e-5, 1e-7)


class PyramidGraphHead(Module):
    r"""Pools the nodes of each graph and predicts with an MLP that halves the width twice."""

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.pool = lookup('model.graph_pooling', cfg.model.graph_pooling, register.pooling_dict)
        act = lookup('gnn.act', cfg.gnn.act, register.act_dict)
        self.mlp = Sequential(
            Linear(dim_in, dim_in // 2), act(), Linear(dim_in // 2, dim_in // 4), act(), Linear(dim_in // 4, dim_out)
        )

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        batch.graph_feature = self.mlp(self.pool(batch.x, batch.batch, batch.num_graphs))
        return batch.graph_feature, batch.y


class InductiveNodeHead(Module):
    r"""Predicts for every node of a graph, if all nodes of a graph belong to the same split."""

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        config = new_layer_config(dim_in, dim_out, cfg.gnn.layers_post_mp, has_act=False, has_bias=True, cfg=cfg)
        self.mlp = MLP(config)

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        batch = self.mlp(batch)
        return batch.x, batch.y


class InductiveEdgeHead(GNNEdgeHead):  # type: ignore[misc]
    r"""Predicts labels of pairs of nodes, if all pairs of a graph belong to the same split: :obj:`edge_label`, :obj:`[n]`, of
    the pairs :obj:`edge_label_index` of PyG or :obj:`edge_index_labeled` of GraphGPS, :obj:`[2, n]`.

    In evaluation, with labels 0 and 1, it also returns the ranks of the pairs with the label 1, see :func:`ranks_of_pairs`.
    """

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__(dim_in, dim_out)
        # GraphGym's function, by which a copy of the head would decode with the weights of the original.
        self.__dict__.pop('decode_module', None)
        self._ranks = cfg.dataset.task_type == 'classification' and dim_out == 1

    def decode_module(self, first: Tensor, second: Tensor) -> Tensor:
        r"""Returns the scores of pairs from the features of both nodes, by :obj:`model.edge_decoding`."""
        if cfg.model.edge_decoding == 'dot':
            return (first * second).sum(-1)
        if cfg.model.edge_decoding == 'cosine_similarity':
            return F.cosine_similarity(first, second, dim=-1)
        scores: Tensor = self.layer_post_mp(torch.cat([first, second], dim=-1))
        return scores

    def _apply_index(self, batch: Data) -> tuple[Tensor, Tensor]:
        return batch.x[_pairs(batch)], batch.edge_label

    def forward(self, batch: Data) -> Any:
        pred, label = super().forward(batch)
        if self.training or not self._ranks:
            return pred, label
        linked = _pairs(batch)[:, batch.edge_label.view(-1) == 1]
        return pred, label, ranks_of_pairs(batch.x, batch.ptr, linked, self.decode_module)


def name_of_pairs(data: Data) -> str:
    r"""Returns the name of the labelled pairs of several graphs, that of GraphGPS if there are such, or else that of PyG."""
    return 'edge_index_labeled' if 'edge_index_labeled' in data else 'edge_label_index'


def _pairs(batch: Data) -> Tensor:
    pairs: Tensor = batch[name_of_pairs(batch)]
    return pairs


#: The metrics of :func:`ranks_of_pairs`.
RANKS = ('hits@1', 'hits@3', 'hits@10', 'mrr', 'mrr_filtered')


def ranks_of_pairs(x: Tensor, ptr: Tensor, linked: Tensor, score: Any) -> dict[str, Tensor]:
    r"""Returns how high linked pairs :math:`(i, j)` rank among the pairs :math:`(i, k)` of all nodes :math:`k` of the graph, as
    in GraphGPS for the data set PCQM-Contact. The numbers are means over the linked pairs of each graph that has any,
    :obj:`[graphs]`.

    The rank of a pair is 1, plus the number of pairs with a higher score, and half of those with an equal one. Scores are equal
    if they differ by at most :math:`10^{-7}` plus :math:`10^{-5}` of that of the linked pair, because rounding depends on the
    batch.
    :obj:`hits@K` is the share of ranks up to :math:`K`, and :obj:`mrr` the mean of :math:`1 / \text{rank}`. Other linked pairs
    and :math:`k = i` also count there. Without them, it is :obj:`mrr_filtered`, as in `"Where Did the Gap Go? Reassessing the
    Long-Range Graph Benchmark" <https://arxiv.org/abs/2309.00367>`_.

    Args:
        x (torch.Tensor): The features of the nodes, :obj:`[N, C]`.
        ptr (torch.Tensor): The first node of each graph, and :math:`N`, :obj:`[B + 1]`.
        linked (torch.Tensor): The pairs, :obj:`[2, P]`.
        score (callable): Returns the scores of pairs from the features of both nodes, :obj:`[n, C]` each.

    Example:
        >>> x, ptr, linked = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([0, 3]), torch.tensor([[0], [1]])
        >>> ranks_of_pairs(x, ptr, linked, lambda a, b: (a * b).sum(1))['mrr']
        tensor([0.5000])
    """
    source, target = linked.contiguous()
    graph = torch.searchsorted(ptr, source, right=True) - 1
    sizes, size = ptr.diff()[graph], x.size(0)
    numbers = (source * size + target).unique()
    ranks = x.new_ones(2, source.numel(), dtype=torch.float32)  # among all pairs, and without other linked ones
    step = max(1, _BUDGET // max(1, int(sizes.max()) * x.size(1))) if source.numel() > 0 else 1
    for part in torch.arange(source.numel(), device=x.device).split(step):
        count = sizes[part]
        slot = torch.arange(part.numel(), device=x.device).repeat_interleave(count)
        pair = part[slot]
        place = torch.arange(pair.numel(), device=x.device) - (count.cumsum(0) - count).repeat_interleave(count)
        other = ptr[graph[pair]] + place
        found = score(x[source[pair]], x[other]).view(-1).float()
        own = found[other == target[pair]][slot]
        higher, equal = ~(found <= own), torch.isclose(found, own, *_EQUAL)  # of NaN, all others are higher
        above = torch.where(equal, 0.5, higher.float()).masked_fill(other == target[pair], 0)
        known = torch.isin(source[pair] * size + other, numbers) | (other == source[pair])
        ranks.index_add_(1, pair, torch.stack([above, above.masked_fill(known, 0)]))
    raw, filtered = ranks
    values = torch.stack([*((raw <= k).float() for k in (1, 3, 10)), 1 / raw, 1 / filtered])
    counts = torch.bincount(graph, minlength=ptr.numel() - 1)
    means = values.new_zeros(len(values), counts.numel()).index_add(1, graph, values) / counts
    return dict(zip(RANKS, means[:, counts > 0], strict=True))


#: Used for unregistered names. GraphGPS registers these names itself.
HEADS: dict[str, type[Module]] = {
    'san_graph': PyramidGraphHead,
    'inductive_node': InductiveNodeHead,
    'inductive_edge': InductiveEdgeHead,
}


def find_head() -> type[Module]:
    r"""Returns the head :obj:`cfg.gnn.head`."""
    # GraphGym replaces 'default' when it loads a file. A configuration created in Python may still contain it.
    name = cfg.dataset.task if cfg.gnn.head == 'default' else cfg.gnn.head
    return lookup('gnn.head', name, register.head_dict, HEADS)
