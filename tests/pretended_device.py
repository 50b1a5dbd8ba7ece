"""A device that computes on the CPU, but is another one: tensors of both do not mix, and reads by the host are counted.

torch takes it for a backend of its own in the whole process, so a process of its own should import this file.
"""

import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._library.custom_ops import OPDEFS
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

Value = TypeVar('Value')


class _Module(_DummyBackendModule):
    """What torch asks a backend for."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


_setup_privateuseone_for_python_backend('pretended', _Module())

CPU, DEVICE = torch.device('cpu'), torch.device('pretended', 0)
#: Operators whose result has a size or a value that the host waits for.
_READS = {
    'aten::_local_scalar_dense',
    'aten::_unique2',
    'aten::bincount',
    'aten::equal',
    'aten::masked_select',
    'aten::nonzero',
    'aten::unique_consecutive',
    'aten::unique_dim',
}
#: Operators between devices.
_MOVES = {'aten::copy_', 'aten::_to_copy', 'aten::to', 'aten::index', 'aten::index_put_'}


class OnDevice(Tensor):
    """A tensor of the device. The attribute ``inner`` is the tensor of the CPU that has its numbers."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> 'OnDevice':
        options: dict[str, Any] = {'layout': inner.layout}
        if inner.layout == torch.strided:
            options = {'strides': inner.stride(), 'storage_offset': inner.storage_offset()}
        made: OnDevice = Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=DEVICE, **options)
        made.inner = inner
        return made

    def __repr__(self, **kwargs: Any) -> str:
        return f'OnDevice({self.inner!r})'

    def tolist(self) -> Any:
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f'{func} on a tensor of the device, outside of PretendedDevice')


class _SparseTensors(TorchFunctionMode):
    """Constructors of sparse tensors, which call no operator that a mode sees."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.sparse_csr_tensor and any(isinstance(x, OnDevice) for x in args):
            return OnDevice(func(*tree_map(_inner, tuple(args)), **kwargs))
        return func(*args, **kwargs)


class PretendedDevice(TorchDispatchMode):
    """Within it, tensors of the device compute.

    Raises:
        RuntimeError: If an operator mixes tensors of the device with tensors of the CPU that have dimensions.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []
        self._lifts: list[bool] = []
        self._sparse: list[TorchFunctionMode] = []

    def __enter__(self) -> 'PretendedDevice':
        # Tensors of numbers are made on the CPU, and then moved by an operator that is seen here.
        self._lifts.append(torch._C._only_lift_cpu_tensors())
        torch._C._set_only_lift_cpu_tensors(True)
        self._sparse.append(_SparseTensors())
        self._sparse[-1].__enter__()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._sparse.pop().__exit__(*error)
        torch._C._set_only_lift_cpu_tensors(self._lifts.pop())

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        kwargs, name = dict(kwargs or {}), func._schema.name
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        ours = [x for x in given if isinstance(x, OnDevice)]
        if name.startswith('pyg_topomask::') and ours:
            with self:  # what it does on a device, not on the CPU
                return OPDEFS[name]._init_fn(*args, **kwargs)
        target = next((x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.device)), None)
        here = bool(ours) if target is None else target.type == DEVICE.type
        if name == 'aten::copy_':
            here = isinstance(args[0], OnDevice)
        if ours:
            self._watch(name, func, args, kwargs, given, here)
        inner_args, inner_kwargs = tree_map(_inner, (tuple(args), kwargs))
        result = func(*inner_args, **inner_kwargs)
        if func._schema.is_mutable and given:
            return _originals(result, given, here)
        return _wrapped(result, here)

    def _watch(
        self, name: str, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], given: Sequence[Tensor], here: bool
    ) -> None:
        foreign = [tuple(x.shape) for x in given if not isinstance(x, OnDevice) and x.dim() > 0]
        full = f'{name}.{func._overloadname}'.removesuffix('.default')
        if foreign and name not in _MOVES:
            raise RuntimeError(f'{full}: tensors of the device and of the CPU, of shapes {foreign}')
        selects = name in ('aten::index', 'aten::index_put_', 'aten::index_put')
        boolean = selects and any(x is not None and x.dtype in (torch.bool, torch.uint8) for x in args[1])
        sizes = name == 'aten::repeat_interleave' and kwargs.get('output_size') is None
        if name in _READS or boolean or sizes or not here:
            self.reads.append(f'{full} in {_caller()}')


def _caller() -> str:
    """The line of the package that called an operator."""
    frames = [frame for frame in traceback.extract_stack() if 'pyg_topomask' in frame.filename]
    return f'{Path(frames[-1].filename).name}, {frames[-1].name}' if frames else 'no file of the package'


def _inner(x: Any) -> Any:
    if isinstance(x, torch.device):
        return CPU
    return x.inner if isinstance(x, OnDevice) else x


def _wrapped(result: Any, here: bool) -> Any:
    return tree_map(lambda x: OnDevice(x) if here and isinstance(x, Tensor) else x, result)


def _originals(result: Any, given: Sequence[Tensor], here: bool) -> Any:
    """The arguments that an operator has written to, in place of their inner tensors."""
    outer = {id(_inner(x)): x for x in given}
    return tree_map(lambda x: outer[id(x)] if id(x) in outer else _wrapped(x, here), result)


def on_device(value: Value) -> Value:
    """The value with all tensors of the CPU moved to the device."""
    return tree_map(lambda x: OnDevice(x.detach().clone()) if isinstance(x, Tensor) else x, value)


def forward_on_device(module: torch.nn.Module) -> Callable[..., Any]:
    """The forward pass of a module whose parameters and buffers are on the device."""
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    moved = on_device(tensors)
    return lambda *args, **kwargs: torch.func.functional_call(module, moved, args, kwargs)
