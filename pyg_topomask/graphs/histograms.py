r"""Histograms of the distances in a forest, for products with functions of the distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from pyg_topomask.graphs.sparse_pattern import stable_argsort

Indices = NDArray[np.int64]


def argsort(key: Indices) -> Indices:
    r"""Returns the order that sorts indices, in which equal ones keep theirs."""
    return stable_argsort(torch.from_numpy(key), int(key.max(initial=0)) + 1).numpy()


@dataclass(frozen=True, eq=False)
class Histograms:
    r"""Histograms whose products with a function of the distance sum up to the products over all pairs of nodes of a forest.

    The contraction of a forest is a hierarchy of separators, like centroids. Its depth is the number of rounds. The
    nodes removed before a node :math:`v` and connected to it through such nodes form a subtree :math:`C_v`. Through :math:`v`,
    this subtree is attached to a node :math:`u` that is removed later, with :math:`C_v \subset C_u`. For any two nodes, there
    is a lowest :math:`v` with both nodes in :math:`C_v`. It is on the path between them, and all higher subtrees contain both
    nodes too. A sum over pairs of nodes is therefore a sum over all :math:`v`: the pairs in :math:`C_v` with distances through
    :math:`v`, minus the same pairs with distances through :math:`u`. Each of these sums needs only the number of nodes at every
    distance.

    Histograms are grouped by width, rounded up to a power of two.

    Args:
        member (numpy.ndarray): The node of each entry, :obj:`[P]`, by group.
        slot (numpy.ndarray): Its slot in the histograms of its group, :obj:`[P]`.
        sign (numpy.ndarray): Whether each histogram is added or subtracted, :obj:`[Q]`.
        groups (numpy.ndarray): The width, the end of the histograms and the end of the entries of each group, :obj:`[G, 3]`.
    """

    member: NDArray[np.int32]
    slot: NDArray[np.int64]
    sign: NDArray[np.int8]
    groups: Indices

    @classmethod
    def of(cls, up: Indices, down: Indices, round_: Indices, root: NDArray[np.bool_], depth: Indices) -> Histograms:
        r"""Counts the nodes at every distance, given the contraction, the roots, and the distance between each node and the
        root of its tree.
        """
        num_nodes = len(up)
        leaf = down == np.arange(num_nodes)
        climbs = leaf | (round_[up] < round_[down])
        above = np.where(climbs, up, down)
        hops_up, hops_down = depth - depth[up], depth[down] - depth
        member = node = np.arange(num_nodes)
        hops, to_up, to_down = np.zeros_like(node), hops_up, hops_down
        entries = []
        while True:
            entries.append((member, node, hops))
            kept = np.flatnonzero(~root[node])
            if len(kept) == 0:
                break
            member, node, to_up, to_down = member[kept], node[kept], to_up[kept], to_down[kept]
            rises, following = climbs[node], above[node]
            hops = np.where(rises, to_up, to_down)
            entries.append((member, node + num_nodes, hops))
            # The far end of the edge that the node closed, where it had two, is one of the two ends that are next.
            to_down = np.where(rises & ~leaf[node], to_down, hops + hops_down[following])
            to_up = np.where(rises, hops + hops_up[following], to_up)
            node = following
        member, histogram, hops = (np.concatenate(arrays) for arrays in zip(*entries, strict=True))
        widest = np.full(2 * num_nodes, -1)
        np.maximum.at(widest, histogram, hops)
        level = np.frexp(np.maximum(widest, 0))[1]  # widest < 2 ** level
        present = np.flatnonzero(widest >= 0)
        present = present[argsort(level[present])]
        ends = np.bincount(level[present]).cumsum()
        rank = np.empty(2 * num_nodes, dtype=np.int64)
        rank[present] = np.arange(len(present))
        rank[present] -= np.concatenate([[0], ends])[level[present]]
        place = level[histogram]
        order = argsort(place)
        slot = ((rank[histogram] << place) + hops)[order]
        groups = np.stack([1 << np.arange(len(ends)), ends, np.bincount(place, minlength=len(ends)).cumsum()], axis=1)
        sign = np.where(present < num_nodes, 1, -1).astype(np.int8)
        return cls(member[order].astype(np.int32), slot, sign, groups)
