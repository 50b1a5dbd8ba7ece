"""Threads of machine code."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

from pyg_topomask.machine import backend
from pyg_topomask.machine.backend import uses_numba
from pyg_topomask.machine.threads import in_threads


@pytest.fixture(params=[1, 3])
def num_threads(request: pytest.FixtureRequest) -> Iterator[int]:
    threads = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(threads)


def test_results_are_in_the_order_of_the_arguments(num_threads: int) -> None:
    assert in_threads(lambda a, b: a - b, range(50), range(0, 100, 2)) == [-a for a in range(50)]
    assert in_threads(lambda a: a, ()) == []


def test_as_many_threads_serve_as_torch_uses(num_threads: int) -> None:
    together = threading.Barrier(num_threads, timeout=30)
    served = in_threads(lambda task: (together.wait(), threading.get_ident())[1], range(num_threads))
    assert len(set(served)) == num_threads
    assert threading.get_ident() in served


@pytest.mark.parametrize('bad', [0, 7, 19])
def test_an_error_in_any_thread_is_raised(bad: int, num_threads: int) -> None:
    def check(task: int) -> None:
        if task == bad:
            raise ArithmeticError(task)

    with pytest.raises(ArithmeticError, match=str(bad)):
        in_threads(check, range(20))


def test_compilation_of_this_package_is_announced_once(capsys: pytest.CaptureFixture[str]) -> None:
    numba = pytest.importorskip('numba')
    assert uses_numba(torch.device('cpu'))
    backend._print_once.cache_clear()

    def call(module: str, argument: float) -> str:
        def plus_one(x):  # type: ignore[no-untyped-def]
            return x + 1

        plus_one.__module__ = module
        assert numba.njit(plus_one)(argument) == argument + 1
        return capsys.readouterr().err

    assert call('elsewhere', 1) == ''
    assert call('pyg_topomask.walks', 1).startswith('Numba compiles code of pyg_topomask; this takes some seconds')
    assert call('pyg_topomask.walks', 1.0) == ''
