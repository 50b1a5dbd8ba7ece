r"""The Lightning module of a run: optimization, metrics and checkpoints."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import Parameter
from torch.optim import Adagrad, AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, ReduceLROnPlateau
from torch_geometric import seed_everything
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, from_config
from torch_geometric.graphgym.model_builder import GraphGymModule
from torch_geometric.graphgym.models.head import GNNEdgeHead, GNNNodeHead
from torch_geometric.graphgym.utils.comp_budget import params_count
from torch_geometric.graphgym.utils.epoch import is_eval_epoch

from pyg_topomask.apps.datasets.bases import SPLITS
from pyg_topomask.apps.runs.checkpoint import set_rng_state
from pyg_topomask.apps.runs.devices import HostCopy, num_processes, rank, total
from pyg_topomask.apps.runs.run import EpochBar, Row, Run
from pyg_topomask.apps.train.metrics import EpochMeter, labelled_loss, scores_are_sigmoids
from pyg_topomask.errors import warn
from pyg_topomask.feature_maps.feature_map import FeatureMap
from pyg_topomask.graphgym.names.heads import InductiveEdgeHead
from pyg_topomask.graphgym.names.lookup import lookup
from pyg_topomask.graphgym.names.networks import registered_modules
from pyg_topomask.masks import StochasticRPEMask

# The argument names below are keys of `cfg.optim`: GraphGym binds one to the other.


def adamw(params: Iterable[Parameter], base_lr: float, weight_decay: float) -> AdamW:
    return AdamW(params, lr=base_lr, weight_decay=weight_decay)


def adagrad(params: Iterable[Parameter], base_lr: float, weight_decay: float) -> Adagrad:
    return Adagrad(params, lr=base_lr, weight_decay=weight_decay)


def plateau(optimizer: Optimizer, schedule_patience: int, lr_decay: float) -> ReduceLROnPlateau:
    return ReduceLROnPlateau(optimizer, patience=schedule_patience, factor=lr_decay)


def reduce_on_plateau(optimizer: Optimizer, reduce_factor: float, schedule_patience: int, min_lr: float) -> ReduceLROnPlateau:
    return ReduceLROnPlateau(optimizer, factor=reduce_factor, patience=schedule_patience, min_lr=min_lr)


def with_warmup(optimizer: Optimizer, warmup: int, epochs: int, decay: Callable[[float], float]) -> LambdaLR:
    r"""Creates a schedule with a linear warmup to the base rate, followed by a decay to zero after the last epoch. Unlike PyG's
    schedules, which are stepped once per batch, it has no epoch with rate zero.

    Of :math:`w` warmup epochs, epoch :math:`t` has the factor :math:`(t + 1) / w`. Then :obj:`decay` is the factor as a
    function of the progress, from 0 to 1.
    """

    def factor(epoch: int) -> float:
        if epoch < warmup:
            return (epoch + 1) / warmup
        return decay(min(1.0, (epoch - warmup) / max(1, epochs - warmup)))

    return LambdaLR(optimizer, factor)


def linear_with_warmup(optimizer: Optimizer, num_warmup_epochs: int, max_epoch: int) -> LambdaLR:
    return with_warmup(optimizer, num_warmup_epochs, max_epoch, lambda progress: 1 - progress)


def cosine_with_warmup(optimizer: Optimizer, num_warmup_epochs: int, max_epoch: int) -> LambdaLR:
    return with_warmup(optimizer, num_warmup_epochs, max_epoch, lambda progress: (1 + math.cos(math.pi * progress)) / 2)


#: Used for unregistered names. GraphGPS registers these names itself.
OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {'adamW': adamw, 'adagrad': adagrad}
SCHEDULERS: dict[str, Callable[..., LRScheduler]] = {
    'plateau': plateau,
    'reduce_on_plateau': reduce_on_plateau,
    'linear_with_warmup': linear_with_warmup,
    'cosine_with_warmup': cosine_with_warmup,
    'polynomial_with_warmup': linear_with_warmup,  # of power 1
}


def create_optimizer(params: Iterable[Parameter]) -> Optimizer:
    r"""Creates the optimizer :obj:`cfg.optim.optimizer`."""
    create = lookup('optim.optimizer', cfg.optim.optimizer, register.optimizer_dict, OPTIMIZERS)
    return from_config(create)([p for p in params if p.requires_grad], cfg=cfg.optim)


def create_scheduler(optimizer: Optimizer) -> Any:
    r"""Creates the schedule :obj:`cfg.optim.scheduler`. Step it once per epoch."""
    create = lookup('optim.scheduler', cfg.optim.scheduler, register.scheduler_dict, SCHEDULERS)
    return from_config(create)(optimizer, cfg=cfg.optim)


def modules_with_random_features(network: torch.nn.Module) -> list[FeatureMap | StochasticRPEMask]:
    r"""Returns the feature maps and masks of a network with random features."""
    return [
        module
        for module in network.modules()
        if isinstance(module, StochasticRPEMask)
        or (isinstance(module, FeatureMap) and type(module).redraw is not FeatureMap.redraw)
    ]


def takes_one_pass(network: torch.nn.Module, loaders: Sequence[Any]) -> bool:
    r"""Returns whether the loaders of splits are about nodes or edges of the same graphs, for which the network computes the
    same.
    """
    heads = [module for module in network.modules() if isinstance(module, (GNNNodeHead, GNNEdgeHead))]
    of_parts = any(not isinstance(head, InductiveEdgeHead) for head in heads)
    return of_parts and all(type(each) is type(loaders[0]) and each.dataset is loaders[0].dataset for each in loaders)


def outputs_of_splits(
    network: torch.nn.Module, batch: Data, splits: Sequence[str]
) -> Iterator[tuple[str, torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]]:
    r"""Yields the predictions and the labels of each split, of all from one pass if the batch has masks or pairs of
    several, and what else a head has measured.
    """
    if len(splits) == 1:
        (batch.split,) = splits
        pred, true, *measured = network(batch)
        yield batch.split, pred, true, measured[0] if measured else {}
        return
    batch.split = 'chosen'  # by which the head selects
    if cfg.dataset.task in ('edge', 'link_pred'):
        labels = [batch[f'{split}_edge_label'] for split in splits]
        batch.chosen_edge_index = torch.cat([batch[f'{split}_edge_index'] for split in splits], dim=1)
        batch.chosen_edge_label = torch.cat(labels)
        sizes = [label.size(0) for label in labels]
        for split, pred, true in zip(splits, *(t.split(sizes) for t in network(batch)), strict=True):
            yield split, pred, true, {}
        return
    masks = [batch[f'{split}_mask'] for split in splits]
    chosen = torch.stack(masks).any(0)
    batch.chosen_mask = chosen
    pred, true = network(batch)
    for split, mask in zip(splits, masks, strict=True):
        yield split, pred[mask[chosen]], true[mask[chosen]], {}


class RunModule(GraphGymModule):
    r"""A network of GraphGym that records its epochs in a run, and saves the run at the end of each epoch, see
    :meth:`~pyg_topomask.apps.runs.Run.save`.

    Each of several processes takes its part of every batch. Gradients and metrics cover all processes, and process 0 writes.

    The network is :obj:`cfg.model.type`, for data with the sizes in :obj:`cfg.share`.
    """

    def __init__(self) -> None:
        # GraphGym predicts one score for two classes.
        binary = cfg.dataset.task_type == 'classification' and cfg.share.dim_out == 2
        with registered_modules():
            super().__init__(cfg.share.dim_in, 1 if binary else cfg.share.dim_out, cfg)
        cfg.params = params_count(self.model)

    def record_in(self, run: Run, checkpoint: dict[str, Any] | None = None, label: str | None = None) -> None:
        r"""Sets the run that records the epochs, which is open, the checkpoint to continue from, and the label of a progress
        bar that does not stay.
        """
        self.run, self.label = run, label
        self.meters = {split: EpochMeter(split) for split in SPLITS[: cfg.share.num_splits]}
        self._checkpoint = checkpoint
        self._epoch_start = self._batch_start = time.perf_counter()
        if checkpoint is not None:
            self.model.load_state_dict(checkpoint['model'])

    def configure_optimizers(self) -> Any:
        # Lightning does not step the schedule, because it steps some kinds before the checkpoint at the end of an epoch and
        # others after it.
        optimizer = create_optimizer(self.model.parameters())
        self.scheduler = create_scheduler(optimizer)
        return optimizer

    def on_train_start(self) -> None:
        checkpoint, self._checkpoint = self._checkpoint, None
        states = [] if checkpoint is None else checkpoint['rng']
        if rank() < len(states):
            set_rng_state(states[rank()])
        elif rank() > 0:
            # All processes create equal models. From here on, dropout and walks differ between processes.
            seed_everything(int(np.random.default_rng([cfg.seed, self.current_epoch, rank()]).integers(2**32)))
        epochs, batches, finished = cfg.optim.max_epoch, self.trainer.num_training_batches, self.current_epoch
        hidden, stays = not cfg.topomask.progress, self.label is None
        self.bar = EpochBar(self.label or 'train', epochs, batches, finished, hidden, stays)
        if checkpoint is None:
            self.save()  # so that a run can resume during the first epoch too
        else:
            self._continue(checkpoint)

    def _continue(self, checkpoint: dict[str, Any]) -> None:
        r"""Restores the optimizer and the schedule after the epochs of a checkpoint."""
        optimizer = self.trainer.optimizers[0]
        first_rates = [group['lr'] for group in optimizer.param_groups]
        optimizer.load_state_dict(checkpoint['optimizer'])
        if isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.load_state_dict(checkpoint['scheduler'])
            return
        # Not from their states, because the length of the schedule may have changed.
        for group, rate in zip(optimizer.param_groups, first_rates, strict=True):
            group['lr'] = rate
        with warnings.catch_warnings():
            warnings.filterwarnings('ignore', message='Detected call of `lr_scheduler.step\\(\\)` before')
            for _ in self.run.history:
                self.scheduler.step()

    def on_train_epoch_start(self) -> None:
        period, epoch = cfg.topomask.redraw_period, self.current_epoch
        # The first and the last epoch are validated too, as in GraphGym. Lightning itself validates only multiples.
        self.trainer.check_val_every_n_epoch = 1 if is_eval_epoch(epoch) else epoch + 2
        if period > 0 and epoch > 0 and epoch % period == 0:
            # Drawn per epoch, equal in all processes and in resumed runs.
            generator = torch.Generator().manual_seed(int(np.random.default_rng([cfg.seed, epoch]).integers(2**63)))
            for module in modules_with_random_features(self.model):
                module.redraw(generator)
        self._epoch_start = self._batch_start = time.perf_counter()

    def _lr(self) -> float:
        return float(self.trainer.optimizers[0].param_groups[0]['lr']) if self.trainer.optimizers else 0.0

    def loaders_of_evaluation(self, loaders: list[Any]) -> list[Any]:
        r"""Returns the loaders of validation and testing, or that of validation alone if one pass serves both."""
        splits = SPLITS[1 : 1 + len(loaders)]
        at_once = takes_one_pass(self.model, loaders)
        self._evaluated = [splits] if at_once else [(split,) for split in splits]
        return loaders[:1] if at_once else loaders

    def _step(self, batch: Data, splits: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        r"""Adds a batch to the meters of some splits. Returns the loss and the number of labels of the last one."""
        for split, pred, true, measured in outputs_of_splits(self, batch, splits):
            loss, score = labelled_loss(pred, true)
            seconds = time.perf_counter() - self._batch_start
            shown = pred.view_as(score) if scores_are_sigmoids(pred) else score
            self.meters[split].update(true, shown.detach(), loss, self._lr(), seconds, measured)
            self._batch_start = time.perf_counter()
        return loss, (~true.isnan()).sum()

    def training_step(self, batch: Data, *args: Any, **kwargs: Any) -> torch.Tensor:
        loss, count = self._step(batch, SPLITS[:1])
        losses, counts = total(torch.stack([loss.detach().float(), count.float()]))
        self._loss = HostCopy(losses)  # of all processes, so that they stop together
        # As in GraphGPS, gradients of accumulated batches add up. Lightning averages them.
        loss = loss * int(cfg.optim.batch_accumulation)
        # Gradients are averaged over the processes for any numbers of labels.
        return loss if num_processes() == 1 else loss * (count * num_processes() / counts.clamp(min=1))

    def on_after_backward(self) -> None:
        # Not before, because a device would have nothing to do while the host reads the loss.
        (loss,) = self._loss.read()
        if not math.isfinite(loss):
            cause = self._cause_of_nan()
            raise FloatingPointError(f'the training loss became {loss.item()} in epoch {self.current_epoch}: {cause}')

    def _cause_of_nan(self) -> str:
        # Not from the batch, in which the network has replaced features by its own.
        stored = getattr(self.trainer.train_dataloader.dataset, '_data', {})
        broken = [key for key, value in dict(stored).items() if torch.is_tensor(value) and not value.isfinite().all()]
        if broken:
            return f'the data hold NaN or infinite numbers in {", ".join(broken)}'
        if all(bool(weight.isfinite().all()) for weight in self.model.parameters()):
            return 'the data and the weights are finite, so this step overflowed (lower optim.base_lr), or the loss gives NaN'
        return 'the weights became infinite in an earlier step: lower optim.base_lr, or set optim.clip_grad_norm: True'

    def validation_step(self, batch: Data, batch_idx: int, dataloader_idx: int = 0) -> None:
        self._step(batch, self._evaluated[dataloader_idx])

    def finish_meters(self, epoch: int | None = None) -> Row:
        r"""Returns the metrics of all splits since the last call, and logs them if an epoch is given."""
        return {key: value for meter in self.meters.values() for key, value in meter.finish(epoch).items()}

    def on_train_epoch_end(self) -> None:
        lr, seconds = self._lr(), time.perf_counter() - self._epoch_start
        metrics = self.finish_meters(self.current_epoch)
        if 'train_loss' not in metrics:
            warn('train_mask: no batch of an epoch has a training label, so this epoch trains nothing')
        self.run.history.append({'epoch': self.current_epoch, 'lr': lr, 'seconds': seconds, **metrics})
        self.bar.show(self.run.history[-1], 'train_loss', self.run.metric)
        if not isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step()
        else:  # every epoch, with the last validation, as in GraphGPS
            self.scheduler.step(next(row['val_loss'] for row in reversed(self.run.history) if 'val_loss' in row))
        self.save()

    def on_train_batch_end(self, *args: Any) -> None:
        self.bar.update()

    def teardown(self, stage: str) -> None:
        if stage == 'fit' and hasattr(self, 'bar'):
            self.bar.close()

    def on_fit_end(self) -> None:
        for meter in self.meters.values():
            meter.close()

    def save(self) -> None:
        r"""Saves the run with all state that an identical continuation needs. All processes must call this."""
        self.run.save(
            {'model': self.model.state_dict()},
            optimizer=self.trainer.optimizers[0].state_dict(),
            scheduler=self.scheduler.state_dict(),
        )
