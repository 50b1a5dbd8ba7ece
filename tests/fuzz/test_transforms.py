"""Every transform on data of every kind."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
import torch
from fuzz.strategies import (
    NORMALIZATIONS,
    SAMPLERS,
    arguments,
    assert_unchanged,
    attempt,
    attributed,
    edges,
    fuzz,
    graphs,
    lay_out,
    random,
    snapshot,
)
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import BaseTransform

from pyg_topomask import transforms
from pyg_topomask.masks import HopMask, Mask

pytestmark = pytest.mark.filterwarnings('ignore:(rank|max_walk_length is)')

SEEDS = st.sampled_from([0, -1, 2**40])
WALKS: dict[str, st.SearchStrategy[Any]] = {
    'num_walks': st.sampled_from([2, 4]),
    'p_halt': st.sampled_from([0.0, 0.5, 0.999]),
    'max_walk_length': st.integers(0, 4),
    'seed': SEEDS,
    'independent_ensembles': st.booleans(),
    'sampler': SAMPLERS,
}
TREES = ('none', 'loops', 'one edge', 'star', 'tree')


@st.composite
def images(draw: st.DrawFn) -> Tensor:
    shape = draw(st.lists(st.integers(0, 4), min_size=2, max_size=4))
    return lay_out(random(0, *shape), draw(st.sampled_from(['contiguous', 'strided'])))


class Case(NamedTuple):
    make: st.SearchStrategy[BaseTransform]
    data: st.SearchStrategy[Any] = graphs()
    base: dict[str, Any] = {}  # what its constructor needs
    batched: bool = False  # whether batches are accepted
    stored: tuple[str, ...] = ()
    masks: tuple[Mask, ...] = ()  # which its constructor needs


CASES = {
    'AddForest': Case(st.builds(transforms.AddForest), graphs(TREES), stored=('forest_index', 'forest_round', 'forest_sizes')),
    'AddGraphRandomFeatures': Case(
        st.builds(transforms.AddGraphRandomFeatures, **WALKS, normalization=NORMALIZATIONS, importance=st.booleans()),
        stored=('grf_index', 'grf_length', 'grf_load', 'grf_sizes'),
    ),
    'AddGridShape': Case(
        st.builds(transforms.AddGridShape, st.just((2, 3))), graphs(sizes=st.just(6)), {'shape': (4,)}, stored=('grid_shape',)
    ),
    'AddNormals': Case(
        st.builds(
            transforms.AddNormals,
            st.sampled_from([3, 16, 10**6]),
            orient=st.sampled_from(['outward', 'up']),
            cat=st.booleans(),
        ),
        batched=True,
        stored=('normal',),
    ),
    'AddRandomWalkKernel': Case(
        st.builds(transforms.AddRandomWalkKernel, **WALKS),
        stored=('rwgnk_index', 'rwgnk_length', 'rwgnk_load', 'rwgnk_sizes'),
    ),
    'AddSVDEncoding': Case(
        st.builds(
            transforms.AddSVDEncoding,
            st.sampled_from([1, 3, 16]),
            normalization=NORMALIZATIONS,
            num_iterations=st.sampled_from([0, 8]),
        ),
        stored=('svd_encoding',),
    ),
    'AddSpanningForest': Case(
        st.builds(
            transforms.AddSpanningForest,
            st.sampled_from(['low_stretch', 'minimum', 'random']),
            num_trees=st.integers(1, 3),
            seed=SEEDS,
        ),
        stored=('forest_index', 'forest_round', 'forest_sizes'),
    ),
    'FarthestSampling': Case(st.builds(transforms.FarthestSampling, st.sampled_from([1, 3, 10**6]), SEEDS), base={'num': 2}),
    'KNNGraph': Case(
        st.builds(transforms.KNNGraph, st.sampled_from([1, 3, 10**6]), st.booleans()), batched=True, stored=('edge_index',)
    ),
    'PrepareMasks': Case(
        st.builds(transforms.PrepareMasks, st.builds(HopMask, max_hops=st.sampled_from([0, 2, 300]))),
        masks=(HopMask(),),
    ),
    'RandomSampling': Case(st.builds(transforms.RandomSampling, st.sampled_from([1, 3, 10**6]), SEEDS), base={'num': 2}),
    'ToGridGraph': Case(st.builds(transforms.ToGridGraph), images(), stored=('x', 'edge_index', 'pos', 'grid_shape')),
}
ON_GRAPHS = sorted(set(CASES) - {'ToGridGraph'})
# Where a transform reads positions, edges, weights or only counts nodes.
READS = {
    'AddNormals': ('pos',),
    'KNNGraph': ('pos',),
    'FarthestSampling': ('pos',),
    'AddForest': ('edge_index', 'edge_weight'),
    'AddGraphRandomFeatures': ('edge_index', 'edge_weight'),
    'AddRandomWalkKernel': ('edge_index', 'edge_weight'),
    'AddSVDEncoding': ('edge_index', 'edge_weight'),
    'AddSpanningForest': ('edge_index', 'edge_weight'),
    'PrepareMasks': ('edge_index', 'edge_weight'),
}
ACCEPTED = ['data', 'pos', 'batch', 'edge_index', 'edge_weight', 'shape']


def constructor(name: str) -> Callable[..., BaseTransform]:
    return partial(getattr(transforms, name), *CASES[name].masks)


def test_every_public_name_is_fuzzed() -> None:
    assert set(transforms.__all__) == set(CASES)


def tensors(data: Data) -> dict[str, Tensor]:
    return {name: value for name, value in data.to_dict().items() if isinstance(value, Tensor)}


@pytest.mark.parametrize('name', CASES)
@fuzz(8)
@given(st.data())
def test_results_are_finite_and_repeatable_and_overwrite_nothing(name: str, data: st.DataObject) -> None:
    case = CASES[name]
    graph, transform = data.draw(case.data), data.draw(case.make)
    holder = graph if isinstance(graph, Data) else Data(x=graph)
    if isinstance(graph, Data) and data.draw(st.booleans()):
        graph.x = graph.x.requires_grad_()
    before, state = snapshot(holder), torch.get_rng_state()
    out, again = transform(graph), transform(graph)
    assert_unchanged(holder, before)
    assert torch.equal(state, torch.get_rng_state()), 'the transform drew from the global generator'
    assert set(case.stored) <= set(out.keys())
    assert tensors(out).keys() == tensors(again).keys()
    for key, value in tensors(out).items():
        assert torch.equal(value, tensors(again)[key])
        assert not value.is_floating_point() or value.isfinite().all()
    assert out.validate()


@pytest.mark.parametrize('name', [name for name in ON_GRAPHS if CASES[name].batched])
@fuzz(6)
@given(st.data())
def test_results_for_a_batch_are_those_for_its_graphs(name: str, data: st.DataObject) -> None:
    case = CASES[name]
    members, transform = data.draw(st.lists(graphs(weighted=False), min_size=1, max_size=4)), data.draw(case.make)
    out, results = transform(Batch.from_data_list(members)), [transform(member) for member in members]
    # The slices of a batch are those of before a transform: the results of its graphs are put together by hand.
    offset = torch.tensor([0, *(result.num_nodes for result in results)]).cumsum(0)
    for key in case.stored:
        shifted = [
            result[key] + start if key == 'edge_index' else result[key] for result, start in zip(results, offset, strict=False)
        ]
        torch.testing.assert_close(out[key], torch.cat(shifted, dim=1 if key == 'edge_index' else 0))


@pytest.mark.parametrize('name', [name for name in ON_GRAPHS if not CASES[name].batched])
def test_batches_and_heterogeneous_data_are_refused_by_name(name: str) -> None:
    graph = attributed(edges('tree', 4, 0), 4, 0)
    transform = constructor(name)(**CASES[name].base)
    with pytest.raises(ValueError, match=r'^data: got a batch'):
        transform(Batch.from_data_list([graph, graph]))
    with pytest.raises(ValueError, match=r'^(data|edge_type): got '):
        transform(HeteroData())


WRONG: dict[str, dict[str, Callable[[Tensor], Tensor]]] = {
    'edge_index': {
        'beyond': lambda edge_index: edge_index + 3,
        'negative': lambda edge_index: edge_index - 1,
        'floats': lambda edge_index: edge_index.double(),
        'turned': lambda edge_index: edge_index.t(),
        'flat': lambda edge_index: edge_index.flatten(),
    },
    'edge_weight': {
        'NaN': lambda weight: weight * float('nan'),
        'infinite': lambda weight: weight / 0.0,
        'short': lambda weight: weight[1:],
        'matrix': lambda weight: weight.unsqueeze(1),
        'truths': lambda weight: weight > 0,
    },
    'pos': {
        'NaN': lambda pos: pos * float('nan'),
        'infinite': lambda pos: pos / 0.0,
        'huge': lambda pos: pos.sign() * 3e38,
        'flat': lambda pos: pos.flatten(),
        'integers': lambda pos: pos.long(),
        'deep': lambda pos: pos.unsqueeze(0),
        'no coordinates': lambda pos: pos[:, :0],
    },
}


@pytest.mark.parametrize(('name', 'key'), [(name, key) for name, keys in READS.items() for key in keys])
def test_wrong_data_is_named(name: str, key: str) -> None:
    for change in WRONG[key].values():
        graph = attributed(edges('tree', 4, 0), 4, 0)
        graph.edge_weight = torch.ones(3)
        graph[key] = change(graph[key])
        before = snapshot(graph)
        with pytest.raises(ValueError, match=rf'^(data|{key}): got '):
            constructor(name)(**CASES[name].base)(graph)
        assert_unchanged(graph, before)


@pytest.mark.parametrize('name', CASES)
@fuzz(12)
@given(st.data())
def test_arguments_are_refused_by_name_or_do(name: str, data: st.DataObject) -> None:
    kind = constructor(name)
    given_arguments = data.draw(arguments(kind, CASES[name].base))
    graph = random(0, 2, 3, 3) if name == 'ToGridGraph' else attributed(edges('tree', 4, 0), 4, 0)
    names = [*given_arguments, *ACCEPTED]
    transform = attempt(lambda: kind(**given_arguments), names)
    out = None if transform is None else attempt(lambda: transform(graph), names)
    if out is not None:
        assert all(value.isfinite().all() for value in tensors(out).values() if value.is_floating_point())


def test_what_is_no_image_is_refused_by_name(subtests: pytest.Subtests) -> None:
    for given_data in [torch.rand(3), None, 'image', Data(num_nodes=2), torch.rand(1, 1, 1, 1, 1)]:
        with subtests.test(given_data=given_data), pytest.raises(ValueError, match=r'^data: got '):
            transforms.ToGridGraph().forward(given_data)
