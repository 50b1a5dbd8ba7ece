r"""Low-rank masks, and the mask of ones within each graph."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_topomask.capabilities import LowRank, Product
from pyg_topomask.checks import MAX_NODES, check_size, check_whole
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graph import Graph
from pyg_topomask.masks.base import Mask
from pyg_topomask.operators import MaskOperator
from pyg_topomask.structures import MaskStructure


@dataclass(frozen=True)
class LowRankStructure(MaskStructure):
    r""":math:`\mathbf{A} \mathbf{B}^{\top}` within each graph. Tensors: the factors, the graph of each node, and the
    first node of each graph.
    """

    def apply(self, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
        left, right, index, ptr = tensors
        left, right = left.to(x.dtype), right.to(x.dtype)
        out = torch.zeros_like(x)
        for rank in range(left.size(-1)):
            weighted = right[..., rank, None] * x
            if ptr.numel() == 2:
                per_node = weighted.sum(0, keepdim=True)
            else:
                # In float64, because these sums run sequentially over whole graphs.
                sums = x.new_zeros(ptr.numel() - 1, *x.shape[1:], dtype=torch.float64).index_add(0, index, weighted.double())
                per_node = sums.to(x.dtype).index_select(0, index)
            out = out + left[..., rank, None] * per_node
        return out

    def transpose(self, tensors: Sequence[Tensor]) -> tuple[MaskStructure, tuple[Tensor, ...]]:
        left, right, *division = tensors
        return self, (right, left, *division)


def low_rank_operator(graph: Graph, left: Tensor, right: Tensor) -> MaskOperator:
    r"""Binds a low-rank mask: :math:`\mathbf{M} = \mathbf{A} \mathbf{B}^{\top}` within each graph, and 0 between graphs. A
    product costs :math:`O(N r)`.

    Args:
        graph (Graph): The graphs.
        left (torch.Tensor): :math:`\mathbf{A}`, :obj:`[N, heads, r]`, or :obj:`[N, 1, r]` for all heads. Gradients flow to it.
        right (torch.Tensor): :math:`\mathbf{B}`, with one of these shapes.

    Raises:
        ValueError: If the factors do not fit each other or the nodes.

    Example:
        >>> graph = Graph.from_tensors(torch.empty(2, 0, dtype=torch.long), num_nodes=2)
        >>> low_rank_operator(graph, torch.tensor([[[1.0]], [[2.0]]]), torch.tensor([[[3.0]], [[4.0]]])).to_dense()
        tensor([[[3., 4.],
                 [6., 8.]]])
    """
    shapes = tuple(left.shape), tuple(right.shape)
    fit = all(len(shape) == 3 and shape[0] == graph.num_nodes for shape in shapes)
    if not fit or left.size(2) != right.size(2) or len({left.size(1), right.size(1)} - {1}) > 1:
        raise ArgumentError(
            'left, right',
            f'shapes {shapes[0]} and {shapes[1]} for {graph.num_nodes} nodes',
            '[N, heads, r] and [N, 1, r], with equal r',
        )
    tensors = (left, right, graph.segments.index, graph.segments.ptr)
    product = Product(LowRankStructure(), tensors, cost=graph.num_nodes * left.size(-1))
    return MaskOperator(graph.segments, max(left.size(1), right.size(1)), product, LowRank(left, right))


def check_entries(name: str, given: Tensor) -> None:
    r"""Raises a :class:`ValueError` unless all entries of a given tensor are finite."""
    if not given.is_meta and not bool(given.isfinite().all()):
        at = (~given.isfinite()).nonzero()[0].tolist()
        raise ArgumentError(name, f'{given[tuple(at)].item()} at {at}', 'finite numbers')


class GivenMask(Mask):
    r"""Base class of masks of given tensors. Those that are parameters are learned, and reset to what was given."""

    def __init__(self, heads: int = 1) -> None:
        super().__init__(heads)
        self._initial: dict[str, Tensor] = {}

    def _keep(self, name: str, given: Tensor) -> None:
        check_entries(name, given)
        if isinstance(given, torch.nn.Parameter):
            self.register_parameter(name, given)
            self._initial[name] = given.detach().clone()
        else:
            self.register_buffer(name, given.clone(memory_format=torch.contiguous_format))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        for name, initial in self._initial.items():
            getattr(self, name).copy_(initial)


class PackingMask(Mask):
    r"""Unmasked linear attention within each graph of a batch, from `"From block-Toeplitz matrices to differential equations
    on graphs" <https://arxiv.org/abs/2107.07999>`_ (Sec. 3):

    .. math::
        M_{ij} = 1 \text{ if nodes } i \text{ and } j \text{ are in the same graph, else } 0

    A product is a sum over each graph and takes :math:`O(N)`.

    Args:
        heads (int): The number of heads. (default: :obj:`1`)

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`

    Example:
        >>> from torch_geometric.data import Data
        >>> PackingMask()(Data(num_nodes=2)).to_dense()
        tensor([[[1., 1.],
                 [1., 1.]]])
    """

    form = 'low_rank'

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> None:
        return None

    def bind(self, graph: Graph, state: None) -> MaskOperator:
        ones = torch.ones(1, 1, 1, device=graph.device).expand(graph.num_nodes, self.heads, 1)
        return low_rank_operator(graph, ones, ones)


class LowRankMask(GivenMask):
    r"""A low-rank mask with given factors, :math:`\mathbf{M} = \mathbf{A} \mathbf{B}^{\top}` within each graph.

    The factors are tensors or names of node attributes of the data. Attributes are batched and moved with the data.

    A product takes :math:`O(N r)`.

    Args:
        heads (int): The number of heads. (default: :obj:`1`)
        left (torch.Tensor or str): :math:`\mathbf{A}`, :obj:`[N, r]` or :obj:`[N, heads, r]`. (default: :obj:`"mask_left"`)
        right (torch.Tensor or str): :math:`\mathbf{B}`, with one of these shapes. (default: :obj:`"mask_right"`)

    Raises:
        ValueError: If the factors are missing from the data, are not finite, or do not fit each other, the nodes or the heads.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes, two factors :math:`(|\mathcal{V}|, r)` or :math:`(|\mathcal{V}|,
          H, r)`
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`

    Example:
        >>> from torch_geometric.data import Data
        >>> LowRankMask(left=torch.tensor([[1.], [2.]]), right=torch.tensor([[3.], [4.]]))(Data(num_nodes=2)).to_dense()
        tensor([[[3., 4.],
                 [6., 8.]]])
    """

    form = 'low_rank'

    def __init__(self, heads: int = 1, left: Tensor | str = 'mask_left', right: Tensor | str = 'mask_right') -> None:
        super().__init__(heads)
        self._names: dict[str, str] = {}
        for name, factor in (('left', left), ('right', right)):
            if isinstance(factor, str):
                self._names[name] = factor
                continue
            if not isinstance(factor, Tensor):
                raise ArgumentError(name, repr(factor), 'a tensor and the name of an attribute of the data')
            self._keep(name, factor)

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> None:
        for name in self._names:  # once per graph, because it synchronizes with the GPU
            check_entries(name, self._factor(graph, name))

    def bind(self, graph: Graph, state: None) -> MaskOperator:
        left, right = self._factor(graph, 'left'), self._factor(graph, 'right')
        if left.size(-1) != right.size(-1):
            raise ArgumentError('right', f'rank {right.size(-1)} for left of rank {left.size(-1)}', 'equal ranks')
        return low_rank_operator(graph, left, right)

    def _factor(self, graph: Graph, name: str) -> Tensor:
        attribute = self._names.get(name)
        factor: Tensor = getattr(self, name) if attribute is None else graph.attribute(attribute, name)
        if not isinstance(factor, Tensor):
            raise ArgumentError(name, f'{attribute!r} with {type(factor).__name__}', 'a tensor')
        if factor.dim() == 2:
            factor = factor.unsqueeze(1)
        if (
            factor.dim() != 3
            or factor.size(0) != graph.num_nodes
            or factor.size(1) not in (1, self.heads)
            or not factor.size(2)
        ):
            raise ArgumentError(
                name,
                f'shape {tuple(factor.shape)} for {graph.num_nodes} nodes and {self.heads} heads',
                '[N, r] and [N, heads, r] of rank r from 1',
            )
        return factor.expand(-1, self.heads, -1)


class LearnedFeaturesMask(Mask):
    r"""A mask of learned node features, :math:`\mathbf{M} = \Phi \Phi^{\top}` within each graph. It is the ablation "fully
    learnable features" in `"Linear Transformer Topological Masking with Graph Random Features"
    <https://arxiv.org/abs/2410.03462>`_ (App. C.2, Table 3). The mask ignores edges. The features belong to positions in
    the graph, so the nodes of all graphs must have the same fixed order, such as the pixels of images.

    A product takes :math:`O(N \, \text{rank})`.

    Args:
        heads (int): The number of heads. (default: :obj:`1`)
        num_nodes (int): The largest number of nodes of a graph. (default: :obj:`1`)
        rank (int, optional): The number of features. (default: :obj:`num_nodes`, as in the paper)

    Raises:
        ValueError: If a number is below 1, or a graph has more nodes.

    Shapes:
        - **input:** graphs with at most :obj:`num_nodes` nodes each
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
        - **parameters:** :obj:`features` :math:`(\text{num\_nodes}, H, \text{rank})`

    Example:
        >>> from torch_geometric.data import Data
        >>> LearnedFeaturesMask(heads=2, num_nodes=3)(Data(num_nodes=3)).to_dense().shape
        torch.Size([2, 3, 3])
    """

    form = 'low_rank'

    def __init__(self, heads: int = 1, num_nodes: int = 1, rank: int | None = None) -> None:
        super().__init__(heads)
        rank = num_nodes if rank is None else rank
        check_whole(1, MAX_NODES, num_nodes=num_nodes)
        check_size(rank=rank)
        self.features = torch.nn.Parameter(torch.empty(num_nodes, heads, rank))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        # Entries of M start near 1, as in unmasked attention, with noise that distinguishes the features.
        scale = self.features.size(-1) ** -0.5
        torch.nn.init.normal_(self.features, mean=scale, std=0.1 * scale)

    def settings(self) -> Hashable:
        return type(self)

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> Tensor:
        return graph.segments.position

    def bind(self, graph: Graph, state: Tensor) -> MaskOperator:
        if graph.segments.largest > self.features.size(0):
            raise ArgumentError(
                'num_nodes',
                f'{self.features.size(0)} for a graph of {graph.segments.largest} nodes',
                'graphs with at most as many',
            )
        factor = self.features.index_select(0, state)
        return low_rank_operator(graph, factor, factor)

    def extra_repr(self) -> str:
        return f'heads={self.heads}, num_nodes={self.features.size(0)}, rank={self.features.size(-1)}'
