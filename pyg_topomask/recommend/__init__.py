r"""Recommendation: interactions, losses, sampling, evaluation by ranking, and baseline encoders.

The runner, :mod:`pyg_topomask.recommend.train`, needs the extra :obj:`graphgym`; what this package exports needs none.
"""

from __future__ import annotations

from pyg_topomask.recommend.datasets import load_interaction_dataset
from pyg_topomask.recommend.encoders import Encoder, LightGCNEncoder, MFEncoder
from pyg_topomask.recommend.interactions import (
    InteractionDataset,
    bipartite_data,
    load_interactions,
    read_interactions,
    split_per_user,
)
from pyg_topomask.recommend.losses import BPRLoss, DirectAULoss, alignment, info_nce, uniformity
from pyg_topomask.recommend.metrics import evaluate, popularity_groups, rank_items, ranking_metrics, top_items
from pyg_topomask.recommend.models import RECOMMENDERS, Recommender, build_recommender
from pyg_topomask.recommend.objectives import BPRObjective, DirectAUObjective, Objective, SGLObjective, SimGCLObjective
from pyg_topomask.recommend.sampling import NegativeSampler

__all__ = [
    'RECOMMENDERS',
    'BPRLoss',
    'BPRObjective',
    'DirectAULoss',
    'DirectAUObjective',
    'Encoder',
    'InteractionDataset',
    'LightGCNEncoder',
    'MFEncoder',
    'NegativeSampler',
    'Objective',
    'Recommender',
    'SGLObjective',
    'SimGCLObjective',
    'alignment',
    'bipartite_data',
    'build_recommender',
    'evaluate',
    'info_nce',
    'load_interaction_dataset',
    'load_interactions',
    'popularity_groups',
    'rank_items',
    'ranking_metrics',
    'read_interactions',
    'split_per_user',
    'top_items',
    'uniformity',
]
