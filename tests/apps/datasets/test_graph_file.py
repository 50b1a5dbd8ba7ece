from __future__ import annotations

import copy
import gzip
import pickle
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import ToUndirected

from pyg_topomask.apps.datasets import GraphFile
from pyg_topomask.apps.datasets.graph_readers import read_graphs

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(path: str, **arguments: Any) -> GraphFile:
    return GraphFile('stored', path=path, **arguments)


def write_tables() -> None:
    """A path a - b - c - d with a loop at d, in which c has no label."""
    Path('edges.csv').write_text('source,target,weight,lanes\na,b,0.5,1\nb,c,2,1\nc,d,1,2\nd,d,3,1\n')
    Path('nodes.csv').write_text('id,kind,height\nd,rail,4\na,road,1\nb,rail,2\nc,,3\n')


def save(graphs: Any) -> str:
    torch.save(graphs, 'graphs.pt')
    return 'graphs.pt'


def graph(y: Any, **more: Tensor) -> Data:
    return Data(edge_index=PATH, num_nodes=3, y=y, **more)


def test_tables_become_one_graph_in_both_directions() -> None:
    write_tables()
    given = '3 labels in edges.csv with 2 classes, which leave no test split; accepted: some five of each class'
    with pytest.raises(ValueError, match=given):  # three labels do not fill three splits
        read('edges.csv', nodes='nodes.csv', label='kind')
    rows = [f'{name},{"ab"[i % 2]},{i}\n' for i, name in enumerate('dabcefghij')]
    Path('nodes.csv').write_text(''.join(['id,kind,height\n', *rows]))
    data = read('edges.csv', nodes='nodes.csv', label='kind')[0]
    dense = torch.zeros(10, 10).index_put((data.edge_index[0], data.edge_index[1]), data.edge_weight)
    d, a, b, c = range(4)
    expected = torch.zeros(10, 10)
    for one, other, weight in ((a, b, 0.5), (b, c, 2.0), (c, d, 1.0), (d, d, 3.0)):
        expected[one, other] = expected[other, one] = weight
    assert torch.equal(dense, expected)
    assert data.edge_attr.shape == (7, 1)
    torch.testing.assert_close(data.x.flatten(), (torch.arange(10) - 4.5) / 8.25**0.5)  # the variance of 0 to 9 is 8.25
    assert data.y.tolist() == [0, 1] * 5
    masks = torch.stack([data.train_mask, data.val_mask, data.test_mask])
    assert masks.sum(0).tolist() == [1] * 10
    assert masks.sum(1).tolist() == [6, 2, 2]
    one_way = read('edges.csv', nodes='nodes.csv', label='kind', directed=True)[0]
    assert one_way.edge_index.tolist() == [[d, a, b, c], [d, b, c, d]]
    assert one_way.edge_weight.tolist() == [3, 0.5, 2, 1]


@pytest.mark.parametrize('classes', [(0, 1), ('a', 'b')])
@pytest.mark.parametrize('text', ['', 'None', 'n/a', '<NA>', 'NaN', 'NULL'])
def test_nodes_without_a_label_are_in_no_split(text: str, classes: tuple[object, object]) -> None:
    Path('edges.csv').write_text('source,target\n' + ''.join(f'{i},{i + 1}\n' for i in range(20)))
    labels = ''.join(f'{i},{text if i == 7 else classes[i % 2]}\n' for i in range(21))
    Path('nodes.csv').write_text(f'id,label\n{labels}')
    data = read('edges.csv', nodes='nodes.csv')[0]
    assert not bool((data.train_mask | data.val_mask | data.test_mask)[7])
    assert data.y[[6, 8, 9]].tolist() == [0, 0, 1]
    degrees = torch.tensor([1.0] + [2.0] * 19 + [1.0])
    torch.testing.assert_close(data.x, torch.stack([torch.ones(21), degrees.log1p()], 1))


