r"""Trainings of models with the same seeds and epochs, in which losers get one seed only."""

from __future__ import annotations

import gc
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric.graphgym.config import cfg

from pyg_topomask.apps.advise.candidates import Candidate
from pyg_topomask.apps.advise.verdict import best_model, tested
from pyg_topomask.apps.runs.checkpoint import differences
from pyg_topomask.apps.runs.run import RESULT
from pyg_topomask.apps.train.metrics import higher_is_better, metric_best
from pyg_topomask.apps.train.runner import train_seed
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.configuration import FREE_OPTIONS, load_config

#: The models that go on after the first seed, with a mask and without.
KEPT = {True: 3, False: 2}

Results = dict[str, dict[int, dict[str, Any]]]


class Trials:
    r"""Trains candidates around one configuration. The first seed trains all. Then the best by validation go on, :obj:`KEPT`
    with a mask and without, because a verdict needs the best of each.

    Args:
        cfg_file (str or Path): The configuration.
        options (list): Alternating keys and values that override it.
        models (list): The candidates.
        seeds (int): The number of seeds.
        folder (Path): The folder of the trainings.
        resume (bool): Whether to use what an earlier call has trained in it.
    """

    def __init__(
        self, cfg_file: str | Path, options: Sequence[str], models: Sequence[Candidate], seeds: int, folder: Path, resume: bool
    ) -> None:
        self.cfg_file, self.options, self.models, self.folder, self.resume = cfg_file, options, models, folder, resume
        self.metric, self.maximize = metric_best(), higher_is_better(metric_best())
        self.first, self.seeds = int(cfg.seed), seeds
        self.results: Results = {}
        self.failures: dict[str, str] = {}
        self._count = 0

    def run(self) -> Results:
        r"""Trains, and returns the metrics of finished trainings by the name of the model and the seed."""
        self._total = len(self.models) + (self.seeds - 1) * sum(
            min(kept, sum(model.masked == masked for model in self.models)) for masked, kept in KEPT.items()
        )
        self._train(self.models, self.first)
        if self.seeds > 1:
            kept = [model for masked in (False, True) for model in self._best(masked)]
            for seed in range(self.first + 1, self.first + self.seeds):
                self._train(kept, seed)
        return self.results

    def of(self, masked: bool) -> Results:
        r"""Returns the results of the models with a mask, or of those without, that have the most seeds."""
        names = [model.name for model in self.models if model.masked == masked and model.name in self.results]
        most = max((len(self.results[name]) for name in names), default=0)
        return {name: self.results[name] for name in names if len(self.results[name]) == most}

    def _best(self, masked: bool) -> list[Candidate]:
        left = {model.name: model for model in self.models if model.masked == masked and model.name in self.results}
        kept: list[Candidate] = []
        while left and len(kept) < KEPT[masked]:
            name = best_model({name: self.results[name] for name in left}, self.metric, self.maximize)
            kept.append(left.pop(name))
        return kept

    def _train(self, models: Sequence[Candidate], seed: int) -> None:
        for model in models:
            self._count += 1
            if model.name in self.failures:
                continue
            load_config(self.cfg_file, [*self.options, *model.options])
            cfg.seed = seed
            run = self.folder / model.folder / str(seed)
            label = f'[{self._count}/{self._total}] {model.name}, seed {seed}'
            gc.collect()  # trainers and their models refer to each other
            result = self._earlier(run)
            try:
                if result is None:
                    with warnings.catch_warnings():
                        warnings.filterwarnings('ignore', message='edge_weight: got weights, which have no effect')
                        train_seed(run, self.resume, label)
                    result = json.loads((run / RESULT).read_text())
            except (FloatingPointError, torch.OutOfMemoryError, ArgumentError) as error:
                if not model.masked and not isinstance(error, FloatingPointError):
                    raise  # of the configuration, which all models share
                self.failures[model.name] = ' '.join(str(error).split())
                print(f'{label}: {self.failures[model.name]}', file=sys.stderr)
                continue
            for split in ('val', 'test'):
                if result.get(f'{split}_{self.metric}', 0.0) is None:
                    given = f'a {split} split in which {self.metric} is not defined'
                    raise ArgumentError(
                        'data', given, 'splits with labels of each kind', 'give more data, or another metric_best'
                    )
            self.results.setdefault(model.name, {})[seed] = result
            value = f'{result[f"val_{self.metric}"]:.4f}, test {tested(result, self.metric):.4f}'
            print(f'{label}: validation {self.metric} {value}', file=sys.stderr)

    def _earlier(self, run: Path) -> dict[str, Any] | None:
        r"""Returns the result of a training that an earlier call has finished. Raises an error if an earlier call had other
        options or data, also fewer epochs: models that went on would have been trained in another way than new ones.
        """
        config = run / 'config.yaml'
        if config.exists() and (changed := differences(config.read_text(encoding='utf-8'), cfg.dump(), FREE_OPTIONS)):
            given = f'{self.folder}, where an earlier call has trained otherwise: {"; ".join(changed.values())}'
            raise ArgumentError('out', given, 'folders without one', 'repeat those options, or give another --out')
        if not self.resume or not (run / RESULT).exists():
            return None
        result: dict[str, Any] = json.loads((run / RESULT).read_text())
        return result


def describe(trials: Trials) -> Iterator[dict[str, Any]]:
    r"""Yields what the trainings of each model showed, in the order of the models."""
    for model in trials.models:
        runs = list(trials.results.get(model.name, {}).values())
        yield {
            'model': model.name,
            'masked': model.masked,
            'options': list(model.options),
            'why': model.why,
            'failure': trials.failures.get(model.name),
            'seeds': list(trials.results.get(model.name, {})),
            'validation': [run[f'val_{trials.metric}'] for run in runs],
            'test': [tested(run, trials.metric) for run in runs],
            'parameters': runs[0]['parameters'] if runs else None,
            'seconds': [run['seconds_per_epoch'] * run['epochs'] for run in runs],
            'memory': [run['memory'] for run in runs],
        }
