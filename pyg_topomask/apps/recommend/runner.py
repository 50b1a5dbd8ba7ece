r"""The runner of a recommender: training, early stopping, checkpoints, resuming, testing, and serving of trained models."""

from __future__ import annotations

import csv
import io
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric import seed_everything

from pyg_topomask.apps.recommend.evaluation import evaluate, popularity_groups, rank_items
from pyg_topomask.apps.recommend.interaction_files import INTERACTION_DATASETS, load_folder, load_interaction_dataset
from pyg_topomask.apps.recommend.interactions import InteractionDataset
from pyg_topomask.apps.recommend.options import load_config
from pyg_topomask.apps.recommend.recommender import Recommender, build_recommender
from pyg_topomask.apps.runs.checkpoint import load_best, set_rng_state
from pyg_topomask.apps.runs.devices import connect, find_device, num_processes
from pyg_topomask.apps.runs.run import EpochBar, Row, Run
from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_above_zero, check_choice, check_not_negative, check_whole
from pyg_topomask.utils.configs import is_recommendation, parse_yaml
from pyg_topomask.utils.files import new_file, write_atomically

#: Options of where to run. A run that replaces or resumes another one may change them.
FREE_OPTIONS = ('out_dir', 'recommend.device', 'recommend.dir', 'recommend.progress')
#: The option of how long to run, which only a resumed run may change.
LENGTH_OPTION = 'recommend.max_epoch'


def load_dataset(options: Any) -> InteractionDataset:
    r"""Loads the data set of the group :obj:`recommend` of the options. Raises a :class:`ValueError` if the folder or the data
    set is missing, or an option is out of its range.
    """
    check_choice([*INTERACTION_DATASETS, 'files'], **{'recommend.dataset': options.dataset})
    if not options.dir or not Path(options.dir).is_dir():
        raise ArgumentError('recommend.dir', repr(options.dir), 'the folder of the interaction files')
    if options.dataset == 'files' and not options.files.train:
        raise ArgumentError('recommend.files.train', 'no file', 'a list of names in recommend.dir')
    try:
        if options.dataset != 'files':
            return load_interaction_dataset(options.dataset, options.dir, options.val_ratio, options.split_seed)
        return load_folder(options.dir, options.files, options.val_ratio, options.split_seed)
    except ArgumentError as error:
        if error.argument != 'val_ratio, test_ratio':
            raise
        accepted = 'numbers from 0 to below 1, or below 0.9 without files of test interactions'
        raise ArgumentError('recommend.val_ratio', options.val_ratio, accepted) from None


