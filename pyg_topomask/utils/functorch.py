r"""Functions that work under the transforms of ``torch.func`` though their code reads numbers or runs machine code."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import torch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.autograd import forward_ad

from pyg_topomask.errors import ArgumentError

P = ParamSpec('P')
T = TypeVar('T')


def is_transforming() -> bool:
    r"""Returns whether a transform of ``torch.func`` is active, under which tensors may have no numbers."""
    return not torch.compiler.is_compiling() and bool(torch._C._are_functorch_transforms_active())


def readable(*tensors: Tensor) -> bool:
    r"""Returns whether a look at the numbers of tensors is cheap: a GPU would have to be waited for, and tracing breaks."""
    return all(x.device.type == 'cpu' for x in tensors) and not (torch.compiler.is_compiling() or is_transforming())


def is_exporting() -> bool:
    r"""Returns whether ``torch.export`` traces, so that numbers of tensors are unknown, and sizes may be symbols."""
    return torch.compiler.is_compiling() and not torch.compiler.is_dynamo_compiling()


def int_or_symint(x: Tensor) -> int:
    r"""Returns the number of a tensor of integers, which is a SymInt while ``torch.export`` traces."""
    return x.item()  # type: ignore[return-value]


def is_transformed(x: Any) -> bool:
    r"""Returns whether a value is a tensor that a transform of ``torch.func`` differentiates or batches."""
    return isinstance(x, Tensor) and is_transforming() and bool(torch._C._functorch.is_functorch_wrapped_tensor(x))


def unwrapped(x: Tensor) -> Tensor:
    r"""Returns the plain tensor inside any wrappers of ``torch.func``, detached. Under ``vmap``, it has the batch dimension."""
    if not is_transforming():
        return x.detach()
    with temporarily_clear_interpreter_stack():
        while torch._C._functorch.is_functorch_wrapped_tensor(x):
            x = torch._C._functorch.get_unwrapped(x)
        return x.detach()


# The keys that the dispatcher leaves out within an operator if a mode watches it.
_KEYS = [
    getattr(torch._C.DispatchKey, f'FuncTorch{name}')
    for name in ('DynamicLayerFrontMode', 'DynamicLayerBackMode', 'GradWrapper')
]


@contextmanager
def transforms_in_operator() -> Iterator[None]:
    r"""Within a custom operator, lets ``torch.func`` work under modes too, as FlopCounterMode."""
    if not torch._C._dispatch_tls_is_dispatch_key_excluded(_KEYS[0]):
        yield
        return
    excluded = torch._C._dispatch_tls_local_exclude_set()
    for key in _KEYS:
        excluded = excluded.remove(key)
    with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), excluded):
        yield


def outside_transforms(function: Callable[P, T]) -> Callable[P, T]:
    r"""Runs a function outside the active transforms of ``torch.func``, so that the tensors it creates have concrete values and
    can be kept for later calls.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if not is_transforming():
            return function(*args, **kwargs)
        with temporarily_clear_interpreter_stack():
            return function(*args, **kwargs)

    return call


@outside_transforms
def kept(table: dict[Hashable, Any], key: Hashable, make: Callable[[], T]) -> T:
    r"""Returns an entry of a table, which is made at the first call, also for training after a first call in inference mode."""
    if key not in table:
        with torch.inference_mode(False):
            table[key] = make()
    return cast(T, table[key])


def check_not_transformed(**given: Any) -> None:
    r"""Raises a :class:`ValueError` for a tensor that ``torch.func`` differentiates or batches."""
    for name, value in given.items():
        if is_transformed(value):
            raise ArgumentError(name, 'a tensor that torch.func differentiates or batches', 'plain tensors')


class LoopedFunction(torch.autograd.Function):
    r"""A function of plain tensors, which ``vmap`` calls once for each element of its batch. Its backward pass ignores
    autocast.
    """

    def __init_subclass__(cls) -> None:
        backward = cls.backward

        def without_autocast(ctx: Any, *grads: Tensor) -> Any:
            with torch.autocast(grads[0].device.type, enabled=False):
                return backward(ctx, *grads)

        cls.backward = staticmethod(without_autocast)  # type: ignore[method-assign, assignment]

    @classmethod
    def vmap(cls, info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, Any]:
        return _looped(cls.apply, info.batch_size, in_dims, inputs)


