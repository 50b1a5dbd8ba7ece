r"""Errors of estimates, and how they compare with those of a reference."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from pyg_topomask.apps.runs.compare import mean_error, verdict

__all__ = ['SEEDS', 'Errors', 'compared', 'ratios', 'relative_error']

Errors = list[float]
SEEDS = 20


def relative_error(estimate: Tensor, exact: Tensor) -> float:
    r"""Returns the error of a matrix in the Frobenius norm, divided by the norm of the exact one."""
    return float((estimate - exact).norm() / exact.norm())


def compared(errors: Errors, reference: Errors) -> dict[str, object]:
    r"""Returns the columns on the error of a method, and on its difference from the reference, paired by seed."""
    gap, deviation = mean_error([mine - theirs for mine, theirs in zip(errors, reference, strict=True)])
    same = errors is reference
    return {
        'relative error': '{:.4f} ± {:.4f}'.format(*mean_error(errors)),
        'minus the reference': '' if same else f'{gap:+.4f} ± {deviation:.4f}',
        'verdict': 'reference' if same else verdict(gap, deviation, ('worse', 'better')),
    }


def ratios(seconds: Mapping[str, float], reference: str) -> str:
    r"""Returns what functions take, divided by what a reference takes, as a text."""
    return ', '.join(f'{value / seconds[reference]:.2f} ({name})' for name, value in seconds.items() if name != reference)
