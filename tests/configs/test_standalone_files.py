"""The files for the standalone runner: every attention trains in every file by one changed word."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from configured_step import CONFIGS, WORDS, assert_step_changes_attention, cases, layer_type, loaded
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loss import compute_loss
from torch_geometric.utils.smiles import e_map, x_map

import pyg_topomask.graphgym  # noqa: F401
from pyg_topomask.apps.train.checks import check_options
from pyg_topomask.graphgym.configuration import load_config
from pyg_topomask.graphgym.data.loaders import create_loaders
from pyg_topomask.graphgym.names.attentions import ATTN_TYPES

FILES = sorted([*CONFIGS.glob('*.yaml'), *CONFIGS.glob('kmip/*.yaml')])
DATA = Path(os.environ.get('PYG_TOPOMASK_DATA', Path(__file__).parents[3] / 'shared' / 'data'))

DIGITS = CONFIGS / 'digits.yaml'  # the only grids
CASES = [*cases(FILES, [*WORDS, *ATTN_TYPES], 'digits', {'cora', 's3dis', 'enzymes'}), (DIGITS, 'Toeplitz')]
#: Node features of each data set, as far as they are not 3.
WIDTHS = {'cifar10': 5, 'malnettiny': 5, 'pascalvoc-sp': 14, 'amazon-computer': 30, 's3dis': 6, 'table-scans': 6}
WIDTHS |= {'cifar10-pixels': 5, 'enzymes': 21, 'proteins': 4}
CLASSES = 10


def make_graph(name: str, size: int, generator: torch.Generator) -> Data:
    """A ring with everything that the transforms, encoders and heads of the data set read."""
    nodes = torch.arange(size)
    edge_index = torch.stack([torch.cat([nodes, nodes.roll(-1)]), torch.cat([nodes.roll(-1), nodes])])
    data = Data(edge_index=edge_index, pos=torch.rand(size, 3, generator=generator))
    if name == 'peptides-func':
        kinds = [torch.randint(len(values), (size,), generator=generator) for values in x_map.values()]
        bonds = [torch.randint(len(values), (2 * size,), generator=generator) for values in e_map.values()]
        data.x, data.edge_attr = torch.stack(kinds, 1).float(), torch.stack(bonds, 1)
        data.y = torch.randint(2, (1, CLASSES), generator=generator).float()
        return data
    if name == 'imdb-binary':  # whose features are degrees: with those of a ring, no mask would matter
        spokes = torch.stack([torch.zeros(size // 2, dtype=torch.long), nodes[2 : 2 + size // 2]])
        data.edge_index = torch.cat([edge_index, spokes, spokes.flip(0)], dim=1)
    else:
        data.x = torch.rand(size, WIDTHS.get(name, 3), generator=generator)
    if cfg.dataset.edge_encoder and cfg.dataset.edge_encoder_name == 'LinearEdgeAttr':
        steps = name in ('digits', 'pascalvoc-sp') or name.endswith('-pixels')
        data.edge_attr = torch.rand(2 * size, 2 if steps else 1, generator=generator)
    per_node = cfg.gnn.head in ('node', 'inductive_node')
    data.y = torch.randint(CLASSES, (size if per_node else 1,), generator=generator)
    if per_node and cfg.dataset.task_type == 'regression':
        data.y = torch.rand(size, CLASSES, generator=generator)
    data.train_mask = torch.ones(size, dtype=torch.bool)
    return data


def configure(path: Path, word: str, *options: str) -> None:
    load_config(path, ['gt.layer_type', f'{layer_type(path)[0]}+{word}', 'topomask.progress', 'False', *options])


@pytest.mark.parametrize(('path', 'word'), CASES, ids=lambda value: getattr(value, 'stem', value))
def test_a_step_changes_the_attention(path: Path, word: str) -> None:
    configure(path, word, 'gt.layers', '2', 'gt.attn_dropout', '0.1', 'gt.dropout', '0.1')
    generator = torch.Generator().manual_seed(0)
    batch = loaded([make_graph(path.stem, size, generator) for size in ((64, 64) if path == DIGITS else (24, 40))])
    walks = ('GRF', 'AsymmetricGRF', 'GRFSoftmax', 'RWGNK', *(['Masked'] if path == DIGITS else []))
    assert bool({'grf_index', 'rwgnk_index'} & set(batch.to_dict())) == (word in walks)
    assert_step_changes_attention(batch, CLASSES, '.conv.' if word == 'None' else '.attn.')


@pytest.mark.parametrize('path', sorted((CONFIGS / 'graphgps').glob('*.yaml')), ids=lambda path: path.stem)
def test_files_for_graphgps_take_a_step_as_well(path: Path) -> None:
    load_config(path, ['gt.layers', '1', 'topomask.progress', 'False'])
    encoder, edge_encoder = cfg.dataset.node_encoder_name, cfg.dataset.edge_encoder_name
    if cfg.dataset.node_encoder and 'Atom' in encoder and find_spec('ogb') is None:
        with pytest.raises(ImportError, match=r"dataset.node_encoder_name: .* 'Atom': pip install ogb"):
            check_options()
        return
    check_options()
    generator = torch.Generator().manual_seed(0)
    graphs = [make_graph(path.stem, size, generator) for size in (1, 12, 24)]
    for data in graphs:
        kinds = {'TypeDictNode+RWSE': torch.zeros(data.num_nodes, 1, dtype=torch.long)}
        kinds['Atom+RWSE'] = kinds['Atom+LapPE'] = torch.zeros(data.num_nodes, 9, dtype=torch.long)
        data.x = kinds.get(encoder, data.x)
        bonds = {'Bond': (3,), 'TypeDictEdge': ()}
        if edge_encoder in bonds:
            data.edge_attr = torch.zeros(data.num_edges, *bonds[edge_encoder], dtype=torch.long)
        elif cfg.dataset.edge_encoder:
            data.edge_attr = torch.rand(data.num_edges, 2, generator=generator)
        if cfg.dataset.task_type != 'classification':
            data.y = torch.randint(2, (1, CLASSES), generator=generator).float()
    assert_step_changes_attention(loaded(graphs), CLASSES, '.attn.')


def test_options_of_a_data_set_reach_the_attention() -> None:
    configure(CONFIGS / 'kmip' / 'cifar10.yaml', 'KMIP')
    cfg.share.dim_edge = 1
    attention = register.network_dict[cfg.model.type](dim_in=5, dim_out=10).layers[0].attn
    assert (attention.k, attention.lin_q.out_features, attention.lin_v.out_features) == (10, 4 * 16, 4 * 9)


@pytest.mark.skipif(not DATA.is_dir(), reason=f'no folder {DATA}: set PYG_TOPOMASK_DATA to the folder of the data sets')
@pytest.mark.parametrize(
    ('name', 'word', 'files', 'sizes'),
    [
        ('cifar10-pixels', 'KMIP', 'images/cifar10_subset.npz', [900, 100, 500]),
        ('enzymes', 'GRF', 'tu/ENZYMES', [480, 60, 60]),
        ('imdb-binary', 'Linear', 'tu/IMDB-BINARY', [800, 100, 100]),
    ],
)
def test_data_at_hand_is_loaded(name: str, word: str, files: str, sizes: list[int], tmp_path: Path) -> None:
    source = DATA / files
    (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / source.name)
    configure(CONFIGS / 'kmip' / f'{name}.yaml', word, 'dataset.dir', str(tmp_path))
    loaders = create_loaders()
    assert [len(loader.dataset) for loader in loaders] == sizes
    model = register.network_dict[cfg.model.type](dim_in=cfg.share.dim_in, dim_out=cfg.share.dim_out)
    batch = next(iter(loaders[0]))
    batch.split = 'train'
    loss, _ = compute_loss(*model(batch))
    assert loss.isfinite()
