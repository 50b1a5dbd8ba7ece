r"""The standalone runner, which trains the model of a YAML with PyTorch Lightning, and trained models, to use in Python."""

from __future__ import annotations

import logging
import os
import signal
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch.nn import Module
from torch_geometric import seed_everything
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.imports import pl
from torch_geometric.graphgym.model_builder import create_model

from pyg_topomask.apps.datasets.bases import SPLITS
from pyg_topomask.apps.runs.checkpoint import load_best
from pyg_topomask.apps.runs.devices import PeakMemory, connect, find_device, main_first, num_processes, rank, returning_memory
from pyg_topomask.apps.runs.run import Row, Run
from pyg_topomask.apps.train.checks import (
    check_data,
    check_options,
    check_single_samples,
    try_first_step,
    warn_of_unread_options,
)
from pyg_topomask.apps.train.metrics import check_metric_best, higher_is_better, metric_best, truncate_stats
from pyg_topomask.apps.train.module import RunModule, modules_with_random_features
from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.feature_maps.feature_map import FeatureMap
from pyg_topomask.feature_maps.names import FEATURE_MAPS
from pyg_topomask.graphgym.configuration import FREE_OPTIONS, LENGTH_OPTION, load_config, run_name
from pyg_topomask.graphgym.data.loaders import create_loaders, shard_loaders
from pyg_topomask.graphgym.names.networks import registered_modules
from pyg_topomask.utils.checks import check_whole
from pyg_topomask.utils.garbage import frozen

#: The files of GraphGym's loggers in the folder of a run.
LOGS = tuple(f'{split}/{name}' for split in SPLITS for name in ('stats.json', 'events.out.tfevents.*'))


def _trainer(device: torch.device, epochs: int) -> Any:
    local = int(os.environ['LOCAL_WORLD_SIZE']) if num_processes() > 1 else 1
    return pl.Trainer(
        accelerator=device.type,
        devices=local,
        num_nodes=num_processes() // local,
        # Some local layers have parameters that the last layer does not use.
        strategy='ddp_find_unused_parameters_true' if num_processes() > 1 else 'auto',
        use_distributed_sampler=False,
        max_epochs=epochs,
        gradient_clip_val=cfg.optim.clip_grad_norm_value if cfg.optim.clip_grad_norm else None,
        accumulate_grad_batches=cfg.optim.batch_accumulation,
        num_sanity_val_steps=0,
        # The module and its loaders handle these, the progress bar, and the distribution of samples.
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
    )


def _reporting() -> AbstractContextManager[object]:
    r"""A context in which an error of a process that shares a graph reaches the others."""
    if cfg.topomask.shard != 'graph':
        return nullcontext()
    from pyg_topomask.distributed.communication import processes

    return processes().reporting()


def _fit(trainer: Any, module: RunModule, training: Any, evaluation: list[Any]) -> None:
    progress = trainer.fit_loop.epoch_progress.current
    progress.processed = progress.completed = len(module.run.history)
    handler = signal.getsignal(signal.SIGINT)
    try:
        trainer.fit(module, training, evaluation)
    except SystemExit:  # Lightning ends like this after Ctrl-C
        if not trainer.interrupted:
            raise
    finally:  # Lightning leaves the signal ignored
        signal.signal(signal.SIGINT, handler)
    if trainer.interrupted:
        raise KeyboardInterrupt


def train_seed(run_dir: Path, resume: bool, label: str | None = None, epochs: int | None = None) -> Row:
    r"""Trains the model of the global configuration in a folder, see :func:`train`, under the label of a progress bar that
    does not stay, if one is given. It may stop after some epochs of the schedule, from which a resumed run goes on.
    """
    for name in ('lightning.pytorch', 'pytorch_lightning'):
        logging.getLogger(name).setLevel(logging.WARNING)
    with frozen(), warnings.catch_warnings(), _reporting():
        warnings.filterwarnings('ignore', message='.*does not have many workers.*')
        warnings.filterwarnings('ignore', message='.*LeafSpec.*')  # Lightning's, about itself
        return _train_seed(run_dir, resume, label, cfg.optim.max_epoch if epochs is None else epochs)


