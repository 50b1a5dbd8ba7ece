"""The stored look-up tables: what they hold, and who accepts them."""

from typing import Any

import numpy as np
import pytest
import torch
from graphs import GRAPHS, SINGLE_GRAPHS, ring, small_graph, uneven_graphs
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import AddSelfLoops, Compose, ToUndirected

from pyg_topomask.masks import GRFMask
from pyg_topomask.masks.rwgnk import RWGNKMask
from pyg_topomask.transforms import AddGraphRandomFeatures, AddRandomWalkKernel
from pyg_topomask.walks import FixedLength, PoissonLength


@pytest.mark.parametrize('independent', [False, True])
@pytest.mark.parametrize('graph', SINGLE_GRAPHS)
def test_stored_walks_are_those_of_the_mask_with_the_same_seed(graph: str, independent: bool) -> None:
    settings = {'num_walks': 6, 'p_halt': 0.3, 'max_walk_length': 2, 'independent_ensembles': independent}
    stored = AddRandomWalkKernel(**settings, seed=4)(GRAPHS[graph]())
    actual = RWGNKMask(2, **settings)(stored).to_dense()
    assert torch.equal(actual, RWGNKMask(2, **settings, seed=4)(GRAPHS[graph]()).to_dense())
    assert (stored.num_nodes, stored.num_edges) == (GRAPHS[graph]().num_nodes, GRAPHS[graph]().num_edges)


def test_tables_count_the_visits_of_each_number_of_hops() -> None:
    data = AddRandomWalkKernel(num_walks=5)(small_graph())
    for hops in range(4):
        visits = torch.zeros(6).index_add(0, data.rwgnk_index[0], data.rwgnk_load * (data.rwgnk_length == hops))
        torch.testing.assert_close(visits, torch.ones(6))  # every walk is somewhere after each hop
    counts = data.rwgnk_load[data.rwgnk_length > 0] * 5
    torch.testing.assert_close(counts, counts.round())


def test_batches() -> None:
    graphs = [AddRandomWalkKernel()(data) for data in uneven_graphs()]
    mask = RWGNKMask()
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 2]):
        expected = torch.block_diag(*(mask(graphs[index]).to_dense()[0] for index in order))
        actual = mask(Batch.from_data_list([graphs[index] for index in order])).to_dense()[0]
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-6)


def test_functional_name_and_compose() -> None:
    data = Compose([ToUndirected(), AddRandomWalkKernel(num_walks=2)])(Data(edge_index=ring(4), num_nodes=4))
    assert data.rwgnk_sizes[0, 0] == 4


def test_data_stores_the_walks_of_both_transforms() -> None:
    weighed, counted = AddGraphRandomFeatures(seed=1), AddRandomWalkKernel(seed=2)
    for data in (counted(weighed(small_graph())), weighed(counted(small_graph()))):
        for mask, alone in ((GRFMask(seed=5), weighed), (RWGNKMask(seed=5), counted)):
            assert torch.equal(mask(data).to_dense(), mask(alone(small_graph())).to_dense())


def test_walks_that_a_mask_cannot_read_are_refused() -> None:
    data = AddGraphRandomFeatures(normalization='rw', importance=False)(small_graph())
    with pytest.raises(ValueError, match=r"^data: got walks stored with normalization='rw'.*importance=False; accepted"):
        GRFMask()(data)


@pytest.mark.parametrize('drawn', [{'p_halt': 0.5}, {'transition': 'weight'}, {'walk_length': 'poisson:1.0'}])
def test_counted_walks_that_were_drawn_otherwise_are_refused(drawn: dict[str, Any]) -> None:
    data = AddRandomWalkKernel(num_walks=2, **drawn)(small_graph())
    assert RWGNKMask(num_walks=9, **drawn)(data).to_dense().shape == (1, 6, 6)
    with pytest.raises(ValueError, match=r'^data: got walks stored with .*p_halt=.*run AddRandomWalkKernel again'):
        RWGNKMask()(data)


@pytest.mark.parametrize(
    ('stored', 'read'),
    [
        ({'p_halt': 0}, {'p_halt': 0.0}),
        ({'p_halt': np.float64(0.5)}, {'p_halt': 0.5}),
        ({'walk_length': PoissonLength(2)}, {'walk_length': 'poisson:2'}),
        ({'walk_length': FixedLength(np.int64(3))}, {'walk_length': 'fixed:3'}),
    ],
    ids=str,
)
def test_counted_walks_fit_the_same_numbers_of_other_types(stored: dict[str, Any], read: dict[str, Any]) -> None:
    data = AddRandomWalkKernel(seed=4, **stored)(small_graph())
    assert torch.equal(RWGNKMask(**read)(data).to_dense(), RWGNKMask(seed=4, **read)(small_graph()).to_dense())


def test_changed_graphs_and_other_data_are_refused() -> None:
    data = AddSelfLoops()(AddRandomWalkKernel()(small_graph()))
    with pytest.raises(ValueError, match=r'^data: got stored walks'):
        RWGNKMask()(data)
    with pytest.raises(ValueError, match=r'^data: got'):
        AddRandomWalkKernel()(HeteroData())
    with pytest.raises(ValueError, match=r'^data: got a batch'):
        AddRandomWalkKernel()(GRAPHS['batch']())
    with pytest.raises(ValueError, match=r'^num_walks: got'):
        AddRandomWalkKernel(num_walks=0)
