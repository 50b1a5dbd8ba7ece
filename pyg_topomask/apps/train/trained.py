r"""Trained models, to use in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch.nn import Module
from torch_geometric import seed_everything
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.imports import pl
from torch_geometric.graphgym.model_builder import create_model

from pyg_topomask.apps.runs.checkpoint import load_best
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.configuration import FREE_OPTIONS, LENGTH_OPTION, load_config
from pyg_topomask.graphgym.data.loaders import create_loaders
from pyg_topomask.graphgym.names.networks import registered_modules


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
