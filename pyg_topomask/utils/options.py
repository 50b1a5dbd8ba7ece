r"""Arguments that a class passes on to other classes, and what a user who wrote an unknown word may have meant."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar


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


T = TypeVar('T', bound=type)

# The sections of a docstring in their order, and the entries of Args: name, type, and text up to the next entry.
_SECTIONS = ('Args', 'Raises', 'Shapes', 'Example')
_SECTION = re.compile(rf'^({"|".join(_SECTIONS)}):\n', re.MULTILINE)
_ENTRY = re.compile(r'^    (\w+) \(.*?(?=^    \S|\Z)', re.MULTILINE | re.DOTALL)


def options_of(*sources: type, without: Sequence[str] = ()) -> Callable[[T], T]:
    r"""Returns a decorator for a class whose :obj:`__init__` takes :obj:`**options` and passes them on to other classes. It
    replaces :obj:`**options` in the signature by the keyword arguments of these classes but some, with their types and
    defaults, and documents them by :func:`described_by`. Calls with unknown arguments raise a :class:`TypeError`.

    Example:
        >>> class Walk:
        ...     def __init__(self, length: int = 4) -> None:
        ...         self.length = length
        >>> @options_of(Walk)
        ... class Path:
        ...     def __init__(self, start: int, **options: int) -> None:
        ...         self.start, self.walk = start, Walk(**options)
        >>> list(inspect.signature(Path).parameters)
        ['start', 'length']
    """

    def decorate(cls: T) -> T:
        initialize = vars(cls)['__init__']
        parameters = dict(inspect.signature(initialize).parameters)
        parameters.popitem()  # **options
        for source in sources:
            for name, parameter in inspect.signature(source).parameters.items():
                if parameter.kind is not parameter.VAR_KEYWORD and name not in without:
                    parameters.setdefault(name, parameter.replace(kind=parameter.KEYWORD_ONLY))
        signature = inspect.Signature(list(parameters.values()))

        @functools.wraps(initialize)
        def checked(*arguments: Any, **keywords: Any) -> None:
            check_arguments(cls, signature, *arguments, **keywords)
            initialize(*arguments, **keywords)

        checked.__signature__ = signature  # type: ignore[attr-defined]
        setattr(cls, '__init__', checked)  # noqa: B010
        return described_by(*sources)(cls)

    return decorate


def check_arguments(cls: type, signature: inspect.Signature, *arguments: Any, **keywords: Any) -> None:
    r"""Raises a :class:`TypeError` that names a class for arguments that its signature does not accept, with the argument that
    an unknown one may mean.
    """
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        unknown = next((name for name in keywords if name not in signature.parameters), None)
        meant = '' if unknown is None else did_you_mean(unknown, signature.parameters)
        if str(error) == 'too many positional arguments':
            positional = [name for name, each in signature.parameters.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
            meant = f'give names to all but {", ".join(name for name in positional if name != "self")}'
        raise TypeError(f'{cls.__name__}: {error}' + (f'; {meant}' if meant else '')) from None


def described_by(*sources: type) -> Callable[[T], T]:
    r"""Returns a decorator that documents a class with the words of others, of which the first counts: the arguments that its
    section :obj:`Args` leaves out, and the section :obj:`Shapes` of its bases if there is none.
    """

    def decorate(cls: T) -> T:
        purpose, own = _sections(cls)
        entries: dict[str, str] = {}
        for sections in (own, *(_sections(source)[1] for source in sources)):
            for entry in _ENTRY.finditer(sections.get('Args', '')):
                entries.setdefault(entry[1], entry[0].rstrip())
        inherited = (_sections(base)[1].get('Shapes') for base in cls.__mro__[1:])
        own.setdefault('Shapes', next(filter(None, inherited), ''))
        own['Args'] = '\n'.join(entries[name] for name in inspect.signature(cls).parameters if name in entries)
        cls.__doc__ = '\n\n'.join([purpose, *(f'{name}:\n{own[name]}' for name in _SECTIONS if own.get(name))])
        return cls

    return decorate


def _sections(cls: type) -> tuple[str, dict[str, str]]:
    r"""Returns what the docstring of a class says before its sections, and the sections by name."""
    purpose, *rest = (text.rstrip() for text in _SECTION.split(inspect.cleandoc(cls.__doc__ or '')))
    return purpose, dict(zip(rest[::2], rest[1::2], strict=True))
