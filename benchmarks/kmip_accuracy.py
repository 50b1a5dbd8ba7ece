r"""k-MIP attention against message passing and other attention: accuracy, and what k and the size of keys do to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module, ModuleList, Sequential
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, GINEConv, MessagePassing, ResGatedGraphConv, global_mean_pool
from torch_geometric.transforms import AddRandomWalkPE, Cartesian, Compose

from benchmarks.harness import count_parameters, data_folder, mean_error, nearest_width, run_all, verdict, write_table
from pyg_topomask.datasets import load_images
from pyg_topomask.graph import Graph
from pyg_topomask.masks import ExpanderMask
from pyg_topomask.nn import (
    GRFAttention,
    KMIPAttention,
    MaskedLinearAttention,
    MaskedSoftmaxAttention,
    TopoGPSConv,
)
from pyg_topomask.transforms import KNNGraph

__all__ = ['influence', 'run']

CHANNELS, HEADS, LAYERS, DROPOUT, STEPS = 32, 4, 3, 0.1, 8
RATE, BATCH, SEEDS, REFERENCE = 3e-3, 32, 3, 'GPS + k-MIP'
BRIGHT, NEIGHBORS = 0.2, 8


def _mlp(channels: int) -> Module:
    return Sequential(Linear(channels, channels), torch.nn.ReLU(), Linear(channels, channels))


#: Called with the channels.
CONVOLUTIONS: dict[str, Callable[[int], MessagePassing]] = {
    'GCN': lambda channels: GCNConv(channels, channels),
    'GINE': lambda channels: GINEConv(_mlp(channels), edge_dim=2),
    'GAT': lambda channels: GATConv(channels, channels // HEADS, HEADS),
    'GatedGCN': lambda channels: ResGatedGraphConv(channels, channels),
}
#: What stands beside the local GatedGCN: arguments of the GPS layer.
ATTENTIONS: dict[str, Callable[[int], dict[str, Any]]] = {
    'GPS + Transformer': lambda _: {'attn_type': 'multihead', 'heads': HEADS},
    'GPS + Performer': lambda _: {'attn_type': 'performer', 'heads': HEADS},
    'GPS + linear': lambda channels: {'attn': MaskedLinearAttention(channels, HEADS)},
    'GPS + GRF': lambda channels: {'attn': GRFAttention(channels, HEADS)},
    'GPS + expander': lambda channels: {'attn': MaskedSoftmaxAttention(channels, HEADS, ExpanderMask())},
    REFERENCE: lambda channels: {'attn': KMIPAttention(channels, HEADS, k=10)},
}
#: The channels that others may have; those of k-MIP are fixed.
WIDTHS = range(HEADS, 100, HEADS)
#: Test accuracy in % on CIFAR10 superpixels (Table 6.1).
PAPER = {
    'GCN': 52.23,
    'GINE': 57.00,
    'GAT': 55.29,
    'GatedGCN': 69.24,
    'GPS + Transformer': 76.27,
    'GPS + Performer': 69.84,
    'GPS + expander': 74.46,  # Exphormer
    REFERENCE: 75.20,
}
KEYS, SIZES = (1, 2, 5, 10, 20, 40), (1, 3, 8, 15)


class Job(NamedTuple):
    r"""One model to train: its name, and what is asked of k-MIP attention."""

    model: str
    k: int
    kq_dim: int
    seed: int


@dataclass(frozen=True)
class Training:
    r"""Images for training, and epochs."""

    images: int
    epochs: int


class Classifier(torch.nn.Module):
    r"""Layers of one kind between an encoder of the features and the mean over nodes."""

    def __init__(self, job: Job, features: int, classes: int, channels: int = CHANNELS) -> None:
        super().__init__()
        self.lin_in = Linear(features, channels)
        self.layers = ModuleList(_layer(job, channels) for _ in range(LAYERS))
        self.lin_out = Sequential(Linear(channels, channels), torch.nn.ReLU(), Linear(channels, classes))
        self.edges = job.model == 'GINE'

    def forward(self, data: Batch) -> Tensor:
        graph = Graph.from_data(data)
        x, local = self.lin_in(data.x), {'edge_attr': data.edge_attr} if self.edges else {}
        for layer in self.layers:
            x = layer(x, data.edge_index, data.batch, graph=graph, **local)
        out: Tensor = self.lin_out(global_mean_pool(x, data.batch, data.num_graphs))
        return out


def _layer(job: Job, channels: int) -> TopoGPSConv:
    if job.model in CONVOLUTIONS:
        return TopoGPSConv(channels, CONVOLUTIONS[job.model](channels), dropout=DROPOUT, attn_type=None)
    if job.model == REFERENCE:
        attention: dict[str, Any] = {'attn': KMIPAttention(channels, HEADS, job.k, kq_dim=job.kq_dim)}
    else:
        attention = ATTENTIONS[job.model](channels)
    return TopoGPSConv(channels, CONVOLUTIONS['GatedGCN'](channels), dropout=DROPOUT, **attention)


def make_model(job: Job, features: int, classes: int) -> Classifier:
    r"""Makes a model: k-MIP with :obj:`CHANNELS`, others with the channels that come closest to its parameters at the default
    size of keys.
    """
    if job.model == REFERENCE:
        return Classifier(job, features, classes)
    reference = Job(REFERENCE, job.k, CHANNELS // HEADS, job.seed)
    budget = count_parameters(Classifier(reference, features, classes))
    channels = nearest_width(lambda channels: Classifier(job, features, classes, channels), budget, WIDTHS)
    return Classifier(job, features, classes, channels)


def run(quick: bool, folder: Path) -> None:
    training, seeds = _training(quick)
    names = [*CONVOLUTIONS, *ATTENTIONS]
    jobs = [Job(name, 10, CHANNELS // HEADS, seed) for seed in range(seeds) for name in names]
    found = _run(jobs, training, folder / f'kmip_accuracy_runs{"_quick" if quick else ""}.json')
    rows = [_row(name, {job: result for job, result in found.items() if job.model == name}, found) for name in names]
    note = (
        f'{_describe(training, seeds)} k = 10. Models other than k-MIP have the channels, a multiple of {HEADS}, with which '
        f'their number of parameters comes closest to its own. GINE has the steps from source to target as edge features, '
        f'the others have none. {PAPER_ACCURACY}'
    )
    write_table('kmip_accuracy', 'k-MIP attention: accuracy beside baselines', note, rows, folder)


def influence(quick: bool, folder: Path) -> None:
    r"""Accuracy against k and the size of keys and queries (Sec. 6.4, 6.5)."""
    training, seeds = _training(quick)
    keys = [Job(REFERENCE, k, CHANNELS // HEADS, seed) for seed in range(seeds) for k in (KEYS[::5] if quick else KEYS)]
    sizes = [Job(REFERENCE, 10, size, seed) for seed in range(seeds) for size in (SIZES[::4] if quick else SIZES)]
    jobs = list(dict.fromkeys([*keys, *sizes]))
    found = _run(jobs, training, folder / f'kmip_influence_runs{"_quick" if quick else ""}.json')
    rows = []
    for title, own in (('k', keys), ('kq_dim', sizes)):
        base = {job.seed: found[job][0] for job in own if getattr(job, title) == (10 if title == 'k' else CHANNELS // HEADS)}
        for value in dict.fromkeys(getattr(job, title) for job in own):
            results = {job.seed: found[job] for job in own if getattr(job, title) == value}
            gaps = [result[0] - base[seed] for seed, result in results.items()] if base else [0.0, 0.0]
            rows.append(
                {
                    'varied': title,
                    'value': value,
                    'test accuracy': '{:.4f} ± {:.4f}'.format(*mean_error([result[0] for result in results.values()])),
                    'minus k = 10, kq_dim = 8, paired': '{:+.4f} ± {:.4f}'.format(*mean_error(gaps)),
                    'verdict': verdict(*mean_error(gaps)),
                    'seconds per epoch': mean_error([result[1] for result in results.values()])[0],
                }
            )
    note = f'{_describe(training, seeds)} {PAPER_INFLUENCE}'
    write_table('kmip_influence', 'k-MIP attention: influence of k and of the size of keys', note, rows, folder)
    _plot(rows, folder / 'kmip_influence.png')


PAPER_ACCURACY = (
    '"thesis" is Table 6.1 on superpixels of CIFAR10, in %, of models of about 100,000 parameters that have edge features and '
    'Laplacian encodings: k-MIP-GT second to GPS + Transformer there, and on three other sets within the best two.'
)
PAPER_INFLUENCE = (
    'In the thesis accuracy changes little with k (Table 6.2: only the smallest k cost some, on CIFAR10 and Peptides-func) and '
    'with the size of keys from 3 to 30 (Table 6.4); epochs take longer from k = 50.'
)


def _describe(training: Training, seeds: int) -> str:
    return (
        f'MNIST images as point clouds: of each 28x28 image, averaged to 14x14, the pixels brighter than {BRIGHT}, joined to '
        f'their {NEIGHBORS} nearest; features are brightness, position and {STEPS} random-walk return probabilities. '
        f'{training.images} images for training and {training.images // 3} for testing, {training.epochs} epochs, '
        f'batches of {BATCH}, AdamW, one-cycle learning rate up to {RATE}, {seeds} seeds (weights and batches), test accuracy '
        f'after the last epoch, mean ± standard error; a difference below two standard errors is "not distinguishable". '
        f'{LAYERS} layers, {CHANNELS} channels, {HEADS} heads, dropout {DROPOUT}; GPS layers have a local GatedGCN. Seconds '
        f'per epoch are those of two models that train side by side on one thread each.'
    )


def _training(quick: bool) -> tuple[Training, int]:
    return (Training(60, 1), 2) if quick else (Training(1_500, 12), SEEDS)


def _run(jobs: list[Job], training: Training, path: Path) -> dict[Job, list[float]]:
    model = [CHANNELS, HEADS, LAYERS, DROPOUT, STEPS, RATE, BATCH, BRIGHT, NEIGHBORS]
    settings = {**asdict(training), 'model': model, 'widths': list(WIDTHS)}
    found: dict[Job, list[float]] = run_all(jobs, partial(_train, training=training), settings, path)
    return found


def _train(job: Job, training: Training) -> tuple[float, float, int, int]:
    r"""Trains one model, and returns its test accuracy, seconds per epoch, number of parameters and channels."""
    torch.manual_seed(job.seed)
    train, test = (_clouds(split, number) for split, number in (('train', training.images), ('test', training.images // 3)))
    model = make_model(job, train[0].num_features, 10)
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(train, BATCH, shuffle=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=training.epochs * len(loader))
    start = time.perf_counter()
    for _ in range(training.epochs):
        for batch in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(batch), batch.y).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
    seconds = (time.perf_counter() - start) / training.epochs
    return _accuracy(model.eval(), test), seconds, count_parameters(model), model.lin_in.out_features


def _clouds(split: str, number: int) -> list[Data]:
    images, labels = load_images('mnist', data_folder('images'))[split]
    join = Compose([KNNGraph(NEIGHBORS), AddRandomWalkPE(STEPS, attr_name=None), Cartesian(norm=False)])
    graphs = []
    for image, label in zip(images[:number], labels[:number], strict=True):
        small = F.avg_pool2d(image.float().view(1, 1, *image.shape[-2:]), 2)[0, 0]
        small = small / small.max()
        pos = (small > BRIGHT).nonzero().float() / small.size(0) - 0.5
        bright = small[small > BRIGHT].unsqueeze(1)
        graphs.append(join(Data(x=torch.cat([bright, pos], dim=1), pos=pos, y=label.view(1))))
    return graphs


@torch.no_grad()
def _accuracy(model: Module, graphs: list[Data]) -> float:
    right = sum(int((model(batch).argmax(1) == batch.y).sum()) for batch in DataLoader(graphs, 256))
    return right / len(graphs)


def _row(name: str, own: dict[Job, list[float]], found: dict[Job, list[float]]) -> dict[str, object]:
    values = [result[0] for result in own.values()]
    gaps = [result[0] - found[job._replace(model=REFERENCE)][0] for job, result in own.items()]
    return {
        'model': name,
        'channels': next(iter(own.values()))[3],
        'parameters': next(iter(own.values()))[2],
        'test accuracy': '{:.4f} ± {:.4f}'.format(*mean_error(values)),
        'minus k-MIP, paired': '{:+.4f} ± {:.4f}'.format(*mean_error(gaps)),
        'verdict': 'reference' if name == REFERENCE else verdict(*mean_error(gaps)),
        'seconds per epoch': mean_error([result[1] for result in own.values()])[0],
        'thesis': PAPER.get(name, ''),
    }


def _plot(rows: list[dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use('Agg')
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True, layout='constrained')
    for axis, title in zip(axes, ('k', 'kq_dim'), strict=True):
        own = [row for row in rows if row['varied'] == title]
        points = [[float(part) for part in row['test accuracy'].split(' ± ')] for row in own]
        axis.errorbar([row['value'] for row in own], [p[0] for p in points], [p[1] for p in points], fmt='o-', capsize=3)
        axis.set(xscale='log', xlabel=title, title=f'influence of {title}')
        axis.grid(alpha=0.3)
    axes[0].set(ylabel='test accuracy ± standard error')
    figure.savefig(path, dpi=120)
    plt.close(figure)
