"""What is drawn anew in every forward pass: who shares it, and when a pass begins."""

import copy
import gc
import pickle
import weakref
from functools import partial

import pytest
import torch
from graphs import ring
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Data
from torch_geometric.transforms import ToSparseTensor

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.states import ForwardPass
from pyg_topomask.masks import CausalMask, GRFMask
from pyg_topomask.nn import GRFAttention


def draw(generator: torch.Generator) -> int:
    return int(torch.randint(2**62, (), generator=generator))


def test_a_second_call_begins_another_pass() -> None:
    forward_pass, first, second = ForwardPass(), object(), object()
    states = []
    for user in (first, second, first, second, second):
        forward_pass.enter(user)
        states.append(forward_pass.state('setting', draw))
    assert states[0] == states[1]
    assert states[2] == states[3]
    assert len(set(states)) == 3


def test_users_of_a_pass_are_kept_as_their_ids_could_be_used_again() -> None:
    forward_pass, user = ForwardPass(), CausalMask()
    alive = weakref.ref(user)
    forward_pass.enter(user)
    del user
    gc.collect()
    assert alive() is not None


def test_states_of_the_last_two_passes_are_kept() -> None:
    forward_pass, user, kept = ForwardPass(), object(), []
    for _ in range(4):
        forward_pass.enter(user)
        kept.append(weakref.ref(forward_pass.state('setting', lambda generator: torch.Generator())))
    gc.collect()
    assert [state() is None for state in kept] == [True, True, False, False]


def test_states_of_different_settings_are_drawn_apart() -> None:
    forward_pass = ForwardPass()
    forward_pass.enter(object())
    assert forward_pass.state('one', draw) != forward_pass.state('other', draw)


def test_a_pass_follows_the_seed_and_takes_one_number_of_it() -> None:
    results = []
    for _ in range(2):
        torch.manual_seed(3)
        forward_pass = ForwardPass()
        forward_pass.enter(object())
        results.append((forward_pass.state('setting', draw), float(torch.rand(()))))
    torch.manual_seed(3)
    torch.randint(2**62, ())
    assert results[0] == results[1]
    assert results[0][1] == float(torch.rand(()))


def test_a_new_user_is_not_taken_for_one_that_is_gone() -> None:
    forward_pass, states = ForwardPass(), set()
    for _ in range(50):
        forward_pass.enter(type('User', (), {})())
        states.add(forward_pass.state('setting', draw))
    assert len(states) == 1


def test_a_user_may_try_again_where_drawing_failed() -> None:
    forward_pass, user = ForwardPass(), object()
    for make, outcome in ((lambda generator: 1 // 0, None), (lambda generator: 3, 3)):
        forward_pass.enter(user)
        if outcome is None:
            with pytest.raises(ZeroDivisionError):
                forward_pass.state('setting', make)
        else:
            assert forward_pass.state('setting', make) == outcome


def step(checkpointed: bool, tied: bool) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    batch = Data(edge_index=ring(12), num_nodes=12)
    first, second = (GRFAttention(8, 2, num_walks=2, resample='forward', feature_map='elu') for _ in range(2))
    layers = [first, second] * 4 if tied else [first, second]
    x = torch.randn(12, 8, requires_grad=True)
    out = x
    for layer in layers:
        call = partial(layer, graph=Graph.shared(batch))
        out = checkpoint(call, out, use_reentrant=False) if checkpointed else call(out)
    return out, torch.autograd.grad(out.square().sum(), x)[0]


@pytest.mark.parametrize('tied', [False, True])
def test_layers_that_are_run_again_for_the_backward_pass_find_their_walks(tied: bool) -> None:
    for actual, expected in zip(step(True, tied), step(False, tied), strict=True):
        torch.testing.assert_close(actual, expected)


REPLACED = {
    'edges': lambda batch: setattr(batch, 'edge_index', batch.edge_index.clone()),
    'weights': lambda batch: setattr(batch, 'edge_weight', torch.ones(batch.num_edges)),
    'division': lambda batch: setattr(batch, 'batch', torch.zeros(batch.num_nodes, dtype=torch.long)),
    'an attribute that a mask read': lambda batch: setattr(batch, 'time', -batch.time),
    'an attribute that a mask looked for': lambda batch: setattr(batch, 'grf_sizes', torch.zeros(1, 9)),
}


def timed(**attributes: Tensor) -> Data:
    return Data(edge_index=ring(4), time=torch.arange(4.0), num_nodes=4, **attributes)


@pytest.mark.parametrize('name', REPLACED)
def test_the_graph_of_a_batch_is_new_when_what_it_read_is_replaced(name: str) -> None:
    batch = timed(x=torch.ones(4, 1))
    graph = Graph.shared(batch)
    for mask in (CausalMask(order='time'), GRFMask()):
        mask(graph)
    batch.x = batch.x + 1  # as layers do
    batch.pooled = batch.x.sum()
    assert Graph.shared(batch) is graph
    REPLACED[name](batch)
    assert Graph.shared(batch) is not graph
    assert Graph.shared(batch) is Graph.shared(batch)


@pytest.mark.filterwarnings('ignore:Sparse invariant checks')
@pytest.mark.parametrize('form', ['whole numbers', 'adj_t', 'no edges'])
def test_the_graph_of_a_batch_is_shared_whatever_holds_the_edges(form: str) -> None:
    batch = timed(edge_weight=torch.ones(8, dtype=torch.long)) if form == 'whole numbers' else timed()
    if form == 'adj_t':
        batch = ToSparseTensor(layout=torch.sparse_coo)(batch)
    if form == 'no edges':
        del batch.edge_index
    assert Graph.shared(batch) is Graph.shared(batch)


def test_a_batch_carries_no_graph() -> None:
    batch = timed()
    graph = Graph.shared(batch)
    assert Graph.shared(copy.copy(batch)) is not graph
    assert len(pickle.dumps(batch)) == len(pickle.dumps(timed()))
    reference = weakref.ref(batch)
    del batch
    assert reference() is None
