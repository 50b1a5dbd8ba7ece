"""Runs masks, layers and transforms on the pretended device, and prints as JSON what each of them did."""

import json
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import torch
from fuzz.strategies import random
from pretended_device import OnDevice, PretendedDevice, forward_on_device, on_device
from test_cuda import HEADS, LAYERS, MASKS, TRANSFORMS, MaskCase, attend, classify, looked_at, transformed
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Batch

from pyg_topomask import Graph
from pyg_topomask.masks import Mask
from pyg_topomask.ops import masked_linear_attention


class Attention(Module):
    """A product and linear attention under a mask."""

    def __init__(self, mask: Mask) -> None:
        super().__init__()
        self.mask = mask

    def forward(self, graph: Graph, q: Tensor, k: Tensor, v: Tensor) -> list[Tensor]:
        return [self.mask(graph).matmul(v), masked_linear_attention(q, k, v, self.mask(graph))]


def moved(data: Any) -> Any:
    return data.clone().apply(on_device)


def compared(expected: Any, actual: Any) -> str | None:
    """What is wrong with results of the device."""
    of_cpu, of_device = (_tensors(x) for x in (expected, actual))
    if len(of_cpu) != len(of_device) or not of_cpu:
        return f'{len(of_device)} results in place of {len(of_cpu)}'
    for one, other in zip(of_cpu, of_device, strict=True):
        if not isinstance(other, OnDevice):
            return 'a result on the CPU'
        if not torch.allclose(one.double(), other.inner.double(), rtol=1e-3, atol=1e-4, equal_nan=False):
            return f'other numbers, up to {float((one.double() - other.inner.double()).abs().max())}'
    return None


def _tensors(results: Any) -> Sequence[Tensor]:
    return [results] if isinstance(results, Tensor) else list(results)


def run(expected: Callable[[], Any], new: Callable[[], Any], prepared: Callable[[], Any] | None) -> dict[str, Any]:
    torch.manual_seed(0)
    wanted, device = expected(), PretendedDevice()
    torch.manual_seed(0)
    try:
        with device:
            wrong = compared(wanted, new())
            device.reads.clear()
            if prepared is not None:
                wrong = wrong or compared(wanted, prepared())
    except Exception:
        return {'wrong': traceback.format_exc(limit=-6), 'reads': []}
    return {'wrong': wrong, 'reads': sorted(set(device.reads)) if prepared is not None else []}


def of_mask(mask_case: MaskCase) -> dict[str, Any]:
    torch.manual_seed(0)
    data = mask_case.data()
    attention = Attention(mask_case.make(data.num_nodes)).eval()
    inputs = [random(seed, data.num_nodes, HEADS, 4).abs() for seed in (1, 2, 3)]
    on, graphs, given = forward_on_device(attention), list[Graph](), on_device(inputs)

    def new() -> Any:
        graphs.append(Graph.from_data(moved(data)))
        return on(graphs[0], *given)

    return run(lambda: attention(Graph.from_data(data), *inputs), new, lambda: on(graphs[0], *given))


def of_layer(name: str) -> dict[str, Any]:
    torch.manual_seed(0)
    layer_case = LAYERS[name]
    module, data = layer_case.make().eval(), layer_case.data()
    if layer_case.call is classify:
        data.x = random(1, 2 * 8 * 8)
    on, graphs, here = forward_on_device(module), list[Graph](), moved(data)

    def call(module: Any, data: Batch, graph: Any) -> Any:
        if layer_case.call is looked_at:
            return module(data.x, data.edge_index, graph=graph, return_attention_weights=True)[0]
        return module(data.x, data.edge_index, graph=graph)

    if layer_case.call not in (attend, looked_at):
        return run(lambda: layer_case.call(module, data), lambda: layer_case.call(_Called(module, on), here), None)

    def new() -> Any:
        graphs.append(Graph.from_data(here))
        return call(on, here, graphs[0])

    return run(lambda: call(module, data, Graph.from_data(data)), new, lambda: call(on, here, graphs[0]))


def _Called(module: Module, forward: Callable[..., Any]) -> Any:
    """A module of the same class whose forward pass is another function."""
    made = type(module).__new__(type(module))
    Module.__init__(made)
    made.forward = forward  # type: ignore[method-assign]
    return made


def of_transform(name: str) -> dict[str, Any]:
    def values(given: Any) -> list[Tensor]:
        return [value for value in TRANSFORMS[name](given).to_dict().values() if isinstance(value, Tensor)]

    data = transformed(name)
    here = on_device(data) if isinstance(data, Tensor) else moved(data)
    return run(lambda: values(data.clone()), lambda: values(here), None)


def self_test() -> dict[str, Any]:
    """What mixing does, and what is counted."""

    def error(function: Callable[[], object]) -> str | None:
        try:
            function()
        except RuntimeError as error:
            return str(error)
        return None

    x, device = on_device(torch.arange(3.0)), PretendedDevice()
    with device:
        mixing, numbers = error(lambda: x + torch.ones(3)), error(lambda: x + torch.tensor(1.0))
        x[x > 1], x.nonzero(), float(x[0]), x.tolist()
    return {'mixing': mixing, 'numbers': numbers, 'reads': sorted({read.partition(' in ')[0] for read in device.reads})}


def main() -> None:
    results: dict[str, Any] = {'self-test': self_test()}
    with torch.no_grad():
        results |= {f'mask {name}': of_mask(each) for name, each in MASKS.items()}
        results |= {f'layer {name}': of_layer(name) for name in LAYERS}
        results |= {f'transform {name}': of_transform(name) for name in TRANSFORMS}
    json.dump(results, sys.stdout)


if __name__ == '__main__':
    main()
