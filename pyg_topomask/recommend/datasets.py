r"""The public interaction data sets that the runner knows by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyg_topomask.recommend.interactions import InteractionDataset, load_interactions

__all__ = ['INTERACTION_DATASETS', 'load_interaction_dataset']


def _gowalla(folder: Path, val_ratio: float, seed: int) -> InteractionDataset:
    r"""Check-ins at places (LightGCN's split)."""
    return load_interactions(folder / 'train.txt.gz', test=folder / 'test.txt.gz', val_ratio=val_ratio, seed=seed)


def _lastfm(folder: Path, val_ratio: float, seed: int) -> InteractionDataset:
    r"""Artists listened to (LightGCN's split)."""
    return load_interactions(folder / 'data1.txt', test=folder / 'test1.txt', layout='pairs', val_ratio=val_ratio, seed=seed)


def _beauty(folder: Path, val_ratio: float, seed: int) -> InteractionDataset:
    r"""Amazon-Beauty, 5-core, split anew: a tenth of each user's interactions tests (DirectAU's and MGFormer's protocol)."""
    return load_interactions([folder / 'train.txt.gz', folder / 'test.txt.gz'], val_ratio=val_ratio, seed=seed)


def _yelp(folder: Path, val_ratio: float, seed: int) -> InteractionDataset:
    r"""Businesses reviewed, sparse (the split of SSLRec, with its own validation part)."""
    return load_interactions(folder / 'train.npz', folder / 'valid.npz', folder / 'test.npz')


#: The folder, and what loads it.
INTERACTION_DATASETS: dict[str, tuple[str, Callable[[Path, float, int], InteractionDataset]]] = {
    'beauty': ('amazon-beauty', _beauty),
    'gowalla': ('gowalla', _gowalla),
    'lastfm': ('lastfm', _lastfm),
    'yelp': ('yelp-sparse', _yelp),
}


def load_interaction_dataset(name: str, folder: str | Path, val_ratio: float = 0.1, seed: int = 0) -> InteractionDataset:
    r"""Loads one of the known data sets.

    Args:
        name (str): :obj:`"beauty"`, :obj:`"gowalla"`, :obj:`"lastfm"` or :obj:`"yelp"`.
        folder (str or Path): Where the files lie, or the folder that holds :obj:`amazon-beauty`, :obj:`gowalla`,
            :obj:`lastfm` and :obj:`yelp-sparse`.
        val_ratio (float, optional): The part of each user's training interactions that validates, where the set has no
            validation part of its own. (default: :obj:`0.1`)
        seed (int, optional): The seed of what is split at random. (default: :obj:`0`)

    Raises:
        ValueError: If the name is unknown.
        FileNotFoundError: If a file is not there.
    """
    if name not in INTERACTION_DATASETS:
        raise ValueError(f'name: got {name!r}; accepted are {", ".join(INTERACTION_DATASETS)}')
    own, load = INTERACTION_DATASETS[name]
    folder = Path(folder)
    return load(folder / own if (folder / own).is_dir() else folder, val_ratio, seed)
