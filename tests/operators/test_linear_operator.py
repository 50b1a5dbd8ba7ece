"""Masks as matrices of linear_operator, compared with dense matrices."""

from __future__ import annotations

import importlib
import pickle
import sys
from typing import Any
from unittest import TestCase

import numpy as np
import pytest
import torch
from graphs import GRAPHS, no_edges, ring, small_digraph, small_graph
from grids import covering
from oracles import power_series, weight_matrix
from torch import Tensor
from torch_geometric.data import Batch, Data

pytest.importorskip('linear_operator')

from linear_operator.test.linear_operator_test_case import LinearOperatorTestCase, RectangularLinearOperatorTestCase

from pyg_topomask.masks import (
    GRFMask,
    HeatKernelMask,
    Mask,
    PackingMask,
    PowerSeriesMask,
    RWGNKMask,
)
from pyg_topomask.operators.linear_operator import MaskLinearOperator

F = np.array([1.0, 0.6, 0.3])
NODES, OTHERS = torch.tensor([0, 3, 5, 3]), torch.tensor([4, 0])

MASKS = {
    'grf': lambda heads: GRFMask(heads, num_walks=6),
    'rwgnk': lambda heads: RWGNKMask(heads),
    'rwgnk_exact': lambda heads: RWGNKMask(heads, num_walks=None),
    'series': lambda heads: PowerSeriesMask(heads, 4, parameterization='f'),
    'heat': lambda heads: HeatKernelMask(heads),
    'sum': lambda heads: GRFMask(heads) + 0.5 * HeatKernelMask(heads),
    'product': lambda heads: GRFMask(heads) * PackingMask(heads),
}


def weighted_graph() -> Data:
    """Its eigenvalues are distinct, which Lanczos roots need."""
    half = torch.tensor([0.5, 2.0, 1.0, 0.7, 0.3, 1.5, 1.1], dtype=torch.float64)
    return Data(edge_index=small_graph().edge_index, edge_weight=torch.cat([half, half]), num_nodes=6)


def series(heads: int) -> tuple[Any, Tensor]:
    r"""A matrix of linear_operator, and the squares of F(W) in plain NumPy, with F scaled by the heads."""
    scale = np.arange(1, heads + 1)
    mask = PowerSeriesMask(heads, 4, 'hops', 'f').double()
    with torch.no_grad():
        mask.coefficients.copy_(torch.from_numpy(scale[:, None] * F).log() if mask.positive else torch.from_numpy(scale * F))
    root = power_series(weight_matrix(weighted_graph(), 'sym'), F)
    dense = torch.from_numpy(np.stack([(root @ root) * factor**2 for factor in scale]))
    return mask(weighted_graph()).to_linear_operator(), dense[0] if heads == 1 else dense


class TestAsLinearOperator(LinearOperatorTestCase, TestCase):
    """The library's own tests of a batch of matrices."""

    seed = 0
    # The estimate of traces is random, and the determinants are near 1.
    tolerances = {**LinearOperatorTestCase.tolerances, 'logdet': {'rtol': 0.2, 'atol': 0.1}}

    def create_linear_op(self) -> Any:
        return series(3)[0].float().detach().requires_grad_(True)

    def evaluate_linear_op(self, linear_op: Any) -> Tensor:
        eye = torch.eye(6).unsqueeze(1).expand(-1, 3, -1)
        return linear_op._operator.apply(eye).permute(1, 0, 2)


class TestAsRectangle(RectangularLinearOperatorTestCase, TestCase):
    """The library's own tests of rows and columns of one matrix; the rows repeat a node."""

    seed = 0

    def create_linear_op(self) -> Any:
        return series(1)[0].float().detach()[NODES][:, 1:4].requires_grad_(True)

    def evaluate_linear_op(self, linear_op: Any) -> Tensor:
        eye = torch.eye(6).unsqueeze(1)
        return linear_op._operator.apply(eye).permute(1, 0, 2)[0][NODES][:, 1:4]


@pytest.mark.parametrize('heads', [1, 3])
def test_entries_are_those_of_the_equation(heads: int) -> None:
    matrix, dense = series(heads)
    assert matrix.shape == dense.shape
    torch.testing.assert_close(matrix.to_dense(), dense)
    torch.testing.assert_close(matrix[..., NODES, :][..., OTHERS].to_dense(), dense[..., NODES, :][..., OTHERS])
    torch.testing.assert_close(matrix.diagonal(), dense.diagonal(dim1=-2, dim2=-1))


