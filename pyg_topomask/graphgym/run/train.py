r"""The standalone runner: trains what a YAML describes, with PyTorch Lightning."""

from __future__ import annotations

import logging
import os
import signal
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric import seed_everything
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.imports import pl

from pyg_topomask.checks import check_not_negative, check_whole
from pyg_topomask.feature_maps import FEATURE_MAPS, FeatureMap
from pyg_topomask.graphgym.attentions import gps_attention_kwargs
from pyg_topomask.graphgym.data import SAMPLERS, create_loaders
from pyg_topomask.graphgym.first_step import try_first_step
from pyg_topomask.graphgym.loader import FORMATS
from pyg_topomask.graphgym.metrics import METRICS, check_metric_best, higher_is_better, metric_best, truncate_stats
from pyg_topomask.graphgym.module import SPLITS, RunModule, drawn_parts
from pyg_topomask.graphgym.network import split_layer_type
from pyg_topomask.graphgym.optim import create_optimizer, create_scheduler
from pyg_topomask.graphgym.pyg_datasets import SPLIT_BY_SHARES
from pyg_topomask.graphgym.registry import lookup
from pyg_topomask.graphgym.settings import FREE_OPTIONS, defaults, load_config, option, run_name
from pyg_topomask.runs.devices import connect, find_device, main_first, num_processes, rank
from pyg_topomask.runs.progress import EpochBar
from pyg_topomask.runs.run import Row, Run

__all__ = ['train']

#: What GraphGym's loggers write to the folder of a run.
LOGS = tuple(f'{split}/{name}' for split in SPLITS for name in ('stats.json', 'events.out.tfevents.*'))
#: The smallest numbers that options accept.
MINIMA = {
    'gt.layers': 1,
    'num_threads': 1,
    'optim.batch_accumulation': 1,
    'optim.max_epoch': 1,
    'optim.num_warmup_epochs': 0,
    'optim.schedule_patience': 0,
    'topomask.redraw_period': 0,
    'train.batch_size': 1,
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
    'dataset.split': 'the split is that of the data set',
    'dataset.split_dir': 'the split is that of the data set',
    'dataset.split_index': 'the split is that of the data set',
    'dataset.split_mode': 'the split is that of the data set',
    'gt.full_graph': 'which nodes attend to which is what the attention says',
    'run_multiple_splits': 'one split is trained on; --repeat trains with several seeds',
    'train.ckpt_best': 'checkpoints of the best and of the last epoch are always written',
    'train.ckpt_period': 'checkpoints are written after every epoch',
    'train.enable_ckpt': 'checkpoints are always written, for --resume',
    'train.epoch_resume': '--resume continues after the last finished epoch',
    'train.iter_per_epoch': 'an epoch is once over the data, but with saint samplers',
    'train.mode': 'models are trained as by custom',
    'train.skip_train_eval': 'metrics of training are those of its own forward passes',
    'wandb.use': 'metrics are in metrics.csv and, with tensorboard_each_run, in TensorBoard',
}


def _check_devices() -> None:
    processes = num_processes()
    if cfg.devices not in (None, 1, processes):
        raise ValueError(
            f'devices: got {cfg.devices!r} for {processes} process(es), which is the number that trains; to change it: '
            f'torchrun --nproc-per-node {cfg.devices} -m pyg_topomask train ...'
        )


def _check_options() -> None:
    r"""Says what is wrong in the configuration before data is loaded."""
    for path, least in MINIMA.items():
        check_whole(least, **{path: option(path)})
    check_not_negative(**{path: option(path) for path in ('optim.base_lr', 'optim.weight_decay', 'optim.min_lr')})
    if cfg.optim.clip_grad_norm and not cfg.optim.clip_grad_norm_value > 0:
        raise ValueError(f'optim.clip_grad_norm_value: got {cfg.optim.clip_grad_norm_value}; accepted are numbers above 0')
    if cfg.metric_agg not in ('argmax', 'argmin'):
        raise ValueError(f'metric_agg: got {cfg.metric_agg!r}; accepted are argmax, argmin')
    for path in ('train.sampler', 'val.sampler'):
        if option(path) not in SAMPLERS:
            raise ValueError(f'{path}: got {option(path)!r}; accepted are {", ".join(SAMPLERS)}')
    lookup('model.type', cfg.model.type, register.network_dict)
    if cfg.model.type == 'TopoGPSModel':
        _, attention = split_layer_type(cfg.gt.layer_type)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # the model's own layers will warn
            gps_attention_kwargs(attention, cfg.gt.dim_hidden, cfg.gt.n_heads, cfg.gt.attn_dropout)
    if cfg.model.type == 'gnn':
        for path, known in NAMES_OF_GNN.items():
            if option(path.removesuffix('_name')):  # an encoder is looked up where there is to be one
                lookup(path, option(path), known)
    if cfg.gnn.head == 'graph':
        lookup('model.graph_pooling', cfg.model.graph_pooling, register.pooling_dict)
    for name in cfg.custom_metrics:
        lookup('custom_metrics', name, register.metric_dict)
    if not cfg.custom_metrics:
        lookup('dataset.task_type, without custom_metrics', cfg.dataset.task_type, {'classification': (), **METRICS})
    create_scheduler(create_optimizer([torch.nn.Parameter(torch.zeros(1))]))


def _warn_of_unread_options() -> None:
    r"""Warns of options that differ from their defaults and that GraphGPS reads, but not this runner."""
    before = defaults()
    for path, instead in UNREAD.items():
        if option(path) != option(path, before) and not _is_read(path):
            warnings.warn(f'{path}: got {option(path)!r}, which train does not read: {instead}', stacklevel=2)


