"""Numbers that are given as arguments: of every public class and function, refused by name where they are others."""

import importlib
import inspect
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from graphs import small_graph

from pyg_topomask.errors import ArgumentError
from pyg_topomask.feature_maps import FavorFeatures
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import (
    AdjacencyMask,
    BigBirdMask,
    ExpanderMask,
    GRFMask,
    HopMask,
    HypercubeMask,
    LearnedFeaturesMask,
    PowerSeriesMask,
    RWGNKMask,
    StochasticRPEMask,
    ToeplitzMask,
    TreeMask,
)
from pyg_topomask.nn import GRFAttention, HopAttention, KMIPAttention
from pyg_topomask.nn.models import MGFormer
from pyg_topomask.transforms import AddGraphRandomFeatures, AddSpanningForest, AddSVDEncoding
from pyg_topomask.utils.checks import (
    as_numbers,
    check_above_zero,
    check_even,
    check_finite,
    check_not_negative,
    check_probability,
    check_whole,
    is_whole,
)
from pyg_topomask.walks import WalkSettings

MODULES = (
    'apps.datasets',
    'apps.diagnostics',
    'feature_maps',
    'apps.kernels',
    'masks',
    'nn',
    'nn.models',
    'ops',
    'transforms',
    'apps.viz',
    'walks',
)

VECTORS = {name: torch.rand(6, 1, 2) for name in 'qkv'}
PAIRS = {'edge_index': torch.tensor([[0, 1], [1, 0]]), 'alpha': torch.ones(2, 1)}
VIT = {'image_size': 8, 'patch_size': 4, 'in_channels': 1, 'num_classes': 3, 'channels': 4, 'depth': 1, 'heads': 2}

