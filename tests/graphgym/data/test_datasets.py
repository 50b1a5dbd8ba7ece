from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from graphs import ring
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.transforms import BaseTransform, Compose, NormalizeFeatures
from yacs.config import CfgNode

from pyg_topomask.apps.datasets import DigitsGrid
from pyg_topomask.graphgym.data import pyg_datasets
from pyg_topomask.graphgym.data.datasets import load_dataset
from pyg_topomask.graphgym.data.loaders import EpochSampler, create_loaders
from pyg_topomask.graphgym.data.transforms import apply_in_memory, build_transforms, reads_walks
from pyg_topomask.transforms import AddGraphRandomFeatures


class Graphs(InMemoryDataset):
    def __init__(self, count: int) -> None:
        super().__init__(None)
        no_edges = torch.zeros(2, 0, dtype=torch.long)
        graphs = [Data(x=torch.full((i + 1, 2), i + 1.0), edge_index=no_edges) for i in range(count)]
        self.data, self.slices = self.collate(graphs)


def double(data: Data) -> Data:
    data.twice = 2 * data.x
    return data


@pytest.mark.parametrize('count', [1, 5])
def test_transform_is_stored(configure: Callable[..., None], count: int) -> None:
    configure()
    dataset = Graphs(count)
    dataset[0]  # fills PyG's cache of separated graphs
    apply_in_memory(dataset, double)
    assert len(dataset) == count
    for i in range(count):
        assert torch.equal(dataset[i].twice, torch.full((i + 1, 2), 2 * i + 2.0))


def test_transform_of_a_subset(configure: Callable[..., None]) -> None:
    configure()
    dataset = Graphs(5)[[1, 3]]
    apply_in_memory(dataset, double)
    assert [int(data.twice[0, 0]) for data in dataset] == [4, 8]


@pytest.mark.parametrize('transform', [AddGraphRandomFeatures(), Compose([double, AddGraphRandomFeatures()])])
def test_attributes_that_transforms_do_not_read_are_kept(configure: Callable[..., None], transform: BaseTransform) -> None:
    configure()
    graphs = [
        Data(x=torch.randn(n, 2), edge_index=ring(n), edge_attr=torch.randn(2 * n, 3), y=torch.tensor([n]), grf_key_index=n)
        for n in (3, 5, 4)
    ]
    dataset = Graphs(1)
    dataset.data, dataset.slices = dataset.collate([copy(data) for data in graphs])
    apply_in_memory(dataset, transform)
    for actual, data in zip(dataset, graphs, strict=True):
        expected = transform(data)
        keys = set(expected.keys())
        assert set(actual.keys()) == keys
        assert all(torch.equal(actual[key], expected[key]) for key in keys)


def test_dataset_on_disk_is_refused() -> None:
    with pytest.raises(ValueError, match=r'got a dataset of type list; accepted: datasets held in memory'):
        apply_in_memory([], double)


def test_digits_with_random_features(configure: Callable[..., None]) -> None:
    configure()
    raw = DigitsGrid()
    loaders = create_loaders()
    assert [len(loader.dataset) for loader in loaders] == [1257, 270, 270]
    for loader, split in zip(loaders, raw.split_indices().values(), strict=True):
        assert torch.equal(loader.dataset[3].x, raw[int(split[3])].x)
        assert set(loader.dataset[3].keys()) > set(raw[0].keys())
    assert (cfg.share.dim_in, cfg.share.dim_edge, cfg.share.dim_out, cfg.share.num_splits) == (3, 2, 10, 3)


