"""What importing the package needs, does and offers, and which way its imports point."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

from forked import Forked

import pyg_topomask

ROOT = Path(pyg_topomask.__file__).parent
BLOCKED = (
    'yacs',
    'sklearn',
    'pytorch_lightning',
    'matplotlib',
    'torchmetrics',
    'tensorboardX',
    'networkx',
    'pykeops',
    'faiss',
    'numba',
    'linear_operator',
    'gpytorch',
    'polars',
    'trimesh',
)
LIBRARY = [
    'pyg_topomask',
    'pyg_topomask.distributed',
    'pyg_topomask.feature_maps',
    'pyg_topomask.masks',
    'pyg_topomask.nn',
    'pyg_topomask.nn.models',
    'pyg_topomask.ops',
    'pyg_topomask.apps.recommend',
    'pyg_topomask.apps.runs',
    'pyg_topomask.testing',
    'pyg_topomask.transforms',
    'pyg_topomask.walks',
]

# The core, from below: each imports only what stands above it here.
CORE = [
    'errors',
    'utils',
    'machine.backend',
    'graphs',
    'machine',
    'operators',
    'ops',
    'walks',
    'feature_maps',
    'masks',
    'transforms',
    'nn',
    'distributed',
]
# What stands on the core, from below. GraphGym's registries name the data sets.
ON_TOP = [
    'testing',
    'apps.kernels',
    'apps.diagnostics',
    'apps.runs',
    'apps.datasets',
    'apps.viz',
    'graphgym',
    'apps.recommend',
    'apps.train',
    'apps.catalog',
    'apps.launch',
    'apps.inspect',
    'apps.advise',
    '__main__',
]
ORDER = {name: level for level, name in enumerate([*CORE, *ON_TOP])}

API = {
    'pyg_topomask': ['Graph', '__version__'],
    'pyg_topomask.nn': [
        'AsymmetricGRFAttention',
        'EdgeWeights',
        'ExplicitAttention',
        'GRFAttention',
        'GRFSoftmaxAttention',
        'GatedGCNConv',
        'HopAttention',
        'KMIPAttention',
        'MaskEncoding',
        'MaskedLinearAttention',
        'MaskedSoftmaxAttention',
        'RWGNKAttention',
        'SinDegreeAttention',
        'ToeplitzAttention',
        'TopoGPSConv',
        'attention',
    ],
    'pyg_topomask.nn.models': ['GKAT', 'Interlacer', 'MGFormer', 'TopologicalViT', 'ViViT'],
    'pyg_topomask.transforms': [
        'AddForest',
        'AddGraphRandomFeatures',
        'AddGridShape',
        'AddNormals',
        'AddRandomWalkKernel',
        'AddSVDEncoding',
        'AddSpanningForest',
        'FarthestSampling',
        'KNNGraph',
        'PrepareMasks',
        'RandomSampling',
        'ToGridGraph',
    ],
    'pyg_topomask.masks': [
        'AdjacencyMask',
        'BigBirdMask',
        'CausalMask',
        'DenseMask',
        'ExpanderMask',
        'GRFMask',
        'HadamardMask',
        'HeatKernelMask',
        'HopMask',
        'HypercubeMask',
        'LearnedFeaturesMask',
        'LowRankMask',
        'Mask',
        'MultiHeadMask',
        'PackingMask',
        'PaddingMask',
        'PowerSeriesMask',
        'RWGNKMask',
        'ScaledMask',
        'SinDegreeMask',
        'StochasticRPEMask',
        'SumMask',
        'ToeplitzMask',
        'TransposedMask',
        'TreeMask',
        'convolve',
        'deconvolve',
        'kernel_series',
        'low_rank_operator',
        'modulation',
        'sparse_operator',
    ],
    'pyg_topomask.feature_maps': [
        'DenseExponentialFeatures',
        'EluFeatures',
        'FavorFeatures',
        'FeatureMap',
        'FocusedFeatures',
        'FourierFeatures',
        'IdentityFeatures',
        'PositiveFeatures',
        'ReLUFeatures',
        'SimplexFeatures',
        'SquareFeatures',
    ],
    'pyg_topomask.walks': [
        'FixedLength',
        'GeometricLength',
        'PoissonLength',
        'RandomWalks',
        'SurvivalLength',
        'WalkLength',
        'WalkSettings',
        'sample_random_walks',
        'sample_walks',
    ],
    'pyg_topomask.ops': ['knn_graph', 'masked_linear_attention', 'masked_softmax_attention', 'topk_inner_product'],
    'pyg_topomask.distributed': [
        'GlobalBatchNorm',
        'GlobalLayerNorm',
        'ShardedGraph',
        'check_parameters',
        'convert_norms',
        'mean_over_nodes',
        'sum_gradients',
    ],
    'pyg_topomask.apps.kernels': ['GraphRandomFeatures', 'MaskKernel', 'sample_posterior'],
    'pyg_topomask.operators': [
        'Alternatives',
        'Chain',
        'LowRank',
        'MaskOperator',
        'PreparedBlocks',
        'Slots',
        'Sparse',
        'SparseEntries',
    ],
    'pyg_topomask.graphs': ['Graph', 'Segments', 'SparsePattern'],
    'pyg_topomask.apps.diagnostics': [
        'attention_degrees',
        'attention_rows',
        'color_refinement',
        'compare_rows',
        'cumulative_attention',
        'cumulative_full_attention',
        'deviation_bound',
        'distance_to_full_attention',
        'edge_stretch',
        'guaranteed_deviation',
        'load_constant',
        'mask_error',
        'mask_rows',
        'measured_entries',
        'sparsity_bound',
        'suggest_num_walks',
        'weight_by_hops',
        'wl_equivalent',
    ],
    'pyg_topomask.apps.viz': [
        'explore',
        'plot_attention_degrees',
        'plot_attention_graphs',
        'plot_cumulative_attention',
        'plot_distance_to_full_attention',
        'plot_inspection',
        'plot_mask',
        'plot_mask_rows',
    ],
    'pyg_topomask.apps.datasets': [
        'CIFAR10Pixels',
        'ClothRollouts',
        'DigitsGrid',
        'GraphFile',
        'GraphProperties',
        'InducedCycles',
        'MNISTPixels',
        'MajorityTrees',
        'MeshNormals',
        'MotifGraphs',
        'MovingDigits',
        'PeptidesFunctional',
        'RoadEccentricity',
        'SceneBlocks',
        'UrbanObjects',
        'load_graph',
    ],
    'pyg_topomask.apps.recommend': [
        'DirectAULoss',
        'InteractionDataset',
        'MGFormerRecommender',
        'Recommender',
        'evaluate',
        'load_interaction_dataset',
        'load_interactions',
        'rank_items',
        'read_interactions',
        'split_per_user',
    ],
    'pyg_topomask.apps.advise': ['advise'],
    'pyg_topomask.apps.train': ['LightningModel', 'load_model', 'train'],
    'pyg_topomask.graphgym': ['register_mask'],
    'pyg_topomask.testing': ['assert_batch_invariant', 'assert_mask_operator', 'assert_permutation_equivariant'],
    'pyg_topomask.errors': ['ArgumentError'],
}


def run(code: str) -> None:
    """In a process that has the libraries, and nothing of this package or of GraphGym."""
    status, _, stderr = Forked('-c', code).wait()
    assert status == 0, stderr


def test_library_needs_none_of_the_extras_registers_nothing_and_leaves_the_state_of_torch_alone() -> None:
    """In a process that has nothing: scipy is left to the first call that needs it."""
    code = f"""
