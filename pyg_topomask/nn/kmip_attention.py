r"""Attention to the keys with the largest inner products."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.expander import expander_edges
from pyg_topomask.nn.edge_terms import TermsOfPairs
from pyg_topomask.nn.explicit_attention import ExplicitAttention
from pyg_topomask.operators.forms import Entries
from pyg_topomask.ops.softmax_entries import attend_pairs, pattern_of_pairs, pattern_of_slots
from pyg_topomask.ops.topk.topk_inner_product import BACKENDS, SIMILARITIES, inner_product_features, topk_inner_product
from pyg_topomask.utils.checks import (
    check_choice,
    check_even,
    check_generator,
    check_not_negative,
    check_probability,
    check_whole,
    checked_seed,
)
from pyg_topomask.utils.functorch import unwrapped
from pyg_topomask.utils.options import described_by
from pyg_topomask.utils.random import generator_on

EXTRA_EDGES = (None, 'input', 'expander', 'both')


@described_by(ExplicitAttention)
class KMIPAttention(ExplicitAttention):
    r"""Softmax attention of each node, in each head, to the :math:`k` nodes of its graph whose keys have the largest inner
    products with its query, from `"k-MIP Attention and the Expressive Power of Graph Transformers"
    <https://arxiv.org/abs/2604.03815>`_. Section and equation numbers refer to the thesis "Bringing k-MIP Attention to
    Graph Transformers" (here Sec. 4.1, Eq. 4.2 to 4.8):

    .. math::
        \mathbf{x}'_i = \mathbf{W}_o \sum_{j \in K_i} a_{ij} \mathbf{v}_j, \qquad
        K_i = \underset{j}{\operatorname{argtop}_k} \, \mathbf{q}_i^{\top} \mathbf{k}_j, \qquad
        a_{ij} = \operatorname{softmax}_{j \in K_i} \mathbf{q}_i^{\top} \mathbf{k}_j / \sqrt{d}

    On graphs of at most :math:`k` nodes, this is full attention. The search is exact and takes :math:`O(N^2)` time, see
    :func:`~pyg_topomask.ops.topk_inner_product`. Memory is :math:`O(NHk)`, also in training. Gradients flow through the
    :math:`k` scores, but not through the choice of keys. Second derivatives treat the selected keys as fixed. A returned
    coefficient is 0 if the head has not selected the pair. The layer needs :obj:`edge_index` only for :obj:`extra_edges` and
    :obj:`edge_dim`, and edge weights have no effect. Edge features do not change the choice of keys.

    Args:
        k (int): The number of keys that a query attends to. (default: :obj:`10`)
        backend (str): The search backend, see :func:`~pyg_topomask.ops.topk_inner_product`. (default: :obj:`"auto"`)
        similarity (str): The score (Sec. 7.2): :obj:`"dot"`; :obj:`"cosine"`, the cosine times the length of the query, which
            the softmax does not divide by :math:`\sqrt{d}`; or :obj:`"distance"`, minus half of the squared distance.
            (default: :obj:`"dot"`)
        k_start (int, optional): Start training with this :math:`k`, and change it geometrically to :obj:`k` within
            :obj:`k_steps` backward passes. Keys that are not among the best then learn too (Sec. 7.1). (default: :obj:`None`)
        k_steps (int): The length of this schedule in backward passes; each call of the layer counts. The state dictionary
            stores the progress. :class:`torch.optim.swa_utils.AveragedModel` does not copy it: copy :obj:`step` yourself.
            (default: :obj:`10000`)
        random_fraction (float): In training, also attend to :obj:`round(random_fraction * k)` uniformly sampled keys,
            for the :math:`k` of the step. Duplicates count once. (default: :obj:`0.0`)
        extra_edges (str, optional): Also attend along the edges of the :obj:`"input"` graph, of an :obj:`"expander"` graph,
            or of :obj:`"both"` (Sec. 7.2). (default: :obj:`None`)
        expander_degree (int): The number of neighbors in the expander graph, even. (default: :obj:`6`)
        diversity (float): In training, the weight of a term in the loss: the squared coefficient of variation of the attention
            that the nodes of a graph receive, averaged over graphs and heads (Sec. 7.2). Every backward pass adds its gradient,
            so your training loop must not add it. Gradient scalers and gradient accumulation do not scale it.
            (default: :obj:`0.0`)
        attention_dropout (float): Dropout probability of the coefficients. (default: :obj:`0.0`)
        deterministic (bool): Break ties in favor of the first nodes, with every backend.
            (default: :obj:`False`)
        seed (int): The seed of the expander graph. (default: :obj:`0`)

    Raises:
        ValueError: If a feature is not finite.

    Example:
        >>> attention = KMIPAttention(16, heads=4, k=2)
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        k: int = 10,
        kq_dim: int | None = None,
        val_dim: int | None = None,
        head_agg: str = 'linear',
        backend: str = 'auto',
        similarity: str = 'dot',
        k_start: int | None = None,
        k_steps: int = 10_000,
        random_fraction: float = 0.0,
        extra_edges: str | None = None,
        expander_degree: int = 6,
        diversity: float = 0.0,
        attention_dropout: float = 0.0,
        dropout: float = 0.0,
        bias: bool = True,
        out_channels: int | None = None,
        deterministic: bool = False,
        seed: int = 0,
        flow: str = 'source_to_target',
        edge_dim: int | None = None,
    ) -> None:
        super().__init__(channels, heads, dropout, bias, out_channels, kq_dim, val_dim, head_agg, flow, edge_dim)
        check_probability(attention_dropout=attention_dropout)
        check_whole(1, k=k, k_start=k if k_start is None else k_start, k_steps=k_steps)
        check_choice(BACKENDS, backend=backend)
        check_choice(SIMILARITIES, similarity=similarity)
        check_choice(EXTRA_EDGES, extra_edges=extra_edges)
        check_even(expander_degree=expander_degree)
        check_not_negative(random_fraction=random_fraction, diversity=diversity)
        self.k = k
        self.backend = backend
        self.similarity = similarity
        self.k_start = k_start
        self.k_steps = k_steps
        self.random_fraction = random_fraction
        self.extra_edges = extra_edges
        self.expander_degree = expander_degree
        self.diversity = diversity
        self.attention_dropout = attention_dropout
        self.deterministic = deterministic
        self.seed = checked_seed(seed=seed)
        self.step = 0
        self._k_of_pass = self.current_k

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.step = 0  # of the schedule of k

    @property
    def reads_edges(self) -> bool:
        return self.extra_edges in ('input', 'both') or self.edge_terms is not None

    @property
    def weighted(self) -> bool:
        return False

    @property
    def local(self) -> bool:
        return False

    @property
    def current_k(self) -> int:
        r"""The number of keys at the current step of the schedule."""
        if self.k_start is None or self.step >= self.k_steps:
            return self.k
        return round(float(self.k_start * (self.k / self.k_start) ** (self.step / self.k_steps)))

    def k_of_forward_pass(self, k: Tensor) -> int:
        return self._k_in_training(k) if self.training and self.k_start is not None else self.current_k

    @torch.compiler.disable
    def _k_in_training(self, k: Tensor) -> int:
        if k.requires_grad:  # the schedule advances when keys receive their gradient, once for a repeated forward pass
            k.register_hook(self._advance)
        # Checkpointing computes a forward pass again within the backward pass, which may have advanced the schedule.
        if torch._C._current_graph_task_id() == -1:
            self._k_of_pass = self.current_k
        return self._k_of_pass

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, generator: torch.Generator | None, edge_attr: Tensor | None = None
    ) -> Tensor:
        return topk_attention_on(graph, self, q, k, v, generator, edge_attr)

    def attend_alone(
        self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, generator: torch.Generator | None, edge_attr: Tensor | None
    ) -> Tensor:
        r"""Attends to the nodes of whole graphs."""
        q, k, entries = self._search(q, k, graph, generator)
        terms = self.terms_of_edges(graph, edge_attr)
        dropout = self.attention_dropout if self.training else 0.0
        attend = attend_pairs if terms is None else terms.attend_by_head
        found = attend(q, k, v, entries, dropout)
        return self._with_diversity(found.out, found.alpha, entries, graph)

    def coefficients(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        graph: Graph,
        generator: torch.Generator | None,
        terms: TermsOfPairs | None = None,
    ) -> tuple[Tensor, Tensor]:
        q, k, entries = self._search(q, k, graph, generator)
        chosen = entries.value[0] > 0
        entries = entries if terms is None else terms.times_by_head(entries)[0]
        # No output: the values are propagated later.
        found = attend_pairs(q, k, v[..., :0], entries, self.attention_dropout if self.training else 0.0)
        alpha = self._with_diversity(found.shown.squeeze(0), found.alpha, entries, graph)
        row, col = entries.pattern.row.long()[chosen], entries.pattern.col.long()[chosen]
        node = torch.div(row, self.heads, rounding_mode='floor')
        size = max(graph.num_nodes, 1)
        key, slot = torch.unique(node * size + torch.div(col, self.heads, rounding_mode='floor'), return_inverse=True)
        shared = alpha.new_zeros(key.numel(), self.heads).index_put((slot, row - node * self.heads), alpha[chosen])
        node = torch.div(key, size, rounding_mode='floor')
        return torch.stack([node, key - node * size]), shared

    def features(self, q: Tensor, k: Tensor, graph: Graph) -> tuple[Tensor, Tensor]:
        r"""Returns the queries and keys whose inner products are the scores."""
        size = q.size(-1)
        q, k = inner_product_features(q, k, graph.segments.ptr, self.similarity)
        if q.size(-1) != size:  # attention divides by the square root of this size
            q = q * (q.size(-1) / size) ** 0.5
        return q, k

    def _search(self, q: Tensor, k: Tensor, graph: Graph, generator: torch.Generator | None) -> tuple[Tensor, Tensor, Entries]:
        r"""Returns the queries and keys whose inner products are the scores, and the pairs of the attention."""
        check_generator(generator)
        q, k = self.features(q, k, graph)
        wanted = self.k_of_forward_pass(k)
        num = min(wanted, max(graph.segments.largest, 1))
        arguments = q.detach(), k.detach(), num, graph.segments.ptr_of_host, self.backend
        if torch.compiler.is_compiling():  # the search then does not read values
            index, valid = topk_inner_product(*arguments, deterministic=self.deterministic)
        else:
            try:
                index, valid = topk_inner_product(*arguments, deterministic=self.deterministic)
            except ArgumentError as error:
                if error.argument not in ('q', 'k'):
                    raise
                given = f'features with {error.given} in their {"queries" if error.argument == "q" else "keys"}'
                raise ArgumentError('x', given, f'features that make {error.accepted}') from error
        draws = round(self.random_fraction * wanted) if self.training else 0
        entries = self._entries(index, valid, draws, graph, generator)
        return q, k, entries

    def _advance(self, grad: Tensor) -> None:
        self.step += 1

    def _entries(self, index: Tensor, valid: Tensor, draws: int, graph: Graph, generator: torch.Generator | None) -> Entries:
        r"""Returns the pairs of the search and the added pairs."""
        if draws == 0 and self.extra_edges is None:
            return pattern_of_slots(index, valid)
        if unwrapped(index).dim() > 3:  # the pairs of each element are different ones, and as many as there are
            raise ArgumentError('x', 'a batch of torch.func.vmap', 'one without random_fraction and extra_edges')
        num_nodes, heads, _ = index.shape
        head = torch.arange(heads, device=index.device)
        row = (torch.arange(num_nodes, device=index.device).unsqueeze(1) * heads + head).unsqueeze(2)
        rows, cols = [row.expand_as(index)[valid]], [(index * heads + head.unsqueeze(1))[valid]]
        if draws > 0:
            first, count = graph.segments.first, graph.segments.sizes[graph.segments.index]
            generator = generator_on(index.device, generator)
            drawn = torch.rand(num_nodes, heads, draws, generator=generator, device=index.device, dtype=torch.float64)
            node = first.view(-1, 1, 1) + (drawn * count.view(-1, 1, 1)).long()
            rows.append(row.expand_as(node).flatten())
            cols.append((node * heads + head.unsqueeze(1)).flatten())
        for edge in self._edges(graph):
            ends = edge.unsqueeze(2) * heads + head
            rows.append(ends[0].flatten())
            cols.append(ends[1].flatten())
        return pattern_of_pairs(torch.cat(rows), torch.cat(cols), num_nodes * heads)

    def _edges(self, graph: Graph) -> list[Tensor]:
        edges = []
        if self.extra_edges in ('input', 'both'):
            edges.append(torch.stack(graph.row_and_col(self.flow)))
        if self.extra_edges in ('expander', 'both'):
            settings = 'expander', self.expander_degree, self.seed
            edges.append(graph.cached(settings, lambda: expander_edges(graph, self.expander_degree, self.seed)))
        return edges

    def _with_diversity(self, x: Tensor, alpha: Tensor, entries: Entries, graph: Graph) -> Tensor:
        r"""Returns :obj:`x`, and adds the gradient of the diversity term in training."""
        if not self.training or self.diversity == 0:
            return x
        return _AddLoss.apply(x, self.diversity * self._unevenness(alpha, entries, graph))

    def _unevenness(self, alpha: Tensor, entries: Entries, graph: Graph) -> Tensor:
        r"""Returns the mean squared coefficient of variation of the attention that nodes receive."""
        segments = graph.segments
        received = alpha.new_zeros(graph.num_nodes * self.heads).index_add(0, entries.pattern.col.long(), alpha.squeeze(0))
        # The nodes of a graph receive 1 on average.
        variance = (received.view(-1, self.heads) - 1).square().sum(1)
        graphs = (segments.sizes > 0).sum().clamp(min=1)
        return (variance / segments.sizes[segments.index]).sum() / (graphs * self.heads)

    def get_extra_state(self) -> Tensor:
        return torch.tensor(self.step)

    def set_extra_state(self, state: Tensor) -> None:
        self.step = round(float(state))  # averages of states may be rounded

    def __repr__(self) -> str:
        return f'{super().__repr__()[:-1]}, k={self.k})'


@singledispatch
def topk_attention_on(
    graph: Graph,
    layer: KMIPAttention,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    generator: torch.Generator | None,
    edge_attr: Tensor | None,
) -> Tensor:
    r"""The attention of a layer. On a graph of several processes, it is another."""
    return layer.attend_alone(q, k, v, graph, generator, edge_attr)


class _AddLoss(torch.autograd.Function):
    r"""Returns the first argument. Its backward pass also adds the gradient of the second argument."""

    generate_vmap_rule = True

    @staticmethod
    def forward(out: Tensor, loss: Tensor) -> Tensor:
        return out.view_as(out)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.kind = inputs[1].dtype, inputs[1].device

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        dtype, device = ctx.kind
        return grads[0], torch.ones((), dtype=dtype, device=device)
