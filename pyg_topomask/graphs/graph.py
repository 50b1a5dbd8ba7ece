r"""The graph on which masks are prepared: edges, weights, and the graph of each node in a batch."""

from __future__ import annotations

from collections.abc import Set
from copy import copy
from typing import Any
from weakref import ref

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.hypergraph_data import HyperGraphData
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse, to_edge_index

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.edges import (
    attribute_of,
    check_normalization,
    checked_edges,
    checked_weight,
    edge_weights_of,
    inverse_degree,
    name_of_weights,
    row_and_col,
)
from pyg_topomask.graphs.locality import inverse, near_order
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.states import States
from pyg_topomask.utils.checks import check_whole
from pyg_topomask.utils.functorch import check_not_transformed
from pyg_topomask.utils.random import splitmix

__all__ = ['Graph']


class Graph(States):
    r"""A batch of graphs, checked once. Masks are prepared on it, and layers that receive the same object share the prepared
    states. It does not notice later in-place changes of the tensors.

    Args:
        edge_index (torch.Tensor): The edges from sources to targets, :obj:`[2, E]`. The :obj:`flow` of a mask decides
            which end attends to the other.
        num_nodes (int): The number of nodes :math:`N`.
        edge_weight (torch.Tensor, optional): The weights, :obj:`[E]`. (default: :obj:`None`, ones)
        batch (torch.Tensor, optional): The graph of each node, ascending, :obj:`[N]`. (default: :obj:`None`, one graph)
        num_graphs (int, optional): The number of graphs, required if the last graphs are empty. (default: :obj:`None`)
        data (torch_geometric.data.Data, optional): The data with states that transforms have stored.
            (default: :obj:`None`)

    Raises:
        ValueError: If an edge leaves its graph or the node range, a weight is not finite, or :obj:`batch` is not ascending.
    """

    #: Transforms that have stored something on data with these edges, which this graph has not.
    stored_elsewhere: Set[str] = frozenset()
    #: Whether the graph was created from data without edges, and not from no edges.
    lacks_edges: bool = False

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: int,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
        data: Data | None = None,
    ) -> None:
        check_not_transformed(edge_index=edge_index, edge_weight=edge_weight, batch=batch)
        self._set_edges(*checked_edges(edge_index, num_nodes, edge_weight, batch), data)
        #: The division of the nodes into graphs.
        self.segments = Segments.checked(num_nodes, batch, num_graphs, edge_index.device)

    def _set_edges(self, edge_index: Tensor, edge_weight: Tensor | None, data: Data | None) -> None:
        self.edge_index = edge_index
        self.edge_weight = edge_weight
        self.data = data
        self._forget()
        #: The attributes read from the data, by name, and their versions. None is a missing one.
        self.read: dict[str, tuple[Any, int | None]] = {}

    @classmethod
    def from_tensors(
        cls, edge_index: Adj, num_nodes: int, edge_weight: Tensor | None = None, batch: Tensor | None = None
    ) -> Graph:
        r"""Creates a graph from the arguments of a PyG layer. :obj:`edge_index` may also be a sparse :obj:`adj_t`, whose values
        are the edge weights if :obj:`edge_weight` is not given.
        """
        if is_sparse(edge_index):
            edge_index, value = _edges_of(edge_index)
            edge_weight = value if edge_weight is None else edge_weight
        return cls(edge_index, num_nodes, edge_weight, batch)

    @classmethod
    def from_data(cls, data: Data) -> Graph:
        r"""Creates a graph from :class:`~torch_geometric.data.Data` or :class:`~torch_geometric.data.Batch`, with the edges of
        :obj:`edge_index`, or else of :obj:`adj_t`. Data without either gives a graph without edges. The weights are
        :obj:`edge_weight`; or else :obj:`weight`, the name of NetworkX; or else :obj:`edge_attr` of one floating point number
        for each edge, with a warning.
        """
        if not is_homogeneous(data):
            raise ArgumentError('data', type(data).__name__, 'torch_geometric.data.Data and Batch', remedy_of_data(data))
        num_nodes = data.num_nodes or 0
        read = {name: attribute_of(data, name) for name in ('edge_index', 'adj_t', 'batch', 'edge_weight')}
        edge_index, adj_t, batch, _ = read.values()
        name, edge_weight = edge_weights_of(data)
        read[name] = edge_weight
        if edge_index is None and adj_t is not None:
            edge_index, value = _edges_of(adj_t)
            edge_weight = value if edge_weight is None else edge_weight
        lacks_edges = edge_index is None
        if lacks_edges:
            edge_index = torch.empty(2, 0, dtype=torch.long, device=device_of(data))
        graph = cls(edge_index, num_nodes, edge_weight, batch, data=data)
        graph.lacks_edges = lacks_edges
        if batch is not None and (batch.numel() > 0 or 'ptr' in data) and hasattr(data, 'num_graphs'):
            check_whole(0, num_graphs=data.num_graphs)
            if data.num_graphs > graph.num_graphs:  # the last graphs are empty
                graph.segments = Segments(num_nodes, batch, data.num_graphs, edge_index.device)
        graph.read = {name: (value, _version(value)) for name, value in read.items()}
        return graph

    @classmethod
    def of(cls, graph: Graph | Data) -> Graph:
        r"""Returns a graph unchanged, or creates one from data with :meth:`from_data`."""
        return graph if isinstance(graph, Graph) else cls.from_data(graph)

    def with_weights(self, edge_weight: Tensor) -> Graph:
        r"""Returns the same graph with other edge weights, :obj:`[E]`, or :obj:`[E, heads]` for each head of a mask, such as
        those that :class:`~pyg_topomask.nn.EdgeWeights` learns. The two share what masks prepare from the edges alone.
        """
        check_not_transformed(edge_weight=edge_weight)
        graph = copy(self)
        graph._set_edges(self.edge_index, checked_weight(edge_weight, self.num_edges), self.data)
        graph.unweighted = self if self.unweighted is None else self.unweighted
        return graph

    def to(self, device: torch.device | str) -> Graph:
        r"""Returns the graph on a device. A copy on another device has no prepared states."""
        if self.device == torch.empty(0, device=device).device:
            return self
        weight, batch = (None if tensor is None else tensor.to(device) for tensor in (self.edge_weight, self.batch))
        data = None if self.data is None else copy(self.data).to(device)
        return Graph(self.edge_index.to(device), self.num_nodes, weight, batch, self.num_graphs, data)

    @classmethod
    def shared(cls, data: Data) -> Graph:
        r"""Returns the graph of data, shared by all layers that are called with this object, one after the other. It is a new
        graph if the edges, or other attributes that the graph or a mask has read, were replaced or changed in place, if the
        number of nodes has changed, or if :obj:`MAX_GRAPHS` other objects have been used.
        """
        key, dtype = id(data), torch.get_default_dtype()
        owner, earlier, graph = _SHARED.pop(key, (None, None, None))
        if graph is not None and owner is not None and owner() is data and earlier == dtype and graph.is_of(data):
            graph.data = copy(data)  # what no mask has read may be new
        else:
            graph = cls.from_data(copy(data))  # a reference to the data would keep it alive
            owner = ref(data, lambda _: _SHARED.pop(key, None))
        _SHARED[key] = owner, dtype, graph
        forget_oldest(_SHARED)
        return graph

    def is_of(self, data: Data) -> bool:
        r"""Returns whether data still has what was read from it."""
        if self.num_nodes != (data.num_nodes or 0) or name_of_weights(data) not in self.read:
            return False
        read = self.read.items()
        return all(attribute_of(data, name) is value and _version(value) == version for name, (value, version) in read)

    @property
    def num_nodes(self) -> int:
        return self.segments.num_nodes

    @property
    def num_graphs(self) -> int:
        return self.segments.num_graphs

    @property
    def batch(self) -> Tensor | None:
        r"""The given batch vector, :obj:`[N]`."""
        return self.segments.batch

    @property
    def num_edges(self) -> int:
        return self.edge_index.size(1)

    @property
    def device(self) -> torch.device:
        return self.edge_index.device

    @property
    def weight(self) -> Tensor:
        r"""The edge weights, :obj:`[E]`, by default ones. Raises a :class:`ValueError` if each head has its own."""
        if self.edge_weight is not None:
            if self.edge_weight.dim() > 1:
                raise ArgumentError('edge_weight', 'weights of several heads', 'weights of shape [E]')
            return self.edge_weight
        return torch.ones(self.num_edges, device=self.device)

    @property
    def weight_dtype(self) -> torch.dtype:
        r"""The data type of the edge weights, at least float32."""
        dtype = torch.get_default_dtype() if self.edge_weight is None else self.edge_weight.dtype
        return torch.promote_types(dtype, torch.float32)

    @property
    def fingerprint(self) -> Tensor:
        r"""The numbers of nodes and edges of each graph, and a hash of its weighted edges that ignores their order,
        :obj:`[num_graphs, 3]`. Weights of 1 are equivalent to no weights.
        """
        return self._hashed(None if self.edge_weight is None else self.weight)

    @property
    def structure(self) -> Tensor:
        r"""As :attr:`fingerprint`, but of the edges without their weights, :obj:`[num_graphs, 3]`."""
        return self._hashed(None)

    @property
    def is_weighted(self) -> bool:
        r"""Whether there are edge weights other than 1."""
        weight = self.edge_weight
        return weight is not None and self.cached('weighted', lambda: bool((weight != 1).any()))

    @property
    def is_directed(self) -> bool:
        r"""Whether there is an edge more often than its reverse edge. Weights do not count."""
        return self.cached('directed', self._directed)

    def _directed(self) -> bool:
        source, target = self.edge_index.long()
        there, back = (splitmix((first << 32) ^ second).sum() for first, second in ((source, target), (target, source)))
        return bool(there != back)

    def _hashed(self, weight: Tensor | None) -> Tensor:
        weight = None if weight is None else weight.detach().float()
        source, target = self.edge_index.long()
        graph = self.segments.index.index_select(0, source)
        first = self.segments.ptr.index_select(0, graph)
        edges = (source - first).bitwise_left_shift_(32).bitwise_xor_(target - first)
        if weight is not None:
            edges = torch.where(weight == 1, edges, splitmix(edges) ^ weight.view(torch.int32))
        sums = edges.new_zeros(self.num_graphs).index_add_(0, graph, splitmix(edges))
        return torch.stack([self.segments.sizes, self._counts(graph), sums], dim=1)

    def _counts(self, graph: Tensor) -> Tensor:
        return graph.new_zeros(self.num_graphs).index_add_(0, graph, torch.ones_like(graph))

    def attribute(self, name: str, argument: str = 'data') -> Any:
        r"""Returns an attribute of the graph's data, such as a time or a position of each node.

        Args:
            name (str): The name of the attribute.
            argument (str): The argument that errors name. (default: :obj:`"data"`)

        Raises:
            ValueError: If the data lacks the attribute, or the graph was not created from data.
        """
        value = self.get(name)
        if value is None:
            given = f'the attribute name {name!r}, which the data lacks'
            remedy = (
                'it comes with the data set, or from a transform (in topomask.transforms of a YAML) that stores it under this '
                f'name, as AddRandomWalkPE and, for graphs of more than k nodes, AddLaplacianEigenvectorPE of PyG do with '
                f'attr_name: {name!r}'
            )
            raise ArgumentError(argument, given, 'its attributes (layers take data as graph=data)', remedy)
        return value

    def get(self, name: str) -> Any:
        r"""Returns an attribute of the graph's data, or :obj:`None`."""
        value = None if self.data is None else attribute_of(self.data, name)
        self.read[name] = value, _version(value)
        return value

    def row_and_col(self, flow: str = 'source_to_target') -> tuple[Tensor, Tensor]:
        r"""Returns the row and the column of each edge in the adjacency matrix :math:`\mathbf{A}`, in int64, :obj:`[E]` each.
        Node :math:`i` attends (or walks) to node :math:`j` if :math:`A_{ij} \ne 0`.

        Args:
            flow (str): See :class:`~pyg_topomask.masks.AdjacencyMask`. (default: :obj:`"source_to_target"`)
        """
        return row_and_col(self.edge_index.long(), flow)

    def normalized_weight(self, normalization: str | None, flow: str = 'source_to_target') -> Tensor:
        r"""Returns the entries of :math:`\mathbf{W}` at the edges, :obj:`[E]`, in float64. Degrees are sums of the absolute
        weights of the edges in the rows and in the columns of :math:`\mathbf{A}`, before parallel edges add up. With
        :obj:`normalization=None`, it is the weights, at least in float32. The arguments are those of
        :class:`~pyg_topomask.masks.AdjacencyMask`.
        """
        check_normalization(normalization)
        if normalization is None:
            return self.weight.to(self.weight_dtype)
        weight, (row, col) = self.weight, self.row_and_col(flow)
        weight = weight.double()  # in half precision, sums of many weights saturate
        scale = inverse_degree(self._degree(row, weight), normalization)[row]
        if normalization == 'sym':
            scale = scale * inverse_degree(self._degree(col, weight), normalization)[col]
        return weight * scale

    def _degree(self, end: Tensor, weight: Tensor) -> Tensor:
        r"""Returns the sums of the absolute weights by one end of the edges, :obj:`[N]`."""
        return weight.new_zeros(self.num_nodes).index_add(0, end, weight.abs())

    def has_edges_of(self, adj_t: Adj) -> bool:
        r"""Returns whether a sparse adjacency matrix has the edges of the graph with their weights, in any order."""

        def ordered(edge_index: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
            weight, order = weight.detach().to(self.weight_dtype).sort()
            source, target = edge_index.long()[:, order]
            keys, order = (target * self.num_nodes + source).sort(stable=True)
            return keys, weight[order]

        edges = self.cached('ordered edges', lambda: ordered(self.edge_index, self.weight))
        return all(map(torch.equal, edges, ordered(*_edges_of(adj_t))))

    def _renumbered(self) -> Graph | None:
        if self.unweighted is not None and self.edge_weight is not None:
            near = self.unweighted.cached('near', self.unweighted._renumbered)
            graph = None if near is None else near.with_weights(self.edge_weight)
            if graph is not None:
                graph.given = ref(self)
            return graph
        whole = self.segments.is_whole and self.num_graphs == 1
        order = near_order(self.edge_index, self.num_nodes) if whole else None
        if order is None:
            return None
        graph = copy(self)
        graph.order, graph.place, graph.given = order, inverse(order), ref(self)
        graph._set_edges(graph.place[self.edge_index.long()], self.edge_weight, None)
        return graph

    def __repr__(self) -> str:
        return f'{type(self).__name__}(num_nodes={self.num_nodes}, num_edges={self.num_edges}, num_graphs={self.num_graphs})'


#: How many shared graphs are kept.
MAX_GRAPHS = 16
#: The shared graph of living data and the default data type, by id, because data is unhashable. The last one used is last.
_SHARED: dict[int, tuple[ref[Data], torch.dtype, Graph]] = {}


def forget_oldest(graphs: dict[Any, Any]) -> None:
    r"""Removes all but the last :obj:`MAX_GRAPHS` entries."""
    for oldest in list(graphs)[:-MAX_GRAPHS]:
        graphs.pop(oldest, None)


def is_homogeneous(data: object) -> bool:
    r"""Returns whether an object is data whose edges join two nodes of one type."""
    return isinstance(data, Data) and not isinstance(data, HyperGraphData)


def remedy_of_data(given: object) -> str:
    r"""Returns what makes data of something that PyG users take for it."""
    if isinstance(given, Tensor):
        return 'of edges, use Data(edge_index=edge_index, num_nodes=num_nodes)'
    if isinstance(given, HeteroData):
        return 'use data.to_homogeneous()'
    if isinstance(given, HyperGraphData):
        return (
            'expand it to Data, with edges between all nodes of a hyperedge, or with a node for each hyperedge: '
            'edge_index=to_undirected(torch.stack([data.edge_index[0], data.edge_index[1] + data.num_nodes]))'
        )
    of_networkx = type(given).__module__.partition('.')[0] == 'networkx'
    return 'use torch_geometric.utils.from_networkx(graph)' if of_networkx else ''


def device_of(data: Data) -> torch.device | None:
    r"""Returns the device of the first tensor of the data, or :obj:`None`."""
    return next((value.device for _, value in data if isinstance(value, Tensor)), None)


def _version(value: Any) -> int | None:
    r"""Returns how often a tensor was changed in place, if it counts that."""
    return value._version if isinstance(value, Tensor) and not value.is_inference() else None


def _edges_of(adj_t: Adj) -> tuple[Tensor, Tensor]:
    edge_index, value = to_edge_index(adj_t)
    return edge_index.flip(0), value if torch.compiler.is_compiling() else _leaf_of(adj_t, value)


def _leaf_of(adj_t: Adj, value: Tensor) -> Tensor:
    r"""Returns the learned values that a matrix in CSR was made of, or else its values. The gradient of values through a matrix
    takes :math:`|\mathcal{V}|^2` numbers in torch 2.13.
    """
    made = getattr(adj_t, 'grad_fn', None)
    if made is None or made.name() != 'SparseCompressedTensorBackward0':
        return value
    leaf = getattr(made.next_functions[0][0], 'variable', None)
    return value if leaf is None else leaf
