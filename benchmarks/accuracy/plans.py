r"""What is trained for each task: models with a mask, and what they are compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.accuracy.networks import VARIANTS, Setting

__all__ = ['BESIDE_UNMASKED', 'DEPTHS', 'KINDS', 'LAYERS', 'MASKED', 'PLANS', 'VARIATIONS', 'WALKS', 'Plan']

#: The group of models with a mask.
MASKED = 'mask'
#: The group of models with message passing and unmasked attention side by side.
BESIDE_UNMASKED = 'message passing beside unmasked attention'
UNMASKED = ('linear', 'performer', 'sgformer', 'polynormer')


@dataclass(frozen=True)
class Plan:
    r"""The settings of a task.

    Args:
        groups (dict): Settings by what they are, :obj:`MASKED` first. The setting of a group that is best on the nodes of
            validation stands for it.
    """

    groups: dict[str, tuple[Setting, ...]]

    def settings(self) -> Iterator[Setting]:
        r"""All settings, in the order in which they are run."""
        for settings in self.groups.values():
            yield from settings


def _plan(
    masked: tuple[Setting, ...],
    messages: tuple[Setting, ...],
    controls: int = 1,
    unmasked: tuple[str, ...] = UNMASKED,
    beside: tuple[int, ...] = (),
    gps: Mapping[str, object] | None = None,
) -> Plan:
    r"""Adds to the masked models and to message passing what differs from the first masked model by its attention alone, and
    from some of the first by equal scores. :obj:`beside` are the place of a masked model and the places of message passing
    that also run side by side. The mask stands beside the first of these local layers. Unmasked attention stands beside
    the layers of each of them, and beside the first of them in place of the mask. :obj:`gps` is what a model of GPS changes in
    the first masked model.
    """
    groups = {
        MASKED: masked,
        f'{MASKED}, equal scores': tuple(each._replace(attention=f'mean {each.attention}') for each in masked[:controls]),
        'no attention': (masked[0]._replace(attention='none'),),
        'unmasked attention': (
            *(masked[0]._replace(attention=name) for name in unmasked),
            *(each._replace(attention='linear') for each in masked[1:] if each.variant in ('square', 'last')),
        ),
        'message passing': messages,
    }
    if beside:
        networks = [messages[place] for place in beside[1:]]
        hybrid = masked[beside[0]]._replace(local=networks[0].local)
        groups['message passing beside the mask'] = (hybrid,)
        groups[BESIDE_UNMASKED] = tuple(each._replace(attention='linear') for each in (*networks, hybrid))
    if gps is not None:
        groups[BESIDE_UNMASKED] += _variants(masked[0], {'variant': 'gps', **gps})[1:]
    return Plan(groups)


def _variants(first: Setting, *changes: Mapping[str, object]) -> tuple[Setting, ...]:
    return (first, *(first._replace(**change) for change in changes))  # type: ignore[arg-type]


_TREES = Setting('none', 'hop', 2, 32, 8, 'balls', epochs=40)
_LOOKUP = Setting('none', 'hop', 3, 32, 4, 'balls', epochs=60)
_MESHES = Setting('none', 'hop', 2, 32, 6, 'balls', epochs=40)
_SYDNEY = Setting('none', 'hop', 2, 32, 8, 'balls', epochs=40)
_SYDNEY_DEEP = _SYDNEY._replace(layers=4, reach=4, epochs=80)
_MINESWEEPER = Setting('none', 'adjacency', 12, 64, 1, 'hops', epochs=400, dropout=0.2)
#: The training of the published GCN.
_PUBLISHED = {'epochs': 2000, 'schedule': 'constant'}
#: Deep message passing trains better with it.
_RESIDUAL = {'variant': 'residual'}
_TOLOKERS = Setting('none', 'adjacency', 4, 64, 1, 'hops', epochs=120, dropout=0.3)
_CHAMELEON = Setting('none', 'adjacency', 4, 128, 1, 'hops', epochs=200, dropout=0.7, decay=1e-3)
_SQUIRREL = _CHAMELEON._replace(decay=5e-4)
_CHICAGO = Setting('none', 'hop', 4, 32, 4, 'decay', epochs=120)
_PEPTIDES = Setting('none', 'hop', 4, 64, 4, 'balls', epochs=30, rate=5e-3, dropout=0.1)
_ALL_PEPTIDES = _PEPTIDES._replace(local='gcn', attention='none', epochs=20)
_RINGS = Setting('none', 'hop', 1, 32, 20, 'balls', epochs=100)
_MATCH = Setting('none', 'hop', 2, 32, 4, 'balls', epochs=40)
_DISTANCES = Setting('none', 'hop', 2, 32, 4, 'balls', epochs=60)
_TRAFFIC = Setting('none', 'hop', 2, 32, 3, 'balls', epochs=60, dropout=0.2)
_RINGS_PLAN = _plan(
    _variants(_RINGS, {'start': 'hops'}),
    _variants(_RINGS._replace(local='sage', attention='none', layers=20), {'local': 'gcn'}),
)
#: The plans by the name of the task.
PLANS = {
    'trees': _plan(
        _variants(
            _TREES, {'start': 'hops'}, {'start': 'decay'}, {'attention': 'powers', 'start': 'hops'}, {'variant': 'square'}
        ),
        _variants(
            _TREES._replace(local='sage', attention='none', layers=8, epochs=80),
            {'epochs': 160},
            {'layers': 16},
            {'local': 'gcn'},
            {'local': 'gcn', 'layers': 16},
            {'local': 'gin', 'layers': 16, **_RESIDUAL},
            {'local': 'pna', **_RESIDUAL},
        ),
        beside=(4, 4, 6),
        gps={'local': 'pna', 'attention': 'transformer', 'layers': 8, 'epochs': 80},
    ),
    'lookup': _plan(
        _variants(_LOOKUP, {'start': 'hops'}, {'start': 'decay'}, {'variant': 'square'}),
        _variants(
            _LOOKUP._replace(local='sage', attention='none', layers=8, epochs=80),
            {'layers': 4},
            {'local': 'gcn'},
            {'local': 'gat'},
            {'local': 'gin', 'layers': 4, **_RESIDUAL},
        ),
        beside=(3, 1, 4),
        gps={'local': 'gin', 'attention': 'transformer', 'layers': 4, 'epochs': 80, 'rate': 3e-3},
    ),
    'meshes': _plan(
        _variants(
            _MESHES, {'start': 'hops'}, {'start': 'decay'}, {'attention': 'powers', 'start': 'hops'}, {'variant': 'square'}
        ),
        _variants(
            _MESHES._replace(local='sage', attention='none', layers=6, epochs=80),
            {'layers': 12},
            {'local': 'gcn'},
            {'layers': 12, **_RESIDUAL},
            {'local': 'gcn', 'layers': 12, **_RESIDUAL},
            {'layers': 16, **_RESIDUAL},
        ),
        beside=(2, 1, 3),
        gps={'local': 'sage', 'attention': 'performer', 'layers': 6, 'epochs': 80},
    ),
    'sydney': _plan(
        (_SYDNEY, _SYDNEY_DEEP, _SYDNEY_DEEP._replace(variant='square')),
        _variants(
            _SYDNEY._replace(local='sage', attention='none', layers=16, epochs=140),
            {'epochs': 280},
            {'local': 'gcn', 'epochs': 110},
        ),
        controls=2,
        beside=(2, 0),
        gps={'local': 'sage', 'attention': 'performer', 'layers': 16, 'epochs': 140},
    ),
    'minesweeper': _plan(
        _variants(_MINESWEEPER, _PUBLISHED, {'variant': 'elu', **_PUBLISHED}, {'variant': 'clipped', **_PUBLISHED}),
        _variants(
            _MINESWEEPER._replace(local='gcn', attention='none'),
            {'local': 'sage'},
            {'width': 100},
            _PUBLISHED,
            {'local': 'sage', **_PUBLISHED},
        ),
        controls=2,
        unmasked=('linear',),
    ),
    'tolokers': _plan(
        _variants(
            _TOLOKERS,
            {'local': 'gcn', 'variant': 'last'},
            {'variant': 'with sum'},
            {'variant': 'with sum', 'epochs': 200},
        ),
        # The third has as many parameters as the variant "with sum".
        _variants(_TOLOKERS._replace(local='gcn', attention='none'), {'local': 'sage'}, {'width': 112, 'epochs': 200}),
        controls=2,
        unmasked=('linear',),
    ),
    'chameleon_filtered': _plan(
        _variants(_CHAMELEON, {'local': 'sage', 'variant': 'last', 'width': 256}, {'variant': 'with sum'}),
        _variants(
            _CHAMELEON._replace(local='sage', attention='none', width=256),
            # The published GCN, and a smaller one.
            {
                'local': 'gcn',
                'layers': 5,
                'width': 512,
                'rate': 5e-3,
                'dropout': 0.2,
                'variant': 'bare',
                'schedule': 'constant',
            },
            {'local': 'gcn', 'layers': 5, 'width': 128, 'rate': 5e-3, 'dropout': 0.2, 'variant': 'bare'},
        ),
        controls=2,
        unmasked=('linear',),
    ),
    'squirrel_filtered': _plan(
        _variants(
            _SQUIRREL,
            {'local': 'gcn', 'variant': 'last', 'width': 256},
            {'variant': 'with sum'},
            {'local': 'gcn', 'variant': 'with sum'},
        ),
        _variants(
            _SQUIRREL._replace(local='gcn', attention='none', width=256),
            {'epochs': 500, 'schedule': 'constant'},  # the published training
            {'local': 'sage', 'layers': 3},
            {'local': 'gin', 'width': 128},  # it knows the degrees, as "with sum"
        ),
        controls=2,
        unmasked=('linear',),
    ),
    'chicago': _plan(
        _variants(
            _CHICAGO,
            {'start': 'balls'},
            {'layers': 6, 'reach': 3, 'start': 'balls'},
            {'reach': 5, 'start': 'balls'},
            {'reach': 5, 'start': 'balls', 'variant': 'square'},
        ),
        _variants(
            _CHICAGO._replace(local='sage', attention='none', layers=16, epochs=140),
            {'local': 'gcn', 'epochs': 110},
            {'local': 'gcn', 'epochs': 200},
        ),
        beside=(3, 1),
        gps={'local': 'gcn', 'attention': 'performer', 'layers': 16, 'start': 'balls', 'epochs': 110},
    ),
    'rings': _RINGS_PLAN,
    'crossed_rings': _RINGS_PLAN,
    'match': _plan(
        _variants(_MATCH, {'start': 'hops'}),
        _variants(_MATCH._replace(local='sage', attention='none', layers=5), {'local': 'gcn'}),
    ),
    'distances': _plan(
        _variants(_DISTANCES, {'start': 'hops'}),
        _variants(_DISTANCES._replace(local='sage', attention='none', layers=6, epochs=120), {'local': 'gcn'}),
    ),
    'traffic': _plan(
        _variants(_TRAFFIC, {'start': 'hops'}, {'reach': 1}, {'attention': 'powers', 'reach': 2, 'start': 'hops'}),
        _variants(
            _TRAFFIC._replace(local='sage', attention='none', layers=3), {'layers': 6}, {'local': 'gat'}, {'local': 'gcn'}
        ),
    ),
    'peptides': Plan(
        _plan(
            _variants(_PEPTIDES, {'attention': 'half-hop'}),
            _variants(_PEPTIDES._replace(local='gcn', attention='none'), {'layers': 8}),
            unmasked=('linear',),
        ).groups
        | {
            'message passing beside the mask': _variants(_PEPTIDES._replace(local='gcn'), {'attention': 'half-hop'}),
            BESIDE_UNMASKED: _variants(_PEPTIDES._replace(local='gcn', attention='linear'), {'width': 100}),
        }
    ),
    'all_peptides': Plan(
        {
            MASKED: (_ALL_PEPTIDES._replace(attention='half-hop'),),
            'no attention': (_ALL_PEPTIDES,),
            'unmasked attention': (_ALL_PEPTIDES._replace(attention='linear'),),
        }
    ),
}
#: What is compared with the first setting of each task, which differs in :obj:`variant` alone.
VARIATIONS = {
    # "last" and "gps" need local layers. "clipped" is for long training at a constant rate.
    name: _variants(first, *({'variant': each} for each in VARIANTS if each not in ('sum', 'last', 'gps', 'clipped')))
    for name, first in (
        ('trees', _TREES),
        ('lookup', _LOOKUP),
        ('meshes', _MESHES),
        ('chicago', _CHICAGO),
        ('sydney', _SYDNEY_DEEP),
    )
}
#: Exact powers of the edges, and walks that estimate them.
WALKS = {
    name: _variants(
        first._replace(attention='powers', start='hops', reach=first.reach // 2 * 2),
        *({'attention': walks} for walks in ('grf-4', 'grf-16', 'grf-64', 'long-grf-4', 'long-grf-16')),
    )
    for name, first in (('trees', _TREES), ('lookup', _LOOKUP._replace(variant='square')), ('chicago', _CHICAGO))
}
#: Masks of all kinds in the same network.
KINDS = {
    name: _variants(
        first,
        {'attention': 'tree'},
        *({'attention': kind, 'start': 'hops'} for kind in ('powers', 'heat', 'long-grf-16')),
        {'attention': 'rwgnk-16'},
        {'attention': 'adjacency', 'reach': 1},
        {'attention': 'linear'},
    )
    for name, first in (('trees', _TREES), ('lookup', _LOOKUP._replace(variant='square')))
}
LAYERS = (1, 2, 4, 8, 16)
#: Models of each task with more and more layers.
DEPTHS = {
    name: tuple(
        first._replace(layers=layers, local=local, attention=attention, epochs=epochs)
        for local, attention, epochs in (('none', 'hop', first.epochs), ('sage', 'none', 80), ('gcn', 'none', 80))
        for layers in LAYERS
    )
    for name, first in (('trees', _TREES), ('lookup', _LOOKUP), ('meshes', _MESHES), ('chicago', _CHICAGO))
}
