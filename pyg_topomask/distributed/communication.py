r"""Communication between the processes of a graph, with gradients. All processes call the same functions in the same order."""

from __future__ import annotations

import atexit
import math
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any, TypeVar

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_above_zero

Value = TypeVar('Value')

# A waiting process checks for errors of the others after so many seconds.
_PATIENCE = 1.0
_GROUPS = count()


class ProcessFailed(RuntimeError):
    r"""Another process has reported an error, and this process cannot continue without it."""


class Processes:
    r"""The processes that :mod:`torch.distributed` has connected, each of which waits for another up to :obj:`timeout` seconds.
    If it is not initialized, this process is the only one.
    """

    def __init__(self, timeout: float = 600.0) -> None:
        check_above_zero(timeout=timeout)
        self.timeout = timeout
        self.group: Any = None
        self.rank, self.size = 0, 1
        #: The number of bytes that this process has sent. A reduction over :math:`P` processes counts as
        #: :math:`2 (P - 1) / P` times its size, as a ring sends it.
        self.bytes_sent = 0
        # The number of calls so far, and those before which this process has reported an error.
        self._calls = 0
        self._failed: set[int] = set()
        #: Why the processes can no longer communicate, because they are not in the same call.
        self.broken = ''
        #: Whether a later instance replaces this one.
        self.replaced = False
        # Whether a call may still wait for another process, so that the interpreter could not end.
        self._waits = False
        if dist.is_available() and dist.is_initialized():
            # A new group has its own timeout. Messages of other code cannot mix with its messages.
            self.group = dist.new_group(timeout=timedelta(seconds=timeout))
            self.rank, self.size = dist.get_rank(), dist.get_world_size()
            self._device = torch.device('cuda' if dist.get_backend(self.group) == 'nccl' else 'cpu')
            self._store = c10d.PrefixStore(f'topomask{next(_GROUPS)}', c10d._get_default_store())
            atexit.register(self._end)

    def __deepcopy__(self, memo: dict[int, Any]) -> Processes:
        return self  # copies of a normalization share the processes

    def _wait(self, start: Callable[[], Any], device: torch.device) -> None:
        r"""Starts a call of all processes. Waits until the call ends, or another process reports an error."""
        if self._calls in self._failed:
            self._meet()
        if self.broken:
            raise ProcessFailed(f'{self.broken}. Create the ShardedGraph again in all processes to continue')
        self._calls += 1
        cause, reported = None, ''
        try:
            work = start()
            while not reported and not _has_ended(work, device):
                reported = self._reported()
        except RuntimeError as error:
            cause, reported = error, self._reported()
        if reported:
            self._break(f'process {self.rank} of {self.size}: {reported}')
            raise ProcessFailed(self.broken) from cause
        if cause is not None:
            self._break(
                f'process {self.rank} of {self.size}: another process has ended, or has not answered within '
                f'{self.timeout:g} seconds',
                waits=False,
            )
            raise RuntimeError(self.broken) from cause

    @contextmanager
    def reporting(self) -> Iterator[None]:
        r"""A block whose errors are reported to the processes that wait for this one. Otherwise, they would wait until this
        process ends, or for :attr:`timeout` seconds.
        """
        try:
            yield
        except Exception as error:
            self._report(error)
            raise

    def _report(self, error: BaseException) -> None:
        if self.size > 1 and not isinstance(error, ProcessFailed) and self._calls not in self._failed:
            self._failed.add(self._calls)
            with suppress(RuntimeError):  # the process of the store may have ended
                self._store.set(f'{self.rank}', f'{self._calls} {type(error).__name__}: {error}')

    def _break(self, reason: str, waits: bool = True) -> None:
        self.broken, self._waits = reason, waits
        with suppress(RuntimeError):
            self._store.set(f'broken {self.rank}', '')

    def _meet(self) -> None:
        r"""Waits after an error until all other processes have had an error in the same call, and so continue as well, or until
        one of them does not continue.
        """
        others = [rank for rank in range(self.size) if rank != self.rank]
        end = time.monotonic() + self.timeout
        while not self.broken and not all(self._has_failed(rank) for rank in others):
            left = [rank for rank in others if self._has(f'broken {rank}')]
            if left:
                self._break(f'process {self.rank} of {self.size}: process {left[0]} did not continue after an error here')
            elif time.monotonic() > end:
                self._break(
                    f'process {self.rank} of {self.size}: no answer within {self.timeout:g} seconds after an error here'
                )
            time.sleep(_PATIENCE / 20)

    def _has(self, key: str) -> bool:
        with suppress(RuntimeError):  # the process of the store may have ended
            return bool(self._store.check([key]))
        return False

    def _has_failed(self, rank: int) -> bool:
        r"""Returns whether a process has had an error in the current call. It may have had another one since."""
        return self._has(f'{rank}') and int(self._store.get(f'{rank}').decode().split(' ', 1)[0]) >= self._calls

    def _end(self) -> None:
        r"""Reports the error that this process ends with, if there is one."""
        error = getattr(sys, 'last_value', None)
        if error is not None and dist.is_initialized():
            self._report(error)
        if self._waits:  # the interpreter would wait for a call that another process never joins
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0 if self.replaced and error is None else 1)

    def _reported(self) -> str:
        r"""Returns the error of another process as text. The text is empty without an error, and if this process had an error
        in the same call.
        """
        with suppress(RuntimeError):
            for rank in range(self.size):
                if rank != self.rank and self._store.check([f'{rank}']):
                    calls, text = self._store.get(f'{rank}').decode().split(' ', 1)
                    if int(calls) not in self._failed:
                        return f'process {rank} has failed with {text}'
        return ''

    def gather(self, value: Value) -> list[Value]:
        r"""Returns the values of all processes, which must be picklable, in the order of the processes."""
        if self.size == 1:
            return [value]
        text = torch.frombuffer(bytearray(pickle.dumps(value)), dtype=torch.uint8).to(self._device)
        sizes = [int(size) for size in self._stack(torch.tensor([text.numel()], device=self._device))]
        texts = self._stack(torch.nn.functional.pad(text, (0, max(sizes) - text.numel())))
        return [pickle.loads(each[:size].cpu().numpy().tobytes()) for each, size in zip(texts, sizes, strict=True)]

    def _stack(self, x: Tensor) -> list[Tensor]:
        parts = [torch.empty_like(x) for _ in range(self.size)]
        self._wait(lambda: dist.all_gather(parts, x, group=self.group, async_op=True), x.device)
        return parts

    def together(self, compute: Callable[[], Value]) -> Value:
        r"""Returns the result of a function without communication. If it raises an error in any process, all processes raise
        the first error.
        """
        result, failure = None, None
        try:
            result = compute()
        except Exception as error:  # of any kind, because the others would wait
            failure = error
        failures = self.gather(_picklable(failure))
        for rank, each in enumerate(failures):
            if each is not None:
                if failure is not None and rank == self.rank:
                    raise failure
                raise each
        return result  # type: ignore[return-value]

    def check_equal(self, argument: str, value: object) -> None:
        r"""Raises an error in all processes if their values of an argument differ as text."""
        _check_equal(argument, self.gather(str(value)))

    def sum(self, x: Tensor) -> Tensor:
        r"""Returns the sum over the processes, without a gradient."""
        return self._reduce(x, dist.ReduceOp.SUM)

    def maximum(self, x: Tensor) -> Tensor:
        r"""Returns the maximum over the processes, without a gradient."""
        return self._reduce(x, dist.ReduceOp.MAX)

    def minimum(self, x: Tensor) -> Tensor:
        r"""Returns the minimum over the processes, without a gradient."""
        return self._reduce(x, dist.ReduceOp.MIN)

    def _reduce(self, x: Tensor, operation: Any) -> Tensor:
        x = x.detach().clone(memory_format=torch.contiguous_format)
        if self.size > 1:
            self._wait(lambda: dist.all_reduce(x, operation, group=self.group, async_op=True), x.device)
        self.bytes_sent += 2 * (self.size - 1) * x.numel() * x.element_size() // self.size
        return x

    def stack(self, x: Tensor) -> Tensor:
        r"""Returns the tensors of all processes, of one shape, :obj:`[P, ...]`, without a gradient."""
        if self.size == 1:
            return x.detach().unsqueeze(0)
        x = x.detach().contiguous()
        self.bytes_sent += (self.size - 1) * x.numel() * x.element_size()
        return torch.stack(self._stack(x))

    def fill(self, rows: Tensor, counts: Sequence[int]) -> None:
        r"""Sends the rows of each process to all others, in place, given all rows, and the number of rows of each process."""
        if self.size == 1:
            return
        for rank, each in enumerate(rows.split(list(counts))):
            self._wait(partial(dist.broadcast, each, rank, group=self.group, async_op=True), rows.device)
            if rank == self.rank:
                self.bytes_sent += (self.size - 1) * each.numel() * each.element_size()

    def exchange(self, rows: Tensor, sent: Sequence[int], received: Sequence[int]) -> Tensor:
        r"""Sends the first :obj:`sent[0]` rows to process 0, the next :obj:`sent[1]` rows to process 1, and so on. Returns the
        received rows, as many as :obj:`received` says, in the order of the processes, without a gradient.
        """
        rows = rows.detach().contiguous()
        if self.size == 1:
            return rows
        out = rows.new_empty(sum(received), *rows.shape[1:])
        sizes = list(received), list(sent)
        self._wait(lambda: dist.all_to_all_single(out, rows, *sizes, group=self.group, async_op=True), rows.device)
        width = rows[:1].numel() if rows.size(0) > 0 else 0
        self.bytes_sent += (sum(sent) - sent[self.rank]) * width * rows.element_size()
        return out

    def exchange_any(self, rows: Sequence[Tensor], owner: Tensor) -> list[Tensor]:
        r"""Sends each row of some tensors to its owner. Returns the received rows in the order of the processes."""
        order = torch.argsort(owner, stable=True)
        sent = torch.bincount(owner, minlength=self.size).tolist()
        received = [counts[self.rank] for counts in self.gather(sent)]
        return [self.exchange(tensor.index_select(0, order), sent, received) for tensor in rows]

    def shift(self, x: Tensor, shapes: Sequence[Sequence[int]], round_: int) -> Tensor:
        r"""Passes a tensor to the next process, and returns the tensor of the previous process, without a gradient. Shapes are
        those of the tensors with which the processes begin. After :math:`P - 1` rounds, each process has seen the tensors of
        all.
        """
        shape = shapes[(self.rank - round_ - 1) % self.size]
        sent, received = [0] * self.size, [0] * self.size
        sent[(self.rank + 1) % self.size], received[(self.rank - 1) % self.size] = x.numel(), math.prod(shape)
        return self.exchange(x.reshape(-1), sent, received).view(*shape)


