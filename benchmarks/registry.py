r"""The benchmarks by name: where each one is, what it is for, and which tables it writes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ['BENCHMARKS', 'Benchmark', 'find_benchmark']


@dataclass(frozen=True)
class Benchmark:
    r"""A function :obj:`run(quick, folder)` of a module of this package, its purpose, and the tables that it writes. If it
    needs a GPU, its tables may be missing among the project's.
    """

    module: str
    purpose: str
    tables: tuple[str, ...]
    function: str = 'run'
    needs_gpu: bool = False

    def load(self) -> Callable[[bool, Path], None]:
        function: Callable[[bool, Path], None] = getattr(
            importlib.import_module(f'benchmarks.{self.module.replace("/", ".")}'), self.function
        )
        return function


BENCHMARKS = {
    'scaling': Benchmark('scaling', 'time and memory of a GRF layer as graphs grow, compared with layers of PyG', ('scaling',)),
    'layers': Benchmark(
        'layers', 'a training step of every attention on batches of small graphs and on large ones', ('layers',)
    ),
    'runs': Benchmark('runs', 'whole runs compared with a plain loop of PyG, from the command on', ('runs', 'runs_start')),
    'targets': Benchmark('targets', 'targets of speed and memory, at an earlier commit and now', ('targets',)),
    'advise': Benchmark('advise', 'the command advise on data with and without a gain', ('advise', 'advise_models')),
    'memory': Benchmark('memory', 'peak memory of the combine step as features grow', ('memory',)),
    'sampler': Benchmark('sampler', 'steps of the walk sampler per second, compared with torch_sparse', ('sampler',)),
    'grf_features': Benchmark(
        'grf_features', 'graph random features and power series, compared with fast-graph-gp and SciPy', ('grf_features',)
    ),
    'kernels': Benchmark('kernels', 'masks as graph kernels, compared with dense kernels and fast-graph-gp', ('kernels',)),
    'kernels_speed': Benchmark('kernels', 'time of masks as graph kernels', ('kernels_speed',), 'speed'),
    'asymmetric': Benchmark('asymmetric', 'asymmetric GRF attention compared with GATConv', ('asymmetric',)),
    'hot_paths': Benchmark('hot_paths', 'hot paths compared with plain versions of them', ('hot_paths',)),
    'before_after': Benchmark(
        'before_after',
        'hot paths and layers compared with those of an earlier commit',
        ('before_after', 'before_after_layers'),
    ),
    'softmax': Benchmark('softmax', 'softmax attention under any mask compared with that of PyTorch', ('softmax',)),
    'toeplitz': Benchmark('toeplitz', 'Toeplitz masks compared with dense masks and bare Fourier transforms', ('toeplitz',)),
    'tree': Benchmark('tree', 'tree masks compared with a sparse product, and as trees grow', ('tree', 'tree_distance')),
    'shuffled': Benchmark('shuffled', 'training steps on new batches over steps on prepared ones', ('shuffled',)),
    'distance_batches': Benchmark(
        'distance_batches', 'masks of distances and offsets on batches of small graphs', ('distance_batches',)
    ),
    'heat': Benchmark('heat', 'heat kernels compared with expm_multiply', ('heat',)),
    'locality': Benchmark('locality', 'a training step on a large graph, in order and shuffled', ('locality',)),
    'scale': Benchmark('scale', 'the largest graph of each attention in 2, 4 and 8 GiB', ('scale',)),
    'gkat_speed': Benchmark('gkat_speed', 'RWGNK attention compared with GAT in training', ('gkat_speed',)),
    'gkat_batches': Benchmark('gkat_speed', 'GKAT compared with GAT on batches of small graphs', ('gkat_batches',), 'batches'),
    'estimation': Benchmark('estimation', 'error, sparsity and operations of graph random features', ('estimation', 'flops')),
    'candidates_positions': Benchmark(
        'candidates/positions', 'convolutional encodings of positions, compared with sines', ('candidates_positions',)
    ),
    'candidates_softmax': Benchmark(
        'candidates/softmax', 'dense-exponential features of softmax, compared with FAVOR+', ('candidates_softmax',)
    ),
    'candidates_projections': Benchmark(
        'candidates/projections', 'projected graph random features, compared with fewer walks', ('candidates_projections',)
    ),
    'stitching': Benchmark(
        'stitching', 'stitched walks and coupled lengths on kernels of long range', ('stitching', 'couplings')
    ),
    'digits': Benchmark('digits', "what the mask is worth in the README's model", ('digits',)),
    'images': Benchmark('images', 'masks of the patch grid in vision Transformers', ('images',)),
    'video': Benchmark('video', 'masks in a video Transformer', ('video',)),
    'interlacer': Benchmark('interlacer', 'Interlacers on simulated cloth: error and speed', ('interlacer',)),
    'interlacer_anchors': Benchmark(
        'interlacer', 'Interlacers with message passing to a subset of anchors', ('interlacer_anchors',), 'anchors'
    ),
    'motifs': Benchmark('motifs', 'GKAT on motifs and induced cycles', ('motifs',)),
    'citation': Benchmark('citation', 'GKAT and GAT on citation networks', ('citation',)),
    'citation_softmax': Benchmark(
        'citation', 'GKAT with the softmax kernel itself, and GAT', ('citation_softmax',), 'run_softmax'
    ),
    'tu': Benchmark('tu', 'GKAT on TU sets, compared with message passing and no graph', ('tu',)),
    'gkat_ablations': Benchmark(
        'gkat_ablations',
        'GKAT: length of walks, depth, accuracy at equal time',
        ('gkat_walk_length', 'gkat_depth', 'gkat_equal_time'),
    ),
    'topk_search': Benchmark('topk_search', 'backends of the top-k search, compared with KeOps and faiss', ('topk_search',)),
    'ball_tree': Benchmark('ball_tree', 'tree search compared with brute force', ('ball_tree', 'ball_tree_time')),
    'kmip_efficiency': Benchmark('kmip_efficiency', 'k-MIP attention compared with full attention', ('kmip_efficiency',)),
    'kmip_batches': Benchmark(
        'kmip_efficiency', 'k-MIP attention in batches of small graphs', ('kmip_batches',), 'small_graphs'
    ),
    'kmip_million': Benchmark('kmip_efficiency', 'k-MIP attention on a million nodes', ('kmip_million',), 'million'),
    'kmip_accuracy': Benchmark('kmip_accuracy', 'accuracy of k-MIP-GT compared with baselines', ('kmip_accuracy',)),
    'kmip_full_size': Benchmark(
        'kmip_accuracy',
        'accuracy of k-MIP-GT with the parameters and epochs of the thesis',
        ('kmip_full_size',),
        'full_size',
    ),
    'kmip_peptides': Benchmark('kmip_peptides', 'k-MIP-GT compared with baselines on Peptides-func', ('kmip_peptides',)),
    'kmip_all_peptides': Benchmark(
        'kmip_peptides',
        'k-MIP-GT compared with GCN and GatedGCN on all of Peptides-func',
        ('kmip_all_peptides',),
        'all_molecules',
    ),
    'kmip_objects': Benchmark('kmip_objects', 'k-MIP-GT compared with baselines on scanned objects', ('kmip_objects',)),
    'kmip_influence': Benchmark('kmip_accuracy', 'influence of k and of the size of keys', ('kmip_influence',), 'influence'),
    'kmip_inside': Benchmark('kmip_inside', 'what a trained k-MIP-GT attends to', ('kmip_inside',)),
    'accuracy': Benchmark(
        'accuracy/protocol',
        'what a mask gains, compared with unmasked attentions and message passing',
        (
            'accuracy_trees',
            'accuracy_lookup',
            'accuracy_meshes',
            'accuracy_sydney',
            'accuracy_chicago',
            'accuracy_minesweeper',
            'accuracy_tolokers',
            'accuracy_chameleon_filtered',
            'accuracy_squirrel_filtered',
            'accuracy_rings',
            'accuracy_crossed_rings',
            'accuracy_match',
            'accuracy_distances',
            'accuracy_traffic',
            'accuracy_peptides',
            'accuracy_all_peptides',
            'accuracy_variants',
            'accuracy_walks',
            'accuracy_kinds',
            'accuracy_depth',
        ),
    ),
    'graph_properties': Benchmark(
        'long_range/protocol',
        'distances, eccentricities and diameters: masks compared with message passing',
        ('graph_properties', 'graph_properties_larger'),
    ),
    'graph_properties_performer': Benchmark(
        'long_range/protocol', 'the same with Performer', ('graph_properties_performer',), 'performer'
    ),
    'families': Benchmark('long_range/protocol', 'the same on graphs of larger diameters', ('families',), 'families'),
    'spins': Benchmark('long_range/protocol', 'energies of spins with interactions of long range', ('spins',), 'spins'),
    'edge_types': Benchmark('edge_types', 'a task that needs the types of edges', ('edge_types',)),
    'edge_weights': Benchmark(
        'edge_weights', 'time and memory of learned edge weights', ('edge_weights', 'edge_weights_softmax')
    ),
    'edge_features': Benchmark('edge_features', 'learned edge weights on molecules', ('edge_features', 'edge_features_gains')),
    'edge_peptides': Benchmark(
        'edge_features', 'edge features on peptides at full size', ('edge_peptides', 'edge_peptides_gains'), 'peptides'
    ),
    'edge_roads': Benchmark('edge_roads', 'learned edge weights on roads', ('edge_roads', 'edge_roads_gains')),
    'recommend': Benchmark('recommend', 'accuracy of MGFormer and its baselines', ('recommend', 'recommend_tuning')),
    'recommend_layers': Benchmark('recommend_layers', 'MGFormer with several layers and heads', ('recommend_layers',)),
    'recommend_speed': Benchmark('recommend', 'time and memory of MGFormer in training', ('recommend_speed',), 'speed'),
    'interactions': Benchmark(
        'interactions', 'reading interactions from text, compared with polars and pandas', ('interactions',)
    ),
    'interactions_epoch': Benchmark(
        'interactions', 'from 32 million lines of text to an epoch of LightGCN', ('interactions_epoch',), 'epoch'
    ),
    'sharding': Benchmark('sharding', 'one graph in several processes', ('sharding', 'sharding_bytes', 'sharding_limited')),
    'graphgps': Benchmark('graphgps', 'every attention in a GraphGPS checkout', ('graphgps',)),
    'yamls': Benchmark('yamls', 'public YAML files of GraphGPS in the standalone runner', ('yamls',)),
    'gpu': Benchmark('gpu', 'every attention on a GPU, and its tests there', ('gpu', 'gpu_crossover'), needs_gpu=True),
}


def find_benchmark(table: str) -> str:
    r"""Returns the name of the benchmark that writes a table."""
    return next(name for name, benchmark in BENCHMARKS.items() if table in benchmark.tables)
