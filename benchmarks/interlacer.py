r"""Interlacers on simulated cloth: GRF attention against message passing and no local layer, in accuracy and speed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from benchmarks.harness import each, interleaved_medians, kept_runs, new_figure, run_all, write_table
from pyg_topomask.apps.datasets.particles import ClothRollouts
from pyg_topomask.apps.runs.compare import mean_error, verdict
from pyg_topomask.nn.models import Interlacer

__all__ = ['run']

VARIANTS = {'GRF': 'grf', 'message passing': 'message_passing', 'unmasked': None}
#: Numbers of anchors of message passing, by local layer.
ANCHORS = {'message passing': None, 'message passing, 18 anchors': 18}
LARGE_ANCHORS = 1024
PAPER_STEPS_PER_SECOND = {'GRF': 0.982, 'message passing': 0.925, 'unmasked': 1.49}
SEEDS, STEPS, BATCH_SIZE, SIDE, CHANNELS, HORIZON = 3, 450, 16, 6, 32, 6
LARGE = 32768
LEARNING_RATES = (3e-3, 1e-3)

Errors = list[float]


def run(quick: bool, folder: Path) -> None:
    seeds, steps, rollouts, large = (2, 2, 2, 500) if quick else (SEEDS, STEPS, 64, LARGE)
    jobs = [(variant, seed) for variant in VARIANTS for seed in range(seeds)]
    settings = [steps, rollouts, BATCH_SIZE, SIDE, CHANNELS, HORIZON, LEARNING_RATES]
    train = partial(_train, num_steps=steps, num_rollouts=rollouts)
    results = run_all(jobs, train, settings, kept_runs(folder, 'interlacer', quick))
    test = _dataset('test', rollouts)
    errors: dict[str, list[Errors]] = {variant: [results[variant, seed] for seed in range(seeds)] for variant in VARIANTS}
    errors |= {name: [guess] for name, guess in _guesses(test).items()}
    small = _steps_per_second(_batch(_dataset('train', 2)), 3 if quick else 15)
    big = _steps_per_second(_cloud(large), 1 if quick else 3)
    rows = [_row(name, runs, errors['GRF'], small, big, large) for name, runs in errors.items()]
    note = (
        f'Distance between predicted and true positions in mm, over the particles of the windows of {rollouts} test roll-outs '
        f'of a cloth of 1 m with {SIDE**2} particles, by time step of 1/50 s; mean ± standard error over {seeds} seeds of '
        f'weights and batches{", a smoke run" if quick else ""}. "Constant velocity" and "no motion" learn nothing. A '
        f'difference below two standard errors is "not distinguishable". Training steps per second are of forward, backward '
        f'and optimizer on {BATCH_SIZE} cloths and on one cloud of {large} random points, with the search for neighbors and '
        f'new walks, all variants in one run. '
        f'As in App. C.3: roll-outs of {HORIZON} steps, 3 neighbors, 27 repelling walks of 3 hops, ReLU features, one head of '
        f'masked attention, AdamW with weight decay 0.001, gradients clipped to 0.01, steps of at most 0.25, {BATCH_SIZE} '
        f'windows per batch. Unlike there: a simulated cloth with known positions instead of video of a robot, which networks '
        f'encode and render; {SIDE**2} particles instead of 32768; {steps} training steps instead of 100000, and therefore '
        f'ten times the learning rates ({LEARNING_RATES[0]} in the first half, then {LEARNING_RATES[1]}); 2 layers of '
        f'{CHANNELS} channels, with 4 heads in unmasked attention; {seeds} seeds instead of 5; exact neighbors; every particle '
        f'is an anchor of message passing; other hardware.'
    )
    write_table('interlacer', 'Interlacers on simulated cloth', note, rows, folder)
    _plot(errors, folder / 'interlacer.png')


def anchors(quick: bool, folder: Path) -> None:
    r"""Message passing to a subset of anchors, compared with that to all particles."""
    seeds, steps, rollouts, large = (2, 2, 2, 500) if quick else (SEEDS, STEPS, 64, LARGE)
    jobs = [(variant, seed) for variant in ANCHORS for seed in range(seeds)]
    settings = [steps, rollouts, BATCH_SIZE, SIDE, CHANNELS, HORIZON, LEARNING_RATES]
    train = partial(_train, num_steps=steps, num_rollouts=rollouts)
    results = run_all(jobs, train, settings, kept_runs(folder, 'interlacer_anchors', quick))
    errors = {variant: [results[variant, seed][-1] for seed in range(seeds)] for variant in ANCHORS}
    small = _seconds({variant: (variant, None) for variant in ANCHORS}, _batch(_dataset('train', 2)), 1 if quick else 15)
    kinds = {'message passing': ('message passing', None), 'anchors': ('message passing, 18 anchors', LARGE_ANCHORS)}
    big = _seconds(kinds, _cloud(large), 1 if quick else 3)
    rows = [
        {
            'local layer': variant,
            f'error at {HORIZON}, mm': _mean(values),
            'seeds': each(values, 1),
            'minus all particles, paired by seed': _gap(values, errors['message passing']),
            'time of a step / all particles': small[variant] / small['message passing'],
        }
        for variant, values in errors.items()
    ]
    note = (
        f'As in the table interlacer, with message passing to a subset of the {SIDE**2} particles as anchors, and from the '
        f'closest anchor to each other particle. {seeds} seeds of weights and batches; mean ± standard error; a difference '
        f'below two standard errors is "not distinguishable". Times are processor times of a training step, in turns. On one '
        f'cloud of {large} random points, a step with {LARGE_ANCHORS} anchors takes '
        f'{big["anchors"] / big["message passing"]:.2f} times as long as one without, with the choice of the anchors.'
    )
    write_table('interlacer_anchors', 'Interlacers with a subset of anchors', note, rows, folder)


def _seconds(models: dict[str, tuple[str, int | None]], batch: Data, repeats: int) -> dict[str, float]:
    functions = {name: partial(_trainer(*model)[1], batch, 1e-3) for name, model in models.items()}
    return interleaved_medians(functions, repeats, time.process_time)


def _train(job: tuple[str, int], num_steps: int, num_rollouts: int) -> Errors:
    r"""Trains one model and returns its error on the test roll-outs at each time step."""
    variant, seed = job
    torch.manual_seed(seed)
    model, step = _trainer(variant)
    loader = DataLoader(_dataset('train', num_rollouts), BATCH_SIZE, shuffle=True)
    done = 0
    while done < num_steps:
        for batch in loader:
            if done == num_steps:
                break
            step(batch, LEARNING_RATES[0] if 2 * done < num_steps else LEARNING_RATES[1])
            done += 1
    test = _batch(_dataset('test', num_rollouts), None)
    with torch.no_grad():
        return _errors(_predict(model.eval(), test), test)


def _trainer(variant: str, anchors: int | None = None) -> tuple[Interlacer, Callable[[Data, float], None]]:
    r"""Makes a model, and a function that trains it on a batch, given the learning rate."""
    if variant in VARIANTS:
        model = Interlacer(11, CHANNELS, local=VARIANTS[variant], heads=4)
    else:
        model = Interlacer(11, CHANNELS, local='message_passing', heads=4, num_anchors=anchors or ANCHORS[variant])
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=1e-3)

    def step(batch: Data, learning_rate: float) -> None:
        optimizer.param_groups[0]['lr'] = learning_rate
        optimizer.zero_grad()
        (_predict(model, batch) - batch.target).square().sum(-1).mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        optimizer.step()

    return model, step


def _predict(model: Interlacer, batch: Data) -> Tensor:
    return model.rollout(batch.pos, batch.history, HORIZON, batch.x, batch.batch)


def _errors(predicted: Tensor, batch: Data) -> Errors:
    errors: Errors = (1000 * (predicted - batch.target).norm(dim=-1).mean(0)).tolist()
    return errors


@cache
def _dataset(split: str, num_rollouts: int) -> ClothRollouts:
    return ClothRollouts(split=split, num_rollouts=num_rollouts, side=SIDE)


def _batch(dataset: ClothRollouts, size: int | None = BATCH_SIZE) -> Data:
    batch: Data = Batch.from_data_list(list(dataset[:size]))
    return batch


def _cloud(num_points: int) -> Data:
    torch.manual_seed(0)
    pos = torch.rand(num_points, 3)
    steps = 0.01 * torch.randn(num_points, 2 + HORIZON, 3)
    target = pos.unsqueeze(1) + steps[:, 2:].cumsum(1)
    return Data(x=torch.zeros(num_points, 5), pos=pos, history=steps[:, :2], target=target, batch=None)


def _guesses(dataset: ClothRollouts) -> dict[str, Errors]:
    batch = _batch(dataset, None)
    after = torch.arange(1.0, HORIZON + 1).view(1, -1, 1)
    still = batch.pos.unsqueeze(1).expand_as(batch.target)
    return {
        'constant velocity': _errors(still + after * batch.history[:, -1:], batch),
        'no motion': _errors(still, batch),
    }


def _steps_per_second(batch: Data, repeats: int) -> dict[str, float]:
    functions = {variant: partial(_trainer(variant)[1], batch, 1e-3) for variant in VARIANTS}
    return {variant: 1 / seconds for variant, seconds in interleaved_medians(functions, repeats).items()}


def _row(
    name: str, errors: list[Errors], reference: list[Errors], small: dict[str, float], big: dict[str, float], large: int
) -> dict[str, object]:
    row: dict[str, object] = {'local layer': name}
    for place in range(HORIZON):
        row[f'error at {place + 1}, mm'] = _mean([run[place] for run in errors])
    shown, trained = '', name in VARIANTS and name != 'GRF'
    if trained:
        shown = _gap([run[-1] for run in errors], [run[-1] for run in reference])
    row[f'at {HORIZON} minus GRF, paired by seed'] = shown
    row['seeds'] = each((run[-1] for run in errors), 1)
    for title, speed in ((f'{BATCH_SIZE} cloths', small), (f'{large} points', big), ('the paper', PAPER_STEPS_PER_SECOND)):
        relative = f'{speed[name]:.3g} ({speed[name] / speed["message passing"]:.2f})' if name in speed else ''
        row[f'training steps/s (to message passing), {title}'] = relative
    return row


def _gap(values: list[float], reference: list[float]) -> str:
    if values is reference:
        return ''
    gaps = [value - base for value, base in zip(values, reference, strict=True)]
    mean, error = mean_error(gaps)
    return f'{_mean(gaps)}: {verdict(-mean, error)}'  # less is better


def _mean(values: list[float]) -> str:
    mean = f'{statistics.mean(values):.1f}'
    return mean if len(values) == 1 else f'{mean} ± {mean_error(values)[1]:.1f}'


def _plot(errors: dict[str, list[Errors]], path: Path) -> None:
    figure = new_figure(6, 4)
    axis = figure.subplots()
    for name, runs in errors.items():
        columns = list(zip(*runs, strict=True))
        means = [statistics.mean(column) for column in columns]
        bars = [mean_error(column)[1] if len(column) > 1 else 0.0 for column in columns]
        axis.errorbar(
            range(1, HORIZON + 1), means, bars, marker='o', capsize=3, ls='-' if name in VARIANTS else ':', label=name
        )
    axis.set(xlabel='time step of the roll-out', ylabel='error, mm', ylim=(0, None))
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=120)
