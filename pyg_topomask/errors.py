r"""The error for invalid arguments, and warnings about them."""

from __future__ import annotations

import sys
import warnings

__all__ = ['ArgumentError']

# Modules whose lines a warning does not name.
_INSIDE = ('pyg_topomask', 'torch.', 'torch_geometric.', 'contextlib', 'functools', 'multiprocessing.')


class ArgumentError(ValueError):
    r"""Raised for an invalid argument. The message names the argument, the value given, the accepted values and, if there is
    one, a remedy. All four are attributes, so that callers need not parse the message.

    Args:
        argument (str): The name of the argument.
        given (object): The value given, or text that describes it.
        accepted (object): The accepted values, or text that describes them.
        remedy (str, optional): How to get an accepted value. (default: :obj:`""`)

    Example:
        >>> error = ArgumentError('num_walks', 0, 'whole numbers from 1')
        >>> error
        ArgumentError('num_walks: got 0; accepted: whole numbers from 1')
        >>> print(error.under('topomask.GRF'))
        topomask.GRF.num_walks: got 0; accepted: whole numbers from 1
    """

    def __init__(self, argument: str, given: object, accepted: object, remedy: str = '') -> None:
        self.argument = argument
        self.given = str(given)
        self.accepted = str(accepted)
        self.remedy = remedy
        message = f'{argument}: got {self.given}; accepted: {self.accepted}'
        super().__init__(f'{message}; {remedy}' if remedy else message)

    def renamed(self, argument: str) -> ArgumentError:
        r"""Returns the same error for an argument with a different name."""
        return type(self)(argument, self.given, self.accepted, self.remedy)

    def under(self, owner: str) -> ArgumentError:
        r"""Returns the same error for :obj:`owner.argument`."""
        return self.renamed(f'{owner}.{self.argument}')

    def __reduce__(self) -> tuple[type[ArgumentError], tuple[str, ...]]:
        return type(self), (self.argument, self.given, self.accepted, self.remedy)


def warn(message: str) -> None:
    r"""Warns of an argument, at the line outside of this package that led to the call."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get('__name__')).startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)
