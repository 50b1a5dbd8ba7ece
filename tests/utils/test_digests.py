"""Hashes of transforms tell apart what changes the data."""

import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from pyg_topomask.utils.files import digest_of, digest_of_transform


class Shift:
    def __init__(self, by: float) -> None:
        self.by = by

    def apply(self, data: Data) -> Data:
        data.x = data.x + self.by
        return data

    def undo(self, data: Data) -> Data:
        data.x = data.x - self.by
        return data

    @classmethod
    def same(cls, data: Data) -> Data:
        return data


def plain(data: Data) -> Data:
    return data


def test_bound_methods_are_told_apart_by_their_objects() -> None:
    digests = [
        digest_of_transform(method) for method in (Shift(1).apply, Shift(2).apply, Shift(1).undo, Shift.same, Shift(1).apply)
    ]
    assert len(set(digests)) == 4
    assert digests[0] == digests[-1]


@torch.no_grad()
def without_gradients(data: Data) -> Data:
    return data


@functools.cache
def kept(data: Data) -> Data:
    return data


def test_decorated_functions_of_the_module_have_names() -> None:
    assert len({digest_of_transform(function) for function in (plain, without_gradients, kept)}) == 3


def test_a_decorated_function_has_the_name_of_another() -> None:
    @functools.wraps(plain)
    def decorated(data: Data) -> Data:
        return plain(data)

    for transform in (decorated, functools.partial(decorated), [decorated]):
        with pytest.raises(TypeError, match=r'plain has no name that another process could find it by'):
            digest_of_transform(transform)


CODE = """
import functools
from torch_geometric.transforms import BaseTransform

class Base:
    def __call__(self, data):
        return {0}

class Derived(Base):
    pass

def function(data, k):
    return {0}
"""
TRANSFORMS: dict[str, Callable[..., object]] = {
    'function': lambda module: module.function,
    'partial': lambda module: functools.partial(module.function, k=1),
    'bound method': lambda module: module.Derived().__call__,
    'inherited': lambda module: module.Derived(),
    'list': lambda module: [module.Derived()],
}


@pytest.mark.parametrize('name', TRANSFORMS)
def test_the_code_of_users_counts_wherever_it_is(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, 'dont_write_bytecode', True)
    digests = []
    for result in ('data', 'data.clone()', 'data'):
        (tmp_path / 'lab_of_digests.py').write_text(CODE.format(result))
        monkeypatch.delitem(sys.modules, 'lab_of_digests', raising=False)
        importlib.invalidate_caches()
        digests.append(digest_of_transform(TRANSFORMS[name](importlib.import_module('lab_of_digests'))))
    assert digests[0] == digests[2] != digests[1]


def test_numbers_and_their_texts_are_different_keys() -> None:
    hashes = [digest_of_transform(functools.partial(Shift.same, by=by)) for by in ({1: 'a'}, {'1': 'a'})]
    assert hashes[0] != hashes[1]


def test_the_default_data_type_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest_of_transform(Shift(1.0).apply)
    monkeypatch.setattr(torch, 'get_default_dtype', lambda: torch.float64)
    assert digest_of_transform(Shift(1.0).apply) != before


def test_data_types_and_shapes_of_tensors_count_and_the_order_of_sets_does_not() -> None:
    zeros = torch.zeros(2)
    assert len({digest_of(each) for each in (zeros, zeros.int(), zeros.view(1, 2), torch.zeros(3))}) == 4
    assert list({0, 8}) != list({8, 0})  # both fall into one place
    assert digest_of({0, 8}) == digest_of({8, 0}) != digest_of({0, 9})