# What else is to be given.
GIVEN: dict[str, Callable[[], dict[str, Any]]] = {
    'AddGridShape': lambda: {'shape': (2, 3)},
    'AsymmetricGRFAttention': lambda: {'channels': 4},
    'EdgeWeights': lambda: {'edge_dim': 4},
    'ClothRollouts': lambda: {'num_rollouts': 1, 'num_steps': 9, 'side': 3},
    'DenseMask': lambda: {'matrix': torch.ones(6, 6)},
    'FarthestSampling': lambda: {'num': 2},
    'FixedLength': lambda: {'hops': 2},
    'GKAT': lambda: {'in_channels': 3, 'hidden_channels': 4, 'out_channels': 2, 'readout': 'mf'},
    'GRFAttention': lambda: {'channels': 4},
    'GRFSoftmaxAttention': lambda: {'channels': 4},
    'GatedGCNConv': lambda: {'channels': 4},
    'HopAttention': lambda: {'channels': 4},
    'GraphProperties': lambda: {'num_graphs': 10, 'least': 8, 'most': 9},
    'InducedCycles': lambda: {'num_pairs': 2, 'size': 6},
    'MajorityTrees': lambda: {'num_graphs': 5, 'size': 6},
    'Interlacer': lambda: {'in_channels': 3, 'channels': 4, 'local': 'message_passing'},
    'KMIPAttention': lambda: {'channels': 4},
    'MGFormer': lambda: {'num_users': 2, 'num_items': 4},
    'MaskEncoding': lambda: {'mask': AdjacencyMask(), 'dim': 4},
    'MaskedLinearAttention': lambda: {'channels': 4},
    'MaskedSoftmaxAttention': lambda: {'channels': 4, 'heads': 1, 'mask': AdjacencyMask()},
    'MotifGraphs': lambda: {'num_pairs': 2, 'size': 12},
    'MovingDigits': lambda: {'num_frames': 2},
    'RWGNKAttention': lambda: {'channels': 4},
    'RandomSampling': lambda: {'num': 2},
    'SinDegreeAttention': lambda: {'channels': 4},
    'TopoGPSConv': lambda: {'channels': 4, 'conv': None},
    'TopologicalViT': lambda: VIT | {'mlp_channels': 8},
    'ViViT': lambda: VIT | {'mlp_channels': 8, 'num_frames': 2, 'tubelet_frames': 1, 'temporal_depth': 1},
    'WalkSettings': lambda: {'num_walks': 2, 'p_halt': 0.5, 'max_walk_length': 2},
    'attention': lambda: {'word': 'Hop', 'channels': 4},
    'attention_rows': lambda: {'layer': HopAttention(4), 'nodes': 2, 'x': torch.rand(6, 4), 'graph': small_graph()},
    'attention_degrees': lambda: PAIRS | {'num_nodes': 2},
    'color_refinement': lambda: {'edge_index': PAIRS['edge_index'], 'num_nodes': 2},
    'counter_uniform': lambda: {'seed': 0, 'local_id': torch.arange(3), 'num_walks': 2},
    'cumulative_attention': lambda: PAIRS | {'ks': [1], 'num_nodes': 2},
    'cumulative_full_attention': lambda: {name: VECTORS[name] for name in 'qk'} | {'ks': [1]},
    'deviation_bound': lambda: {'t': 1.0, 'num_walks': 2, 'c': 1.0},
    'distance_to_full_attention': lambda: VECTORS | {'ks': [1]},
    'guaranteed_deviation': lambda: {'num_walks': 2, 'delta': 0.5, 'c': 1.0},
    'feature_map_of_name': lambda: {'name': 'relu', 'channels': 4},
    'kernel_series': lambda: {'name': 'heat', 'order': 2},
    'knn_graph': lambda: {'pos': torch.rand(6, 2), 'k': 2},
    'mask_rows': lambda: {'mask': AdjacencyMask(), 'graph': small_graph(), 'nodes': 2},
    'mask_error': lambda: {'mask': GRFMask(), 'graph': small_graph()},
    'modulation': lambda: {'name': 'heat', 'max_walk_length': 2},
    'moving_digits': lambda: {'num_frames': 2},
    'deconvolve': lambda: {'alpha': torch.ones(2)},
    'expander_edges': lambda: {'graph': Graph.from_data(small_graph()), 'degree': 2},
    'explore': lambda: {'mask': AdjacencyMask(), 'graph': small_graph(), 'node': 2, 'num_walks': [2]},
    'neighborhood': lambda: {'graph': Graph.from_data(small_graph()), 'node': 2},
    'plot_attention_degrees': lambda: {'degrees': [torch.ones(2, 1)]},
    'plot_attention_graphs': lambda: {'attention': [tuple(PAIRS.values())], 'pos': torch.rand(2, 2)},
    'plot_inspection': lambda: {'mask': GRFMask(), 'graph': small_graph(), 'node': 2, 'num_walks': [2]},
    'plot_mask': lambda: {'mask': AdjacencyMask(), 'graph': small_graph(), 'node': 2},
    'plot_mask_rows': lambda: {
        'masks': {'one': AdjacencyMask()},
        'graph': small_graph(),
        'node': 2,
        'pos': torch.rand(6, 2),
    },
    'sample_ensembles': lambda: {
        'graph': Graph.from_data(small_graph()),
        'settings': WalkSettings(2, 0.5, 2),
        'seed': 1,
    },
    'sample_random_walks': lambda: {'graph': Graph.from_data(small_graph()), 'settings': WalkSettings(2, 0.5, 2), 'seed': 1},
    'sample_walks': lambda: {'graph': Graph.from_data(small_graph()), 'settings': WalkSettings(2, 0.5, 2), 'seed': 1},
    'masked_softmax_attention': lambda: VECTORS | {'mask': AdjacencyMask()(small_graph())},
    'suggest_num_walks': lambda: {'t': 1.0, 'delta': 0.5, 'c': 1.0},
    'MeshNormals': lambda: {'root': '.'},
    'ScaledMask': lambda: {'mask': AdjacencyMask(), 'scale': 2.0},
    'sample_posterior': lambda: {
        'covariance': GRFMask()(small_graph()).to_linear_operator(),
        'nodes': torch.tensor([0]),
        'y': torch.ones(1),
        'noise': 0.1,
    },
    'sparsity_bound': lambda: {'num_walks': 2, 'p_halt': 0.5, 'delta': 0.5},
    'topk_inner_product': lambda: {name: VECTORS[name] for name in 'qk'} | {'num': 2},
    'weight_by_hops': lambda: {'mask': AdjacencyMask(), 'graph': small_graph()},
    'wl_equivalent': lambda: {'first': small_graph(), 'second': small_graph()},
}

