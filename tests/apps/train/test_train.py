from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from csv_tables import without_seconds
from grids import at_night, by_day
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.logger import Logger

from pyg_topomask.apps.runs.checkpoint import load_checkpoint, save_checkpoint
from pyg_topomask.apps.runs.run import locked
from pyg_topomask.apps.train import load_model, module, runner, train
from pyg_topomask.apps.train.metrics import higher_is_better, metric_best, truncate_stats
from pyg_topomask.feature_maps import FavorFeatures
from pyg_topomask.graphgym.names.networks import TopoGPSModel
from pyg_topomask.masks import StochasticRPEMask
from pyg_topomask.nn import GRFAttention
from pyg_topomask.utils.files import save_tensors

PLAIN = ['optim.max_epoch', '1', 'gt.layer_type', 'GINE+None', 'topomask.transforms', '[]']

pytestmark = pytest.mark.usefixtures('few_digits')


def read_metrics(folder: Path) -> list[dict[str, str]]:
    return without_seconds(folder / 'metrics.csv')


def run_dir(out: Path, seed: int = 0) -> Path:
    return out / 'digits' / str(seed)


class Stop(Exception):
    pass


def train_until(epoch: int, monkeypatch: pytest.MonkeyPatch, *args: object, **kwargs: object) -> None:
    """Trains, and fails in the middle of an epoch."""
    original = module.RunModule.training_step

    def step(self: module.RunModule, batch: object, *rest: object) -> torch.Tensor:
        if self.current_epoch == epoch and rest[0] == 1:
            raise Stop
        return original(self, batch, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(module.RunModule, 'training_step', step)
        with pytest.raises(Stop):
            train(*args, **kwargs)


def test_outputs(tmp_path: Path, digits: Path, small: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip('tensorboardX')
    options = [*small, 'optim.max_epoch', '2', 'tensorboard_each_run', 'True', 'seed', '3']
    (result,) = train(digits, options, out=tmp_path)
    folder = run_dir(tmp_path, 3)
    rows = read_metrics(folder)
    assert [row['epoch'] for row in rows] == ['0', '1']
    assert {f'{split}_{name}' for split in ('train', 'val', 'test') for name in ('loss', 'accuracy')} <= set(rows[0])
    best = max(rows, key=lambda row: float(row['val_accuracy']))
    # The model that is evaluated in the end is the best one: it reproduces its epoch's numbers.
    assert result['test_loss'] == pytest.approx(float(best['test_loss']), rel=1e-5)
    assert result['val_accuracy'] == float(best['val_accuracy'])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == [
        f'validation accuracy {result["val_accuracy"]:.4f}',
        f'test accuracy {result["test_accuracy"]:.4f}',
    ]
    used = yaml.safe_load((folder / 'config.yaml').read_text())
    assert used['seed'] == 3
    assert used['gt']['dim_hidden'] == 8
    assert used['gt']['layer_type'] == 'GINE+GRF'
    assert list((folder / 'train').glob('events*'))
    stats = [json.loads(line) for line in (folder / 'val' / 'stats.json').read_text().splitlines()]
    assert [line['epoch'] for line in stats] == [0, 1]
    checkpoint = load_checkpoint(folder / 'checkpoints' / 'last.pt')
    assert [row['epoch'] for row in checkpoint['history']] == [0, 1]


@pytest.mark.parametrize(
    ('scheduler', 'attention'),
    [
        at_night('cosine_with_warmup', 'gt.layer_type GINE+GRF'),
        ('step', 'gt.layer_type None+GRF topomask.transforms [] topomask.GRF.resample forward'),
        ('none', 'gt.layer_type None+Hop topomask.transforms []'),  # which stores distances
        ('reduce_on_plateau', 'gt.layer_type GINE+Linear topomask.Linear.feature_map favor topomask.redraw_period 1'),
    ],
)
def test_resumed_run_is_identical(
    tmp_path: Path, digits: Path, small: list[str], scheduler: str, attention: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [*small, 'optim.scheduler', scheduler, 'optim.steps', '[1,2]', 'optim.schedule_patience', '0']
    options += ['train.batch_size', '64', *attention.split()]
    options += ['gt.attn_dropout', '0.1']
    whole = train(digits, options, out=tmp_path / 'whole')
    train_until(1, monkeypatch, digits, options, out=tmp_path / 'parts')
    assert len(read_metrics(run_dir(tmp_path / 'parts'))) == 1
    torch.rand(17)  # the state of the process must not matter
    resumed = train(digits, options, resume=True, out=tmp_path / 'parts')
    assert read_metrics(run_dir(tmp_path / 'parts')) == read_metrics(run_dir(tmp_path / 'whole'))
    assert resumed == whole
    left = load_checkpoint(run_dir(tmp_path / 'whole') / 'checkpoints' / 'last.pt')
    right = load_checkpoint(run_dir(tmp_path / 'parts') / 'checkpoints' / 'last.pt')
    assert all(torch.equal(left['model'][key], right['model'][key]) for key in left['model'])


@pytest.mark.parametrize('scheduler', by_day(['none', 'cos', 'cosine_with_warmup', 'step'], ['cosine_with_warmup']))
def test_a_run_that_is_made_longer_has_the_rates_of_the_longer_one(
    tmp_path: Path, digits: Path, small: list[str], scheduler: str
) -> None:
    options = [*small, 'topomask.transforms', '[]', 'gt.layer_type', 'GINE+None', 'optim.num_warmup_epochs', '2']
    options += ['optim.scheduler', scheduler, 'optim.steps', '[2,5,6]', 'optim.max_epoch']
    train(digits, [*options, '8'], out=tmp_path / 'whole')
    train(digits, [*options, '4'], out=tmp_path / 'parts')
    train(digits, [*options, '8'], resume=True, out=tmp_path / 'parts')
    whole, resumed = ([row['lr'] for row in read_metrics(run_dir(tmp_path / name))] for name in ('whole', 'parts'))
    assert resumed[4:] == whole[4:]
    assert len(set(resumed[4:])) == {'none': 1, 'step': 3}.get(scheduler, 4)


def test_random_features_are_redrawn_every_so_many_epochs(
    tmp_path: Path, digits: Path, small: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [*small, 'optim.max_epoch', '5', 'gt.layer_type', 'None+Linear', 'topomask.Linear.feature_map', 'favor:3']
    seen: list[torch.Tensor] = []
    monkeypatch.setattr(FavorFeatures, 'forward', _recorded(FavorFeatures.forward, seen))
    train(digits, [*options, 'topomask.redraw_period', '2', 'train.eval_period', '4', 'gt.layers', '1'], out=tmp_path)
    assert seen[0].shape[0] == 3
    assert len({tuple(projection.flatten().tolist()) for projection in seen}) == 3  # each time others
    options = [*small, 'optim.max_epoch', '4', 'gt.layer_type', 'None+Masked', 'topomask.mask', 'StochasticRPE']
    drawn: dict[str, int] = {'0': 0, '2': 0}
    redraw = StochasticRPEMask.redraw
    for period in drawn:

        def counted(mask: StochasticRPEMask, *arguments: torch.Generator, period: str = period) -> None:
            drawn[period] += 1
            redraw(mask, *arguments)

        monkeypatch.setattr(StochasticRPEMask, 'redraw', counted)
        train(digits, [*options, 'topomask.redraw_period', period, 'gt.layers', '1'], out=tmp_path / period)
    assert drawn['2'] == drawn['0'] + 1  # before the third of four epochs
    with pytest.raises(ValueError, match=r'^topomask.redraw_period: got -1'):
        train(digits, [*options, 'topomask.redraw_period', '-1'], out=tmp_path)


def _recorded(forward: Callable[..., object], seen: list[torch.Tensor]) -> Callable[..., object]:
    def recording(self: FavorFeatures, *args: object) -> object:
        seen.append(self.projection.clone())
        return forward(self, *args)

    return recording


def test_stopped_in_the_first_epoch(tmp_path: Path, digits: Path, small: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    options = [*small, 'optim.max_epoch', '1', 'train.batch_size', '64']
    train_until(0, monkeypatch, digits, options, out=tmp_path / 'parts')
    assert load_checkpoint(run_dir(tmp_path / 'parts') / 'checkpoints' / 'last.pt')['history'] == []
    assert train(digits, options, resume=True, out=tmp_path / 'parts') == train(digits, options, out=tmp_path / 'whole')


def test_resuming(tmp_path: Path, digits: Path, small: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    options = [*small, 'optim.max_epoch', '1', 'optim.scheduler', 'none']
    first = train(digits, options, resume=True, out=tmp_path)
    assert 'no checkpoint' in capsys.readouterr().err
    assert train(digits, options, resume=True, out=tmp_path) == first  # finished: evaluates, trains no more
    train(digits, [*options, 'optim.max_epoch', '2'], resume=True, out=tmp_path)  # longer
    rows = read_metrics(run_dir(tmp_path))
    assert [row['epoch'] for row in rows] == ['0', '1']

    with pytest.raises(ValueError, match=r"gt.layer_type was 'GINE\+GRF' and is 'GINE\+Linear'"):
        train(digits, [*options, 'gt.layer_type', 'GINE+Linear'], resume=True, out=tmp_path)
    assert read_metrics(run_dir(tmp_path)) == rows

    path = run_dir(tmp_path) / 'checkpoints' / 'last.pt'
    save_tensors(path, {**load_checkpoint(path), 'schema_version': 0})
    with pytest.raises(ValueError, match=r'schema_version 0'):
        train(digits, options, resume=True, out=tmp_path)

    (run_dir(tmp_path) / 'notes.txt').write_text('mine')
    with pytest.raises(ValueError, match=r'^out: got .* another configuration: optim.max_epoch was 2 and is 1; accepted'):
        train(digits, options, out=tmp_path)
    train(digits, [*options, 'optim.max_epoch', '2'], out=tmp_path)  # afresh
    assert 'replacing the run' in capsys.readouterr().err
    assert [row['epoch'] for row in read_metrics(run_dir(tmp_path))] == ['0', '1']
    assert len((run_dir(tmp_path) / 'val' / 'stats.json').read_text().splitlines()) == 2
    assert (run_dir(tmp_path) / 'notes.txt').read_text() == 'mine'


def test_seeds(tmp_path: Path, digits: Path, small: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    options = [*small, 'optim.max_epoch', '1', 'topomask.transforms', '[]', 'gt.layer_type', 'GINE+None']
    results = train(digits, options, repeat=2, out=tmp_path)
    assert results[0] != results[1]
    mean = sum(result['test_accuracy'] for result in results) / 2
    assert capsys.readouterr().out.splitlines()[-1] == f'test accuracy {mean:.4f}'
    assert (run_dir(tmp_path, 1) / 'metrics.csv').exists()
    again = train(digits, [*options, 'seed', '1'], out=tmp_path / 'again')
    assert again == results[1:]
    with pytest.raises(ValueError, match=r'^repeat: got 0; accepted: whole numbers from 1'):
        train(digits, options, repeat=0, out=tmp_path)
    with pytest.raises(ValueError, match=r'^seed: got 4294967295; accepted: whole numbers from 0 to 4294967294'):
        train(digits, [*options, 'seed', '4294967295'], repeat=2, out=tmp_path / 'none')
    assert not (tmp_path / 'none').exists()


@pytest.mark.parametrize(
    'attention',
    [
        at_night('gt.layer_type GINE+GRF'),
        'gt.layer_type None+GRF topomask.transforms [] topomask.GRF.resample forward',
        'gt.layer_type GINE+KMIP topomask.transforms [] topomask.KMIP.k 4 topomask.KMIP.random_fraction 0.5',
        at_night('gt.layer_type None+Linear topomask.transforms [] topomask.Linear.feature_map favor'),
        at_night('gt.layer_type GINE+Transformer topomask.transforms [] gt.attn_dropout 0.3'),
    ],
)
def test_equal_seeds_are_equal_runs(tmp_path: Path, digits: Path, small: list[str], attention: str) -> None:
    options = [*small, 'optim.max_epoch', '1', *attention.split()]
    for name in ('first', 'second'):
        torch.rand(17)  # the state of the process must not matter
        train(digits, options, out=tmp_path / name)
    folders = [run_dir(tmp_path / name) for name in ('first', 'second')]
    assert read_metrics(folders[0]) == read_metrics(folders[1])
    first, second = (load_checkpoint(folder / 'checkpoints' / 'last.pt')['model'] for folder in folders)
    torch.testing.assert_close(first, second, rtol=0, atol=0)


@pytest.mark.parametrize('validated', [True, False])
def test_a_trained_model_is_loaded(tmp_path: Path, digits: Path, small: list[str], validated: bool) -> None:
    (metrics,) = train(digits, [*small, *PLAIN], out=tmp_path)
    folder = run_dir(tmp_path)
    if not validated:  # the model of the last epoch, which is the same
        last = load_checkpoint(folder / 'checkpoints' / 'last.pt')
        save_checkpoint(folder / 'checkpoints' / 'last.pt', {**last, 'best': None})
        (folder / 'checkpoints' / 'best.pt').unlink()
    torch.manual_seed(3)
    model, loaders = load_model(folder)
    drawn = torch.rand(1)
    assert drawn == torch.rand(1, generator=torch.Generator().manual_seed(3))  # the random numbers go on
    assert not model.training
    outputs = [model(batch) for batch in loaders[2]]
    right = torch.cat([pred.argmax(1) == true for pred, true in outputs]).float().mean()
    assert float(right) == pytest.approx(metrics['test_accuracy'], abs=1e-4)
    with pytest.raises(ValueError, match=r'^folder: got .*; accepted: folders of one seed of a run'):
        load_model(tmp_path)


def test_random_splits_of_a_trained_model_are_those_of_its_seed(
    tmp_path: Path, digits: Path, small: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    train(digits, [*small, *PLAIN, 'seed', '5'], out=tmp_path)
    original, drawn = runner.create_loaders, []

    def record() -> list[object]:
        drawn.append(torch.rand(1))
        return original()

    monkeypatch.setattr(runner, 'create_loaders', record)
    load_model(run_dir(tmp_path, 5))
    assert drawn == [torch.rand(1, generator=torch.Generator().manual_seed(5))]


def test_a_missing_best_model_is_not_replaced_by_the_last(tmp_path: Path, digits: Path, small: list[str]) -> None:
    train(digits, [*small, *PLAIN], out=tmp_path)
    (run_dir(tmp_path) / 'checkpoints' / 'best.pt').unlink()
    with pytest.raises(ValueError, match=r'best.pt: got no file; accepted: the model of the best epoch'):
        load_model(run_dir(tmp_path))


def test_the_configuration_that_a_run_writes_trains_again(tmp_path: Path, digits: Path, small: list[str]) -> None:
    train(digits, [*small, *PLAIN], out=tmp_path)
    train(run_dir(tmp_path) / 'config.yaml', out=tmp_path)
    assert read_metrics(run_dir(tmp_path)) == read_metrics(tmp_path / 'config' / '0')


def test_gradients_add_up_over_accumulated_batches_and_are_clipped_to_a_norm(
    tmp_path: Path, digits: Path, small: list[str]
) -> None:
    plain = ['gt.layer_norm', 'True', 'gt.batch_norm', 'False', 'gt.dropout', '0.0']
    plain += ['optim.optimizer', 'sgd', 'optim.scheduler', 'none', 'optim.weight_decay', '0.0', 'optim.clip_grad_norm', 'False']

    def weights(name: str, *options: str) -> dict[str, torch.Tensor]:
        train(digits, [*small, *PLAIN, *plain, *options], out=tmp_path / name)
        checkpoint = load_checkpoint(run_dir(tmp_path / name) / 'checkpoints' / 'last.pt')
        return {key: value for key, value in checkpoint['model'].items() if value.is_floating_point()}

    start = weights('start', 'optim.base_lr', '0.0')
    together = weights('together', 'optim.base_lr', '0.01')
    halves = weights('halves', 'optim.base_lr', '0.01', 'train.batch_size', '70', 'optim.batch_accumulation', '2')
    expected = {key: value + 2 * (together[key] - value) for key, value in start.items()}
    torch.testing.assert_close(halves, expected, rtol=1e-4, atol=1e-6)

    def moved(after: dict[str, torch.Tensor]) -> float:
        return float(torch.cat([(after[key] - start[key]).double().flatten() for key in start]).norm())

    assert moved(together) > 0.01 * 0.125
    clipped = weights('clipped', 'optim.base_lr', '0.01', 'optim.clip_grad_norm', 'True', 'optim.clip_grad_norm_value', '0.125')
    assert moved(clipped) == pytest.approx(0.01 * 0.125, rel=1e-3)


def test_stats_after_the_checkpoint_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / 'stats.json'
    truncate_stats(path, 1)
    assert not path.exists()
    path.write_bytes(b'{"epoch": 0}\ngarbage \xff\n[3]\n{"loss": 1}\n{"epoch": 1}\n{"epoch": 2, "lo')
    truncate_stats(path, 2)
    assert path.read_text() == '{"epoch": 0}\n{"epoch": 1}\n'
    truncate_stats(path, 1)
    assert path.read_text() == '{"epoch": 0}\n'
    truncate_stats(path, 0)
    assert path.read_text() == ''


def test_first_and_last_epoch_are_validated(tmp_path: Path, digits: Path, small: list[str]) -> None:
    options = [*small, 'train.eval_period', '3', 'gt.layer_type', 'GINE+None', 'topomask.transforms', '[]']
    (result,) = train(digits, [*options, 'optim.max_epoch', '5'], out=tmp_path)
    rows = read_metrics(run_dir(tmp_path))
    assert [bool(row['val_loss']) for row in rows] == [True, False, True, False, True]
    best = max((row for row in rows if row['val_loss']), key=lambda row: float(row['val_accuracy']))
    assert result['val_loss'] == pytest.approx(float(best['val_loss']), rel=1e-5)


def test_plateau_counts_epochs_by_the_last_validation(
    tmp_path: Path, digits: Path, small: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [*small, 'train.eval_period', '5', 'gt.layer_type', 'GINE+None', 'topomask.transforms', '[]']
    options += ['optim.scheduler', 'reduce_on_plateau', 'optim.schedule_patience', '1', 'optim.reduce_factor', '0.5']
    options += ['optim.max_epoch', '4', 'train.batch_size', '70']
    seen, step = list[float](), ReduceLROnPlateau.step

    def recording(self: ReduceLROnPlateau, loss: float) -> None:
        seen.append(loss)
        step(self, loss)

    with monkeypatch.context() as patch:
        patch.setattr(ReduceLROnPlateau, 'step', recording)
        train(digits, options, out=tmp_path / 'whole')
    losses = [float(row['val_loss']) for row in read_metrics(run_dir(tmp_path / 'whole')) if row['val_loss']]
    assert seen == pytest.approx([losses[0]] * 3 + [losses[1]])
    train_until(2, monkeypatch, digits, options, out=tmp_path / 'parts')
    train(digits, options, resume=True, out=tmp_path / 'parts')  # goes on counting
    for out in (tmp_path / 'whole', tmp_path / 'parts'):
        rates = [float(row['lr']) for row in read_metrics(run_dir(out))]
        # The same loss is no improvement: twice in the second and the third epoch.
        assert [rate / rates[0] for rate in rates] == [1, 1, 1, 0.5]


def test_auto_resume(tmp_path: Path, digits: Path, small: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    options = [*small, 'gt.layer_type', 'GINE+None', 'topomask.transforms', '[]', 'train.auto_resume', 'True']
    first = train(digits, [*options, 'optim.max_epoch', '1'], out=tmp_path)
    assert 'no checkpoint in' in capsys.readouterr().err
    last = run_dir(tmp_path) / 'checkpoints' / 'last.pt'
    before = last.read_bytes()
    assert train(digits, [*options, 'optim.max_epoch', '1'], out=tmp_path) == first
    assert last.read_bytes() == before


def test_loss_that_is_not_finite(tmp_path: Path, digits: Path, small: list[str]) -> None:
    with pytest.raises(FloatingPointError, match=r'training loss became (nan|inf) in epoch'):
        train(digits, [*small, 'optim.base_lr', '1e30', 'optim.clip_grad_norm', 'False'], out=tmp_path)


class HostReads(TorchDispatchMode):
    """Counts numbers that the host reads of tensors."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


def test_a_step_reads_nothing_that_the_model_does_not(
    tmp_path: Path, digits: Path, small: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []

    def counted(name: str) -> None:
        original = getattr(module.RunModule, name)

        def call(self: module.RunModule, *args: Any, **kwargs: Any) -> Any:
            with HostReads() as mode:
                result = original(self, *args, **kwargs)
            reads.append(mode.count)
            return result

        monkeypatch.setattr(module.RunModule, name, call)

    counted('forward')
    counted('training_step')
    counted('validation_step')
    train(digits, [*small, *PLAIN], out=tmp_path)
    assert len(reads) > 4
    assert max(reads) > 0  # what a new graph checks
    assert reads[1::2] == reads[::2]  # steps end after their models


def test_each_metric_of_an_epoch_is_computed_once(
    tmp_path: Path, digits: Path, small: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    original = Logger.classification_multi

    def counted(self: Logger) -> dict[str, float]:
        calls.append(self.name)
        return original(self)

    monkeypatch.setattr(Logger, 'classification_multi', counted)
    train(digits, [*small, *PLAIN, 'optim.max_epoch', '2'], out=tmp_path)
    assert calls == ['train', 'val', 'test'] * 2 + ['val', 'test']
    (first, second), rows = (
        [json.loads(line) for line in (run_dir(tmp_path) / 'val' / 'stats.json').read_text().splitlines()],
        read_metrics(run_dir(tmp_path)),
    )
    assert [first['accuracy'], second['accuracy']] == [float(row['val_accuracy']) for row in rows]


def test_metric_that_selects_the_best_epoch() -> None:
    cfg.metric_best, cfg.dataset.task_type, cfg.metric_agg = 'auto', 'classification', 'argmax'
    assert metric_best() == 'accuracy'
    cfg.metric_best = 'error'
    assert metric_best() == 'error'
    assert higher_is_better('error')
    assert higher_is_better('auc')
    assert not any(map(higher_is_better, ('loss', 'mae', 'mse', 'rmse')))
    cfg.metric_agg = 'argmin'
    assert not higher_is_better('error')


def test_two_runs_in_one_folder(tmp_path: Path, digits: Path, small: list[str]) -> None:
    train(digits, [*small, *PLAIN], out=tmp_path)
    folder = tmp_path / 'digits' / '0'
    before = {path: path.read_bytes() for path in folder.rglob('*') if path.is_file()}
    with locked(folder):
        for resume in (False, True):
            with pytest.raises(ValueError, match='where another process trains'):
                train(digits, [*small, *PLAIN], resume=resume, out=tmp_path)
    assert {path: path.read_bytes() for path in folder.rglob('*') if path.is_file()} == before
    # Where there are no locks, the model of the other run is not reported as that of this one.
    path = folder / 'checkpoints' / 'best.pt'
    best = load_checkpoint(path)
    save_checkpoint(path, {**best, 'best': {**best['best'], 'seconds': 0.0}})
    with pytest.raises(ValueError, match=rf'^{re.escape(str(path))}: got the model of another run; accepted:'):
        train(digits, [*small, *PLAIN], resume=True, out=tmp_path)


def test_files_of_the_user_stay(tmp_path: Path, digits: Path, small: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / 'digits' / '0'
    files = [folder / subfolder / 'mine.txt' for subfolder in ('.', 'checkpoints', 'train', 'val', 'test', 'checkpoints/old')]
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('mine')
    train(digits, [*small, *PLAIN], out=tmp_path)
    assert 'replacing' not in capsys.readouterr().err  # there was no run
    (folder / 'val' / 'events.out.tfevents.1').write_text('theirs')
    train(digits, [*small, *PLAIN], out=tmp_path)
    assert f'replacing the run in {folder}' in capsys.readouterr().err
    assert [path.read_text() for path in files] == ['mine'] * len(files)
    assert not (folder / 'val' / 'events.out.tfevents.1').exists()


def test_network_is_built_once(tmp_path: Path, digits: Path, small: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    for kind in (TopoGPSModel, GRFAttention):
        monkeypatch.setattr(kind, '__init__', _counted(kind.__init__, built))
    train(digits, [*small, 'optim.max_epoch', '1', 'gt.layers', '2'], out=tmp_path)
    train(digits, [*small, 'optim.max_epoch', '1', 'gt.layers', '2'], resume=True, out=tmp_path)
    # Attentions are built before that check the options and the first graph.
    assert built.count('TopoGPSModel') == 2
    assert built[-3:] == ['TopoGPSModel', 'GRFAttention', 'GRFAttention']


def _counted(init: Callable[..., None], built: list[str]) -> Callable[..., None]:
    def counting(self: torch.nn.Module, *args: object, **kwargs: object) -> None:
        built.append(type(self).__name__)
        init(self, *args, **kwargs)

    counting.__signature__ = inspect.signature(init)  # type: ignore[attr-defined]
    return counting