def _looped(
    function: Callable[..., Any], batch_size: int, in_dims: Sequence[int | None], inputs: Sequence[Any]
) -> tuple[Any, Any]:
    r"""Returns the results for all elements of a batch, and their batch dimensions."""
    results = []
    for place in range(batch_size):
        pairs = zip(inputs, in_dims, strict=True)
        results.append(function(*(x if dim is None else x.select(dim, place) for x, dim in pairs)))
    if isinstance(results[0], Tensor):
        return torch.stack(results), 0
    stacked = tuple(torch.stack(each) for each in zip(*results, strict=True))
    return stacked, (0,) * len(stacked)


def transformable(
    function: Callable[..., Any],
    setup_context: Callable[[Any, tuple[Any, ...], Any], None] | None = None,
    backward: Callable[..., tuple[Any, ...]] | None = None,
) -> Callable[..., Any]:
    r"""Returns the function, which under ``torch.func`` sees plain tensors: ``grad`` uses the given formula, as in
    :class:`torch.autograd.Function`, and ``vmap`` calls the function once for each element of its batch. It takes tensors,
    sequences of tensors and plain values, and returns a tensor or several. Without :obj:`backward`, it has no gradients.
    """

    class Call(torch.autograd.Function):
        @staticmethod
        def forward(lengths: list[int | None], *flat: Any) -> Any:
            results = function(*_nested(lengths, flat))
            return results if isinstance(results, Tensor) else tuple(results)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            lengths, *flat = inputs
            ctx.lengths = lengths
            if setup_context is None:
                ctx.mark_non_differentiable(*((output,) if isinstance(output, Tensor) else output))
            else:
                setup_context(ctx, _nested(lengths, flat), output)

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
            results = backward(ctx, *grads) if backward is not None else (None,) * len(ctx.lengths)
            pairs = zip(results, ctx.lengths, strict=True)
            nested = [[None] * length if grad is None and length is not None else grad for grad, length in pairs]
            return None, *_flat(nested)[1]

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            raise NotImplementedError(
                f'{function} has no forward-mode derivative (torch.func.jvp, jacfwd, hessian): use grad, vjp, jacrev'
            )

        @staticmethod
        def vmap(info: Any, in_dims: tuple[Any, ...], lengths: list[int | None], *flat: Any) -> tuple[Any, Any]:
            return _looped(lambda *each: call(*_nested(lengths, each)), info.batch_size, in_dims[1:], flat)

    def call(*arguments: Any) -> Any:
        # In forward mode, an operator without such a derivative would lose it silently.
        if not is_transforming() and (torch.compiler.is_compiling() or forward_ad._current_level < 0):
            return function(*arguments)
        lengths, flat = _flat(arguments)
        return Call.apply(lengths, *flat)

    return call


def _flat(arguments: Sequence[Any]) -> tuple[list[int | None], list[Any]]:
    r"""Returns the length of each argument that is a sequence, and all arguments one after the other."""
    lengths, flat = list[int | None](), list[Any]()
    for argument in arguments:
        several = isinstance(argument, (list, tuple))
        lengths.append(len(argument) if several else None)
        flat.extend(argument if several else [argument])
    return lengths, flat


def _nested(lengths: Sequence[int | None], flat: Sequence[Any]) -> tuple[Any, ...]:
    left = iter(flat)
    return tuple(next(left) if length is None else [next(left) for _ in range(length)] for length in lengths)


def keep_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    r"""The :obj:`setup_context` of a :class:`torch.autograd.Function` that keeps its inputs, tensors or :obj:`None`."""
    ctx.save_for_backward(*inputs)


def gradients(
    function: Callable[..., Tensor | tuple[Tensor, ...]], grads: Sequence[Tensor], *inputs: Tensor
) -> tuple[Tensor, ...]:
    r"""Returns the gradients of the inputs of a function, which autograd can differentiate again, from those of its outputs."""

    def total(*inputs: Tensor) -> Tensor:
        outputs = function(*inputs)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        return torch.stack([(x * grad).sum() for x, grad in zip(outputs, grads, strict=True)]).sum()

    # Not torch.func.vjp, which computes gradients after its level has ended: a backward pass within another one then fails.
    return torch.func.grad(total, argnums=tuple(range(len(inputs))))(*inputs)
