r"""Walks stored on data by transforms and loaded by masks."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.storage import BaseStorage

from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphs.edges import FLOWS, NORMALIZATIONS
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.stored import remember, rows_to_store, used_rows
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


def store_walks(
    graphs: Sequence[Data],
    graph: Graph,
    walks: tuple[WalkFeatures, WalkFeatures],
    settings: WalkSettings,
    prefix: str = 'grf',
) -> None:
    r"""Stores walks of queries and keys, one object if they are the same, on the data of each graph of a batch, in a form that
    PyG batches and slices correctly. They replace earlier walks with the same prefix, one of :obj:`TRANSFORMS`.
    """
    names = {f'{ensemble}_{attribute}' for ensemble in _ensembles(prefix) for attribute in _ATTRIBUTES}
    stores = [data.stores[0] for data in graphs]
    for store in stores:
        for name in names.intersection(store):
            del store[name]
    for data in graphs:
        remember(data.edge_index, TRANSFORMS[prefix])
    query, key = walks
    for ensemble, features in zip(_ensembles(prefix), [query] if key is query else [query, key], strict=False):
        _store(stores, graph, ensemble, features, settings)


def _store(stores: Sequence[BaseStorage], graph: Graph, ensemble: str, features: WalkFeatures, settings: WalkSettings) -> None:
    ptr = graph.segments.ptr.to(features.start.dtype)
    used = torch.searchsorted(features.start, ptr).diff()  # visits are in the order of their start nodes
    fingerprint = graph.fingerprint
    stored = rows_to_store(used, *fingerprint[:, :2].unbind(1))  # numbers of nodes and edges
    padding, rows = stored - used, stored.tolist()

    def padded(visits: Tensor) -> Tensor:
        if sum(rows) == features.nnz:
            return visits
        place = torch.arange(features.nnz, device=graph.device) + (padding.cumsum(0) - padding).repeat_interleave(used)
        return visits.new_zeros(*visits.shape[:-1], sum(rows)).index_copy_(-1, place, visits)

    index = torch.stack([features.start, features.visited]) - ptr[:-1].repeat_interleave(used)
    rest = torch.tensor([features.max_walk_length, *_code(settings)], device=graph.device).expand(graph.num_graphs, -1)
    sizes = torch.cat([fingerprint, stored.unsqueeze(1), used.unsqueeze(1), rest], dim=1)
    split: Any = torch.split_with_sizes_copy  # views would be saved with all graphs; torch declares that it returns nothing
    visits = [padded(visits) for visits in (index.long(), features.length.long(), features.load)]
    columns = [*(split(column, rows, dim=-1) for column in visits), split(sizes, [1] * len(rows))]
    for attribute, parts in zip(_ATTRIBUTES, columns, strict=True):
        for store, part in zip(stores, parts, strict=True):
            store[f'{ensemble}_{attribute}'] = part


def load_walks(graph: Graph, settings: WalkSettings, prefix: str = 'grf') -> tuple[WalkFeatures, WalkFeatures] | None:
    r"""Returns the walks of queries and keys that are stored on the data of a graph, or :obj:`None` if there are none. Raises
    a :class:`ValueError` if the data has changed since, or they do not fit the settings.
    """
    hops, transform = settings.max_walk_length, TRANSFORMS[prefix]
    if graph.unweighted is not None:
        if graph.get(f'{prefix}_index') is not None:
            warn('graph: got stored walks, with loads of other edge weights. They are not used, and the layer samples walks.')
        return None
    loaded = [_load(graph, ensemble, settings, transform) for ensemble in _ensembles(prefix)]
    walks = [features for features in loaded if features is not None]
    if not walks:
        if transform in graph.stored_elsewhere:
            warn(
                f'graph: got none, and {transform} has stored walks on the data of edge_index. They are not used, and the '
                'layer samples walks. Give graph=Graph.from_data(data).'
            )
        return None
    longest = walks[0].max_walk_length  # of both ensembles, which are stored together
    if longest < hops:
        given = f'{hops}, but the stored walks end after {longest} hops'
        accepted = f'at most {longest}, or walks that {transform} stored with a larger max_walk_length'
        raise ArgumentError('max_walk_length', given, accepted)
    if settings.independent_ensembles and len(walks) == 1:
        remedy = f'run {transform} again with independent_ensembles=True'
        raise ArgumentError('independent_ensembles', 'True for data that stores one ensemble', 'False', remedy)
    query = walks[0].truncate(hops)
    return query, walks[1].truncate(hops) if settings.independent_ensembles else query


def _load(graph: Graph, ensemble: str, settings: WalkSettings, transform: str) -> WalkFeatures | None:
    tensors = {f'{ensemble}_{attribute}': graph.get(f'{ensemble}_{attribute}') for attribute in _ATTRIBUTES}
    missing = [name for name, tensor in tensors.items() if tensor is None]
    if len(missing) == len(tensors):
        return None
    if missing:
        raise ArgumentError('data', f'stored walks without {missing}', 'complete ones', f'run {transform} again')
    index, length, load, sizes = tensors.values()
    if sizes.dim() != 2 or sizes.size(1) != sum(_COLUMNS):
        given = f'walks in the form of another version, {ensemble}_sizes of shape {tuple(sizes.shape)}'
        raise ArgumentError('data', given, f'[graphs, {sum(_COLUMNS)}]: run {transform} again')
    fingerprint, stored, used, longest, codes = sizes.split(_COLUMNS, dim=1)
    total = int(stored.sum())
    if not torch.equal(fingerprint, graph.fingerprint) or {index.size(1), length.numel(), load.numel()} != {total}:
        num_nodes, num_edges, _ = fingerprint.sum(0).tolist()
        raise ArgumentError(
            'data',
            f'stored walks of {num_nodes} nodes, {num_edges} edges and {total} visits',
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
        visits = used_rows(stored, used)
        index, length, load = index[:, visits], length[visits], load[visits]
    dtype = torch.int32 if graph.num_nodes < 2**31 else torch.int64
    (start, visited), length = index.to(dtype), length.to(dtype)
    shortest, most = (int(hops) for hops in longest.aminmax()) if len(longest) > 0 else (0, 0)
    return WalkFeatures(start, visited, length, load, graph.num_nodes, most).truncate(shortest)


def _code(settings: WalkSettings) -> list[int]:
    r"""Encodes the settings that must agree between stored walks and a mask."""
    counted = 0
    if not settings.importance:
        # Counted visits depend on the distribution of walks.
        drawn = settings.p_halt if settings.walk_length is None else settings.walk_length, settings.transition
        counted = 1 + zlib.crc32(repr(drawn).encode())
    return [NORMALIZATIONS.index(settings.normalization), FLOWS.index(settings.flow), counted]
