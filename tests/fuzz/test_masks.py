"""Every mask on graphs of every kind."""

import copy
import inspect
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from fuzz.strategies import (
    DTYPES,
    KINDS,
    NORMALIZATIONS,
    SAMPLERS,
    SYMMETRIC,
    arguments,
    assert_finite,
    assert_same,
    assert_unchanged,
    attempt,
    attributed,
    batches,
    edges,
    fuzz,
    graphs,
    random,
    snapshot,
)
from grids import covering
from hypothesis import assume, given
from hypothesis import strategies as st
from torch_geometric.data import Data

from pyg_topomask import Graph, masks
from pyg_topomask.masks import Mask

pytestmark = pytest.mark.filterwarnings('ignore:(The spectral radius|max_walk_length is|order is)')

HEADS = st.sampled_from([1, 2])
GRFS = st.builds(
    masks.GRFMask,
    heads=HEADS,
    num_walks=st.sampled_from([2, 4]),
    p_halt=st.sampled_from([0.0, 0.5, 0.999]),
    max_walk_length=st.integers(0, 4),
    asymmetric=st.sampled_from([False, True, 'pairs']),
    sampler=SAMPLERS,
    normalization=NORMALIZATIONS,
    resample=st.sampled_from(['never', 'forward']),
    importance=st.booleans(),
    share_modulation=st.booleans(),
    positive=st.booleans(),
    stitch=st.integers(1, 3),
)
LOW_RANK = st.builds(masks.LowRankMask, heads=HEADS)
ANY = st.one_of(GRFS, LOW_RANK, st.builds(masks.AdjacencyMask), st.builds(masks.CausalMask))


class Case(NamedTuple):
    make: Callable[[int], st.SearchStrategy[Mask]]  # for so many nodes
    kinds: tuple[str, ...] = KINDS
    sizes: st.SearchStrategy[int] | None = None
    separate: bool = True  # whether what is not a number stays in its graph, and graphs in a batch are as they are alone


def case(make: st.SearchStrategy[Mask], kinds: tuple[str, ...] = KINDS, sizes: st.SearchStrategy[int] | None = None) -> Case:
    return Case(lambda num_nodes: make, kinds, sizes)


