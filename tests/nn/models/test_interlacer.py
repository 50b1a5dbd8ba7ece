import copy
from typing import Any

import numpy as np
import pytest
import torch
from grids import covering
from oracles import linear, masked_attention, power_series
from torch import Tensor

from pyg_topomask.graphs.segments import Segments
from pyg_topomask.nn.models import Interlacer
from pyg_topomask.ops.anchors import farthest_anchors

LOCALS = ['grf', 'message_passing', 'anchors', None]
SIZES = [9, 4, 20]


def make(local: str | None, **arguments: Any) -> Interlacer:
    """A model that moves, in double precision."""
    torch.manual_seed(0)
    if local == 'anchors':
        local, arguments = 'message_passing', {'num_anchors': 6} | arguments
    model = Interlacer(**{'in_channels': 5, 'channels': 8, 'local': local} | arguments).double()
    torch.nn.init.normal_(model.lin_out.weight)
    return model


def particles(sizes: list[int], in_channels: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    batch = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return torch.randn(sum(sizes), in_channels).double(), torch.randn(sum(sizes), 3).double(), batch


def norm(module: Any, x: Any) -> Any:
    centered = x - x.mean(1, keepdims=True)
    scaled = centered / np.sqrt(centered.var(1, keepdims=True) + 1e-5)
    return scaled * module.weight.detach().numpy() + module.bias.detach().numpy()


def mlp(module: Any, x: Any) -> Any:
    return linear(module[2], np.maximum(linear(module[0], x), 0))


def attention(module: Any, x: Any, mask: Any) -> Any:
    q, k, v = (linear(lin, x).reshape(len(x), module.heads, -1) for lin in (module.lin_q, module.lin_k, module.lin_v))
    out = masked_attention(np.maximum(q, 0), np.maximum(k, 0), v, mask)
    return linear(module.lin_out, out.reshape(len(x), -1))


def nearest(pos: Any, k: int) -> Any:
    distance = np.linalg.norm(pos[:, None] - pos[None], axis=-1)
    np.fill_diagonal(distance, np.inf)
    return np.argsort(distance, axis=1)[:, :k]


def farthest(pos: Any, num: int) -> list[int]:
    """Farthest point sampling that begins with the point farthest from the mean."""
    chosen = [int(np.linalg.norm(pos - pos.mean(0), axis=1).argmax())]
    while len(chosen) < min(num, len(pos)):
        distance = np.linalg.norm(pos[:, None] - pos[chosen], axis=-1).min(1)
        distance[chosen] = -1
        chosen.append(int(distance.argmax()))
    return chosen


def oracle(model: Interlacer, x: Any, pos: Any) -> Any:
    """One graph, with dense matrices; the masks are the power series that graph random features estimate."""
    count, neighbors = len(pos), nearest(pos, 3)
    adjacency = np.zeros((count, count))
    np.put_along_axis(adjacency, neighbors, 1.0, axis=1)
    h = linear(model.lin_in, np.concatenate([x, pos], axis=1))
    for block in model.blocks:
        h = h + attention(block.attention, norm(block.norms[0], h), np.ones((1, count, count)))
        h = h + mlp(block.mlp, norm(block.norms[1], h))
        if model.local == 'grf':
            f = block.local.mask.f.detach().numpy()[0]
            h = h + attention(block.local, norm(block.norms[2], h), power_series(adjacency / 3, f)[None])
        elif model.local == 'message_passing':
            normed, local = norm(block.norms[2], h), np.zeros_like(h)
            anchors = list(range(count)) if model.num_anchors is None else farthest(pos, model.num_anchors)
            for i in anchors:
                messages = [np.concatenate([normed[i], normed[j], pos[j] - pos[i]]) for j in neighbors[i]]
                local[i] = mlp(block.local.mlp, np.stack(messages)).max(0)
            for i in set(range(count)) - set(anchors):
                a = min(anchors, key=lambda anchor: np.linalg.norm(pos[anchor] - pos[i]))
                local[i] = mlp(
                    block.local.from_anchor, np.concatenate([normed[i], normed[a] + local[a], pos[a] - pos[i]])[None]
                )[0]
            h = h + local
    return model.max_step * np.tanh(linear(model.lin_out, h))


@pytest.mark.parametrize(('local', 'heads', 'training'), covering(LOCALS, [1, 4], [False, True], strength=2))
def test_forward_is_the_equations(local: str | None, heads: int, training: bool) -> None:
    model = make(local, heads=heads).train(training)
    if local == 'grf':
        with torch.no_grad():
            for block in model.blocks:
                block.local.mask.modulation.copy_(torch.tensor([[0.3, 1.0, 0.4, 0.7]]).log())
    x, pos, batch = particles(SIZES)
    step = model(x, pos, batch).detach().numpy()
    for graph in range(len(SIZES)):
        nodes = (batch == graph).numpy()
        np.testing.assert_allclose(step[nodes], oracle(model, x.numpy()[nodes], pos.numpy()[nodes]), atol=1e-5)


@pytest.mark.parametrize('num', [1, 3, 30])
def test_anchors_of_a_batch_are_those_of_each_graph(num: int) -> None:
    _, pos, batch = particles(SIZES)
    pos[2] = pos[1]  # two particles in one place
    graphs = batch + (batch > 0)  # graph 1 is empty
    together = farthest_anchors(pos, num, Segments(len(pos), graphs, 5))
    for graph in graphs.unique():
        nodes = (graphs == graph).nonzero().squeeze(1)
        anchors = farthest(pos[nodes].numpy(), num)
        alone = farthest_anchors(pos[nodes], num, Segments(len(nodes)))
        assert together.is_anchor[nodes].nonzero().squeeze(1).tolist() == sorted(anchors)
        assert torch.equal(together.is_anchor[nodes], alone.is_anchor)
        here = torch.isin(together.others, nodes)
        assert torch.equal(together.others[here], nodes[alone.others])
        assert torch.equal(together.closest[here], nodes[alone.closest])
        distance = torch.cdist(pos[nodes], pos[nodes[anchors]])
        assert torch.equal((pos[nodes[alone.others]] - pos[nodes[alone.closest]]).norm(dim=1), distance[alone.others].amin(1))


def test_anchors_in_one_place_are_chosen_once() -> None:
    pos = torch.zeros(4, 2)
    assert farthest_anchors(pos, 3, Segments(4)).is_anchor.tolist() == [True, True, True, False]
    assert farthest_anchors(pos, 9, Segments(4)).others.tolist() == []


def test_all_particles_are_anchors_of_small_graphs() -> None:
    x, pos, batch = particles([9, 4])
    few, all_particles = make('message_passing', num_anchors=9), make('message_passing')
    all_particles.load_state_dict({name: value for name, value in few.state_dict().items() if 'from_anchor' not in name})
    assert torch.equal(few(x, pos, batch), all_particles(x, pos, batch))
    assert str(few).endswith('num_neighbors=3, num_anchors=9)')


def test_anchors_of_other_local_layers_are_refused() -> None:
    for local in ('grf', None):
        with pytest.raises(ValueError, match=f'^num_anchors: got 4 for local={local!r}'):
            Interlacer(5, 8, local=local, num_anchors=4)


@pytest.mark.parametrize('local', LOCALS)
def test_permutation_equivariance(local: str | None) -> None:
    model, (x, pos, _) = make(local), particles([30])
    permutation = torch.randperm(30)
    torch.testing.assert_close(model(x[permutation], pos[permutation]), model(x, pos)[permutation], atol=1e-5, rtol=0)


@pytest.mark.parametrize('local', LOCALS)
def test_gradients_reach_every_parameter_through_the_rollout(local: str | None) -> None:
    model, (x, pos, batch) = make(local), particles(SIZES)
    pos.requires_grad_()
    history = x[:, :3].view(-1, 1, 3).requires_grad_()
    model.rollout(pos, history, 2, x[:, 3:], batch)[:, -1].square().sum().backward()
    missing = [name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()]
    assert not missing
    assert all(value.grad.isfinite().all() and value.grad.any() for value in (pos, history, *model.parameters()))


@pytest.mark.parametrize('local', LOCALS)
def test_training_lowers_the_error(local: str | None) -> None:
    model, (x, pos, batch) = make(local, channels=16), particles(SIZES)
    model.reset_parameters()
    target = pos + 0.1 * x[:, :3].tanh()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(30):
        loss = (pos + model(x, pos, batch) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_rollout_feeds_predictions_back() -> None:
    model = make('message_passing', in_channels=8, step_scale=0.05)
    x, pos, batch = particles(SIZES, in_channels=2)
    history = 0.1 * torch.randn(len(pos), 2, 3).double()
    positions = model.rollout(pos, history, 3, x, batch)
    assert positions.shape == (len(pos), 3, 3)
    before = [history[:, 0], history[:, 1]]
    for step in range(3):
        features = torch.cat([before[-2] / 0.05, before[-1] / 0.05, x], dim=1)
        before.append(model(features, pos, batch))
        pos = pos + before[-1]
        torch.testing.assert_close(positions[:, step], pos)
    alone = make(None, in_channels=2).rollout(pos, history[:, :0], 2, x, batch)
    assert alone.shape == (len(pos), 2, 3)


@pytest.mark.parametrize('local', LOCALS)
def test_neighbors_are_searched_once_per_step(local: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def search(pos: Tensor, *args: Any) -> Tensor:
        searched.append(pos)
        return original(pos, *args)

    searched: list[Tensor] = []
    names = Interlacer.forward.__globals__
    original = names['knn_graph']
    monkeypatch.setitem(names, 'knn_graph', search)
    x, pos, batch = particles(SIZES)
    positions = make(local).rollout(pos, x[:, :3].view(-1, 1, 3), 3, x[:, 3:], batch)
    expected = [] if local is None else [pos, positions[:, 0], positions[:, 1]]
    assert len(searched) == len(expected)
    assert all(map(torch.equal, searched, expected))


def test_walks_are_new_in_training_and_fixed_in_evaluation() -> None:
    model, (x, pos, batch) = make('grf', num_walks=2), particles(SIZES)
    assert not torch.equal(model(x, pos, batch), model(x, pos, batch))
    model.eval()
    assert torch.equal(model(x, pos, batch), model(x, pos, batch))


def test_layers_share_the_walks_of_a_forward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    model, (x, pos, batch) = make('grf', num_layers=3), particles(SIZES)
    masks = [block.local.mask for block in model.blocks]
    prepared = []
    for mask in masks:
        monkeypatch.setattr(mask, 'prepare', lambda *args, prepare=mask.prepare: prepared.append(1) or prepare(*args))
    model(x, pos, batch)
    assert len(prepared) == 1


@pytest.mark.parametrize('local', LOCALS)
def test_steps_are_bounded_and_a_new_model_stands_still(local: str | None) -> None:
    model, (x, pos, batch) = make(local, max_step=0.1), particles(SIZES)
    with torch.no_grad():
        model.lin_out.weight.mul_(100.0)
    step = model(x, pos, batch)
    assert 0.0999 < step.abs().max() <= 0.1
    before = copy.deepcopy(model.state_dict())
    model.reset_parameters()
    assert not model(x, pos, batch).any()
    assert all(
        not torch.equal(before[name], value)
        for name, value in model.state_dict().items()
        if name.endswith('.weight') and 'norms' not in name
    )


def test_no_particles_one_particle_and_other_dimensions() -> None:
    for local in LOCALS:
        model = make(local, out_channels=2)
        assert model(torch.randn(0, 5).double(), torch.randn(0, 2).double()).shape == (0, 2)
        assert model(torch.randn(1, 5).double(), torch.randn(1, 2).double()).isfinite().all()


def test_no_particles_before_the_sizes_are_known() -> None:
    model = Interlacer(-1, 16)
    assert model.rollout(torch.randn(0, 3), torch.randn(0, 2, 3), 4).shape == (0, 4, 3)


def test_bad_input_is_named() -> None:
    model, (x, pos, _) = make('grf'), particles([6])
    for name, arguments in {
        'x': (x[:, :2], pos),
        'pos': (x, pos[:, :2]),
        'batch': (x, pos, torch.tensor([0, 1, 0, 1, 0, 1])),
    }.items():
        with pytest.raises(ValueError, match=f'^{name}: got'):
            model(*arguments)
    with pytest.raises(ValueError, match=r'^steps: got 0'):
        model.rollout(pos, x[:, :3].view(-1, 1, 3), 0, x[:, 3:])
    for history in (x[:, :3], x[:, :3].view(-1, 3, 1), x[:5, :3].view(-1, 1, 3), torch.ones(6, 2, 3)):
        with pytest.raises(ValueError, match=r'^history: got'):
            model.rollout(pos, history, 1, x[:, 3:])


@pytest.mark.parametrize('name', ['x', 'pos', 'history'])
def test_input_of_another_data_type_is_named(name: str) -> None:
    model, (x, pos, _) = make('grf'), particles([6])
    message = f'^{name}: got torch.float32; accepted: torch.float64, the data type of the parameters'
    given = {'pos': pos, 'history': x[:, :3].view(-1, 1, 3), 'steps': 1, 'x': x[:, 3:]}
    with pytest.raises(ValueError, match=message):
        model.rollout(**given | {name: given[name].float()})
    if name != 'history':
        given = {'x': x, 'pos': pos}
        with pytest.raises(ValueError, match=message):
            model(**given | {name: given[name].float()})


@pytest.mark.parametrize('first', ['forward', 'rollout'])
def test_input_channels_are_inferred(first: str) -> None:
    x, pos, batch = particles([4, 3], in_channels=6)
    lazy = Interlacer(-1, 8).double().eval()
    if first == 'rollout':
        lazy.rollout(pos, torch.zeros(7, 2, 3, dtype=pos.dtype), steps=2, batch=batch)
    lazy(x, pos, batch)
    known = Interlacer(6, 8).double().eval()
    known.load_state_dict(lazy.state_dict())
    torch.testing.assert_close(known(x, pos, batch), lazy(x, pos, batch))
    with pytest.raises(ValueError, match=r'^x: got shape \(7, 5\)'):
        lazy(x[:, :5], pos, batch)
