r"""What attention layers are given: sizes, features, a graph and a mask, and their linear layers."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import FrameType
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.nn import GPSConv
from torch_geometric.nn.dense import Linear as LazyLinear
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse

from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.shared import graph_of_data, shared_graph
from pyg_topomask.masks import Mask
from pyg_topomask.utils.checks import MAX_SIZE, assert_on_device, check_size, is_whole
from pyg_topomask.utils.options import instance_of

T = TypeVar('T')


def resolve_channels(channels: int, out_channels: int | None, heads: int, divide: bool = True) -> int:
    r"""Returns the number of output channels, by default :obj:`channels`, and checks both. If they :obj:`divide`, the heads
    divide the output channels among them.
    """
    given, out_channels = out_channels, channels if out_channels is None else out_channels
    if channels == -1 and out_channels == -1:
        raise ArgumentError('out_channels', 'None for channels=-1', 'a number of output channels')
    check_input_channels(channels, 'channels')
    check_size(out_channels=out_channels, heads=heads)
    if divide:
        remedy = f'the second argument is the number of heads, and out_channels={heads} is the size of the output'
        check_heads(heads, out_channels, remedy if heads > out_channels else '')
        if given is None and heads == out_channels >= 16:  # as in GCNConv(16, 16)
            warn(f'heads: got {heads} for {out_channels} channels, one for each head; {remedy}')
    return out_channels


def check_input_channels(channels: int, argument: str = 'in_channels') -> None:
    r"""Raises an error unless a number of channels is from 1, or -1 for a lazy one."""
    if not is_whole(channels, -1) or channels == 0 or channels > MAX_SIZE:
        accepted = f'whole numbers from 1 to {MAX_SIZE}, and -1 for those of the first input'
        raise ArgumentError(argument, repr(channels), accepted)


def check_heads(heads: int, channels: int, remedy: str = '') -> None:
    r"""Raises an error unless the number of heads divides the channels."""
    check_size(heads=heads)
    if channels % heads != 0:
        divisors = ', '.join(str(number) for number in range(1, channels + 1) if channels % number == 0)
        raise ArgumentError('heads', f'{heads} for {channels} channels', f'divisors of the channels: {divisors}', remedy)


def check_dtype(dtype: torch.dtype, **given: Tensor) -> None:
    r"""Raises an error unless the inputs have the data type of the parameters, or under autocast any floating point type."""
    for name, value in given.items():
        if not _fits(value, dtype):
            raise ArgumentError(name, value.dtype, f'{dtype}, the data type of the parameters')


def check_features(x: Tensor, channels: int, dtype: torch.dtype) -> None:
    r"""Raises an error unless node features have :obj:`channels` channels (:obj:`-1` for any number) and the data type of the
    parameters, see :func:`check_dtype`.
    """
    if isinstance(x, (tuple, list)):
        remedy = 'HeteroConv takes attentions for edges within a type, and HeteroData.to_homogeneous() makes all types one'
        raise ArgumentError('x', 'a pair, for edges between two types of nodes', 'the features of nodes of one type', remedy)
    if not isinstance(x, Tensor):
        raise ArgumentError('x', type(x).__name__, 'the features of the nodes, a tensor [N, channels]')
    if x.dim() != 2 or channels not in (-1, x.size(1)) or not _fits(x, dtype):
        size = 'channels' if channels == -1 else channels
        accepted = f'[N, {size}] of {dtype}, the data type of the parameters'
        raise ArgumentError('x', f'shape {tuple(x.shape)} of {x.dtype}', accepted)


def _fits(x: Tensor, dtype: torch.dtype) -> bool:
    return x.dtype == dtype or (x.is_floating_point() and torch.is_autocast_enabled(x.device.type))


class ReadsGraph:
    r"""Mixin of attentions: what they read of a graph, which is what their mask reads if they have one."""

    #: Whether the layer has warned that edge weights have no effect.
    told_of_weights: bool = False

    def _of_mask(self, name: str, without: Any = True) -> Any:
        return getattr(getattr(self, 'mask', None), name, without)

    @property
    def reads_edges(self) -> bool:
        r"""Whether edges change the attention. If not, the layer needs none."""
        return bool(self._of_mask('direction', '') != 'unused')

    @property
    def weighted(self) -> bool:
        r"""Whether edge weights change the attention."""
        return bool(self._of_mask('weighted'))

    @property
    def learns_weights(self) -> bool:
        r"""Whether gradients reach edge weights that require them."""
        return bool(self._of_mask('learns_weights', self.weighted))

    @property
    def local(self) -> bool:
        r"""Whether nodes attend only to nodes that edges join to them."""
        return bool(self._of_mask('local'))


def graph_for(
    layer: ReadsGraph,
    x: Tensor,
    edge_index: Adj | None = None,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    graph: Graph | Data | None = None,
) -> Graph:
    r"""Returns the graph of an attention's forward pass, see :func:`as_graph`. An attention that reads no edges needs none.
    Warns once of edge weights without effect. Raises an error if PyG's GPS layer leaves out the batch vector of several graphs.
    """
    if graph is None:
        if edge_index is None and not layer.reads_edges:
            edge_index = torch.empty(2, 0, dtype=torch.long) if torch.compiler.is_compiling() else no_edges(x.device)
        if edge_index is None:
            raise ArgumentError('edge_index', None, 'the edges, [2, E], or data as graph=')
        if batch is None and not layer.local and not torch.compiler.is_compiling():
            check_batch_of_gps_conv(x)
    graph = as_graph(x, edge_index, edge_weight, batch, graph)
    if graph.lacks_edges and layer.reads_edges:
        graph.lacks_edges = False
        warn(f'graph: got data without edge_index for {type(layer).__name__}, in which every node is alone then.')
    ignored = graph.edge_weight is not None and not (layer.told_of_weights or layer.weighted or torch.compiler.is_compiling())
    if ignored and graph.is_weighted:
        layer.told_of_weights = True
        mask = getattr(layer, 'mask', layer)
        argument, name = getattr(mask, 'reads_weights_by', ''), type(mask).__name__
        remedy = f' {name}({argument}) reads them.' if argument else ''
        warn(f'edge_weight: got weights, which have no effect in {type(layer).__name__}: {name} reads none.{remedy}')
    return graph


@cache
@torch.inference_mode(False)
def no_edges(device: torch.device) -> Tensor:
    r"""Returns no edges. Layers share the graph of one tensor."""
    return torch.empty(2, 0, dtype=torch.long, device=device)


# The frames between an attention and the GPS layer that calls it as its local layer, or calls a module around it.
_FRAMES = 64


def check_batch_of_gps_conv(x: Tensor) -> None:
    r"""Raises an error if PyG's GPS layer calls an attention as its local layer, which it gives no batch vector, for a batch of
    several graphs.
    """
    frame: FrameType | None = sys._getframe(2)
    for _ in range(_FRAMES):
        if frame is None or frame.f_code is GPSConv.forward.__code__:
            break
        frame = frame.f_back
    if frame is None or frame.f_code is not GPSConv.forward.__code__:
        return
    batch = frame.f_locals['batch']
    if batch is None or batch.size(0) != x.size(0) or batch.size(0) == 0:
        return
    if not assert_on_device(
        batch[-1] == batch[0], 'batch: GPSConv of PyG gives its conv none, so nodes attend to other graphs'
    ):
        given = 'None for several graphs: GPSConv of PyG gives its conv no batch vector, so nodes would attend to other graphs'
        accepted = 'attention as TopoGPSConv(channels, conv=None, attn=attention)'
        remedy = 'or give the graphs to GPSConv as well: gps(x, edge_index, batch, graph=Graph.from_data(data))'
        raise ArgumentError('batch', given, accepted, remedy)


def as_graph(
    x: Tensor,
    edge_index: Adj | None = None,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    graph: Graph | Data | None = None,
) -> Graph:
    r"""Returns the graph of a layer's forward pass. If :obj:`graph` is given, checks that it fits the node features, and that
    each other argument agrees with it or is :obj:`None`. Layers that receive the same data or the same tensors share a graph.
    """
    if graph is None:
        return shared_graph(edge_index, x.size(0), edge_weight, batch)
    graph = graph if isinstance(graph, Graph) else graph_of_data(graph)
    accepted = 'graph=Graph.from_tensors(edge_index, num_nodes, edge_weight, batch)'
    if batch is not None and batch is not graph.batch and not _equal(batch, graph.segments.index):
        given = f'another assignment of nodes to graphs than that of graph, which has {graph.num_graphs} graphs'
        raise ArgumentError('batch', given, f'that of graph, or {accepted}')
    # Tensors of the graph's data are the same objects. torch.compile compares only identities.
    if not torch.compiler.is_compiling():
        if edge_index is not None and edge_index is not graph.edge_index:
            sparse = is_sparse(edge_index)
            if not (graph.has_edges_of(edge_index) if sparse else _equal(edge_index, graph.edge_index)):
                other = 'other edges or weights' if sparse else 'other edges'
                given = f'{other} than those of graph, which has {graph.num_edges}'
                raise ArgumentError('edge_index', given, 'these, and None')
        if edge_weight is not None and edge_weight is not graph.edge_weight:
            if not _equal(edge_weight, graph.weight):
                raise ArgumentError('edge_weight', 'other weights than those of graph', f'these, and None, or {accepted}')
            if edge_weight.requires_grad:
                given = 'a learned tensor that is not that of graph'
                raise ArgumentError('edge_weight', given, f'these, and None, or {accepted}')
    if x.size(0) != graph.segments.num_nodes:
        raise ArgumentError('x', f'shape {tuple(x.shape)}', f'[{graph.num_nodes}, channels]')
    return graph


def _equal(first: Any, second: Tensor) -> bool:
    return isinstance(first, Tensor) and first.shape == second.shape and bool((first == second).all())


def compiled_if_prepared(
    function: Callable[..., T], graph: Graph | Data | None = None, mask: Mask | None = None
) -> Callable[..., T]:
    r"""Returns the function. Under ``torch.compile``, it runs eagerly if it checks a new graph or prepares the mask, so that it
    breaks what is compiled only once.
    """
    if not torch.compiler.is_dynamo_compiling():
        return function
    held = isinstance(graph, Graph) and (mask is None or graph.has_state(mask))
    return function if held else partial(_eagerly, function)


@torch.compiler.disable
def _eagerly(function: Callable[..., T], *arguments: Any) -> T:
    return function(*arguments)


def linear(in_channels: int, out_channels: int, bias: bool = True) -> Module:
    r"""Returns a :class:`torch.nn.Linear`, which libraries of adapters (LoRA) and of quantization look for, or PyG's layer for
    :obj:`-1` input channels, which the first call infers.
    """
    return (LazyLinear if in_channels == -1 else torch.nn.Linear)(in_channels, out_channels, bias)


def input_of(lin: Module) -> tuple[int, torch.dtype]:
    r"""Returns the input channels of a linear layer, :obj:`-1` before they are inferred, and the data type of its input. An
    adapter or a quantized layer may stand in its place.
    """
    channels = lin.in_channels if isinstance(lin, LazyLinear) else lin.in_features
    # A quantized layer has a method of this name, and takes float32.
    weight = lin.weight
    return int(channels), weight.dtype if isinstance(weight, Tensor) else torch.float32  # type: ignore[arg-type]


def flow_under(mask: Any) -> str:
    r"""Returns the direction in which an attention under a mask follows edges, PyG's own if the mask follows none."""
    return (mask.flow_of_attention if isinstance(mask, Mask) else None) or 'source_to_target'


def fit_mask(mask: Mask, heads: int) -> None:
    r"""Gives a mask that was made without heads those of the layer. Raises an error unless the mask then has :obj:`heads`
    heads, or one head that all share.
    """
    if not isinstance(mask, Mask):
        raise ArgumentError('mask', repr(mask), f'a Mask, such as GRFMask(heads={heads})', instance_of(mask))
    if mask.heads in (1, heads):
        mask.take_heads(heads)  # or its parts, of which one may have as many heads
    if mask.heads not in (1, heads):
        raise ArgumentError('mask', f'a mask of {mask.heads} heads for heads={heads}', f'1 and {heads}')


def with_mask(mask: Callable[..., Mask], heads: int, options: Mapping[str, Any], **decided: Any) -> dict[str, Any]:
    r"""Returns the options of a layer, with a mask created from those that are its own, and from those that the layer has
    :obj:`decided`.
    """
    names = inspect.signature(mask).parameters
    of_mask = {name: options[name] for name in options if name in names}
    of_layer = {name: options[name] for name in options if name not in names}
    return {'mask': mask(heads=heads, **decided, **of_mask), **of_layer}