import sys
for name in {BLOCKED!r}:
    sys.modules[name] = None
import torch
import torch_geometric.nn
import torch_geometric.graphgym.register as register
def names():
    return {{kind: sorted(map(str, names)) for kind, names in vars(register).items() if kind.endswith('_dict')}}
registered, loaded = names(), set(sys.modules)
torch.manual_seed(0)
state = torch.get_rng_state(), torch.get_default_dtype(), torch.get_num_threads()
import pyg_topomask.nn
new = set(sys.modules) - loaded
assert not {{name for name in new if name.startswith(('scipy.sparse', 'scipy.spatial', 'scipy.fft', 'scipy.linalg'))}}
for name in {LIBRARY!r}:
    __import__(name)
assert registered and names() == registered, 'importing the package registers'
assert 'pyg_topomask.graphgym' not in sys.modules
assert torch.equal(state[0], torch.get_rng_state())
assert state[1:] == (torch.get_default_dtype(), torch.get_num_threads())
from torch_geometric.data import Data
from pyg_topomask.nn import GRFAttention
from pyg_topomask.transforms import AddGraphRandomFeatures
data = AddGraphRandomFeatures()(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2))
GRFAttention(4)(torch.ones(2, 4), data.edge_index).sum().backward()
"""
    result = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr


def test_recommender_and_runs_know_nothing_of_graphgym() -> None:
    """One after another: what the first imports of it stays to the last."""
    run("""