def _is_read(path: str) -> bool:
    r"""Returns whether an option of :obj:`UNREAD` is read after all, or says what holds anyway."""
    if path.startswith('dataset.'):
        # What a loader of the user's own reads is not known.
        return cfg.dataset.format not in FORMATS or (path == 'dataset.split' and cfg.dataset.format in SPLIT_BY_SHARES)
    if path == 'train.iter_per_epoch':
        return any('saint' in group.sampler for group in (cfg.train, cfg.val))
    return path == 'train.mode' and cfg.train.mode in ('custom', 'standard')


def _warn_if_nothing_is_redrawn(module: RunModule) -> None:
    if cfg.topomask.redraw_period and not drawn_parts(module.model):
        known = ', '.join(name for name, kind in FEATURE_MAPS.items() if kind.redraw is not FeatureMap.redraw)
        warnings.warn(
            f'topomask.redraw_period: got {cfg.topomask.redraw_period} for a model in which nothing is drawn at random; the '
            f'feature maps {known} are, and the mask StochasticRPE',
            stacklevel=2,
        )


class _Progress(pl.Callback):  # type: ignore[misc]
    r"""Shows an :class:`~pyg_topomask.runs.progress.EpochBar` while Lightning trains."""

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.bar = EpochBar('train', trainer.max_epochs, trainer.num_training_batches, trainer.current_epoch)

    def on_train_batch_end(self, *args: Any, **kwargs: Any) -> None:
        self.bar.update()

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        # Lightning asks callbacks before the module at the end of an epoch: its metrics are known at the next start.
        self._show(pl_module)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._show(pl_module)

    def _show(self, module: RunModule) -> None:
        if module.run.history:
            self.bar.show(module.run.history[-1], 'train_loss', module.run.metric)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage == 'fit' and hasattr(self, 'bar'):
            self.bar.close()


def _trainer(device: torch.device) -> Any:
    local = int(os.environ['LOCAL_WORLD_SIZE']) if num_processes() > 1 else 1
    return pl.Trainer(
        accelerator=device.type,
        devices=local,
        num_nodes=num_processes() // local,
        # Some local layers have parameters that the last layer does not use.
        strategy='ddp_find_unused_parameters_true' if num_processes() > 1 else 'auto',
        use_distributed_sampler=False,
        max_epochs=cfg.optim.max_epoch,
        gradient_clip_val=cfg.optim.clip_grad_norm_value if cfg.optim.clip_grad_norm else None,
        accumulate_grad_batches=cfg.optim.batch_accumulation,
        num_sanity_val_steps=0,
        callbacks=[_Progress()] if cfg.topomask.progress else [],
        # Of these, and of who takes which samples, the module and its loaders take care.
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
    )


def _fit(trainer: Any, module: RunModule, loaders: list[Any]) -> None:
    progress = trainer.fit_loop.epoch_progress.current
    progress.processed = progress.completed = len(module.run.history)
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
    device = find_device('accelerator', cfg.accelerator)
    _check_devices()
    # The configuration as it is before the loader adds what depends on the data.
    metric, maximize = f'val_{metric_best()}', higher_is_better(metric_best())
    run = Run(run_dir, cfg.dump(), metric, maximize, FREE_OPTIONS, LOGS)
    checkpoint = run.load() if resume else None
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
    trainer = _trainer(device)
    try_first_step(loaders[0], trainer.strategy.root_device)  # what fails here leaves an earlier run as it is
    with run.open(checkpoint):
        if rank() == 0:
            for split in SPLITS:
                truncate_stats(run_dir / split / 'stats.json', len(run.history))
        module = RunModule(run, checkpoint)
        _warn_if_nothing_is_redrawn(module)
        if len(run.history) < cfg.optim.max_epoch:
            _fit(trainer, module, loaders)
        module.model.load_state_dict(run.load_best()['model'])
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
        resume (bool, optional): Whether to continue after the last finished epoch, as :obj:`train.auto_resume` does.
            (default: :obj:`False`)
        repeat (int, optional): Number of runs, with seeds :obj:`cfg.seed`, :obj:`cfg.seed + 1` and so on.
            (default: :obj:`1`)
        out (str or Path, optional): The output folder, instead of :obj:`cfg.out_dir`. (default: :obj:`None`)

    Raises:
        ValueError: If an option is unknown, out of its range or does not fit the data, a checkpoint belongs to another
            configuration, another process trains in the folder, or the data cannot be shared by the processes.
        FloatingPointError: If the training loss becomes NaN or infinite.

    Returns:
        One dictionary for each seed with the metrics of the best model, such as :obj:`test_accuracy`.
    """
    check_whole(1, repeat=repeat)
    for name in ('lightning.pytorch', 'pytorch_lightning'):
        logging.getLogger(name).setLevel(logging.WARNING)
    connect()
    results = []
    for index in range(repeat):
        load_config(cfg_file, options)
        cfg.seed += index
        run_dir = Path(cfg.out_dir if out is None else out) / run_name(cfg_file) / str(cfg.seed)
        with warnings.catch_warnings():
            warnings.filterwarnings('ignore', message='.*does not have many workers.*')
            warnings.filterwarnings('ignore', message='.*LeafSpec.*')  # Lightning's, about itself
            results.append(_train_seed(run_dir, resume or cfg.train.auto_resume))
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
