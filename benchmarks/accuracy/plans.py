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


def _plan(masked: tuple[Setting, ...], messages: tuple[Setting, ...], controls: int = 1) -> Plan:
    r"""Adds to the masked models and to message passing what differs from the first masked model by its attention alone, and
    from some of the first by equal scores.
    """
    groups = {
        MASKED: masked,
        f'{MASKED}, equal scores': tuple(each._replace(attention=f'mean {each.attention}') for each in masked[:controls]),
        'no attention': (masked[0]._replace(attention='none'),),
        'unmasked attention': tuple(masked[0]._replace(attention=name) for name in UNMASKED),
        'message passing': messages,
    }
    return Plan(groups)


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
        ),
    ),
    'sydney': _plan(
        _variants(_SYDNEY, {'layers': 4, 'reach': 4, 'epochs': 80}),
        _variants(
            _SYDNEY._replace(local='sage', attention='none', layers=16, epochs=140),
            {'local': 'gcn', 'epochs': 110},
        ),
        controls=2,
    ),
}
