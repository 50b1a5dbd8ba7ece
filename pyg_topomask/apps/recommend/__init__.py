r"""Recommendation: interactions, losses, ranking metrics, and recommenders.

The runner, ``pyg_topomask.apps.recommend.runner``, needs the extra :obj:`graphgym`. The exports of this package need no extra.
"""

from __future__ import annotations

from pyg_topomask.apps.recommend.evaluation import evaluate, rank_items
from pyg_topomask.apps.recommend.interaction_files import load_interaction_dataset, load_interactions, read_interactions
from pyg_topomask.apps.recommend.interactions import InteractionDataset, split_per_user
from pyg_topomask.apps.recommend.recommender import DirectAULoss, MGFormerRecommender, Recommender

__all__ = [
    'DirectAULoss',
    'InteractionDataset',
    'MGFormerRecommender',
    'Recommender',
    'evaluate',
    'load_interaction_dataset',
    'load_interactions',
    'rank_items',
    'read_interactions',
    'split_per_user',
]
