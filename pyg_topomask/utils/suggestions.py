r"""What a user who wrote an unknown word may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: object, known: Iterable[object]) -> str:
    r"""Returns a question that names the known word most like another, or an empty text if none is.

    Example:
        >>> did_you_mean('max_hop', ['heads', 'max_hops'])
        'did you mean max_hops?'
        >>> did_you_mean('hop', ['Hop', 'GRF']), did_you_mean('xyz', ['Hop', 'GRF'])
        ('did you mean Hop?', '')
    """
    plain = {str(each).lower(): each for each in known}
    close = get_close_matches(str(word).lower(), plain, 1)
    return f'did you mean {plain[close[0]]}?' if close else ''
