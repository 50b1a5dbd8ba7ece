r"""A graph divided among several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

import pyg_topomask.distributed.layers  # noqa: F401  # what layers do on a sharded graph
from pyg_topomask.distributed.communication import Processes, processes
from pyg_topomask.distributed.masks import prepare_mask
from pyg_topomask.distributed.shard import Shard, reporting
from pyg_topomask.distributed.storage import Storage, count_blocks, sort_by_row
from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphs.edges import check_edges
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.locality import inverse
from pyg_topomask.utils.checks import described
from pyg_topomask.utils.random import splitmix


class ShardedGraph(Shard):
    r"""A graph whose nodes are divided among the processes of :obj:`torchrun`. Call layers with the features of the nodes of
    this process, :obj:`layer(x, graph=sharded)`. They return the rows of these nodes in the output for the whole graph.
    Gradients are exact if every process calls :obj:`backward`. They are gradients of the sum of the losses of all processes,
    see :func:`~pyg_topomask.distributed.mean_over_nodes`. :func:`~pyg_topomask.distributed.sum_gradients` then sums the
    gradients of parameters.

    A process stores the incoming edges of its nodes, and a list of their source nodes in other processes (the halo). Create the
    graph with :meth:`from_graph`, :meth:`from_data`, :meth:`from_parts` or :meth:`from_file`, in all processes. Without
    processes, it is a graph of one shard.

    The table lists the numbers (of 4 bytes in float32) that a process sends for a layer with :math:`H` heads, and :math:`m`
    features and :math:`d` channels per head. :math:`R` is the number of nodes in its halo. :math:`S` is the number of its nodes
    in the halos of other processes, counted once per halo. :math:`P` is the number of processes. :attr:`bytes_sent` counts the
    bytes, and counts a sum over the processes as a ring all-reduce.

    .. list-table::
        :header-rows: 1

        * - mask
          - forward
          - backward
        * - packing, and other masks of rank :math:`r`
          - :math:`2 \frac{P - 1}{P} r H m (d + 2)`
          - as forward
        * - adjacency, expander, hops and GRF; also for softmax attention
          - :math:`S H (m + d)`
          - :math:`R H (m + d)`
        * - sampled RWGNK
          - :math:`S H (m + d + 1)`
          - :math:`R H (m + d + 1)`
        * - power series and heat kernels of degree :math:`K`
          - :math:`S K H m (d + 2)`
          - :math:`(S + R) K H m (d + 1)`
        * - exact RWGNK of :math:`K` hops
          - :math:`(S + R) K H m (d + 2)`
          - :math:`2 (S + R) K H m (d + 1)`
        * - GRF and sampled RWGNK on the route :obj:`"features"`
          - :math:`(S + R) H m (d + 2)`
          - :math:`2 (S + R) H m (d + 1)`
        * - causal
          - :math:`(P - 1) H m (d + 2)`
          - :math:`2 (P - 1) H m (d + 1)`
        * - Toeplitz, with :math:`n` nodes per process
          - :math:`2 \frac{P - 1}{P} n H m (d + 2)`
          - :math:`4 \frac{P - 1}{P} n H m (d + 1)`
        * - k-MIP; the halo contains the selected keys
          - :math:`(P - 1) n H d + S H (m + d)`, and :math:`R` ids
          - :math:`R H (m + d)`

    The halo of a GRF or a sampled RWGNK contains the nodes whose walks meet walks of this process. On the route
    :obj:`"features"` and with :obj:`asymmetric=True`, it contains the nodes that walks visit. The route is
    :obj:`"features"` if walks meet more than 16 times per visit, as on a graph with a hub.

    A local layer sends the features of :math:`S` nodes, and the gradients of :math:`R` nodes. Edge features are not sent.
    The halo of attention that reads them also contains the sources of the edges.
    """

    @classmethod
    def from_graph(
        cls,
        edge_index: Tensor,
        num_nodes: int,
        edge_weight: Tensor | None = None,
        partition: Tensor | None = None,
        timeout: float = 600.0,
        folder: str | PathLike[str] | None = None,
    ) -> ShardedGraph:
        r"""Creates the shards of a graph that every process has.

        Args:
            edge_index (torch.Tensor): The edges from sources to targets, :obj:`[2, E]`.
            num_nodes (int): The number of nodes :math:`N`.
            edge_weight (torch.Tensor, optional): The weights, :obj:`[E]`. (default: :obj:`None`, ones)
            partition (torch.Tensor, optional): The process of each node, :obj:`[N]`, for example from METIS; :obj:`None`
                divides the nodes into equal parts in their order. (default: :obj:`None`)
            timeout (float): The number of seconds that a process waits for another. (default: :obj:`600.0`)
            folder (str or path, optional): A folder on a disk that all processes see. The edges, and the table of all edges
                that random walks need, are then in temporary files that the processes map into memory. :obj:`None` keeps both
                in the memory of each process. (default: :obj:`None`)

        Raises:
            ValueError: In all processes, if in one of them the edges are none of :obj:`num_nodes` nodes, the processes have
                different graphs or edges in different orders, or a process would have no node.

        Example:
            >>> sharded = ShardedGraph.from_graph(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
            >>> sharded.num_nodes, sharded.total_nodes
            (2, 2)
        """
        group = processes(timeout)
        group.together(lambda: check_edges(edge_index, num_nodes, edge_weight, None))
        group.check_equal('edge_index, edge_weight', _fingerprint(edge_index, edge_weight))
        size = edge_index.size(1)
        part = torch.arange(size * group.rank // group.size, size * (group.rank + 1) // group.size, device=edge_index.device)
        weight = None if edge_weight is None else edge_weight[part]
        return cls._of_parts([(edge_index[:, part], weight, part)], num_nodes, partition, group, folder)

    @classmethod
    def from_parts(
        cls,
        edge_index: Tensor,
        num_nodes: int,
        edge_weight: Tensor | None = None,
        partition: Tensor | None = None,
        timeout: float = 600.0,
        folder: str | PathLike[str] | None = None,
    ) -> ShardedGraph:
        r"""Creates the shards of a graph from some of the edges in each process. Each edge must be in exactly one process. The
        arguments are those of :meth:`from_graph`.
        """
        return cls._of_parts([(edge_index, edge_weight, None)], num_nodes, partition, processes(timeout), folder)

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        num_nodes: int,
        weight_path: str | PathLike[str] | None = None,
        partition: Tensor | None = None,
        timeout: float = 600.0,
        folder: str | PathLike[str] | None = None,
    ) -> ShardedGraph:
        r"""Creates the shards of a graph in a NumPy file. No process reads the whole file.

        Args:
            path (str or path): The edges, int32 or int64 of shape :obj:`[2, E]`, as :func:`numpy.save` writes them.
            num_nodes (int): The number of nodes :math:`N`.
            weight_path (str or path, optional): The weights, floating point numbers :obj:`[E]`. (default: :obj:`None`)
            partition, timeout, folder: See :meth:`from_graph`.
        """
        group = processes(timeout)
        parts = group.together(lambda: _FileParts(Path(path), None if weight_path is None else Path(weight_path), group))
        group.check_equal('path', f'{parts.size} edges')
        return cls._of_parts(parts, num_nodes, partition, group, folder)

    @classmethod
    def from_data(
        cls,
        data: Data,
        partition: Tensor | None = None,
        timeout: float = 600.0,
        folder: str | PathLike[str] | None = None,
    ) -> ShardedGraph:
        r"""Creates the shards of a graph that every process has, and of its attributes. :attr:`data` contains the rows of this
        process of all node and edge attributes, and the edges between the extended nodes. Stored walks are dropped with a
        warning, and masks walk again.

        Args:
            data (torch_geometric.data.Data): One graph.
            partition, timeout, folder: See :meth:`from_graph`.
        """
        whole = Graph.from_data(data)
        if whole.num_graphs != 1:
            raise ArgumentError('data', f'a batch of {whole.num_graphs} graphs', 'one graph')
        graph = cls.from_graph(whole.edge_index, whole.num_nodes, whole.edge_weight, partition, timeout, folder)
        stored = [name for name in data.to_dict() if name.startswith(('grf_', 'rwgnk_'))]
        if stored:
            warn(
                f'data: got stored walks ({", ".join(stored)}), which a sharded graph leaves out; masks walk anew, with their '
                f'own num_walks, sampler and seed'
            )
        local = Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes)
        nodes = graph.segments.position
        for name, value in data.to_dict().items():
            if name in ('edge_index', 'adj_t', 'num_nodes', 'batch', 'ptr', *stored):
                continue
            if isinstance(value, Tensor) and value.dim() > 0 and data.is_edge_attr(name):
                value = value[graph.edge_ids]
            elif isinstance(value, Tensor) and value.dim() > 0 and data.is_node_attr(name):
                value = value[nodes]
            local[name] = value
        graph.data = local
        return graph

    @classmethod
    def _of_parts(
        cls,
        parts: Any,
        num_nodes: int,
        partition: Tensor | None,
        group: Processes,
        folder: str | PathLike[str] | None,
    ) -> ShardedGraph:
        with group.reporting():
            group.check_equal('num_nodes', num_nodes)
            group.check_equal('folder', folder)
            storage = Storage(None if folder is None else Path(folder))
            offsets, new = _divide(num_nodes, partition, group)
            received = list(_received(parts, num_nodes, offsets, new, group, storage))
            size = int(offsets[group.rank + 1] - offsets[group.rank])
            edges = group.together(partial(sort_by_row, received, size, storage))
            return cls(group, offsets.to(edges[0].device), *edges, new, storage)

    @reporting
    def _prepare(self, mask: Any, generator: torch.Generator | None = None) -> Any:
        return prepare_mask(mask, self, generator)


def _received(
    parts: Any, num_nodes: int, offsets: Tensor, new: Tensor | None, group: Processes, storage: Storage
) -> Iterator[list[Tensor | None]]:
    r"""Sends every edge to the process of its target, block by block; all processes have as many blocks. Returns the blocks
    that this process receives: targets counted from its first node, ids of sources, weights, and numbers of edges.
    """
    for edge_index, weight, ids in parts:
        group.together(partial(_check_part, edge_index, num_nodes, weight))
        group.check_equal('edge_weight', None if weight is None else weight.dtype)
        offsets, new = offsets.to(edge_index.device), None if new is None else new.to(edge_index.device)
        source, target = (end if new is None else new[end] for end in edge_index.long())
        owner = torch.searchsorted(offsets, target, right=True) - 1
        tensors = [target - offsets[owner], source, *(each for each in (weight, ids) if each is not None)]
        block = iter(group.together(partial(storage.keep, group.exchange_any(tensors, owner))))
        yield [next(block), next(block), None if weight is None else next(block), None if ids is None else next(block)]


def _check_part(edge_index: Tensor, num_nodes: int, weight: Tensor | None) -> None:
    check_edges(edge_index, num_nodes, weight, None)
    if weight is not None and weight.requires_grad:
        raise ArgumentError('edge_weight', 'weights that require a gradient', 'weights that are not learned')


class _FileParts:
    r"""The share of this process of the edges in a file, in blocks; all processes have as many."""

    def __init__(self, path: Path, weight_path: Path | None, group: Processes) -> None:
        self.edges, shape = _opened(path, 2, np.integer, 'path')
        self.weights = None
        if weight_path is not None:
            self.weights, weight_shape = _opened(weight_path, 1, np.floating, 'weight_path')
            if weight_shape != shape[1:]:
                raise ArgumentError('weight_path', f'{weight_shape[0]} weights', f'{shape[1]}, one for each edge')
        self.size = shape[1]
        share = range(self.size * group.rank // group.size, self.size * (group.rank + 1) // group.size)
        rounds = count_blocks(self.size // group.size + 1)
        self.bounds = [share.start + len(share) * index // rounds for index in range(rounds + 1)]

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor | None, None]]:
        for begin, end in zip(self.bounds[:-1], self.bounds[1:], strict=True):
            edge_index = torch.stack([self.edges(row * self.size + begin, end - begin) for row in range(2)])
            yield edge_index, None if self.weights is None else self.weights(begin, end - begin), None


def _opened(path: Path, dims: int, kind: type, argument: str) -> tuple[Callable[[int, int], Tensor], tuple[int, ...]]:
    r"""Returns a function that reads numbers of a file, by where they begin and how many there are, and the shape."""
    with path.open('rb') as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        start = file.tell()
    if len(shape) != dims or (dims == 2 and shape[0] != 2) or fortran or not np.issubdtype(dtype, kind):
        kinds = 'int32 and int64 of shape [2, E]' if dims == 2 else 'floating point numbers of shape [E]'
        raise ArgumentError(argument, f'{path} of shape {shape} of {dtype}', f'{kinds}, in C order')

    def numbers(begin: int, count: int) -> Tensor:
        return torch.from_numpy(np.fromfile(path, dtype, count, offset=start + begin * dtype.itemsize))

    return numbers, shape


def _divide(num_nodes: int, partition: Tensor | None, group: Processes) -> tuple[Tensor, Tensor | None]:
    r"""Returns where the nodes of each process begin, and the id of each node if it is not its number."""

    def check() -> None:
        accepted = f'a tensor [{num_nodes}] of whole numbers from 0 to {group.size - 1}'
        if partition is None:
            return
        if (
            not isinstance(partition, Tensor)
            or partition.shape != (num_nodes,)
            or partition.is_floating_point()
            or partition.is_complex()
        ):
            raise ArgumentError('partition', described(partition), accepted)
        if num_nodes > 0 and (int(partition.min()) < 0 or int(partition.max()) >= group.size):
            raise ArgumentError('partition', f'{int(partition.min())} to {int(partition.max())}', accepted)

    group.together(check)
    new = None
    if partition is None:
        offsets = torch.tensor([num_nodes * rank // group.size for rank in range(group.size + 1)])
    else:
        partition = partition.long()
        group.check_equal('partition', int(splitmix(torch.arange(num_nodes) * group.size + partition).sum()))
        count = torch.bincount(partition, minlength=group.size)
        offsets = torch.nn.functional.pad(count.cumsum(0), (1, 0))
        new = inverse(torch.argsort(partition, stable=True))
    empty = (offsets.diff() == 0).nonzero().flatten().tolist()
    if empty:
        raise ArgumentError(
            'num_nodes' if partition is None else 'partition',
            f'{num_nodes} nodes for {group.size} processes, of which process {empty[0]} has none',
            'at least one node for each process',
        )
    return offsets, new


def _fingerprint(edge_index: Tensor, weight: Tensor | None) -> tuple[int, int, int | None]:
    r"""Returns a hash of the edges and their weights in their order, because each process takes the edges of some places."""
    source, target = edge_index.long()
    edges = splitmix(splitmix((source << 32) ^ target) + torch.arange(source.numel(), device=source.device))
    return (
        edge_index.size(1),
        int(edges.sum()),
        None if weight is None else int((edges * weight.detach().double().view(torch.int64)).sum()),
    )