def _train_seed(run_dir: Path, resume: bool, label: str | None, epochs: int) -> Row:
    memory = PeakMemory()
    device = find_device('accelerator', cfg.accelerator)
    if cfg.devices not in (None, 1, num_processes()):
        given, remedy = f'{cfg.devices!r} for {num_processes()} process(es)', f'torchrun --nproc-per-node {cfg.devices}'
        remedy = f'to change it: {remedy} -m pyg_topomask train ...'
        raise ArgumentError('devices', given, 'the number of processes', remedy)
    # The configuration before the loader adds values that depend on the data.
    metric, maximize = f'val_{metric_best()}', higher_is_better(metric_best())
    run = Run(run_dir, cfg.dump(), metric, maximize, FREE_OPTIONS, LENGTH_OPTION, LOGS)
    check_options()
    checkpoint = run.load(resume, cfg.optim.max_epoch)
    warn_of_unread_options()
    cfg.run_dir = str(run_dir)
    if rank() > 0:
        cfg.topomask.progress = cfg.tensorboard_each_run = False
    if cfg.num_threads < torch.get_num_threads():
        torch.set_num_threads(cfg.num_threads)

    seed_everything(cfg.seed)
    with main_first(), returning_memory():
        loaders = create_loaders()
    check_metric_best()
    check_data(loaders)
    trainer = _trainer(device, epochs)
    module = RunModule()
    if cfg.topomask.shard == 'graph':
        from pyg_topomask.distributed import convert_norms

        graph, loaders = shard_loaders(loaders)
        module.model = convert_norms(module.model, graph)
    if cfg.topomask.redraw_period and not modules_with_random_features(module.model):
        known = ', '.join(name for name, kind in FEATURE_MAPS.items() if kind.redraw is not FeatureMap.redraw)
        given = f'got {cfg.topomask.redraw_period} for a model in which nothing is drawn at random'
        warn(f'topomask.redraw_period: {given}; the feature maps {known} are, and the mask StochasticRPE')
    try_first_step(module.model, loaders, trainer.strategy.root_device)  # a failure here does not change an earlier run
    check_single_samples(module.model, loaders[0])
    with run.open(checkpoint):
        if rank() == 0:
            for split in SPLITS:
                truncate_stats(run_dir / split / 'stats.json', len(run.history))
        module.record_in(run, checkpoint, label)
        evaluation = module.loaders_of_evaluation(loaders[1:])
        if len(run.history) < epochs:
            _fit(trainer, module, loaders[0], evaluation)
        module.model.load_state_dict(run.load_best()['model'])
        trainer.validate(module, evaluation, verbose=False)
        metrics = module.finish_meters()
        run.finish(metrics, cfg.params, memory.bytes())
    return metrics


