r"""Signatures and documentation of keyword arguments that a class passes on to other classes."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar('T', bound=type)

# The section Args of a docstring, and its entries: name, type, and text up to the next entry.
_ARGS = re.compile(r'^Args:\n(.*?)(?=^\S|\Z)', re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r'^    (\w+) \(.*?(?=^    \S|\Z)', re.MULTILINE | re.DOTALL)


def options_of(*sources: type, without: Sequence[str] = ()) -> Callable[[T], T]:
    r"""Returns a decorator for a class whose :obj:`__init__` takes :obj:`**options` and passes them on to other classes. It
    replaces :obj:`**options` in the signature by the keyword arguments of these classes, with their types and defaults, and
    adds their descriptions to the section :obj:`Args` of the docstring. The class's own arguments and descriptions take
    precedence. Calls with unknown arguments raise a :class:`TypeError`.

    Args:
        *sources (type): The classes that take the options.
        without (sequence of str): Arguments of these classes to exclude. (default: :obj:`()`)

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
                if parameter.kind is parameter.VAR_KEYWORD or name in without:
                    continue
                parameters.setdefault(name, parameter.replace(kind=parameter.KEYWORD_ONLY))
        signature = inspect.Signature(list(parameters.values()))

        @functools.wraps(initialize)
        def checked(*arguments: Any, **keywords: Any) -> None:
            try:
                signature.bind(*arguments, **keywords)
            except TypeError as error:
                raise TypeError(f'{cls.__name__}: {error}') from None
            initialize(*arguments, **keywords)

        checked.__signature__ = signature  # type: ignore[attr-defined]
        setattr(cls, '__init__', checked)  # noqa: B010
        cls.__doc__ = _described(cls.__doc__ or '', list(parameters), [source.__doc__ or '' for source in sources])
        return cls

    return decorate


def _described(doc: str, names: Sequence[str], sources: Sequence[str]) -> str:
    r"""Returns a docstring with the entries of several docstrings for the given arguments."""
    doc = inspect.cleandoc(doc)
    section = _ARGS.search(doc)
    if section is None:
        return doc
    texts: dict[str, str] = {}
    for text in (doc, *map(inspect.cleandoc, sources)):
        arguments = _ARGS.search(text)
        for entry in _ENTRY.finditer('' if arguments is None else arguments[1]):
            texts.setdefault(entry[1], entry[0].rstrip())
    entries = '\n'.join(texts[name] for name in names if name in texts)
    return f'{doc[: section.start(1)]}{entries}\n\n{doc[section.end(1) :]}'
