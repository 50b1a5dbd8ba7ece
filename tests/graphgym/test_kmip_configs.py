"""The configurations of k-MIP attention: what is in the files is what the tables say, and models can be trained with them."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
import torch_geometric.transforms as T
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loss import compute_loss
from torch_geometric.utils.smiles import e_map, x_map

import pyg_topomask.graphgym.names.encoders
import pyg_topomask.graphgym.run.objectives  # noqa: F401
from pyg_topomask.graphgym.configuration import load_config
from pyg_topomask.graphgym.data.loaders import create_loaders
from pyg_topomask.graphgym.run.optim import create_optimizer
from pyg_topomask.transforms import AddGraphRandomFeatures, KNNGraph
from pyg_topomask.transforms.normals import AddNormals
from pyg_topomask.transforms.sampling import FarthestSampling

FOLDER = Path(__file__).parents[2] / 'graphgps_configs' / 'kmip'
DATA = Path(os.environ.get('PYG_TOPOMASK_DATA', Path(__file__).parents[3] / 'shared' / 'data'))
OWN = {transform.__name__: transform for transform in (AddGraphRandomFeatures, AddNormals, FarthestSampling, KNNGraph)}


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location('generate_kmip', FOLDER / 'generate.py')
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = load_generator()


def make_graph(name: str, size: int, generator: torch.Generator) -> tuple[Data, int]:
    """A graph as the data set has it, and the number of predictions."""
    nodes = torch.arange(size)
    edge_index = torch.stack([torch.cat([nodes, nodes.roll(-1)]), torch.cat([nodes.roll(-1), nodes])])
    pos = torch.rand(size, 3, generator=generator)
    data, classes = Data(edge_index=edge_index, pos=pos), 10
    if name == 'peptides-func':
        kinds = [torch.randint(len(values), (size,), generator=generator) for values in x_map.values()]
        bonds = [torch.randint(len(values), (2 * size,), generator=generator) for values in e_map.values()]
        data.x, data.edge_attr = torch.stack(kinds, 1).float(), torch.stack(bonds, 1)
        data.y = torch.randint(2, (1, 10), generator=generator).float()
        return data, classes
    width = {'cifar10': 5, 'malnettiny': 5, 'pascalvoc-sp': 14, 'amazon-computer': 30, 's3dis': 6, 'table-scans': 6}
    width |= {'cifar10-pixels': 5, 'enzymes': 21, 'proteins': 4}
    data.x = torch.rand(size, width.get(name, 3), generator=generator)
    steps = name == 'pascalvoc-sp' or name.endswith('-pixels')
    data.edge_attr = torch.rand(2 * size, 2 if steps else 1, generator=generator)
    if name in ('malnettiny', 'amazon-computer', 'enzymes', 'proteins', 'imdb-binary'):
        del data.edge_attr
    if name == 'imdb-binary':
        del data.x
    per_node = cfg.gnn.head != 'graph'
    data.y = torch.randint(classes, (size if per_node else 1,), generator=generator)
    data.train_mask = torch.ones(size, dtype=torch.bool)
    return data, classes


def transformed(data: Data) -> Data:
    for entry in cfg.topomask.transforms:
        ((name, arguments),) = ({entry: {}} if isinstance(entry, str) else entry).items()
        data = OWN[name](**arguments)(data) if name in OWN else getattr(T, name)(**arguments)(data)
    return data


def test_files_are_those_of_the_tables(tmp_path: Path) -> None:
    (tmp_path / 'old.yaml').touch()
    generate.write(tmp_path)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_text() for path in FOLDER.glob('*.yaml')}, (
        'run the generator in graphgps_configs/kmip'
    )


def test_every_data_set_has_every_attention_that_the_thesis_measured() -> None:
    names = {path.stem for path in FOLDER.glob('*.yaml')}
    pairs = {f'{dataset}-GPS+{attention}' for dataset in generate.DATASETS for attention in generate.ATTENTIONS}
    large = {f'{dataset}-GPS+Transformer' for dataset in ('shapenet-part', 's3dis', 'modelnet10', 'table-scans')}
    assert names == pairs - large


def test_full_attention_has_smaller_batches_on_large_graphs() -> None:
    sizes = {}
    for attention in generate.ATTENTIONS:
        load_config(FOLDER / f'malnettiny-GPS+{attention}.yaml')
        sizes[attention] = cfg.train.batch_size
    assert sizes == dict.fromkeys(generate.ATTENTIONS, 16) | {'Transformer': 4}


@pytest.mark.parametrize('path', sorted(FOLDER.glob('*.yaml')), ids=lambda path: path.stem)
def test_a_step_changes_the_parameters(path: Path) -> None:
    load_config(path, ['gt.layers', '2', 'gt.attn_dropout', '0.1', 'gt.dropout', '0.1'])
    generator = torch.Generator().manual_seed(0)
    name = path.stem.partition('-GPS')[0]
    graphs = [make_graph(name, size, generator) for size in (24, 40)]
    batch = Batch.from_data_list([transformed(data) for data, _ in graphs])
    batch.split = 'train'
    cfg.share.dim_in = batch.x.size(1)
    cfg.share.dim_edge = 0 if 'edge_attr' not in batch else batch.edge_attr.size(1)
    torch.manual_seed(0)
    model = register.network_dict[cfg.model.type](dim_in=batch.x.size(1), dim_out=graphs[0][1])
    if path.stem.endswith('+KMIP'):
        assert model.layers[0].attn.k == 10
    before = {key: parameter.detach().clone() for key, parameter in model.named_parameters()}
    loss, _ = compute_loss(*model(batch))
    loss.backward()
    create_optimizer(model.parameters()).step()
    assert loss.isfinite()
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    attention = [key for key in before if '.attn.' in key]
    unchanged = [key for key in attention if torch.equal(before[key], model.get_parameter(key))]
    assert len(unchanged) <= len(attention) // 4, unchanged
    assert any('.conv.' in key and not torch.equal(before[key], model.get_parameter(key)) for key in before)


@pytest.mark.skipif(not DATA.is_dir(), reason=f'no folder {DATA}: set PYG_TOPOMASK_DATA to the folder of the data sets')
@pytest.mark.parametrize(
    ('name', 'files', 'sizes'),
    [
        ('cifar10-pixels-GPS+KMIP', 'images/cifar10_subset.npz', [900, 100, 500]),
        ('enzymes-GPS+KMIP', 'tu/ENZYMES', [480, 60, 60]),
        ('imdb-binary-GPS+Linear', 'tu/IMDB-BINARY', [800, 100, 100]),
    ],
)
def test_data_at_hand_is_loaded(name: str, files: str, sizes: list[int], tmp_path: Path) -> None:
    source = DATA / files
    (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / source.name)
    load_config(FOLDER / f'{name}.yaml', ['dataset.dir', str(tmp_path), 'topomask.progress', 'False'])
    loaders = create_loaders()
    assert [len(loader.dataset) for loader in loaders] == sizes
    model = register.network_dict[cfg.model.type](dim_in=cfg.share.dim_in, dim_out=cfg.share.dim_out)
    batch = next(iter(loaders[0]))
    batch.split = 'train'
    loss, _ = compute_loss(*model(batch))
    assert loss.isfinite()


def test_weighted_cross_entropy() -> None:
    load_config(FOLDER / 's3dis-GPS+KMIP.yaml')
    pred, true = torch.randn(20, 4, dtype=torch.float64), torch.tensor([0] * 12 + [1] * 5 + [3] * 3)
    loss, score = compute_loss(pred, true)
    logarithm = pred.numpy() - np.log(np.exp(pred.numpy()).sum(1, keepdims=True))
    weight = np.array([8 / 20, 15 / 20, 0, 17 / 20])[true.numpy()]
    assert loss.item() == pytest.approx(-(weight * logarithm[np.arange(20), true.numpy()]).sum() / weight.sum())
    np.testing.assert_allclose(score.numpy(), logarithm)
    single, _ = compute_loss(pred, torch.zeros(20, dtype=torch.long))
    assert single.item() == pytest.approx(-logarithm[:, 0].mean())
    binary, probability = compute_loss(pred[:, 0], (true > 0).long())
    share = np.where(true.numpy() > 0, 12 / 20, 8 / 20)
    sign = np.where(true.numpy() > 0, 1, -1)
    assert binary.item() == pytest.approx((share * np.log1p(np.exp(-sign * pred[:, 0].numpy()))).mean())
    torch.testing.assert_close(probability, pred[:, 0].sigmoid())


def test_metrics() -> None:
    metrics = pytest.importorskip('sklearn.metrics')
    generator = torch.Generator().manual_seed(0)
    true = [torch.randint(4, (n,), generator=generator) for n in (7, 9)]
    pred = [torch.randn(n, 6, generator=generator) for n in (7, 9)]
    label, found = torch.cat(true).numpy(), torch.cat(pred).argmax(1).numpy()
    assert register.metric_dict['macro_f1'](true, pred, '') == pytest.approx(metrics.f1_score(label, found, average='macro'))
    assert register.metric_dict['mean_iou'](true, pred, '') == pytest.approx(
        metrics.jaccard_score(label, found, average='macro')
    )
    binary, chances = [torch.tensor([[1.0], [0.0], [1.0]])], [torch.tensor([[0.7], [0.8], [0.2]])]
    expected = metrics.f1_score([1, 0, 1], [1, 1, 0], average='macro')
    for labels in (binary, [torch.tensor([1, 0, 1])]):
        assert register.metric_dict['macro_f1'](labels, chances, '') == pytest.approx(expected)
    for labels in ([torch.zeros(3, 2)], [torch.tensor([-1, 0, 1])], [torch.zeros(2)]):
        with pytest.raises(ValueError, match=r'^custom_metrics: got .*macro_f1 or mean_iou.*; accepted are labels'):
            register.metric_dict['mean_iou'](labels, chances, '')
    tasks = [torch.tensor([[1.0, 0, 1], [0, 0, 1]]), torch.tensor([[1.0, 1, 1]])]
    scores = [torch.rand(2, 3, generator=generator), torch.rand(1, 3, generator=generator)]
    both = [metrics.average_precision_score(torch.cat(tasks)[:, t], torch.cat(scores)[:, t]) for t in (0, 1)]
    assert register.metric_dict['average_precision'](tasks, scores, '') == pytest.approx(np.mean(both))


def test_average_precision_of_several_classes_is_refused() -> None:
    scores = [torch.rand(4, 3)]
    with pytest.raises(ValueError, match=r'average_precision for labels of shape \[4, 1\] and scores of shape \[4, 3\]'):
        register.metric_dict['average_precision']([torch.tensor([0, 1, 2, 1])], scores, '')