# Results, not arguments; numbers that are compared or drawn alone; files are read first, and arguments of
# scikit-learn are checked by fit, see their own tests.
OTHERS = {
    ('MaskError', 'num_rows'),
    ('PrepareMasks', 'max_bytes'),
    ('GraphRandomFeatures', 'num_walks'),
    ('GraphRandomFeatures', 'max_walk_length'),
    ('GraphRandomFeatures', 'random_state'),
    ('WalkFeatures', 'num_nodes'),
    ('WalkFeatures', 'max_walk_length'),
    ('load_graph', 'weight'),
    ('choose_route', 'num_features'),
    ('choose_route', 'num_channels'),
    ('choose_topk_backend', 'num_nodes'),
    ('choose_topk_backend', 'dim'),
    ('choose_topk_backend', 'num'),
    ('plot_cumulative_attention', 'ks'),
    ('plot_distance_to_full_attention', 'ks'),
    ('sparse_operator', 'heads'),
    ('CIFAR10Pixels', 'pool'),
    ('MNISTPixels', 'pool'),
    ('MeshNormals', 'num_nodes'),
    ('MeshNormals', 'seed'),
    ('RoadEccentricity', 'hops'),
    ('RoadEccentricity', 'num_classes'),
    ('RoadEccentricity', 'seed'),
    ('SceneBlocks', 'max_points'),
}


#: Keywords of another argument, and what public functions check before.
NAMED_OTHERWISE = {
    ('attend_softmax', 'dropout'),
    ('GraphRandomFeatures', 'p_halt'),
    ('kernel_series', 'parameters'),
    ('modulation', 'parameters'),
}


def arguments(number: str, unchecked: set[tuple[str, str]]) -> dict[str, tuple[Callable[..., Any], str, str]]:
    """The arguments of public classes and functions that are numbers of a type, with their annotation."""
    checked = {}
    for module in MODULES:
        public = importlib.import_module(f'pyg_topomask.{module}')
        for name in public.__all__:
            made = getattr(public, name)
            if not callable(made) or inspect.isabstract(made):
                continue
            for argument in inspect.signature(made).parameters.values():
                kind = str(argument.annotation)
                if re.search(rf'\b{number}\b', kind.replace('Callable[[int]', '')) and (name, argument.name) not in unchecked:
                    checked[f'{name}-{argument.name}'] = (made, argument.name, kind)
    return checked


ARGUMENTS = arguments('int', OTHERS)
FLOATS = arguments('float', NAMED_OTHERWISE)


@pytest.mark.parametrize('value', [2, np.int64(2), np.uint8(2)])
def test_whole_numbers(value: Any) -> None:
    assert is_whole(value)
    assert is_whole(value, 2)
    assert not is_whole(value, 3)
    check_whole(2, 2, num=value)
    check_even(num=value)


def test_other_values_are_no_whole_numbers(subtests: pytest.Subtests) -> None:
    for value in [2.0, np.float32(2), True, np.True_, '2', None, math.nan, torch.tensor(2)]:
        with subtests.test(value=value):
            assert not is_whole(value)
            with pytest.raises(ValueError, match=rf'^num: got {re.escape(repr(value))}; accepted: whole numbers$'):
                check_whole(num=value)
            with pytest.raises(
                ValueError, match=rf'^num: got {re.escape(repr(value))}; accepted: even numbers from 2 to 1048576$'
            ):
                check_even(num=value)


