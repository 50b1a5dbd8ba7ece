r"""A transform that stores the truncated singular vectors of the adjacency or user-item matrix as structural encodings."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import scipy
import torch
from torch import Tensor
from torch.nn.functional import pad
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.datapipes import functional_transform

from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphs.edges import check_normalization, edge_weights_of
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.transforms.base import GraphTransform, check_unbatched, joint_graphs, single_graph
from pyg_topomask.utils.checks import check_size, check_whole, checked_seed
from pyg_topomask.utils.random import seed_torch

EdgeType = tuple[str, str, str]

# Matrices with at most this many entries are decomposed exactly, as dense matrices.
_DENSE_ENTRIES = 2**18
# The rows of a symmetric matrix for each singular value, from which only some eigenvalues are computed.
_PARTLY = 24
# Oversampling of the randomized decomposition.
_OVERSAMPLING = 10
# The rows of small matrices are a multiple of this number: 64 bytes in float64.
_ALIGNED = 8
# The rows of the decomposed matrix are sources.
_FLOW = 'target_to_source'


@functional_transform('add_svd_encoding')
class AddSVDEncoding(GraphTransform):
    r"""Stores structural encodings of the nodes from a truncated singular value decomposition, as :obj:`svd_encoding`
    (functional name: :obj:`add_svd_encoding`). The matrix :math:`\mathbf{R} \approx \mathbf{U} \mathbf{\Sigma}
    \mathbf{V}^{\top}` depends on the graph:

    * **Bipartite graphs of users and items**, as in `"Masked Graph Transformer for Large-Scale Recommendation"
      <https://doi.org/10.1145/3626772.3657971>`_ (Eq. 3): :math:`\mathbf{R}` is the user-item matrix. The encodings
      of users are rows of :math:`\mathbf{U} \sqrt{\mathbf{\Sigma}}`, and those of items are rows of :math:`\mathbf{V}
      \sqrt{\mathbf{\Sigma}}`. The users are the first :obj:`num_users` nodes. Edges may have either direction or both. Repeated
      interactions, and the two directions of one interaction, are averaged. Without weights, the entries of :math:`\mathbf{R}`
      are therefore 0 or 1.
    * :class:`~torch_geometric.data.HeteroData` with edges between two node types: the same, stored for both types.
    * **Any other graph**, directed or not: :math:`\mathbf{R}` is the adjacency matrix. Parallel edges add up. The
      encoding of a node has both parts, :math:`[\mathbf{U} \sqrt{\mathbf{\Sigma}}, \mathbf{V} \sqrt{\mathbf{\Sigma}}]`, as
      source and as target of edges, as in `"Global Self-Attention as a Replacement for Graph Convolution"
      <https://arxiv.org/abs/2108.03348>`_. On undirected graphs, the two parts differ only by the signs of eigenvalues.

    Matrices with at most :math:`2^{18}` entries are decomposed exactly. Larger matrices use subspace iteration from a random
    start, in time linear in the numbers of edges and nodes. The encodings of isolated nodes, and columns with singular value 0,
    are zero.

    The sign of each pair of singular vectors is fixed: the entry of :math:`\mathbf{U}` with the largest magnitude (the first
    in a tie) is positive. The signs are still arbitrary, and :obj:`topomask.svd.sign_flip` trains with random signs. If
    singular values repeat, as in symmetric graphs, any rotation of their vectors is equally valid. The encodings then depend
    on the order of the nodes. The decomposition has no gradient.

    Args:
        rank (int): The number of singular values. (default: :obj:`16`)
        num_users (int, optional): The number of users in a bipartite graph.
            (default: the attribute :obj:`num_users` of the data. Without it, the graph is not bipartite)
        edge_type (tuple, optional): The type of the edges from users to items in heterogeneous data.
            (default: the only type that is not the reverse of another)
        normalization (str, optional): :obj:`"sym"` for :math:`\mathbf{D}_{row}^{-1/2} \mathbf{R} \mathbf{D}_{col}^{-1/2}`,
            :obj:`"rw"` for :math:`\mathbf{D}_{row}^{-1} \mathbf{R}`, :obj:`None` for :math:`\mathbf{R}`, as in both papers.
            (default: :obj:`None`)
        num_iterations (int): The number of iterations for large matrices. More iterations improve the accuracy if singular
            values are close to each other. (default: :obj:`8`)
        seed (int): The seed of the random start. (default: :obj:`0`)

    Raises:
        ValueError: If users and items cannot be distinguished, or an edge joins two of the same kind.

    Shapes:
        - **input:** a graph with :math:`|\mathcal{V}|` nodes, edge indices :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*
        - **output:** the graph, with :obj:`svd_encoding` :math:`(|\mathcal{V}|, \text{rank})` for users and items, or
          :math:`(|\mathcal{V}|, 2 \, \text{rank})`

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 0, 1], [2, 3, 3]]), num_nodes=4, num_users=2)
        >>> encoding = AddSVDEncoding(rank=2)(data).svd_encoding
        >>> (encoding[:2] @ encoding[2:].t()).round().abs()
        tensor([[1., 1.],
                [0., 1.]])
    """

    def __init__(
        self,
        rank: int = 16,
        num_users: int | None = None,
        edge_type: EdgeType | None = None,
        normalization: str | None = None,
        num_iterations: int = 8,
        seed: int = 0,
    ) -> None:
        check_size(rank=rank)
        if num_users is not None:
            check_whole(0, num_users=num_users)
        check_size(0, num_iterations=num_iterations)
        check_normalization(normalization)
        self.rank = rank
        self.num_users = num_users
        self.edge_type = edge_type
        self.normalization = normalization
        self.num_iterations = num_iterations
        self.seed = checked_seed(seed=seed)
        self._warned = False

    def forward(self, data: Data | HeteroData) -> Data | HeteroData:
        return self.forward_many([data])[0]

    def forward_many(self, graphs: list[Data | HeteroData]) -> list[Data | HeteroData]:
        for members, graph in joint_graphs([data for data in graphs if not self._encode_users(data)], _kind):
            encodings = self._any(graph).split(graph.segments.sizes.tolist())
            for data, encoding in zip(members, encodings, strict=True):
                data.svd_encoding = encoding.clone()  # a view would be saved with all graphs
        return graphs

    def _encode_users(self, data: Data | HeteroData) -> bool:
        r"""Stores the encodings of users and items, and returns whether the graph has users and items."""
        if isinstance(data, HeteroData):
            self._hetero(data)
            return True
        if self.edge_type is not None:
            kind = f'{self.edge_type} for {type(data).__name__}'
            raise ArgumentError('edge_type', kind, 'None, and with HeteroData an edge type')
        given = getattr(data, 'num_users', None) if self.num_users is None else self.num_users
        if given is None:
            return False
        graph = single_graph(data)
        number = given.item() if isinstance(given, Tensor) and given.numel() == 1 else given
        check_whole(0, num_users=number)
        num_users = int(number)
        users, items = self._bipartite(graph.edge_index, graph.weight, num_users, graph.num_nodes - num_users)
        data.svd_encoding = torch.cat([users, items])
        return True

    def _hetero(self, data: HeteroData) -> None:
        check_unbatched(data)
        if self.num_users is not None:
            raise ArgumentError('num_users', f'{self.num_users} for HeteroData, whose types are users and items', 'None')
        source, relation, target = self._edge_type(data)
        store = data[source, relation, target]
        edges = f'edges {(source, relation, target)}'
        if 'edge_index' not in store:
            raise ArgumentError('data', f'{edges} without edge_index', 'edges with it')
        num_edges = store.edge_index.size(1)
        sizes = [data[name].num_nodes or 0 for name in (source, target)]
        # Edges of a type have no weights of nodes, of which a number of edges equal to that of nodes would be a sign.
        _, weight = edge_weights_of(Data.from_dict({**store.to_dict(), 'num_nodes': num_edges + 1}))
        if weight is None:
            weight = torch.ones(num_edges, device=store.edge_index.device)
        elif weight.shape != (num_edges,):
            raise ArgumentError('edge_weight', f'shape {tuple(weight.shape)} for {num_edges} {edges}', '[E]')
        if source == target:
            graph = Graph.from_tensors(store.edge_index, sizes[0], weight)
            data[source].svd_encoding = self._any(graph)
            return
        for name, end, size in zip((source, target), store.edge_index, sizes, strict=True):
            outside = end[(end < 0) | (end >= size)]
            if outside.numel() > 0:
                given = f'node {int(outside[0])} of {size} of type {name!r} in {edges}'
                raise ArgumentError('data', given, 'nodes counted from 0 within each type')
        row, col = store.edge_index
        joint = torch.stack([row, col + sizes[0]])
        data[source].svd_encoding, data[target].svd_encoding = self._bipartite(joint, weight, *sizes)

    def _edge_type(self, data: HeteroData) -> EdgeType:
        types: list[EdgeType] = list(data.edge_types)
        if self.edge_type is None:
            forwards = [edge_type for edge_type in types if not edge_type[1].startswith('rev_')]
            if len(forwards) != 1:
                raise ArgumentError('edge_type', f'None for data with the edge types {types}', 'one of them')
            return forwards[0]
        if tuple(self.edge_type) not in types:
            raise ArgumentError('edge_type', self.edge_type, f'the edge types of the data, {types}')
        return self.edge_type

    def _bipartite(self, edge_index: Tensor, weight: Tensor, num_users: int, num_items: int) -> tuple[Tensor, Tensor]:
        num_nodes = num_users + num_items
        if num_users < 0 or num_items < 0:
            raise ArgumentError('num_users', f'{num_users} for {num_nodes} nodes', f'0 to {num_nodes}')
        low, high = edge_index.long().amin(0), edge_index.long().amax(0)
        within = (low >= num_users) | (high < num_users)
        if bool(within.any()):
            edge = int(within.nonzero()[0])
            given = f'{num_users}, but edge {edge} joins the nodes {edge_index[:, edge].tolist()}, two users or two items'
            raise ArgumentError('num_users', given, 'edges between users and items')
        pairs, slot, count = torch.unique(low * num_nodes + high, return_inverse=True, return_counts=True)
        mean = weight.new_zeros(pairs.numel()).index_add(0, slot, weight) / count
        user = torch.div(pairs, max(num_nodes, 1), rounding_mode='floor')
        graph = Graph(torch.stack([user, pairs - user * num_nodes]), num_nodes, mean)
        self._check_rank(num_users, num_items)
        (row, col), weight = graph.row_and_col(_FLOW), self._weight(graph)
        users, items = self._decompose(
            torch.stack([torch.zeros_like(row), row, col - num_users]), weight, (1, num_users, num_items)
        )
        return users[0], items[0]

    def _any(self, graph: Graph) -> Tensor:
        r"""Returns the encodings of the nodes of graphs that :func:`_kind` joins."""
        for num_nodes in graph.segments.sizes.tolist():
            self._check_rank(num_nodes, num_nodes)
        segments, position = graph.segments, graph.segments.position
        row, col = graph.row_and_col(_FLOW)
        entries = torch.stack([segments.index[row], position[row], position[col]])
        size = _num_rows(segments.largest)
        pair = self._decompose(entries, self._weight(graph), (graph.num_graphs, size, size))
        return torch.cat(pair, dim=2)[segments.index, position]

    def _weight(self, graph: Graph) -> Tensor:
        return graph.normalized_weight(self.normalization, _FLOW).detach().double()

    @torch.no_grad()
    def _decompose(self, entries: Tensor, weight: Tensor, shape: tuple[int, int, int]) -> tuple[Tensor, Tensor]:
        r"""Returns the encodings of the rows and of the columns of matrices, :obj:`[B, n, rank]` each, given matrix, row and
        column of each entry, :obj:`[3, E]`, and the number of matrices, of rows and of columns. Entries at equal places add up.
        """
        rank = min(self.rank, *shape[1:])
        if _is_small(*shape[1:]):
            left, value, right = _exact(weight.new_zeros(shape).index_put_(tuple(entries), weight, accumulate=True), rank)
        else:
            matrix = torch.sparse_coo_tensor(entries[1:], weight, shape[1:], check_invariants=False)
            left, value, right = self._iterated(matrix.coalesce(), rank)
        # The square root would enlarge rounding errors of zero.
        largest = value.amax(1, keepdim=True) if rank > 0 else value
        root = torch.where(value > max(shape[1:]) * torch.finfo(torch.double).eps * largest, value, 0.0).sqrt()
        scale = root * _signs(left)
        place, *ends = entries[:, weight != 0]
        encodings = []
        for vectors, end in zip((left, right), ends, strict=True):
            used = torch.zeros(vectors.shape[:2], dtype=torch.bool, device=weight.device)
            used[place, end] = True
            encoding = (vectors * scale.unsqueeze(1)).masked_fill(~used.unsqueeze(2), 0.0)
            encodings.append(pad(encoding, (0, self.rank - rank)).to(torch.get_default_dtype()))
        return encodings[0], encodings[1]

    def _iterated(self, matrix: Tensor, rank: int) -> tuple[Tensor, Tensor, Tensor]:
        r"""Returns the factors of one large matrix by subspace iteration."""
        size = min(rank + _OVERSAMPLING, *matrix.shape)
        devices = [matrix.device] if matrix.device.type == 'cuda' else []
        with torch.random.fork_rng(devices):
            seed_torch(self.seed)
            factors = torch.svd_lowrank(matrix, size, self.num_iterations)
        left, value, right = (factor[..., :rank].unsqueeze(0) for factor in factors)
        return left, value, right

    def _check_rank(self, num_rows: int, num_cols: int) -> None:
        least = min(num_rows, num_cols)
        if least < self.rank and num_rows + num_cols > 0 and not self._warned:
            warn(
                f'rank: got {self.rank} for a matrix of {num_rows} rows and {num_cols} columns; svd_encoding is zero in the '
                f'columns from {least} on (said once, also of other graphs)'
            )
            self._warned = True

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), '_warned': False}


def _is_small(num_rows: int, num_cols: int) -> bool:
    return num_rows * num_cols <= _DENSE_ENTRIES


def _num_rows(num_nodes: int) -> int:
    r"""Returns the number of rows of the adjacency matrix to decompose. Small matrices are padded. LAPACK then finds all
    matrices of a batch equally aligned in memory, and rounds as if each were alone.
    """
    return -(-num_nodes // _ALIGNED) * _ALIGNED if _is_small(num_nodes, num_nodes) else num_nodes


def _kind(num_nodes: int) -> Hashable:
    r"""Returns what graphs have in common that are decomposed together. Large graphs stay alone."""
    return _num_rows(num_nodes) if _is_small(num_nodes, num_nodes) else object()


def _exact(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor, Tensor]:
    r"""Returns the first singular vectors and values of matrices :obj:`[B, n, m]`. The left and right vectors of a symmetric
    matrix differ by the signs of the eigenvalues.
    """
    if matrix.size(1) != matrix.size(2):
        return _singular(matrix, rank)
    symmetric = (matrix == matrix.mT).flatten(1).all(1)
    if bool(symmetric.all()):
        return _symmetric(matrix, rank)
    if not bool(symmetric.any()):
        return _singular(matrix, rank)
    factors = zip(_symmetric(matrix[symmetric], rank), _singular(matrix[~symmetric], rank), strict=True)
    order = torch.cat([symmetric.nonzero(), (~symmetric).nonzero()]).squeeze(1).argsort()
    left, value, right = (torch.cat(parts)[order] for parts in factors)
    return left, value, right


def _singular(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor, Tensor]:
    left, value, right = torch.linalg.svd(matrix, full_matrices=False)
    return left[..., :rank], value[..., :rank], right[:, :rank].mT


def _symmetric(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor, Tensor]:
    if matrix.device.type == 'cpu' and matrix.size(1) >= _PARTLY * max(rank, 1):
        value, vectors = map(torch.stack, zip(*(_ends(each, rank) for each in matrix), strict=True))
    else:
        value, vectors = torch.linalg.eigh(matrix)  # takes about half the time of an SVD
    largest = value.abs().argsort(dim=1, descending=True, stable=True)[:, :rank]
    value = value.gather(1, largest)
    left = vectors.gather(2, largest.unsqueeze(1).expand(-1, matrix.size(1), -1))
    return left, value.abs(), left * value.sign().unsqueeze(1)


def _ends(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    r"""Returns the least and the largest eigenvalues of a matrix and their vectors: reflections make it tridiagonal."""
    size, lapack = len(matrix), scipy.linalg.lapack
    room, _ = lapack.dsytrd_lwork(size, lower=1)
    reflections, diagonal, beside, scale, _ = lapack.dsytrd(matrix.numpy(), lower=1, lwork=int(room))
    ends = [
        scipy.linalg.eigh_tridiagonal(diagonal, beside, select='i', select_range=bounds)
        for bounds in ((0, rank - 1), (size - rank, size - 1))
    ]
    value, vectors = (np.concatenate(parts, axis=-1) for parts in zip(*ends, strict=True))
    vectors[1:], _, _ = lapack.dormqr('L', 'N', reflections[1:, :-1], scale, vectors[1:], 128 * rank)
    return torch.from_numpy(value), torch.from_numpy(vectors)


def _signs(vectors: Tensor) -> Tensor:
    r"""The sign of the entry with the largest magnitude in each column. In a tie, up to rounding, it is the first entry."""
    if vectors.size(1) == 0:
        return vectors.new_ones(vectors.size(0), vectors.size(2))
    size = vectors.abs()
    largest = size >= (1 - 1e-6) * size.amax(1, keepdim=True)
    first = largest.to(torch.uint8).argmax(1, keepdim=True)
    return torch.where(vectors.gather(1, first).squeeze(1) < 0, -1.0, 1.0).to(vectors.dtype)
