r"""A training run: its folder, its epochs, its progress bar, and the checkpoints to resume it from."""

from __future__ import annotations

import copy
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout
from tqdm import tqdm

from pyg_topomask.apps.runs.checkpoint import (
    BEST,
    LAST,
    differences,
    load_best,
    load_checkpoint,
    not_the_best,
    rng_state,
    save_checkpoint,
)
from pyg_topomask.apps.runs.devices import gather, rank
from pyg_topomask.apps.runs.tables import write_csv
from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.utils.files import remove_unfinished, write_atomically


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    r"""A block in which no other process writes to a folder, which is made if it is absent. Raises a :class:`ValueError` if
    another process trains there. File systems without locks are used without one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / '.lock', timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        accepted = 'folders where none does: wait for it, or give another --out'
        raise ArgumentError('out', f'{folder}, where another process trains', accepted) from error
    except (OSError, NotImplementedError):  # a file system without locks
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            lock.release()


def check_writable(folder: Path) -> None:
    r"""Raises a :class:`ValueError` unless a folder can be written to, or made."""
    folder = folder.absolute()
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        given = f'{folder}, but {nearest} is {"not writable" if nearest.is_dir() else "a file"}'
        raise ArgumentError('out', given, 'folders that can be written to')


def clear_run(folder: Path, files: Sequence[str]) -> None:
    r"""Removes an earlier run from a folder, by patterns of its files, and its subfolders if nothing else lies in them. Files
    are removed in the order of the patterns: that to resume from comes first, so that what a killed removal leaves is no run.
    """
    paths = [path for pattern in files for path in sorted(folder.glob(pattern))]
    if paths:
        print(f'replacing the run in {folder}', file=sys.stderr)
    for path in paths:
        path.unlink()
    for subfolder in {path.parent for path in paths} - {folder}:
        with suppress(OSError):  # there is more in it
            subfolder.rmdir()


Value = TypeVar('Value')

#: One epoch: numbers by the name of the column.
Row = dict[str, float]

#: The file that only finished runs have.
RESULT = 'result.json'

#: The share of the time of a run that its checkpoints may take.
SHARE = 0.02

#: What every run writes. :obj:`last.pt` stands before the others, because a run without it cannot be resumed.
FILES = (RESULT, LAST, 'config.yaml', 'metrics.csv', BEST)


@dataclass(eq=False)
class Run:
    r"""A training run in a folder. It may be killed at any moment, and a resumed run gives the same numbers as an uninterrupted
    run. It repeats the epochs since the last checkpoint. One is written at the end of an epoch, once 50 times the time that
    the one before took has passed.

    The folder contains the configuration (:obj:`config.yaml`), one row per epoch (:obj:`metrics.csv`), the checkpoint to
    resume from (:obj:`checkpoints/last.pt`), and the model of the best epoch (:obj:`checkpoints/best.pt`). At the end, it also
    contains the metrics of this model (:obj:`result.json`). A runner calls

    .. code-block:: python

        checkpoint = run.load(resume, num_epochs)
        with run.open(checkpoint):
            ...  # restore model, optimizer and random numbers from the checkpoint
            for epoch in range(len(run.history), num_epochs):
                run.history.append({'epoch': epoch, ...})
                run.save({'model': model.state_dict()}, optimizer=optimizer.state_dict())
            model.load_state_dict(run.load_best()['model'])
            run.finish(test(model), num_parameters)

    Lightning's :obj:`ModelCheckpoint` is not sufficient, because it does not store the states of random number generators.
    """

    folder: Path
    config: str  # in YAML
    metric: str  # the column of the metric that selects the best epoch
    maximize: bool = True  # whether larger values of the metric are better
    free: Collection[str] = ()  # options, or groups of options, that a run which replaces or resumes this one may change
    length: str = ''  # the option of the number of epochs, which only a resumed run may change
    files: Sequence[str] = ()  # patterns of additional files that the runner writes

    def __post_init__(self) -> None:
        self.last_file, self.best_file = self.folder / LAST, self.folder / BEST
        self.history: list[Row] = []
        self._loaded: list[object] | None = None
        self._unwritten: dict[str, Any] | None = None
        self._unwritten_best: dict[str, Any] | None = None
        self._due = -math.inf  # when the next checkpoint may be written

    @property
    def best(self) -> Row | None:
        r"""The first epoch with the best metric, or :obj:`None` while there is none or it is NaN."""
        validated = [row for row in self.history if not math.isnan(row.get(self.metric, math.nan))]
        sign = 1 if self.maximize else -1
        return max(validated, key=lambda row: sign * row[self.metric], default=None)

    def load(self, resume: bool, num_epochs: float = math.inf) -> dict[str, Any] | None:
        r"""Returns the checkpoint to resume from, or :obj:`None` to start anew, in which case :meth:`open` replaces an earlier
        run of the same configuration. It changes nothing. Raises a :class:`ValueError` if the folder has a run with another
        configuration, lacks the model of the best epoch of the run to resume, or cannot be written to, or if the run has more
        epochs than it is to have.
        """
        if rank() == 0:
            check_writable(self.folder)
        self._loaded = self._contents()
        checkpoint = None
        try:
            checkpoint = load_checkpoint(self.last_file)
        except FileNotFoundError:
            if resume and rank() == 0:
                print(f'no checkpoint in {self.folder}: starting with the first epoch', file=sys.stderr)
        except ValueError:
            if resume:
                raise
        free = (*self.free, self.length) if resume else self.free
        config, stored = None, self.folder / 'config.yaml'
        if checkpoint is not None:
            config = checkpoint['config']
        elif stored.exists() and (self.best_file.exists() or (self.folder / RESULT).exists()):
            config = stored.read_text(encoding='utf-8')
        changed = '' if config is None else '; '.join(differences(config, self.config, free).values())
        if changed and resume and checkpoint is not None:
            raise ValueError(f'cannot resume from {self.last_file}, which has another configuration: {changed}')
        if changed:
            given = f'{self.folder}, which has a run of another configuration: {changed}'
            tag = 'name_tag or ' if 'name_tag:' in self.config else ''
            raise ArgumentError('out', given, 'folders without one', f'give another {tag}--out, or remove that folder')
        if not resume or checkpoint is None:
            return None
        load_best(self.folder, self.config, free)  # of this epoch, or of one that a killed run repeats
        finished = len(checkpoint['history'])
        if finished > num_epochs:
            raise ArgumentError(self.length, num_epochs, f'{finished}, the epochs that the run has, and more')
        return checkpoint

    @contextmanager
    def open(self, checkpoint: dict[str, Any] | None = None) -> Iterator[None]:
        r"""A context in which no other run writes to the folder. All processes of a run enter it, and process 0 writes.

        Without a checkpoint to continue from, as :meth:`load` returns it, a previous run in the folder is removed. Raises a
        :class:`ValueError` if another run has the folder open, or has written to it since :meth:`load`.
        """
        self.history = [] if checkpoint is None else checkpoint['history']
        if rank() > 0:
            yield
            return
        with locked(self.folder):
            if self._loaded not in (None, self._contents()):
                given = f'{self.folder}, where another run has just trained'
                raise ArgumentError('out', given, 'folders without one', 'give another --out')
            remove_unfinished(self.folder)
            if checkpoint is None:
                clear_run(self.folder, (*FILES, *self.files))
            (self.folder / RESULT).unlink(missing_ok=True)
            self.last_file.parent.mkdir(exist_ok=True)
            self._write_metrics()
            write_atomically(self.folder / 'config.yaml', self.config.encode())
            try:
                yield
            finally:
                if self._unwritten is not None:  # an error, or Ctrl-C
                    self._write_metrics()

    def save(self, kept: dict[str, Any], **state: Any) -> None:
        r"""Writes :obj:`metrics.csv`, the best model if there is a new one, and the checkpoint to resume from, unless they
        would take more than :obj:`SHARE` of the time. What is not written now, a later call or :meth:`load_best` writes. All
        processes call this; process 0 writes.

        Both checkpoints hold what :obj:`kept` holds, the configuration (:obj:`config`) and the row of the best epoch
        (:obj:`best`). The one to resume from also holds :obj:`state`, such as that of the optimizer, the :obj:`history`, and
        the states of the random number generators of all processes (:obj:`rng`).
        """
        due = gather(time.monotonic() >= self._due)[0]
        self._unwritten = {**kept, **state, 'rng': rng_state()}
        if self.best is not None and self.best is self.history[-1]:
            self._unwritten_best = kept if due else copy.deepcopy(kept)  # training changes it
        if due:
            self._write()

    def _write(self) -> None:
        r"""Writes what :meth:`save` left unwritten. All processes call this; process 0 writes."""
        last, best = self._unwritten, self._unwritten_best
        self._unwritten = self._unwritten_best = None
        if last is None:
            return
        start = time.monotonic()
        states = gather(last['rng'])
        if rank() > 0:
            return
        self._write_metrics()
        shared = {'config': self.config, 'best': self.best}
        if best is not None:
            save_checkpoint(self.best_file, {**best, **shared})
        # Last, because a resumed run continues after the epochs of this file.
        save_checkpoint(self.last_file, {**last, **shared, 'history': self.history, 'rng': states})
        now = time.monotonic()
        self._due = now + (now - start) / SHARE

    def load_best(self) -> dict[str, Any]:
        r"""Returns the checkpoint of the best epoch, or of the last epoch if none was validated. All processes call this.
        Raises a :class:`ValueError` if it is missing or damaged, or another run has replaced it, where there are no locks.
        """
        self._write()
        # The files hold the row of process 0; that of other processes has other seconds.
        best = gather(self.best)[0]
        checkpoint = load_best(self.folder, self.config, (*self.free, self.length))
        if repr(checkpoint['best']) != repr(best):  # as text, in which NaN equals NaN
            path = self.best_file if self.best_file.exists() else self.last_file
            raise not_the_best(path, 'the model of another run')
        return checkpoint

    def finish(self, metrics: Row, parameters: int, memory: int | None = None) -> dict[str, Any]:
        r"""Writes :obj:`result.json`, and returns its content: the metrics of the model of the best epoch, the name of the one
        by which runs are compared (:obj:`metric`), the numbers of :obj:`parameters` and :obj:`epochs`, :obj:`best_epoch`,
        :obj:`seconds_per_epoch`, and the bytes of :obj:`memory`, if they are known. All processes call this; process 0 writes.
        """
        best = self.best
        if best is None and any(self.metric in row for row in self.history):
            warn(f'{self.metric}: got NaN in every epoch, so the last epoch stands for the best')
        tested = self.metric.replace('val_', 'test_', 1)
        result = {
            'metric': tested if tested in metrics else self.metric,
            **metrics,
            'parameters': parameters,
            'epochs': len(self.history),
            'best_epoch': len(self.history) - 1 if best is None else int(best['epoch']),
            'seconds_per_epoch': statistics.median(row['seconds'] for row in self.history),
            'memory': memory,
        }
        if rank() == 0:
            # JSON has no NaN, which metrics of nothing are, and no infinity.
            finite = {
                key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in result.items()
            }
            write_atomically(self.folder / RESULT, (json.dumps(finite, indent=1, allow_nan=False) + '\n').encode())
        return result

    def _contents(self) -> list[object]:
        r"""What changes if another run writes to the folder: each write makes a new file."""
        stats = [path.stat() if path.exists() else None for path in (self.last_file, self.folder / RESULT)]
        return [None if stat is None else (stat.st_ino, stat.st_mtime_ns) for stat in stats]

    def _write_metrics(self) -> None:
        # The whole file each time: which columns there are is certain only after the first validated epoch.
        if self.history:
            columns = list(dict.fromkeys(key for row in self.history for key in row))
            write_csv(self.folder / 'metrics.csv', self.history, columns)


def seconds_between() -> float:
    r"""Returns the least time between two states of a progress bar: in a file, where each is kept, a minute."""
    return 0.1 if sys.stderr.isatty() or 'ipykernel' in sys.modules else 60.0


def bar_of_graphs(graphs: Iterable[Value], label: str, count: int, shown: bool) -> Iterable[Value]:
    r"""Returns so many graphs with a progress bar, which is hidden for one graph."""
    return tqdm(graphs, label, count, unit='graph', mininterval=seconds_between(), disable=count == 1 or not shown)


class EpochBar(tqdm):
    r"""One bar over all batches of all epochs, on stderr, so that stdout holds only results."""

    def __init__(
        self, label: str, num_epochs: int, num_batches: int, finished: int = 0, disable: bool = False, leave: bool = True
    ) -> None:
        self.num_epochs = num_epochs
        total, initial = num_epochs * num_batches, finished * num_batches
        looks = {'unit': 'batch', 'dynamic_ncols': True, 'disable': disable, 'leave': leave}
        super().__init__(desc=label, total=total, initial=initial, mininterval=seconds_between(), **looks)

    def show(self, row: Mapping[str, float], *columns: str) -> None:
        r"""Shows the number of an epoch and those of the given metrics that it has."""
        metrics = {key: f'{row[key]:.4f}' for key in columns if key in row}
        text = {'epoch': f'{int(row["epoch"]) + 1}/{self.num_epochs}', **metrics}
        self.set_postfix(text, refresh=seconds_between() < 1)