CASES = {
    'AdjacencyMask': case(
        st.builds(masks.AdjacencyMask, heads=HEADS, self_loop=st.sampled_from([None, 0.0, 1.0]), normalization=NORMALIZATIONS)
    ),
    'BigBirdMask': case(
        st.builds(masks.BigBirdMask, heads=HEADS, window=st.sampled_from([0, 2]), ends=st.sampled_from([0, 1]))
    ),
    'CausalMask': case(st.builds(masks.CausalMask, heads=HEADS, order=st.sampled_from([None, 'time']), strict=st.booleans())),
    'DenseMask': Case(lambda num_nodes: st.just(masks.DenseMask(2, random(0, 2, num_nodes, num_nodes))), separate=False),
    'ExpanderMask': case(st.builds(masks.ExpanderMask, heads=HEADS, degree=st.sampled_from([2, 6]), input_edges=st.booleans())),
    'GRFMask': case(GRFS),
    'HadamardMask': case(st.builds(masks.HadamardMask, st.builds(masks.GRFMask), LOW_RANK, st.builds(masks.PaddingMask))),
    'HeatKernelMask': case(
        st.builds(
            masks.HeatKernelMask,
            heads=HEADS,
            kind=st.sampled_from(['laplacian', 'normalized_laplacian', 'random_walk_laplacian', 'adjacency']),
            lam=st.sampled_from([1e-3, 1.0, 5.0]),
            tolerance=st.sampled_from([1e-8, 1e-12]),
        ),
        SYMMETRIC,
    ),
    'HopMask': case(
        st.builds(masks.HopMask, heads=HEADS, max_hops=st.integers(0, 3), positive=st.booleans()),
    ),
    'HypercubeMask': case(st.builds(masks.HypercubeMask, heads=HEADS, dim=st.just(2)), sizes=st.sampled_from([0, 4])),
    'LearnedFeaturesMask': case(st.builds(masks.LearnedFeaturesMask, heads=HEADS, num_nodes=st.just(300), rank=st.just(2))),
    'LowRankMask': case(LOW_RANK),
    'MultiHeadMask': case(st.builds(masks.MultiHeadMask, GRFS, LOW_RANK, st.builds(masks.CausalMask))),
    'PackingMask': case(st.builds(masks.PackingMask, heads=HEADS)),
    'PaddingMask': case(st.builds(masks.PaddingMask, heads=HEADS)),
    'PowerSeriesMask': case(
        st.builds(
            masks.PowerSeriesMask,
            heads=HEADS,
            order=st.integers(0, 4),
            parameterization=st.sampled_from(['alpha', 'f']),
            normalization=NORMALIZATIONS,
            positive=st.booleans(),
        )
    ),
    'RWGNKMask': case(
        st.builds(
            masks.RWGNKMask,
            heads=HEADS,
            num_walks=st.sampled_from([None, 2, 4]),
            p_halt=st.sampled_from([0.0, 0.3]),
            max_walk_length=st.integers(0, 3),
            lam=st.sampled_from([0.1, 1.0, 3.0]),
            alpha=st.sampled_from([0.0, 0.5, 1.0]),
            sampler=SAMPLERS,
        )
    ),
    'ScaledMask': case(st.builds(masks.ScaledMask, ANY, st.sampled_from([0.0, -2.0, torch.tensor(3.0)]))),
    'SinDegreeMask': case(
        st.builds(
            masks.SinDegreeMask,
            heads=HEADS,
            max_degree=st.sampled_from([1, 512]),
            flow=st.sampled_from(['source_to_target', None]),
        )
    ),
    'StochasticRPEMask': case(st.builds(masks.StochasticRPEMask, heads=HEADS)),
    'SumMask': case(st.builds(masks.SumMask, st.builds(masks.PackingMask), ANY)),
    'ToeplitzMask': case(
        st.one_of(
            st.builds(
                masks.ToeplitzMask,
                heads=HEADS,
                shape_dims=st.just(1),
                kind=st.sampled_from(['offset', 'distance']),
                window=st.sampled_from([0, 3, 500]),
                beyond=st.sampled_from(['clip', 'zero']),
                positive=st.booleans(),
                **{name: st.just(value)},
            )
            for name, value in (('periodic', False), ('periodic', True), ('causal', 0))
        )
    ),
    'TransposedMask': case(st.builds(masks.TransposedMask, ANY)),
    'TreeMask': case(
        st.one_of(
            st.builds(masks.TreeMask, heads=HEADS),
            st.builds(masks.TreeMask, heads=HEADS, kind=st.just('distance'), method=st.sampled_from(['auto', 'rings', 'fft'])),
            st.builds(masks.TreeMask, heads=HEADS, kind=st.just('distance'), unit=st.sampled_from([0.1, 2.0])),
        ),
        ('none', 'loops', 'one edge', 'star', 'tree'),
    ),
}
FUNCTIONS = {
    'convolve',
    'deconvolve',
    'kernel_series',
    'low_rank_operator',
    'modulation',
    'sparse_operator',
}
# Drawn masks are too many arguments for these: they are given masks, not numbers.
MADE_OF_MASKS = {'HadamardMask', 'MultiHeadMask', 'ScaledMask', 'SumMask', 'TransposedMask'}
# What errors name other than an argument that was given: what is wrong with the graph.
GRAPH = ['data', 'edge_index', 'edge_weight', 'batch', 'grid_shape']


def test_every_public_name_is_fuzzed() -> None:
    abstract = {name for name in masks.__all__ if inspect.isabstract(getattr(masks, name))}
    assert abstract == {'Mask'}
    assert set(masks.__all__) - abstract == {*CASES, *FUNCTIONS}


