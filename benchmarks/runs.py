r"""Whole runs: the first batch, epochs and evaluation of the runner, beside a plain loop of PyG on the same batches."""

from __future__ import annotations

import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from pytorch_lightning import LightningModule, Trainer
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.datasets import TUDataset
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loss import compute_loss
from torch_geometric.nn import GPSConv

from benchmarks.citation import stage
from benchmarks.digits import CONFIG, code_version
from benchmarks.graphs import random_graph
from benchmarks.harness import Unavailable, kept_runs, peak_memory, run_all, write_table
from benchmarks.peptides import write_dataset
from pyg_topomask.apps.datasets import PeptidesFunctional
from pyg_topomask.apps.train import module, runner
from pyg_topomask.apps.train.module import create_optimizer
from pyg_topomask.graphgym.configuration import load_config
from pyg_topomask.graphgym.data import datasets
from pyg_topomask.graphgym.data.loaders import create_loaders
from pyg_topomask.graphgym.data.transforms import apply_in_memory

__all__ = ['LAYERS', 'lightning_alone', 'run', 'train', 'with_layers_of_pyg']

#: The attentions of the runner. Those that compare all pairs of nodes do not run on the one large graph.
ATTENTIONS = ('None', 'Linear', 'Transformer', 'GRF', 'Hop', 'PowerSeries', 'HeatKernel', 'RWGNK', 'KMIP')
#: PyG's layers by their kind of attention.
LAYERS = {'GPSConv(performer)': 'performer', 'GPSConv(multihead)': 'multihead'}
QUADRATIC = ('Transformer', 'KMIP', 'GPSConv(multihead)')
QUICK = ('GRF', 'GPSConv(multihead)')
ONE_GRAPH, FEATURES, CLASSES, DEGREE = 'one graph', 16, 10, 6
COLUMNS = ('first batch, s', 'transforms, s', 'epoch, s', 'evaluation, s', 'peak, MiB')
LOOP = ('plain loop, s', 'its evaluation, s')
RATIO = 'runner / plain loop'
SIZES, QUICK_SIZES = {'train': 1400, 'val': 300, 'test': 300}, {'train': 32, 'val': 16, 'test': 16}

_WALKS = 'topomask.transforms [AddGraphRandomFeatures]'
#: What differs from the configuration of the digits.
DATA = {
    'digits': '',
    'ENZYMES': f'dataset.format PyG-TUDataset dataset.name ENZYMES dataset.split [0.8,0.1,0.1] {_WALKS} '
    'dataset.node_encoder_name LinearNode dataset.edge_encoder_name DummyEdge',
    'peptides-func': f'dataset.name peptides-func dataset.task_type classification_multilabel {_WALKS} '
    'dataset.node_encoder_name SmilesNode dataset.edge_encoder_name SmilesEdge '
    "custom_metrics ['average_precision'] metric_best average_precision",
    ONE_GRAPH: f'dataset.format one-graph dataset.task node dataset.transductive True gnn.head node {_WALKS} '
    'dataset.edge_encoder_name DummyEdge train.batch_size 1',
}
FOLDERS = {'ENZYMES': 'tu', 'peptides-func': 'peptides'}
#: Epochs after the first: more where they are short.
EPOCHS = {'digits': 5, 'ENZYMES': 15, 'peptides-func': 3, ONE_GRAPH: 3}

_IMPORTS, _COMMAND = 'import torch, torch_geometric.graphgym', 'python -m pyg_topomask train --cfg digits'
#: Processes that print their processor time after the imports, and at the first training step.
PROCESSES = {
    _IMPORTS: f"""{_IMPORTS}, time
print(time.process_time())""",
    _COMMAND: f"""import os, sys, time
from pyg_topomask import __main__ as command
make = command._call
def timed(arguments):
    call = make(arguments)
    from pyg_topomask.apps.train.module import RunModule
    RunModule.training_step = lambda *_: print(time.process_time(), flush=True) or os._exit(0)
    return call
command._call = timed
command.main(['train', '--cfg', {str(CONFIG)!r}, '--out', sys.argv[1], 'topomask.progress', 'False'])""",
}


