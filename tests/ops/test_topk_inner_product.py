import importlib
import sys

import numpy as np
import pytest
import torch
from grids import covering
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import pyg_topomask.ops.topk.topk_inner_product as by_backend
from pyg_topomask.ops.topk import select
from pyg_topomask.ops.topk.topk_inner_product import BACKENDS, choose_topk_backend, inner_product_features, topk_inner_product

SIZES = [0, 1, 3, 40, 0, 17, 130, 64, 65, 2, 0]
PLAIN = ('dense', 'chunked', 'tree')
OPTIONAL = {'faiss': 'faiss', 'keops': 'pykeops'}


@pytest.fixture(params=[name for name in BACKENDS if name != 'auto'])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every backend, searching graphs from 21 nodes itself."""
    if request.param in OPTIONAL:
        pytest.importorskip(OPTIONAL[request.param], reason='an optional package, not among those of [test]')
    monkeypatch.setattr(by_backend, '_SMALL', 20)
    return str(request.param)


def tensors(
    sizes: list[int], heads: int = 2, dim: int = 4, dtype: torch.dtype = torch.float64, integers: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    q, k = torch.randn(2, sum(sizes), heads, dim, dtype=torch.float64)
    if integers:
        q, k = q.round(), k.round()
    return q.to(dtype), k.to(dtype), torch.tensor([0, *sizes]).cumsum(0)


def similarities(q: Tensor, k: Tensor, similarity: str) -> np.ndarray:
    """[H, N, N] in float64, of keys anywhere."""
    query, key = (tensor.detach().double().numpy().transpose(1, 0, 2) for tensor in (q, k))
    if similarity == 'distance':
        return -np.linalg.norm(query[:, :, None] - key[:, None], axis=-1)
    if similarity == 'cosine':
        query, key = (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True) for vectors in (query, key))
    return query @ key.transpose(0, 2, 1)


def oracle(score: np.ndarray, num: int, ptr: Tensor) -> list[list[list[int]]]:
    """Per node and head, the keys of its graph by (score descending, index ascending)."""
    top_keys = []
    for start, end in zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True):
        order = np.argsort(-score[:, start:end, start:end], axis=-1, kind='stable')[..., :num] + start
        top_keys += order.transpose(1, 0, 2).tolist()
    return top_keys


def listed(index: Tensor, valid: Tensor) -> list[list[list[int]]]:
    return [
        [keys[mask].tolist() for keys, mask in zip(heads, masks, strict=True)]
        for heads, masks in zip(index, valid, strict=True)
    ]


@pytest.mark.parametrize(('num', 'similarity'), covering([1, 7, 50, 1000], ['dot', 'cosine', 'distance']))
def test_finds_what_sorting_all_scores_finds(backend: str, num: int, similarity: str) -> None:
    q, k, ptr = tensors(SIZES)
    index, valid = topk_inner_product(*inner_product_features(q, k, ptr, similarity), num, ptr, backend)
    assert index.shape == valid.shape == (sum(SIZES), 2, num)
    assert index.dtype == torch.long
    assert valid.dtype == torch.bool
    assert listed(index, valid) == oracle(similarities(q, k, similarity), num, ptr)
    nodes = torch.arange(sum(SIZES)).view(-1, 1, 1).expand_as(index)
    assert torch.equal(index[~valid], nodes[~valid])


@pytest.mark.parametrize(
    ('dtype', 'deterministic'), covering([torch.float32, torch.float64, torch.bfloat16, torch.float16], [False, True])
)
def test_sorted_scores_with_and_without_ties(backend: str, dtype: torch.dtype, deterministic: bool) -> None:
    for integers in (False, True):
        q, k, ptr = tensors(SIZES, dtype=dtype, integers=integers)
        score = similarities(q, k, 'dot')
        top_keys = listed(*topk_inner_product(q, k, 5, ptr, backend, deterministic))
        tolerance = 1e-12 if dtype == torch.float64 else 1e-5
        for node, (heads, expected) in enumerate(zip(top_keys, oracle(score, 5, ptr), strict=True)):
            for head, keys in enumerate(heads):
                assert len(set(keys)) == len(keys) == len(expected[head])
                np.testing.assert_allclose(score[head, node, keys], score[head, node, expected[head]], atol=tolerance)


def test_ties_in_order_of_index(backend: str) -> None:
    for case in ('integers', 'equal keys', 'zero queries', 'duplicates'):
        q, k, ptr = tensors(SIZES, dtype=torch.float32, integers=case == 'integers')
        if case == 'equal keys':
            k[:] = k[:1]
        elif case == 'zero queries':
            q.zero_()
        elif case == 'duplicates':
            k[::2] = k[0]
        top_keys = listed(*topk_inner_product(q, k, 6, ptr, backend, deterministic=True))
        assert top_keys == oracle(similarities(q, k, 'dot').round(5), 6, ptr), case


def test_ties_are_the_same_for_all_backends_in_any_batch(backend: str) -> None:
    q, k, ptr = tensors([300, 60], dtype=torch.float32)
    k[150:300] = k[:150]
    index, _ = topk_inner_product(q, k, 9, ptr, backend, deterministic=True)
    assert torch.equal(index, topk_inner_product(q, k, 9, ptr, 'dense', deterministic=True)[0])
    assert torch.equal(index[:300], topk_inner_product(q[:300], k[:300], 9, None, backend, deterministic=True)[0])


def test_batch_is_one_by_one(backend: str) -> None:
    q, k, ptr = tensors(SIZES)
    index, valid = topk_inner_product(q, k, 5, ptr, backend)
    for start, end in zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True):
        alone, filled = topk_inner_product(q[start:end], k[start:end], 5, None, backend)
        assert torch.equal(index[start:end], alone + start)
        assert torch.equal(valid[start:end], filled)


def test_huge_keys_of_other_graphs_are_not_found(backend: str) -> None:
    q, k, ptr = tensors(SIZES)
    batch = torch.arange(len(SIZES)).repeat_interleave(torch.tensor(SIZES))
    expected = listed(*topk_inner_product(q, k, 8, ptr, backend))
    for graph in (2, 3, 6):
        huge_keys = torch.where((batch == graph).view(-1, 1, 1), k, 1e100 * k)
        top_keys = listed(*topk_inner_product(q, huge_keys, 8, ptr, 'dense' if backend == 'faiss' else backend))
        inside = slice(int(ptr[graph]), int(ptr[graph + 1]))
        assert top_keys[inside] == expected[inside]


@pytest.mark.parametrize(('dtype', 'size'), covering([torch.float32, torch.float64], [1e6, 1e9, 1e12]))
def test_short_keys_beside_a_long_one(backend: str, dtype: torch.dtype, size: float) -> None:
    q, k, _ = tensors([1500], heads=1, dim=3, dtype=dtype)
    k *= 1e-6
    k[100:200] = k[100]  # ties
    k[0] = size
    index, _ = topk_inner_product(q, k, 5, None, backend)
    score = similarities(q, k, 'dot')[0]
    assert all(len(set(row)) == 5 for row in index.squeeze(1).tolist())
    np.testing.assert_allclose(np.take_along_axis(score, index.squeeze(1).numpy(), -1), -np.sort(-score)[:, :5], rtol=1e-5)


def test_permuted_keys_are_found_permuted(backend: str) -> None:
    q, k, _ = tensors([90])
    order = torch.randperm(90)
    index, _ = topk_inner_product(q, k, 4, None, backend)
    assert torch.equal(order[topk_inner_product(q, k[order], 4, None, backend)[0]], index)


def test_float64_in_float32_is_mended() -> None:
    pytest.importorskip('faiss', reason='an optional package, not among those of [test]')
    q, k, _ = tensors([1500])
    k = 1.0 + 1e-9 * k  # all equal in float32
    top_keys, _ = topk_inner_product(q, k, 3, backend='faiss')
    score = np.einsum('nhd,mhd->hnm', q.numpy(), k.numpy() - 1)
    np.testing.assert_allclose(
        np.take_along_axis(score, top_keys.transpose(0, 1).numpy(), -1), -np.sort(-score)[..., :3], atol=1e-14
    )


@pytest.mark.parametrize('memory', [1, 1000, 100_000])
@pytest.mark.parametrize('name', ['dense', 'chunked'])
def test_blocks_of_any_size(name: str, memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_backend, '_SMALL', 20)
    sizes = [40, 2, 70, 33]
    q, k, ptr = tensors(sizes)
    top_keys = listed(*topk_inner_product(q, k, 5, ptr, name, memory=memory))
    assert top_keys == oracle(similarities(q, k, 'dot'), 5, ptr)
    ties = listed(*topk_inner_product(0 * q, k, 5, ptr, name, deterministic=True, memory=memory))
    assert ties == oracle(0 * similarities(q, k, 'dot'), 5, ptr)


@pytest.mark.parametrize('size', [1060, 1500])  # the last block has fewer keys than are searched, or more
def test_chunked_merges_blocks_of_keys(size: int) -> None:
    q, k, ptr = tensors([size], heads=1, integers=True)
    top_keys = listed(*topk_inner_product(q, k, 40, None, 'chunked', deterministic=True, memory=2**18))
    assert top_keys == oracle(similarities(q, k, 'dot'), 40, ptr)


def test_many_graphs_are_searched_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def count(score: Tensor, num: int) -> tuple[Tensor, Tensor]:
        calls.append(tuple(score.shape))
        return select.select_top(score, num)

    monkeypatch.setattr('pyg_topomask.machine.backend.has_numba', lambda: False)
    monkeypatch.setattr('pyg_topomask.ops.topk.searches.select_top', count)
    q, k, ptr = tensors([20, 3] * 200 + [500], heads=1)
    topk_inner_product(q, k, 2, ptr, memory=2**28)
    assert calls == [(200 * 3, 4), (200 * 20, 32), (500, 512)]


def test_largest_of_groups_are_the_largest(subtests: pytest.Subtests) -> None:
    for columns, num in [(1, 1), (100, 3), (1000, 1), (1003, 10), (5000, 10), (5000, 4999)]:
        with subtests.test(columns=columns, num=num):
            for score in (torch.randn(7, columns), torch.randint(5, (7, columns)).float(), torch.zeros(7, columns)):
                largest, position = select.select_top(score, num)
                assert torch.equal(largest, score.sort(dim=1, descending=True).values[:, :num])
                assert torch.equal(score.gather(1, position), largest)
                assert all(len(set(row)) == num for row in position.tolist())


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 30), max_size=5),
    num=st.integers(1, 12),
    name=st.sampled_from(PLAIN),
    small=st.sampled_from([0, 5, 1024]),
    seed=st.integers(0, 100),
)
def test_any_batch_with_ties(sizes: list[int], num: int, name: str, small: int, seed: int) -> None:
    torch.manual_seed(seed)
    q, k, ptr = tensors(sizes, heads=1, dim=2, integers=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_backend, '_SMALL', small)
        top_keys = listed(*topk_inner_product(q, k, num, ptr, name, deterministic=True))
    assert top_keys == oracle(similarities(q, k, 'dot'), num, ptr)


def test_no_nodes_and_no_graphs() -> None:
    for ptr in (None, torch.tensor([0]), torch.tensor([0, 0, 0])):
        index, valid = topk_inner_product(torch.empty(0, 2, 3), torch.empty(0, 2, 3), 4, ptr)
        assert index.shape == valid.shape == (0, 2, 4)
    assert topk_inner_product(torch.ones(3, 0, 2), torch.ones(3, 0, 2), 1)[0].shape == (3, 0, 1)


def test_largest_accepted_numbers() -> None:
    q, k, ptr = tensors([50], dtype=torch.float32)
    limit = torch.finfo(torch.float32).max / q.size(2)
    q, k = (tensor / tensor.abs().max() * 0.999 * limit for tensor in (q, k))
    assert listed(*topk_inner_product(q, k, 5)) == oracle(similarities(q, k, 'dot'), 5, ptr)


def test_distances_far_from_the_origin() -> None:
    q, k, ptr = tensors([60, 40])
    index, valid = topk_inner_product(*inner_product_features(q + 1e6, k + 1e6, ptr, 'distance'), 5, ptr)
    assert listed(index, valid) == oracle(similarities(q, k, 'distance'), 5, ptr)


def test_no_gradient_and_autocast() -> None:
    q, k, _ = tensors([50], dtype=torch.float32)
    expected = topk_inner_product(q, k, 5)[0]
    with torch.autocast('cpu', dtype=torch.bfloat16):
        assert torch.equal(topk_inner_product(q.requires_grad_(), k, 5)[0], expected)


@pytest.mark.filterwarnings('ignore:The .grad attribute:UserWarning')  # of torch 2.15 about its own check
def test_compiles_into_one_graph() -> None:
    def attend(q: Tensor, k: Tensor, ptr: Tensor) -> Tensor:
        index, valid = topk_inner_product(q, k, 3, ptr)
        return (q.unsqueeze(2) * k[index, torch.arange(2).view(1, 2, 1)]).sum(-1).masked_fill(~valid, 0.0)

    q, k, ptr = tensors([2, 30])
    compiled = torch.compile(attend, fullgraph=True, backend='aot_eager')
    torch.testing.assert_close(compiled(q, k, ptr), attend(q, k, ptr))


def test_custom_op_is_well_formed() -> None:
    q, k, ptr = tensors([2, 30], dtype=torch.float32)
    torch.library.opcheck(by_backend._search, (q, k, ptr, 3, 'auto', True, 2**20))


@pytest.mark.parametrize(('values', 'num'), covering(['normal', 'integers', 'equal', 'ascending'], [1, 200, 600, 300]))
def test_machine_code_merges_blocks_of_keys(values: str, num: int) -> None:
    # Ascending scores make every key a candidate, and equal ones test which stay.
    size, dim = 4400 if values == 'ascending' else 8300, 3
    if values == 'ascending':
        k = torch.arange(size).view(-1, 1, 1) * torch.ones(dim)
        q = torch.rand(size, 1, dim).round(decimals=1) + 1
    elif values == 'equal':
        q, k = torch.ones(2, size, 1, dim)
    else:
        q, k, _ = tensors([size], heads=1, dim=dim, dtype=torch.float32, integers=values == 'integers')
    index, valid = topk_inner_product(q, k, num, backend='dense')
    rows = torch.cat([torch.arange(0, size, 97), torch.tensor([size - 1])])
    score = q[rows, 0].double().numpy() @ k[:, 0].double().numpy().T
    top_keys = index[rows, 0].numpy()
    assert valid.all()
    assert all(len(set(row)) == num for row in top_keys.tolist())
    np.testing.assert_allclose(np.take_along_axis(score, top_keys, 1), -np.sort(-score)[:, :num], atol=1e-5)
    if values in ('integers', 'equal'):  # exact scores: the first of equal ones stay, in order
        np.testing.assert_array_equal(top_keys, np.argsort(-score, axis=1, kind='stable')[:, :num])


@pytest.mark.parametrize('size', [50, 200, 3000])
def test_scores_of_zero_without_denormal_numbers(size: int) -> None:
    q = torch.zeros(size, 1, 4)
    torch.set_flush_denormal(True)
    try:
        index, _ = topk_inner_product(q, q, 10, backend='dense')
    finally:
        torch.set_flush_denormal(False)
    assert torch.equal(index, torch.arange(10).expand(size, 1, 10))


@pytest.mark.parametrize('size', [50, 200, 3000])
def test_compiled_search_stays_within_the_graph_on_nan(size: int) -> None:
    # Compiled programs do not look at the numbers.
    q, k, ptr = tensors([3, size, 2], heads=1, dtype=torch.float32)
    q[[0, 5, -1]] = torch.nan
    index, _ = torch.compile(topk_inner_product, fullgraph=True, backend='eager')(q, k, 10, ptr)
    graph = torch.arange(3).repeat_interleave(ptr.diff())
    assert torch.equal(graph[index], graph.view(-1, 1, 1).expand_as(index))


def test_threads_find_the_same_keys() -> None:
    q, k, ptr = tensors([3000, 5, 0, 700, 1, 2500], dim=10, dtype=torch.float32)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        expected = topk_inner_product(q, k, 10, ptr, backend='dense')
        torch.set_num_threads(3)
        result = topk_inner_product(q, k, 10, ptr, backend='dense')
    finally:
        torch.set_num_threads(threads)
    assert all(map(torch.equal, result, expected))
    alone = topk_inner_product(q[:3000], k[:3000], 10, backend='dense')[0]
    assert torch.equal(result[0][:3000], alone)


@pytest.mark.parametrize(
    ('num_nodes', 'dim', 'device', 'dtype', 'installed', 'expected'),
    [
        (1024, 64, 'cpu', torch.float32, True, 'dense'),
        (1025, 10, 'cpu', torch.float32, True, 'chunked'),
        (1025, 64, 'cpu', torch.float32, True, 'faiss'),
        (1025, 64, 'cpu', torch.float32, False, 'chunked'),
        (1025, 64, 'cpu', torch.float64, True, 'chunked'),
        (1025, 64, 'cuda', torch.float32, True, 'chunked'),
        (100_000, 2, 'cpu', torch.float32, True, 'tree'),
        (100_000, 2, 'cuda', torch.float32, True, 'chunked'),
    ],
)
def test_choice(
    num_nodes: int,
    dim: int,
    device: str,
    dtype: torch.dtype,
    installed: bool,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: object() if installed else None)
    monkeypatch.setattr(by_backend, 'uses_numba', lambda device: False)
    assert choose_topk_backend(num_nodes, dim, device, dtype) == expected
    monkeypatch.setattr(by_backend, 'uses_numba', lambda device: device.type == 'cpu')
    assert choose_topk_backend(num_nodes, dim, device, dtype) == ('dense' if device == 'cpu' else expected)
    assert choose_topk_backend(num_nodes, dim, device, dtype, num=129) == expected


def test_auto_takes_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_backend, '_TREE_SIZE', 2000)
    monkeypatch.setattr(by_backend, 'uses_numba', lambda device: False)
    called = []
    for name, search in list(by_backend._SEARCH.items()):
        monkeypatch.setitem(
            by_backend._SEARCH, name, lambda *args, n=name, s=search: (called.append((n, args[3].tolist())), s(*args))
        )
    q, k, ptr = tensors([5, 1500, 30, 2100], dim=2, heads=1)
    assert listed(*topk_inner_product(q, k, 3, ptr)) == oracle(similarities(q, k, 'dot'), 3, ptr)
    assert called == [('dense', [5, 30]), ('chunked', [1500]), ('tree', [2100])]
    called.clear()
    monkeypatch.setattr(by_backend, 'uses_numba', lambda device: True)
    assert listed(*topk_inner_product(q, k, 3, ptr)) == oracle(similarities(q, k, 'dot'), 3, ptr)
    assert called == [('dense', [5, 30, 1500, 2100])]


@pytest.mark.parametrize('name', ['faiss', 'keops'])
def test_missing_package_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ('pykeops', 'pykeops.torch', 'faiss'):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf'install pyg_topomask with its extra \[{name}\]'):
        topk_inner_product(torch.ones(2, 1, 1), torch.ones(2, 1, 1), 1, backend=name)


@pytest.mark.parametrize('name', ['faiss', 'tree'])
def test_backend_that_cannot_do_the_device(name: str) -> None:
    q = torch.ones(2, 1, 1, device='meta')
    with pytest.raises(ValueError, match=rf"^backend: got '{name}' with tensors on meta; accepted:"):
        topk_inner_product(q, q, 1, backend=name)


def test_bad_arguments_are_named(subtests: pytest.Subtests) -> None:
    for name, arguments in [
        ('q', {'q': torch.ones(3, 2)}),
        ('q', {'q': torch.ones(3, 1, 0), 'k': torch.ones(3, 1, 0)}),
        ('q', {'q': torch.ones(3, 1, 2, dtype=torch.long)}),
        ('q', {'q': torch.tensor([0.0, float('nan')]).expand(3, 1, 2)}),
        ('k', {'k': torch.tensor([0.0, float('nan')]).expand(3, 1, 2)}),
        ('k', {'k': torch.tensor([0.0, 3e38]).expand(3, 1, 2)}),
        ('q', {'q': torch.tensor([0.0, -3e38]).expand(3, 1, 2)}),
        ('k', {'k': torch.ones(4, 1, 2)}),
        ('k', {'k': torch.ones(3, 1, 2, dtype=torch.float64)}),
        ('k', {'k': torch.ones(3, 1, 2, device='meta')}),
        ('num', {'num': 0}),
        ('memory', {'memory': 0}),
        ('backend', {'backend': 'fast'}),
        ('ptr', {'ptr': torch.tensor([0, 2])}),
        ('ptr', {'ptr': torch.tensor([1, 3])}),
        ('ptr', {'ptr': torch.tensor([0, 2, 1, 3])}),
        ('ptr', {'ptr': torch.tensor([0.0, 3.0])}),
        ('ptr', {'ptr': torch.tensor([[0, 3]])}),
        ('ptr', {'ptr': torch.empty(0, dtype=torch.long)}),
        ('ptr', {'ptr': torch.tensor([0, 3], device='meta')}),
    ]:
        with subtests.test(name=name, arguments=arguments), pytest.raises(ValueError, match=f'^{name}: got'):
            topk_inner_product(**{'q': torch.rand(3, 1, 2), 'k': torch.rand(3, 1, 2), 'num': 2} | arguments)


def test_rows_in_doubt_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    doubted = []
    monkeypatch.setattr(select, '_search_all', lambda *args: doubted.append(args[5].numel()))
    q, k, _ = tensors([2000], dtype=torch.float32, dim=10)
    topk_inner_product(q, k, 5, deterministic=True)
    assert sum(doubted) < 100


def test_unknown_similarity() -> None:
    q, k, ptr = tensors([5])
    with pytest.raises(ValueError, match="similarity: got 'l1'"):
        inner_product_features(q, k, ptr, 'l1')


def test_gradient_of_the_cosine_of_zero_is_finite_in_half_precision() -> None:
    q, k = torch.ones(1, 1, 2, dtype=torch.float16), torch.zeros(1, 1, 2, dtype=torch.float16, requires_grad=True)
    inner_product_features(q, k, torch.tensor([0, 1]), 'cosine')[1].sum().backward()
    assert k.grad is not None
    assert k.grad.isfinite().all()
