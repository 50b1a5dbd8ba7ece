r"""The standalone runner: trains what a YAML describes, with PyTorch Lightning."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric import seed_everything
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.imports import pl

from pyg_topomask.graphgym.checkpoint import check_same_experiment, load_checkpoint, remove_unfinished, write_atomically
from pyg_topomask.graphgym.data import create_loaders
from pyg_topomask.graphgym.distributed import connect, gather, main_first, num_processes, rank
from pyg_topomask.graphgym.loader import FORMATS
from pyg_topomask.graphgym.metrics import METRICS, Row, check_metric_best, metric_best, truncate_stats, write_metrics
from pyg_topomask.graphgym.module import SPLITS, RunModule, create_network
from pyg_topomask.graphgym.network import split_layer_type
from pyg_topomask.graphgym.optim import create_optimizer, create_scheduler
from pyg_topomask.graphgym.progress import Progress
from pyg_topomask.graphgym.registry import lookup
from pyg_topomask.graphgym.settings import defaults, load_config, option

__all__ = ['train']

#: The smallest numbers that options accept.
MINIMA = {
    'num_threads': 1,
    'optim.batch_accumulation': 1,
    'optim.max_epoch': 1,
    'topomask.redraw_period': 0,
    'train.eval_period': 1,
}
#: Names that GraphGym's own network looks up.
NAMES_OF_GNN = {
    'dataset.edge_encoder_name': register.edge_encoder_dict,
    'dataset.node_encoder_name': register.node_encoder_dict,
    'gnn.act': register.act_dict,
    'gnn.head': register.head_dict,
    'gnn.layer_type': register.layer_dict,
    'gnn.stage_type': register.stage_dict,
}
#: Options of GraphGym and GraphGPS that this runner does not read, and what holds instead.
UNREAD = {
    'dataset.split_index': 'the split is that of the data set',
    'dataset.split_mode': 'the split is that of the data set',
    'run_multiple_splits': 'one split is trained on; --repeat trains with several seeds',
    'train.enable_ckpt': 'checkpoints are always written, for --resume',
}


def _accelerator() -> str:
    known = {'auto': 'cuda' if torch.cuda.is_available() else 'cpu', 'cpu': 'cpu', 'cuda': 'cuda', 'gpu': 'cuda'}
    name = lookup('accelerator', cfg.accelerator, known)
    if name == 'cuda' and not torch.cuda.is_available():
        raise ValueError(f'accelerator {cfg.accelerator!r} needs a CUDA device, and there is none; use auto or cpu')
    return name


def _check_devices() -> None:
    processes = num_processes()
    if cfg.devices not in (None, 1, processes):
        raise ValueError(
            f'devices: got {cfg.devices!r} for {processes} process(es), which is the number that trains; to change it: '
            f'torchrun --nproc-per-node {cfg.devices} -m pyg_topomask train ...'
        )


def _clear(run_dir: Path) -> None:
    print(f'replacing the run in {run_dir}', file=sys.stderr)
    # What a run is resumed from goes first: what is left by who is killed here is not taken for a run.
    for entry in ('checkpoints/last.pt', 'config.yaml', 'metrics.csv'):
        (run_dir / entry).unlink(missing_ok=True)
    # Only what a run writes: the folder is the user's, and may hold more.
    for entry in (*SPLITS, 'checkpoints'):
        shutil.rmtree(run_dir / entry, ignore_errors=True)


def _load_last(run_dir: Path, config: str) -> dict[str, Any] | None:
    path = run_dir / 'checkpoints' / 'last.pt'
    if not path.exists():
        return None
    checkpoint = load_checkpoint(path)
    check_same_experiment(path, checkpoint['config'], config)
    return checkpoint


def _check_options() -> None:
    r"""Says what is wrong in the configuration before data is loaded."""
    for path, least in MINIMA.items():
        value = option(path)
        if value is None or value < least:
            raise ValueError(f'{path}: got {value}; accepted are numbers from {least}')
    lookup('model.type', cfg.model.type, register.network_dict)
    if cfg.model.type == 'TopoGPSModel':
        split_layer_type(cfg.gt.layer_type)
    if cfg.model.type == 'gnn':
        for path, known in NAMES_OF_GNN.items():
            if option(path.removesuffix('_name')):  # an encoder is looked up where there is to be one
                lookup(path, option(path), known)
    if cfg.gnn.head == 'graph':
        lookup('model.graph_pooling', cfg.model.graph_pooling, register.pooling_dict)
    for name in cfg.custom_metrics:
        lookup('metric in custom_metrics', name, register.metric_dict)
    if not cfg.custom_metrics:
        lookup('dataset.task_type (without custom_metrics)', cfg.dataset.task_type, {'classification': (), **METRICS})
    create_scheduler(create_optimizer([torch.nn.Parameter(torch.zeros(1))]))


def _warn_of_unread_options() -> None:
    r"""Warns of options that differ from their defaults and that GraphGPS reads, but not this runner."""
    before = defaults()
    for path, instead in UNREAD.items():
        # What a loader of the user's own reads is not known.
        foreign = path.startswith('dataset.') and cfg.dataset.format not in FORMATS
        if option(path) != option(path, before) and not foreign:
            warnings.warn(f'{path}: got {option(path)!r}, which train does not read: {instead}', stacklevel=2)


def _prepare(run_dir: Path, config: str, resume: bool, checkpoint: dict[str, Any] | None) -> None:
    r"""Makes the folder ready to be written to."""
    if rank() > 0:
        return
    if resume and checkpoint is None:
        print(f'no checkpoint in {run_dir}: starting with the first epoch', file=sys.stderr)
    if run_dir.exists() and not resume:
        _clear(run_dir)
    run_dir.mkdir(parents=True, exist_ok=True)
    remove_unfinished(run_dir)
    history = [] if checkpoint is None else checkpoint['history']
    for split in SPLITS:
        truncate_stats(run_dir / split / 'stats.json', len(history))
    if history:
        write_metrics(run_dir / 'metrics.csv', history)
    write_atomically(run_dir / 'config.yaml', config.encode())


def _trainer(accelerator: str) -> Any:
    local = int(os.environ['LOCAL_WORLD_SIZE']) if num_processes() > 1 else 1
    return pl.Trainer(
        accelerator=accelerator,
        devices=local,
        num_nodes=num_processes() // local,
        # Some local layers have parameters that the last layer does not use.
        strategy='ddp_find_unused_parameters_true' if num_processes() > 1 else 'auto',
        use_distributed_sampler=False,
        max_epochs=cfg.optim.max_epoch,
        check_val_every_n_epoch=min(cfg.train.eval_period, cfg.optim.max_epoch),
        gradient_clip_val=cfg.optim.clip_grad_norm_value if cfg.optim.clip_grad_norm else None,
        accumulate_grad_batches=cfg.optim.batch_accumulation,
        num_sanity_val_steps=0,
        callbacks=[Progress()] if cfg.topomask.progress else [],
        # Of these, and of who takes which samples, the module and its loaders take care.
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
    )


def _fit(trainer: Any, module: RunModule, loaders: list[Any]) -> None:
    progress = trainer.fit_loop.epoch_progress.current
    progress.processed = progress.completed = len(module.history)
    handler = signal.getsignal(signal.SIGINT)
    try:
        trainer.fit(module, loaders[0], loaders[1:])
    except SystemExit:
        # How Lightning ends after Ctrl-C.
        if not trainer.interrupted:
            raise
    finally:
        # Lightning leaves the signal ignored.
        signal.signal(signal.SIGINT, handler)
    if trainer.interrupted:
        raise KeyboardInterrupt


def _train_seed(run_dir: Path, resume: bool) -> Row:
    accelerator = _accelerator()
    _check_devices()
    config = cfg.dump()  # before the loader adds what depends on the data
    checkpoint = _load_last(run_dir, config) if resume else None
    _check_options()
    _warn_of_unread_options()
    cfg.run_dir = str(run_dir)
    if rank() > 0:
        cfg.topomask.progress = cfg.tensorboard_each_run = False
    if cfg.num_threads < torch.get_num_threads():
        torch.set_num_threads(cfg.num_threads)

    seed_everything(cfg.seed)
    with main_first():
        loaders = create_loaders()
    check_metric_best()
    with torch.random.fork_rng(devices=()):
        create_network()  # what fails here leaves an earlier run in the folder as it is
    _prepare(run_dir, config, resume, checkpoint)
    module = RunModule(run_dir, config, checkpoint)
    trainer = _trainer(accelerator)
    if len(module.history) < cfg.optim.max_epoch:
        _fit(trainer, module, loaders)
        gather(None)  # process 0 has written its last file
    module.model.load_state_dict(load_checkpoint(run_dir / 'checkpoints' / 'best.pt')['model'])
    trainer.validate(module, loaders[1:], verbose=False)
    return module.finish_meters()


def train(
    cfg_file: str | Path,
    options: Sequence[str] = (),
    resume: bool = False,
    repeat: int = 1,
    out: str | Path | None = None,
) -> list[Row]:
    r"""Trains the model that a YAML describes, and evaluates the model of its best epoch on validation data.

    Each seed writes to :obj:`<out>/<name of the YAML>/<seed>`: the configuration used (:obj:`config.yaml`), one row of
    metrics per epoch (:obj:`metrics.csv`), GraphGym's :obj:`stats.json` for each split, with
    :obj:`tensorboard_each_run` a TensorBoard log beside it, and checkpoints of the last and of the best epoch. An
    earlier run in that folder is replaced, unless it is resumed. A process may be killed at any moment: files are replaced as
    a whole, and the resumed run ends as one that was never interrupted.

    Processes that :obj:`torchrun --nproc-per-node 2 -m pyg_topomask train ...` starts train together, by
    :class:`torch.nn.parallel.DistributedDataParallel`, with files in a folder that all of them see. They share each batch, so
    that :obj:`train.batch_size` and the course of training do not depend on their number, but for what a process computes from
    its own part: batch normalization and :obj:`weighted_cross_entropy`, dropout, and walks and keys drawn in the forward pass,
    for which each has its own seed. A run may be resumed with another number of processes. A single graph is trained on by
    one process, and so are subgraphs that :obj:`train.sampler` samples.

    Args:
        cfg_file (str or Path): The YAML.
        options (list, optional): Alternating keys and values that override it. (default: :obj:`()`)
        resume (bool, optional): Whether to continue after the last finished epoch. (default: :obj:`False`)
        repeat (int, optional): Number of runs, with seeds :obj:`cfg.seed`, :obj:`cfg.seed + 1` and so on.
            (default: :obj:`1`)
        out (str or Path, optional): The output folder, instead of :obj:`cfg.out_dir`. (default: :obj:`None`)

    Raises:
        ValueError: If an option is unknown or out of its range, a checkpoint belongs to another configuration, or the data
            cannot be shared by the processes.
        FloatingPointError: If the training loss becomes NaN or infinite.

    Returns:
        One dictionary for each seed with the metrics of the best model, such as :obj:`test_accuracy`.
    """
    if repeat < 1:
        raise ValueError(f'repeat must be at least 1, given {repeat}')
    for name in ('lightning.pytorch', 'pytorch_lightning'):
        logging.getLogger(name).setLevel(logging.WARNING)
    connect()
    results = []
    for index in range(repeat):
        load_config(cfg_file, options)
        cfg.seed += index
        name = Path(cfg_file).stem + (f'-{cfg.name_tag}' if cfg.name_tag else '')
        run_dir = Path(cfg.out_dir if out is None else out) / name / str(cfg.seed)
        with warnings.catch_warnings():
            warnings.filterwarnings('ignore', message='.*does not have many workers.*')
            warnings.filterwarnings('ignore', message='.*LeafSpec.*')  # Lightning's, about itself
            results.append(_train_seed(run_dir, resume))
        if rank() == 0:
            print(f'seed {cfg.seed}: ' + ', '.join(f'{key} {value:.4f}' for key, value in results[-1].items()))
    if rank() == 0:
        _print_means(results)
    return results


def _print_means(results: list[Row]) -> None:
    metric = metric_best()
    for split, label in (('val', 'validation'), ('test', 'test')):
        values = [row[f'{split}_{metric}'] for row in results if f'{split}_{metric}' in row]
        if values:
            print(f'{label} {metric} {sum(values) / len(values):.4f}', flush=True)