def draw_graph(data: st.DataObject, mask_case: Case, batched: bool) -> Data:
    single = graphs(mask_case.kinds, mask_case.sizes)
    return data.draw(batches(single) if batched else single)


@pytest.mark.parametrize('name', CASES)
@fuzz(4)
@given(st.data())
def test_products_are_finite_and_repeatable_and_overwrite_nothing(name: str, data: st.DataObject) -> None:
    mask_case = CASES[name]
    graph = draw_graph(data, mask_case, data.draw(st.booleans()))
    mask = data.draw(mask_case.make(graph.num_nodes or 0))
    x = random(5, graph.num_nodes or 0, mask.heads, 3, dtype=data.draw(st.sampled_from(DTYPES))).requires_grad_()
    before = snapshot(graph)
    torch.manual_seed(1)
    out = mask(graph).matmul(x)
    torch.manual_seed(1)
    again = copy.deepcopy(mask)(Graph.from_data(graph)).matmul(x)
    assert out.shape == x.shape
    assert torch.equal(out, again)
    assert_unchanged(graph, before)
    assert_finite(out, x, *mask.parameters())


@pytest.mark.parametrize('name', [name for name, mask_case in CASES.items() if mask_case.separate])
@fuzz(3)
@given(st.data())
def test_products_of_a_batch_are_those_of_its_graphs(name: str, data: st.DataObject) -> None:
    mask_case = CASES[name]
    batch = draw_graph(data, mask_case, True)
    mask = data.draw(mask_case.make(batch.num_nodes)).double().eval()
    x = random(5, batch.num_nodes, mask.heads, 3, dtype=torch.float64)
    blocks = x.split(batch.ptr.diff().tolist())
    out = mask(batch).matmul(x)
    assert_same(out, torch.cat([mask(graph).matmul(block) for graph, block in zip(batch.to_data_list(), blocks, strict=True)]))


@pytest.mark.parametrize(
    ('value', 'name'), covering([float('nan'), float('inf')], [name for name, mask_case in CASES.items() if mask_case.separate])
)
def test_what_is_not_finite_stays_in_its_graph(name: str, value: float) -> None:
    mask_case = CASES[name]

    @fuzz(2)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        batch = draw_graph(data, mask_case, True)
        mask = data.draw(mask_case.make(batch.num_nodes)).eval()
        x = random(5, batch.num_nodes, mask.heads, 3)
        assume(batch.num_nodes > 0)
        bad = data.draw(st.integers(0, batch.num_nodes - 1))
        unaffected = batch.batch != batch.batch[bad]
        expected = mask(batch).matmul(x)[unaffected]
        x[bad] = value
        assert_same(mask(batch).matmul(x)[unaffected], expected)

    check()


BASE = {
    'DenseMask': {'matrix': random(0, 4, 4)},
    'HypercubeMask': {'dim': 2},
    'LearnedFeaturesMask': {'num_nodes': 4},
    'ToeplitzMask': {'shape_dims': 1},
}


@pytest.mark.parametrize('name', sorted(set(CASES) - MADE_OF_MASKS))
@fuzz(12)
@given(st.data())
def test_arguments_are_refused_by_name_or_do(name: str, data: st.DataObject) -> None:
    kind = getattr(masks, name)
    given_arguments = data.draw(arguments(kind, BASE.get(name, {})))
    graph = attributed(edges('tree', 4, 0) if name == 'TreeMask' else edges('ring', 4, 0), 4, 0)
    names = [*given_arguments, *GRAPH]
    mask = attempt(lambda: kind(**given_arguments), names)
    out = None if mask is None else attempt(lambda: mask(graph).matmul(torch.ones(4, mask.heads, 2)), names)
    if out is not None:
        assert_finite(out, *mask.parameters())
