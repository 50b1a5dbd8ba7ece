"""Loads beside those of fast-graph-gp, an implementation of graph random features by others: equal in distribution."""

import numpy as np
import pytest
import torch
from graphs import small_digraph, small_weighted_graph
from numpy.typing import NDArray
from oracles import confidence, weight_matrix
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.walks import WalkSettings, sample_walks

COPIES, WALKS, P_HALT, HOPS = 3000, 2, 0.3, 3
Array = NDArray[np.float64]


def blocks(length: Tensor, row: Tensor, col: Tensor, load: Tensor, size: int) -> Array:
    """Loads of each copy, [copies, hops + 1, size, size], where no walk leaves its copy."""
    assert torch.equal(row // size, col // size)
    loads = np.zeros((COPIES, HOPS + 1, size, size))
    loads[row // size, length, row % size, col % size] = load
    return loads


@pytest.mark.filterwarnings('ignore:Sparse invariant checks:UserWarning')  # theirs
@pytest.mark.parametrize('make', [small_weighted_graph, small_digraph])
def test_loads_are_distributed_as_those_of_fast_graph_gp(make) -> None:
    sampler = pytest.importorskip('grf_gp.sampler', reason='fast-graph-gp is optional, and not among the packages of [test]')
    data: Data = make()
    matrix, size = torch.from_numpy(weight_matrix(data, 'sym')), data.num_nodes
    assert size is not None
    # Copies in one graph: no two nodes have the same random numbers.
    many = (matrix.nonzero().t().unsqueeze(1) + size * torch.arange(COPIES).unsqueeze(1)).flatten(1)
    values = matrix[many[0] % size, many[1] % size]
    total = COPIES * size
    adjacency = torch.sparse_coo_tensor(many, values, (total, total)).coalesce().to_sparse_csr()
    theirs = [
        operator.sparse_csr_tensor.to_sparse_coo().coalesce()
        for operator in sampler.GRFSampler(adjacency, WALKS, P_HALT, HOPS + 1, seed=1, use_tqdm=False, n_processes=1)()
    ]
    length = torch.cat([torch.full((hop_loads._nnz(),), hops) for hops, hop_loads in enumerate(theirs)])
    row, col = torch.cat([hop_loads.indices() for hop_loads in theirs], dim=1)
    peer = blocks(length, row, col, torch.cat([hop_loads.values() for hop_loads in theirs]), size)
    # A node attends, and walks, against the direction of its edges.
    graph = Graph.from_tensors(many.flip(0), total, edge_weight=values)
    walks = sample_walks(graph, WalkSettings(WALKS, P_HALT, HOPS, normalization=None), seed=0)
    ours = blocks(walks.length.long(), walks.start.long(), walks.visited.long(), walks.load, size)
    # Means and squares: the second moments are those of walks that visit together.
    for our_loads, peer_loads in ((ours, peer), (ours**2, peer**2)):
        error = np.sqrt((our_loads.var(0, ddof=1) + peer_loads.var(0, ddof=1)) / COPIES)
        gap = np.abs(our_loads.mean(0) - peer_loads.mean(0))
        assert (gap <= confidence(gap.size) * error + 1e-6).all()
    assert (ours.mean(0) > 0).any(axis=(1, 2)).all()
