r"""Exact search for the keys with the largest inner products, or with other similarities, written as such."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.machine.backend import uses_numba
from pyg_topomask.ops.normalize import in_range, power_of_two, row_size, within
from pyg_topomask.ops.topk.searches import (
    load_faiss,
    load_keops,
    search_chunked,
    search_dense,
    search_faiss,
    search_keops,
    search_tree,
)
from pyg_topomask.ops.topk.select import EXTRA, rank_found
from pyg_topomask.utils.checks import INTEGERS, assert_on_device, check_choice, check_whole, described
from pyg_topomask.utils.functorch import transformable, unwrapped
from pyg_topomask.utils.precision import wide_dtype, widened

SIMILARITIES = ('dot', 'cosine', 'distance')


def inner_product_features(q: Tensor, k: Tensor, ptr: Tensor, similarity: str) -> tuple[Tensor, Tensor]:
    r"""Returns vectors whose inner products are a similarity of queries and keys, :obj:`[N, H, d]`, up to a term of each query,
    which neither the order of its keys nor a softmax over them sees, from `"Bringing k-MIP Attention to Graph Transformers"`
    (Sec. 7.2):

    * :obj:`"dot"`: :math:`\mathbf{q}^{\top} \mathbf{k}`;
    * :obj:`"cosine"`: :math:`\sqrt{d} \, \mathbf{q}^{\top} \mathbf{k} / \|\mathbf{k}\|`: the order of keys is that of their
      cosines with the query. Attention divides by :math:`\sqrt{d}`, so the softmax is that of :math:`\|\mathbf{q}\|` times
      the cosines;
    * :obj:`"distance"`: :math:`-\frac{1}{2} \|\mathbf{q} - \mathbf{k}\|^2`, as :math:`(\mathbf{q}, -c)^{\top} (\mathbf{k},
      \frac{1}{2c} \|\mathbf{k}\|^2)`, about the mean of the keys of the graph, with a power of two :math:`c` of their size.

    Example:
        >>> q, k = torch.tensor([[[3.0]]]), torch.tensor([[[-2.0]]])
        >>> inner_product_features(q, k, torch.tensor([0, 1]), 'cosine')
        (tensor([[[3.]]]), tensor([[[-1.]]]))
    """
    if similarity == 'dot':
        return q, k
    # Norms of half-precision vectors overflow, and so do those of long vectors without a power of two.
    q, k = (widened(x) for x in (q, k))
    if similarity == 'cosine':
        k = k / power_of_two(row_size(k)).unsqueeze(-1)
        norm = k.norm(dim=-1, keepdim=True)
        # A key of length zero stays zero, with a gradient that half precision can hold.
        return q, k * (k.size(-1) ** 0.5 / norm.masked_fill(norm == 0, 1.0))
    if similarity == 'distance':
        count = ptr.diff()
        batch = torch.repeat_interleave(count, output_size=k.size(0))
        share = k / count[batch].view(-1, 1, 1)
        center = k.new_zeros(count.numel(), *k.shape[1:]).index_add(0, batch, share)[batch]
        q, k = q - center, k - center
        scale = power_of_two(Segments.from_ptr(ptr, k.size(0)).maximum(row_size(k))).unsqueeze(-1)
        return torch.cat([q, -scale], -1), torch.cat([k, 0.5 * (k * (k / scale)).sum(-1, keepdim=True)], -1)
    raise ArgumentError('similarity', repr(similarity), list(SIMILARITIES))


BACKENDS = ('auto', 'dense', 'chunked', 'keops', 'faiss', 'tree')


def _by_graph(search_graph: Callable[[Tensor, Tensor, int, Tensor], None]) -> Callable[..., None]:
    r"""Returns a search of several graphs and heads, with the arguments of :func:`search_dense`."""

    def search(q: Tensor, k: Tensor, first: Tensor, count: Tensor, memory: int, best: Tensor) -> None:
        for start, size in zip(first.tolist(), count.tolist(), strict=True):
            nodes, num = slice(start, start + size), min(best.size(2), size)
            for head in range(q.size(0)):
                search_graph(q[head, nodes], k[head, nodes], memory, best[head, nodes, :num])
                best[head, nodes, :num] += start

    return search


_SEARCH = {
    'dense': search_dense,
    'chunked': _by_graph(search_chunked),
    'keops': search_keops,
    'faiss': _by_graph(search_faiss),
    'tree': _by_graph(search_tree),
}
_LOAD = {'keops': load_keops, 'faiss': load_faiss}
# Graphs up to this size are searched by `dense`, with any backend.
_SMALL = 1024
# The largest k for which `auto` uses machine code for larger graphs. At 10,000 nodes and 10 channels, it took 0.4 to 0.7 times
# as long as `chunked` at k = 100, and about as long at 200. At k = 10 and 3,162 to 31,623 nodes, it took 0.1 to 0.6 times as
# long as `chunked` and 0.1 to 0.9 times as long as faiss for 10 to 256 channels.
_DENSE_NUM = 128
# Bounds of the choice of `auto` without Numba, between measurements at 31,623 nodes and k = 10: faiss took 1.1 times as long as
# `chunked` at 10 channels and 0.6 times at 64, the tree 0.5 times at 2 and 1.3 times at 3.
_TREE_DIM, _TREE_SIZE = 2, 30_000
_FAISS_DIM = 32


def topk_inner_product(
    q: Tensor,
    k: Tensor,
    num: int,
    ptr: Tensor | None = None,
    backend: str = 'auto',
    deterministic: bool = False,
    memory: int | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Finds the :obj:`num` keys with the largest inner products for each query, exactly and within its graph, from `"k-MIP
    Attention and the Expressive Power of Graph Transformers" <https://arxiv.org/abs/2604.03815>`_ (thesis of its author: Sec.
    4.2).

    The search never returns keys of another graph. Scores are at least in float32, also under autocast. No gradient flows
    through the choice. To get gradients, recompute the scores of the returned keys.

    =================== =========================================================== ==================================
    backend             method                                                      requires
    =================== =========================================================== ==================================
    :obj:`"dense"`      machine code with Numba, and otherwise padded batches of
                        scores of graphs of similar size
    :obj:`"chunked"`    one graph at a time, in blocks of queries and keys
    :obj:`"keops"`      symbolic matrices (Sec. 4.2.2)                              :obj:`pyg_topomask[keops]` and a
                                                                                    C++ compiler
    :obj:`"faiss"`      :obj:`IndexFlatIP`, in float32; results for float64 are     :obj:`pyg_topomask[faiss]`, CPU
                        checked and corrected
    :obj:`"tree"`       a k-d tree, with the reduction to nearest neighbors (Sec.   CPU
                        4.2.3); for few channels; results for float64 or with
                        extremely long keys are checked and corrected
    =================== =========================================================== ==================================

    All backends use :obj:`"dense"` for graphs of at most 1,024 nodes. On a CPU with Numba and for :obj:`num` up to 128,
    :obj:`"auto"` uses it for all graphs. Otherwise, :obj:`"auto"` depends on the size of each graph, see
    :func:`choose_topk_backend`. Backends may differ if scores are equal up to rounding.

    Args:
        q (torch.Tensor): Queries, :obj:`[N, H, d]`.
        k (torch.Tensor): Keys, :obj:`[N, H, d]`.
        num (int): The number of keys per query. Graphs with fewer nodes return all nodes.
        ptr (torch.Tensor, optional): The first node of each graph, and :obj:`N`, :obj:`[B + 1]`, best on the CPU, which reads
            it. (default: :obj:`None`, one graph)
        backend (str): :obj:`"auto"`, :obj:`"dense"`, :obj:`"chunked"`, :obj:`"keops"`, :obj:`"faiss"` or :obj:`"tree"`.
            (default: :obj:`"auto"`)
        deterministic (bool): Break ties by the lowest index. The result is then the same with all backends and in all
            batches. This takes longer if many scores are equal. (default: :obj:`False`)
        memory (int, optional): Bytes of scores that :obj:`"chunked"`, and :obj:`"dense"` without Numba, keep at a time; their
            total memory is a few times as large. With Numba, :obj:`"dense"` needs a copy of the keys, and less than a MiB per
            thread for small :obj:`num`. (default: :obj:`None`, 4 MiB per thread on a CPU, 256 MiB on other devices)

    Returns:
        (torch.Tensor, torch.Tensor): The selected nodes, the best first, int64, and whether they are valid, bool; both
        :obj:`[N, H, num]`. If a graph has too few nodes, the node itself fills the invalid slots.

    Raises:
        ValueError: If shapes, devices or data types do not fit, :obj:`num` or :obj:`d` is below 1, a row of absolute values has
            no finite sum, :obj:`ptr` does not divide the nodes, or the backend is unknown or does not support the device.
        ImportError: If the backend is not installed.

    Example:
        >>> q = k = torch.tensor([1.0, 3.0, 2.0, 5.0]).view(4, 1, 1)
        >>> index, valid = topk_inner_product(q, k, num=2, ptr=torch.tensor([0, 3, 4]))
        >>> index.squeeze(1).tolist(), valid.squeeze(1).tolist()[3]
        ([[1, 2], [1, 2], [1, 2], [3, 3]], [True, False])
    """
    _check_arguments(q, k, num, backend, memory)
    ptr = torch.tensor([0, q.size(0)]) if ptr is None else _checked_ptr(ptr, q)
    dtype = wide_dtype(q)
    q, k = q.detach().to(dtype), k.detach().to(dtype)
    _check_finite(q=q, k=k)
    index, valid = _searched(q, k, ptr, num, backend, deterministic, memory or 0)
    return index, valid


