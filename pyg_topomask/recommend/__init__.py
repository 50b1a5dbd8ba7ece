r"""Recommendation: interactions, losses, ranking metrics, and recommenders.

The runner, ``pyg_topomask.recommend.train``, needs the extra :obj:`graphgym`. The exports of this package need no extra.
"""

from __future__ import annotations

from pyg_topomask.recommend.evaluation import evaluate, rank_items
from pyg_topomask.recommend.interaction_files import load_interaction_dataset, load_interactions, read_interactions
from pyg_topomask.recommend.interactions import InteractionDataset, split_per_user
from pyg_topomask.recommend.losses import DirectAULoss
from pyg_topomask.recommend.recommender import MGFormerRecommender, Recommender

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
