from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.loader import DataLoader

from pyg_topomask.apps.datasets import particles
from pyg_topomask.apps.datasets.particles import ClothRollouts, simulate_cloth

SIDE = 4
NODES = SIDE**2
SMALL: dict[str, Any] = {'split': 'train', 'num_rollouts': 3, 'num_steps': 12, 'side': SIDE}


def scene(num: int = 2, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Crumpled cloths in motion."""
    generator = torch.Generator().manual_seed(seed)
    line = torch.linspace(0, 1, SIDE, dtype=torch.float64)
    flat = torch.stack([*torch.meshgrid(line, line, indexing='ij'), torch.zeros(SIDE, SIDE)], dim=-1).view(1, NODES, 3)
    noise = torch.randn(2, num, NODES, 3, generator=generator, dtype=torch.float64)
    return flat + 0.05 * noise[0], 0.5 * noise[1]


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Tensor, Tensor]]:
    """Simulates a scene without pins and far from any sphere, under other physics."""

    def simulated(num: int, num_steps: int, **physics: float) -> tuple[Tensor, Tensor]:
        for name, value in physics.items():
            monkeypatch.setattr(particles, name, value)
        pinned, sphere = torch.zeros(num, NODES, dtype=torch.bool), torch.tensor([[0.0, 0.0, -99.0, 0.1]]).expand(num, -1)
        return simulate_cloth(*scene(num), num_steps, pinned, sphere)

    return simulated


def springs() -> list[tuple[int, int, float]]:
    """Both ends and the length at rest, from the definition of structural, shear and bend springs."""
    springs = []
    for first in range(NODES):
        for second in range(first + 1, NODES):
            rows, columns = abs(first // SIDE - second // SIDE), abs(first % SIDE - second % SIDE)
            if (rows, columns) in ((0, 1), (1, 0), (1, 1), (0, 2), (2, 0)):
                springs.append((first, second, float(np.hypot(rows, columns)) / (SIDE - 1)))
    return springs


def energy(pos: Any, velocity: Any, stiffness: float, gravity: float = 0.0) -> float:
    mass = 1 / NODES
    stored = sum(0.5 * stiffness * (np.linalg.norm(pos[j] - pos[i]) - length) ** 2 for i, j, length in springs())
    return float(0.5 * mass * (velocity**2).sum() + stored + mass * gravity * pos[:, 2].sum())


def oracle(pos: Any, velocity: Any, pinned: Any, sphere: Any, seconds: float, substeps: int) -> tuple[Any, Any]:
    """One cloth, one spring at a time: springs of 200 N/m with damping ratio 0.1, gravity of 9.81 m/s^2."""
    pos, velocity, mass, time = pos.copy(), velocity.copy(), 1 / NODES, seconds / substeps
    velocity[pinned] = 0
    for _ in range(substeps):
        force = np.zeros_like(pos)
        force[:, 2] -= 9.81 * mass
        for i, j, length in springs():
            direction = (pos[j] - pos[i]) / np.linalg.norm(pos[j] - pos[i])
            pull = 200 * (np.linalg.norm(pos[j] - pos[i]) - length)
            pull += 2 * 0.1 * np.sqrt(200 * mass) * direction @ (velocity[j] - velocity[i])
            force[i] += pull * direction
            force[j] -= pull * direction
        velocity += time * force / mass
        velocity[pinned] = 0
        pos += time * velocity
        for i in np.flatnonzero(~pinned):
            outward = pos[i] - sphere[:3]
            distance = np.linalg.norm(outward)
            if distance < sphere[3]:
                outward /= distance
                pos[i] = sphere[:3] + sphere[3] * outward
                velocity[i] -= min(outward @ velocity[i], 0.0) * outward
    return pos, velocity


def test_a_step_is_the_equations() -> None:
    pos, velocity = scene(3)
    pinned = torch.zeros(3, NODES, dtype=torch.bool)
    pinned[1, [0, 5]] = pinned[2, 3] = True
    sphere = torch.tensor([[0.5, 0.5, -0.3, 0.35], [0.3, 0.5, 0.0, 0.3], [5.0, 0.0, 0.0, 0.1]], dtype=torch.float64)
    positions, velocities = simulate_cloth(pos, velocity, 2, pinned, sphere)
    # So many sub-steps as keep the step of the stiffest mode, of frequency sqrt(24 k / m), at 1/2 at most.
    substeps = int(np.ceil(0.02 * 2 * np.sqrt(24 * 200 * NODES)))
    for cloth in range(3):
        state = pos[cloth].numpy(), velocity[cloth].numpy()
        for step in (1, 2):
            state = oracle(*state, pinned[cloth].numpy(), sphere[cloth].numpy(), 0.02, substeps)
            np.testing.assert_allclose(positions[cloth, step], state[0], atol=1e-10)
            np.testing.assert_allclose(velocities[cloth, step], state[1], atol=1e-8)


@pytest.mark.parametrize('gravity', [0.0, 9.81])
def test_energy_stays_without_damping(simulate: Any, gravity: float) -> None:
    positions, velocities = simulate(2, 200, GRAVITY=gravity, DAMPING=0.0)
    for pos, velocity in zip(positions.numpy(), velocities.numpy(), strict=True):
        moved = [energy(pos[t], velocity[t], 200.0, gravity) for t in range(0, 201, 10)]
        scale = energy(pos[0], velocity[0], 200.0)
        assert max(abs(value - moved[0]) for value in moved) < 0.1 * scale


def test_damping_takes_energy(simulate: Any) -> None:
    positions, velocities = simulate(2, 50, GRAVITY=0.0)
    moved = [energy(positions[0, t].numpy(), velocities[0, t].numpy(), 200.0) for t in range(51)]
    assert moved[-1] < 0.5 * moved[0]
    assert all(after <= before * (1 + 1e-3) for before, after in itertools.pairwise(moved))


@pytest.mark.parametrize('damping', [0.0, 0.3])
def test_momentum_is_conserved_without_gravity_and_pins(simulate: Any, damping: float) -> None:
    positions, velocities = simulate(2, 50, GRAVITY=0.0, DAMPING=damping)
    momentum = velocities.sum(2)
    torch.testing.assert_close(momentum, momentum[:, :1].expand_as(momentum))
    spin = torch.cross(positions, velocities, dim=-1).sum(2)
    torch.testing.assert_close(spin, spin[:, :1].expand_as(spin))


def test_center_of_mass_falls_freely(simulate: Any) -> None:
    pos, velocity = scene()
    positions, _ = simulate(2, 10)
    time = 0.02 * torch.arange(11).view(1, -1, 1)
    fallen = pos.mean(1, keepdim=True) + velocity.mean(1, keepdim=True) * time
    fallen[..., 2:] -= 0.5 * 9.81 * time**2
    torch.testing.assert_close(positions.mean(2), fallen, atol=0.01, rtol=0)


def test_pinned_particles_rest_and_none_is_inside_the_sphere() -> None:
    dataset = ClothRollouts(split='train', num_rollouts=16, num_steps=32, side=SIDE)
    rollouts = dataset.rollouts()
    touched = 0
    for rollout, window in zip(rollouts, dataset[:: len(dataset) // 16], strict=True):
        pinned, sphere = window.x[:, 0].bool(), window.x[0, 1:]
        assert torch.equal(rollout[:, pinned], rollout[:1, pinned].expand_as(rollout[:, pinned]))
        assert rollout[-1, :, 2].mean() < rollout[0, :, 2].mean()
        height = (rollout - sphere[:3]).norm(dim=-1) - sphere[3]
        assert height.min() > -1e-5
        touched += bool((height < 1e-5).any())
        corners = torch.zeros(NODES, dtype=torch.bool)
        corners[[0, SIDE - 1, NODES - SIDE, NODES - 1]] = True
        assert not pinned[~corners].any()
    assert touched > 8
    assert 0.3 < dataset[:].x[:, 0].mean() * NODES / 4 < 0.7


def test_steps_fit_the_bound_of_the_papers_model() -> None:
    assert ClothRollouts(split='train', num_rollouts=32, side=6).rollouts().diff(dim=1).abs().max() < 0.25


def test_windows_are_cut_from_the_rollouts() -> None:
    dataset = ClothRollouts(**SMALL)
    rollouts = dataset.rollouts()
    assert rollouts.shape == (3, 12, NODES, 3)
    assert len(dataset) == 3 * 4
    for number, data in enumerate(dataset):
        rollout, now = rollouts[number // 4], number % 4 + 2
        assert data.num_nodes == NODES
        assert data.x.shape == (NODES, 5)
        assert torch.equal(data.pos, rollout[now])
        assert torch.equal(data.history[:, 0], rollout[now - 1] - rollout[now - 2])
        assert torch.equal(data.history[:, 1], rollout[now] - rollout[now - 1])
        assert torch.equal(data.target, rollout[now + 1 : now + 7].transpose(0, 1))


def test_batches() -> None:
    batch = next(iter(DataLoader(ClothRollouts(**SMALL), batch_size=5)))
    assert batch.pos.shape == (5 * NODES, 3)
    assert batch.history.shape == (5 * NODES, 2, 3)
    assert batch.target.shape == (5 * NODES, 6, 3)
    assert batch.batch.bincount().tolist() == [NODES] * 5


def test_same_seed_same_rollouts_and_splits_differ() -> None:
    def rollouts(**arguments: Any) -> Tensor:
        return ClothRollouts(**SMALL | arguments).rollouts()

    torch.manual_seed(1)
    first = rollouts()
    torch.manual_seed(2)
    assert torch.equal(first, rollouts())
    splits = [rollouts(split=split, seed=seed) for seed in (0, 2**63 - 1) for split in ('train', 'val', 'test')]
    scenes = torch.cat(splits)[:, 0].flatten(1)
    assert scenes.unique(dim=0).shape == scenes.shape


def test_all_splits_are_the_parts_one_after_the_other() -> None:
    whole = ClothRollouts(**SMALL | {'split': None})
    for split, indices in whole.split_indices().items():
        dataset = ClothRollouts(**SMALL | {'split': split})
        assert len(indices) == len(dataset) == 3 * 4
        for index, data in zip(indices.tolist(), dataset, strict=True):
            torch.testing.assert_close(whole[index].target, data.target)
            assert torch.equal(whole[index].x, data.x)


def test_transforms_are_applied() -> None:
    def mark(data: Any) -> Any:
        calls.append(1)
        data.mark = data.pos.sum()
        return data

    calls: list[int] = []
    dataset = ClothRollouts(**SMALL, pre_transform=mark)
    assert dataset[1].mark == dataset[1].pos.sum()
    assert len(calls) == len(dataset)
    assert ClothRollouts(**SMALL, transform=mark)[0].mark == dataset[0].mark


def test_bad_arguments_of_the_dataset(subtests: pytest.Subtests) -> None:
    for name, arguments in [
        ('split', {'split': 'dev'}),
        ('num_rollouts', {'num_rollouts': 0}),
        ('num_steps', {'num_steps': 8}),
        ('side', {'side': 1}),
    ]:
        with subtests.test(name=name, arguments=arguments), pytest.raises(ValueError, match=f'^{name}: got'):
            ClothRollouts(**SMALL | arguments)