class Training:
    r"""The training of one model with one seed. It can stop after any epoch and resume.

    It takes the options, see :func:`~pyg_topomask.apps.recommend.options.default_config`, the data set, the folder to write to,
    and the function that creates the :class:`~pyg_topomask.apps.recommend.Recommender` from the data set and the group
    :obj:`recommend` of the options. The option :obj:`model` names the group of :obj:`lr` and :obj:`weight_decay`.
    """

    def __init__(
        self,
        config: Any,
        dataset: InteractionDataset,
        run_dir: Path,
        build: Callable[[InteractionDataset, Any], Recommender] = build_recommender,
    ) -> None:
        config = config.clone()
        self.dataset = dataset
        self.options = options = config.recommend
        if options.k > dataset.num_items:
            raise ArgumentError('recommend.k', options.k, f'1 to {dataset.num_items}, the number of items')
        if dataset.test.size(1) == 0:
            option, given = ('files.test', options.files.test) if options.dataset == 'files' else ('dir', options.dir)
            accepted = 'test interactions that neither training nor validation holds'
            raise ArgumentError(f'recommend.{option}', f'{given!r} with no test interaction left', accepted)
        metric = f'val_recall@{options.k}'
        self.record = Run(run_dir, config.dump(), metric, free=FREE_OPTIONS, length=LENGTH_OPTION)
        self.device = find_device('recommend.device', options.device)
        seed_everything(config.seed)
        self.model = build(dataset, options).to(self.device)
        settings = options[options.model]
        check_above_zero(**{f'recommend.{options.model}.lr': settings.lr})
        check_not_negative(**{f'recommend.{options.model}.weight_decay': settings.weight_decay})
        self.optimizer = torch.optim.Adam(self.model.encoder.parameters(), settings.lr, weight_decay=settings.weight_decay)

    def is_finished(self) -> bool:
        r"""Returns :obj:`True` after the last epoch, or if the last validations did not improve."""
        history, best, metric = self.record.history, self.record.best, self.record.metric
        stale = sum(metric in row and best is not None and row['epoch'] > best['epoch'] for row in history)
        return bool(len(history) >= self.options.max_epoch or 0 < self.options.patience <= stale)

    def run(self, resume: bool = False) -> Row:
        r"""Trains to the end, after the last checkpoint if it resumes, and returns the metrics of the best model on the
        test interactions. Raises a :class:`ValueError` if another process trains in the folder, or the checkpoint has a
        different configuration or data.
        """
        checkpoint = self._load(resume)
        with self.record.open(checkpoint):
            if checkpoint is not None:
                self.optimizer.load_state_dict(checkpoint['optimizer'])
                set_rng_state(checkpoint['rng'][0])
            batches = math.ceil(self.dataset.train.size(1) / self.options.batch_size)
            finished, disable = len(self.record.history), not self.options.progress
            with EpochBar(self.options.model, self.options.max_epoch, batches, finished, disable) as bar:
                while not self.is_finished():
                    self._epoch(bar)
            self.model.encoder.load_state_dict(self.record.load_best()['model'])
            parameters = sum(parameter.numel() for parameter in self.model.encoder.parameters())
            return self.record.finish(self._test(), parameters)

    def _load(self, resume: bool) -> dict[str, Any] | None:
        r"""Returns the checkpoint to resume from, if it has the same users, items and interactions."""
        checkpoint = self.record.load(resume, self.options.max_epoch)
        if checkpoint is not None:
            last = self.record.last_file
            load_weights(self.model.encoder, checkpoint, last, self.dataset, self.options.dir)
            if checkpoint['interactions'] != self.dataset.interactions_hash:
                accepted = f'the interactions that {last} was trained on'
                raise ArgumentError('recommend.dir', repr(self.options.dir), accepted)
        return checkpoint

    def _epoch(self, bar: EpochBar) -> None:
        start = time.perf_counter()
        epoch = len(self.record.history)
        row: Row = {'epoch': epoch, 'loss': self._optimize(bar), 'seconds': time.perf_counter() - start}
        last = epoch + 1 == self.options.max_epoch
        if self.dataset.val.size(1) and (last or (epoch + 1) % self.options.eval_period == 0):
            row |= {f'val_{key}': value for key, value in self._evaluate(self.dataset.val, self.dataset.train).items()}
        self.record.history.append(row)
        bar.show(row, 'loss', self.record.metric)
        self.record.save(
            {'users and items': self.dataset.fingerprint, 'model': self.model.encoder.state_dict()},
            interactions=self.dataset.interactions_hash,
            optimizer=self.optimizer.state_dict(),
        )

    def _optimize(self, bar: EpochBar) -> float:
        self.model.encoder.train()
        self.model.start_epoch()
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for users, items in self._batches():
            self.optimizer.zero_grad()
            loss = self.model.loss(users, items)
            loss.backward()
            self.optimizer.step()
            total += loss.detach() * len(users)
            bar.update()
        mean = float(total) / self.dataset.train.size(1)
        if not math.isfinite(mean):
            epoch = len(self.record.history)
            raise FloatingPointError(f'{self.options.model}: the loss of epoch {epoch} is {mean}; try a lower lr')
        return mean

    def _batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(self.dataset.train.size(1))
        for users, items in self.dataset.train[:, order].split(self.options.batch_size, 1):
            yield users.to(self.device), items.to(self.device)

    def _evaluate(self, targets: Tensor, seen: Tensor, **arguments: Any) -> Row:
        users, items = self.model.embed()
        if not (bool(users.isfinite().all()) and bool(items.isfinite().all())):
            raise FloatingPointError(f'{self.options.model}: the embeddings have NaN or infinite numbers; try a lower lr')
        return evaluate(users, items, targets.to(self.device), seen.to(self.device), self.options.k, **arguments)

    def _test(self) -> Row:
        groups, names = popularity_groups(self.dataset.train, self.dataset.num_items)
        seen = torch.cat([self.dataset.train, self.dataset.val], 1)
        result = self._evaluate(self.dataset.test, seen, groups=(groups.to(self.device), names))
        result = {f'test_{key}': value for key, value in result.items()}
        best = self.record.best or {}
        return result | {key: value for key, value in best.items() if key.startswith('val_')}


