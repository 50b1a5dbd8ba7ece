r"""Recommendation: interactions, losses, evaluation by ranking, and what the runner trains.

The runner, :mod:`pyg_topomask.recommend.train`, needs the extra :obj:`graphgym`. What this package exports needs no extra.
"""

from __future__ import annotations

from pyg_topomask.recommend.evaluation import evaluate, popularity_groups, rank_items
from pyg_topomask.recommend.interaction_files import load_interaction_dataset, load_interactions, read_interactions
from pyg_topomask.recommend.interactions import InteractionDataset, bipartite_data, split_per_user
from pyg_topomask.recommend.losses import DirectAULoss, alignment, uniformity
from pyg_topomask.recommend.recommender import MGFormerRecommender, Recommender, build_recommender

__all__ = [
    'DirectAULoss',
    'InteractionDataset',
    'MGFormerRecommender',
    'Recommender',
    'alignment',
    'bipartite_data',
    'build_recommender',
    'evaluate',
    'load_interaction_dataset',
    'load_interactions',
    'popularity_groups',
    'rank_items',
    'read_interactions',
    'split_per_user',
    'uniformity',
]
