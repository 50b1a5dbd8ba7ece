r"""Errors in one line."""

from __future__ import annotations

__all__ = ['first_line']


def first_line(error: BaseException) -> str:
    r"""Returns the first line of the message of an error, or its name where it has none.

    Args:
        error (BaseException): The error.

    Example:
        >>> first_line(RuntimeError('broken\nin many ways')), first_line(EOFError())
        ('broken', 'EOFError')
    """
    return (str(error) or type(error).__name__).splitlines()[0]