def train(
    cfg_file: str | Path,
    options: Sequence[str] = (),
    resume: bool = False,
    repeat: int = 1,
    out: str | Path | None = None,
) -> list[Row]:
    r"""Trains the model of a YAML, and evaluates the model of the epoch with the best validation metric.

    Each seed writes to :obj:`<out>/<name of the YAML>/<seed>`: the full configuration (:obj:`config.yaml`), one row of metrics
    per epoch (:obj:`metrics.csv`), the metrics of the best model (:obj:`result.json`), GraphGym's :obj:`stats.json` for each
    split, a TensorBoard log with :obj:`tensorboard_each_run`, and checkpoints of the last and the best epoch. It replaces an
    earlier run in this folder, unless it resumes the run. A process may be killed at any moment. Files are written atomically,
    and the resumed run gives the same result as an uninterrupted one.

    The processes of :obj:`torchrun --nproc-per-node 2 -m pyg_topomask train ...` train together, with
    :class:`torch.nn.parallel.DistributedDataParallel` and a shared output folder. They share each batch, so that
    :obj:`train.batch_size` and the results of training do not depend on their number. The exceptions are computations on a
    process's share of the batch: batch normalization, :obj:`weighted_cross_entropy`, dropout, and walks and keys sampled in the
    forward pass, for which each process has a different seed. A run may resume with a different number of processes. With
    :obj:`topomask.shard: graph`, the processes divide the nodes of a single graph among them, and training is the same as in
    one process, except for dropout. Training on subgraphs of :obj:`train.sampler` works only with one process.

    Args:
        cfg_file (str or Path): The YAML.
        options (list, optional): Alternating keys and values that override it. (default: :obj:`()`)
        resume (bool, optional): Whether to continue after the last checkpoint, like :obj:`train.auto_resume`.
            (default: :obj:`False`)
        repeat (int, optional): Number of runs, with seeds :obj:`cfg.seed`, :obj:`cfg.seed + 1` and so on.
            (default: :obj:`1`)
        out (str or Path, optional): The output folder, instead of :obj:`cfg.out_dir`. (default: :obj:`None`)

    Raises:
        ValueError: If an option is unknown, out of its range or does not fit the data, a checkpoint belongs to another
            configuration, another process trains in the folder, or the processes cannot share the data.
        FloatingPointError: If the training loss becomes NaN or infinite.

    Returns:
        One dictionary for each seed with the metrics of the best model, such as :obj:`test_accuracy`.
    """
    check_whole(1, 2**32, repeat=repeat)
    connect()
    results = []
    for index in range(repeat):
        load_config(cfg_file, options)
        check_whole(0, 2**32 - repeat, seed=cfg.seed)  # the seeds that follow fit, too
        cfg.seed += index
        run_dir = Path(cfg.out_dir if out is None else out) / run_name(cfg_file) / str(cfg.seed)
        results.append(train_seed(run_dir, resume or cfg.train.auto_resume))
        if rank() == 0:
            print(f'seed {cfg.seed}: ' + ', '.join(f'{key} {value:.4f}' for key, value in results[-1].items()))
    for split, label in (('val', 'validation'), ('test', 'test')):
        values = [row[f'{split}_{metric_best()}'] for row in results if f'{split}_{metric_best()}' in row]
        if values and rank() == 0:
            print(f'{label} {metric_best()} {sum(values) / len(values):.4f}', flush=True)
    return results


def load_model(folder: str | Path) -> tuple[Module, list[Any]]:
    r"""Loads the model of the best epoch of a run, and its data. It also loads the configuration into GraphGym's global
    :obj:`cfg`, which some layers read.

    Args:
        folder (str or Path): The folder of one seed, such as :obj:`"results/digits/0"`, which :func:`train` wrote.

    Returns:
        The network in evaluation mode on the CPU, and the loaders of the training, validation and test split. As in GraphGym,
        :obj:`model(batch)` returns predictions and labels. With :obj:`gnn.head: node`, these are of the split
        :obj:`batch.split`, or else of all nodes.

    Raises:
        ValueError: If the folder contains no run, or its best model is missing, damaged or of another run.

    .. code-block:: python

        from pyg_topomask.apps.train import load_model

        model, loaders = load_model('results/digits/0')
        batch = next(iter(loaders[2]))
        batch.split = 'test'
        pred, true = model(batch)
    """
    folder = Path(folder)
    config = folder / 'config.yaml'
    if not config.is_file() or not (folder / 'checkpoints').is_dir():
        raise ArgumentError('folder', str(folder), 'folders of one seed of a run, such as results/digits/0')
    load_config(config)
    checkpoint = load_best(folder, config.read_text(encoding='utf-8'), (*FREE_OPTIONS, LENGTH_OPTION))
    with pl.utilities.seed.isolate_rng():
        seed_everything(cfg.seed)  # as in training, because it determines random splits
        loaders = create_loaders()
        with registered_modules():
            model: Module = create_model(to_device=False).model
    model.load_state_dict(checkpoint['model'])
    return model.eval(), loaders
