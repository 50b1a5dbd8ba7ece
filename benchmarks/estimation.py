r"""How well walks estimate a mask, how sparse they leave it, and what that costs: App. E, Fig. 3 and 7 of the GRF paper."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.linalg import expm
from torch import Tensor
from tqdm import tqdm

from benchmarks.harness import new_figure, write_table
from pyg_topomask.apps.diagnostics import measured_entries
from pyg_topomask.apps.runs.compare import mean_error, verdict
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.walks.steps import SAMPLERS

__all__ = ['run']

SIGMA, WALKS, P_HALT, TRIALS = 0.5, 4, 0.5, 100
# The modulation falls as 0.125^k / k!: what is left out is below the rounding error.
MAX_LENGTH = 12
NODES, PROBABILITY = 100, 0.5
# Of Fig. 3 and 7; walks of more hops than these occur once in 10^12.
CHANNELS, FEATURES, SEEDS, FLOP_MAX_LENGTH, FLOP_NODES = 8, 8, 10, 40, 64


def run(quick: bool, folder: Path) -> None:
    _run_estimation(quick, folder)
    _run_flops(quick, folder)


@dataclass(frozen=True)
class Setting:
    r"""A kind of random graph, and how its nodes are walked from."""

    sweep: str
    nodes: int
    probability: float
    sampler: str


@dataclass(frozen=True)
class Outcome:
    r"""The relative error and the features per row of every trial."""

    errors: list[float]
    counts: list[float]
    nodes: int

    @property
    def error(self) -> tuple[float, float]:
        return mean_error(self.errors)

    @property
    def entries(self) -> tuple[float, float]:
        return mean_error(self.counts)

    @property
    def share(self) -> tuple[float, float]:
        return mean_error([count / self.nodes for count in self.counts])


def _run_estimation(quick: bool, folder: Path) -> None:
    trials = 5 if quick else TRIALS
    probabilities = (0.1, 0.9) if quick else (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    sizes = (25, 50, 100) if quick else (25, 50, 100, 200, 400, 800)
    points = [('edge probability', NODES, probability) for probability in probabilities]
    points += [('nodes', size, PROBABILITY) for size in sizes]
    outcomes: dict[Setting, Outcome] = {}
    for sweep, nodes, probability in tqdm(points, desc='estimation'):
        outcomes.update(_measure(sweep, nodes, probability, trials))
    rows = [
        {
            'sweep': setting.sweep,
            'nodes': setting.nodes,
            'edge probability': setting.probability,
            'sampler': setting.sampler,
            'relative error': '{:.4f} ± {:.4f}'.format(*outcome.error),
            'share of nonzero features': '{:.5f} ± {:.5f}'.format(*outcome.share),
            'features per row': '{:.3f} ± {:.3f}'.format(*outcome.entries),
        }
        for setting, outcome in outcomes.items()
    ]
    note = (
        f'The heat kernel exp(sigma^2 W), sigma = {SIGMA}, W_ij = 1 / sqrt(d_i d_j), on Erdos-Renyi graphs, {WALKS} walks per '
        f'node, one ensemble, p_halt = {P_HALT} (which App. E does not state), at most {MAX_LENGTH} hops. Relative error is '
        f'||estimate - exact||_F / ||exact||_F against scipy.linalg.expm. {trials} trials, each with a graph and walks of its '
        f'own; the samplers of a trial share its graph. Mean ± standard error; a difference below two standard errors is "not '
        f'distinguishable".\n\n{_trends(outcomes)}'
    )
    write_table('estimation', 'Error and sparsity of graph random features (GRF paper, Fig. 8 and 9)', note, rows, folder)
    _plot_estimation(outcomes, folder / 'estimation.png')


def _measure(sweep: str, nodes: int, probability: float, trials: int) -> dict[Setting, Outcome]:
    modulation = torch.tensor([(SIGMA**2 / 2) ** k / math.factorial(k) for k in range(MAX_LENGTH + 1)])
    masks = {name: GRFMask(1, WALKS, P_HALT, MAX_LENGTH, modulation, sampler=name) for name in SAMPLERS}
    outcomes = {Setting(sweep, nodes, probability, name): Outcome([], [], nodes) for name in SAMPLERS}
    for trial in range(trials):
        generator = torch.Generator().manual_seed(trial)
        adjacency = _erdos_renyi(nodes, probability, generator)
        exact = _heat_kernel(adjacency)
        graph = Graph.from_tensors(adjacency.nonzero().t().contiguous(), nodes)
        for setting, outcome in outcomes.items():
            state = masks[setting.sampler].prepare(graph, generator)
            features = torch.zeros(nodes, nodes, dtype=torch.float64)
            pattern = state.query.pattern
            features[pattern.row.long(), pattern.col.long()] = state.query.values(modulation.unsqueeze(0))[0].double()
            estimate = (features @ features.t()).numpy()
            outcome.errors.append(float(np.linalg.norm(estimate - exact) / np.linalg.norm(exact)))
            outcome.counts.append(pattern.nnz / nodes)
    return outcomes


def _erdos_renyi(nodes: int, probability: float, generator: torch.Generator) -> Tensor:
    chosen = (torch.rand(nodes, nodes, generator=generator) < probability).triu(1)
    return chosen | chosen.t()


def _heat_kernel(adjacency: Tensor) -> np.ndarray[Any, Any]:
    weight = adjacency.double().numpy()
    scale = np.divide(1.0, np.sqrt(weight.sum(1)), out=np.zeros(len(weight)), where=weight.any(1))
    kernel: np.ndarray[Any, Any] = expm(SIGMA**2 * scale[:, None] * weight * scale)
    return kernel


def _trends(outcomes: dict[Setting, Outcome]) -> str:
    iid = {
        sweep: [
            (setting, outcome) for setting, outcome in outcomes.items() if (setting.sweep, setting.sampler) == (sweep, 'iid')
        ]
        for sweep in ('edge probability', 'nodes')
    }
    (sparse, first), (dense, last) = iid['edge probability'][0], iid['edge probability'][-1]
    (small, little), (half, before), (large, much) = (iid['nodes'][place] for place in (0, -2, -1))
    slope = math.log(much.share[0] / before.share[0]) / math.log(large.nodes / half.nodes)
    samplers = [
        f'{setting.sampler} {_verdict(*mean_error([x - y for x, y in zip(outcome.errors, much.errors, strict=True)]))}'
        for setting, outcome in outcomes.items()
        if (setting.sweep, setting.nodes) == ('nodes', large.nodes) and setting.sampler != 'iid'
    ]
    return (
        f'Against the trends that the paper states, for independent walkers. "The error becomes a little worse for denser '
        f'graphs": from p = {sparse.probability} to {dense.probability} it goes {_change(first.error, last.error)}; the '
        f'features per row go {_change(first.entries, last.entries)}. "It grows slightly with N and plateaus": from N = '
        f'{small.nodes} to {large.nodes} it goes {_change(little.error, much.error)}; with the last doubling '
        f'{_change(before.error, much.error)}. "Sparsity falls as 1/N": with the last doubling the share of nonzero features '
        f'falls as N^{slope:.3f}. The error of the other samplers at N = {large.nodes}, minus that of independent walkers, '
        f'paired by trial: {"; ".join(samplers)}.'
    )


def _change(first: tuple[float, float], last: tuple[float, float]) -> str:
    gap = _verdict(last[0] - first[0], math.hypot(first[1], last[1]))
    return f'from {first[0]:.4f} ± {first[1]:.4f} to {last[0]:.4f} ± {last[1]:.4f}, {gap}'


def _verdict(gap: float, error: float) -> str:
    return f'{gap:+.4f} ± {error:.4f} ({verdict(gap, error, ("larger", "smaller"))})'


def _plot_estimation(outcomes: dict[Setting, Outcome], path: Path) -> None:
    figure = new_figure(10, 7)
    axes = figure.subplots(2, 2)
    for line, sweep in zip(axes, ('edge probability', 'nodes'), strict=True):
        for axis, key, title in zip(line, ('error', 'share'), ('relative error', 'share of nonzero features'), strict=True):
            for name in SAMPLERS:
                points = [(s, o) for s, o in outcomes.items() if s.sweep == sweep and s.sampler == name]
                x = [setting.probability if sweep == 'edge probability' else setting.nodes for setting, _ in points]
                means, errors = zip(*(getattr(outcome, key) for _, outcome in points), strict=True)
                axis.errorbar(x, means, yerr=errors, marker='o', capsize=3, label=name)
            axis.set(title=f'{title} against {sweep}', xlabel=sweep)
            axis.grid(alpha=0.3)
        if sweep == 'nodes':
            line[0].set_xscale('log')
            line[1].set(xscale='log', yscale='log')
            for axis in line:
                axis.set_xticks(x, x)
                axis.minorticks_off()
    axes[0, 0].legend()
    figure.savefig(path, dpi=120)


@dataclass(frozen=True)
class Count:
    r"""What walks leave: features, pairs of features that meet, and entries of the mask."""

    features: int
    pairs: int
    entries: int


def _softmax_flops(nodes: int) -> float:
    # Scores, exponentials, their sums, values, division.
    return nodes**2 * (2 * CHANNELS + 1 + 1 + 2 * CHANNELS) + nodes * CHANNELS


def _linear_flops(nodes: int) -> float:
    # ReLU, keys with values, keys alone, queries with both, division.
    return nodes * FEATURES * (2 + 2 * CHANNELS + 1 + 2 * (CHANNELS + 1)) + nodes * CHANNELS


def _feature_flops(nodes: int, count: Count) -> float:
    # Algorithm 1: as linear attention, but for every graph feature, which also multiplies queries and keys.
    return 2 * nodes * FEATURES + count.features * FEATURES * (2 + 2 * CHANNELS + 1 + 2 * (CHANNELS + 1)) + nodes * CHANNELS


def _edge_flops(nodes: int, count: Count) -> float:
    # The entries of the mask; at each of them a score, times the mask, its sum, values; division.
    scores = count.entries * (2 * FEATURES + 1 + 1 + 2 * CHANNELS)
    return 2 * nodes * FEATURES + 2 * count.pairs + scores + nodes * CHANNELS


def _count(nodes: int, num_walks: int, seed: int) -> Count:
    node = torch.arange(nodes - 1)
    graph = Graph.from_tensors(torch.stack([torch.cat([node, node + 1]), torch.cat([node + 1, node])]), nodes)
    mask = GRFMask(num_walks=num_walks, p_halt=P_HALT, max_walk_length=FLOP_MAX_LENGTH, seed=seed)
    state, entries = mask.prepare(graph), measured_entries(mask, graph)
    return Count(state.query.pattern.nnz, state.num_pairs, int(entries.mask.sum()))


def _run_flops(quick: bool, folder: Path) -> None:
    sizes = [2**exponent for exponent in range(4, 9 if quick else 16)]
    walks = [2**exponent for exponent in range(5 if quick else 11)]
    seeds = 3 if quick else SEEDS
    points = [('nodes', size, WALKS) for size in sizes] + [('walks', FLOP_NODES, number) for number in walks]
    rows: list[dict[str, Any]] = []
    for sweep, nodes, num_walks in tqdm(points, desc='flops'):
        counts = [_count(nodes, num_walks, seed) for seed in range(seeds)]
        by_features = mean_error([_feature_flops(nodes, count) for count in counts])
        by_edges = mean_error([_edge_flops(nodes, count) for count in counts])
        rows.append(
            {
                'sweep': sweep,
                'nodes': nodes,
                'walks': num_walks,
                'softmax': _softmax_flops(nodes),
                'linear': _linear_flops(nodes),
                'GRF, features': by_features[0],
                'GRF, features, standard error': by_features[1],
                'GRF, edges': by_edges[0],
                'GRF, edges, standard error': by_edges[1],
                'GRF, features / linear': by_features[0] / _linear_flops(nodes),
                'GRF, edges / linear': by_edges[0] / _linear_flops(nodes),
                'features per row': sum(count.features for count in counts) / seeds / nodes,
            }
        )
    note = (
        f'Counted, not timed: a multiplication with an addition counts two, an exponential, comparison or division one. 1-D '
        f'grids, p_halt = {P_HALT}, d = {CHANNELS} channels, m = {FEATURES} ReLU features; the entries are those of walks '
        f'drawn with {seeds} seeds (mean and standard error). Drawing walks is not counted: it happens once, before training. '
        f'"GRF, features" is Algorithm 1 of the paper; "GRF, edges" forms the sparse mask and attends along its entries, the '
        f'other exact route of this package.\n\n{_flop_trends(rows)}'
    )
    write_table('flops', 'Operations of masked attention (GRF paper, Fig. 3 and 7)', note, rows, folder)
    _plot_flops(rows, folder / 'flops.png')


def _flop_trends(rows: list[dict[str, Any]]) -> str:
    by_nodes, by_walks = ([row for row in rows if row['sweep'] == sweep] for sweep in ('nodes', 'walks'))
    exponents = {
        name: math.log2(by_nodes[-1][name] / by_nodes[-2][name])
        for name in ('softmax', 'linear', 'GRF, features', 'GRF, edges')
    }
    cheaper = {
        name: next((str(row['nodes']) for row in by_nodes if row[name] < row['softmax']), f'beyond {by_nodes[-1]["nodes"]}')
        for name in ('linear', 'GRF, features', 'GRF, edges')
    }
    growth = {name: by_walks[-1][name] / by_walks[0][name] for name in ('GRF, features', 'GRF, edges')}
    steepest = max(later['GRF, features'] / earlier['GRF, features'] for earlier, later in pairwise(by_walks))
    return (
        f'Fig. 3, "linear in N": with the last doubling of N the operations grow as N to the power of '
        f'{", ".join(f"{value:.3f} ({name})" for name, value in exponents.items())}. Masking multiplies those of linear '
        f'attention by {by_nodes[-1]["GRF, features / linear"]:.2f}, the number of features per row but for what is done once '
        f'a node; along the entries, by {by_nodes[-1]["GRF, edges / linear"]:.2f}. Fewer than softmax attention from N = '
        f'{", ".join(f"{nodes} ({name})" for name, nodes in cheaper.items())} on. '
        f'Fig. 7, "at most linear in n" at N = {FLOP_NODES}: {by_walks[-1]["walks"]} walks take '
        f'{growth["GRF, features"]:.1f} times the operations of one by features ({growth["GRF, edges"]:.1f} by edges), and no '
        f'doubling of n more than {steepest:.2f} times those before.'
    )


def _plot_flops(rows: list[dict[str, Any]], path: Path) -> None:
    figure = new_figure(10, 4)
    axes = figure.subplots(1, 2)
    for axis, sweep in zip(axes, ('nodes', 'walks'), strict=True):
        points = [row for row in rows if row['sweep'] == sweep]
        for name in ('softmax', 'linear', 'GRF, features', 'GRF, edges'):
            errors = [row.get(f'{name}, standard error', 0.0) for row in points]
            axis.errorbar([row[sweep] for row in points], [row[name] for row in points], yerr=errors, marker='o', label=name)
        axis.set(title=f'operations against {sweep}', xlabel=sweep, xscale='log', yscale='log')
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(path, dpi=120)
