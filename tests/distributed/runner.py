"""Runs on a single graph, in one of the processes that torchrun starts, or alone: python runner.py YAML FOLDER COMMAND..."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import torch
from torch_geometric.data import Data, InMemoryDataset

from pyg_topomask.apps.train import train
from pyg_topomask.graphgym.data import pyg_datasets

#: Two processes do what one does: nothing is dropped, and no parameter has a gradient of rounding errors alone.
OPTIONS = """
gt.layers 2 gt.n_heads 2 gt.dim_hidden 8 gnn.dim_inner 8 gt.dropout 0.0 gt.attn_dropout 0.0 gnn.dropout 0.0 gt.layer_norm True
topomask.GRF.feature_map favor optim.optimizer sgd optim.base_lr 0.3 optim.scheduler none topomask.progress False
"""


class SingleGraph(InMemoryDataset):
    """A graph whose labels follow from its features; all labels for training are in its first half."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        x, nodes = torch.randn(40, 5, generator=generator), torch.arange(40)
        edges = torch.randint(40, (2, 100), generator=generator)
        data = Data(x=x, y=(x[:, :3]).argmax(1), edge_index=torch.cat([edges, edges.flip(0)], 1))
        data.train_mask, data.val_mask, data.test_mask = nodes < 15, (nodes >= 15) & (nodes < 28), nodes >= 28
        self.data, self.slices = self.collate([data])


def run(cfg_file: str, out: Path, options: str, epochs: int, resume: bool = False) -> None:
    pyg_datasets.Planetoid = lambda root, name: SingleGraph()
    train(cfg_file, [*OPTIONS.split(), *options.split(), 'optim.max_epoch', str(epochs)], resume=resume, out=out)


def main() -> None:
    warnings.simplefilter('ignore')
    cfg_file, folder = sys.argv[1], Path(sys.argv[2])
    torch.set_num_threads(1)
    run(cfg_file, folder / 'two', 'topomask.shard graph', 2)
    run(cfg_file, folder / 'half', 'topomask.shard graph', 2, resume=True)
    errors = []
    for options in ('gt.layer_type CustomGatedGCN+GRF', 'gt.layer_type GAT+Tree', 'gt.layer_type GAT+Performer'):
        try:
            run(cfg_file, folder / 'errors', f'topomask.shard graph {options}', 1)
        except ValueError as error:
            errors.append(str(error))
    torch.save(errors, folder / f'errors{torch.distributed.get_rank()}.pt')


if __name__ == '__main__':
    main()
