r"""The standalone runner: trains what a YAML describes, with PyTorch Lightning."""

from __future__ import annotations

import logging
import shutil
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric import seed_everything
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.imports import pl

from pyg_topomask.graphgym.checkpoint import check_same_experiment, load_checkpoint, write_atomically
from pyg_topomask.graphgym.data import create_loaders
from pyg_topomask.graphgym.metrics import Row, metric_best
from pyg_topomask.graphgym.module import SPLITS, RunModule
from pyg_topomask.graphgym.progress import Progress
from pyg_topomask.graphgym.registry import lookup
from pyg_topomask.graphgym.settings import load_config

__all__ = ['train']


def _accelerator() -> str:
    known = {'auto': 'cuda' if torch.cuda.is_available() else 'cpu', 'cpu': 'cpu', 'cuda': 'cuda', 'gpu': 'cuda'}
    name = lookup('accelerator', cfg.accelerator, known)
    if name == 'cuda' and not torch.cuda.is_available():
        raise ValueError(f'accelerator {cfg.accelerator!r} needs a CUDA device, and there is none; use auto or cpu')
    return name


def _prepare_run_dir(run_dir: Path, resume: bool) -> None:
    if run_dir.exists() and not resume:
        print(f'replacing the run in {run_dir}', file=sys.stderr)
        # Only what a run writes: the folder is the user's, and may hold more.
        for entry in (*SPLITS, 'checkpoints'):
            shutil.rmtree(run_dir / entry, ignore_errors=True)
        for entry in ('config.yaml', 'metrics.csv'):
            (run_dir / entry).unlink(missing_ok=True)
    run_dir.mkdir(parents=True, exist_ok=True)


def _load_last(run_dir: Path, config: str) -> dict[str, Any] | None:
    path = run_dir / 'checkpoints' / 'last.pt'
    if not path.exists():
        print(f'no checkpoint in {run_dir}: starting with the first epoch', file=sys.stderr)
        return None
    checkpoint = load_checkpoint(path)
    check_same_experiment(path, checkpoint['config'], config)
    return checkpoint


def _trainer(accelerator: str) -> Any:
    return pl.Trainer(
        accelerator=accelerator,
        devices=1,
        max_epochs=cfg.optim.max_epoch,
        check_val_every_n_epoch=min(cfg.train.eval_period, cfg.optim.max_epoch),
        gradient_clip_val=cfg.optim.clip_grad_norm_value if cfg.optim.clip_grad_norm else None,
        accumulate_grad_batches=cfg.optim.batch_accumulation,
        num_sanity_val_steps=0,
        callbacks=[Progress()] if cfg.topomask.progress else [],
        # Of these the module takes care.
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
    config = cfg.dump()  # before the loader adds what depends on the data
    _prepare_run_dir(run_dir, resume)
    checkpoint = _load_last(run_dir, config) if resume else None
    write_atomically(run_dir / 'config.yaml', config.encode())
    cfg.run_dir = str(run_dir)
    if cfg.num_threads < torch.get_num_threads():
        torch.set_num_threads(cfg.num_threads)

    seed_everything(cfg.seed)
    loaders = create_loaders()
    module = RunModule(run_dir, config, checkpoint)
    trainer = _trainer(accelerator)
    if len(module.history) < cfg.optim.max_epoch:
        _fit(trainer, module, loaders)
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
    earlier run in that folder is replaced, unless it is resumed.

    Args:
        cfg_file (str or Path): The YAML.
        options (list, optional): Alternating keys and values that override it. (default: :obj:`()`)
        resume (bool, optional): Whether to continue after the last finished epoch. (default: :obj:`False`)
        repeat (int, optional): Number of runs, with seeds :obj:`cfg.seed`, :obj:`cfg.seed + 1` and so on.
            (default: :obj:`1`)
        out (str or Path, optional): The output folder, instead of :obj:`cfg.out_dir`. (default: :obj:`None`)

    Returns:
        One dictionary for each seed with the metrics of the best model, such as :obj:`test_accuracy`.
    """
    if repeat < 1:
        raise ValueError(f'repeat must be at least 1, given {repeat}')
    for name in ('lightning.pytorch', 'pytorch_lightning'):
        logging.getLogger(name).setLevel(logging.WARNING)
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
        metric = metric_best()
        print(f'seed {cfg.seed}: ' + ', '.join(f'{key} {value:.4f}' for key, value in results[-1].items()))
    for split, label in (('val', 'validation'), ('test', 'test')):
        values = [row[f'{split}_{metric}'] for row in results if f'{split}_{metric}' in row]
        if values:
            print(f'{label} {metric} {sum(values) / len(values):.4f}', flush=True)
    return results
