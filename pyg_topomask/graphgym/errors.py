r"""What to do about errors in a YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ['named_remedies']

#: What a mask or a transform says of data that lacks something, and where a YAML gets it from.
REMEDIES = (
    (
        r'got a graph with a cycle',
        'forests come from the data set: of the transforms in topomask.transforms AddForest stores one, and none makes one',
    ),
    (
        r'got the attribute name (.+), which the data lacks',
        r'it comes with the data set, or from a transform in topomask.transforms that stores it under this name, as '
        r'AddLaplacianEigenvectorPE and AddRandomWalkPE of PyG do with attr_name: \1',
    ),
)


@contextmanager
def named_remedies() -> Iterator[None]:
    r"""Adds to an error by which a mask refuses the data what in :obj:`topomask.transforms` makes what it lacks."""
    try:
        yield
    except ValueError as error:
        for pattern, remedy in REMEDIES:
            if found := re.search(pattern, str(error)):
                raise ValueError(f'{error}; {found.expand(remedy)}') from error
        raise
