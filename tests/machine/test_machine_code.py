"""Machine code beside the plain versions that it stands for: outputs and gradients, in threads, and what Numba keeps of it."""

import ast
import hashlib
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from graphs import no_edges, random_tree, ring, uneven_graphs
from grids import covering
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask import machine
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.machine import backend
from pyg_topomask.masks import GRFMask, HeatKernelMask, HopMask, Mask, PowerSeriesMask, RWGNKMask, SinDegreeMask, TreeMask
from pyg_topomask.ops import masked_linear_attention, masked_softmax_attention
from pyg_topomask.ops.topk.topk_inner_product import topk_inner_product
from pyg_topomask.transforms import AddSpanningForest, PrepareMasks
from pyg_topomask.walks.pairs import PairLoads, blocks_of_sums

pytest.importorskip('numba', reason='Numba is not installed')


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Turns machine code off."""

    def turn_off() -> None:
        monkeypatch.setattr(backend, 'has_numba', lambda: False)

    return turn_off


def batch() -> Graph:
    """Undirected graphs of several sizes, one of a node and one of none, and weights of both signs."""
    torch.manual_seed(0)
    graphs = [
        Data(edge_index=ring(size) if size > 1 else torch.empty(2, 0).long(), num_nodes=size) for size in (3, 0, 40, 1, 17)
    ]
    return Graph.from_data(Batch.from_data_list(graphs))


def trees(shape: str, size: int) -> Graph:
    """Trees with lengths of edges: one of a shape, one of a node, a graph of none, and one of two trees."""
    generator = torch.Generator().manual_seed(0)
    parts = (
        (shape_of(shape, size), size),
        (no_edges(), 1),
        (no_edges(), 0),
        (torch.cat([random_tree(8), random_tree(12) + 8], 1), 20),
    )
    graphs = [
        Data(edge_index=edges, num_nodes=nodes, edge_weight=torch.rand(edges.size(1), dtype=torch.float64, generator=generator))
        for edges, nodes in parts
    ]
    batch = Batch.from_data_list(graphs)
    batch.edge_weight.requires_grad_()
    return Graph.from_data(batch)


def shape_of(shape: str, size: int) -> Tensor:
    """A random tree, a path, or a path with a leaf at each node."""
    node = torch.arange(1, size)
    if shape == 'random':
        return random_tree(size)
    return torch.stack([node - 1 if shape == 'path' else torch.where(node < size // 2, node - 1, node - size // 2), node])


CASES: dict[str, tuple[Callable[[], Mask], str]] = {
    'low rank': (lambda: SinDegreeMask(3), 'low_rank'),
    'blocks': (lambda: PowerSeriesMask(3, order=5, positive=False), 'blocks'),
    'blocks of walks': (lambda: RWGNKMask(3), 'blocks'),
    'blocks of labels': (lambda: HopMask(3, 4, torch.tensor([0.5, -0.25, 1.0, 0.5, 0.25])), 'blocks'),
    'edges': (lambda: GRFMask(3), 'edges'),
    'powers': (lambda: PowerSeriesMask(3, order=4, positive=False), 'features'),
    'no power': (lambda: PowerSeriesMask(1, order=0), 'features'),
    'chebyshev': (lambda: HeatKernelMask(1, lam=0.7), 'features'),
    'directed powers': (lambda: HeatKernelMask(3, 'random_walk_laplacian'), 'features'),
}


@pytest.mark.parametrize(('name', 'threads'), covering(CASES, [1, 2]))
@pytest.mark.parametrize(('features', 'channels'), [(16, 16), (5, 19)])
def test_attention_is_that_of_the_plain_version(
    name: str, features: int, channels: int, threads: int, plain: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    make, route = CASES[name]
    mask, before, results = make().double(), torch.get_num_threads(), []
    generator = torch.Generator().manual_seed(0)
    leaves = [
        torch.randn(61, 3, width, dtype=torch.float64, generator=generator).requires_grad_()
        for width in (features, features, channels)
    ]
    monkeypatch.setattr('pyg_topomask.machine.threads.ALONE', 1)
    try:
        torch.set_num_threads(threads)
        for turn in (lambda: None, plain):
            turn()
            out = masked_linear_attention(*leaves, mask(batch()), route)
            results.append([out, *torch.autograd.grad(out.sin().sum(), [*leaves, *mask.parameters()])])
    finally:
        torch.set_num_threads(before)
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-7, atol=1e-8)


LEARNED: dict[str, tuple[Callable[[], Mask], str]] = {
    'blocks': (lambda: PowerSeriesMask(3, order=3, positive=False), 'blocks'),
    'blocks of chebyshev': (lambda: HeatKernelMask(3, tolerance=1e-9), 'blocks'),
    'powers': (lambda: PowerSeriesMask(3, order=4, positive=False), 'features'),
    'powers of the transpose': (lambda: PowerSeriesMask(1, order=2, normalization=None).T, 'features'),
    'no power': (lambda: PowerSeriesMask(1, order=0), 'features'),
    'chebyshev': (lambda: HeatKernelMask(3, lam=0.7), 'features'),
    'walks': (lambda: RWGNKMask(3, transition='weight'), 'edges'),
    'walks of two ensembles': (lambda: GRFMask(3, transition='weight', independent_ensembles=True), 'edges'),
}


@pytest.mark.parametrize(('name', 'threads'), covering(LEARNED, [1, 2]))
@pytest.mark.parametrize(('features', 'channels'), [(4, 16), (9, 19)])
def test_gradients_of_weights_are_those_of_the_plain_version(
    name: str, features: int, channels: int, threads: int, plain: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    make, route = LEARNED[name]
    mask, before, results, graph = make().double(), torch.get_num_threads(), [], batch()
    generator = torch.Generator().manual_seed(0)
    weight = torch.rand(graph.num_edges, dtype=torch.float64, generator=generator) + 0.2
    if 'chebyshev' in name:  # symmetric
        low, high = graph.edge_index.sort(0).values
        weight = weight[(low * 61 + high).unique(return_inverse=True)[1]]
    leaves = [torch.randn(61, 3, w, dtype=torch.float64, generator=generator).abs() for w in (features, features, channels)]
    leaves = [leaf.requires_grad_() for leaf in (*leaves, weight)]
    monkeypatch.setattr('pyg_topomask.machine.threads.ALONE', 1)
    monkeypatch.setattr('pyg_topomask.machine.polynomial._NODES', 16)
    try:
        torch.set_num_threads(threads)
        for turn in (lambda: None, plain):
            turn()
            operator = mask(graph.with_weights(leaves[3]))
            out = masked_linear_attention(*leaves[:3], operator, route)
            product = operator.matmul(leaves[2])
            inputs = [*leaves, *mask.parameters()]
            results.append([out, *torch.autograd.grad(out.sin().sum() + product.cos().sum(), inputs, materialize_grads=True)])
    finally:
        torch.set_num_threads(before)
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-7, atol=1e-8)
    assert bool(results[0][4].any()) == (name != 'no power')


F = torch.tensor([1.0, -0.1, 0.25, 2.0, 0.5])
TREES: dict[str, Callable[[], Mask]] = {
    'exp': lambda: TreeMask(3, a=-0.5, b=0.25),
    'one exp for all heads': lambda: TreeMask(1, a=-2.0),
    'distances up to 4': lambda: TreeMask(3, 'distance', max_distance=4, f=F, method='rings'),
    'all distances': lambda: TreeMask(1, 'distance', max_distance=60, method='rings'),
    'a constant': lambda: TreeMask(3, 'distance', max_distance=0, method='rings'),
}


@pytest.mark.parametrize(
    ('shape', 'size', 'name'),
    covering([pytest.param(*case) for case in (('random', 40), ('path', 40), ('caterpillar', 40), ('random', 3000))], TREES),
)
def test_attention_under_trees_is_that_of_the_plain_version(
    name: str, shape: str, size: int, plain: Callable[[], None]
) -> None:
    mask, results = TREES[name]().double(), []
    generator = torch.Generator().manual_seed(0)
    shapes = ((size + 21, 3, width) for width in (5, 5, 9))
    leaves = [torch.rand(shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes]
    for turn in (lambda: None, plain):
        turn()
        graph = trees(shape, size)
        out = masked_linear_attention(*leaves, mask(graph), 'features')
        product = mask(graph).matmul(leaves[2])
        inputs = [*leaves, *mask.parameters(), *([graph.edge_weight] if mask.kind == 'exp' else [])]
        results.append([out, product, *torch.autograd.grad(out.sin().sum() + product.cos().sum(), inputs)])
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize('kind', ['exp', 'distance'])
def test_attention_under_several_forests_is_that_of_the_plain_version(kind: str, plain: Callable[[], None]) -> None:
    data, results = AddSpanningForest(num_trees=3)(Data(edge_index=ring(30), num_nodes=30)), []
    leaves = [torch.rand(30, 2, 5, dtype=torch.float64).requires_grad_() for _ in range(3)]
    mask = TreeMask(2, kind).double()
    for turn in (lambda: None, plain):
        turn()
        out = masked_linear_attention(*leaves, mask(data.clone()), 'features')
        results.append([out, *torch.autograd.grad(out.sin().sum(), [*leaves, *mask.parameters()])])
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize('name', TREES)
def test_values_that_do_not_fit_in_memory_are_cut(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mask, results = TREES[name]().double(), []
    leaves = [torch.rand(61, 3, 9, dtype=torch.float64).requires_grad_() for _ in range(3)]
    for most in (2**26, 100):
        monkeypatch.setattr('pyg_topomask.machine.tree._MOST', most)
        out = masked_linear_attention(*leaves, mask(trees('path', 40)), 'features')
        results.append([out, *torch.autograd.grad(out.sin().sum(), [*leaves, *mask.parameters()])])
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize('dropout', [0.0, 0.5])
def test_softmax_is_that_of_the_plain_version(dropout: float, plain: Callable[[], None]) -> None:
    mask, results = GRFMask(3, positive=True).double(), []
    leaves = [torch.randn(61, 3, 7, dtype=torch.float64).requires_grad_() for _ in range(3)]
    for turn in (lambda: None, plain):
        turn()
        torch.manual_seed(1)
        out = masked_softmax_attention(*leaves, mask(batch()), dropout)
        results.append([out, *torch.autograd.grad(out.sin().sum(), [*leaves, *mask.parameters()])])
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize('kind', [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize('num', [1, 4, 50])
def test_search_is_that_of_the_plain_version(num: int, kind: torch.dtype, plain: Callable[[], None]) -> None:
    torch.manual_seed(num)
    (q, k), graph = torch.randn(2, 61, 2, 5, dtype=kind), batch()
    actual = topk_inner_product(q, k, num, graph.segments.ptr)
    plain()
    for one, other in zip(actual, topk_inner_product(q, k, num, graph.segments.ptr), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize('kinds', ['ordered', 'unordered', 'sums'])
@pytest.mark.parametrize('together', [1, 2**22])
def test_meetings_are_those_of_the_plain_version(
    kinds: str, together: int, plain: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('pyg_topomask.walks.pairs._MEETINGS_COMPILED', together)
    graph = batch()
    state = GRFMask(1, independent_ensembles=kinds == 'ordered').prepare(graph)
    results = []
    for turn in (lambda: None, plain):
        turn()
        for walks in (state.query, state.key):
            walks.__dict__.pop('squares', None)
        pairs = PairLoads(state.query, state.key, torch.float64, kinds)
        f = 0.5 ** torch.arange(5, dtype=torch.float64).unsqueeze(0)
        blocks = [blocks_of_sums(state.query, state.key, torch.float64, graph.segments)] if kinds == 'sums' else []
        results.append([*pairs.pattern.tensors, pairs.values(f, f), state.query.squares, *blocks])
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected)


def test_magnitudes_of_blocks_of_walks() -> None:
    """Where walks of a node meet themselves, the squared norm of its features."""
    graph, mask = batch(), RWGNKMask(1, alpha=0.0)
    state = mask.prepare(graph)
    powers: Tensor = mask.lam.detach() ** torch.arange(7)
    diagonal = mask.bind(graph, state).to_dense()[0].diagonal().detach()
    torch.testing.assert_close(state.key.squares @ powers, diagonal)


def test_stored_pairs_are_those_of_the_plain_version(plain: Callable[[], None]) -> None:
    mask = HopMask(max_hops=2)
    data = Batch.from_data_list([PrepareMasks(mask)(graph) for graph in uneven_graphs()])
    results = []
    for turn in (lambda: None, plain):
        turn()
        graph = Graph.from_data(data)
        state = graph.state(mask)
        results.append([state.distance, *state.pattern.tensors, graph.structure])
    assert all(map(torch.equal, *results))
    assert results[0][0].dtype == torch.int32


def kernels() -> Iterator[Any]:
    from numba.core.dispatcher import Dispatcher

    for info in pkgutil.iter_modules(machine.__path__):
        module = importlib.import_module(f'pyg_topomask.machine.{info.name}')
        for kernel in vars(module).values():
            if isinstance(kernel, Dispatcher) and kernel.py_func.__module__ == module.__name__:
                yield kernel


def test_kernels_change_with_the_files_that_they_share() -> None:
    """Numba compiles a kernel anew when its own file changes, and when the name of its cached file does."""
    from pyg_topomask.machine.compiled import _SHARED

    folder = Path(machine.__file__).parent
    digest = hashlib.sha256(b''.join((folder / name).read_bytes() for name in _SHARED)).hexdigest()[:12]
    found = list(kernels())
    assert len(found) >= 40
    for kernel in found:
        assert digest in kernel._cache._impl.filename_base, kernel


def test_kernels_are_made_of_their_own_file_and_of_shared_ones() -> None:
    """Also numbers are compiled into them."""
    from pyg_topomask.machine.compiled import _SHARED

    folder = Path(machine.__file__).parent
    shared = {(folder / name).resolve() for name in _SHARED}
    for kernel in kernels():
        source = ast.parse(Path(kernel.py_func.__code__.co_filename).read_text())
        for statement in (each for each in source.body if isinstance(each, ast.ImportFrom)):
            names = {alias.asname or alias.name for alias in statement.names}
            if statement.module.startswith('pyg_topomask.') and names.intersection(kernel.py_func.__code__.co_names):
                assert Path(importlib.import_module(statement.module).__file__) in shared, (kernel, names)


@pytest.mark.parametrize('number', [0, 1, 2, 3, 10, 257])
def test_sorting(number: int) -> None:
    """By keys, of which many are equal, and then by items; what is beyond the number stays. One array may be both."""
    from pyg_topomask.machine.compiled import sort

    generator = np.random.default_rng(number)
    for keys in (generator.integers(-5, 5, number + 2), generator.normal(size=number + 2)):
        items = generator.permutation(number + 2)
        order, rest = np.lexsort((items[:number], keys[:number])), [number, number + 1]
        expected = keys[[*order, *rest]], items[[*order, *rest]]
        alone = keys.copy()
        sort(keys, items, number)
        sort(alone, alone, number)
        np.testing.assert_array_equal(keys, expected[0])
        np.testing.assert_array_equal(items, expected[1])
        np.testing.assert_array_equal(alone, keys)


def test_every_kernel_is_where_its_name_says() -> None:
    package = Path(backend.__file__).parents[1]
    names = {name for path in package.rglob('*.py') for name in re.findall(r"kernel\(\s*'([\w.]+)'", path.read_text())}
    assert len(names) > 30
    for name in names:
        assert callable(backend.kernel(name, torch.device('cpu')))
        assert backend.kernel(name, torch.device('meta')) is None