def test_other_loaders_are_asked_in_order(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    configure()
    cfg.topomask.transforms = ['AddSelfLoops']
    dataset = Graphs(2)
    monkeypatch.setitem(register.loader_dict, 'first', lambda *args: None)
    monkeypatch.setitem(register.loader_dict, 'second', lambda *args: dataset)
    loaded = load_dataset('anything', 'name', '.')
    assert loaded is dataset
    assert loaded[1].edge_index.tolist() == [[0, 1], [0, 1]]


def test_loaders_of_users_stand_before_ours(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    def of_graphgps(*args: str) -> None:
        raise ValueError('Unexpected PyG Dataset identifier')

    configure()
    cfg.topomask.transforms = []
    dataset = Graphs(2)
    monkeypatch.setitem(register.loader_dict, 'custom_master_loader', of_graphgps)
    monkeypatch.setitem(register.loader_dict, 'mine', lambda *args: dataset)
    assert load_dataset('PyG-ModelNet', 'ModelNet10', '.') is dataset


@pytest.mark.parametrize('direct', [True, False])
def test_folder_of_planetoid(
    configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, direct: bool
) -> None:
    configure()
    cfg.topomask.transforms = []
    if direct:
        (tmp_path / 'Cora' / 'raw').mkdir(parents=True)
    asked: list[Any] = []
    monkeypatch.setattr(pyg_datasets, 'Planetoid', lambda root, name: asked.append((Path(root), name)) or Graphs(1))
    load_dataset('PyG-Planetoid', 'Cora', str(tmp_path))
    assert asked == [(tmp_path if direct else tmp_path / 'Planetoid', 'Cora')]


def test_transform_takes_the_options_of_its_attention_unless_it_has_its_own(configure: Callable[..., None]) -> None:
    configure('topomask.GRF.num_walks 7 topomask.GRF.p_halt 0.25')
    with pytest.warns(UserWarning, match='^topomask.transforms, for AddGraphRandomFeatures: got num_walks 3, where GRF has 7$'):
        plain, given = build_transforms(['AddGraphRandomFeatures', {'AddGraphRandomFeatures': {'num_walks': 3}}])
    assert (plain.settings.num_walks, plain.settings.p_halt) == (7, 0.25)
    assert (given.settings.num_walks, given.settings.p_halt) == (3, 0.25)


@pytest.mark.parametrize(
    ('options', 'mask', 'warns'),
    [
        ('', None, False),
        ('topomask.GRF.num_walks 3', None, False),
        ('topomask.GRF.num_walks 64', None, True),
        ('gt.layer_type GINE+Linear topomask.GRF.num_walks 64', None, False),  # nothing reads it
        ('gt.layer_type GINE+Masked topomask.GRF.num_walks 64', 'SinDegree', False),
        ('gt.layer_type GINE+Masked', '{GRF: {num_walks: 5}}', True),
        ('gt.layer_type GINE+Masked', '{GRF: {num_walks: 3}}', False),
    ],
)
def test_walks_unlike_those_of_the_attention_are_warned_of(
    configure: Callable[..., None], options: str, mask: str | None, warns: bool
) -> None:
    configure(options)
    cfg.topomask.Masked.mask = mask
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        build_transforms([{'AddGraphRandomFeatures': {'num_walks': '3'}}])
    assert [str(warning.message).startswith('topomask.transforms, for Add') for warning in caught] == [True] * warns


def test_numbers_that_pyyaml_takes_for_text() -> None:
    (transform,) = build_transforms([{'AddGraphRandomFeatures': {'p_halt': '1e-1', 'num_walks': '3', 'sampler': 'iid'}}])
    assert (transform.settings.p_halt, transform.settings.num_walks) == (0.1, 3)


@pytest.mark.parametrize('name', ['AddRandomWalkKernel', 'AddGraphRandomFeatures'])
def test_walks_for_an_attention_that_takes_none(configure: Callable[..., None], name: str) -> None:
    configure('gt.layer_type GINE+RWGNK topomask.RWGNK.num_walks None topomask.transforms []')
    with pytest.raises(
        ValueError, match=f'^topomask.transforms: got {name} with num_walks None of RWGNK, .* no such transform'
    ):
        build_transforms([name])
    with pytest.raises(ValueError, match=f'^topomask.transforms.{name}.num_walks: got 0'):
        build_transforms([{name: {'num_walks': 0}}])


def test_stitched_walks_are_not_stored(configure: Callable[..., None]) -> None:
    for stitch in (1, 2):
        configure(f'topomask.GRF.stitch {stitch}')
        assert reads_walks() == (stitch == 1)
        configure(f"gt.layer_type GINE+Masked topomask.mask {{'GRF':{{'stitch':{stitch}}}}}")
        assert reads_walks() == (stitch == 1)


def test_a_sharded_graph_stores_no_walks(configure: Callable[..., None]) -> None:
    configure('')
    assert reads_walks()
    configure('topomask.shard graph')
    assert not reads_walks()


def test_walks_along_the_attention_are_not_stored(configure: Callable[..., None]) -> None:
    for dynamic in (False, True):
        configure(f'gt.layer_type GINE+RWGNK topomask.RWGNK.dynamic {dynamic}')
        assert reads_walks() != dynamic
        configure(f"model.type GKAT topomask.model {{'dynamic':{dynamic}}}")
        assert reads_walks() != dynamic


def test_walks_of_a_composed_mask_that_leaves_their_number_open(configure: Callable[..., None]) -> None:
    configure('gt.layer_type GINE+Masked topomask.transforms []')
    cfg.topomask.Masked.mask = '{GRF: {p_halt: 0.3}}'
    (transform,) = build_transforms(['AddGraphRandomFeatures'])
    assert (transform.settings.num_walks, transform.settings.p_halt) == (4, 0.3)


def test_no_transforms(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / 'mine.yaml'
    path.write_text('topomask: {transforms: }')
    configure(cfg_file=path)
    monkeypatch.setitem(register.loader_dict, 'graphs', lambda *args: Graphs(2))
    assert len(load_dataset('any', 'name', '.')) == 2


PLAIN = 'model.type gnn gt.layer_type GINE+GRF gnn.layer_type'


@pytest.mark.parametrize(
    ('options', 'num_walks'),
    [
        ('gt.layer_type GINE+AsymmetricGRF', 5),
        ('gt.layer_type GINE+Linear', 3),
        (f'{PLAIN} asymmetricgrf_attention', 5),
        (f'{PLAIN} gcnconv', 3),
        ('model.type TopoGPSModel gt.layer_type GINE+GRF gnn.layer_type asymmetricgrf_attention', 3),
    ],
)
def test_transform_takes_the_options_of_the_attention_that_is_built(
    configure: Callable[..., None], options: str, num_walks: int
) -> None:
    configure(f'{options} topomask.GRF.num_walks 3 topomask.AsymmetricGRF.num_walks 5')
    (transform,) = build_transforms(['AddGraphRandomFeatures'])
    assert transform.settings.num_walks == num_walks


@pytest.mark.parametrize(
    ('tree', 'settings'),
    [
        ({'GRF': {'num_walks': 9, 'p_halt': '1e-1'}}, (9, 0.1)),
        (
            {'sum': ['GRF', {'heads': ['Causal', {'scale': [2, {'GRF': {'num_walks': 8}}]}]}, {'GRF': {'num_walks': 7}}]},
            (8, 0.5),
        ),
        ({'sum': ['GRF', {'RWGNK': {'num_walks': 8}}]}, (3, 0.5)),
    ],
)
@pytest.mark.parametrize('option', ['topomask.mask', 'topomask.Masked.mask'])
def test_transform_takes_the_options_of_a_composed_mask(
    configure: Callable[..., None], tree: dict[str, Any], settings: tuple[int, float], option: str
) -> None:
    configure('gt.layer_type GINE+Masked topomask.GRF.num_walks 3')
    if option == 'topomask.mask':
        cfg.topomask.mask = CfgNode(tree)
    else:
        cfg.topomask.Masked.mask = str(tree)
    (transform,) = build_transforms(['AddGraphRandomFeatures'])
    assert (transform.settings.num_walks, transform.settings.p_halt) == settings
    cfg.gt.layer_type = 'GINE+Linear'
    assert build_transforms(['AddGraphRandomFeatures'])[0].settings.num_walks == 3


def test_random_walk_kernel_takes_the_options_of_a_composed_mask(configure: Callable[..., None]) -> None:
    configure('gt.layer_type GINE+Masked')
    cfg.topomask.Masked.mask = '{transpose: {RWGNK: {num_walks: 9, alpha: 0.5}}}'
    (transform,) = build_transforms(['AddRandomWalkKernel'])
    assert transform.settings.num_walks == 9


def test_transforms_from_yaml() -> None:
    entries = [{'AddGraphRandomFeatures': {'num_walks': 2}}, 'NormalizeFeatures', {'NormalizeFeatures': None}]
    built = build_transforms(entries)
    assert [type(transform).__name__ for transform in built] == [
        'AddGraphRandomFeatures',
        'NormalizeFeatures',
        'NormalizeFeatures',
    ]
    assert isinstance(built[1], NormalizeFeatures)


def test_bad_transforms(subtests: pytest.Subtests) -> None:
    for entry, message in [
        ('Nonsense', "topomask.transforms: got 'Nonsense'; accepted: .*AddGraphRandomFeatures"),
        (
            {'AddGraphRandomFeatures': {'nonsense': 2}},
            'got .*nonsense.* for AddGraphRandomFeatures; accepted: the arguments',
        ),
        ({'AddRandomWalkPE': {}}, "accepted: the arguments .*'walk_length'.*; missing a required argument: 'walk_length'"),
        ({'AddGraphRandomFeatures': {'p_halt': 'abc'}}, "AddGraphRandomFeatures.p_halt: got 'abc'; accepted: numbers"),
        ({'AddGraphRandomFeatures': {'seed': {}, 'num_walks': 'x'}}, "num_walks: got 'x'; accepted: whole numbers from 1"),
        ({'AddGraphRandomFeatures': 3}, 'accepted: names and'),
        ({'A': {}, 'B': {}}, 'accepted: names and'),
        (3, 'accepted: names and'),
    ]:
        with subtests.test(entry=entry, message=message), pytest.raises(ValueError, match=message):
            build_transforms([entry])


@pytest.mark.parametrize(
    ('format', 'name', 'message'),
    [
        ('topomask', 'nonsense', "dataset.name, for .*: got 'nonsense'; accepted: cifar10-pixels, cloth, digits"),
        ('nonsense', 'x', "dataset.format: got 'nonsense'; accepted: topomask, PyG, PyG-Planetoid"),
    ],
)
def test_unknown_dataset(configure: Callable[..., None], format: str, name: str, message: str) -> None:
    configure()
    with pytest.raises(ValueError, match=message):
        load_dataset(format, name, '.')


def test_the_numbers_in_the_previous_steps_of_a_particle_are_counted(configure: Callable[..., None]) -> None:
    configure('topomask.transforms []')
    load_dataset('topomask', 'digits', '.')
    assert cfg.share.dim_history == 0
    cfg.topomask.dataset = CfgNode({'num_rollouts': 1, 'num_steps': 9, 'side': 2})
    load_dataset('topomask', 'cloth', '.')
    assert cfg.share.dim_history == 2 * 3


def test_order_is_a_function_of_seed_and_epoch() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        sampler = EpochSampler(20, seed)
        sampler.set_epoch(epoch)
        torch.manual_seed(torch.seed())  # the global state is of no influence
        return list(sampler)

    orders = {(seed, epoch): order(seed, epoch) for seed in range(3) for epoch in range(3)}
    assert all(sorted(permutation) == list(range(20)) for permutation in orders.values())
    assert len({tuple(permutation) for permutation in orders.values()}) == 9
    assert all(order(*key) == permutation for key, permutation in orders.items())


def test_data_that_cannot_be_downloaded_is_named(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ConnectionError('no route to host')

    configure('dataset.dir nowhere')
    monkeypatch.setattr('pyg_topomask.graphgym.data.loaders.create_loader', fail)
    with pytest.raises(OSError, match=r"^dataset.dir: got 'nowhere', where .* could not be loaded: no route to host$"):
        create_loaders()


def test_graphs_without_a_split_are_refused(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    configure('dataset.format mine dataset.name rings')
    cfg.topomask.transforms = []
    monkeypatch.setitem(register.loader_dict, 'mine', lambda *args: Graphs(2))
    with pytest.raises(ValueError, match=r"^dataset.format, dataset.name: got 'mine', 'rings' without a split of its graphs"):
        create_loaders()


@pytest.mark.parametrize('transforms', [['AddLaplacianEigenvectorPE'], ['AddGraphRandomFeatures', 'AddLaplacianEigenvectorPE']])
def test_a_transform_of_pyg_that_does_not_fit_a_graph(configure: Callable[..., None], transforms: list[str]) -> None:
    """PyG 2.8.1 on a graph of at most k nodes: a RuntimeError about the sizes of tensors."""
    configure('topomask.transforms []')
    entries = [{name: {'k': 3, 'is_undirected': True}} if name.startswith('AddLap') else name for name in transforms]
    message = (
        r'^topomask.transforms: got AddLaplacianEigenvectorPE for graph 0, of 1 nodes: RuntimeError: .*; accepted: .*; '
        r'AddLaplacianEigenvectorPE needs more than k nodes$'
    )
    with pytest.raises(ValueError, match=message):
        apply_in_memory(Graphs(5), Compose(build_transforms(entries)))
