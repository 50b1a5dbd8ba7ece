r"""A configuration for the graphs of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyg_topomask.apps.datasets import GraphFile
from pyg_topomask.utils.files import digest_of_files

#: The channels of the network.
WIDTH = 64


def own_config(data: str | Path, folder: Path, arguments: Mapping[str, Any]) -> dict[str, Any]:
    r"""Returns a configuration of a small network for the graphs of a file, whose processed graphs are stored in a folder. The
    other arguments and the errors are those of :class:`~pyg_topomask.apps.datasets.GraphFile`.
    """
    arguments = {'path': str(Path(data).resolve()), **arguments}
    if 'nodes' in arguments:
        arguments['nodes'] = str(Path(arguments['nodes']).resolve())
    dataset = GraphFile(str(folder), **arguments)
    arguments['digest'] = digest_of_files(*map(Path, dataset.raw_paths))  # a changed file is another configuration
    graph, one_graph = dataset[0], len(dataset) == 1
    classes = not graph.y.is_floating_point()
    per_node = graph.y.size(0) == graph.num_nodes
    labels = 1 if classes else graph.y.size(1)
    several = not classes and labels > 1 and bool(((dataset._data.y == 0) | (dataset._data.y == 1)).all())
    task = 'classification' if classes else 'classification_multilabel' if several else 'regression'
    metric = {'classification': 'accuracy', 'classification_multilabel': 'average_precision', 'regression': 'mae'}[task]
    loss = 'mse' if task == 'regression' else 'cross_entropy'
    epochs = 100 if one_graph else 40
    edge_features = 'edge_attr' in graph
    return {
        'metric_best': metric,
        **({'custom_metrics': [metric]} if several else {}),
        'dataset': {
            'dir': str(folder),
            'format': 'topomask',
            'name': 'file',
            'task': 'node' if one_graph else 'graph',
            'task_type': task,
            'transductive': one_graph,
            'node_encoder': True,
            'node_encoder_name': 'LinearNode',
            'node_encoder_bn': False,
            'edge_encoder': edge_features,
            **({'edge_encoder_name': 'LinearEdgeAttr', 'edge_encoder_bn': False} if edge_features else {}),
        },
        'topomask': {'dataset': arguments},
        'train': {'batch_size': 1 if one_graph else 32, 'eval_period': 1},
        'model': {'type': 'TopoGPSModel', 'loss_fun': loss, 'graph_pooling': 'mean'},
        'gt': {
            'layer_type': 'GINE+None' if edge_features else 'SAGE+None',
            'layers': 3,
            'n_heads': 4,
            'dim_hidden': WIDTH,
            'dropout': 0.1,
            'batch_norm': True,
        },
        'gnn': {
            'head': 'node' if one_graph else 'inductive_node' if per_node else 'graph',
            'layers_pre_mp': 0,
            'layers_post_mp': 1,
            'dim_inner': WIDTH,
            'act': 'relu',
        },
        'optim': {
            'optimizer': 'adamW',
            'weight_decay': 1e-4,
            'base_lr': 0.003,
            'max_epoch': epochs,
            'scheduler': 'cosine_with_warmup',
            'num_warmup_epochs': epochs // 10,
            'clip_grad_norm': True,
        },
    }