class _OneGraph(InMemoryDataset):
    r"""A random graph with a split of its nodes."""

    def __init__(self, size: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        part = torch.randint(3, (size,), generator=generator)
        graph = Data(
            x=torch.randn(size, FEATURES, generator=generator),
            edge_index=random_graph(size, DEGREE),
            y=torch.randint(CLASSES, (size,), generator=generator),
            train_mask=part == 0,
            val_mask=part == 1,
            test_mask=part == 2,
        )
        self.data, self.slices = self.collate([graph])


class _Plain(Module):
    r"""A network whose layers take what layers of PyG take."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.encoder, self.layers, self.post_mp = network.encoder, network.layers, network.post_mp

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        batch = self.encoder(batch)
        x = batch.x
        for layer in self.layers:
            x = layer(x, batch.edge_index, batch.batch, edge_attr=batch.edge_attr)
        batch.x = x
        pred, true = self.post_mp(batch)
        return pred, true


def with_layers_of_pyg(network: Any, kind: str) -> Module:
    r"""Returns a network with PyG's layers, of a kind of attention, in place of ours."""
    channels, heads = cfg.gt.dim_hidden, cfg.gt.n_heads
    network.layers = ModuleList(GPSConv(channels, layer.conv, heads, attn_type=kind) for layer in network.layers)
    return _Plain(network)


def run(quick: bool, folder: Path) -> None:
    torch.set_num_threads(1)
    size, sizes = (1_000, QUICK_SIZES) if quick else (100_000, SIZES)
    epochs = dict.fromkeys(DATA, 1) if quick else EPOCHS
    names = QUICK if quick else (*ATTENTIONS, *LAYERS)
    with tempfile.TemporaryDirectory() as root:
        available = [data for data in DATA if _prepare(data, Path(root), sizes)]
        jobs = [(data, name) for data in available for name in names if data != ONE_GRAPH or name not in QUADRATIC]
        measure = partial(_measure, epochs=epochs, size=size, root=root)
        settings = {**epochs, 'size': size, **sizes, 'code': code_version()}
        results = run_all(jobs, measure, settings, kept_runs(folder, 'runs', quick), processes=1)
    missing = [data for data in DATA if data not in available]
    note = (
        f'Three GPS layers of local GINE and an attention, of {CONFIG.name}, one thread: processor times, medians of '
        f'{", ".join(f"{number} epochs ({data})" for data, number in epochs.items())} after the first. After each epoch of the '
        f'runner comes one of the loop, and "{RATIO}" is the median over these pairs. "first batch" and memory are of a run '
        f'alone: from the call of the runner, without imports, with the transforms; and beyond what the process held. "epoch" '
        f'includes the evaluation of validation and test graphs. The plain loop has the same batches, optimizer and '
        f"evaluation, and the same layers or PyG's. {ONE_GRAPH}: "
        f'{size:,} nodes, random, of degree {DEGREE}, without attentions between all pairs of nodes. peptides-func: '
        f'{sum(sizes.values()):,} molecules. HeatKernel has the tolerance 1e-3.'
        + (f' Not run here: {", ".join(missing)}.' if missing else '')
    )
    rows = [{'data': data, 'attention': name, **results[data, name]} for data, name in jobs]
    write_table('runs', 'Whole runs beside a plain loop of PyG', note, rows, folder)
    start = _start(1 if quick else 7)
    note = 'Processor times of new processes on one thread, in turns, until imports end or the first training step begins.'
    rows = [
        {'process': name, 'seconds': seconds, 'over imports alone': seconds / start[_IMPORTS]}
        for name, seconds in start.items()
    ]
    write_table('runs_start', 'From the command to the first batch', note, rows, folder)


def _prepare(data: str, root: Path, sizes: dict[str, int]) -> bool:
    r"""Processes the raw files of a data set. Returns whether they and what reads them are here."""
    try:
        if data == 'ENZYMES':
            stage('tu', root)
            TUDataset(str(root / 'tu'), data, use_node_attr=True)
        elif data == 'peptides-func':
            if importlib.util.find_spec('rdkit') is None:
                return False
            (root / FOLDERS[data]).mkdir()
            write_dataset(root / FOLDERS[data], sizes)
            PeptidesFunctional(str(root / FOLDERS[data]))
    except Unavailable:
        return False
    return True


def _measure(job: tuple[str, str], epochs: dict[str, int], size: int, root: str) -> dict[str, object]:
    data, name = job
    for stored in Path(root).rglob('topomask-*.pt'):
        stored.unlink()  # transforms are to run
    register.loader_dict['one-graph'] = lambda format, *_: _OneGraph(size) if format == 'one-graph' else None
    options = _options_of(data, 'None' if name in LAYERS else name, epochs[data], root)
    row: dict[str, object] = dict.fromkeys((*COLUMNS, *LOOP, RATIO), '')
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        if name in LAYERS:
            load_config(CONFIG, options)
            return row | _medians(list(islice(_plain_loop(create_loaders, LAYERS[name]), 1 + epochs[data])))
        row |= train([*options, 'optim.max_epoch', '2'])
        beside = train(options, beside=True)
        return row | {key: beside[key] for key in ('epoch, s', 'evaluation, s', *LOOP, RATIO)}


def _medians(loop: list[tuple[float, float]]) -> dict[str, float]:
    return {key: statistics.median(seconds[1:]) for key, seconds in zip(LOOP, zip(*loop, strict=True), strict=True)}


def _options_of(data: str, attention: str, epochs: int, root: str) -> list[str]:
    r"""Returns what differs from the configuration of the digits, for so many epochs after the first."""
    options = f'{DATA[data]} gt.layer_type GINE+{attention} topomask.HeatKernel.tolerance 1e-3 topomask.progress False'
    return f'{options} optim.max_epoch {1 + epochs} dataset.dir {Path(root) / FOLDERS.get(data, "")}'.split()


def train(options: list[str], beside: bool = False) -> dict[str, float]:
    r"""Trains with the runner. Returns the seconds of its stages and, with an epoch of a plain loop after each of the runner,
    those of the loop. Neighbors in time are compared, since the speed of a machine changes.
    """
    times: dict[str, list[float]] = defaultdict(list)
    loop: list[tuple[float, float]] = []

    def noting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            times[f'{name} begins'].append(time.process_time())
            result = function(*arguments, **keywords)
            times[f'{name} ends'].append(time.process_time())
            return result

        return call

    def seconds(first: str, last: str) -> list[float]:
        return [end - begin for begin, end in zip(times[first], times[last], strict=False)]

    names = ('training_step', 'on_train_epoch_start', 'on_train_epoch_end', 'on_validation_start', 'on_validation_end')
    hooks = {name: noting(name, getattr(module.RunModule, name)) for name in names}
    of_runner, end = cache(create_loaders), hooks['on_train_epoch_end']
    epochs_of_loop = _plain_loop(of_runner)

    def end_and_loop(*arguments: Any) -> None:
        end(*arguments)
        if beside:
            loop.append(next(epochs_of_loop))

    timed = type('Timed', (module.RunModule,), {**hooks, 'on_train_epoch_end': end_and_loop})
    transform = noting('transforms', apply_in_memory)
    with (
        tempfile.TemporaryDirectory() as out,
        mock.patch.object(runner, 'RunModule', timed),
        mock.patch.object(datasets, 'apply_in_memory', transform),
        mock.patch.object(runner, 'create_loaders', of_runner),
    ):
        start = time.process_time()
        peak = peak_memory(lambda: runner.train(CONFIG, options, out=out))
    epochs = seconds('on_train_epoch_start begins', 'on_train_epoch_end ends')
    evaluations = seconds('on_validation_start begins', 'on_validation_end ends')  # the last one is of the best model
    stages = {
        'first batch, s': times['training_step begins'][0] - start,
        'transforms, s': sum(seconds('transforms begins', 'transforms ends')),
        'epoch, s': statistics.median(epochs[1:]),
        'evaluation, s': statistics.median(evaluations[1 : len(epochs)]),
        'peak, MiB': peak / 2**20,
    }
    if beside:
        ratios = [ours / whole for ours, (whole, _) in zip(epochs, loop, strict=True)]
        stages |= {**_medians(loop), RATIO: statistics.median(ratios[1:])}
    return stages


def _plain_loop(make_loaders: Callable[[], list[Any]], kind: str | None = None) -> Iterator[tuple[float, float]]:
    r"""Trains the configured network, with PyG's layers if a kind of attention is given. Yields the seconds of each epoch, and
    of its evaluation.
    """
    loaders = make_loaders()
    network: Any = module.RunModule().model
    if kind is not None:
        network = with_layers_of_pyg(network, kind)
    optimizer = create_optimizer(network.parameters())
    # Validation and testing on nodes of one graph take one pass, as in the runner.
    of_evaluation = loaders[1:2] if loaders[1].dataset is loaders[2].dataset else loaders[1:]
    while True:
        start = time.process_time()
        network.train()
        for batch in loaders[0]:
            batch.split = 'train'
            loss, _ = compute_loss(*network(batch))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), cfg.optim.clip_grad_norm_value)
            optimizer.step()
        trained = time.process_time()
        network.eval()
        with torch.no_grad():
            for split, loader in zip(('val', 'test'), of_evaluation, strict=False):
                for batch in loader:
                    batch.split = split
                    compute_loss(*network(batch))
        ended = time.process_time()
        yield ended - start, ended - trained


