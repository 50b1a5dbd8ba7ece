"""What importing the package needs, does and offers, and which way its imports point."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

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
)
LIBRARY = [
    'pyg_topomask',
    'pyg_topomask.feature_maps',
    'pyg_topomask.masks',
    'pyg_topomask.nn',
    'pyg_topomask.nn.models',
    'pyg_topomask.ops',
    'pyg_topomask.recommend',
    'pyg_topomask.testing',
    'pyg_topomask.transforms',
    'pyg_topomask.walks',
]

# Where each part stands: a part imports parts that stand below it only.
ORDER = {
    name: level
    for level, names in enumerate(
        [
            ['checks', 'flow', 'options', 'sparse_pattern', 'structures'],
            ['operators'],
            ['ops'],
            ['graph'],
            ['walks'],
            ['feature_maps'],
            ['masks'],
            ['transforms', 'nn'],
            ['diagnostics', 'testing'],
            ['datasets', 'viz'],
            ['graphgym'],
            ['recommend'],
            ['__main__'],
        ]
    )
    for name in names
}

API = {
    'pyg_topomask': ['Graph', '__version__'],
    'pyg_topomask.graph': ['Graph', 'check_normalization'],
    'pyg_topomask.operators': ['Entries', 'MaskOperator'],
    'pyg_topomask.structures': [
        'HadamardLowRankStructure',
        'HeadsStructure',
        'MaskStructure',
        'ScaledStructure',
        'SumStructure',
        'replaced',
        'structure_from_key',
    ],
    'pyg_topomask.sparse_pattern': ['SparsePattern', 'stable_argsort'],
    'pyg_topomask.ops': [
        'attend_softmax',
        'choose_route',
        'choose_topk_backend',
        'inner_product_features',
        'knn_graph',
        'masked_linear_attention',
        'masked_softmax_attention',
        'sddmm',
        'spmm',
        'topk_inner_product',
    ],
    'pyg_topomask.walks': [
        'SAMPLERS',
        'AntitheticSampler',
        'FixedLength',
        'GeometricLength',
        'IIDSampler',
        'PairLoads',
        'PoissonLength',
        'RepellingAntitheticSampler',
        'RepellingSampler',
        'SurvivalLength',
        'WalkFeatures',
        'WalkLength',
        'WalkSettings',
        'counter_uniform',
        'sample_ensembles',
        'sample_walks',
    ],
    'pyg_topomask.feature_maps': [
        'FEATURE_MAPS',
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
        'feature_map_of_name',
    ],
    'pyg_topomask.masks': [
        'KERNELS',
        'AdjacencyMask',
        'CausalMask',
        'DenseMask',
        'ExpanderMask',
        'GRFMask',
        'HadamardMask',
        'HeatKernelMask',
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
        'expander_edges',
        'kernel_series',
        'low_rank_operator',
        'modulation',
        'sparse_operator',
    ],
    'pyg_topomask.nn': [
        'AsymmetricGRFAttention',
        'ExplicitAttention',
        'GRFAttention',
        'GRFSoftmaxAttention',
        'GatedGCNConv',
        'KMIPAttention',
        'MaskedLinearAttention',
        'MaskedSoftmaxAttention',
        'RWGNKAttention',
        'SinDegreeAttention',
        'ToeplitzAttention',
        'TopoGPSConv',
    ],
    'pyg_topomask.nn.models': ['GKAT', 'Interlacer', 'MGFormer', 'TopologicalViT', 'ViViT'],
    'pyg_topomask.transforms': [
        'AddForest',
        'AddGraphRandomFeatures',
        'AddGridShape',
        'AddNormals',
        'AddRandomWalkKernel',
        'AddSVDEncoding',
        'FarthestSampling',
        'KNNGraph',
        'RandomSampling',
        'ToGridGraph',
    ],
    'pyg_topomask.datasets': [
        'DATASETS',
        'CIFAR10Pixels',
        'ClothRollouts',
        'DigitsGrid',
        'InducedCycles',
        'MNISTPixels',
        'MotifGraphs',
        'MovingDigits',
        'PeptidesFunctional',
        'SceneBlocks',
        'UrbanObjects',
        'load_images',
        'moving_digits',
    ],
    'pyg_topomask.diagnostics': [
        'EntryCounts',
        'MaskError',
        'attention_degrees',
        'color_refinement',
        'compare_rows',
        'cumulative_attention',
        'cumulative_full_attention',
        'deviation_bound',
        'distance_to_full_attention',
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
    'pyg_topomask.viz': [
        'neighborhood',
        'plot_attention_degrees',
        'plot_attention_graphs',
        'plot_cumulative_attention',
        'plot_distance_to_full_attention',
        'plot_inspection',
        'plot_mask',
        'plot_mask_rows',
    ],
    'pyg_topomask.recommend': [
        'DirectAULoss',
        'InteractionDataset',
        'MGFormerRecommender',
        'Recommender',
        'alignment',
        'bipartite_data',
        'build_recommender',
        'evaluate',
        'load_interaction_dataset',
        'load_interactions',
        'popularity_groups',
        'rank_items',
        'read_interactions',
        'split_per_user',
        'uniformity',
    ],
    'pyg_topomask.testing': ['assert_batch_invariant', 'assert_mask_operator', 'assert_permutation_equivariant'],
}


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=120, check=False)


def test_library_needs_none_of_the_extras_and_registers_nothing() -> None:
    result = run(f"""
