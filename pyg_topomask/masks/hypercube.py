r"""The heat kernel of hypercubes as a mask."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.base.kinds import DiffusionMask
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.utils.checks import check_whole


@dataclass(eq=False, repr=False)
class Hamming(MaskOperator):
    r""":math:`t^{\mathrm{Hamming}(i, j)}`, the Kronecker product of the matrices :math:`(1, t; t, 1)` of each bit."""

    base: Tensor
    dim: int

    def apply(self, x: Tensor) -> Tensor:
        base = self.base.to(x.dtype).unsqueeze(-1)
        for bit in range(self.dim):
            pairs = x.unflatten(0, (-1, 2, 2**bit))
            x = (pairs + base * pairs.flip(1)).flatten(0, 2)
        return x

    @property
    def T(self) -> MaskOperator:
        return self


class HypercubeMask(DiffusionMask):
    r"""The heat kernel :math:`\exp(-\lambda \mathbf{L})` of the hypercube :math:`\{0, 1\}^n`, up to a factor that cancels in
    normalized attention, from `"Diffusion Kernels on Graphs and Other Discrete Input Spaces"
    <https://www.ml.cmu.edu/research/dap-papers/kondor-diffusion-kernels.pdf>`_ (Sec. 4.4):

    .. math::
        M_{ij} = \tanh(\lambda)^{\mathrm{Hamming}(i, j)}

    A product takes :math:`n` passes over the nodes, :math:`O(N \log N)`. All terms are positive, so rounding errors do not
    grow. The mask ignores edges.

    Args:
        heads (int): The number of heads. (default: that of the layer, or :obj:`1`)
        dim (int): The number of bits :math:`n`. Every graph has :math:`2^n` nodes, whose coordinates are the binary digits of
            their indices. (default: :obj:`1`)
        lam (float, sequence of float or torch.Tensor): The initial :math:`\lambda`, see
            :class:`~pyg_topomask.masks.HeatKernelMask`. (default: :obj:`1.0`)

    Raises:
        ValueError: If an argument is outside its range, or a graph does not have :math:`2^n` nodes.

    Shapes:
        - **input:** graphs with :math:`2^n` nodes each
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
        - **parameters:** :obj:`raw_lam` :math:`(H)`

    Example:
        >>> from torch_geometric.data import Data
        >>> HypercubeMask(dim=1, lam=0.5)(Data(num_nodes=2)).to_dense().detach()
        tensor([[[1.0000, 0.4621],
                 [0.4621, 1.0000]]])
    """

    form = 'product'
    direction = 'unused'

    def __init__(self, heads: int = 1, dim: int = 1, lam: float | Sequence[float] | Tensor = 1.0) -> None:
        super().__init__(heads, lam)
        check_whole(1, 62, dim=dim)
        self.dim = dim

    def settings(self) -> Hashable:
        return type(self), self.dim

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> None:
        size = graph.segments.sizes
        wrong = ((size != 2**self.dim) & (size != 0)).nonzero()
        if wrong.numel() > 0:
            first = int(wrong[0])
            given = f'{self.dim} for graph {first} of {int(size[first])} nodes'
            raise ArgumentError('dim', given, f'graphs of {2**self.dim} nodes')

    def bind(self, graph: Graph, state: None) -> MaskOperator:
        cost = self.dim * graph.num_nodes
        return Hamming(self.lam.tanh(), self.dim, segments=graph.segments, heads=self.heads, cost=cost)
