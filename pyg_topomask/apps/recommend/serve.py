r"""Recommendations and embeddings of a trained model."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.apps.recommend.evaluation import rank_items
from pyg_topomask.apps.recommend.interactions import InteractionDataset
from pyg_topomask.apps.recommend.options import load_config
from pyg_topomask.apps.recommend.recommender import build_recommender
from pyg_topomask.apps.recommend.runner import FREE_OPTIONS, LENGTH_OPTION, load_dataset, load_weights
from pyg_topomask.apps.runs.checkpoint import load_best
from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.configs import is_recommendation
from pyg_topomask.utils.files import new_file, write_atomically


def load_run(run_dir: str | Path, data_dir: str | Path | None = None) -> tuple[InteractionDataset, Tensor, Tensor]:
    r"""Returns the data set of the run in a folder, and the embeddings of users and items of its best model.

    The data is in :obj:`data_dir`, or else in the folder :obj:`recommend.dir` of the run. Raises a :class:`ValueError` if the
    run is no trained recommender, or the users or items differ from those that it was trained on.
    """
    folder = Path(run_dir)
    file = folder / 'config.yaml'
    if not (folder / 'checkpoints').is_dir() or not is_recommendation(file):
        accepted = 'the folder of a recommender that `train` wrote, such as results/lastfm/MGFormer/0'
        raise ArgumentError('run', repr(str(run_dir)), accepted)
    config = load_config(file, [] if data_dir is None else ['recommend.dir', str(data_dir)])
    checkpoint = load_best(folder, file.read_text(encoding='utf-8'), (*FREE_OPTIONS, LENGTH_OPTION))
    dataset = load_dataset(config.recommend)
    model = build_recommender(dataset, config.recommend)
    load_weights(model.encoder, checkpoint, folder, dataset, config.recommend.dir)
    return dataset, *model.embed()


def recommend(
    dataset: InteractionDataset, users: Tensor, items: Tensor, user_ids: Sequence[int], k: int = 20
) -> list[tuple[int, int, int, float]]:
    r"""Returns the :obj:`k` items with the largest scores for each user, as tuples of user, rank from 1, item and score.
    Training and validation interactions of the user are excluded. Users and items have their original ids. Raises a
    :class:`ValueError` if an id is unknown, or :obj:`k` is not from 1 to the number of items.
    """
    known = set(dataset.user_ids.tolist())
    unknown = [user for user in user_ids if user not in known]  # before a tensor overflows
    if unknown:
        low, high = int(dataset.user_ids[0]), int(dataset.user_ids[-1])
        raise ArgumentError('user', unknown, f'the {dataset.num_users} users from {low} to {high}')
    wanted = torch.tensor(list(user_ids), dtype=torch.long)
    index = torch.searchsorted(dataset.user_ids, wanted)
    ranking = rank_items(users, items, index, torch.cat([dataset.train, dataset.val], 1), k)
    score = (users[index][:, None] * items[ranking]).sum(-1)
    return [
        (user, rank, int(dataset.item_ids[item]), value)
        for user, top, values in zip(wanted.tolist(), ranking.tolist(), score.tolist(), strict=True)
        for rank, (item, value) in enumerate(zip(top, values, strict=True), 1)
        if item >= 0
    ]


def _export_embeddings(path: Path, dataset: InteractionDataset, users: Tensor, items: Tensor) -> None:
    r"""Writes the embeddings as a NumPy archive of :obj:`users`, :obj:`items`, :obj:`user_ids` and :obj:`item_ids`."""
    user_ids, item_ids = dataset.user_ids.numpy(), dataset.item_ids.numpy()
    buffer = io.BytesIO()
    np.savez(buffer, users=users.numpy(), items=items.numpy(), user_ids=user_ids, item_ids=item_ids)
    write_atomically(path, buffer.getvalue())


def serve(
    run_dir: str | Path,
    user_ids: Sequence[int] = (),
    k: int | None = None,
    out: str | Path | None = None,
    embeddings: str | Path | None = None,
    data_dir: str | Path | None = None,
) -> None:
    r"""Prints the top items of users as CSV, or writes them to the file :obj:`out`, and exports the embeddings to a file, a
    NumPy archive. The number of items :obj:`k` is by default the option :obj:`recommend.k` of the run. Raises a
    :class:`ValueError` if there is nothing to do, or an argument is out of its range. In this case, nothing is written.
    """
    if not user_ids and embeddings is None:
        raise ArgumentError('user, embeddings', 'neither', 'users to recommend to, a file for embeddings, or both')
    if out is not None and not user_ids:
        raise ArgumentError('out', f'{str(out)!r} without user', 'a file for the items of users')
    out = None if out is None else new_file('out', out)
    if embeddings is not None and Path(embeddings).suffix != '.npz':
        raise ArgumentError('embeddings', repr(str(embeddings)), 'names that end in .npz')
    embeddings = None if embeddings is None else new_file('embeddings', embeddings)
    if out is not None and out == embeddings:
        raise ArgumentError('out', f'{str(out)!r}, the file for embeddings', 'another file')
    dataset, users, items = load_run(run_dir, data_dir)
    if k is None:
        k = int(load_config(Path(run_dir) / 'config.yaml').recommend.k)
    rows = recommend(dataset, users, items, user_ids, k) if user_ids else []
    if embeddings is not None:
        _export_embeddings(embeddings, dataset, users, items)
    if user_ids:
        lines = [f'{user},{rank},{item},{score:.6f}\n' for user, rank, item, score in rows]
        table = ''.join(['user,rank,item,score\n', *lines])
        if out is None:
            sys.stdout.write(table)
        else:
            write_atomically(out, table.encode())
