"""The stored look-up tables: what they hold, and who accepts them."""

from typing import Any

import pytest
import torch
from graphs import GRAPHS, ring, small_graph, uneven_graphs
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import AddSelfLoops, Compose, ToUndirected

from pyg_topomask.masks import GRFMask
from pyg_topomask.masks.rwgnk import RWGNKMask
from pyg_topomask.transforms import AddGraphRandomFeatures
from pyg_topomask.transforms.add_random_walk_kernel import AddRandomWalkKernel

SINGLE = [name for name, make in GRAPHS.items() if not isinstance(make(), Batch) and name != 'no_edge_index']


@pytest.mark.parametrize('independent', [False, True])
@pytest.mark.parametrize('graph', SINGLE)
def test_stored_walks_are_those_of_the_mask_with_the_same_seed(graph: str, independent: bool) -> None:
    settings = {'num_walks': 6, 'p_halt': 0.3, 'max_walk_length': 2, 'independent_ensembles': independent}
    stored = AddRandomWalkKernel(**settings, seed=4)(GRAPHS[graph]())
    actual = RWGNKMask(2, **settings)(stored).to_dense()
    assert torch.equal(actual, RWGNKMask(2, **settings, seed=4)(GRAPHS[graph]()).to_dense())
    assert (stored.num_nodes, stored.num_edges) == (GRAPHS[graph]().num_nodes, GRAPHS[graph]().num_edges)


def test_tables_count_the_visits_of_each_number_of_hops() -> None:
    data = AddRandomWalkKernel(num_walks=5)(small_graph())
    for hops in range(4):
        visits = torch.zeros(6).index_add(0, data.grf_index[0], data.grf_load * (data.grf_length == hops))
        torch.testing.assert_close(visits, torch.ones(6))  # every walk is somewhere after each hop
    counts = data.grf_load[data.grf_length > 0] * 5
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
    assert data.grf_sizes[0, 0] == 4


def test_masks_of_the_other_kind_refuse_the_walks() -> None:
    counted, weighed = AddRandomWalkKernel()(small_graph()), AddGraphRandomFeatures()(small_graph())
    for mask, data, settings in (
        (
            GRFMask(max_walk_length=3, normalization='rw'),
            counted,
            "normalization='rw', flow='source_to_target' and importance=False",
        ),
        (RWGNKMask(), weighed, "normalization='sym', flow='source_to_target' and importance=True"),
    ):
        with pytest.raises(ValueError, match=rf'^data: got walks stored with {settings}; accepted'):
            mask(data)
    assert RWGNKMask(num_walks=None)(weighed).to_dense().shape == (1, 6, 6)


@pytest.mark.parametrize('drawn', [{'p_halt': 0.5}, {'transition': 'weight'}, {'walk_length': 'poisson:1.0'}])
def test_counted_walks_that_were_drawn_otherwise_are_refused(drawn: dict[str, Any]) -> None:
    data = AddRandomWalkKernel(num_walks=2, **drawn)(small_graph())
    assert RWGNKMask(num_walks=9, **drawn)(data).to_dense().shape == (1, 6, 6)
    with pytest.raises(ValueError, match=r'^data: got walks stored with .*p_halt=.*run AddRandomWalkKernel again'):
        RWGNKMask()(data)


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
