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
@pytest.mark.parametrize(('directed', 'ratio'), [(True, 0.75), (True, 4.0), (False, 0.75), (False, 3.5)])  # few pairs, or most
def test_each_pair_is_in_one_split_and_models_see_those_for_training(
    configure: Callable[..., None], directed: bool, mode: str, ratio: float
) -> None:
    given = graph(directed)
    linked = {pair for pair in of_pairs(given.edge_index, directed) if pair[0] != pair[1]}
    options = f'dataset.edge_train_mode {mode} dataset.edge_message_ratio 0.5 dataset.edge_negative_sampling_ratio {ratio}'
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
        assert abs(len(visible) - len(train)) <= 1
    # All parallel edges of a visible pair, both directions, and self-loops.
    expected = [pair for pair in of_pairs(given.edge_index, directed) if pair in visible or pair[0] == pair[1]]
    assert sorted(expected) == sorted(of_pairs(data.edge_index, directed))
    assert abs(len(val) - 0.2 * len(linked)) <= 1
    assert abs(len(test) - 0.2 * len(linked)) <= 1
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
    assert set(unlinked) != set(others)
    everything = set(of_pairs(graph(False).edge_index, False))
    assert not (set(unlinked) | set(others)) & everything
    assert len(set(unlinked)) == len(set(others)) == len(linked)
    assert all(torch.equal(first[key], second[key]) for key in ('edge_index', 'val_edge_index', 'test_edge_index'))


@pytest.mark.parametrize('count', [3, 9])  # few of the pairs, or most
@pytest.mark.parametrize('directed', [True, False])
def test_all_pairs_without_an_edge_are_as_probable(directed: bool, count: int) -> None:
    pairs, _ = NodePairs.of(Data(edge_index=torch.tensor([[0, 1, 1, 4], [1, 0, 2, 4]][: None if directed else 2]), num_nodes=6))
    generator, counts = torch.Generator().manual_seed(0), Counter[tuple[int, int]]()
    for _ in range(2000):
        counts.update((a, b) for a, b in pairs.draw_unlinked(count, generator).t().tolist())
    free = {(a, b) for a in range(6) for b in range(6) if a != b} - {(0, 1), (1, 0), (1, 2)}
    assert counts.keys() == free
    expected = 2000 * count / len(free)
    # Each number has a standard deviation below that of Poisson.
    assert max(abs(number - expected) for number in counts.values()) < 4.5 * expected**0.5


def test_transforms_do_not_see_the_pairs_to_predict(configure: Callable[..., None]) -> None:
    (data,) = load(graph(False), 'topomask.transforms [AddSVDEncoding] topomask.svd.rank 3', configure)
    seen = Data(edge_index=data.edge_index, edge_weight=data.edge_weight, num_nodes=SIZE)
    torch.testing.assert_close(data.svd_encoding, AddSVDEncoding(3)(seen).svd_encoding)
    assert not torch.allclose(data.svd_encoding, AddSVDEncoding(3)(graph(False)).svd_encoding)


def test_a_split_of_the_data_set_stays(configure: Callable[..., None]) -> None:
    given = graph(False)
    given.train_edge_index, given.train_edge_label = torch.tensor([[0], [2]]), torch.tensor([1])
    (data,) = load(given, 'dataset.split [0.8,0.1,0.1]', configure)
    assert torch.equal(data.edge_index, given.edge_index)
    assert data.train_edge_index.tolist() == [[0], [2]]
    message = "^dataset.edge_train_mode: got 'disjoint', which nothing reads: the data set has train_edge_index"
    with pytest.warns(UserWarning, match=message):
        load(given, 'dataset.edge_train_mode disjoint dataset.split [0.8,0.1,0.1]', configure)


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
