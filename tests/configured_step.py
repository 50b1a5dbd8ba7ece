"""One optimiser step of the configured model on synthetic graphs, for the tests of the YAML files."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import yaml
from grids import at_night
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loss import compute_loss

from pyg_topomask.graphgym.data.datasets import load_dataset
from pyg_topomask.graphgym.names.attentions import ATTENTIONS

CONFIGS = Path(__file__).parents[1] / 'graphgps_configs'

#: Attentions that need more of a graph than its edges: a grid, a forest, factors of the mask.
NEED_MORE = {'Toeplitz', 'Tree', 'LowRank'}
WORDS = sorted(ATTENTIONS.keys() - NEED_MORE)


class Held(InMemoryDataset):
    """Graphs in memory, as GraphGym's loaders take them."""

    def __init__(self, graphs: list[Data]) -> None:
        super().__init__()
        self.data, self.slices = self.collate(graphs)


def layer_type(path: Path) -> list[str]:
    """The local layer and the attention that a file names."""
    names: list[str] = yaml.safe_load(path.read_text())['gt']['layer_type'].split('+')
    return names


def cases(paths: Sequence[Path], words: Sequence[str], all_words: str, all_at_night: set[str]) -> Iterator[Any]:
    """Files with words: all words for one file, and for the others theirs and one more, which take turns. At night all words
    for some more files. A file without a local layer has no model without attention."""
    turns = itertools.cycle(words)
    for path in paths:
        local, chosen = layer_type(path)
        excluded = {chosen, local if local == 'None' else chosen}
        more = words if path.stem == all_words else itertools.islice((word for word in turns if word not in excluded), 1)
        daily = sorted({chosen, *more})
        yield from ((path, word) for word in daily)
        if path.stem in all_at_night:
            yield from (at_night(path, word) for word in words if word not in daily)


def loaded(graphs: list[Data]) -> Batch:
    """The batch of the graphs, loaded as a run loads its data set: transforms are applied, and a warning is an error."""
    with mock.patch.dict(register.loader_dict, {'held': lambda *args: Held(graphs)}, clear=True):
        dataset = load_dataset('held', 'held', '.')
    batch = Batch.from_data_list(list(dataset))
    batch.split = 'train'
    cfg.share.dim_in = batch.x.size(1)
    return batch


def assert_step_changes_attention(batch: Batch, dim_out: int, attention: str) -> None:
    """Trains for a step and compares the parameters whose names contain that of the attention."""
    torch.manual_seed(0)
    model = register.network_dict[cfg.model.type](dim_in=cfg.share.dim_in, dim_out=dim_out)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    loss, _ = compute_loss(*model(batch))
    loss.backward()
    torch.optim.Adam(model.parameters(), 0.01).step()
    assert loss.isfinite()
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    changed = {name: not torch.equal(before[name], parameter) for name, parameter in model.named_parameters()}
    of_attention = [name for name in changed if attention in name]
    still = [name for name in of_attention if not changed[name]]
    assert of_attention
    # The bias of the keys may cancel in a normalised attention, so a few stand still. Those of a mask may not.
    assert len(still) <= len(of_attention) / 4, still
    assert not [name for name in still if '.mask.' in name]
    assert any(changed[name] for name in changed if name not in of_attention)
