"""Masked softmax attention: what is refused, torch.compile, and the custom operator."""

import math

import pytest
import torch
from graphs import ring, small_digraph, small_graph
from softmax_masks import bound, inputs
from torch_geometric.data import Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import AdjacencyMask, GRFMask
from pyg_topomask.operators.composed import Alternatives
from pyg_topomask.operators.forms import Entries, SparseEntries
from pyg_topomask.ops import masked_softmax_attention

# Errors ---------------------------------------------------------------------------------------------------------------


def test_too_many_entries_are_refused_before_they_are_formed() -> None:
    def entries() -> Entries:
        raise AssertionError('formed')

    few = AdjacencyMask()(small_graph())
    many = Alternatives(few, SparseEntries(entries, 2**28 + 1), segments=few.segments)
    message = r'^mask: got .* 268,435,457 entries per head; accepted: up to 268,435,456.*asymmetric=True.*fewer or shorter'
    with pytest.raises(ValueError, match=message):
        masked_softmax_attention(*inputs(6), many)
    allowed = Alternatives(few, SparseEntries(few.entries.make, 2**28), segments=few.segments)
    assert masked_softmax_attention(*inputs(6), allowed).shape == (6, 2, 4)


@pytest.mark.parametrize('bad', [-1e-3, -math.inf, math.nan, math.inf])
def test_entries_without_a_logarithm_are_refused(bad: float) -> None:
    matrix = torch.full((2, 5, 5), 0.5)
    operator, entries = bound(matrix)
    matrix[1, 3, 2] = entries.value[1, 17] = bad
    q, k, v = (tensor.float() for tensor in inputs(5))
    operator = Alternatives(operator, SparseEntries(lambda: entries), segments=operator.segments, heads=operator.heads)
    with pytest.raises(ValueError, match=f'^mask: got the entry {float(matrix[1, 3, 2]):.1}'):
        masked_softmax_attention(q, k, v, operator)


def test_negative_edge_weights_and_modulations_are_refused() -> None:
    q, k, v = inputs(6)
    for mask, data in (
        (GRFMask(2, 8, positive=True), small_digraph()),
        (GRFMask(2, modulation=torch.tensor([1.0, -1.0, 0.0, 0.0, 0.0])), small_graph()),
        (AdjacencyMask(2, -1.0), small_graph()),
    ):
        with pytest.raises(ValueError, match=r'^mask: got the entry -'):
            masked_softmax_attention(q, k, v, mask(data))


@pytest.mark.parametrize(
    ('name', 'shapes'),
    [
        ('k', ((6, 2, 3), (6, 2, 4), (6, 2, 4))),
        ('k', ((6, 2, 3), (7, 2, 3), (6, 2, 4))),
        ('k', ((6, 2), (6, 2), (6, 2, 4))),
        ('v', ((6, 2, 3), (6, 2, 3), (5, 2, 4))),
        ('v', ((6, 2, 3), (6, 2, 3), (7, 2, 4))),
        ('v', ((6, 2, 3), (6, 2, 3), (6, 1, 4))),
        ('mask', ((5, 2, 3), (5, 2, 3), (5, 2, 4))),
        ('mask', ((6, 3, 3), (6, 3, 3), (6, 3, 4))),
    ],
)
def test_shapes_that_disagree_are_named(name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    mask = AdjacencyMask(2)(Data(edge_index=ring(6), num_nodes=6))
    with pytest.raises(ValueError, match=f'^{name}: got'):
        masked_softmax_attention(*(torch.ones(shape) for shape in shapes), mask)


@pytest.mark.parametrize('dropout', [-0.1, 1.5])
def test_dropout_outside_its_range_is_named(dropout: float) -> None:
    q, k, v = inputs(6)
    with pytest.raises(ValueError, match=r'^dropout: got'):
        masked_softmax_attention(q, k, v, AdjacencyMask(2)(small_graph()), dropout)


# Compilation ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings('ignore:The .grad attribute:UserWarning')  # of torch 2.15 about its own check
@pytest.mark.parametrize('shared', [False, True], ids=['per_head', 'shared'])
def test_custom_operator_passes_the_checks_of_torch(shared: bool) -> None:
    graph = Graph.from_data(small_graph())
    entries = AdjacencyMask(1 if shared else 2).double()(graph).entries()
    q, k, v = (tensor.requires_grad_() for tensor in inputs(6))
    value = entries.value.detach().requires_grad_()
    keep = torch.ones(2, value.size(1), dtype=torch.float64)
    torch.library.opcheck(torch.ops.pyg_topomask.attend_softmax, (q, k, v, [value], [*entries.pattern.tensors, keep], '', 2))