def test_errors_name_what_was_given_and_what_is_accepted(subtests: pytest.Subtests) -> None:
    for check, accepted in [
        (lambda: check_whole(1, first=1, num=0), '0; accepted: whole numbers from 1'),
        (lambda: check_whole(0, 4, num=5), '5; accepted: whole numbers from 0 to 4'),
        (lambda: check_even(first=2, num=3), '3; accepted: even numbers from 2 to 1048576'),
        (lambda: check_even(num=0), '0; accepted: even numbers from 2 to 1048576'),
        (lambda: check_probability(first=1, num=1.5), r'1.5; accepted: probabilities in \[0, 1\]'),
        (lambda: check_probability(num=math.nan), r'nan; accepted: probabilities in \[0, 1\]'),
        (lambda: check_above_zero(first=1e-9, num=0.0), '0.0; accepted: finite numbers above 0'),
        (lambda: check_above_zero(num=math.inf), 'inf; accepted: finite numbers above 0'),
        (lambda: check_not_negative(first=0, num=-1.0), '-1.0; accepted: finite numbers from 0'),
        (lambda: check_not_negative(num=math.nan), 'nan; accepted: finite numbers from 0'),
        (lambda: check_finite(first=-1, num=math.inf), 'inf; accepted: finite numbers'),
        (lambda: check_finite(num=True), 'True; accepted: finite numbers'),
        (
            lambda: as_numbers(num='1'),
            "'1'; accepted: numbers, and sequences and.*",
        ),
        (lambda: as_numbers(num=[1.0, None]), r'\[1.0, None\]; accepted: numbers, and sequences and tensors of them'),
    ]:
        with subtests.test(accepted=accepted), pytest.raises(ValueError, match=rf'^num: got {accepted}$'):
            check()


def given(made: Callable[..., Any]) -> dict[str, Any]:
    name = made.__name__
    if name in GIVEN:
        return GIVEN[name]()
    return {'channels': 4} if 'channels' in inspect.signature(made).parameters else {}


def accepted(made: Callable[..., Any], argument: str, values: list[Any]) -> list[Any]:
    """Those of the values that are not refused by the name of the argument."""
    wrong = []
    for value in values:
        try:
            made(**given(made) | {argument: value})
        except ValueError as error:
            if str(error).startswith(f'{argument}: got '):
                continue
        wrong.append(value)
    return wrong


def test_numbers_keep_their_digits() -> None:
    assert as_numbers(torch.float64, num=0.1).item() == 0.1
    assert as_numbers(torch.float64, num=[0.1, 1e300]).tolist() == [0.1, 1e300]


def test_every_whole_number_is_checked_by_its_name() -> None:
    wrong = {}
    for name, (made, argument, kind) in ARGUMENTS.items():
        values: list[Any] = [2.5, 2.0, True, '2', math.nan]
        wrong[name] = accepted(made, argument, [[value] for value in values] if kind == 'Sequence[int]' else values)
    assert not {name: values for name, values in wrong.items() if values}


def test_every_number_is_checked_by_its_name() -> None:
    wrong = {}
    for name, (made, argument, kind) in FLOATS.items():
        wrong[name] = accepted(made, argument, [math.nan] if 'str' in kind else [math.nan, 'a'])
    assert not {name: values for name, values in wrong.items() if values}


def test_integers_of_numpy_are_whole_numbers() -> None:
    for made in dict.fromkeys(made for made, _, _ in ARGUMENTS.values()):
        rest = given(made)
        for argument in [argument for of, argument, _ in ARGUMENTS.values() if of is made]:
            value = rest.get(argument, inspect.signature(made).parameters[argument].default)
            if value is None:
                value = 0 if argument == 'causal' else 4
            rest[argument] = [np.int64(number) for number in value] if isinstance(value, (tuple, list)) else np.int64(value)
        made(**rest)


