"""The configurations for GraphGPS: what is in the files is what the tables say, and models can be built of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
import yaml
from graphgps_layers import REAL, STANDIN, imported
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, load_cfg, set_cfg
from torch_geometric.graphgym.loss import compute_loss

import pyg_topomask.graphgym.graphgps.hook  # noqa: F401
from pyg_topomask.graphgym.data.transforms import build_transforms
from pyg_topomask.graphgym.names.attentions import ATTENTIONS

CONFIGS = Path(__file__).parents[2] / 'graphgps_configs'
CHECKOUT = Path(REAL) if REAL else STANDIN

pytestmark = pytest.mark.filterwarnings('ignore')


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location('generate', CONFIGS / 'generate.py')
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = generator()


@pytest.fixture(scope='module')
def graphgps() -> Iterator[None]:
    """Imports GraphGPS where GRAPHGPS_DIR names it, or else the stand-in."""
    with imported(CHECKOUT):
        yield


def test_files_are_those_of_the_tables(tmp_path: Path) -> None:
    generate.write(tmp_path)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    shipped = {path.name: path.read_text() for path in (CONFIGS / 'graphgps').glob('*.yaml')}
    assert shipped == written, 'run python graphgps_configs/generate.py'


def test_what_is_no_more_is_removed(tmp_path: Path) -> None:
    (tmp_path / 'old.yaml').touch()
    (tmp_path / 'README.md').touch()
    generate.write(tmp_path)
    assert not (tmp_path / 'old.yaml').exists()
    assert (tmp_path / 'README.md').exists()


def test_every_attention_is_there_or_needs_what_the_data_lacks() -> None:
    needs_more = {'Toeplitz', 'Tree', 'Causal', 'LowRank'}
    assert set(ATTENTIONS) - {'SparseAttention'} == set(generate.ATTENTIONS) | needs_more
    assert not set(generate.ATTENTIONS) & needs_more


#: GraphGPS's configurations that ours follow.
THEIRS = {
    'zinc': 'zinc-GPS+RWSE',
    'malnettiny': 'malnettiny-GPS-noPE',
    'ogbg-molhiv': 'ogbg-molhiv-GPS+RWSE',
    **dict.fromkeys(('enzymes', 'cora', 'citeseer', 'pubmed')),
}


def flat(node: dict[str, Any], prefix: str = '') -> dict[str, Any]:
    items: dict[str, Any] = {}
    for key, value in node.items():
        items.update(flat(value, f'{prefix}{key}.') if isinstance(value, dict) else {f'{prefix}{key}': value})
    return items


def test_hyperparameters_are_those_of_graphgps() -> None:
    if REAL is None:
        pytest.skip('GRAPHGPS_DIR is not set to a checkout of GraphGPS')
    texts = generate.configs()
    for dataset in generate.DATASETS:
        name = THEIRS.get(dataset, f'{dataset}-GPS')
        if name is None:
            continue
        theirs = flat(yaml.safe_load((CHECKOUT / 'configs' / 'GPS' / f'{name}.yaml').read_text()))
        ours = flat(yaml.safe_load(texts[f'{dataset}-GPS+Linear.yaml']))
        assert ours.pop('gt.layer_type').split('+')[0] == theirs.pop('gt.layer_type').split('+')[0]
        shared = ours.keys() & theirs.keys() - {'wandb.use'}
        # YAML reads 1e-5 as a word, which GraphGym turns into a number.
        assert {key: ours[key] for key in shared} == {
            key: float(theirs[key]) if isinstance(ours[key], float) else theirs[key] for key in shared
        }, dataset
        extra = {key for key in theirs.keys() - shared if not key.startswith(('posenc_Graphormer', 'graphormer', 'wandb'))}
        enabled = {key for key in extra if not (key.startswith('posenc_RWSE') and not theirs['posenc_RWSE.enable'])}
        assert enabled <= {
            'model.edge_decoding',
            'gnn.agg',
            'gnn.normalize_adj',
            'posenc_LapPE.n_heads',
            'dataset.edge_encoder_name',
        }, (dataset, enabled)


def features() -> tuple[int, Tensor]:
    """The raw node features and their size, as the data set that cfg describes has them."""
    encoder = cfg.dataset.node_encoder_name if cfg.dataset.node_encoder else ''
    if 'Atom' in encoder:
        return 9, torch.zeros(7, 9, dtype=torch.long)
    if 'TypeDict' in encoder:
        return 1, torch.arange(7).view(-1, 1)
    width = 14 if 'VOC' in encoder else 5
    return width, torch.randn(7, width)


def graph(num_classes: int) -> Data:
    """One graph with all that the encoders and heads of a data set read."""
    forwards = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 2]])
    # Of the data sets of one graph, some are directed.
    edge_index = forwards.repeat(1, 2) if cfg.dataset.transductive else torch.cat([forwards, forwards.flip(0)], dim=1)
    edges = {
        'Bond': torch.zeros(12, 3, dtype=torch.long),
        'TypeDictEdge': torch.arange(12) % 4,
        'LinearEdge': torch.rand(12),
        'VOCEdge': torch.rand(12, 2),
    }
    frequencies = cfg.posenc_LapPE.eigen.max_freqs
    eigenvalues = torch.rand(7, frequencies, 1)
    eigenvalues[:, 5:] = float('nan')  # a graph with fewer eigenvectors than asked for
    steps = len(eval(cfg.posenc_RWSE.kernel.times_func or '[]'))
    if cfg.dataset.task_type == 'regression':
        y = torch.randn(1, num_classes)
    elif cfg.dataset.task_type == 'classification_multilabel':
        y = torch.ones(1, num_classes)
    else:
        per_node = cfg.dataset.task == 'node' or cfg.gnn.head == 'inductive_node'
        y = torch.arange(7 if per_node else 1) % max(num_classes, 2)
    return Data(
        x=features()[1],
        edge_index=edge_index,
        edge_attr=edges.get(cfg.dataset.edge_encoder_name),
        EigVals=eigenvalues,
        EigVecs=torch.where(eigenvalues.isnan(), eigenvalues, torch.rand(7, frequencies, 1)).squeeze(2),
        pestat_RWSE=torch.rand(7, steps),
        train_mask=torch.ones(7, dtype=torch.bool),
        y=y,
    )


@pytest.mark.parametrize('dataset', generate.DATASETS)
def test_models_can_be_built_and_trained(graphgps: None, dataset: str) -> None:
    for path in sorted((CONFIGS / 'graphgps').glob(f'{dataset}-GPS+*.yaml')):
        set_cfg(cfg)
        load_cfg(cfg, SimpleNamespace(cfg_file=str(path), opts=[]))
        assert cfg.gt.layers > 1
        cfg.gt.layers = 2
        if cfg.posenc_RWSE.enable:
            cfg.posenc_RWSE.kernel.times = list(eval(cfg.posenc_RWSE.kernel.times_func))
        num_classes = 11 if dataset.startswith('peptides') else 1 if cfg.dataset.task_type == 'regression' else 3
        cfg.share.dim_in, _ = features()
        torch.manual_seed(0)
        model = register.network_dict[cfg.model.type](dim_in=cfg.share.dim_in, dim_out=num_classes)
        data = graph(num_classes)
        for transform in build_transforms(cfg.topomask.transforms):
            data = transform(data)
        batch = Batch.from_data_list([data.clone(), data.clone()])
        batch.split = 'train'
        before = {name: parameter.clone() for name, parameter in model.named_parameters() if 'topo_attn' in name}
        assert before, path.name
        loss, _ = compute_loss(*model(batch))
        loss.backward()
        torch.optim.Adam(model.parameters(), 0.1).step()
        assert bool(loss.isfinite()), path.name
        changed = [name for name, parameter in model.named_parameters() if name in before and not parameter.equal(before[name])]
        assert any('lin_v' in name for name in changed), path.name
