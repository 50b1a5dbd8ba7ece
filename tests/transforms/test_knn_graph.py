import pytest
import torch
import torch_geometric.transforms as T
from torch.utils.data import IterDataPipe
from torch_geometric.data import Batch, Data, HeteroData

from pyg_topomask.ops.knn import knn_graph
from pyg_topomask.transforms.geometry import KNNGraph


def test_edges_go_to_the_nearest_neighbors() -> None:
    data = KNNGraph(k=2)(Data(pos=torch.tensor([[0.0], [1.0], [3.0], [7.0]]), x=torch.ones(4, 1)))
    assert data.edge_index.tolist() == [[1, 2, 0, 2, 1, 0, 2, 1], [0, 0, 1, 1, 2, 2, 3, 3]]
    assert torch.equal(KNNGraph(k=2, flow='target_to_source')(data).edge_index, data.edge_index.flip(0))
    assert data.is_directed()
    assert KNNGraph(k=1, loop=True)(data).edge_index.tolist() == [[0, 1, 2, 3]] * 2


def test_both_directions() -> None:
    pos = torch.rand(20, 2)
    theirs = T.ToUndirected()(KNNGraph(k=3)(Data(pos=pos)))
    assert torch.equal(KNNGraph(k=3, force_undirected=True)(Data(pos=pos)).edge_index, theirs.edge_index)


def test_adj_t_is_removed() -> None:
    data = T.ToSparseTensor()(Data(pos=torch.rand(5, 2), edge_index=torch.tensor([[0], [1]])))
    assert 'adj_t' not in KNNGraph(k=2)(data)


def test_batches_and_lists() -> None:
    graphs = [Data(pos=torch.rand(size, 3)) for size in (1, 4, 9)]
    batch = KNNGraph(k=3)(Batch.from_data_list(graphs))
    assert torch.equal(batch.edge_index, knn_graph(batch.pos, 3, batch.batch))
    assert torch.equal(batch.edge_index, Batch.from_data_list([KNNGraph(k=3)(data) for data in graphs]).edge_index)


def test_input_is_not_changed_and_stale_edge_values_go() -> None:
    edges = torch.tensor([[0], [1]])
    data = Data(pos=torch.rand(5, 2), edge_index=edges, edge_attr=torch.ones(1, 3), edge_weight=torch.ones(1))
    out = KNNGraph(k=2)(data)
    assert out.num_edges == 10
    assert 'edge_attr' not in out
    assert 'edge_weight' not in out
    assert data.edge_index is edges
    assert 'edge_attr' in data
    data = Data(pos=torch.rand(5, 2), edge_index=edges, weight=torch.ones(1), edge_type=torch.zeros(1), y=torch.ones(1))
    assert sorted(KNNGraph(k=2)(data).keys()) == ['edge_index', 'pos', 'y']
    data.edge_weight = torch.ones(1)
    assert sorted(KNNGraph(k=2)(data).keys()) == ['edge_index', 'pos', 'y']
    assert 'weight' in KNNGraph(k=2)(Data(pos=torch.rand(1, 2), edge_index=edges * 0, weight=torch.ones(1)))
    assert 'weight' in KNNGraph(k=2)(Data(pos=torch.rand(5, 2), edge_index=edges, weight=torch.ones(5)))  # of the nodes


def test_composes_with_transforms_of_pyg() -> None:
    data = T.Compose([KNNGraph(k=3), T.ToUndirected(), T.Distance()])(Data(pos=torch.rand(20, 3)))
    assert data.is_undirected()
    assert data.edge_attr.shape == (data.num_edges, 1)


def test_functional_name_and_repr() -> None:
    assert 'topo_knn_graph' in IterDataPipe.functions
    assert repr(KNNGraph(4)) == "KNNGraph(k=4, loop=False, force_undirected=False, flow='source_to_target')"


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r'^k: got 0'):
        KNNGraph(k=0)
    for name in ('loop', 'force_undirected'):
        with pytest.raises(ValueError, match=rf"^{name}: got 'False'; accepted: True, False"):
            KNNGraph(**{name: 'False'})
    with pytest.raises(ValueError, match=r'^data: got HeteroData'):
        KNNGraph()(HeteroData())
    with pytest.raises(ValueError, match=r'^data: got .* without a tensor pos'):
        KNNGraph()(Data(x=torch.ones(2, 1)))
    with pytest.raises(ValueError, match=r'^pos: got'):
        KNNGraph()(Data(pos=torch.full((2, 3), float('nan'))))
