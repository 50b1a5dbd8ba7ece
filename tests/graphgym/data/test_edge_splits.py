"""Splits of edges and pairs without an edge, by sets of pairs in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from unittest import mock

import numpy as np
import pytest
import torch
from configured_step import Held
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym import configuration
from pyg_topomask.graphgym.data.datasets import load_dataset
from pyg_topomask.graphgym.data.edge_splits import DrawOtherEnds, NodePairs
from pyg_topomask.transforms import AddSVDEncoding

SIZE = 16
OPTIONS = 'dataset.task link_pred gnn.head link_pred dataset.split [0.6,0.2,0.2] gt.layer_type GINE+Hop topomask.transforms []'


def graph(directed: bool) -> Data:
    """Parallel edges, self-loops, an isolated node, and numbers that tell all edges apart."""
    generator = np.random.default_rng(1)
    pairs = {(int(a), int(b)) for a, b in generator.integers(0, SIZE - 1, (30, 2)) if a != b}
    if directed:
        pairs |= {(0, 1), (1, 0)}  # two pairs
    else:
        pairs |= {(b, a) for a, b in pairs}
    edges = [*sorted(pairs), *sorted(pairs)[:8], (3, 3), (5, 5)]
    if not directed:
        edges += [(b, a) for a, b in sorted(pairs)[:3]]  # so that some edges have more reverses than others
    edge_index = torch.tensor([edges[place] for place in generator.permutation(len(edges))]).t()
    number = torch.arange(edge_index.size(1)).float()
    x = torch.from_numpy(generator.random((SIZE, 4))).float()
    return Data(x=x, edge_index=edge_index, edge_weight=number + 1, edge_attr=torch.stack([number, -number], 1))


def of_pairs(edge_index: torch.Tensor, directed: bool) -> list[tuple[int, int]]:
    """The pairs of the edges, and those of self-loops."""
    return [(a, b) if directed else (min(a, b), max(a, b)) for a, b in edge_index.t().tolist()]


def load(data: Data, options: str, configure: Callable[..., None], count: int = 1) -> Held:
    configure(f'{OPTIONS} {options}')
    return load_configured(Held([data] * count))


def load_configured(dataset: Held) -> Held:
    with mock.patch.dict(register.loader_dict, {'held': lambda *args: dataset}, clear=True):
        return load_dataset('held', 'held', '.')


def parts(data: Data, directed: bool) -> dict[str, tuple[list[tuple[int, int]], list[tuple[int, int]]]]:
    """The pairs with and without an edge in each split."""
    found = {}
    for split in ('train', 'val', 'test'):
        pairs, label = data[f'{split}_edge_index'].t().tolist(), data[f'{split}_edge_label'].tolist()
        assert set(label) <= {0, 1}
        both = [[tuple(pair) for pair, each in zip(pairs, label, strict=True) if each == kind] for kind in (1, 0)]
        assert directed or all(a < b for pair in both for a, b in pair)
        found[split] = (both[0], both[1])
    return found


@pytest.mark.parametrize('mode', ['all', 'disjoint'])
@pytest.mark.parametrize(  # few pairs without an edge, or most
    ('directed', 'decoding', 'ratio'),
    [(True, 'concat', 0.75), (True, 'concat', 4.0), (True, 'dot', 0.75), (False, 'concat', 0.75), (False, 'dot', 3.5)],
)
def test_each_pair_is_in_one_split_and_models_see_those_for_training(
    configure: Callable[..., None], directed: bool, decoding: str, mode: str, ratio: float
) -> None:
    given = graph(directed)
    directed &= decoding == 'concat'  # others give both directions one score
    linked = {pair for pair in of_pairs(given.edge_index, directed) if pair[0] != pair[1]}
    options = f'dataset.edge_train_mode {mode} dataset.edge_message_ratio 0.7 dataset.edge_negative_sampling_ratio {ratio}'
    options += f' dataset.split [0.6,0.1,0.3] model.edge_decoding {decoding}'
    (data,) = load(given, options, configure)
    found = parts(data, directed)
    seen = Counter(zip(of_pairs(data.edge_index, directed), data.edge_weight.tolist(), strict=True))
    assert seen <= Counter(zip(of_pairs(given.edge_index, directed), given.edge_weight.tolist(), strict=True))
    assert torch.equal(data.edge_attr, given.edge_attr[data.edge_weight.long() - 1])
    visible = {pair for pair, _ in seen if pair[0] != pair[1]}
    train, val, test = (found[split][0] for split in ('train', 'val', 'test'))
    if mode == 'all':
        assert visible == set(train)
        assert sorted([*train, *val, *test]) == sorted(linked)
    else:
        assert sorted([*visible, *train, *val, *test]) == sorted(linked)
        assert abs(len(visible) - 0.7 * (len(visible) + len(train))) <= 2
    # All parallel edges of a visible pair, both directions, and self-loops.
    expected = [pair for pair in of_pairs(given.edge_index, directed) if pair in visible or pair[0] == pair[1]]
    assert sorted(expected) == sorted(of_pairs(data.edge_index, directed))
    # Both directions of two nodes are together.
    assert len({frozenset(pair) for part in (train, val, test) for pair in part}) == sum(
        len({frozenset(pair) for pair in part}) for part in (train, val, test)
    )
    assert abs(len(val) - 0.1 * len(linked)) <= 2
    assert abs(len(test) - 0.3 * len(linked)) <= 2
    unlinked = [pair for split in found for pair in found[split][1]]
    assert len(unlinked) == len(set(unlinked))
    assert not set(unlinked) & linked
    assert all(a != b for a, b in unlinked)
    assert [len(found[split][1]) for split in found] == [round(ratio * len(found[split][0])) for split in found]
    assert torch.equal(data.x, given.x)


def test_the_seed_chooses_the_split(configure: Callable[..., None]) -> None:
    first, again, other = (load(graph(False), f'seed {seed}', configure)[0] for seed in (3, 3, 4))
    keys = [key for key in first.to_dict() if key.endswith(('edge_index', 'edge_label'))]
    assert len(keys) == 7
    assert all(torch.equal(first[key], again[key]) for key in keys)
    assert not torch.equal(first.val_edge_index, other.val_edge_index)


def test_pairs_for_training_that_are_drawn_anew(configure: Callable[..., None]) -> None:
    dataset = load(graph(False), 'dataset.resample_negative True', configure)
    torch.manual_seed(0)
    first, second = dataset[0], dataset[0]
    torch.manual_seed(0)
    assert torch.equal(dataset[0].train_edge_index, first.train_edge_index)
    (linked, unlinked), (same, others) = (parts(data, False)['train'] for data in (first, second))
    assert linked == same
    draws = [set(unlinked), *(set(parts(dataset[0], False)['train'][1]) for _ in range(9))]
    assert draws[1] == set(others)
    assert len({frozenset(draw) for draw in draws}) == 10
    known = set(of_pairs(graph(False).edge_index, False)) | {
        pair for split in ('val', 'test') for pairs in parts(first, False)[split] for pair in pairs
    }
    assert not set().union(*draws) & known
    assert {len(draw) for draw in draws} == {len(linked)}
    assert all(torch.equal(first[key], second[key]) for key in ('edge_index', 'val_edge_index', 'test_edge_index'))


@pytest.mark.parametrize('count', [3, 9])  # few of the pairs, or most
@pytest.mark.parametrize('directed', [True, False])
def test_all_pairs_without_an_edge_are_as_probable(directed: bool, count: int) -> None:
    pairs, _ = NodePairs.of(Data(edge_index=torch.tensor([[0, 1, 1, 4], [1, 0, 2, 4]]), num_nodes=6), ordered=directed)
    generator, counts = torch.Generator().manual_seed(0), Counter[tuple[int, int]]()
    for _ in range(2000):
        counts.update((a, b) for a, b in pairs.draw_unlinked(count, generator).t().tolist())
    free = {(a, b) for a in range(6) for b in range(6) if a != b and (directed or a < b)} - {(0, 1), (1, 0), (1, 2)}
    assert counts.keys() == free
    expected = 2000 * count / len(free)
    # Each number has a standard deviation below that of Poisson.
    assert max(abs(number - expected) for number in counts.values()) < 4.5 * expected**0.5


def test_transforms_do_not_see_the_pairs_to_predict(configure: Callable[..., None]) -> None:
    (data,) = load(graph(False), 'topomask.transforms [AddSVDEncoding] topomask.svd.rank 3', configure)
    seen = Data(edge_index=data.edge_index, edge_weight=data.edge_weight, num_nodes=SIZE)
    torch.testing.assert_close(data.svd_encoding, AddSVDEncoding(3)(seen).svd_encoding)
    assert not torch.allclose(data.svd_encoding, AddSVDEncoding(3)(graph(False)).svd_encoding)


@pytest.mark.parametrize('name', ['train_pos_edge_index', 'train_edge_index', 'val_edge_index', 'test_edge_index'])
def test_a_split_of_the_data_set_stays(configure: Callable[..., None], name: str) -> None:
    given = graph(False)
    given[name] = torch.tensor([[0], [2]])
    (data,) = load(given, 'dataset.split [0.8,0.1,0.1]', configure)
    assert torch.equal(data.edge_index, given.edge_index)
    assert data[name].tolist() == [[0], [2]]
    assert set(data.to_dict()) == set(given.to_dict())
    message = "^dataset.edge_train_mode: got 'disjoint', which nothing reads: the data set has its own split of edges"
    with pytest.warns(UserWarning, match=message):
        load(given, 'dataset.edge_train_mode disjoint dataset.split [0.8,0.1,0.1]', configure)


def test_one_graph_of_several_and_one_that_was_read_before(configure: Callable[..., None]) -> None:
    configure(OPTIONS)
    other = graph(False)
    other.x = other.x + 1
    (data,) = load_configured(Held([graph(True), other])[1:2])
    assert torch.equal(data.x, other.x)
    assert set(of_pairs(data.edge_index, False)) < set(of_pairs(other.edge_index, False))
    whole = Held([graph(False)])
    assert whole[0].num_edges == graph(False).num_edges
    assert load_configured(whole)[0].num_edges < graph(False).num_edges


def test_a_transform_of_the_data_set_stays(configure: Callable[..., None]) -> None:
    configure(f'{OPTIONS} dataset.resample_negative True')
    dataset = Held([graph(False)])
    dataset.transform = lambda data: data.update({'seen': True})
    (data,) = load_configured(dataset)
    assert data.seen
    assert data.train_edge_index.size(1) == data.train_edge_label.numel()


def test_transforms_do_not_touch_labelled_pairs(configure: Callable[..., None]) -> None:
    given = graph(True)
    given.edge_attr = None
    keys = [f'{split}_edge_{kind}' for split in ('train', 'val', 'test') for kind in ('index', 'label')]
    # As many pairs as edges, which PyG would take for attributes of edges.
    (plain,) = load(given, 'dataset.edge_train_mode disjoint dataset.edge_message_ratio 0.5', configure)
    ratio = (plain.num_edges - (plain.train_edge_label == 1).sum()) / (plain.train_edge_label == 1).sum()
    options = (
        f'dataset.edge_train_mode disjoint dataset.edge_message_ratio 0.5 dataset.edge_negative_sampling_ratio {ratio:.3f}'
    )
    (plain,) = load(given, options, configure)
    assert plain.num_edges == plain.train_edge_label.numel()
    (changed,) = load(given, f'{options} topomask.transforms [ToUndirected]', configure)
    assert changed.num_edges > plain.num_edges
    assert all(torch.equal(changed[key], plain[key]) for key in keys)
    for name in ('VirtualNode', 'LargestConnectedComponents'):
        message = f'^topomask.transforms: got {name} for graphs with labelled pairs of nodes; accepted: transforms that neither'
        with pytest.raises(ArgumentError, match=message):
            load(given, f'{options} topomask.transforms [{name}]', configure)


def test_labels_of_edges_that_are_not_predicted_stay_with_the_edges(configure: Callable[..., None]) -> None:
    configure('dataset.task node gnn.head node topomask.transforms [ToUndirected]')
    (data,) = load_configured(
        Held([Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]), edge_label=torch.ones(2))])
    )
    assert data.edge_label.size(0) == data.num_edges == 4


def of_several(*labels: list[int]) -> Held:
    """Graphs of nine nodes with labelled pairs, the second and third for validation and testing."""
    pairs = torch.tensor([[0, 2, 4], [1, 3, 5]])
    graphs = [
        Data(x=torch.ones(9, 2), edge_index=pairs, edge_label_index=pairs[:, : len(each)], edge_label=torch.tensor(each))
        for each in labels
    ]
    dataset = Held(graphs)
    for place, split in enumerate(('train', 'val', 'test')):
        dataset._data[f'{split}_graph_index'], dataset.slices[f'{split}_graph_index'] = (
            torch.tensor([place]),
            torch.tensor([0, 1]),
        )
    return dataset


def load_several(*labels: list[int]) -> Held:
    """Loads the graphs, as GraphGym does, which then deletes the places of the splits."""
    dataset = load_configured(of_several(*labels))
    for split in ('train', 'val', 'test'):
        del dataset._data[f'{split}_graph_index']
    return dataset


def test_pairs_of_several_graphs_are_drawn_anew_for_training_alone(configure: Callable[..., None]) -> None:
    configure('dataset.task graph gnn.head inductive_edge dataset.resample_negative True topomask.transforms []')
    dataset = load_several([1, 1], [1, 1], [1, 0, 1])
    draws = [[data.edge_label_index.tolist() for data in dataset] for _ in range(5)]
    train, val, test = ({str(pairs) for pairs in column} for column in zip(*draws, strict=True))
    assert (len(train), len(val), len(test)) == (5, 1, 1)
    assert dataset[1].edge_label.tolist() == [1, 1, 0, 0, 0, 0]
    assert dataset[2].edge_label.tolist() == [1, 0, 1]
    assert not any('draw_seed' in data for data in dataset)
    configure('seed 7 dataset.task graph gnn.head inductive_edge dataset.resample_negative True topomask.transforms []')
    assert str(load_several([1, 1], [1, 1], [1])[1].edge_label_index.tolist()) not in val
    with pytest.raises(ArgumentError, match=r'^dataset.resample_negative: got True for other labels .*; accepted: False'):
        load_several([1, 2], [1], [1])


@pytest.mark.parametrize('kind', [list, np.array, lambda index: np.isin(np.arange(3), index), lambda index: range(1, 2)])
def test_places_of_splits_are_what_pyg_takes(configure: Callable[..., None], kind: Callable[[list[int]], object]) -> None:
    configure('dataset.task graph gnn.head inductive_edge dataset.resample_negative True topomask.transforms []')
    dataset = of_several([1, 1], [1, 1], [1, 1])
    dataset._data.val_graph_index = kind([1])
    load_configured(dataset)
    assert (dataset._data.draw_seed < 0).tolist() == [True, False, False]


def test_transforms_that_add_features(configure: Callable[..., None]) -> None:
    configure('dataset.task graph gnn.head inductive_edge topomask.transforms [LocalDegreeProfile]')
    pairs = torch.tensor([[0, 2, 4], [1, 3, 5]])
    graphs = [
        Data(edge_index=pairs, edge_label_index=pairs, edge_label=torch.tensor(label), num_nodes=9)
        for label in ([1, 0, 1], [1, 0, 0], [0, 1, 1])
    ]
    changed = load_configured(Held(graphs))
    assert changed[1].x.shape == (9, 5)
    assert changed[1].edge_label.tolist() == [1, 0, 0]
    view = load_configured(Held(graphs)[1:])
    assert [data.edge_label.tolist() for data in view] == [[1, 0, 0], [0, 1, 1]]


@pytest.mark.parametrize('head', ['link_pred', 'inductive_edge'])
def test_processes_would_not_draw_the_same_pairs_again(configure: Callable[..., None], head: str) -> None:
    configure(f'{OPTIONS} gnn.head {head} dataset.resample_negative True num_workers 1')
    if head == 'inductive_edge':
        cfg.dataset.task = 'graph'
    dataset = of_several([1], [1], [1]) if head == 'inductive_edge' else Held([graph(False)])
    with pytest.raises(ArgumentError, match=r'^num_workers: got 1 with dataset.resample_negative; accepted: 0'):
        load_configured(dataset)


def test_small_integers(configure: Callable[..., None]) -> None:
    given = graph(False)
    given.edge_index = given.edge_index.int()
    (data,), (same,) = load(given, '', configure), load(graph(False), '', configure)
    assert torch.equal(data.test_edge_index, same.test_edge_index)


def test_a_checkout_of_graphgps_splits_edges_itself(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    configure(f'{OPTIONS} gnn.head inductive_edge dataset.resample_negative True')
    options = configuration.GRAPHGPS_SCHEMA['posenc']  # which GraphGPS declares itself
    monkeypatch.setitem(register.config_dict, 'posenc', lambda node: configuration._declare(node, options))
    dataset = load_configured(Held([graph(False)]))
    assert 'train_edge_index' not in dataset[0]
    assert dataset.transform is None


def test_graphs_without_edges(configure: Callable[..., None]) -> None:
    with pytest.raises(
        ArgumentError, match=r"^dataset.task: got 'link_pred' for Data without edge_index; accepted: this for Data"
    ):
        load(Data(x=torch.ones(3, 2)), '', configure)


def test_a_graph_with_all_edges(configure: Callable[..., None]) -> None:
    edge_index = torch.ones(6, 6).fill_diagonal_(0).nonzero().t()
    with pytest.raises(ArgumentError, match=r"^dataset.task: got 'link_pred' for a graph of 6 nodes with all edges; accepted"):
        load(Data(x=torch.ones(6, 2), edge_index=edge_index), '', configure)


@pytest.mark.parametrize(
    ('options', 'count', 'message'),
    [
        ('', 2, r"^dataset.task: got 'link_pred' for 2 graphs; accepted: this for one graph"),
        ('dataset.split [0.5,0.5,0.5]', 1, r'^dataset.split: got \[0.5, 0.5, 0.5\]; accepted: three positive shares'),
        ('dataset.split [0.98,0.01,0.01]', 1, r'^dataset.split, dataset.edge_train_mode: .*; accepted: at least one edge'),
        ('dataset.edge_train_mode some', 1, r"^dataset.edge_train_mode: got 'some'; accepted: all, disjoint"),
        ('dataset.edge_train_mode disjoint dataset.edge_message_ratio 1.5', 1, r'^dataset.edge_message_ratio: got 1.5'),
        ('dataset.edge_train_mode disjoint dataset.edge_message_ratio 1.0', 1, r'^dataset.split, dataset.edge_train_mode'),
        ('dataset.edge_negative_sampling_ratio 99.0', 1, r'^dataset.edge_negative_sampling_ratio: got 99.0, for \d+ of \d+'),
        (
            'dataset.edge_negative_sampling_ratio 0.0',
            1,
            r'^dataset.edge_negative_sampling_ratio: got 0.0; accepted: numbers above',
        ),
        ('dataset.edge_negative_sampling_ratio -1.0', 1, r'^dataset.edge_negative_sampling_ratio: got -1.0'),
    ],
)
def test_bad_options(configure: Callable[..., None], options: str, count: int, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        load(graph(False), options, configure, count)


@pytest.mark.parametrize('name', ['edge_label_index', 'edge_index_labeled'])
def test_other_ends_of_labelled_pairs(name: str) -> None:
    linked = torch.tensor([[0, 0, 2, 3, 3, 3, 3], [1, 4, 3, 0, 1, 2, 4]])
    pairs, label = torch.cat([linked, torch.tensor([[1], [1]])], 1), torch.tensor([1] * 7 + [0])
    torch.manual_seed(0)
    seen = set()
    for _ in range(50):
        data = DrawOtherEnds()(Data(edge_label=label, num_nodes=5, **{name: pairs}))
        assert torch.equal(data[name][:, data.edge_label == 1], linked)
        others = [tuple(pair) for pair in data[name][:, data.edge_label == 0].t().tolist()]
        assert len(others) == len(set(others))
        # Two for each linked pair, or all that there are: node 3 has itself left, and node 0 the nodes 0, 2 and 3.
        assert Counter(a for a, _ in others) == {0: 3, 2: 2, 3: 1}
        assert not set(others) & {tuple(pair) for pair in linked.t().tolist()}
        seen |= set(others)
    assert seen == {(0, 0), (0, 2), (0, 3), (2, 0), (2, 1), (2, 2), (2, 4), (3, 3)}
    empty = DrawOtherEnds()(Data(edge_label=label[:0], num_nodes=5, **{name: pairs[:, :0]}))
    assert empty[name].shape == (2, 0)
