r"""What is trained for each task: models with a mask, and what they are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.accuracy.networks import Setting

__all__ = ['MASKED', 'PLANS', 'Plan']

#: The group of models with a mask.
MASKED = 'mask'
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


def _plan(masked: tuple[Setting, ...], messages: tuple[Setting, ...]) -> Plan:
    r"""Adds to the masked models and to message passing what differs from the first masked model by its attention alone."""
    first = masked[0]
    others = {
        f'{MASKED}, equal scores': (f'mean {first.attention}',),
        'no attention': ('none',),
        'unmasked attention': UNMASKED,
    }
    groups = {group: tuple(first._replace(attention=name) for name in names) for group, names in others.items()}
    return Plan({MASKED: masked, **groups, 'message passing': messages})


def _variants(first: Setting, *changes: dict[str, object]) -> tuple[Setting, ...]:
    return (first, *(first._replace(**change) for change in changes))  # type: ignore[arg-type]


_TREES = Setting('none', 'hop', 2, 32, 8, 'balls', epochs=40, dropout=0.0)
_MESHES = Setting('none', 'hop', 2, 32, 6, 'balls', epochs=40, dropout=0.0)
_SYDNEY = Setting('none', 'hop', 2, 32, 8, 'balls', epochs=40, dropout=0.0)
#: The plans by the name of the task.
PLANS = {
    'trees': _plan(
        _variants(_TREES, {'start': 'hops'}, {'start': 'decay'}, {'attention': 'powers', 'start': 'hops'}),
        _variants(
            _TREES._replace(local='sage', attention='none', layers=8, epochs=80),
            {'epochs': 160},
            {'layers': 16},
            {'local': 'gcn'},
        ),
    ),
    'meshes': _plan(
        _variants(_MESHES, {'start': 'hops'}, {'start': 'decay'}, {'attention': 'powers', 'start': 'hops'}),
        _variants(
            _MESHES._replace(local='sage', attention='none', layers=6, epochs=80),
            {'layers': 12},
            {'local': 'gcn'},
            {'local': 'gat'},
        ),
    ),
    'sydney': _plan(
        _variants(_SYDNEY, {'layers': 4, 'reach': 4, 'epochs': 80}),
        _variants(_SYDNEY._replace(local='sage', attention='none', layers=16, epochs=140), {'local': 'gcn', 'epochs': 110}),
    ),
}