import sys
for name in {BLOCKED!r}:
    sys.modules[name] = None
import torch_geometric.graphgym.register as register
def names():
    return {{kind: sorted(map(str, own)) for kind, own in vars(register).items() if kind.endswith('_dict')}}
before = names()
for name in {LIBRARY!r}:
    __import__(name)
assert before and names() == before, 'importing the package registers'
assert 'pyg_topomask.graphgym' not in sys.modules
import torch
from torch_geometric.data import Data
from pyg_topomask.nn import GRFAttention
from pyg_topomask.transforms import AddGraphRandomFeatures
data = AddGraphRandomFeatures()(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2))
GRFAttention(4)(torch.ones(2, 4), data.edge_index).sum().backward()
""")
    assert result.returncode == 0, result.stderr


def test_import_leaves_the_state_of_torch_alone() -> None:
    result = run("""
import torch
torch.manual_seed(0)
before = torch.get_rng_state(), torch.get_default_dtype(), torch.get_num_threads()
import pyg_topomask.nn, pyg_topomask.transforms
assert torch.equal(before[0], torch.get_rng_state())
assert before[1:] == (torch.get_default_dtype(), torch.get_num_threads())
""")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize('name', API)
def test_public_names(name: str) -> None:
    module = importlib.import_module(name)
    assert sorted(module.__all__) == sorted(API[name])
    assert all(hasattr(module, entry) for entry in module.__all__)


def module_names() -> dict[str, Path]:
    found = {}
    for path in sorted(ROOT.rglob('*.py')):
        parts = path.relative_to(ROOT).with_suffix('').parts
        parts = parts[:-1] if parts[-1] == '__init__' else parts
        found['.'.join(('pyg_topomask', *parts))] = path
    return found


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


def part(module: str) -> str | None:
    pieces = module.split('.')
    return pieces[1] if len(pieces) > 1 else None


def test_imports_point_one_way() -> None:
    modules = module_names()
    wrong = []
    for name, path in modules.items():
        for other in imported(path, set(modules)):
            own, used = part(name), part(other)
            if own is None or used is None or own == used:
                continue
            if ORDER[used] >= ORDER[own]:
                wrong.append(f'{name} imports {other}')
    assert not wrong


def test_every_part_has_a_place_in_the_order() -> None:
    assert {part(name) for name in module_names()} - {None} <= set(ORDER)


@pytest.mark.parametrize(
    ('name', 'below'),
    [('structures', set()), ('operators', {'pyg_topomask.sparse_pattern', 'pyg_topomask.structures'})],
)
def test_operators_stand_on_torch_alone(name: str, below: set[str]) -> None:
    tree = ast.parse((ROOT / f'{name}.py').read_text())
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    outside = {name.split('.')[0] for name in names} - set(sys.stdlib_module_names)
    assert outside <= {'torch', 'pyg_topomask'}
    assert {name for name in names if name.startswith('pyg_topomask')} <= below


def test_imports_have_no_cycles() -> None:
    modules = module_names()
    # A package's own list of names imports its files; files that import a package get the files.
    graph = {name: {other for other in imported(path, set(modules)) if other != name} for name, path in modules.items()}
    state: dict[str, int] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert state.get(name) != 1, f'cycle: {" -> ".join((*trail, name))}'
        if name not in state:
            state[name] = 1
            for other in sorted(graph[name]):
                visit(other, (*trail, name))
            state[name] = 2

    for name in graph:
        visit(name, ())