def load_weights(
    encoder: torch.nn.Module, checkpoint: dict[str, Any], path: Path, dataset: InteractionDataset, folder: str
) -> None:
    r"""Loads the weights of the checkpoint at a path into an encoder. Raises a :class:`ValueError` if they belong to users or
    items other than those of the data set in a folder.
    """
    if checkpoint['users and items'] != dataset.fingerprint:
        trained = parse_yaml(checkpoint['config'])['recommend']['dir']
        accepted = f'the users and items that {path} was trained on, those of {trained!r}'
        raise ArgumentError('recommend.dir', f'{folder!r} with {dataset}', accepted)
    encoder.load_state_dict(checkpoint['model'])


def train(
    cfg_file: str | Path,
    options: Sequence[str] = (),
    resume: bool = False,
    repeat: int = 1,
    out: str | Path | None = None,
) -> list[Row]:
    r"""Trains the model that a YAML describes, and prints its test metrics. The arguments, errors and results are those of
    :func:`pyg_topomask.apps.train.train`, for one process.

    Each seed writes to :obj:`<out>/<name of the YAML>/<model>/<seed>`: the configuration (:obj:`config.yaml`), one row of
    metrics per epoch (:obj:`metrics.csv`), the metrics of the best epoch's model on the test interactions
    (:obj:`result.json`, :obj:`null` for groups of items without test interactions), and checkpoints of the last and the best
    epoch. A run resumes only on the same interactions.
    """
    check_whole(1, 2**32, repeat=repeat)
    connect()
    if num_processes() > 1:
        raise ArgumentError('torchrun', f'{num_processes()} processes', 'one: each batch needs all embeddings')
    config = load_config(cfg_file, options)
    check_whole(0, 2**32 - repeat, seed=config.seed)  # the seeds that follow fit, too
    k = config.recommend.k
    dataset = load_dataset(config.recommend)
    print(dataset)
    for note in dataset.notes:
        print(f'note: {note}')
    folder = Path(config.out_dir if out is None else out) / Path(cfg_file).stem / config.recommend.model
    rows: list[Row] = []
    for seed in range(config.seed, config.seed + repeat):
        config.seed = seed
        row = Training(config, dataset, folder / str(seed)).run(resume)
        rows.append(row)
        print(f'seed {seed}: {_summary([row], k)} (best of {row["epochs"]} epochs: {row["best_epoch"]})')
    print(f'test {_summary(rows, k)}', flush=True)
    return rows


def _summary(rows: Sequence[Row], k: int) -> str:
    return ' '.join(
        f'{label}@{k} {statistics.mean(row[f"test_{label.lower()}@{k}"] for row in rows):.4f}' for label in ('Recall', 'NDCG')
    )


def load_run(run_dir: str | Path, data_dir: str | Path | None = None) -> tuple[InteractionDataset, Tensor, Tensor]:
    r"""Returns the data set of the run in a folder, and the embeddings of users and items of its best model.

    The data is in :obj:`data_dir`, or else in the folder :obj:`recommend.dir` of the run. Raises a :class:`ValueError` if the
    run is no trained recommender, or the users or items differ from those that it was trained on.
    """
    folder = Path(run_dir)
    file = folder / 'config.yaml'
    if not (folder / 'checkpoints').is_dir() or not is_recommendation(file):
        accepted = 'the folder of a recommender that `train` wrote, such as results/lastfm/MGFormer/0'
        raise ArgumentError('run', repr(str(run_dir)), accepted)
    config = load_config(file, [] if data_dir is None else ['recommend.dir', str(data_dir)])
    checkpoint = load_best(folder, file.read_text(encoding='utf-8'), (*FREE_OPTIONS, LENGTH_OPTION))
    dataset = load_dataset(config.recommend)
    model = build_recommender(dataset, config.recommend)
    load_weights(model.encoder, checkpoint, folder, dataset, config.recommend.dir)
    return dataset, *model.embed()


