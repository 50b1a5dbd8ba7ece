r"""Assertions for your own masks and attention layers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from unittest import mock

import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError, gradcheck
from torch.func import functional_call
from torch_geometric.data import Batch, Data

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.masks import Mask
from pyg_topomask.operators.base import MaskOperator, low_rank_operator
from pyg_topomask.operators.description import build, describe
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.ops.attention_op import replaced
from pyg_topomask.ops.routes.choice import ROUTES

__all__ = ['assert_batch_invariant', 'assert_mask_operator', 'assert_permutation_equivariant']

Layer = Callable[..., Tensor]

FROM_SORTED = SparsePattern.from_sorted
# The largest number of inputs for which each derivative is compared.
_MANY = 100


def assert_mask_operator(mask: Mask, data: Data, tolerance: float = 1e-9, alone: bool = True) -> None:
    r"""Asserts that a mask, bound to the given data, agrees with its dense matrix in float64. The properties are products,
    transpose, sums, scalings, Hadamard products with low rank, entries and their order, factors, separation of the graphs of a
    batch, and every route of masked linear attention. Every parameter must receive a gradient. Gradients must be those of
    finite differences, also with respect to the parameters at their current values. The mask must be the same each time that
    it is bound, from the same state of torch's random numbers.

    Args:
        mask (Mask): The mask.
        data (torch_geometric.data.Data): The graphs, with at most a few dozen nodes.
        tolerance (float): The largest accepted difference, relative to the larger of 1 and the reference.
            (default: :obj:`1e-9`)
        alone (bool): Compare each graph of a :class:`~torch_geometric.data.Batch` with the same graph alone. Masks with fixed
            values for the nodes of one data set do not support this. (default: :obj:`True`)

    Raises:
        AssertionError: If a property fails; the message names it. Errors of the mask itself pass through.

    Example:
        >>> from pyg_topomask.masks import AdjacencyMask
        >>> assert_mask_operator(AdjacencyMask(heads=2), Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3))
    """
    graph = Graph.from_data(data)
    mask = copy.deepcopy(mask).to(graph.device, torch.float64)
    with mock.patch.object(SparsePattern, 'from_sorted', staticmethod(_from_sorted)):
        operator = _bind(mask, graph)
        has = {'sparse': operator.entries is not None, 'low_rank': operator.is_low_rank}
        fits = mask.form is None or (not any(has.values()) if mask.form == 'product' else has[mask.form])
        has_text = f'entries: {has["sparse"]}, with factors: {has["low_rank"]}'
        assert fits, f'form: {mask.form!r} for an operator with {has_text}'
        if (sparse := operator.entries) is not None:
            sparse()
    matrix = operator.to_dense().double()
    assert matrix.isfinite().all(), 'to_dense: the mask has entries that are NaN or infinite'
    heads, num_nodes = operator.heads, operator.segments.num_nodes
    generator = torch.Generator().manual_seed(0)

    def random(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64).to(graph.device)

    def check(name: str, actual: Tensor, expected: Tensor) -> None:
        _assert_close(name, actual, expected, tolerance)

    assert num_nodes == graph.num_nodes, f'num_nodes: got {num_nodes}, the data has {graph.num_nodes}'
    assert matrix.shape == (heads, num_nodes, num_nodes), f'to_dense: got shape {tuple(matrix.shape)}'
    check('to_dense of the same graph, again', _bind(mask, Graph.from_data(data)).to_dense().double(), matrix)
    batch = graph.batch
    assert operator.segments.equal(graph.segments), f'segments: got {operator.segments}, the data has {graph.segments}'
    if batch is not None:
        across = batch.unsqueeze(0) != batch.unsqueeze(1)
        assert not matrix[:, across].any(), 'to_dense: the mask has entries between different graphs'
        for index, graph_data in enumerate(data.to_data_list() if alone and isinstance(data, Batch) else []):
            block = matrix[:, batch == index][:, :, batch == index]
            single = mask(Graph.from_data(graph_data)).to_dense().double()
            # Series truncated at a tolerance may have different lengths.
            _assert_close(f'graph {index} in the batch and alone', block, single, max(tolerance, 1e-6))

    x = random(num_nodes, heads, 3)
    check('matmul', operator.matmul(x), _product(matrix, x))
    check('T', operator.T.matmul(x), _product(matrix.transpose(1, 2), x))
    check('T.T', operator.T.T.matmul(x), _product(matrix, x))
    check('sum', (operator + operator.T).matmul(x), _product(matrix + matrix.transpose(1, 2), x))
    scale = random(heads)
    check('scale', (scale * operator).matmul(x), _product(scale.view(-1, 1, 1) * matrix, x))
    left, right = random(num_nodes, heads, 2), random(num_nodes, heads, 2)
    low_rank = low_rank_operator(graph, left, right)
    check('Hadamard', (operator * low_rank).matmul(x), _product(matrix * low_rank.to_dense(), x))
    bound = operator.magnitude(x.abs())
    assert (_product(matrix, x).abs() <= bound * (1 + 1e-9) + 1e-12).all(), 'magnitude: smaller than the product it bounds'
    _check_gradient('matmul', operator, x)
    _check_parameters(mask, data, operator, x)

    for name, form in (('entries', operator), ('entries of T', operator.T), ('entries of scaled', 2.0 * operator)):
        if (sparse := form.entries) is not None:
            entries = sparse()
            dense = torch.zeros_like(matrix)
            row, col = entries.pattern.row.long(), entries.pattern.col.long()
            dense[:, row, col] = entries.value.expand(heads, -1).double()
            check(name, dense, form.to_dense())
            assert sparse.max_nnz is None or entries.pattern.nnz <= sparse.max_nnz, f'{name}: more than max_nnz'
    if (given := operator.low_rank) is not None:
        factors = (factor.double().expand(-1, heads, -1) for factor in (given.left, given.right))
        dense = torch.einsum('nhr,khr->hnk', *factors)
        check('low_rank', dense if batch is None else dense * ~across, matrix)

    q, k, v = random(num_nodes, heads, 4).abs(), random(num_nodes, heads, 4).abs(), random(num_nodes, heads, 3)
    expected, certain = _dense_attention(q, k, v, matrix)
    for route in ROUTES:
        if (route == 'edges' and operator.entries is None) or (route == 'low_rank' and not operator.is_low_rank):
            continue
        out = masked_linear_attention(q, k, v, operator, route)
        assert out.isfinite().all(), f'route {route}: the output is not finite'
        check(f'route {route}', out[certain], expected[certain])


def assert_permutation_equivariant(
    layer: Layer, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, tolerance: float = 1e-4
) -> None:
    r"""Asserts that permuting the nodes of a graph permutes the rows of the output, and changes nothing else. Layers with
    random numbers per node must be exact, or need a larger tolerance.

    Args:
        layer (callable): Called as :obj:`layer(x, edge_index, edge_weight)`.
        x (torch.Tensor): The node features, :obj:`[N, F]`.
        edge_index (torch.Tensor): The edge indices, :obj:`[2, E]`.
        edge_weight (torch.Tensor, optional): The edge weights, :obj:`[E]`. (default: :obj:`None`)
        tolerance (float): The largest accepted difference, relative to the larger of 1 and the output. (default: :obj:`1e-4`)

    Example:
        >>> from pyg_topomask.nn import MaskedLinearAttention
        >>> layer = MaskedLinearAttention(4)
        >>> assert_permutation_equivariant(layer, torch.randn(3, 4), torch.tensor([[0, 1], [1, 2]]))
    """
    permutation = torch.randperm(x.size(0), generator=torch.Generator().manual_seed(0)).to(x.device)
    inverse = torch.argsort(permutation)
    expected = layer(x, edge_index, edge_weight)[permutation]
    actual = layer(x[permutation], inverse[edge_index], edge_weight)
    _assert_close('permutation equivariance', actual, expected, tolerance)


def assert_batch_invariant(
    layer: Layer, graphs: Sequence[Data], tolerance: float = 1e-4, orders: Sequence[Sequence[int]] | None = None
) -> None:
    r"""Asserts that the output for a graph is the same alone, in any batch, and in any order.

    Args:
        layer (callable): Called as :obj:`layer(x, edge_index, edge_weight, batch, graph=graph)`.
        graphs (list of torch_geometric.data.Data): The graphs, preferably of very different sizes.
        tolerance (float): The largest accepted difference, relative to the larger of 1 and the output. (default: :obj:`1e-4`)
        orders (list of lists of int, optional): The batches to test, as positions in :obj:`graphs`.
            (default: as given, reversed, and each graph twice)

    Raises:
        AssertionError: If an output differs; the message names the graph and the batch.
        ValueError: If there is no graph.

    Example:
        >>> from pyg_topomask.nn import MaskedLinearAttention
        >>> graphs = [Data(x=torch.randn(n, 4), edge_index=torch.empty(2, 0, dtype=torch.long)) for n in (1, 5)]
        >>> assert_batch_invariant(MaskedLinearAttention(4), graphs)
    """
    if not graphs:
        raise ArgumentError('graphs', 'none', 'at least one')
    forwards = list(range(len(graphs)))
    alone = [_call(layer, data) for data in graphs]
    for order in orders or (forwards, forwards[::-1], forwards + forwards):
        batch = Batch.from_data_list([graphs[index] for index in order])
        outputs = _call(layer, batch).split(batch.ptr.diff().tolist())
        for index, actual in zip(order, outputs, strict=True):
            _assert_close(f'batch invariance of graph {index} in {list(order)}', actual, alone[index], tolerance)


def _call(layer: Layer, data: Data) -> Tensor:
    graph = Graph.from_data(data)
    return layer(data.x, graph.edge_index, graph.edge_weight, graph.batch, graph=graph)


def _product(matrix: Tensor, x: Tensor) -> Tensor:
    return torch.einsum('hnk,khc->nhc', matrix, x)


def _dense_attention(q: Tensor, k: Tensor, v: Tensor, matrix: Tensor) -> tuple[Tensor, Tensor]:
    r"""Masked attention with the dense matrix, and the rows whose denominator does not cancel."""
    weight = torch.einsum('nhm,khm->hnk', q, k) * matrix
    total = weight.sum(-1)
    empty = ~weight.bool().any(-1)
    certain = empty | (total.abs() > 1e-6 * weight.abs().sum(-1))
    out = torch.einsum('hnk,khd->hnd', weight, v) / total.masked_fill(empty, 1.0).unsqueeze(-1)
    return out.transpose(0, 1), certain.t()


def _bind(mask: Callable[[Graph], MaskOperator], graph: Graph) -> MaskOperator:
    r"""Binds a mask with the same random numbers each time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return mask(graph)


