r"""The error for an argument that is not accepted."""

from __future__ import annotations

__all__ = ['ArgumentError']


class ArgumentError(ValueError):
    r"""An argument is not accepted. The message names the argument, what was given, what is accepted and, where there is one,
    a remedy. All four are attributes, so that callers need not read them from the message.

    Args:
        argument (str): The name of the argument.
        given (object): What was given, as text or as a value whose text says it.
        accepted (object): What is accepted, in the same form.
        remedy (str, optional): How to get what is accepted. (default: :obj:`""`)
        verb (str, optional): :obj:`"is"` if :obj:`accepted` is singular. (default: :obj:`"are"`)

    Example:
        >>> error = ArgumentError('num_walks', 0, 'whole numbers from 1')
        >>> error
        ArgumentError('num_walks: got 0; accepted are whole numbers from 1')
        >>> print(error.under('topomask.GRF'))
        topomask.GRF.num_walks: got 0; accepted are whole numbers from 1
    """

    def __init__(self, argument: str, given: object, accepted: object, remedy: str = '', verb: str = 'are') -> None:
        self.argument = argument
        self.given = str(given)
        self.accepted = str(accepted)
        self.remedy = remedy
        self.verb = verb
        message = f'{argument}: got {self.given}; accepted {verb} {self.accepted}'
        super().__init__(f'{message}; {remedy}' if remedy else message)

    def renamed(self, argument: str) -> ArgumentError:
        r"""Returns the same error for an argument of another name."""
        return type(self)(argument, self.given, self.accepted, self.remedy, self.verb)

    def under(self, owner: str) -> ArgumentError:
        r"""Returns the same error for :obj:`owner.argument`."""
        return self.renamed(f'{owner}.{self.argument}')

    def __reduce__(self) -> tuple[type[ArgumentError], tuple[str, ...]]:
        return type(self), (self.argument, self.given, self.accepted, self.remedy, self.verb)