def test_a_row_takes_one_product(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = HeatKernelMask().double()(Data(edge_index=ring(200), num_nodes=200)).to_linear_operator()
    dense, calls, product = matrix.to_dense(), [], MaskLinearOperator._product
    monkeypatch.setattr(MaskLinearOperator, '_product', lambda self, x: calls.append(x) or product(self, x))
    row = torch.tensor([3]).expand(200)
    torch.testing.assert_close(matrix[row, torch.arange(200)], dense[3])
    assert [x.size(2) for x in calls] == [1]
    each = torch.arange(200)  # more columns than are multiplied at a time
    torch.testing.assert_close(matrix[each, each.flip(0)], dense[each, each.flip(0)])


@pytest.mark.parametrize(('name', 'heads'), covering(MASKS, [1, 2]))
def test_masks_solve_transpose_and_have_diagonals(name: str, heads: int) -> None:
    operator = MASKS[name](heads).double()(weighted_graph())
    matrix, dense = operator.to_linear_operator(), operator.to_dense()
    dense = dense[0] if heads == 1 else dense
    torch.testing.assert_close(matrix.to_dense(), dense)
    torch.testing.assert_close(matrix.mT.to_dense(), dense.mT)
    for sub, expected in ((matrix, dense), (matrix[..., NODES, :][..., NODES], dense[..., NODES, :][..., NODES])):
        torch.testing.assert_close(sub.diagonal(), expected.diagonal(dim1=-2, dim2=-1))
    y = torch.randn(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    noisy = torch.linalg.solve(dense + 0.1 * torch.eye(6), y)
    torch.testing.assert_close(matrix.add_jitter(0.1).solve(y), noisy)
    assert matrix.dtype == torch.float64


@pytest.mark.parametrize('mask', [GRFMask(2, num_walks=6), RWGNKMask(2)], ids=['grf', 'rwgnk'])
def test_walks_have_an_exact_root(mask: Mask) -> None:
    matrix = mask.double()(weighted_graph()).to_linear_operator()
    for each in (matrix, matrix.detach(), matrix[..., NODES, :][..., NODES]):
        root = each.root_decomposition().root.to_dense()
        torch.testing.assert_close(root @ root.mT, each.to_dense())
        assert root.size(-1) == 6
    # As many other nodes in the columns as in the rows.
    other = matrix[..., NODES, :][..., NODES.flip(0)]
    assert not other.has_root
    torch.testing.assert_close(other.diagonal(), other.to_dense().diagonal(dim1=-2, dim2=-1))


@pytest.mark.parametrize('name', ['grf', 'series', 'heat', 'rwgnk_exact'])
def test_gradients_of_conjugate_gradients_reach_the_mask(name: str) -> None:
    import linear_operator

    gradients, y = [], torch.linspace(-1, 1, 4, dtype=torch.float64)
    for dense in (True, False):
        mask = MASKS[name](1).double()
        operator = mask(weighted_graph())
        if dense:
            matrix = operator.to_dense()[0][NODES[:3]][:, NODES[:3]]
            (y[:3] @ torch.linalg.solve(matrix + 0.3 * torch.eye(3), y[:3])).backward()
        else:
            sub = operator.to_linear_operator()[NODES[:3]][:, NODES[:3]]
            with linear_operator.settings.max_cholesky_size(0), linear_operator.settings.cg_tolerance(1e-12):
                (y[:3] @ sub.add_jitter(0.3).solve(y[:3])).backward()
        gradients.append([parameter.grad for parameter in mask.parameters()])
    assert gradients[0]
    for expected, actual in zip(*gradients, strict=True):
        assert expected.abs().sum() > 0
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize('name', ['no_edges', 'one_node', 'disconnected', 'batch'])
def test_graphs_of_all_kinds(name: str) -> None:
    graphs = [small_graph(), Data(edge_index=no_edges(), num_nodes=1), small_graph()]
    data = Batch.from_data_list(graphs) if name == 'batch' else GRAPHS[name]()
    operator = PowerSeriesMask(2, parameterization='f').double()(data)
    torch.testing.assert_close(operator.to_linear_operator().to_dense(), operator.to_dense())


def test_no_nodes() -> None:
    matrix = PowerSeriesMask(2, parameterization='f')(GRAPHS['empty']()).to_linear_operator()
    assert matrix.shape == (2, 0, 0)
    assert matrix.matmul(torch.ones(2, 0, 3)).shape == (2, 0, 3)


def test_dtype_device_and_copies() -> None:
    matrix = GRFMask(2)(small_graph()).to_linear_operator()
    assert matrix.dtype == torch.float32
    assert matrix.to(torch.float64).dtype == torch.float64
    assert matrix.to('meta').device.type == 'meta'
    assert matrix.half().matmul(torch.ones(6, 1, dtype=torch.half)).dtype == torch.half
    torch.testing.assert_close(pickle.loads(pickle.dumps(matrix.detach())).to_dense(), matrix.to_dense().detach())
    with torch.autocast('cpu', dtype=torch.bfloat16):
        torch.testing.assert_close(matrix.matmul(torch.eye(6)), matrix.to_dense())


def test_no_covariances(subtests: pytest.Subtests) -> None:
    for mask, data, given in [
        (GRFMask(asymmetric=True), small_graph, 'an asymmetric matrix'),
        (GRFMask(independent_ensembles=True), small_graph, 'an asymmetric matrix'),
        (PowerSeriesMask(normalization='rw'), small_graph, 'an asymmetric matrix'),
        (PowerSeriesMask(2), small_digraph, 'an asymmetric matrix'),
        (PowerSeriesMask(1, 1, torch.tensor([0.0, 1.0])), small_graph, 'a matrix with an eigenvalue of at most -0.6'),
        (-1.0 * HeatKernelMask(), small_graph, 'a matrix with an eigenvalue of at most -1'),
        (HeatKernelMask(2) * torch.tensor([1.0, -1.0]), small_graph, 'a matrix with an eigenvalue of at most -1'),
    ]:
        with subtests.test(mask=mask, data=data, given=given):
            with pytest.raises(ValueError, match=f'^mask: got {given}'):
                mask(data()).to_linear_operator()
            operator = mask.double()(data())
            matrix, dense = operator.to_linear_operator(check=False), operator.to_dense()
            torch.testing.assert_close(matrix.mT.to_dense(), dense[0].mT if operator.heads == 1 else dense.mT)


@pytest.mark.parametrize(
    ('library', 'module'),
    [('linear_operator', 'operators.linear_operator'), ('gpytorch', 'apps.kernels'), ('sklearn', 'apps.kernels')],
)
def test_missing_library_names_the_extra(library: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f'pyg_topomask.{module}', raising=False)
    with pytest.raises(ImportError, match=rf'needs {library}: install pyg_topomask with its extra \[gp\]'):
        importlib.import_module(f'pyg_topomask.{module}')