def _check_gradient(name: str, operator: MaskOperator, x: Tensor) -> None:
    tensors, text = describe(operator)
    learnable = [index for index, tensor in enumerate(tensors) if tensor.is_floating_point()]

    def apply(x: Tensor, *learned: Tensor) -> Tensor:
        product: Tensor = build(text, replaced(tensors, learnable, learned)).apply(x)
        return product

    inputs = [x, *(tensors[index] for index in learnable)]
    inputs = [tensor.detach().double().clone(memory_format=torch.contiguous_format).requires_grad_() for tensor in inputs]
    if x.numel() > 0:
        _assert_gradient(name, apply, inputs)


def _from_sorted(row: Tensor, col: Tensor, num_rows: int, num_cols: int, with_transpose: bool = True) -> SparsePattern:
    r"""Checks the order that :meth:`SparsePattern.from_sorted` needs, which its result no longer shows."""
    ascends = (row.diff() > 0) | ((row.diff() == 0) & (col.diff() > 0))
    if not ascends.all():
        entry = int((~ascends).nonzero()[0])
        first, second = ((int(row[index]), int(col[index])) for index in (entry, entry + 1))
        raise AssertionError(
            f'entries: {second} after {first}, where (row, column) has to ascend: SparsePattern.from_sorted takes sorted, '
            f'distinct entries, and SparsePattern.from_pairs any'
        )
    return FROM_SORTED(row, col, num_rows, num_cols, with_transpose)


