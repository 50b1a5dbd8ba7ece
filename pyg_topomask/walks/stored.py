r"""Walks stored on data by transforms and loaded by masks."""

from __future__ import annotations

import zlib

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch_geometric.data import Data

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.flow import FLOWS
from pyg_topomask.graphs.graph import NORMALIZATIONS, Graph
from pyg_topomask.walks.features import WalkFeatures
from pyg_topomask.walks.settings import WalkSettings

#: The transform that stores walks with each prefix. The attributes are grf_index, ... for the walks of queries, and
#: grf_key_index, ... for separate walks of keys.
TRANSFORMS = {'grf': 'AddGraphRandomFeatures', 'rwgnk': 'AddRandomWalkKernel'}
_ATTRIBUTES = ('index', 'length', 'load', 'sizes')
# Of `sizes`: the fingerprint of the graph, stored and used visits, the largest number of hops, and the code of the settings.
_COLUMNS = (3, 1, 1, 1, 3)


def _ensembles(prefix: str) -> tuple[str, str]:
    return prefix, f'{prefix}_key'


def store_walks(data: Data, walks: tuple[WalkFeatures, WalkFeatures], settings: WalkSettings, prefix: str = 'grf') -> None:
    r"""Stores walks on the data of one graph, in a form that PyG batches and slices correctly. They replace earlier walks with
    the same prefix.

    Args:
        data (torch_geometric.data.Data): The data.
        walks (tuple of WalkFeatures): The walks of the queries and of the keys, one object if they are the same.
        settings (WalkSettings): The settings of the walks.
        prefix (str): The prefix of the attributes, one of :obj:`TRANSFORMS`. (default: :obj:`"grf"`)
    """
    for name in (f'{ensemble}_{attribute}' for ensemble in _ensembles(prefix) for attribute in _ATTRIBUTES):
        if name in data:
            del data[name]
    graph = Graph.from_data(data)
    query, key = walks
    for ensemble, features in zip(_ensembles(prefix), [query] if key is query else [query, key], strict=False):
        stored = graph.rows_to_store(features.nnz)
        padding = (0, stored - features.nnz)
        data[f'{ensemble}_index'] = pad(torch.stack([features.start, features.visited]).long(), padding)
        data[f'{ensemble}_length'] = pad(features.length.long(), padding)
        data[f'{ensemble}_load'] = pad(features.load, padding)
        sizes = [*graph.fingerprint[0].tolist(), stored, features.nnz, features.max_walk_length, *_code(settings)]
        data[f'{ensemble}_sizes'] = torch.tensor([sizes], device=features.load.device)


def load_walks(graph: Graph, settings: WalkSettings, prefix: str = 'grf') -> tuple[WalkFeatures, WalkFeatures] | None:
    r"""Returns the stored walks of queries and keys on the data of a graph, or :obj:`None` if there are none.

    Args:
        graph (Graph): The graphs, created from data.
        settings (WalkSettings): The settings of the mask.
        prefix (str): The prefix of the attributes, one of :obj:`TRANSFORMS`. (default: :obj:`"grf"`)

    Raises:
        ValueError: If the data has changed since the walks were stored, or they do not fit the settings.
    """
    hops, transform = settings.max_walk_length, TRANSFORMS[prefix]
    stored = {ensemble: [graph.get(f'{ensemble}_{attribute}') for attribute in _ATTRIBUTES] for ensemble in _ensembles(prefix)}
    walks = [
        _load(graph, ensemble, tensors, settings, transform)
        for ensemble, tensors in stored.items()
        if any(tensor is not None for tensor in tensors)
    ]
    if not walks:
        return None
    longest = min(features.max_walk_length for features in walks)
    if longest < hops:
        raise ArgumentError(
            'max_walk_length',
            f'{hops}, but the stored walks end after {longest} hops',
            f'at most {longest}, or walks that {transform} stored with a larger max_walk_length',
        )
    if settings.independent_ensembles and len(walks) == 1:
        raise ArgumentError(
            'independent_ensembles',
            'True for data that stores one ensemble',
            'False',
            f'run {transform} again with independent_ensembles=True',
        )
    query = walks[0].truncate(hops)
    return query, walks[1].truncate(hops) if settings.independent_ensembles else query


def _load(graph: Graph, ensemble: str, tensors: list[Tensor | None], settings: WalkSettings, transform: str) -> WalkFeatures:
    index, length, load, sizes = tensors
    if index is None or length is None or load is None or sizes is None:
        names = zip(_ATTRIBUTES, tensors, strict=True)
        missing = [f'{ensemble}_{attribute}' for attribute, tensor in names if tensor is None]
        raise ArgumentError('data', f'stored walks without {missing}', 'complete ones', f'run {transform} again')
    if sizes.dim() != 2 or sizes.size(1) != sum(_COLUMNS):
        raise ArgumentError(
            'data',
            f'walks in the form of another version, {ensemble}_sizes of shape {tuple(sizes.shape)}',
            f'[graphs, {sum(_COLUMNS)}]: run {transform} again',
        )
    fingerprint, stored, used, longest, codes = sizes.split(_COLUMNS, dim=1)
    total = int(stored.sum())
    if not torch.equal(fingerprint, graph.fingerprint) or {index.size(1), length.numel(), load.numel()} != {total}:
        raise ArgumentError(
            'data',
            f'stored walks of {int(fingerprint[:, 0].sum())} nodes, {int(fingerprint[:, 1].sum())} edges and {total} visits',
            f'those of this graph of {graph.num_nodes} nodes and {graph.num_edges} edges, with its edges and edge weights',
            f'it has changed since they were stored: run {transform} again, after the transforms that change it',
        )
    differing = codes[(codes != codes.new_tensor(_code(settings))).any(1)]
    if len(differing) > 0:
        normalization, flow, counted = differing[0].tolist()
        raise ArgumentError(
            'data',
            f'walks stored with normalization={NORMALIZATIONS[normalization]!r}, flow={FLOWS[flow]!r} and '
            f'importance={counted == 0}',
            f'normalization={settings.normalization!r}, flow={settings.flow!r}, importance={settings.importance} and, for '
            f'walks that are counted, p_halt={settings.p_halt}, walk_length={settings.walk_length} and '
            f'transition={settings.transition!r}: run {transform} again with these, or store no walks, which every mask then '
            'draws for itself',
        )
    if not torch.equal(stored, used):
        stored, used = stored.squeeze(1), used.squeeze(1)
        position = torch.arange(total, device=load.device) - (stored.cumsum(0) - stored).repeat_interleave(stored)
        visits = position < used.repeat_interleave(stored)
        index, length, load = index[:, visits], length[visits], load[visits]
    features = WalkFeatures(index[0], index[1], length, load, graph.num_nodes, int(longest.max()) if len(longest) > 0 else 0)
    return features.truncate(int(longest.min()) if len(longest) > 0 else 0)


def _code(settings: WalkSettings) -> list[int]:
    r"""Encodes the settings that must agree between stored walks and a mask."""
    counted = 0
    if not settings.importance:
        # Counted visits depend on the distribution of walks.
        drawn = settings.p_halt if settings.walk_length is None else settings.walk_length, settings.transition
        counted = 1 + zlib.crc32(repr(drawn).encode())
    return [NORMALIZATIONS.index(settings.normalization), FLOWS.index(settings.flow), counted]