def test_seeds_and_sizes_out_of_range_are_refused_by_name() -> None:
    for seed in (2**64, -(2**63) - 1, 1.5, True):
        for make in (
            lambda seed=seed: GRFMask(seed=seed),
            lambda seed=seed: RWGNKMask(seed=seed),
            lambda seed=seed: ExpanderMask(seed=seed),
            lambda seed=seed: BigBirdMask(seed=seed),
            lambda seed=seed: StochasticRPEMask(seed=seed),
            lambda seed=seed: KMIPAttention(4, seed=seed),
            lambda seed=seed: AddGraphRandomFeatures(seed=seed),
            lambda seed=seed: AddSVDEncoding(2, seed=seed),
            lambda seed=seed: AddSpanningForest(seed=seed),
        ):
            with pytest.raises(ArgumentError, match=r'^seed: got'):
                make()
    huge = 10**11
    for name, refuse in {
        'max_walk_length': lambda: GRFMask(max_walk_length=huge),
        'num_walks': lambda: AddGraphRandomFeatures(num_walks=huge),
        'order': lambda: PowerSeriesMask(order=huge),
        'max_hops': lambda: HopMask(max_hops=huge),
        'heads': lambda: GRFMask(heads=huge),
        'channels': lambda: GRFAttention(huge),
        'num_features': lambda: FavorFeatures(4, huge),
        'rank': lambda: LearnedFeaturesMask(num_nodes=3, rank=huge),
        'num_nodes': lambda: LearnedFeaturesMask(num_nodes=huge),
        'shape_dims': lambda: ToeplitzMask(shape_dims=huge),
        'dim': lambda: HypercubeMask(dim=huge),
        'degree': lambda: ExpanderMask(degree=huge),
        'window': lambda: BigBirdMask(window=huge),
        'expander_degree': lambda: KMIPAttention(4, expander_degree=huge),
        'num_users': lambda: MGFormer(huge, 2, 4),
        'svd_dim': lambda: MGFormer(2, 2, 4, svd_dim=huge),
        'num_iterations': lambda: AddSVDEncoding(2, num_iterations=huge),
        'num_trees': lambda: AddSpanningForest(num_trees=huge),
    }.items():
        with pytest.raises(ArgumentError, match=rf'^{name}: got {huge}; accepted: (whole|even) numbers from \d to \d+'):
            refuse()


@pytest.mark.parametrize('kind', [np.int64, np.uint8])
def test_seeds_of_numpy_are_those_of_python(kind: type[np.integer]) -> None:
    seed, graph = 101, small_graph()

    def drawn(seed: object) -> list[torch.Tensor]:
        masks = [GRFMask(stitch=2, seed=seed), GRFMask(independent_ensembles=True, seed=seed), RWGNKMask(seed=seed)]
        stored = AddSpanningForest(seed=seed)(AddGraphRandomFeatures(seed=seed)(small_graph()))
        tensors = [value for _, value in stored if isinstance(value, torch.Tensor)]
        return [mask(graph).to_dense() for mask in (*masks, ExpanderMask(seed=seed), BigBirdMask(seed=seed))] + tensors

    assert all(map(torch.equal, drawn(kind(seed)), drawn(seed)))


def test_what_is_no_number_is_refused_by_name(subtests: pytest.Subtests) -> None:
    for name, make in [
        ('f', lambda given: HopMask(f=given)),
        ('coefficients', lambda given: PowerSeriesMask(coefficients=given)),
        ('modulation', lambda given: GRFMask(modulation=given)),
        ('f', lambda given: TreeMask(kind='distance', f=given)),
        ('initial', lambda given: ToeplitzMask(initial=given)),
        ('lam', lambda given: RWGNKMask(lam=given)),
        ('a', lambda given: TreeMask(a=given)),
        ('scale', lambda given: AdjacencyMask() * given),
    ]:
        with subtests.test(name=name):
            for value in (object(), {}, ['a'] * 5, torch.ones(5, dtype=torch.complex64), True):
                with pytest.raises(
                    ArgumentError, match=rf'^{name}: got .*; accepted: numbers, and sequences and tensors of them'
                ):
                    make(value)


def test_arguments_of_the_other_kind_of_tree_are_refused_by_name() -> None:
    for f in (np.array([1.0, 2.0]), [1.0, 2.0], torch.ones(2)):
        with pytest.raises(ArgumentError, match=r'^f: got .* for kind="exp"; accepted: None, or kind="distance"'):
            TreeMask(f=f)
    TreeMask(max_distance=np.int64(16))