def _check_parameters(mask: Mask, data: Data, operator: MaskOperator, x: Tensor) -> None:
    parameters = {name: parameter for name, parameter in mask.named_parameters() if parameter.requires_grad}
    if not parameters or x.numel() == 0:
        return
    total = operator.matmul(x).sum()
    gradients: Sequence[Tensor | None] = [None] * len(parameters)
    if total.requires_grad:
        gradients = torch.autograd.grad(total, list(parameters.values()), allow_unused=True, retain_graph=True)
    without = [name for name, gradient in zip(parameters, gradients, strict=True) if gradient is None]
    assert not without, f'parameters: {", ".join(without)} receive no gradient, and are never learned'

    def apply(*values: Tensor) -> Tensor:
        given = dict(zip(parameters, values, strict=True))
        return _bind(partial(functional_call, mask, given), Graph.from_data(data)).matmul(x)

    inputs = [parameter.detach().clone().requires_grad_() for parameter in parameters.values()]
    _assert_gradient(f'parameters: {", ".join(parameters)}', apply, inputs)


def _assert_gradient(name: str, apply: Callable[..., Tensor], inputs: list[Tensor]) -> None:
    # For many inputs, in random directions, because single inputs would take as many products as there are inputs.
    many = sum(tensor.numel() for tensor in inputs) > _MANY
    try:
        # A GPU sums in any order, so that the same gradient twice differs by rounding.
        gradcheck(apply, inputs, atol=1e-6, nondet_tol=1e-9, fast_mode=many)
    except GradcheckError as error:
        raise AssertionError(f'{name}: wrong gradient') from error


def _assert_close(name: str, actual: Tensor, expected: Tensor, tolerance: float) -> None:
    actual, expected = actual.detach(), expected.detach()
    assert actual.shape == expected.shape, f'{name}: got shape {tuple(actual.shape)}, expected {tuple(expected.shape)}'
    finite = expected.isfinite()
    same = finite.equal(actual.isfinite()) and bool((actual[~finite] == expected[~finite]).all())
    assert same, f'{name}: differs in what is infinite or NaN'
    actual, expected = actual[finite], expected[finite]
    scale = max(1.0, float(expected.abs().max())) if expected.numel() > 0 else 1.0
    difference = float((actual - expected).abs().max()) if expected.numel() > 0 else 0.0
    assert difference <= tolerance * scale, f'{name}: differs by {difference:.2e}, accepted: {tolerance * scale:.2e}'
