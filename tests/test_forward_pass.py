"""What is drawn anew in every forward pass: who shares it, and when a pass begins."""

from functools import partial

import pytest
import torch
from graphs import ring
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Data

from pyg_topomask.forward_pass import ForwardPass
from pyg_topomask.graph import Graph
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


def step(checkpointed: bool) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    batch = Data(edge_index=ring(12), num_nodes=12)
    layers = [GRFAttention(8, 2, num_walks=2, resample='forward', feature_map='elu') for _ in range(3)]
    x = torch.randn(12, 8, requires_grad=True)
    out = x
    for layer in layers:
        call = partial(layer, graph=Graph.shared(batch))
        out = checkpoint(call, out, use_reentrant=False) if checkpointed else call(out)
    return out, torch.autograd.grad(out.square().sum(), x)[0]


def test_layers_that_are_run_again_for_the_backward_pass_find_their_walks() -> None:
    for actual, expected in zip(step(checkpointed=True), step(checkpointed=False), strict=True):
        torch.testing.assert_close(actual, expected)


def test_layers_share_the_graph_of_a_batch_while_its_edges_are_the_same() -> None:
    batch = Data(edge_index=ring(4), num_nodes=4)
    graph = Graph.shared(batch)
    assert Graph.shared(batch) is graph
    batch.edge_weight = torch.ones(batch.num_edges)
    weighted = Graph.shared(batch)
    assert weighted is not graph
    assert Graph.shared(batch) is weighted
    batch.edge_index = batch.edge_index.clone()
    assert Graph.shared(batch) is not weighted
    assert '_topomask_graph' not in batch
