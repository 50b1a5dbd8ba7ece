"""Writes the configurations of k-MIP attention and what it is compared with, from the tables below.

python graphgps_configs/kmip/generate.py

The first eight data sets and their hyperparameters are those of the thesis "Bringing k-MIP Attention to Graph Transformers"
(Tables A.2, A.3, A.9, A.10). Positional encodings are those of PyG's transforms, mapped linearly: Laplacian eigenvectors in
place of ESLapPE and of LapPE with a DeepSet; random walks for peptides, of which some are too small for ten eigenvectors.
The others are data sets small enough for a CPU, which the thesis does not use.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

__all__ = ['ATTENTIONS', 'DATASETS', 'configs', 'write']

FOLDER = Path(__file__).parent

Options = dict[str, Any]

#: What stands after the + of ``gt.layer_type``.
ATTENTIONS = ('KMIP', 'Transformer', 'Performer', 'Linear', 'GRF')

COLUMNS = [
    *('epochs', 'batch', 'lr', 'warmup', 'decay', 'layers', 'heads', 'dropout', 'attn_dropout', 'in_fcl', 'out_fcl', 'pooling'),
    *('kq_dim', 'val_dim', 'dim_KMIP', 'dim_Transformer', 'dim_Performer', 'dim_Exphormer'),
]

#: Tables A.2, A.3, A.9 and A.10; the rows of ours, from the first scans on, follow those of like data.
TABLE = """
cifar10          100 16  1e-3 5  1e-5 5 4 0.1  0.1 0 2 mean 16 9  36 40 20 40
malnettiny       150 16  5e-4 10 1e-5 5 4 0.0  0.2 1 3 max  16 16 64 64 40 64
pascalvoc-sp     300 32  5e-4 10 0.0  4 4 0.15 0.5 0 3 mean 16 22 96 96 48 96
peptides-func    200 128 3e-4 10 0.0  8 4 0.12 0.5 0 1 mean 16 17 68 68 44 68
amazon-computer  150 32  1e-3 5  1e-3 4 2 0.4  0.8 1 1 mean 16 18 72 68 60 80
shapenet-part    120 16  5e-4 10 1e-5 8 4 0.1  0.0 0 2 mean 5  14 56 -  28 52
s3dis            120 16  5e-4 10 1e-5 8 4 0.1  0.0 0 2 mean 5  14 56 -  28 52
modelnet10       120 16  5e-4 10 1e-5 4 4 0.4  0.0 0 2 mean 5  12 48 -  20 44
urban-objects    60  16  5e-4 5  1e-5 4 4 0.1  0.0 0 2 mean 5  12 48 48 20 44
table-scans      40  4   5e-4 5  1e-5 4 4 0.1  0.0 0 2 mean 5  14 56 -  28 52
mnist-pixels     8   32  1e-3 1  1e-5 2 4 0.1  0.1 0 2 mean 16 9  36 40 20 40
cifar10-pixels   40  16  1e-3 5  1e-5 3 4 0.1  0.1 0 2 mean 16 9  36 40 20 40
enzymes          100 32  1e-3 5  1e-5 3 4 0.1  0.1 0 2 mean 8  8  32 32 16 32
proteins         40  32  1e-3 5  1e-5 3 4 0.1  0.1 0 2 mean 8  8  32 32 16 32
imdb-binary      40  32  1e-3 5  1e-5 3 4 0.1  0.1 0 2 mean 8  8  32 32 16 32
"""

GRAPH: Options = {'dataset.task': 'graph', 'gnn.head': 'graph'}
POINTS: Options = {'dataset.task': 'graph', 'gnn.head': 'inductive_node', 'model.loss_fun': 'weighted_cross_entropy'}
NO_EDGE_FEATURES: Options = {'dataset.edge_encoder_name': 'DummyEdge'}
PIXELS: Options = {**GRAPH, 'dataset.dir': './datasets/images', 'dataset.format': 'topomask'}
# Attributes and degrees differ in scale, so the encoder normalises.
TU: Options = {
    **GRAPH,
    **NO_EDGE_FEATURES,
    'dataset.dir': './datasets/tu',
    'dataset.format': 'PyG-TUDataset',
    'dataset.split': [0.8, 0.1, 0.1],
    'dataset.node_encoder_bn': True,
}


def _metric(name: str) -> Options:
    return {'metric_best': name, 'custom_metrics': [name]}


#: What the tables do not say.
DATASETS: dict[str, Options] = {
    'cifar10': {
        **GRAPH,
        'dataset.format': 'PyG-GNNBenchmarkDataset',
        'dataset.name': 'CIFAR10',
        'topomask.transforms': [{'AddLaplacianEigenvectorPE': {'k': 8, 'attr_name': None}}],
    },
    'malnettiny': {
        **GRAPH,
        **NO_EDGE_FEATURES,
        'dataset.format': 'PyG-MalNetTiny',
        'dataset.name': 'LocalDegreeProfile',
    },
    'pascalvoc-sp': {
        **POINTS,
        **_metric('macro_f1'),
        'dataset.format': 'PyG-LRGBDataset',
        'dataset.name': 'PascalVOC-SP',
        'topomask.transforms': [{'AddLaplacianEigenvectorPE': {'k': 10, 'attr_name': None, 'is_undirected': True}}],
    },
    'peptides-func': {
        **GRAPH,
        **_metric('average_precision'),
        'dataset.dir': './datasets/peptides_func',
        'dataset.format': 'topomask',
        'dataset.name': 'peptides-func',
        'dataset.task_type': 'classification_multilabel',
        'dataset.node_encoder_name': 'SmilesNode',
        'dataset.edge_encoder_name': 'SmilesEdge',
        'topomask.transforms': [{'AddRandomWalkPE': {'walk_length': 16, 'attr_name': None}}],
    },
    'amazon-computer': {
        **NO_EDGE_FEATURES,
        'dataset.format': 'PyG-Amazon',
        'dataset.name': 'computers',
        'dataset.task': 'node',
        'dataset.transductive': True,
        'dataset.split': [0.6, 0.2, 0.2],
        'gnn.head': 'node',
        'topomask.transforms': [{'AddRandomWalkPE': {'walk_length': 16, 'attr_name': None}}],
    },
    'shapenet-part': {
        **POINTS,
        **_metric('macro_f1'),
        'dataset.format': 'PyG-ShapeNet',
        'dataset.name': 'ShapeNet',
        'topomask.transforms': [{'KNNGraph': {'k': 8}}, {'Distance': {'cat': False}}],
    },
    's3dis': {
        **POINTS,
        **_metric('mean_iou'),
        'dataset.format': 'PyG-S3DIS',
        'dataset.name': 'S3DIS',
        'topomask.transforms': [{'KNNGraph': {'k': 32}}, {'Distance': {'cat': False}}],
    },
    'modelnet10': {
        **GRAPH,
        'dataset.format': 'PyG-ModelNet',
        'dataset.name': 'ModelNet10',
        'topomask.transforms': [
            {'AddNormals': {'k': 16, 'cat': True}},
            {'KNNGraph': {'k': 8}},
            {'Distance': {'cat': False}},
        ],
    },
    'urban-objects': {
        **GRAPH,
        'dataset.dir': './datasets/pointcloud',
        'dataset.format': 'topomask',
        'dataset.name': 'urban-objects',
        'topomask.transforms': [
            {'FarthestSampling': {'num': 1024}},
            {'AddNormals': {'k': 16, 'cat': True}},
            {'KNNGraph': {'k': 8}},
            {'Distance': {'cat': False}},
        ],
    },
    'table-scans': {
        **POINTS,
        **_metric('mean_iou'),
        'dataset.dir': './datasets/pointcloud',
        'dataset.format': 'topomask',
        'dataset.name': 'table-scans',
        'topomask.transforms': [
            {'AddNormals': {'k': 16, 'cat': True}},
            {'KNNGraph': {'k': 16}},
            {'Distance': {'cat': False}},
        ],
    },
    'mnist-pixels': {**PIXELS, 'dataset.name': 'mnist-pixels'},
    'cifar10-pixels': {**PIXELS, 'dataset.name': 'cifar10-pixels'},
    'enzymes': {
        **TU,
        'dataset.name': 'ENZYMES',
        'topomask.transforms': [{'AddRandomWalkPE': {'walk_length': 16, 'attr_name': None}}],
    },
    'proteins': {
        **TU,
        'dataset.name': 'PROTEINS',
        'topomask.transforms': [{'AddRandomWalkPE': {'walk_length': 16, 'attr_name': None}}],
    },
    'imdb-binary': {**TU, 'dataset.name': 'IMDB-BINARY', 'topomask.transforms': ['LocalDegreeProfile']},
}

#: What one attention alone has otherwise. The thesis lowers this batch for memory (Sec. A.2), and does not say how far.
EXCEPTIONS: dict[tuple[str, str], Options] = {('malnettiny', 'Transformer'): {'train.batch_size': 4}}


def _number(word: str) -> Any:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return None if word == '-' else word


def _rows() -> dict[str, Options]:
    lines = (line.split() for line in TABLE.strip().splitlines())
    return {name: dict(zip(COLUMNS, map(_number, words), strict=True)) for name, *words in lines}


def _config(dataset: str, attention: str) -> Options | None:
    row = _rows()[dataset]
    # The thesis has no row for Linear and GRF, which have as many parameters as the attention of Exphormer.
    dim = row.get(f'dim_{attention}', row['dim_Exphormer'])
    if dim is None:
        return None
    options = {
        'out_dir': 'results',
        'metric_best': 'accuracy',
        'dataset.dir': './datasets',
        'dataset.task_type': 'classification',
        'dataset.transductive': False,
        'dataset.node_encoder': True,
        'dataset.node_encoder_name': 'LinearNode',
        'dataset.node_encoder_bn': False,
        'dataset.edge_encoder': True,
        'dataset.edge_encoder_name': 'LinearEdgeAttr',
        'dataset.edge_encoder_bn': False,
        'train.batch_size': row['batch'],
        'train.eval_period': 1,
        'model.type': 'TopoGPSModel',
        'model.loss_fun': 'cross_entropy',
        'model.graph_pooling': row['pooling'],
        'gt.layer_type': f'CustomGatedGCN+{attention}',
        'gt.layers': row['layers'],
        'gt.n_heads': row['heads'],
        'gt.dim_hidden': dim,
        'gt.dropout': row['dropout'],
        'gt.attn_dropout': row['attn_dropout'],
        'gt.layer_norm': False,
        'gt.batch_norm': True,
        'gnn.layers_pre_mp': row['in_fcl'],
        'gnn.layers_post_mp': row['out_fcl'],
        'gnn.dim_inner': dim,
        'gnn.batchnorm': True,
        'gnn.l2norm': False,
        'gnn.act': 'relu',
        'gnn.dropout': row['dropout'],
        'optim.clip_grad_norm': True,
        'optim.optimizer': 'adamW',
        'optim.weight_decay': row['decay'],
        'optim.base_lr': row['lr'],
        'optim.max_epoch': row['epochs'],
        'optim.scheduler': 'cosine_with_warmup',
        'optim.num_warmup_epochs': row['warmup'],
        **DATASETS[dataset],
        **EXCEPTIONS.get((dataset, attention), {}),
    }
    if attention == 'KMIP':
        options |= {'topomask.KMIP': {'k': 10, 'kq_dim': row['kq_dim'], 'val_dim': row['val_dim']}}
    if attention == 'GRF':
        options |= {'topomask.GRF': {'num_walks': 4, 'p_halt': 0.5, 'max_walk_length': 4}}
        options['topomask.transforms'] = [*options.get('topomask.transforms', []), 'AddGraphRandomFeatures']
    return _nest(options)


def _nest(options: Options) -> Options:
    nested: Options = {}
    for key, value in options.items():
        *groups, name = key.split('.')
        target = nested
        for group in groups:
            target = target.setdefault(group, {})
        target[name] = value
    return nested


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return True


def configs() -> dict[str, str]:
    """Returns the text of each configuration by the name of its file."""
    head = '# Written by graphgps_configs/kmip/generate.py, to be changed there.\n'
    made = {f'{name}-GPS+{attention}.yaml': _config(name, attention) for name in DATASETS for attention in ATTENTIONS}
    return {
        name: head + yaml.dump(config, Dumper=_Dumper, sort_keys=False) for name, config in made.items() if config is not None
    }


def write(folder: Path = FOLDER) -> None:
    """Writes all configurations, and removes those that are no more."""
    texts = configs()
    for path in folder.glob('*.yaml'):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text)


if __name__ == '__main__':
    write()
