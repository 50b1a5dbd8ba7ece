r"""A bound mask as a matrix of the library `linear_operator <https://github.com/cornellius-gp/linear_operator>`_, on which
GPyTorch builds. It needs the extra :obj:`gp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

try:
    from linear_operator import LinearOperator
    from linear_operator.operators import RootLinearOperator
    from linear_operator.utils.lanczos import lanczos_tridiag
except ImportError as error:
    raise ImportError('to_linear_operator needs linear_operator: install pyg_topomask with its extra [gp]') from error

from pyg_topomask.errors import ArgumentError
from pyg_topomask.operators.description import build, describe
from pyg_topomask.utils.precision import widened

# The number of unit vectors that are multiplied at a time, where entries are computed from products.
_COLUMNS = 64
# The products that look for negative eigenvalues, and the largest relative error that counts as rounding.
_STEPS, _ROUNDING = 20, 1e-4


class MaskLinearOperator(LinearOperator):  # type: ignore[misc]
    r"""Rows and columns of the matrices of a bound mask, see :meth:`~pyg_topomask.operators.MaskOperator.to_linear_operator`.

    Args:
        heads (torch.Tensor): The head of each matrix, in the shape of the batch.
        *tensors (torch.Tensor): The tensors of the mask.
        text (str): What describes the operator beside its tensors.
        size (tuple of int): The numbers of nodes and heads of the mask.
        rows (torch.Tensor, optional): The nodes of the rows. (default: :obj:`None`, all)
        cols (torch.Tensor, optional): The nodes of the columns. (default: :obj:`None`, all)
    """

    def __init__(
        self,
        heads: Tensor,
        *tensors: Tensor,
        text: str,
        size: tuple[int, int],
        rows: Tensor | None = None,
        cols: Tensor | None = None,
    ) -> None:
        super().__init__(heads, *tensors, text=text, size=size, rows=rows, cols=cols)
        self._heads, self._tensors = heads, tensors
        self._operator: Any = build(text, tensors)
        self._num_nodes, self._num_heads = size
        self._rows, self._cols = rows, cols

    def _changed(self, heads: Tensor | None = None, tensors: Sequence[Any] | None = None, **changes: Any) -> MaskLinearOperator:
        heads, tensors = self._heads if heads is None else heads, self._tensors if tensors is None else tensors
        return MaskLinearOperator(heads, *tensors, **{**self._kwargs, **changes})

    @property
    def dtype(self) -> torch.dtype:
        return self._operator.dtype

    def to(self, *args: Any, **kwargs: Any) -> MaskLinearOperator:
        target = torch.empty(0, dtype=self.dtype, device=self.device).to(*args, **kwargs)

        def moved(tensor: Tensor | None) -> Tensor | None:
            # The base class would also convert indices.
            return None if tensor is None else tensor.to(target if tensor.is_floating_point() else target.device)

        tensors = [moved(tensor) for tensor in self._tensors]
        return self._changed(heads=moved(self._heads), tensors=tensors, rows=moved(self._rows), cols=moved(self._cols))

    def _size(self) -> torch.Size:
        return torch.Size([*self._heads.shape, self._nodes(self._rows).numel(), self._nodes(self._cols).numel()])

    def _nodes(self, side: Tensor | None) -> Tensor:
        return torch.arange(self._num_nodes, device=self._heads.device) if side is None else side

    def _matmul(self, rhs: Tensor) -> Tensor:
        if rhs.dim() == 1:
            return self._matmul(rhs.unsqueeze(-1)).squeeze(-1)
        batch = torch.broadcast_shapes(self._heads.shape, rhs.shape[:-2])
        heads, shape = self._heads.expand(batch).flatten(), rhs.shape[-2:]
        x = rhs.expand(*batch, *shape).reshape(heads.numel(), *shape)
        # Matrices that use the same head multiply side by side.
        uses = F.one_hot(heads, self._num_heads)
        slot = uses.cumsum(0).gather(1, heads.unsqueeze(1)).squeeze(1) - 1
        depth = int(uses.sum(0).amax())
        columns = x.new_zeros(self._num_heads, depth, *shape).index_put((heads, slot), x)
        out = self._product(columns.permute(2, 0, 1, 3).flatten(2)).unflatten(2, (depth, shape[1]))
        return out.permute(1, 2, 0, 3)[heads, slot].reshape(*batch, out.size(0), shape[1])

    def _product(self, x: Tensor) -> Tensor:
        r"""Multiplies the matrices of all heads with :obj:`x` of shape :obj:`[num_cols, H, c]`."""
        wide = widened(x)
        if self._cols is not None:
            wide = wide.new_zeros(self._num_nodes, *x.shape[1:]).index_add(0, self._cols, wide)
        with torch.autocast(device_type=x.device.type, enabled=False):
            out = self._operator.apply(wide).to(x.dtype)
        return out if self._rows is None else out.index_select(0, self._rows)

    def _transpose_nonbatch(self) -> MaskLinearOperator:
        tensors, text = describe(self._operator.T)
        return self._changed(text=text, tensors=tensors, rows=self._cols, cols=self._rows)

    def _getitem(self, row_index: Any, col_index: Any, *batch_indices: Any) -> MaskLinearOperator:
        def selected(side: Tensor | None, index: Any) -> Tensor | None:
            return side if isinstance(index, slice) and index == slice(None) else self._nodes(side)[index]

        heads = self._heads[batch_indices] if batch_indices else self._heads
        return self._changed(heads=heads, rows=selected(self._rows, row_index), cols=selected(self._cols, col_index))

    def _get_indices(self, row_index: Tensor, col_index: Tensor, *batch_indices: Tensor) -> Tensor:
        heads = self._heads[batch_indices] if batch_indices else self._heads
        shape = torch.broadcast_shapes(heads.shape, row_index.shape, col_index.shape)
        heads, rows, cols = (index.expand(shape).flatten() for index in (heads, row_index, col_index))
        if rows.unique().numel() < cols.unique().numel():  # a product gives columns
            return self._transpose_nonbatch()._get_indices(col_index, row_index, *batch_indices)
        width = self._nodes(self._cols).numel()
        wanted, place = (heads * width + cols).unique(return_inverse=True)
        order, entries = [place[:0]], [torch.zeros(0, dtype=self.dtype, device=place.device)]
        for start in range(0, wanted.numel(), _COLUMNS):
            chosen = ((place >= start) & (place < start + _COLUMNS)).nonzero().squeeze(1)
            head, col = (index(wanted[start : start + _COLUMNS], width) for index in (torch.floor_divide, torch.remainder))
            units = torch.zeros(width, self._num_heads, col.numel(), dtype=self.dtype, device=col.device)
            units[col, head, torch.arange(col.numel(), device=col.device)] = 1.0
            order.append(chosen)
            entries.append(self._product(units)[rows[chosen], heads[chosen], place[chosen] - start])
        return torch.cat(entries)[torch.cat(order).argsort()].view(shape)

    def _diagonal(self) -> Tensor:
        nodes = self._nodes(self._rows)
        diagonal = self._operator.diagonal() if torch.equal(nodes, self._nodes(self._cols)) else None
        if diagonal is not None:
            return diagonal.t()[self._heads][..., nodes]
        each = torch.arange(nodes.numel(), device=nodes.device)
        return self._get_indices(each, each) if self._heads.dim() == 0 else self[..., each, each]

    @property
    def has_root(self) -> bool:
        r"""Whether an exact :math:`\mathbf{R}` with :math:`\mathbf{M} = \mathbf{R} \mathbf{R}^{\top}` is known."""
        return self._operator.root() is not None and torch.equal(self._nodes(self._rows), self._nodes(self._cols))

    def root_decomposition(self, method: str | None = None) -> LinearOperator:
        root = self._operator.root() if method is None and self.has_root else None
        if root is None:
            return super().root_decomposition(method)
        tensors, text = describe(root)
        return RootLinearOperator(self._changed(text=text, tensors=tensors, cols=None))

    def _expand_batch(self, batch_shape: torch.Size | list[int]) -> MaskLinearOperator:
        return self._changed(heads=self._heads.expand(batch_shape))

    def _unsqueeze_batch(self, dim: int) -> MaskLinearOperator:
        return self._changed(heads=self._heads.unsqueeze(dim))

    def _permute_batch(self, *dims: int) -> MaskLinearOperator:
        return self._changed(heads=self._heads.permute(dims))


@torch.no_grad()
def check_covariance(matrix: LinearOperator) -> None:
    r"""Raises an error for matrices that are not symmetric, or that have a negative eigenvalue that 20 steps of the Lanczos
    algorithm find.
    """
    if matrix.size(-1) == 0:
        return
    generator = torch.Generator().manual_seed(0)
    probe = torch.randn(matrix.size(-1), 1, dtype=torch.float64, generator=generator).to(matrix.device)
    probe = probe.expand(*matrix.batch_shape, -1, -1)
    out, transposed = matrix._matmul(probe), matrix._t_matmul(probe)
    if bool(((out - transposed).norm(dim=-2) > _ROUNDING * out.norm(dim=-2)).any()):
        raise ArgumentError('mask', 'an asymmetric matrix', 'symmetric matrices, such as those of undirected graphs')
    if matrix.size(-1) <= _STEPS:
        tridiagonal = matrix._matmul(torch.eye(matrix.size(-1)).to(probe))
    else:
        options = {'dtype': probe.dtype, 'device': probe.device, 'batch_shape': matrix.batch_shape, 'init_vecs': probe}
        tridiagonal = lanczos_tridiag(matrix._matmul, _STEPS, matrix_shape=matrix.matrix_shape, **options)[1]
    # The extreme eigenvalues of the Lanczos algorithm are between those of the matrix.
    values = torch.linalg.eigvalsh(tridiagonal)
    if bool((values[..., 0] < -_ROUNDING * values.abs().amax(-1)).any()):
        raise ArgumentError(
            'mask',
            f'a matrix with an eigenvalue of at most {float(values.amin()):.4g}',
            'positive semi-definite matrices, such as those of PowerSeriesMask(parameterization="f"), GRFMask, RWGNKMask and '
            'HeatKernelMask',
        )
