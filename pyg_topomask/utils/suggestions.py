r"""What a user who wrote an unknown word may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: object, known: Iterable[object]) -> str:
    r"""Returns a question that names the known word most like another, or an empty text if none is.

    Example:
        >>> did_you_mean('max_hop', ['heads', 'max_hops'])
        'did you mean max_hops?'
        >>> did_you_mean('hop', ['Hop', 'GRF']), did_you_mean('HopMask', ['Hop', 'GRF']), did_you_mean('xyz', ['Hop', 'GRF'])
        ('did you mean Hop?', 'did you mean Hop?', '')
    """
    plain, lower = {str(each).lower(): each for each in known}, str(word).lower()
    ends = ('mask', 'attention')  # of classes, whose words leave them out
    close = [stem for end in ends if (stem := lower.removesuffix(end)) in plain] or get_close_matches(lower, plain, 1)
    return f'did you mean {plain[close[0]]}?' if close else ''


def instance_of(*given: object) -> str:
    r"""Returns the remedy if there is a class in place of an object."""
    return next((f'make an object of the class, {each.__name__}(...)' for each in given if isinstance(each, type)), '')
