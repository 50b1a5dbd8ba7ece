r"""The models that are trained: without a mask, and with the masks that fit the graphs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml  # type: ignore[import-untyped]
from torch_geometric.graphgym.config import cfg

from pyg_topomask.apps.advise.profile import GraphProfile
from pyg_topomask.graphgym.names.attentions import attention_options
from pyg_topomask.graphgym.names.networks import split_layer_type

#: The most nodes of a graph on which attention between all pairs is tried.
PAIRS = 256
#: The largest mean number of nodes within the hops of a mask, and the most hops.
BALL, MOST_HOPS = 64, 8
#: The most edges of a node along which powers are computed.
DEGREE = 32
#: The most masks that are tried.
MASKS = 3


@dataclass(frozen=True)
class Candidate:
    r"""A model: its name, the options that make it, whether its attention has a mask, and a reason to try the mask."""

    name: str
    options: tuple[str, ...]
    masked: bool
    why: str = ''

    @property
    def folder(self) -> str:
        r"""The name of the folder of its trainings."""
        return self.name.replace('+', '-').replace(', ', '-').replace(' ', '-')


@dataclass(frozen=True)
class _Word:
    r"""A word of a mask, with options that fit the graphs and the transforms that it needs."""

    word: str
    why: str
    options: dict[str, object] = field(default_factory=dict)
    transforms: tuple[str, ...] = ()


def candidates(profile: GraphProfile) -> tuple[list[Candidate], list[str]]:
    r"""Returns the models for graphs of a profile, around the network of the global configuration, and the reasons why masks
    are left out. Options of a mask that the configuration states are kept.
    """
    local, _ = split_layer_type(cfg.gt.layer_type)
    if local == 'None':
        local = 'GINE' if cfg.dataset.edge_encoder else 'SAGE'
    layers = str(2 * int(cfg.gt.layers))
    plain = [f'{local}+{word}' for word in ('None', 'Linear', *['Transformer'] * (profile.largest <= PAIRS))]
    models = [Candidate(name, ('gt.layer_type', name), masked=False) for name in plain]
    models.insert(1, Candidate(f'{plain[0]}, {layers} layers', ('gt.layer_type', plain[0], 'gt.layers', layers), masked=False))
    words, left_out = _fitting(profile)
    tried = [(f'{local}+{word.word}', word, word.why) for word in words[:MASKS]]
    tried.append((f'None+{words[0].word}', words[0], 'the same mask without message passing'))
    models += [Candidate(name, ('gt.layer_type', name, *_options(word)), True, why) for name, word, why in tried]
    return models, left_out


def _fitting(profile: GraphProfile) -> tuple[list[_Word], list[str]]:
    words, left_out = list(_words(profile)), []
    if profile.within[1] > BALL:
        left_out.append(f'Hop, because a node has {profile.within[1] - 1:.0f} neighbors')
    if profile.degree > DEGREE:
        left_out.append(f'PowerSeries, because a product goes along {profile.degree:.0f} edges a node')
    if not profile.forest:
        left_out.append('Tree, because there are cycles')
    if profile.largest > PAIRS:
        left_out.append(f'Transformer (all pairs), because a graph has more than {PAIRS} nodes')
    return words, left_out


def _words(profile: GraphProfile) -> Iterator[_Word]:
    near = [hops for hops in range(1, MOST_HOPS + 1) if profile.within[hops] <= BALL and hops <= profile.farthest]
    hops = max(near, default=1)
    if near:
        hops = _stated('Hop', 'max_hops', hops)
        pairs = f'{profile.within[min(hops, len(profile.within) - 1)]:.0f} pairs a node'
        yield _Word('Hop', f'any function of the distance within {_count(hops, "hop")}, {pairs}', {'max_hops': hops})
    if profile.grid:
        yield _Word('Toeplitz', 'any function of the offset on the grid, O(N log N)')
    if profile.forest and not profile.directed:
        yield _Word('Tree', 'the distance in trees, at any range, O(N log^2 N)', {'kind': 'distance'}, ('AddForest',))
    if profile.degree <= DEGREE:
        order = _stated('PowerSeries', 'order', min(hops, 4))
        why = f'{"weighted " * profile.weighted}walks, {_count(order, "product")} along {profile.degree:.1f} edges a node'
        yield _Word('PowerSeries', why, {'order': order})
    if profile.degree <= 8 and profile.farthest >= 10:
        kind = {} if profile.symmetric else {'kind': 'random_walk_laplacian'}
        yield _Word('HeatKernel', 'a smooth range for each head, 10 to 20 products', {'tolerance': 1e-3, **kind})
    walks = 'AsymmetricGRF' if profile.directed else 'GRF'
    yield _Word(walks, 'random walks, at a cost that does not depend on edges', {}, ('AddGraphRandomFeatures',))


def _stated(word: str, option: str, fitting: int) -> int:
    r"""Returns an option of a mask that the configuration states, or else the value that fits."""
    value = cfg.topomask[word][option]
    return fitting if value == attention_options(word)[option] else int(value)


def _options(word: _Word) -> list[str]:
    defaults, options = attention_options(word.word), []
    for key, value in word.options.items():
        if cfg.topomask[word.word][key] == defaults[key]:  # otherwise, that of the configuration
            options += [f'topomask.{word.word}.{key}', str(value)]
    transforms = list(cfg.topomask.transforms or [])
    present = [next(iter(entry)) if isinstance(entry, dict) else entry for entry in transforms]
    if missing := [name for name in word.transforms if name not in present]:
        listed = yaml.safe_dump([*transforms, *missing], default_flow_style=True, width=2**20).strip()
        options += ['topomask.transforms', listed]
    return options


def _count(number: int, noun: str) -> str:
    return f'{number} {noun}{"s" * (number != 1)}'