def _check_equal(argument: str, values: Sequence[object]) -> None:
    if len(set(values)) > 1:
        given = ', '.join(f'{each} in process {rank}' for rank, each in enumerate(values[:8]))
        raise ArgumentError(argument, given, 'the same in all processes')


def _has_ended(work: Any, device: torch.device) -> bool:
    r"""Waits for a second, and returns whether a call has ended."""
    if device.type != 'cpu':
        work.wait()  # the device waits, not this process
        return True
    try:
        work.wait(timedelta(seconds=_PATIENCE))
    except RuntimeError:
        if work.is_completed():
            raise
        return False
    return True


def _picklable(error: Exception | None) -> Exception | None:
    r"""Returns the error, or a RuntimeError with its message if the error cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f'{type(error).__name__}: {error}')
    return error


_PROCESSES: dict[float, tuple[Any, Processes]] = {}


def processes(timeout: float = 600.0) -> Processes:
    r"""Returns the processes that :mod:`torch.distributed` has connected. All graphs with the same timeout share them, until an
    error leaves some of them in different calls. All processes call this, with equal timeouts.
    """
    world = dist.group.WORLD if dist.is_available() and dist.is_initialized() else None
    known, group = _PROCESSES.get(timeout, (None, None))
    usable = group is not None and known is world and not group.broken
    if world is not None:
        given: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(given, (timeout, usable))
        _check_equal('timeout', [each for each, _ in given])
        usable = all(each for _, each in given)
    if group is None or not usable:
        if group is not None:
            group.replaced = True
        group = Processes(timeout)
        _PROCESSES[timeout] = world, group
    return group


Map = Callable[..., tuple[Tensor, ...]]


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(multiply: Map, transpose: Map, *tensors: Tensor) -> tuple[Tensor, ...]:
        return multiply(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.multiply, ctx.transpose, *_ = inputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *_Linear.apply(ctx.transpose, ctx.multiply, *grads)


def linear(multiply: Map, transpose: Map, *tensors: Tensor) -> tuple[Tensor, ...]:
    r"""Returns the tensors that a linear map makes of some, given the transposed map as well. Differentiable."""
    return _Linear.apply(multiply, transpose, *tensors)


def sum_over_processes(x: Tensor, group: Processes) -> Tensor:
    r"""Returns the sum over the processes. Differentiable. The backward pass sums the gradients over the processes."""

    def total(x: Tensor) -> tuple[Tensor]:
        return (group.sum(x),)

    return linear(total, total, x)[0]


def sum_before(x: Tensor, group: Processes, after: bool = False) -> Tensor:
    r"""Returns the sum over the processes before this one, or after it. Differentiable."""

    def total(after: bool, x: Tensor) -> tuple[Tensor]:
        parts = group.stack(x)
        return ((parts[group.rank + 1 :] if after else parts[: group.rank]).sum(0),)

    return linear(partial(total, after), partial(total, not after), x)[0]


def all_rows(x: Tensor, group: Processes, sizes: tuple[int, ...]) -> Tensor:
    r"""Returns all rows of some columns, :obj:`[N, H, ceil(c / P)]`, given some rows of all columns, :obj:`[n, H, c]`, and the
    numbers of rows of all processes. Each process gets other columns. Columns are padded by zeros. Differentiable.
    """
    return linear(partial(_all_rows, group, sizes), partial(_some_rows, group, sizes, x.size(2)), x)[0]


def some_rows(x: Tensor, group: Processes, sizes: tuple[int, ...], columns: int) -> Tensor:
    r"""Returns some rows of all columns. This is the inverse of :func:`all_rows`. Differentiable."""
    return linear(partial(_some_rows, group, sizes, columns), partial(_all_rows, group, sizes), x)[0]


def _all_rows(group: Processes, sizes: tuple[int, ...], x: Tensor) -> tuple[Tensor]:
    width = -(-x.size(2) // group.size)
    padded = torch.nn.functional.pad(x, (0, width * group.size - x.size(2)))
    return (group.exchange(torch.cat(padded.split(width, dim=2)), [x.size(0)] * group.size, sizes),)


def _some_rows(group: Processes, sizes: tuple[int, ...], columns: int, x: Tensor) -> tuple[Tensor]:
    own = sizes[group.rank]
    blocks = group.exchange(x, sizes, [own] * group.size)
    return (torch.cat(blocks.split(own), dim=2)[..., :columns],)
