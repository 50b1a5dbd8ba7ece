r"""Simulated cloth, a data set of particle dynamics that needs no download."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.apps.datasets.bases import SPLITS, GeneratedDataset, Transform, consecutive_splits
from pyg_topomask.utils.checks import check_choice, check_whole, checked_seed
from pyg_topomask.utils.random import wrapped_seed

HISTORY, HORIZON = 2, 6
#: The acceleration against the third axis, the spring constant in newtons per meter, the damping ratio, and seconds per step.
GRAVITY, STIFFNESS, DAMPING, STEP = 9.81, 200.0, 0.1, 0.02
# A spring joins particles this far apart in rows and columns: structural, shear and bend springs.
_SPRINGS = ((0, 1), (1, 0), (1, 1), (1, -1), (0, 2), (2, 0))


class ClothRollouts(GeneratedDataset):
    r"""Rollouts of a cloth of particles and springs, split into windows, for learning dynamics as in `"Linear Transformer
    Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Sec. 4.4). The paper's
    robot recordings are not public.

    A square cloth, 1 m wide, starts flat, in a random orientation, with random linear and angular velocity. Each corner is
    pinned with probability 1/2. The rest falls, possibly on a sphere of random radius. See :func:`simulate_cloth` for the
    physics. A frame takes 1/50 s. The splits have different seeds. Each graph is a window of a rollout, with one node per
    particle:

    - :obj:`pos`: the current positions, :obj:`[side ** 2, 3]`
    - :obj:`history`: the two previous steps, the latest last, :obj:`[side ** 2, 2, 3]`
    - :obj:`target`: the positions in the next six frames, :obj:`[side ** 2, 6, 3]`
    - :obj:`x`: constant features: whether the particle is pinned, and center and radius of the sphere, :obj:`[side ** 2, 5]`

    There are no edges, because neighbors change as the cloth moves and folds (see :class:`~pyg_topomask.transforms.KNNGraph`).

    Args:
        num_rollouts (int): The number of rollouts of each split. (default: :obj:`64`)
        num_steps (int): Frames per rollout, at least 9; each rollout gives :obj:`num_steps - 8` windows. (default: :obj:`32`)
        side (int): Particles along each side of the cloth. (default: :obj:`8`)
        seed (int): The seed. (default: :obj:`0`)

    Example:
        >>> data = ClothRollouts(split='test', num_rollouts=2, num_steps=10, side=4)[0]
        >>> data.pos.shape, data.history.shape, data.target.shape
        (torch.Size([16, 3]), torch.Size([16, 2, 3]), torch.Size([16, 6, 3]))
    """

    def __init__(
        self,
        root: str | None = None,
        split: str | None = None,
        num_rollouts: int = 64,
        num_steps: int = 32,
        side: int = 8,
        seed: int = 0,
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
    ) -> None:
        check_whole(1, num_rollouts=num_rollouts)
        check_whole(HISTORY + HORIZON + 1, num_steps=num_steps)
        check_whole(2, side=side)
        seed = checked_seed(seed=seed)
        check_choice((*SPLITS, None), split=split)
        super().__init__(root, None, transform, pre_transform)  # only the split is simulated
        splits = SPLITS if split is None else (split,)
        seeds = [len(SPLITS) * seed + SPLITS.index(name) for name in splits]
        scenes = [_scenes(num_rollouts, side, torch.Generator().manual_seed(wrapped_seed(seed))) for seed in seeds]
        pos, velocity, pinned, sphere = (torch.cat(values) for values in zip(*scenes, strict=True))
        self._rollouts = simulate_cloth(pos, velocity, num_steps - 1, pinned, sphere)[0].float()
        x = torch.cat([pinned.unsqueeze(-1), sphere.unsqueeze(1).expand(-1, side**2, -1)], dim=-1).float()
        graphs = [window for rollout in zip(self._rollouts, x, strict=True) for window in _windows(*rollout)]
        self.hold(graphs, consecutive_splits([num_rollouts * (num_steps - HISTORY - HORIZON)] * len(SPLITS)))

    def rollouts(self) -> Tensor:
        r"""Returns the positions of whole rollouts, :obj:`[num_rollouts, num_steps, side ** 2, 3]`. Windows are sorted by
        rollout, then by time.
        """
        return self._rollouts


def simulate_cloth(pos: Tensor, velocity: Tensor, num_steps: int, pinned: Tensor, sphere: Tensor) -> tuple[Tensor, Tensor]:
    r"""Simulates square cloths of particles connected by springs with dashpots.

    The force between particles :math:`i` and :math:`j` at distance :math:`d_{ij}`, along the unit vector
    :math:`\mathbf{u}_{ij}` from :math:`i` to :math:`j`, is

    .. math::
        \mathbf{f}_{ij} = \left( \kappa \, (d_{ij} - l_{ij}) + 2 \zeta \sqrt{\kappa m} \,
        (\mathbf{v}_j - \mathbf{v}_i)^{\top} \mathbf{u}_{ij} \right) \mathbf{u}_{ij}

    with springs to the next particles in rows and columns (structural), along diagonals (shear) and to the next but one in
    rows and columns (bend). At rest the cloth is 1 m wide; it weighs 1 kg, spread equally. Particles that reach the sphere
    are moved to its surface and lose the velocity towards its center. Each step consists of enough semi-implicit Euler steps to
    keep the stiffest mode stable.

    Args:
        pos (torch.Tensor): The initial positions, :obj:`[R, side ** 2, 3]`, row by row of the cloth, in meters.
        velocity (torch.Tensor): The initial velocities, :obj:`[R, side ** 2, 3]`, in meters per second.
        num_steps (int): The number of steps.
        pinned (torch.Tensor): The particles that never move, :obj:`[R, side ** 2]`.
        sphere (torch.Tensor): Center and radius of a sphere, :obj:`[R, 4]`.

    Returns:
        tuple: Positions and velocities at the start and after each step, both :obj:`[R, num_steps + 1, side ** 2, 3]`
        in float64.
    """
    side = math.isqrt(pos.size(1))
    start, end, length = _springs(side, pos.device)
    # Particles first: gathering and adding rows is then fast.
    pos, velocity = (value.double().transpose(0, 1) for value in (pos, velocity))
    free = (~pinned).t().unsqueeze(-1).double()
    velocity = velocity * free
    mass = 1 / side**2
    rate = math.sqrt(STIFFNESS / mass)
    # A particle has at most 12 springs, so that the fastest mode has at most sqrt(24) times the rate of one spring.
    substeps = max(1, math.ceil(2 * math.sqrt(24) * rate * STEP))
    time = STEP / substeps
    fall = pos.new_tensor([0.0, 0.0, -GRAVITY])
    frames = [(pos, velocity)]
    for _ in range(num_steps):
        for _ in range(substeps):
            offset, relative = pos[end] - pos[start], velocity[end] - velocity[start]
            distance = offset.norm(dim=-1, keepdim=True).clamp(min=1e-9)
            direction = offset / distance
            closing = (relative * direction).sum(-1, keepdim=True)
            pull = (rate**2 * (distance - length) + 2 * DAMPING * rate * closing) * direction
            acceleration = torch.zeros_like(pos).index_add_(0, start, pull).index_add_(0, end, pull, alpha=-1)
            velocity = velocity + time * free * (acceleration + fall)
            pos = pos + time * velocity
            pos, velocity = _collide(pos, velocity, sphere.double(), free)
        frames.append((pos, velocity))
    positions, velocities = (torch.stack(values).permute(2, 0, 1, 3).contiguous() for values in zip(*frames, strict=True))
    return positions, velocities


def _collide(pos: Tensor, velocity: Tensor, sphere: Tensor, free: Tensor) -> tuple[Tensor, Tensor]:
    center, radius = sphere[:, :3], sphere[:, 3:]
    offset = pos - center
    distance = offset.norm(dim=-1, keepdim=True).clamp(min=1e-9)
    normal = offset / distance
    inside = (distance < radius) * free
    inwards = (velocity * normal).sum(-1, keepdim=True).clamp(max=0.0)
    return pos + inside * (radius - distance) * normal, velocity - inside * inwards * normal


def _springs(side: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    r"""Both ends and, as :obj:`[S, 1, 1]`, the length at rest of each spring."""
    particle = torch.arange(side**2, device=device)
    row, column = particle // side, particle % side
    ends, lengths = [], []
    for down, right in _SPRINGS:
        inside = (row + down < side) & (column + right >= 0) & (column + right < side)
        start = particle[inside]
        ends.append(torch.stack([start, start + down * side + right]))
        lengths.append(torch.full(start.shape, math.hypot(down, right) / (side - 1), dtype=torch.float64, device=device))
    start, end = torch.cat(ends, dim=1)
    return start, end, torch.cat(lengths).view(-1, 1, 1)


def _scenes(num: int, side: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""Initial positions and velocities, pinned particles and spheres."""

    def uniform(low: float, high: float, *size: int) -> Tensor:
        return low + (high - low) * torch.rand(num, *size, generator=generator, dtype=torch.float64)

    line = torch.linspace(-0.5, 0.5, side, dtype=torch.float64)
    row, column = (value.flatten() for value in torch.meshgrid(line, line, indexing='ij'))
    angle = uniform(0.0, 2 * math.pi, 1)
    first = angle.cos() * row - angle.sin() * column
    second = angle.sin() * row + angle.cos() * column
    pos = torch.stack([first, second, torch.zeros_like(first)], dim=-1)
    velocity = uniform(-0.5, 0.5, 1, 3) + torch.cross(uniform(-1.0, 1.0, 1, 3).expand_as(pos), pos, dim=-1)
    pinned = torch.zeros(num, side**2, dtype=torch.bool)
    pinned[:, [0, side - 1, side**2 - side, side**2 - 1]] = uniform(0.0, 1.0, 4) < 0.5
    radius = uniform(0.15, 0.3, 1)
    sphere = torch.cat([uniform(-0.3, 0.3, 2), -radius - uniform(0.1, 0.4, 1), radius], dim=1)
    return pos, velocity, pinned, sphere


def _windows(rollout: Tensor, x: Tensor) -> list[Data]:
    rollout = rollout.transpose(0, 1)
    steps = rollout.diff(dim=1)
    return [
        Data(
            x=x,
            pos=rollout[:, now],
            history=steps[:, now - HISTORY : now],
            target=rollout[:, now + 1 : now + 1 + HORIZON],
        )
        for now in range(HISTORY, rollout.size(1) - HORIZON)
    ]