@pytest.mark.parametrize('missing', ['', float('nan')])
def test_graphml_may_lack_labels(missing: Any) -> None:
    stored = networkx.path_graph(20)
    for node in stored:
        present = 'ab'[node % 2] if missing == '' else node / 2
        stored.nodes[node]['label'] = missing if node == 7 else present
    networkx.write_graphml(stored, 'graph.graphml')
    data = read('graph.graphml')[0]
    assert not bool((data.train_mask | data.val_mask | data.test_mask)[7])
    assert len(data.y[torch.arange(20) != 7].unique()) == (2 if missing == '' else 19)


@pytest.mark.parametrize('kind', [networkx.Graph, networkx.DiGraph])
def test_graphml(kind: type[networkx.Graph]) -> None:
    stored = networkx.path_graph(12, create_using=kind)
    for node in stored:
        stored.nodes[node].update(club='east' if node % 2 else 'west', age=node / 2)
    networkx.set_edge_attributes(stored, 1.5, 'weight')
    networkx.write_graphml(stored, 'graph.graphml')
    data = read('graph.graphml', label='club')[0]
    assert data.num_edges == (11 if kind is networkx.DiGraph else 22)
    assert data.y.tolist() == [1, 0] * 6
    torch.testing.assert_close(data.x.flatten(), (torch.arange(12) - 5.5) / (143 / 12) ** 0.5)
    assert data.edge_weight.unique().tolist() == [1.5]
    with pytest.warns(UserWarning, match='the columns club are no numbers'):
        assert read('graph.graphml', label='age')[0].y.shape == (12, 1)  # numbers to predict


@pytest.mark.parametrize('writer', ['rustworkx', 'networkit'])
def test_graphml_that_networkx_misreads(writer: str) -> None:
    # rustworkx 0.18.1 numbers the keys of nodes and of edges from d1 on. networkit 11.3 writes the namespace as xmlnsi.
    kinds = ('node', 'label', 'd1'), ('edge', 'weight', 'd1' if writer == 'rustworkx' else 'd2')
    name = 'xmlns' if writer == 'rustworkx' else 'xmlnsi'
    keys = ''.join(f'<key id="{key}" for="{kind}" attr.name="{name}" attr.type="int"/>' for kind, name, key in kinds)
    nodes = ''.join(f'<node id="n{index}"><data key="d1">{index % 2}</data></node>' for index in range(12))
    edge = f'<edge source="n0" target="n1"><data key="{kinds[1][2]}">5</data></edge>'
    body = f'{keys}<graph edgedefault="undirected">{nodes}{edge}</graph>'
    Path('graph.graphml').write_text(f'<graphml {name}="http://graphml.graphdrawing.org/xmlns">{body}</graphml>')
    data = read('graph.graphml')[0]
    assert data.y.tolist() == [0, 1] * 6
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert data.edge_weight.tolist() == [5, 5]