#: What a trainer of Lightning does for users.
_NOT_NEEDED = ('logger', 'enable_checkpointing', 'enable_progress_bar', 'enable_model_summary')


class _Bare(LightningModule):
    r"""Trains the configured network with nothing but Lightning. It notes the seconds of each epoch over those of an epoch of a
    loop, which comes after it.
    """

    def __init__(self, loop: Iterator[tuple[float, float]]) -> None:
        super().__init__()
        self.network: Any = module.RunModule().model
        self.loop = loop
        self.ratios: list[float] = []

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return create_optimizer(self.network.parameters())

    def on_train_epoch_start(self) -> None:
        self.begun = time.process_time()

    def on_train_epoch_end(self) -> None:  # after the evaluation
        seconds = time.process_time() - self.begun
        self.ratios.append(seconds / next(self.loop)[0])

    def training_step(self, batch: Data, *_: object) -> Tensor:
        return self._loss(batch, 'train')

    def validation_step(self, batch: Data, batch_idx: int, dataloader_idx: int = 0) -> None:
        self._loss(batch, ('val', 'test')[dataloader_idx])

    def _loss(self, batch: Data, split: str) -> Tensor:
        batch.split = split
        loss: Tensor = compute_loss(*self.network(batch))[0]
        return loss


def lightning_alone(epochs: int) -> float:
    r"""Measures epochs of Lightning with nothing else, over those of a plain loop, in turns, on ENZYMES without attention."""
    with tempfile.TemporaryDirectory() as root:
        _prepare('ENZYMES', Path(root), QUICK_SIZES)
        load_config(CONFIG, _options_of('ENZYMES', 'None', epochs, root))
        loaders = create_loaders()
        model, off = _Bare(_plain_loop(lambda: loaders)), dict.fromkeys(_NOT_NEEDED, False)
        clipped = cfg.optim.clip_grad_norm_value
        trainer = Trainer(max_epochs=1 + epochs, accelerator='cpu', num_sanity_val_steps=0, gradient_clip_val=clipped, **off)
        trainer.fit(model, loaders[0], loaders[1:])
    return statistics.median(model.ratios[1:])


def _start(repeats: int) -> dict[str, float]:
    r"""Returns the seconds of a process that only imports, and of the command until the first training step."""
    spent: dict[str, list[float]] = defaultdict(list)
    environment = {**os.environ, 'PYTHONDONTWRITEBYTECODE': ''}  # an installed package has its bytecode
    for _ in range(repeats):
        for name, code in PROCESSES.items():
            with tempfile.TemporaryDirectory() as out:
                arguments = [sys.executable, '-c', code, out]
                process = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=True)
            spent[name].append(float(process.stdout))
    return {name: statistics.median(values) for name, values in spent.items()}
