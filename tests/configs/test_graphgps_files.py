"""The files for GraphGPS: every attention trains in every file by one changed word."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml
from configured_step import CONFIGS, WORDS, assert_step_changes_attention, cases, layer_type, loaded
from graphgps_layers import REAL, STANDIN, imported
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg, load_cfg, set_cfg

import pyg_topomask.graphgym.graphgps  # noqa: F401

CHECKOUT = Path(REAL) if REAL else STANDIN
FILES = sorted((CONFIGS / 'graphgps').glob('*.yaml'))
#: Not BigBird, which is GraphGPS's own in a checkout.
OURS = [word for word in WORDS if word != 'BigBird']

#: GraphGPS's configurations that ours follow, where they have other names or do not exist.
THEIRS = {
    'zinc': 'zinc-GPS+RWSE',
    'malnettiny': 'malnettiny-GPS-noPE',
    'ogbg-molhiv': 'ogbg-molhiv-GPS+RWSE',
    **dict.fromkeys(('enzymes', 'cora', 'citeseer', 'pubmed')),
}


@pytest.fixture(scope='module')
def graphgps() -> Iterator[None]:
    """Imports GraphGPS if GRAPHGPS_DIR names it, and the stand-in otherwise."""
    with imported(CHECKOUT):
        yield


def flat(node: dict[str, Any], prefix: str = '') -> dict[str, Any]:
    items: dict[str, Any] = {}
    for key, value in node.items():
        items.update(flat(value, f'{prefix}{key}.') if isinstance(value, dict) else {f'{prefix}{key}': value})
    return items


def test_hyperparameters_are_those_of_graphgps() -> None:
    if REAL is None:
        pytest.skip('GRAPHGPS_DIR is not set to a checkout of GraphGPS')
    for path in FILES:
        name = THEIRS.get(path.stem, f'{path.stem}-GPS')
        if name is None:
            continue
        theirs = flat(yaml.safe_load((CHECKOUT / 'configs' / 'GPS' / f'{name}.yaml').read_text()))
        ours = flat(yaml.safe_load(path.read_text()))
        assert ours.pop('gt.layer_type').split('+')[0] == theirs.pop('gt.layer_type').split('+')[0]
        shared = ours.keys() & theirs.keys() - {'wandb.use'}
        # YAML reads 1e-5 as a string, which GraphGym turns into a number.
        assert {key: ours[key] for key in shared} == {
            key: float(theirs[key]) if isinstance(ours[key], float) else theirs[key] for key in shared
        }, path.stem
        extra = {key for key in theirs.keys() - shared if not key.startswith(('posenc_Graphormer', 'graphormer', 'wandb'))}
        enabled = {key for key in extra if not (key.startswith('posenc_RWSE') and not theirs['posenc_RWSE.enable'])}
        assert enabled <= {
            'model.edge_decoding',
            'gnn.agg',
            'gnn.normalize_adj',
            'posenc_LapPE.n_heads',
            'dataset.edge_encoder_name',
        }, (path.stem, enabled)


def node_features() -> Tensor:
    """The raw node features of the data set that cfg describes."""
    encoder = cfg.dataset.node_encoder_name if cfg.dataset.node_encoder else ''
    if 'Atom' in encoder:
        return torch.zeros(7, 9, dtype=torch.long)
    if 'TypeDict' in encoder:
        return torch.arange(7).view(-1, 1)
    return torch.randn(7, 14 if 'VOC' in encoder else 5)


def make_graph(num_classes: int) -> Data:
    """A graph with everything that the encoders and heads of the data set read."""
    forwards = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 2]])
    # Some of the data sets of one graph are directed.
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
    if cfg.dataset.task_type == 'regression':
        y = torch.randn(1, num_classes)
    elif cfg.dataset.task_type == 'classification_multilabel':
        y = torch.ones(1, num_classes)
    else:
        per_node = cfg.dataset.task == 'node' or cfg.gnn.head == 'inductive_node'
        y = torch.arange(7 if per_node else 1) % num_classes
    return Data(
        x=node_features(),
        edge_index=edge_index,
        edge_attr=edges.get(cfg.dataset.edge_encoder_name),
        EigVals=eigenvalues,
        EigVecs=torch.where(eigenvalues.isnan(), eigenvalues, torch.rand(7, frequencies, 1)).squeeze(2),
        pestat_RWSE=torch.rand(7, len(cfg.posenc_RWSE.kernel.times)),
        train_mask=torch.ones(7, dtype=torch.bool),
        y=y,
    )


def configure(path: Path, word: str) -> None:
    """Loads a file as GraphGPS does, with another attention."""
    set_cfg(cfg)
    load_cfg(cfg, SimpleNamespace(cfg_file=str(path), opts=['gt.layer_type', f'{layer_type(path)[0]}+{word}']))
    if cfg.posenc_RWSE.enable:
        cfg.posenc_RWSE.kernel.times = list(eval(cfg.posenc_RWSE.kernel.times_func))


@pytest.mark.filterwarnings('ignore')  # GraphGPS was written for older versions of everything
@pytest.mark.filterwarnings('error:.*nothing reads')
@pytest.mark.parametrize(
    ('path', 'word'), cases(FILES, OURS, 'zinc', {'cora', 'wn-squirrel'}), ids=lambda value: getattr(value, 'stem', value)
)
def test_a_step_changes_the_attention(graphgps: None, path: Path, word: str) -> None:
    configure(path, word)
    cfg.gt.layers = 2
    num_classes = 11 if path.stem.startswith('peptides') else 1 if cfg.dataset.task_type == 'regression' else 3
    batch = loaded([make_graph(num_classes) for _ in range(2)])
    assert ('grf_index' in batch) == (word in ('GRF', 'AsymmetricGRF', 'GRFSoftmax'))
    assert ('rwgnk_index' in batch) == (word == 'RWGNK')
    assert_step_changes_attention(batch, num_classes, '.topo_attn.')


def test_options_of_a_data_set_reach_the_attention(graphgps: None) -> None:
    configure(CONFIGS / 'graphgps' / 'wn-squirrel.yaml', 'HeatKernel')
    options = cfg.topomask.HeatKernel
    assert (options.kind, options.tolerance) == ('random_walk_laplacian', 0.005)