def choose_topk_backend(
    num_nodes: int, dim: int, device: torch.device | str = 'cpu', dtype: torch.dtype = torch.float32, num: int = 10
) -> str:
    r"""Returns the backend that :obj:`backend="auto"` uses for a graph of so many nodes, for :obj:`num` of its keys with
    :obj:`dim` channels. The bounds were measured on 2 CPU cores.

    Example:
        >>> choose_topk_backend(100, dim=16)
        'dense'
    """
    if num_nodes <= _SMALL:
        return 'dense'
    device = torch.device(device)
    if num <= _DENSE_NUM and uses_numba(device):
        return 'dense'
    if device.type != 'cpu':
        return 'chunked'
    if dim <= _TREE_DIM and num_nodes >= _TREE_SIZE:
        return 'tree'  # it visits few keys
    if dim > _FAISS_DIM and dtype != torch.float64 and importlib.util.find_spec('faiss') is not None:
        return 'faiss'
    return 'chunked'


@torch.library.custom_op('pyg_topomask::topk_inner_product', mutates_args=())
def _search(
    q: Tensor, k: Tensor, ptr: Tensor, num: int, backend: str, deterministic: bool, memory: int
) -> tuple[Tensor, Tensor]:
    if memory == 0:
        memory = torch.get_num_threads() * 2**22 if q.device.type == 'cpu' else 2**28
    with torch.autocast(device_type=q.device.type, enabled=False):
        first, count = ptr[:-1].long(), ptr.diff().long()  # on the CPU, which divides the batch without waiting for a GPU
        segments = Segments.from_ptr(ptr.to(q.device, non_blocking=True), q.size(0))
        if not in_range(q, k):  # these factors keep the order of the keys, and their products and squares in range
            q = q / power_of_two(row_size(q)).unsqueeze(-1)
            k = k / power_of_two(segments.maximum(row_size(k))).unsqueeze(-1)
        size = segments.sizes[segments.index]
        q, k = q.transpose(0, 1), k.transpose(0, 1)
        largest = int(count.max()) if count.numel() > 0 else 0
        # Another precision may change the order of scores, so find more keys than requested, and rank them.
        ranked = deterministic or (backend == 'faiss' and q.dtype == torch.float64)
        wanted = min(num, largest)
        shape = q.size(0), q.size(1), min(wanted + EXTRA * ranked, largest)
        best = torch.full(shape, -1, device=q.device)
        if best.numel() > 0:
            for name, graphs in _assign(count, wanted, best.size(2), backend, q).items():
                if graphs.numel() > 0:
                    _SEARCH[name](q, k, first[graphs], count[graphs], memory, best)
            if ranked:
                dtype = torch.float32 if backend == 'faiss' else q.dtype
                best = rank_found(q, k, segments.first, size, best, wanted, torch.finfo(dtype).eps, memory)
        itself = torch.arange(q.size(1), device=q.device).view(-1, 1, 1)
        found = best.transpose(0, 1)
        found = torch.where(found < 0, itself, found)  # also where scores were NaN
        if best.numel() > 0 and num <= int(count[count > 0].min()):
            return found.contiguous(), torch.ones(found.shape, dtype=torch.bool, device=q.device)
        index = itself.repeat(1, q.size(0), num)
        index[..., :wanted] = found
        valid = torch.arange(num, device=q.device) < size.view(-1, 1, 1)
        return index, valid.repeat(1, q.size(0), 1)


