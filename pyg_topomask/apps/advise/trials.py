r"""Trainings of models with the same seeds and epochs, in which losers stop early, within a time."""

from __future__ import annotations

import csv
import gc
import json
import math
import signal
import statistics
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.graphgym.config import cfg

from pyg_topomask.apps.advise.candidates import Candidate
from pyg_topomask.apps.advise.report import tested
from pyg_topomask.apps.runs.checkpoint import differences
from pyg_topomask.apps.runs.run import RESULT
from pyg_topomask.apps.train.metrics import higher_is_better, metric_best
from pyg_topomask.apps.train.runner import train_seed
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.configuration import FREE_OPTIONS, load_config
from pyg_topomask.utils.files import write_atomically
from pyg_topomask.utils.garbage import frozen

#: The models that go on after a part of the epochs with the first seed, with a mask and without, and this part.
KEPT, PART = {True: 3, False: 2}, 3
#: The fewest epochs that are planned, and after which losers stop: earlier, warm-up and chance would choose. And the share of
#: the time that is planned.
FEWEST, PLANNED = 3, 0.9
#: The time that is asked for if there is too little, over that of the measured epochs, which vary on a busy machine.
MARGIN = 1.25
#: A model takes at most so many times as long as the first. If these times suffice, the others are not measured.
SLOWEST = 10
#: The file with the number of epochs, where time has decided it.
PLAN = 'plan.json'

Results = dict[str, dict[int, dict[str, Any]]]