import importlib
import sys
import torch_geometric, torch_geometric.transforms, torch_geometric.loader
before = {name for name in sys.modules if 'graphgym' in name}
assert not {name for name in before if name.startswith('pyg_topomask')}
for name in ('runs.run', 'recommend', 'recommend.runner'):
    importlib.import_module(f'pyg_topomask.apps.{name}')
    after = {name for name in sys.modules if 'graphgym' in name}
    assert after == before, (name, after - before)
""")


def test_training_imports_only_what_it_uses() -> None:
    """What GraphGym itself imports, such as matplotlib, does not count."""
    run("""
import sys
import torch_geometric.graphgym
before = set(sys.modules)
from pyg_topomask.__main__ import main
assert main(['train', '--cfg', 'digits', 'gt.layer_type', 'GINE+Nothing']) == 2
new = set(sys.modules) - before
assert 'pyg_topomask.apps.train' in new
apps = ('catalog', 'diagnostics', 'inspect', 'kernels', 'recommend', 'viz')
unused = *(f'pyg_topomask.apps.{name}' for name in apps), 'pyg_topomask.distributed', 'pyg_topomask.testing'
unused += ('gpytorch', 'matplotlib', 'networkx', 'numba', 'pandas', 'scipy', 'sklearn')
assert not [name for name in new if name.startswith(unused)]
""")


def test_public_names() -> None:
    for name, entries in API.items():
        module = importlib.import_module(name)
        assert sorted(module.__all__) == sorted(entries), name
        assert all(hasattr(module, entry) for entry in module.__all__), name


def module_names() -> dict[str, Path]:
    modules = {}
    for path in sorted(ROOT.rglob('*.py')):
        components = path.relative_to(ROOT).with_suffix('').parts
        components = components[:-1] if components[-1] == '__init__' else components
        modules['.'.join(('pyg_topomask', *components))] = path
    return modules


def test_every_list_of_names_is_public() -> None:
    """Files that hold nothing public have no `__all__`."""
    for name, path in module_names().items():
        lists = [
            node
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == '__all__'
        ]
        packages = ['.'.join(name.split('.')[:length]) for length in range(1, name.count('.') + 2)]
        public = {entry for package in packages for entry in API.get(package, ())}
        assert {entry for node in lists for entry in ast.literal_eval(node.value)} <= public, name


def absolute(path: Path, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ''
    folder = path.relative_to(ROOT.parent).parts[: -node.level]
    return '.'.join((*folder, *([node.module] if node.module else [])))


def imported(path: Path, known: set[str]) -> set[str]:
    """The modules of the package that a file imports, at any depth."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            module = absolute(path, node)
            names |= {module, *(f'{module}.{alias.name}' for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names & known


def place(module: str) -> str | None:
    """The name in ORDER of what a module belongs to."""
    names = module.split('.')
    if names[1:2] == ['apps']:
        return '.'.join(names[1:3]) if len(names) > 2 else None
    if names[1:] == ['machine', 'backend']:  # the lookup of kernels, which imports none of them
        return 'machine.backend'
    return names[1] if len(names) > 1 else None


def test_imports_point_one_way() -> None:
    modules = module_names()
    wrong = []
    for name, path in modules.items():
        for dependency in imported(path, set(modules)):
            user, used = place(name), place(dependency)
            if user is None or used is None or user == used:
                continue
            if ORDER[used] >= ORDER[user]:
                wrong.append(f'{name} imports {dependency}')
    assert not wrong


def test_every_module_has_a_place_in_the_order() -> None:
    assert {place(name) for name in module_names()} - {None} <= set(ORDER)


def test_imports_have_no_cycles() -> None:
    modules = module_names()
    # A package's own list of names imports its files; files that import a package get the files.
    graph = {
        name: {dependency for dependency in imported(path, set(modules)) if dependency != name}
        for name, path in modules.items()
    }
    state: dict[str, int] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert state.get(name) != 1, f'cycle: {" -> ".join((*trail, name))}'
        if name not in state:
            state[name] = 1
            for dependency in sorted(graph[name]):
                visit(dependency, (*trail, name))
            state[name] = 2

    for name in graph:
        visit(name, ())