@_search.register_fake
def _(q: Tensor, k: Tensor, ptr: Tensor, num: int, backend: str, deterministic: bool, memory: int) -> tuple[Tensor, Tensor]:
    shape = (q.shape[0], q.shape[1], num)
    return q.new_empty(shape, dtype=torch.long), q.new_empty(shape, dtype=torch.bool)


_searched = transformable(_search)


def _assign(count: Tensor, num: int, slots: int, backend: str, q: Tensor) -> dict[str, Tensor]:
    r"""Assigns graphs to backends. The backend of a graph depends on its size, not on its batch."""
    small = (count <= _SMALL) | (count < slots)
    graphs_of, large = {'dense': (small & (count > 0)).nonzero().flatten()}, (~small).nonzero().flatten()
    names = [
        choose_topk_backend(size, q.size(2), q.device, q.dtype, num) if backend == 'auto' else backend
        for size in count[large].tolist()
    ]
    for name in dict.fromkeys(names):
        graphs = large[torch.tensor([chosen == name for chosen in names])]
        graphs_of[name] = torch.cat([graphs_of.get(name, graphs[:0]), graphs])
    return graphs_of


def _check_arguments(q: Tensor, k: Tensor, num: int, backend: str, memory: int | None) -> None:
    for name, tensor in (('q', q), ('k', k)):
        if tensor.dim() != 3 or tensor.size(2) < 1 or not tensor.is_floating_point():
            raise ArgumentError(name, described(tensor), 'floating point numbers of shape [N, H, d] with d from 1')
    if k.shape != q.shape or k.dtype != q.dtype or k.device != q.device:
        raise ArgumentError('k', f'{described(k)} on {k.device}', f'{described(q)} on {q.device}, as q')
    check_whole(1, num=num)
    if memory is not None:
        check_whole(1, memory=memory)
    check_choice(BACKENDS, backend=backend)
    if backend in ('faiss', 'tree') and q.device.type != 'cpu':
        raise ArgumentError('backend', f'{backend!r} with tensors on {q.device}', 'auto, dense, chunked, keops')
    if backend in _LOAD and not torch.compiler.is_compiling():
        _LOAD[backend]()