@dataclass
class Trials:
    r"""Trains candidates around one configuration, with alternating keys and values that override it, in a folder. With the
    first seed, all train a third of the epochs, at least three. Then the best by validation go on, :obj:`KEPT` with a mask and
    without, because a verdict needs the best of each, also with further seeds.

    The first epoch of each model tells how long all takes. If that is too long, all have fewer epochs, and start again in
    another folder. Further seeds are not begun when the time is over. What an earlier call has trained is used to resume.
    """

    cfg_file: str | Path
    options: list[str]
    models: Sequence[Candidate]
    wanted: int
    minutes: float
    folder: Path
    resume: bool

    def __post_init__(self) -> None:
        self.options, self.runs, self.first = list(self.options), self.folder, int(cfg.seed)
        self.metric, self.maximize = metric_best(), higher_is_better(metric_best())
        self.planned = self.epochs = int(cfg.optim.max_epoch)
        self.results: Results = {}
        self.failures: dict[str, str] = {}
        self.kept: list[Candidate] = []
        self._begun: set[Path] = set()
        self._count = 0

    @property
    def seeds(self) -> list[int]:
        r"""The seeds with which the best models were trained."""
        return sorted({seed for model in self.kept for seed in self.results.get(model.name, {})})

    @frozen()
    def run(self) -> Results:
        r"""Trains, and returns the metrics of finished trainings by the name of the model and the seed."""
        self._end = time.perf_counter() + 60 * self.minutes
        kept = sum(min(count, sum(model.masked == masked for model in self.models)) for masked, count in KEPT.items())
        self._total = len(self.models) + self.wanted * kept
        self._plan()
        part = self._part(self.epochs)
        self._train(self.models, self.first, part)
        self.kept = [model for masked in (False, True) for model in self._best(masked, part)]
        self._train(self.kept, self.first, self.epochs)
        for seed in range(self.first + 1, self.first + self.wanted):
            if time.perf_counter() + self._seconds(seed) > self._end:
                break
            self._train(self.kept, seed, self.epochs)
        return self.results

    def of(self, masked: bool) -> Results:
        r"""Returns the results of the models that went on, with a mask or without, and have the most seeds."""
        names = [model.name for model in self.kept if model.masked == masked and model.name in self.results]
        most = max((len(self.results[name]) for name in names), default=0)
        return {name: self.results[name] for name in names if len(self.results[name]) == most}

    def _plan(self) -> None:
        r"""Chooses the number of epochs, from the first epoch of the models."""
        plan = self.folder / PLAN
        earlier = json.loads(plan.read_text()) if self.resume and plan.exists() else {}
        if earlier.get('planned') != self.planned:
            earlier = {'planned': self.planned, 'epochs': self._chosen_epochs()}
            write_atomically(plan, json.dumps(earlier).encode())
        if earlier['epochs'] < self.planned:
            self._shorten(earlier['epochs'])

    def _chosen_epochs(self) -> int:
        measured: dict[str, tuple[float, float]] = {}
        for model in self.models:
            begin = time.perf_counter()
            if self._train([model], self.first, 1, quiet=True):
                epoch = self.results[model.name][self.first]['seconds_per_epoch']
                measured[model.name] = (max(0.0, time.perf_counter() - begin - epoch), epoch)
            if len(measured) == 1 and SLOWEST * self._needed(self.planned, measured) < self._left():
                return self.planned
        lengths = range(self.planned, min(FEWEST, self.planned) - 1, -1)
        epochs = next((length for length in lengths if self._needed(length, measured) <= self._left()), None)
        if epochs is None:
            least = (60 * self.minutes - self._left() / PLANNED + self._needed(lengths[-1], measured) / PLANNED) / 60
            given = f'{self.minutes:g}, in which these data allow fewer than {lengths[-1]} epochs of each training'
            accepted = f'numbers from {math.ceil(MARGIN * least)}'
            remedy = 'or train less: fewer graphs, --seeds 2, or a smaller model, such as gt.dim_hidden 32 gnn.dim_inner 32'
            raise ArgumentError('minutes', given, accepted, remedy)
        return epochs

    def _shorten(self, epochs: int) -> None:
        self.results = {}
        load_config(self.cfg_file, self.options)
        warmup = int(cfg.optim.num_warmup_epochs)
        warmup = min(warmup, max(1, round(warmup * epochs / self.planned)))
        self.options += ['optim.max_epoch', str(epochs), 'optim.num_warmup_epochs', str(warmup)]
        self.runs, self.epochs = self.folder / f'{epochs}-epochs', epochs
        print(f'To end in {self.minutes:g} minutes, trainings have {epochs} of {self.planned} epochs.\n', flush=True)

    def _left(self) -> float:
        return PLANNED * (self._end - time.perf_counter())

    def _needed(self, epochs: int, measured: dict[str, tuple[float, float]]) -> float:
        r"""Returns the most seconds that trainings of so many epochs take, from those that an epoch of each model takes and
        those of its beginning. Models that were not measured count as those that were.
        """
        part, needed = self._part(epochs), 0.0
        for masked, count in KEPT.items():
            names = {model.name for model in self.models if model.masked == masked}
            times = sorted((value for name, value in measured.items() if name in names), key=sum, reverse=True)
            times = times or list(measured.values())
            times += times[-1:] * (len(names) - len(times))
            needed += sum(start + part * epoch for start, epoch in times)
            for start, epoch in times[:count]:
                needed += start + (epochs - part) * epoch + (self.wanted - 1) * (start + epochs * epoch)
        return needed

    def _part(self, epochs: int) -> int:
        r"""Returns the epochs of losers, after the last of which there is a validation."""
        period = int(cfg.train.eval_period)
        return min(epochs, period * math.ceil(max(epochs / PART, FEWEST) / period))

    def _seconds(self, seed: int) -> float:
        r"""Returns the seconds that trainings with another seed take, as those with the first."""
        missing = [model for model in self.kept if not (self.resume and (self._run(model, seed) / RESULT).exists())]
        results = [self.results[model.name][self.first] for model in missing if model.name not in self.failures]
        return sum(float(result['seconds_per_epoch'] * result['epochs']) for result in results)

    def late_gain(self, model: Candidate) -> float:
        r"""Returns how much the best validation of a model rose in the last third of its epochs, the mean over its seeds, and
        would rise at this rate in the epochs that time has cut. For metrics that are better if small, it is how much it falls.
        """
        third = max(1, self.epochs // 3)
        rises = [
            self._reached(model, seed, self.epochs) - self._reached(model, seed, self.epochs - third)
            for seed in self.results[model.name]
        ]
        return statistics.mean(rises) * (1 + (self.planned - self.epochs) / third)

    def _best(self, masked: bool, epochs: int) -> list[Candidate]:
        r"""Returns the best models by validation within so many epochs."""
        models = [model for model in self.models if model.masked == masked and model.name in self.results]
        return sorted(models, key=lambda model: self._reached(model, self.first, epochs), reverse=True)[: KEPT[masked]]

    def _reached(self, model: Candidate, seed: int, epochs: int) -> float:
        r"""Returns the best validation within so many epochs, with another sign if small is better."""
        sign = 1 if self.maximize else -1
        with open(self._run(model, seed) / 'metrics.csv', newline='', encoding='utf-8') as file:
            rows = list(csv.DictReader(file))[:epochs]
        values = [sign * float(row[f'val_{self.metric}']) for row in rows if row[f'val_{self.metric}']]
        return max((value for value in values if not math.isnan(value)), default=-math.inf)

    def _run(self, model: Candidate, seed: int) -> Path:
        return self.runs / model.folder / str(seed)

    def _train(self, models: Sequence[Candidate], seed: int, epochs: int, quiet: bool = False) -> bool:
        r"""Trains models until they have so many epochs, and returns whether all could be trained."""
        for model in models:
            self._count += not quiet
            if model.name in self.failures:
                continue
            load_config(self.cfg_file, [*self.options, *model.options])
            cfg.seed = seed
            run = self._run(model, seed)
            label = 'time of an epoch' if quiet else f'[{self._count}/{self._total}]'
            label += f' {model.name}, seed {seed}'
            _collect()
            result = self._earlier(run, epochs)
            try:
                if result is None:
                    with warnings.catch_warnings():
                        warnings.filterwarnings('ignore', message='edge_weight: got weights, which have no effect')
                        train_seed(run, self.resume or run in self._begun, label, epochs)
                    result = json.loads((run / RESULT).read_text())
                self._begun.add(run)
            except (FloatingPointError, torch.OutOfMemoryError, ArgumentError) as error:
                if not model.masked and not isinstance(error, FloatingPointError):
                    raise  # of the configuration, which all models share
                self.failures[model.name] = ' '.join(str(error).split())
                if seed == self.first:
                    self.results.pop(model.name, None)
                print(f'{label}: {self.failures[model.name]}', file=sys.stderr)
                continue
            for split in ('val', 'test'):
                if result.get(f'{split}_{self.metric}', 0.0) is None:
                    given = f'a {split} split in which {self.metric} is not defined'
                    remedy = 'give more data, or another metric_best'
                    raise ArgumentError('data', given, 'splits with labels of each kind', remedy)
            self.results.setdefault(model.name, {})[seed] = result
            value = f'{result[f"val_{self.metric}"]:.4f}, test {tested(result, self.metric):.4f}'
            after = f'after {result["epochs"]} of {self.epochs} epochs, ' * (result['epochs'] < self.epochs)
            if not quiet:
                print(f'{label}: {after}validation {self.metric} {value}', file=sys.stderr)
        return all(model.name not in self.failures for model in models)

    def _earlier(self, run: Path, epochs: int) -> dict[str, Any] | None:
        r"""Returns the result of a training that has so many epochs. Raises an error if an earlier call had other options or
        data, also fewer epochs: models that went on would have been trained in another way than new ones.
        """
        config = run / 'config.yaml'
        if config.exists() and (changed := differences(config.read_text(encoding='utf-8'), cfg.dump(), FREE_OPTIONS)):
            given = f'{self.folder}, where an earlier call has trained otherwise: {"; ".join(changed.values())}'
            raise ArgumentError('out', given, 'folders without one', 'repeat those options, or give another --out')
        if not (self.resume or run in self._begun) or not (run / RESULT).exists():
            return None
        result: dict[str, Any] = json.loads((run / RESULT).read_text())
        return result if result['epochs'] >= epochs else None


def _collect() -> None:
    r"""Frees trainers and their models, which refer to each other. Ctrl-C waits: their finalizers would swallow it."""
    if threading.current_thread() is not threading.main_thread():  # others get no signals, and may not handle them
        gc.collect()
        return
    pressed: list[object] = []
    handler = signal.signal(signal.SIGINT, lambda *_: pressed.append(None))
    gc.collect()
    signal.signal(signal.SIGINT, handler)
    if pressed:
        raise KeyboardInterrupt


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
            'epochs': min((run['epochs'] for run in runs), default=None),
            'parameters': runs[0]['parameters'] if runs else None,
            'seconds': [run['seconds_per_epoch'] * run['epochs'] for run in runs],
            'memory': [run['memory'] for run in runs],
        }