def test_graphml_of_osmnx() -> None:
    """OSMnx 2.0 (osmnx/io.py, save_graphml) writes all values as text. Coordinates are x and y, which is no label. Some values
    are missing or lists. Without parallel edges, networkx 3.6.1 reads a DiGraph, and otherwise a MultiDiGraph."""
    names = {'node': ('y', 'x', 'street_count', 'kind', 'ref'), 'edge': ('osmid', 'length', 'lanes', 'oneway')}
    keys = ''.join(
        f'<key id="{kind}{name}" for="{kind}" attr.name="{name}" attr.type="string"/>' for kind in names for name in names[kind]
    )

    def data(element: str, **values: object) -> str:
        return ''.join(f'<data key="{element}{name}">{value}</data>' for name, value in values.items())

    streets = [{'y': 47 + i / 10, 'x': 8.5, 'street_count': 3 + i % 2, 'kind': 'ab'[i % 2]} for i in range(12)]
    streets[0]['ref'] = 7
    nodes = ''.join(f'<node id="{9000 + i}">{data("node", **values)}</node>' for i, values in enumerate(streets))
    edges = [(i, i + 1, {'osmid': i, 'length': 10.5 + i, 'lanes': 2, 'oneway': True}) for i in range(11)]
    edges[3][2]['osmid'] = '[3, 4]'
    del edges[5][2]['lanes']
    for parallel in (False, True):
        given = [*edges, (0, 1, {'osmid': 99, 'length': 30, 'oneway': False})] if parallel else edges
        text = ''.join(
            f'<edge source="{9000 + i}" target="{9000 + j}" id="{int(number == 11)}">{data("edge", **values)}</edge>'
            for number, (i, j, values) in enumerate(given)
        )
        text = f'{keys}<graph edgedefault="directed">{nodes}{text}</graph>'
        Path('roads.graphml').write_text(f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{text}</graphml>')
        with pytest.warns(UserWarning, match='the columns ref, osmid, lanes, oneway are no numbers, or not everywhere'):
            found = read('roads.graphml', label='kind')[0]
        assert found.edge_index.tolist() == [[*range(11)], [*range(1, 12)]]
        assert found.x.shape == (12, 3)
        first, *others = found.edge_attr.flatten().tolist()
        assert np.allclose(np.diff(others), others[1] - others[0])  # lengths 11.5, 12.5 ...
        length = 20.25 if parallel else 10.5  # the mean of parallel edges
        assert first == pytest.approx(others[0] + (length - 11.5) * (others[1] - others[0]), abs=1e-5)
        with pytest.raises(
            ValueError, match=r'label: got no label, which roads\.graphml lacks; accepted: .*street_count, kind'
        ):
            read('roads.graphml')


def test_graphs_with_a_label_each_are_split_by_class() -> None:
    path = save([graph(torch.tensor([7 if index % 2 else 3])) for index in range(20)])
    dataset = read(path)
    assert [int(data.y) for data in dataset] == [0, 1] * 10
    splits = dataset.split_indices()
    assert [len(index) for index in splits.values()] == [12, 4, 4]
    assert all(int(index.remainder(2).sum()) == len(index) // 2 for index in splits.values())


def test_other_files_of_torch() -> None:
    graphs = [graph(torch.tensor([0, 1, index % 2])) for index in range(6)]
    assert read(save(graphs))[5].y.tolist() == [0, 1, 1]  # a label for each node
    with pytest.raises(ValueError, match=r'2 graphs in graphs\.pt, which leave no test split; accepted: some five or more'):
        read(save(graphs[:2]))
    several = [graph(torch.tensor([[1.0, index % 2, 0.0]])) for index in range(10)]
    assert read(save(several))[1].y.tolist() == [[1.0, 1.0, 0.0]]
    text = [graph(name) for name in ['b', 'a'] * 5]
    assert [int(data.y) for data in read(save(text))] == [1, 0] * 5
    masks = {f'{name}_mask': torch.arange(3) == place for place, name in enumerate(('train', 'val', 'test'))}
    data = read(save(graph(torch.tensor([0.5, float('nan'), 1.0])[[0, 2, 0]], **masks)))[0]
    assert data.test_mask.tolist() == [False, False, True]


def test_whole_numbers_are_classes_or_with_regression_numbers() -> None:
    Path('edges.csv').write_text('source,target\n' + ''.join(f'{i},{i + 1}\n' for i in range(29)))
    Path('nodes.csv').write_text('id,label\n' + ''.join(f'{i},{7 * i}\n' for i in range(30)))
    warned = pytest.warns(UserWarning, match='30 whole numbers, and so classes; to predict numbers, use --regression')
    with warned, pytest.raises(ValueError, match='which leave no'):  # each class has one label
        read('edges.csv', nodes='nodes.csv')
    assert read('edges.csv', nodes='nodes.csv', regression=True)[0].y.tolist() == [[7.0 * i] for i in range(30)]
    Path('nodes.csv').write_text('id,label\n' + ''.join(f'{i},{"ab"[i % 2]}\n' for i in range(30)))
    with pytest.raises(ValueError, match=r'regression: got labels a \.\.\. in nodes.csv'):
        read('edges.csv', nodes='nodes.csv', regression=True)


GRAPHML = '<graphml><graph edgedefault="directed"><node id="a"/><node id="b"/><edge source="a" target="b"/></graph></graphml>'
BROKEN = {
    'suffix': ('graph.doc', 'x', r'files that end in .pt, .*networkx.write_graphml\(graph'),
    'columns': ('edges.csv', 'source,target\na,b\nc\n', r'1 columns in line 3'),
    'header': ('edges.csv', '0,1\n1,2\n', "'0,1' in line 1"),
    'number': ('edges.csv', 'source,target,weight\na,b,1\na,c,far\n', r"'far' in edges.csv, line 3, column weight"),
    'no label': ('edges.csv', 'source,target\na,b\n', 'give a table of nodes with --nodes'),
    'graphml': ('graph.graphml', '<graphml>\n <node>\n</graphml>', r'line 3, column 3: mismatched tag; accepted'),
    'graphml without labels': ('graph.graphml', GRAPHML, 'accepted: nodes with labels; write an attribute of each node'),
    'torch': ('graph.pt', 'text', 'which is no file of torch'),
}


def test_broken_files_are_refused_at_their_place(subtests: pytest.Subtests) -> None:
    for case in BROKEN:
        with subtests.test(case=case):
            name, text, message = BROKEN[case]
            Path(name).write_text(text)
            Path('nodes.csv').write_text('id,label\na,0\nb,1\nc,1\n')
            nodes = {'nodes': 'nodes.csv'} if case == 'number' else {}
            with pytest.raises(ValueError, match=message):
                read(name, **nodes)
            assert not list(Path('stored').rglob('*.pt'))  # nothing is stored


def test_tables_that_disagree_are_refused() -> None:
    write_tables()
    Path('edges.csv').write_text('source,target\na,b\na,z\n')
    with pytest.raises(ValueError, match=r"'z' in edges.csv, line 3, which nodes.csv lacks"):
        read('edges.csv', nodes='nodes.csv', label='kind')
    Path('nodes.csv').write_text('id,kind\na,0\nb,1\na,1\n')
    with pytest.raises(ValueError, match=r"'a' in nodes.csv, line 4 again"):
        read('edges.csv', nodes='nodes.csv', label='kind')
    Path('nodes.csv').write_text('id,kind\na,0\nb,1\nz,1\n')
    with pytest.raises(ValueError, match=r'label: got colour, which nodes.csv lacks; accepted: kind'):
        read('edges.csv', nodes='nodes.csv', label='colour')
    with pytest.raises(ValueError, match=r'nodes: got nodes.csv; accepted: a table of nodes beside a table of edges'):
        read(save(graph(torch.tensor([0, 1, 0]))), nodes='nodes.csv')


class Code:
    def __reduce__(self) -> Any:
        return print, ('code of the file ran',)


def test_labels_and_graphs_that_cannot_be_trained_on(subtests: pytest.Subtests) -> None:
    for graphs, message in [
        ([graph(torch.tensor([1])) for _ in range(5)], 'as the only label'),
        (graph(None), "'y', which graphs.pt, graph 0 lacks"),
        (graph(None, edge_weight=torch.ones(4), kind=torch.arange(3)), 'lacks; accepted: kind; name'),
        (graph(torch.tensor([0, 1])), '2 labels for 1 graphs of 3 nodes'),
        (graph(torch.tensor([0.0, float('inf'), 1.0])), 'infinite numbers'),
        (
            [graph(torch.tensor([index + 0.5])) if index else graph(torch.tensor([float('nan')])) for index in range(9)],
            '1 missing',
        ),
        (graph(torch.tensor([0, 1, 0]), train_mask=torch.ones(3, dtype=torch.bool)), 'val_mask, test_mask: got none'),
        (
            graph(torch.tensor([0, 1, 0]), x=torch.tensor([0.0, float('nan'), 1.0])),
            'x: got NaN or infinity in graphs.pt, graph 0',
        ),
        ([graph(torch.tensor([i]), **({} if i else {'x': torch.ones(3)})) for i in range(9)], 'graph 1, which differs .* in x'),
        ([graph(torch.tensor([i]), x=torch.ones(3, 1 + i // 8)) for i in range(9)], 'x: got 2 columns in graphs.pt, graph 8'),
        (Data(edge_index=PATH + 1, num_nodes=3, y=torch.tensor([0, 1, 0])), 'graphs.pt, graph 0: .*larger indices'),
        (
            graph(torch.tensor([0, 1, 0]), **{f'{name}_mask': torch.arange(3) < 2 for name in ('train', 'val', 'test')}),
            'masks that share nodes',
        ),
        (({'x': torch.ones(3)}, None), r'tuple in graphs.pt; .*torch.save\(list\(dataset\)'),
        (Data(pos=torch.rand(3, 2), edge_index=PATH[:, :0], y=torch.tensor([0, 1, 0])), 'KNNGraph'),
        (Data(adj_t=torch.eye(3).to_sparse_csr(), num_nodes=3, y=torch.tensor([0, 1, 0])), r'to_edge_index\(data.adj_t'),
        (networkx.path_graph(3), r'networkx.classes.graph.Graph; .*networkx.write_graphml'),
        ([], 'without graphs'),
        ([3], 'int in graphs.pt, entry 0'),
    ]:
        with subtests.test(graphs=graphs, message=message), pytest.raises(ValueError, match=message):
            read(save(graphs))


def test_one_hot_labels_and_a_file_in_place_of_a_folder_are_noticed() -> None:
    with pytest.warns(UserWarning, match=r'each has one of 2 labels, .* use y.argmax\(1\)'):
        read(save([graph(torch.eye(2)[[index % 2]].long()) for index in range(9)]))
    with pytest.raises(ValueError, match=r"root: got 'graphs.pt', which is a file; .* GraphFile\('stored', path='graphs.pt'\)"):
        GraphFile('graphs.pt')


@pytest.mark.filterwarnings('ignore:nodes.csv. the columns val are no numbers')
@pytest.mark.parametrize('flags', [('true', 'False'), ('1', '0'), ('1.0', '0.0')])
def test_masks_of_tables_are_the_split(flags: tuple[str, str]) -> None:
    Path('edges.csv').write_text('source,target\n' + ''.join(f'{i},{i + 1}\n' for i in range(11)))
    rows = [f'{i},{"ab"[i % 2]},{i},' + ','.join(flags[i % 4 != place] for place in range(3)) for i in range(12)]
    table = '\n'.join(['id,label,h,train_mask,Val_Mask,test_mask', *rows])
    Path('nodes.csv').write_text(table)
    data = read('edges.csv', nodes='nodes.csv')[0]
    assert data.x.shape == (12, 1)
    for place, name in enumerate(('train', 'val', 'test')):
        assert data[f'{name}_mask'].nonzero().flatten().tolist() == [*range(place, 12, 4)]
    Path('nodes.csv').write_text(table.replace(f'3,b,3,{flags[1]}', '3,b,3,'))
    with pytest.raises(ValueError, match=r'^nodes: got no value in nodes.csv, line 5, column train_mask; accepted: true'):
        read('edges.csv', nodes='nodes.csv')
    Path('nodes.csv').write_text(table.replace('Val_Mask', 'val'))
    with pytest.raises(ValueError, match=r'^val_mask: got none in edges.csv, beside train_mask, test_mask'):
        read('edges.csv', nodes='nodes.csv')
    numbers = [row.replace(',a,', ',4,').replace(',b,', f',{-1 if i % 4 == 3 else 7},') for i, row in enumerate(rows)]
    Path('nodes.csv').write_text('\n'.join(['id,label,h,train_mask,Val_Mask,test_mask', *numbers]))
    y = read('edges.csv', nodes='nodes.csv')[0].y  # a warning would be an error
    assert [int(y[i]) for i in range(12) if i % 4 < 3] == [0, 1, 0] * 3


@pytest.mark.parametrize('kind', [bool, int, str])
def test_masks_of_graphml_are_the_split(kind: type) -> None:
    stored = networkx.path_graph(12)
    for node in stored:
        masks = {f'{name}_mask': kind(node % 4 == place) for place, name in enumerate(('train', 'val', 'test'))}
        stored.nodes[node].update(label='ab'[node % 2], **masks)
    networkx.write_graphml(stored, 'graph.graphml')
    data = read('graph.graphml')[0]
    assert data.val_mask.nonzero().flatten().tolist() == [1, 5, 9]
    torch.testing.assert_close(data.x[:, 0], torch.ones(12))  # the masks are no features
    stored.nodes[2]['val_mask'] = kind(0) if kind is bool else kind(2)
    stored.nodes[2].update({'val_mask': 'maybe'} if kind is bool else {})
    networkx.write_graphml(stored, 'graph.graphml')
    with pytest.raises(ValueError, match=r"^nodes: got ('maybe'|2|'2') in node 2, column val_mask"):
        read('graph.graphml')


def test_masks_of_several_graphs_are_refused_until_they_are_one() -> None:
    masks = {f'{name}_mask': torch.arange(3) == place for place, name in enumerate(('train', 'val', 'test'))}
    graphs = [graph(torch.tensor([0, 1, index % 2]), **masks) for index in range(6)]
    message = r'train_mask, val_mask, test_mask: got masks in each of 6 graphs in graphs.pt; .*from_data_list'
    with pytest.raises(ValueError, match=message):
        read(save(graphs))
    data = read(save(Data(**Batch.from_data_list(graphs).to_dict())))[0]  # as the message says
    assert data.test_mask.tolist() == [False, False, True] * 6
    assert data.num_edges == 24


def test_what_pyg_caches_in_its_objects_is_left_out() -> None:
    graphs = [ToUndirected()(graph(torch.tensor([index % 2]), x=torch.eye(3))) for index in range(20)]
    assert '_cached_attr' in vars(graphs[0]._store)
    before = torch.serialization.get_safe_globals()
    (first, *_) = read_graphs(Path(save(graphs)))
    assert set(torch.serialization.get_safe_globals()) == set(before)
    assert '_cached_attr' not in vars(first._store)
    assert (first.is_node_attr('x'), first.is_edge_attr('x'), first.num_edges) == (True, False, 4)
    dataset = read('graphs.pt')
    assert [int(data.y) for data in dataset] == [0, 1] * 10
    assert Batch.from_data_list([dataset[0], copy.copy(dataset[1])]).x.shape == (6, 3)


def test_what_pyg_may_load_stays_allowed() -> None:
    before = torch.serialization.get_safe_globals()
    read(save([graph(torch.tensor([0, 1, 1]))] * 6))
    assert set(torch.serialization.get_safe_globals()) == set(before)  # torch 2.13 forbids what its context was given


def test_no_code_of_a_file_runs(capsys: pytest.CaptureFixture[str]) -> None:
    Path('graphs.pt').write_bytes(pickle.dumps(Code()))
    with pytest.raises(ValueError, match=r'data: got graphs.pt'):
        read('graphs.pt')
    torch.save(Code(), 'graphs.pt')
    with pytest.raises(ValueError, match='which holds print'):
        read('graphs.pt')
    assert 'code of the file ran' not in capsys.readouterr().out


def test_other_objects_of_pyg_are_named() -> None:
    typed = HeteroData({'a': {'x': torch.eye(2)}, ('a', 'to', 'a'): {'edge_index': torch.tensor([[0], [1]])}})
    for stored, message in (
        (typed, r'holds HeteroData of PyG; .*; save its graphs: torch\.save\(data\.to_homogeneous\(\)'),
        (
            Batch.from_data_list([graph(torch.tensor([0, 1, 1]))]),
            r'holds a Batch of PyG; .*: torch\.save\(batch\.to_data_list\(\)',
        ),
    ):
        with pytest.raises(ValueError, match=message):
            read(save(stored))


def test_several_splits_name_the_choice() -> None:
    masks = {f'{name}_mask': torch.ones(3, 10, dtype=torch.bool) for name in ('train', 'val', 'test')}
    with pytest.raises(ValueError, match=r'data.train_mask\[:, 0\]'):
        read(save(graph(torch.tensor([0, 1, 0]), **masks)))


@pytest.mark.parametrize(
    ('edges', 'nodes'),
    [
        ('Source; Target; Weight\n"n0"; "n1"; 2\n\n', 'Id;Label;h\n{}'),
        (',source,target,Weight,id\n0,n0,n1,1,7\n1,n1,n0,3,8\n', 'Unnamed: 0,id,label,h\n{}'),  # of pandas
        ('\ufeffsource\ttarget\tweight\nn0\tn1\t2\n', 'label,h,id\n{}'),
    ],
)
def test_tables_as_people_have_them(edges: str, nodes: str) -> None:
    columns = nodes.split('\n')[0].replace(';', ',').lower().split(',')
    rows = [{'id': f'n{i}', 'label': 'NA' if i == 3 else 'ab'[i % 2], 'h': f'{i}', 'unnamed: 0': f'{i}'} for i in range(16)]
    text = '\n'.join(','.join(row[column] for column in columns) for row in rows)
    Path('edges.csv').write_text(edges)
    Path('nodes.csv').write_text(nodes.format(text.replace(',', ';') if ';' in nodes else text))
    data = read('edges.csv', nodes='nodes.csv')[0]
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]
    assert data.edge_weight.tolist() == [2, 2]
    assert 'edge_attr' not in data
    torch.testing.assert_close(data.x.flatten(), (torch.arange(16) - 7.5) / (255 / 12) ** 0.5)
    assert data.y.unique().tolist() == [0, 1]
    assert int((data.train_mask | data.val_mask | data.test_mask).sum()) == 15


@pytest.mark.parametrize(
    ('name', 'first', 'edges', 'attribute'),
    [
        ('a.metis', 1, '12 11 001\n2 5\n' + ''.join(f'{i - 1} 5 {i + 1} 5\n' for i in range(2, 12)) + '11 5\n', 'edge_weight'),
        ('a.gr', 1, 'p sp 12 11\n' + ''.join(f'a {i} {i + 1} 5\n' for i in range(1, 12)), 'edge_attr'),
        ('a.txt', 40, '# a path\n' + ''.join(f'{i}\t{i + 1}\n' for i in range(40, 51)), None),
    ],
)
def test_files_of_other_tools_with_a_table_of_labels(name: str, first: int, edges: str, attribute: str | None) -> None:
    Path(name).write_text(edges)
    with pytest.raises(ValueError, match=rf'nodes: got None; accepted: a table with labels of the nodes of {name}'):
        read(name)
    Path('nodes.csv').write_text('id,label\n' + ''.join(f'{i + first},{"ab"[i % 2]}\n' for i in range(12)))
    data = read(name, nodes='nodes.csv')[0]
    path = sorted([(i, i + 1) for i in range(11)] + [(i + 1, i) for i in range(11)])
    assert data.edge_index.t().tolist() == [[*edge] for edge in path]
    assert data.y.tolist() == [0, 1] * 6
    assert {'edge_weight', 'edge_attr'} & set(data.to_dict()) == {attribute} - {None}
    if attribute == 'edge_weight':
        assert data.edge_weight.unique().tolist() == [5]
    elif name == 'a.gr':
        Path('a.gr.gz').write_bytes(gzip.compress(edges.encode()))
        assert read('a.gr.gz', nodes='nodes.csv')[0].num_edges == 22
        assert read(name, nodes='nodes.csv', directed=True)[0].num_edges == 11


def test_numbers_as_ids_and_tables_without_a_header() -> None:
    Path('edges.csv').write_text('source,target\n0.0,1.0\n')
    Path('nodes.csv').write_text('id,label\n' + ''.join(f'{i},{"ab"[i % 2]}\n' for i in range(12)))
    assert read('edges.csv', nodes='nodes.csv')[0].edge_index.tolist() == [[0, 1], [1, 0]]
    Path('edges.csv').write_text('a,b\nb,c\n')
    Path('nodes.csv').write_text('id,label\na,0\nb,1\nc,1\n')
    with pytest.raises(ValueError, match=r"edges.csv: got the node 'a' in line 1"):
        read('edges.csv', nodes='nodes.csv')
    Path('edges.csv').write_text('source,target\na,b\n')
    Path('nodes.csv').write_text('id,label,h\na,0,\nb,1,2\n')
    with pytest.raises(ValueError, match=r'no value in nodes.csv, line 2, column h'):
        read('edges.csv', nodes='nodes.csv')


def test_weights_of_networkx_edge_features_and_graphs_without_edges() -> None:
    graphs = [graph(torch.tensor([index % 2]), weight=torch.arange(4), edge_attr=torch.arange(4)) for index in range(20)]
    graphs[3].edge_index, graphs[3].weight, graphs[3].edge_attr = PATH[:, :0].int(), torch.ones(0), torch.ones(0)
    dataset = read(save(graphs))
    assert dataset[0].edge_weight.tolist() == [0, 1, 2, 3]
    assert dataset[0].edge_attr.tolist() == [[0.0], [1.0], [2.0], [3.0]]
    assert (dataset[3].num_edges, dataset[3].edge_attr.shape) == (0, (0, 1))
    for stored in graphs:
        del stored.weight
        stored.edge_attr = stored.edge_attr.float() / 2
    with pytest.warns(UserWarning, match='edge_attr of one number for each edge, which is used as edge weights'):
        (first, *_) = read(save(graphs))
    assert (first.edge_weight.tolist(), 'edge_attr' in first) == ([0, 0.5, 1, 1.5], False)


def test_labels_of_another_name_are_no_features() -> None:
    graphs = [graph(None, kind=torch.tensor([index, 0, 1])) for index in range(20)]  # a warning would be an error
    assert read(save(graphs), label='kind', regression=True)[3].y.tolist() == [[3], [0], [1]]


def test_a_label_of_minus_one_outside_the_masks_is_no_class() -> None:
    y = torch.tensor([3, 5, -1, 3, 5, 3, 5, -1])  # a warning would be an error
    masks = {f'{split}_mask': torch.isin(torch.arange(8), torch.tensor(nodes)) for split, nodes in SELECTED.items()}
    data = read(save([Data(edge_index=PATH, num_nodes=8, y=y, **masks)]))[0]
    assert data.y[y >= 0].tolist() == [0, 1, 0, 1, 0, 1]
    masks['test_mask'][7] = True
    with pytest.warns(UserWarning, match='the label -1 is a class'):
        assert read(save([Data(edge_index=PATH, num_nodes=8, y=y, **masks)]))[0].y.max() == 2


SELECTED = {'train': [0, 1], 'val': [3, 4], 'test': [5, 6]}


def test_labels_that_may_be_meant_otherwise_are_named() -> None:
    with pytest.warns(UserWarning, match='the label -1 is a class'):
        read(save([graph(torch.tensor([index % 3 - 1])) for index in range(30)]))
    with pytest.warns(UserWarning, match='are numbers to predict'):
        read(save([graph(torch.tensor([index % 2 / 1.0])) for index in range(30)]))
    with pytest.warns(UserWarning, match='are numbers to predict'):
        read(save([graph(torch.tensor([index % 20 / 1.0])) for index in range(40)]))
    read(save([graph(torch.tensor([index % 21 / 1.0])) for index in range(42)]))  # a warning would be an error
    with pytest.warns(UserWarning, match='age are no features'):
        read(save([graph(torch.tensor([index % 2]), age=torch.ones(3)) for index in range(30)]))


def test_names_with_an_underscore_are_no_numbers() -> None:
    Path('edges.csv').write_text('source,target\n' + ''.join(f'{i},{i + 1}\n' for i in range(20)))
    labels = ''.join(f'{i},{["10", "1_0"][i % 2]}\n' for i in range(21))
    Path('nodes.csv').write_text(f'id,label\n{labels}')
    assert read('edges.csv', nodes='nodes.csv')[0].y.tolist() == [i % 2 for i in range(21)]


def test_an_infinite_weight_is_refused_at_its_place() -> None:
    Path('edges.csv').write_text('source,target,weight\n0,1,inf\n1,2,3\n')
    Path('nodes.csv').write_text('id,label\n0,a\n1,b\n2,a\n')
    with pytest.raises(ValueError, match=r"^data: got 'inf' in edges.csv, line 2, column weight; accepted: finite numbers"):
        read('edges.csv', nodes='nodes.csv')


def test_a_changed_file_is_noticed() -> None:
    with pytest.raises(ValueError, match=r'digest: got 0123, but .*graphs.pt has changed'):
        read(save([graph(torch.tensor([index % 2])) for index in range(20)]), digest='0123')