def _checked_ptr(ptr: Tensor, q: Tensor) -> Tensor:
    r"""Returns :obj:`ptr` on the CPU."""
    if ptr.dim() != 1 or ptr.numel() < 1 or ptr.dtype not in INTEGERS or ptr.device not in (q.device, torch.device('cpu')):
        accepted = f'int32 and int64 of shape [B + 1] on {q.device} or the CPU'
        raise ArgumentError('ptr', f'{described(ptr)} on {ptr.device}', accepted)
    ptr = ptr.cpu()
    if torch.compiler.is_compiling():
        return ptr
    if int(ptr[0]) != 0 or int(ptr[-1]) != q.size(0) or bool((ptr[1:] < ptr[:-1]).any()):
        given = ptr.tolist() if ptr.numel() <= 10 else f'{int(ptr[0])}, ..., {int(ptr[-1])}'
        raise ArgumentError('ptr', given, f'numbers in ascending order from 0 to N = {q.size(0)}')
    return ptr


def _check_finite(**values: Tensor) -> None:
    if torch.compiler.is_compiling() or any(value.numel() == 0 for value in values.values()):
        return
    for name, value in values.items():
        limit, numbers = torch.finfo(value.dtype).max / value.size(2), unwrapped(value)
        if not assert_on_device(within(numbers, limit), f'{name}: got NaN or numbers above {limit:.1e} in absolute value'):
            largest = float(numbers.abs().amax())  # NaN where a number is
            raise ArgumentError(name, largest, f'finite numbers of at most {limit:.1e} in absolute value, no NaN')
