"""The models of this package as networks that a YAML names."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import pytest
import torch
from graphs import ring
from grids import by_day
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import network_dict

from pyg_topomask.apps.datasets import ClothRollouts
from pyg_topomask.apps.datasets.images import load_images, moving_digits
from pyg_topomask.apps.train import train
from pyg_topomask.graphgym.configuration import load_config
from pyg_topomask.graphgym.names.attentions import GPS_MODELS
from pyg_topomask.graphgym.names.masks import MASKS
from pyg_topomask.graphgym.names.networks import MODELS
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.walks import sample_walks

CONFIGS = {name: Path(__file__).parents[3] / 'graphgps_configs' / 'models' / f'{name}.yaml' for name in MODELS}
VIDEO = """
topomask.dataset.num_frames 2 topomask.model.num_frames 2 topomask.dataset.target digit
topomask.model.channels 16 topomask.model.mlp_channels 16 topomask.model.depth 1
"""
#: Makes the data of each configuration small enough for a test, and the model of videos.
SMALL = {
    'TopologicalViT': (),
    'ViViT': tuple(VIDEO.split()),
    'Interlacer': ('topomask.dataset.num_rollouts', '1', 'topomask.dataset.num_steps', '10', 'topomask.dataset.side', '3'),
    'GKAT': ('topomask.dataset.num_pairs', '8', 'topomask.dataset.size', '6', 'train.batch_size', '4'),
}
ONE_EPOCH = ('optim.max_epoch', '1', 'optim.num_warmup_epochs', '0', 'topomask.progress', 'False')


def build(name: str, dim_in: int, dim_out: int, *options: str, history: int = 0) -> torch.nn.Module:
    load_config(CONFIGS[name], options)
    cfg.share.dim_history = history
    return network_dict[name](dim_in=dim_in, dim_out=dim_out)


@pytest.mark.usefixtures('few_digits')
@pytest.mark.parametrize('name', by_day(MODELS, ['ViViT']))
def test_shipped_configuration_trains_and_is_reproduced(name: str, tmp_path: Path) -> None:
    options = [*SMALL[name], *ONE_EPOCH]
    [once] = train(CONFIGS[name], options, out=tmp_path)
    [longer] = train(CONFIGS[name], [*options, 'optim.max_epoch', '2'], resume=True, out=tmp_path)
    [whole] = train(CONFIGS[name], [*options, 'optim.max_epoch', '2'], out=tmp_path / 'whole')
    assert math.isfinite(once['val_loss'])
    assert longer == whole


def test_layers_and_factors_of_stitched_walks_have_separate_walks() -> None:
    mask = '{GRF: {stitch: 3}}'
    network = build('TopologicalViT', 1, 10, 'topomask.Masked.mask', mask, 'topomask.model.depth', '3')
    states = [Graph.from_tensors(ring(6), 6).state(module) for module in network.modules() if isinstance(module, GRFMask)]
    walks = [walk for state in states for walk in (state.query, *(factor.query for factor in state.stitched))]
    assert len(walks) == 9
    for one, other in combinations(walks, 2):
        assert not (torch.equal(one.visited, other.visited) and torch.equal(one.load, other.load))


def graphs_of(images: torch.Tensor) -> Batch:
    """A node for each pixel, row by row, written down again here."""
    no_edges = torch.zeros(2, 0, dtype=torch.long)
    pixels = [torch.stack([image[:, i, j] for i in range(image.size(1)) for j in range(image.size(2))]) for image in images]
    batch = Batch.from_data_list([Data(x=x, edge_index=no_edges, y=torch.tensor([0])) for x in pixels])
    batch.split = 'train'
    return batch


def test_models_read_no_attention_of_gps() -> None:
    assert not set(MODELS) & set(GPS_MODELS)


def test_pixels_are_images() -> None:
    images = load_images('digits')['test'][0][:3, :, :, :6]
    network = build('TopologicalViT', 1, 10, 'topomask.model.image_size', '[8,6]')
    scores, labels = network(graphs_of(images))
    torch.testing.assert_close(scores, network.model(images))
    assert labels.tolist() == [0, 0, 0]


def test_pixels_are_videos() -> None:
    videos = moving_digits(num_frames=4)['test'][0][:3]
    videos = torch.cat([videos, 1 - videos], dim=2)  # two channels
    network = build('ViViT', 8, 10, 'topomask.model.num_frames', '4').eval()
    scores, _ = network(graphs_of(videos.flatten(1, 2)))
    torch.testing.assert_close(scores, network.model(videos))


def test_particles_are_rolled_out() -> None:
    batch = Batch.from_data_list(list(ClothRollouts(split='val', num_rollouts=1, num_steps=10, side=3)))
    anchors = ('topomask.model.local', 'message_passing', 'topomask.model.num_anchors', '4')
    assert build('Interlacer', 5, 1, *anchors, history=6).eval()(batch)[0].isfinite().all()
    network = build('Interlacer', 5, 1, history=6).eval()
    torch.nn.init.normal_(network.model.lin_out.weight)
    predicted, target = network(batch)
    expected = torch.cat([network.model.rollout(data.pos, data.history, 6, data.x) for data in batch.to_data_list()])
    torch.testing.assert_close(predicted.view_as(batch.target), expected, rtol=1e-4, atol=1e-5)
    assert torch.equal(target.view_as(batch.target), batch.target)
    del batch.history
    with pytest.raises(ValueError, match='got data without history'):
        network(batch)


def test_gkat_on_nodes_predicts_those_of_the_split() -> None:
    network = build('GKAT', 3, 4, 'dataset.task', 'node', 'topomask.model.readout', 'null').eval()
    edge_index = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])
    data = Data(x=torch.randn(5, 3), y=torch.arange(5) % 4, edge_index=edge_index, val_mask=torch.arange(5) > 2)
    data.split = 'val'
    scores, labels = network(data.clone())
    torch.testing.assert_close(scores, network.model(data.x, edge_index)[3:])
    assert labels.tolist() == [3, 0]


@pytest.mark.parametrize('name', ['GRF', 'RWGNK', 'Expander'])
def test_layers_have_masks_of_their_own(name: str) -> None:
    """Also where the heads of a layer have neighboring seeds."""
    tree = f'{{heads: [{{{name}: {{seed: 0}}}}, {{{name}: {{seed: 1}}}}]}}'
    network = build('TopologicalViT', 3, 10, 'topomask.Masked.mask', tree)
    masks = [module for module in network.modules() if isinstance(module, MASKS[name])]
    assert [mask.heads for mask in masks] == [2, 2, 2, 2]
    matrices = [mask(Graph.from_tensors(ring(30), 30)).to_dense() for mask in masks]
    assert not any(torch.equal(first, second) for first, second in combinations(matrices, 2))


def test_walks_of_later_layers_are_those_of_either_backend() -> None:
    network = build('TopologicalViT', 3, 10, 'topomask.Masked.mask', '{GRF: {num_walks: 8}}')
    last = [module for module in network.modules() if isinstance(module, GRFMask)][-1]
    graph = Graph.from_tensors(ring(9), 9)
    torch_walks, numba_walks = (sample_walks(graph, last.walk_settings, last.seed, backend) for backend in ('torch', 'numba'))
    assert torch.equal(torch_walks.visited, numba_walks.visited)
    torch.testing.assert_close(torch_walks.load, numba_walks.load)


def test_no_mask(tmp_path: Path) -> None:
    path = tmp_path / 'plain.yaml'
    text = CONFIGS['TopologicalViT'].read_text()
    start, end = text.index('  mask:'), text.index('  model:')
    path.write_text(text[:start] + text[end:])
    load_config(path)
    network = network_dict['TopologicalViT'](dim_in=3, dim_out=10)
    assert not any(isinstance(module, GRFMask) for module in network.modules())


@pytest.mark.parametrize(
    ('name', 'options', 'message'),
    [
        ('TopologicalViT', ('topomask.model.image_size', '7'), r'image_size: got \[7, 7\] for a graph of 64 nodes'),
        ('TopologicalViT', ('topomask.model.patch_size', '3'), r'patch_size: got 3 for image_size=8'),
        ('TopologicalViT', ('topomask.model.width', '3'), r'accepted: the arguments .*image_size'),
        ('TopologicalViT', ('topomask.model.in_channels', '3'), r'accepted: the arguments'),
        ('TopologicalViT', ('topomask.model.heads', 'many'), r'heads'),
        ('TopologicalViT', ('topomask.mask', 'Unknown'), r"topomask.mask: got 'Unknown'; accepted:"),
        (
            'TopologicalViT',
            ('topomask.dataset.side', '3'),
            r'topomask.dataset: got .* for DigitsGrid; accepted: the',
        ),
        ('TopologicalViT', ('topomask.dataset.split', 'train'), r'topomask.dataset: got'),
        ('ViViT', ('topomask.model.num_frames', '3'), r'num_frames: got 3 for 8 features of a pixel'),
        ('Interlacer', ('dataset.name', 'induced-cycles', *SMALL['GKAT'][:4]), r'topomask.dataset'),
        ('Interlacer', (*SMALL['Interlacer'], 'topomask.model.local', 'walks'), r'local: got .walks.'),
        ('Interlacer', (*SMALL['Interlacer'], 'topomask.model.num_anchors', '4'), r'num_anchors: got 4 for local=.grf.'),
        ('GKAT', (*SMALL['GKAT'], 'topomask.model.readout', 'null'), r'readout: got None for dataset.task .graph.'),
        ('GKAT', (*SMALL['GKAT'], 'topomask.model.hidden_channels', 'null'), r'hidden_channels|type'),
    ],
)
@pytest.mark.usefixtures('few_digits')
def test_what_does_not_fit_is_refused(name: str, options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        train(CONFIGS[name], [*ONE_EPOCH, *options], out=tmp_path)
    assert not list(tmp_path.rglob('*.pt'))


@pytest.mark.parametrize('group', ['model', 'dataset'])
def test_arguments_are_replaced_by_a_line_of_yaml(group: str) -> None:
    load_config(CONFIGS['ViViT'], [f'topomask.{group}', '{heads: 2, size: [4, 8], norm: null, kind: focused}'])
    assert cfg.topomask[group] == {'heads': 2, 'size': [4, 8], 'norm': None, 'kind': 'focused'}
    with pytest.raises(ValueError, match=rf"^topomask.{group}: got '{{heads: '; accepted: arguments in YAML"):
        load_config(CONFIGS['ViViT'], [f'topomask.{group}', '{heads: '])


def test_missing_arguments_are_named(tmp_path: Path) -> None:
    path = tmp_path / 'bare.yaml'
    path.write_text(CONFIGS['TopologicalViT'].read_text().replace('    image_size: 8\n', ''))
    load_config(path)
    with pytest.raises(ValueError, match=r"missing a required argument: 'image_size'"):
        network_dict['TopologicalViT'](dim_in=3, dim_out=10)


@pytest.mark.usefixtures('few_digits')
def test_arguments_that_nothing_reads_are_warned_of(tmp_path: Path, digits: Path, small: list[str]) -> None:
    options = [*small, *ONE_EPOCH, 'gt.layer_type', 'GINE+None', 'topomask.transforms', '[]', 'topomask.model.depth', '3']
    with pytest.warns(UserWarning, match=r"topomask.model: got depth, which nothing reads with model.type 'TopoGPSModel'"):
        train(digits, options, out=tmp_path)


@pytest.mark.usefixtures('few_digits')
def test_options_of_other_models_are_warned_of(tmp_path: Path) -> None:
    options = ['gt.layers', '5', 'model.graph_pooling', 'mean', 'dataset.node_encoder', 'True']
    options += ['topomask.transforms', "['AddGraphRandomFeatures']"]
    with pytest.warns(UserWarning, match='nothing reads with model.type') as record:
        train(CONFIGS['TopologicalViT'], [*ONE_EPOCH, *options], out=tmp_path)
    for warned in (
        'gt: got layers, which',
        "model.graph_pooling: got 'mean', which",
        'dataset.node_encoder: got True, which',
        'topomask.transforms: got AddGraphRandomFeatures, whose walks',
    ):
        start = f"{warned} nothing reads with model.type 'TopologicalViT'"
        assert any(str(warning.message).startswith(start) for warning in record)


@pytest.mark.usefixtures('few_digits')
def test_images_of_another_shape_are_refused(tmp_path: Path) -> None:
    options = ['topomask.transforms', "[{'AddGridShape': {'shape': [4, 16]}}]"]
    with pytest.raises(ValueError, match=r'image_size: got \[8, 8\] for grids of the shapes \[\[4, 16\]\]; accepted'):
        train(CONFIGS['TopologicalViT'], [*ONE_EPOCH, *options], out=tmp_path)
    assert list(tmp_path.iterdir()) == []