def recommend(
    dataset: InteractionDataset, users: Tensor, items: Tensor, user_ids: Sequence[int | str], k: int = 20
) -> list[tuple[int | str, int, int | str, float]]:
    r"""Returns the :obj:`k` items with the largest scores for each user, as tuples of user, rank from 1, item and score.
    Training and validation interactions of the user are excluded. Users and items have their original ids. Raises a
    :class:`ValueError` if an id is unknown, or :obj:`k` is not from 1 to the number of items.
    """
    known: Sequence[int | str] = dataset.user_names or dataset.user_ids.tolist()
    place = {str(user): number for number, user in enumerate(known)}
    unknown = [user for user in user_ids if str(user) not in place]
    if unknown:
        given = f'[{", ".join(map(str, unknown))}]'
        raise ArgumentError('user', given, f'the {dataset.num_users} users from {known[0]} to {known[-1]}')
    numbers = [place[str(user)] for user in user_ids]
    index = torch.tensor(numbers, dtype=torch.long)
    ranking = rank_items(users, items, index, torch.cat([dataset.train, dataset.val], 1), k)
    score = (users[index][:, None] * items[ranking]).sum(-1)
    names: Sequence[int | str] = dataset.item_names or dataset.item_ids.tolist()
    return [
        (known[user], rank, names[item], value)
        for user, top, values in zip(numbers, ranking.tolist(), score.tolist(), strict=True)
        for rank, (item, value) in enumerate(zip(top, values, strict=True), 1)
        if item >= 0
    ]


def serve(
    run_dir: str | Path,
    user_ids: Sequence[int | str] = (),
    k: int | None = None,
    out: str | Path | None = None,
    embeddings: str | Path | None = None,
    data_dir: str | Path | None = None,
) -> None:
    r"""Prints the top items of users as CSV, or writes them to the file :obj:`out`, and exports the embeddings to a file, a
    NumPy archive of :obj:`users`, :obj:`items`, :obj:`user_ids` and :obj:`item_ids`. The number of items :obj:`k` is by default
    the option :obj:`recommend.k` of the run. Raises a :class:`ValueError` if there is nothing to do, or an argument is out of
    its range. In this case, nothing is written.
    """
    if not user_ids and embeddings is None:
        raise ArgumentError('user, embeddings', 'neither', 'users to recommend to, a file for embeddings, or both')
    if out is not None and not user_ids:
        raise ArgumentError('out', f'{str(out)!r} without user', 'a file for the items of users')
    out = None if out is None else new_file('out', out)
    if embeddings is not None and Path(embeddings).suffix != '.npz':
        raise ArgumentError('embeddings', repr(str(embeddings)), 'names that end in .npz')
    embeddings = None if embeddings is None else new_file('embeddings', embeddings)
    if out is not None and out == embeddings:
        raise ArgumentError('out', f'{str(out)!r}, the file for embeddings', 'another file')
    dataset, users, items = load_run(run_dir, data_dir)
    if k is None:
        k = int(load_config(Path(run_dir) / 'config.yaml').recommend.k)
    rows = recommend(dataset, users, items, user_ids, k) if user_ids else []
    if embeddings is not None:
        user, item = ((dataset.user_names, dataset.user_ids), (dataset.item_names, dataset.item_ids))
        ids = [number.numpy() if names is None else np.array(names) for names, number in (user, item)]
        buffer = io.BytesIO()
        np.savez(buffer, users=users.numpy(), items=items.numpy(), user_ids=ids[0], item_ids=ids[1])
        write_atomically(embeddings, buffer.getvalue())
    if user_ids:
        table = io.StringIO()
        writer = csv.writer(table, lineterminator='\n')
        writer.writerow(['user', 'rank', 'item', 'score'])
        writer.writerows((user, rank, item, f'{score:.6f}') for user, rank, item, score in rows)
        if out is None:
            sys.stdout.write(table.getvalue())
        else:
            write_atomically(out, table.getvalue().encode())
