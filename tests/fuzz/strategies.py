"""Graphs and arguments of every kind, and what must hold of any call."""

import copy
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from graphs import random_edges, ring
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data

Result = TypeVar('Result')

CHANNELS = 4
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
KINDS = ('none', 'loops', 'one edge', 'ring', 'star', 'tree', 'random', 'parallel')
SYMMETRIC = ('none', 'loops', 'ring', 'star')
NORMALIZATIONS = st.sampled_from(['sym', 'rw', None])
SAMPLERS = st.sampled_from(['iid', 'antithetic', 'coupled', 'repelling', 'repelling_antithetic', 'repelling_coupled'])


def fuzz(examples: int) -> settings:
    """The same examples at each run; FUZZ_FACTOR=10 tries ten times as many."""
    return settings(
        max_examples=examples * int(os.environ.get('FUZZ_FACTOR', '1')),
        derandomize=True,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


def random(seed: int, *size: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def edges(kind: str, num_nodes: int, seed: int) -> Tensor:
    nodes = torch.arange(num_nodes)
    if num_nodes == 0 or kind == 'none':
        return torch.empty(2, 0, dtype=torch.long)
    if kind == 'loops':
        return torch.stack([nodes, nodes])
    if kind == 'one edge':  # from the first node to the last, both ways or, of one node, a loop twice
        return torch.tensor([[0, num_nodes - 1], [num_nodes - 1, 0]])
    if kind == 'ring':
        return ring(num_nodes)
    if kind == 'star':
        out = torch.stack([torch.zeros_like(nodes), nodes])[:, 1:]
        return torch.cat([out, out.flip(0)], dim=1)
    if kind == 'tree':  # towards the root
        return torch.stack([nodes, torch.div(nodes - 1, 2, rounding_mode='floor')])[:, 1:]
    drawn = random_edges(num_nodes, 2 * num_nodes, seed)
    return drawn if kind == 'random' else torch.cat([drawn, drawn[:, : num_nodes + 1]], dim=1)


def lay_out(tensor: Tensor, how: str) -> Tensor:
    """The same numbers at other places in memory."""
    if how == 'transposed':
        return tensor.t().contiguous().t()
    if how == 'strided':
        return tensor.repeat_interleave(2, dim=-1)[..., ::2]
    return tensor


def attributed(edge_index: Tensor, num_nodes: int, seed: int, dtype: torch.dtype = torch.float32) -> Data:
    """A graph with all the attributes that masks and layers read."""
    return Data(
        edge_index=edge_index,
        x=random(seed, num_nodes, CHANNELS, dtype=dtype),
        pos=random(seed + 1, num_nodes, 3, dtype=dtype),
        time=torch.randperm(num_nodes, generator=torch.Generator().manual_seed(seed)),
        valid=random(seed + 2, num_nodes) > 0,
        mask_left=random(seed + 3, num_nodes, 2).abs(),
        mask_right=random(seed + 4, num_nodes, 2).abs(),
        grid_shape=torch.tensor([[num_nodes]]),
        num_nodes=num_nodes,
    )


@st.composite
def graphs(
    draw: st.DrawFn,
    kinds: Sequence[str] = KINDS,
    sizes: st.SearchStrategy[int] | None = None,
    weighted: bool = True,
    dtype: torch.dtype = torch.float32,
) -> Data:
    """A graph of no node, of one, of a few, or a star of many."""
    kind, seed = draw(st.sampled_from(kinds)), draw(st.integers(0, 99))
    num_nodes = draw(st.integers(0, 8) if sizes is None else sizes)
    if kind == 'star' and sizes is None and draw(st.booleans()):
        num_nodes = 300
    data = attributed(edges(kind, num_nodes, seed), num_nodes, seed, dtype)
    if weighted and draw(st.booleans()):
        # By their ends, so that both directions of an edge weigh the same.
        weight = 0.3 + ((data.edge_index.sum(0) * 7 + data.edge_index.prod(0)) % 5).to(dtype)
        data.edge_weight = draw(st.sampled_from([1.0, 0.0, 1e-20, 1e3])) * weight
    data.edge_index = data.edge_index.to(draw(st.sampled_from([torch.int64, torch.int32])))
    how = draw(st.sampled_from(['contiguous', 'transposed', 'strided']))
    data.edge_index, data.x = lay_out(data.edge_index, how), lay_out(data.x, how)
    return data


@st.composite
def batches(draw: st.DrawFn, members: st.SearchStrategy[Data] | None = None) -> Batch:
    """A batch of graphs, of which any may be empty; either all are weighted or none is."""
    data_list = draw(st.lists(graphs() if members is None else members, min_size=1, max_size=4))
    if not all('edge_weight' in data for data in data_list):
        for data in data_list:
            data.edge_weight = None
    for data in data_list:
        data.edge_index = data.edge_index.long()
    return Batch.from_data_list(data_list)


def snapshot(data: Data) -> dict[str, Any]:
    return copy.deepcopy(data.to_dict())


def assert_unchanged(data: Data, before: Mapping[str, Any]) -> None:
    after = data.to_dict()
    assert list(after) == list(before)
    for name, value in before.items():
        if isinstance(value, Tensor):
            assert value.dtype == after[name].dtype
            assert torch.equal(value.nan_to_num(7.0), after[name].nan_to_num(7.0)), f'{name} was overwritten'
        else:
            assert value == after[name], f'{name} was overwritten'


def assert_finite(out: Tensor, *leaves: Tensor) -> None:
    """Of the output, and of the gradients of all that have one."""
    assert out.isfinite().all(), 'the output is not finite'
    if out.requires_grad:
        out.sum().backward()
    for leaf in leaves:
        assert leaf.grad is None or leaf.grad.isfinite().all(), 'a gradient is not finite'


def assert_same(actual: Tensor, expected: Tensor, tolerance: float = 1e-6) -> None:
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def attempt(call: Callable[[], Result], names: Iterable[str]) -> Result | None:
    """What the call returns, or None where it refuses what was given by these names by an error that says which."""
    try:
        return call()
    except ValueError as error:
        message = str(error)
    assert re.match(rf'({"|".join(map(re.escape, names))}):? ', message), f'names no argument: {message}'
    return None


# What constructors may be given, by the annotation of the parameter. Sizes stay small enough for the memory.
INTEGERS = (-1, 0, 1, 2, 3, 5, 24, 2.0, 2.5)
FLOATS = (-1.0, 0.0, 1e-30, 0.5, 1.0, 1.5, 1e30, float('nan'), float('inf'), -float('inf'))
BY_ANNOTATION: dict[str, Sequence[Any]] = {
    'int': INTEGERS,
    'float': FLOATS,
    'bool': (False, True),
    'str': ('nonsense', ''),
    'None': (None,),
    'Tensor': (torch.ones(()), torch.ones(2), torch.tensor([1.0, float('nan')]), torch.empty(0), torch.ones(2, 5)),
}
CHOICES: dict[str, Sequence[str]] = {
    'asymmetric': ('pairs',),
    'attention': ('linear', 'softmax'),
    'backend': ('dense', 'chunked', 'faiss', 'tree', 'torch'),
    'beyond': ('clip', 'zero'),
    'flow': ('source_to_target', 'target_to_source'),
    'extra_edges': ('input', 'expander', 'both'),
    'feature_map': ('relu', 'elu', 'square', 'identity', 'focused', 'favor', 'simplex', 'derf', 'fourier'),
    'head_agg': ('linear', 'none'),
    'initial': ('tanh:0.5', 'tanh:nan'),
    'kind': ('laplacian', 'adjacency', 'offset', 'distance', 'exp', 'random_walk_laplacian'),
    'local': ('grf', 'message_passing'),
    'method': ('rings', 'fft'),
    'modulation': ('heat', 'cosine:2', 'heat:nan', 'heat:x'),
    'coefficients': ('heat', 'random_walk', 'heat:1e300'),
    'normalization': ('sym', 'rw'),
    'orient': ('outward', 'up'),
    'parameterization': ('alpha', 'f'),
    'readout': ('sum', 'mean', 'max', 'mf', 'dm'),
    'resample': ('never', 'forward'),
    'route': ('features', 'edges', 'low_rank'),
    'sampler': ('iid', 'antithetic', 'repelling'),
    'similarity': ('dot', 'cosine', 'distance'),
    'transition': ('uniform', 'weight'),
    'walk_length': ('fixed:2', 'poisson:1.5', 'poisson:-1', 'fixed:x', 'fixed:'),
}


@st.composite
def arguments(draw: st.DrawFn, function: Callable[..., Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments given, of which up to three others are replaced by whatever their annotations let through."""
    options: dict[str, list[Any]] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        kinds = [kind.strip() for kind in str(parameter.annotation).split('|')]
        values = [value for kind in kinds for value in BY_ANNOTATION.get(kind, ())]
        if 'str' in kinds:
            values += CHOICES.get(name, ())
        if values:
            options[name] = values
    chosen = draw(st.lists(st.sampled_from(sorted(options)), max_size=3, unique=True)) if options else []
    return {**base, **{name: draw(st.sampled_from(options[name])) for name in chosen}}
