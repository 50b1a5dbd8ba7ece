r"""The runner: trains recommenders, stops early, checkpoints, resumes, and tests."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import yaml  # type: ignore[import-untyped]
from torch import Tensor
from torch_geometric import seed_everything

from pyg_topomask.checks import check_above_zero, check_not_negative, check_whole
from pyg_topomask.recommend.config import load_config
from pyg_topomask.recommend.datasets import INTERACTION_DATASETS, load_interaction_dataset
from pyg_topomask.recommend.interactions import InteractionDataset, load_interactions
from pyg_topomask.recommend.metrics import evaluate, popularity_groups
from pyg_topomask.recommend.models import RECOMMENDERS, Recommender, build_recommender
from pyg_topomask.runs.checkpoint import set_rng_state
from pyg_topomask.runs.devices import connect, find_device, num_processes
from pyg_topomask.runs.folder import write_atomically
from pyg_topomask.runs.progress import EpochBar
from pyg_topomask.runs.run import Row, Run

__all__ = ['Training', 'embed', 'load_dataset', 'load_weights', 'train']

#: Options that say where and how long to run rather than what; a run may be resumed with others.
FREE_OPTIONS = (
    'out_dir',
    'recommend.baselines',
    'recommend.device',
    'recommend.dir',
    'recommend.max_epoch',
    'recommend.progress',
)


def load_dataset(own: Any) -> InteractionDataset:
    r"""Loads the data set that the options name.

    Args:
        own (CfgNode): The group :obj:`recommend` of the options.

    Raises:
        ValueError: If the folder or the data set is not there.
    """
    known = [*INTERACTION_DATASETS, 'files']
    if own.dataset not in known:
        raise ValueError(f'recommend.dataset: got {own.dataset!r}; accepted are {", ".join(known)}')
    if not own.dir or not Path(own.dir).is_dir():
        raise ValueError(f'recommend.dir: got {own.dir!r}; accepted is the folder of the interaction files')
    if own.dataset != 'files':
        return load_interaction_dataset(own.dataset, own.dir, own.val_ratio, own.split_seed)
    if not own.files.train:
        raise ValueError('recommend.files.train: got no file; accepted is a list of names in recommend.dir')
    train, val, test = ([Path(own.dir) / name for name in own.files[part]] or None for part in ('train', 'val', 'test'))
    assert train is not None
    return load_interactions(train, val, test, own.files.layout, val_ratio=own.val_ratio, seed=own.split_seed)


class Training:
    r"""The training of one model with one seed, which can be left after any epoch and gone on with.

    Args:
        config (CfgNode): The options.
        name (str): The model.
        seed (int): The seed.
        dataset (InteractionDataset): The data set.
        run_dir (Path): Where to write.

    Raises:
        ValueError: If an option is out of its range.
    """

    def __init__(self, config: Any, name: str, seed: int, dataset: InteractionDataset, run_dir: Path) -> None:
        self.own, self.name, self.seed, self.dataset = config.recommend, name, seed, dataset
        if self.own.k > dataset.num_items:
            raise ValueError(f'recommend.k: got {self.own.k}; accepted are 1 to {dataset.num_items}, the size of the catalogue')
        if dataset.test.size(1) == 0:
            option, given = ('files.test', self.own.files.test) if self.own.dataset == 'files' else ('dir', self.own.dir)
            raise ValueError(
                f'recommend.{option}: got {given!r} with no test interaction left; accepted are test interactions that neither '
                f'training nor validation holds'
            )
        config = config.clone()
        config.seed = seed
        config.recommend.model = name
        config.recommend.baselines = []
        unused = [f'recommend.{model}' for model in RECOMMENDERS if model != name]  # the settings of other models
        free = [*FREE_OPTIONS, *unused]
        self.record = Run(run_dir, config.dump(), f'val_recall@{self.own.k}', free=free, files=['result.json'])
        self.device = find_device('recommend.device', self.own.device)
        seed_everything(seed)
        settings = self.own.get(name, {})
        self.model: Recommender = build_recommender(name, dataset, self.own.embedding_dim, settings).to(self.device)
        check_above_zero(**{f'recommend.{name}.lr': settings['lr']})
        check_not_negative(**{f'recommend.{name}.weight_decay': settings['weight_decay']})
        self.optimizer = torch.optim.Adam(
            self.model.encoder.parameters(), settings['lr'], weight_decay=settings['weight_decay']
        )

    def is_finished(self) -> bool:
        r"""Returns whether all epochs are done, or the last validations brought nothing."""
        history, best, metric = self.record.history, self.record.best, self.record.metric
        stale = sum(metric in row and best is not None and row['epoch'] > best['epoch'] for row in history)
        return bool(len(history) >= self.own.max_epoch or 0 < self.own.patience <= stale)

    def run(self, resume: bool = False) -> Row:
        r"""Trains to the end and returns the metrics of the best model on the test interactions.

        Args:
            resume (bool, optional): Whether to go on after the last finished epoch. (default: :obj:`False`)

        Raises:
            ValueError: If another process trains in the folder, or the checkpoint there is of another configuration or data.
        """
        checkpoint = self._load() if resume else None
        with self.record.open(checkpoint):
            if checkpoint is not None:
                self.optimizer.load_state_dict(checkpoint['optimizer'])
                set_rng_state(checkpoint['rng'][0])
            batches = math.ceil(self.dataset.train.size(1) / self.own.batch_size)
            finished = len(self.record.history)
            with EpochBar(self.name, self.own.max_epoch, batches, finished, disable=not self.own.progress) as bar:
                while not self.is_finished():
                    self._epoch(bar)
            self.model.encoder.load_state_dict(self.record.load_best()['model'])
            result = self._test()
            # JSON has no NaN, the metrics of a group of items without a test interaction.
            finite = {key: None if math.isnan(value) else value for key, value in result.items()}
            text = json.dumps(finite, indent=1, allow_nan=False) + '\n'
            write_atomically(self.record.folder / 'result.json', text.encode())
            return result

    def _load(self) -> dict[str, Any] | None:
        r"""Returns the checkpoint to continue from, if it is of the same users, items and interactions."""
        checkpoint = self.record.load()
        if checkpoint is not None:
            last = self.record.last_file
            load_weights(self.model.encoder, checkpoint, last, self.dataset, self.own.dir)
            if checkpoint['interactions'] != self.dataset.interactions_hash:
                raise ValueError(
                    f'recommend.dir: got {self.own.dir!r}; accepted are the interactions that {last} was trained on'
                )
        return checkpoint

    def _epoch(self, bar: EpochBar) -> None:
        start = time.perf_counter()
        epoch = len(self.record.history)
        row: Row = {'epoch': epoch, 'loss': self._optimize(bar), 'seconds': time.perf_counter() - start}
        last = epoch + 1 == self.own.max_epoch
        if self.dataset.val.size(1) and (last or (epoch + 1) % self.own.eval_period == 0):
            row |= {f'val_{key}': value for key, value in self._evaluate(self.dataset.val, [self.dataset.train]).items()}
        self.record.history.append(row)
        bar.show(row, 'loss', self.record.metric)
        self.record.save(
            {'users and items': self.dataset.fingerprint, 'model': self.model.encoder.state_dict()},
            interactions=self.dataset.interactions_hash,
            optimizer=self.optimizer.state_dict(),
        )

    def _optimize(self, bar: EpochBar) -> float:
        self.model.encoder.train()
        self.model.objective.start_epoch(self.model.data)
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for users, items in self._batches():
            self.optimizer.zero_grad()
            loss = self.model.objective(self.model.encoder, self.model.data, users, items)
            loss.backward()
            self.optimizer.step()
            total += loss.detach() * len(users)
            bar.update()
        mean = float(total) / self.dataset.train.size(1)
        if not math.isfinite(mean):
            raise FloatingPointError(f'{self.name}: the loss of epoch {len(self.record.history)} is {mean}; try a lower lr')
        return mean

    def _batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(self.dataset.train.size(1))
        for users, items in (part.unbind() for part in self.dataset.train[:, order].split(self.own.batch_size, 1)):
            yield users.to(self.device), items.to(self.device)

    def _evaluate(self, targets: Tensor, seen: Sequence[Tensor], **options: Any) -> Row:
        users, items = embed(self.model)
        return evaluate(users, items, targets.to(self.device), torch.cat(list(seen), 1).to(self.device), self.own.k, **options)

    def _test(self) -> Row:
        groups, names = popularity_groups(self.dataset.train, self.dataset.num_items)
        seen = [self.dataset.train, self.dataset.val]
        result = self._evaluate(self.dataset.test, seen, groups=(groups.to(self.device), names))
        result = {f'test_{key}': value for key, value in result.items()}
        history, best = self.record.history, self.record.best
        if best is not None:
            result |= {key: value for key, value in best.items() if key.startswith('val_')}
        seconds = [row['seconds'] for row in history]
        return {
            **result,
            'epochs': len(history),
            'best_epoch': len(history) - 1 if best is None else int(best['epoch']),
            'seconds_per_epoch': statistics.median(seconds),
        }


def load_weights(
    encoder: torch.nn.Module, checkpoint: dict[str, Any], path: Path, dataset: InteractionDataset, folder: str
) -> None:
    r"""Puts the weights of a checkpoint into an encoder, if they belong to the users and items of the data set.

    Args:
        encoder (torch.nn.Module): The encoder.
        checkpoint (dict): The checkpoint.
        path (Path): Its file, for the error message.
        dataset (InteractionDataset): The data set.
        folder (str): Its folder, for the error message.

    Raises:
        ValueError: If the checkpoint is of other users or items.
    """
    own, state = dataset.fingerprint, encoder.state_dict()
    same = checkpoint['users and items'] == own
    if not same or any(name in state and state[name].shape != value.shape for name, value in checkpoint['model'].items()):
        trained = yaml.safe_load(checkpoint['config'])['recommend']['dir']
        raise ValueError(
            f'recommend.dir: got {folder!r} with {dataset}; accepted are the users and items that {path} was trained on, '
            f'those of {trained!r}'
        )
    encoder.load_state_dict(checkpoint['model'])


@torch.no_grad()
def embed(model: Recommender) -> tuple[Tensor, Tensor]:
    r"""Returns the embeddings of users and items, of the encoder in evaluation mode.

    Args:
        model (Recommender): The model.
    """
    users, items = model.encoder.eval()(model.data)
    return users, items


def train(
    cfg_file: str | Path,
    options: Sequence[str] = (),
    resume: bool = False,
    repeat: int = 1,
    out: str | Path | None = None,
) -> dict[str, list[Row]]:
    r"""Trains the model that a YAML describes, and the baselines that it names, and prints their test metrics.

    Each model and seed writes to :obj:`<out>/<name of the YAML>/<model>/<seed>`: the configuration used
    (:obj:`config.yaml`), one row of metrics per epoch (:obj:`metrics.csv`), the metrics of the best epoch's model on the test
    interactions (:obj:`result.json`; :obj:`null` for groups of items that nobody interacted with there), and checkpoints of
    the last and of the best epoch.

    Args:
        cfg_file (str or Path): The YAML, see :func:`~pyg_topomask.recommend.config.load_config`.
        options (list, optional): Alternating keys and values that override it. (default: :obj:`()`)
        resume (bool, optional): Whether to continue after the last finished epoch. (default: :obj:`False`)
        repeat (int, optional): Number of runs, with seeds :obj:`seed`, :obj:`seed + 1` and so on. (default: :obj:`1`)
        out (str or Path, optional): The output folder, instead of :obj:`out_dir`. (default: :obj:`None`)

    Returns:
        The metrics of each model, one dictionary for each seed.

    Raises:
        ValueError: If an option is unknown or out of its range, the data is not there, broken or, where a run is resumed,
            other than before, another process trains in the folder, or :obj:`torchrun` has started several processes.
        FloatingPointError: If a loss becomes NaN or infinite.
    """
    check_whole(1, repeat=repeat)
    connect()
    if num_processes() > 1:
        raise ValueError(f'torchrun: got {num_processes()} processes; accepted is one, for each batch needs all embeddings')
    config = load_config(cfg_file, options)
    own = config.recommend
    for name in (own.model, *own.baselines):
        if name not in RECOMMENDERS:
            raise ValueError(f'recommend.model, recommend.baselines: got {name!r}; accepted are {", ".join(RECOMMENDERS)}')
    dataset = load_dataset(own)
    # The model that the run is about comes last, and so do its lines.
    names = list(dict.fromkeys([*(other for other in own.baselines if other != own.model), own.model]))
    folder = Path(config.out_dir if out is None else out) / Path(cfg_file).stem
    for name in names[1:]:  # whose options would else be looked at after the first has been trained
        Training(config, name, config.seed, dataset, folder / name / str(config.seed))
    print(dataset)
    for note in dataset.notes:
        print(f'note: {note}')
    results: dict[str, list[Row]] = {}
    for name in names:
        results[name] = []
        for seed in range(config.seed, config.seed + repeat):
            results[name].append(Training(config, name, seed, dataset, folder / name / str(seed)).run(resume))
            row = results[name][-1]
            print(f'{name}, seed {seed}: {_summary([row], own.k)} (best of {row["epochs"]} epochs: {row["best_epoch"]})')
    for name, rows in results.items():
        if len(results) > 1 or repeat > 1:
            print(f'{name:12} {_summary(rows, own.k)}')
    print(f'test {_summary(results[own.model], own.k)}', flush=True)
    return results


def _summary(rows: Sequence[Row], k: int) -> str:
    return ' '.join(
        f'{label}@{k} {statistics.mean(row[f"test_{label.lower()}@{k}"] for row in rows):.4f}' for label in ('Recall', 'NDCG')
    )
