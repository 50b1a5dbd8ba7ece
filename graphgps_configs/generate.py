"""Writes the configurations for GraphGPS: one for each data set and attention, from the tables below.

python graphgps_configs/generate.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

__all__ = ['ATTENTIONS', 'DATASETS', 'configs', 'write']

FOLDER = Path(__file__).parent / 'graphgps'

Options = dict[str, Any]

#: What all have in common, where the tables below do not say otherwise.
COMMON: Options = {
    'out_dir': 'results',
    'metric_best': 'accuracy',
    'wandb.use': False,
    'dataset.task': 'graph',
    'dataset.task_type': 'classification',
    'dataset.transductive': False,
    'dataset.node_encoder': True,
    'dataset.node_encoder_bn': False,
    'dataset.edge_encoder': True,
    'dataset.edge_encoder_bn': False,
    'train.mode': 'custom',
    'train.batch_size': 32,
    'train.eval_period': 1,
    'train.ckpt_period': 100,
    'model.type': 'GPSModel',
    'model.loss_fun': 'cross_entropy',
    'gt.n_heads': 4,
    'gt.dropout': 0.0,
    'gt.attn_dropout': 0.5,
    'gt.layer_norm': False,
    'gt.batch_norm': True,
    'gnn.layers_pre_mp': 0,
    'gnn.layers_post_mp': 3,
    'gnn.batchnorm': True,
    'gnn.act': 'relu',
    'gnn.dropout': 0.0,
    'optim.clip_grad_norm': True,
    'optim.optimizer': 'adamW',
    'optim.weight_decay': 1e-5,
    'optim.base_lr': 0.0005,
    'optim.max_epoch': 100,
    'optim.scheduler': 'cosine_with_warmup',
    'optim.num_warmup_epochs': 10,
}


def _laplacian(dim_pe: int, max_freqs: int) -> Options:
    options = {'enable': True, 'model': 'DeepSet', 'dim_pe': dim_pe, 'layers': 2, 'raw_norm_type': 'none'}
    eigen = {'laplacian_norm': 'none', 'eigvec_norm': 'L2', 'max_freqs': max_freqs}
    return {f'posenc_LapPE.{key}': value for key, value in {**options, 'eigen': eigen}.items()}


def _random_walks(dim_pe: int, steps: int) -> Options:
    options = {'enable': True, 'kernel': {'times_func': f'range(1,{steps + 1})'}, 'model': 'Linear', 'dim_pe': dim_pe}
    return {f'posenc_RWSE.{key}': value for key, value in {**options, 'raw_norm_type': 'BatchNorm'}.items()}


SUPERPIXELS: Options = {
    'dataset.format': 'PyG-GNNBenchmarkDataset',
    'dataset.node_encoder_name': 'LapPE',
    'dataset.edge_encoder_name': 'LinearEdge',
    **_laplacian(8, 8),
    'train.batch_size': 16,
    'model.graph_pooling': 'mean',
    'local': 'CustomGatedGCN',
    'gt.layers': 3,
    'dim': 52,
    'gnn.head': 'default',
    'gnn.batchnorm': False,
    'optim.base_lr': 0.001,
    'optim.num_warmup_epochs': 5,
}
BLOCK_MODEL: Options = {
    'metric_best': 'accuracy-SBM',
    'dataset.format': 'PyG-GNNBenchmarkDataset',
    'dataset.node_encoder_name': 'LapPE',
    'dataset.edge_encoder_name': 'DummyEdge',
    'dataset.split_mode': 'standard',
    'model.loss_fun': 'weighted_cross_entropy',
    'local': 'CustomGatedGCN',
    'gnn.head': 'inductive_node',
    'optim.num_warmup_epochs': 5,
}
SEGMENTATION: Options = {
    'metric_best': 'f1',
    'dataset.name': 'edge_wt_region_boundary',
    'dataset.slic_compactness': 30,
    'dataset.node_encoder_name': 'VOCNode+LapPE',
    'dataset.edge_encoder_name': 'VOCEdge',
    **_laplacian(16, 10),
    'model.loss_fun': 'weighted_cross_entropy',
    'local': 'CustomGatedGCN',
    'gt.layers': 4,
    'gt.n_heads': 8,
    'dim': 96,
    'gnn.head': 'inductive_node',
    'optim.weight_decay': 0.0,
    'optim.max_epoch': 300,
}
PEPTIDES: Options = {
    'dataset.format': 'OGB',
    'dataset.node_encoder_name': 'Atom+LapPE',
    'dataset.edge_encoder_name': 'Bond',
    **_laplacian(16, 10),
    'train.batch_size': 128,
    'model.graph_pooling': 'mean',
    'local': 'CustomGatedGCN',
    'gt.layers': 4,
    'dim': 96,
    'gnn.head': 'default',
    'gnn.layers_post_mp': 1,
    'optim.weight_decay': 0.0,
    'optim.base_lr': 0.0003,
    'optim.max_epoch': 200,
}
ONE_GRAPH: Options = {
    'dataset.task': 'node',
    'dataset.transductive': True,
    'dataset.split_mode': 'standard',
    'dataset.edge_encoder': False,
    'train.sampler': 'full_batch',
    'train.eval_period': 5,
    'train.enable_ckpt': False,
    'local': 'GCN',
    'gt.layers': 2,
    'gt.dropout': 0.2,
    'gt.attn_dropout': 0.0,
    'gt.batch_norm': False,
    'dim': 64,
    'gnn.head': 'node',
    'gnn.layers_post_mp': 1,
    'gnn.act': 'gelu',
    'gnn.dropout': 0.2,
    'optim.max_epoch': 200,
}
HETEROPHILOUS: Options = {**ONE_GRAPH, 'dataset.node_encoder_name': 'LapPE', **_laplacian(4, 4)}
WEBKB: Options = {**HETEROPHILOUS, 'dataset.format': 'PyG-WebKB'}
WIKIPEDIA: Options = {**HETEROPHILOUS, 'dataset.format': 'PyG-WikipediaNetwork'}
# GraphGPS has no configuration of its own for these; with few labels, what keeps a model from overfitting is dropout.
PLANETOID: Options = {
    **ONE_GRAPH,
    'dataset.format': 'PyG-Planetoid',
    'dataset.node_encoder_name': 'LinearNode',
    'gt.dropout': 0.7,
    'gt.attn_dropout': 0.5,
    'gnn.dropout': 0.7,
    'optim.weight_decay': 1e-3,
    'optim.base_lr': 0.01,
    'optim.max_epoch': 60,
    'optim.num_warmup_epochs': 5,
}

#: The options of each data set, those of GraphGPS where it has a configuration. ``dim`` is ``gt.dim_hidden`` and
#: ``gnn.dim_inner``, ``local`` what stands before the + of ``gt.layer_type``.
DATASETS: dict[str, Options] = {
    'zinc': {
        'metric_best': 'mae',
        'metric_agg': 'argmin',
        'dataset.format': 'PyG-ZINC',
        'dataset.name': 'subset',
        'dataset.task_type': 'regression',
        'dataset.node_encoder_name': 'TypeDictNode+RWSE',
        'dataset.node_encoder_num_types': 28,
        'dataset.edge_encoder_name': 'TypeDictEdge',
        'dataset.edge_encoder_num_types': 4,
        **_random_walks(28, 20),
        'model.loss_fun': 'l1',
        'model.graph_pooling': 'add',
        'local': 'GINE',
        'gt.layers': 10,
        'dim': 64,
        'gnn.head': 'san_graph',
        'optim.base_lr': 0.001,
        'optim.max_epoch': 2000,
        'optim.num_warmup_epochs': 50,
    },
    'cifar10': {**SUPERPIXELS, 'dataset.name': 'CIFAR10', 'gnn.layers_post_mp': 2},
    'mnist': {**SUPERPIXELS, 'dataset.name': 'MNIST'},
    'pattern': {**BLOCK_MODEL, 'dataset.name': 'PATTERN', **_laplacian(16, 16), 'gt.layers': 6, 'dim': 64},
    'cluster': {
        **BLOCK_MODEL,
        'dataset.name': 'CLUSTER',
        **_laplacian(16, 10),
        'train.batch_size': 16,
        'gt.layers': 16,
        'gt.n_heads': 8,
        'gt.dropout': 0.1,
        'dim': 48,
    },
    'malnettiny': {
        'dataset.format': 'PyG-MalNetTiny',
        'dataset.name': 'LocalDegreeProfile',
        'dataset.node_encoder': False,
        'dataset.edge_encoder_name': 'DummyEdge',
        'train.batch_size': 16,
        'model.graph_pooling': 'max',
        'local': 'CustomGatedGCN',
        'gt.layers': 5,
        'dim': 64,
        'gnn.head': 'default',
        'gnn.layers_pre_mp': 1,
        'optim.max_epoch': 150,
    },
    'vocsuperpixels': {**SEGMENTATION, 'dataset.format': 'PyG-VOCSuperpixels'},
    'cocosuperpixels': {**SEGMENTATION, 'dataset.format': 'PyG-COCOSuperpixels'},
    'peptides-func': {
        **PEPTIDES,
        'metric_best': 'ap',
        'dataset.name': 'peptides-functional',
        'dataset.task_type': 'classification_multilabel',
    },
    'peptides-struct': {
        **PEPTIDES,
        'metric_best': 'mae',
        'metric_agg': 'argmin',
        'dataset.name': 'peptides-structural',
        'dataset.task_type': 'regression',
        'model.loss_fun': 'l1',
    },
    'ogbg-molhiv': {
        'metric_best': 'auc',
        'dataset.format': 'OGB',
        'dataset.name': 'ogbg-molhiv',
        'dataset.node_encoder_name': 'Atom+RWSE',
        'dataset.edge_encoder_name': 'Bond',
        **_random_walks(16, 16),
        'model.graph_pooling': 'mean',
        'local': 'CustomGatedGCN',
        'gt.layers': 10,
        'gt.dropout': 0.05,
        'dim': 64,
        'gnn.head': 'san_graph',
        'optim.base_lr': 0.0001,
        'optim.num_warmup_epochs': 5,
    },
    # GraphGPS has ENZYMES, without a configuration of a GPS model for it.
    'enzymes': {
        'dataset.format': 'PyG-TUDataset',
        'dataset.name': 'ENZYMES',
        'dataset.split_mode': 'cv-stratifiedkfold-10',
        'dataset.node_encoder_name': 'LinearNode+RWSE',
        'dataset.edge_encoder_name': 'DummyEdge',
        **_random_walks(16, 16),
        'model.graph_pooling': 'mean',
        'local': 'CustomGatedGCN',
        'gt.layers': 3,
        'dim': 64,
        'gnn.head': 'default',
        'optim.base_lr': 0.001,
    },
    'webkb-cor': {**WEBKB, 'dataset.name': 'cornell'},
    'webkb-tex': {**WEBKB, 'dataset.name': 'texas'},
    'webkb-wis': {**WEBKB, 'dataset.name': 'wisconsin'},
    'actor': {**HETEROPHILOUS, 'dataset.format': 'PyG-Actor', 'dataset.name': 'none'},
    'wn-chameleon': {**WIKIPEDIA, 'dataset.name': 'chameleon', 'gt.layers': 3, 'gt.attn_dropout': 0.5, 'dim': 96},
    'wn-squirrel': {**WIKIPEDIA, 'dataset.name': 'squirrel'},
    'cora': {**PLANETOID, 'dataset.name': 'Cora'},
    'citeseer': {**PLANETOID, 'dataset.name': 'CiteSeer'},
    'pubmed': {**PLANETOID, 'dataset.name': 'PubMed'},
}

WALKS: Options = {'num_walks': 4, 'p_halt': 0.5, 'max_walk_length': 4}

#: The options of each attention that needs nothing of a graph but its edges. Toeplitz needs grids, Tree forests, Causal an
#: order of the nodes and LowRank factors, which these data sets do not have.
ATTENTIONS: dict[str, Options] = {
    'GRF': {'topomask.GRF': WALKS, 'topomask.transforms': ['AddGraphRandomFeatures']},
    'AsymmetricGRF': {'topomask.AsymmetricGRF': WALKS, 'topomask.transforms': ['AddGraphRandomFeatures']},
    'GRFSoftmax': {'topomask.GRFSoftmax': WALKS, 'topomask.transforms': ['AddGraphRandomFeatures']},
    'RWGNK': {
        'topomask.RWGNK': {'num_walks': 4, 'p_halt': 0.0, 'max_walk_length': 3},
        'topomask.transforms': ['AddRandomWalkKernel'],
    },
    'SinDegree': {'topomask.SinDegree': {'max_degree': 512}},
    'KMIP': {'topomask.KMIP': {'k': 10}},
    'Expander': {'topomask.Expander': {'degree': 6}},
    'PowerSeries': {'topomask.PowerSeries': {'order': 4, 'normalization': 'sym'}},
    # WebKB, Actor and Wikipedia are directed, which the symmetric Laplacians exclude.
    'HeatKernel': {'topomask.HeatKernel': {'kind': 'random_walk_laplacian', 'lam': 1.0}},
    'Adjacency': {'topomask.Adjacency': {'normalization': 'sym'}},
    'Linear': {'topomask.Linear': {'feature_map': 'relu'}},
    'Masked': {'topomask.mask': {'sum': [{'PowerSeries': {'order': 4}}, {'scale': [0.1, 'Packing']}]}},
}

#: What differs for one attention on one data set. Squirrel has 42 edges a node: products with the mask take most of the time
#: there, and are kept for the backward pass; its heat kernel is cut where it loses half a percent.
BOTH: dict[tuple[str, str], Options] = {
    ('wn-squirrel', 'PowerSeries'): {'topomask.PowerSeries.route': 'products'},
    ('wn-squirrel', 'HeatKernel'): {'topomask.HeatKernel.route': 'products', 'topomask.HeatKernel.tolerance': 0.005},
    ('wn-squirrel', 'Masked'): {'topomask.Masked.route': 'products'},
}


def _nest(options: Options) -> Options:
    nested: Options = {}
    for key, value in options.items():
        *groups, name = key.split('.')
        target = nested
        for group in groups:
            target = target.setdefault(group, {})
        target[name] = dict(value) if isinstance(value, dict) else value
    return nested


def _config(dataset: str, attention: str) -> Options:
    options = {**COMMON, **DATASETS[dataset], **ATTENTIONS[attention], **BOTH.get((dataset, attention), {})}
    dim = options.pop('dim')
    options['gt.layer_type'] = f'{options.pop("local")}+{attention}'
    options['gt.dim_hidden'] = options['gnn.dim_inner'] = dim
    return _nest(options)


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        return True


def configs() -> dict[str, str]:
    """Returns the text of each configuration by the name of its file."""
    head = '# Written by graphgps_configs/generate.py, to be changed there.\n'
    return {
        f'{dataset}-GPS+{attention}.yaml': head + yaml.dump(_config(dataset, attention), Dumper=_Dumper, sort_keys=False)
        for dataset in DATASETS
        for attention in ATTENTIONS
    }


def write(folder: Path = FOLDER) -> None:
    """Writes all configurations, and removes those that are no more."""
    texts = configs()
    folder.mkdir(exist_ok=True)
    for path in folder.glob('*.yaml'):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text)
    print(f'{len(texts)} files in {folder}', file=sys.stderr)


if __name__ == '__main__':
    write()
