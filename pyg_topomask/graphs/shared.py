r"""The graph of tensors, or of data, that layers receive one after the other."""

from __future__ import annotations

from typing import Any
from weakref import ref

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.typing import Adj

from pyg_topomask.graphs.graph import Graph, forget_oldest
from pyg_topomask.graphs.stored import transforms_of
from pyg_topomask.utils.functorch import is_transforming

# By the number of nodes and the ids of tensors: what a layer received, and the graph. The graph holds aliases of the tensors,
# which do not keep them alive. The last one used is last.
_GRAPHS: dict[tuple[int, ...], tuple[_Received, Graph]] = {}


def shared_graph(edge_index: Adj, num_nodes: int, edge_weight: Tensor | None = None, batch: Tensor | None = None) -> Graph:
    r"""Returns the graph of the arguments of a PyG layer. Layers that receive the same tensors share it, until one of the
    tensors is deleted or changed in place, or until :obj:`MAX_GRAPHS` other graphs have been used.

    Learned weights give a new graph at every call, which shares what masks prepare from the edges alone. So do tensors that are
    traced, sparse, or created in inference mode, without sharing. Masks that are resampled draw states of their own for every
    layer.
    """
    traced, given = is_transforming() or torch.compiler.is_compiling(), (edge_index, edge_weight, batch)
    if not traced and isinstance(edge_weight, Tensor) and edge_weight.requires_grad:
        return shared_graph(edge_index, num_nodes, None, batch).with_weights(edge_weight)
    if traced or not all(map(_is_watched, given)):
        return Graph.from_tensors(edge_index, num_nodes, edge_weight, batch)
    received = _Received(num_nodes, *given)
    earlier, graph = _GRAPHS.pop(received.key, (None, None))
    if graph is None or not received.equals(earlier):
        with torch.inference_mode(False):  # the graph may be trained on later
            edges, weight, of_nodes = (None if tensor is None else tensor.detach() for tensor in given)
            graph = Graph.from_tensors(edges, num_nodes, weight, of_nodes)
            graph.forward_pass.of_one_call = True
            graph.stored_elsewhere = transforms_of(edge_index)
    _GRAPHS[received.key] = received, graph
    forget_oldest(_GRAPHS)
    return graph


def graph_of_data(data: Data) -> Graph:
    r"""Returns the graph of data. Layers that receive the same object share it, as with :func:`shared_graph`, until what the
    graph or a mask has read from it is replaced or changed in place.
    """
    if is_transforming() or torch.compiler.is_compiling():
        return Graph.from_data(data)
    with torch.inference_mode(False):  # the graph may be trained on later
        graph = Graph.shared(data)
        if not all(_is_watched(value) for value, _ in graph.read.values()):
            return Graph.from_data(data)
    graph.forward_pass.of_one_call = True
    return graph


def _is_watched(tensor: Any) -> bool:
    r"""Returns whether changes in place would show."""
    if tensor is None:
        return True
    plain = type(tensor) is Tensor and tensor.layout == torch.strided
    return plain and not tensor.is_inference() and not tensor.requires_grad


class _Received:
    r"""The arguments of a layer as they are now."""

    def __init__(self, num_nodes: int, *tensors: Tensor | None) -> None:
        self.key = num_nodes, *map(id, tensors)
        self.tensors = [None if tensor is None else ref(tensor, self._forget) for tensor in tensors]
        self.state = num_nodes, torch.get_default_dtype(), *map(_state_of, tensors)

    def _forget(self, _: object) -> None:
        if _GRAPHS and _GRAPHS.get(self.key, (None,))[0] is self:  # it is None when Python exits
            _GRAPHS.pop(self.key, None)

    def equals(self, other: _Received | None) -> bool:
        r"""Returns whether others are the same tensors, unchanged."""
        if other is None or self.state != other.state:
            return False
        pairs = zip(self.tensors, other.tensors, strict=True)
        return all(one is two or (one is not None and two is not None and one() is two()) for one, two in pairs)


def _state_of(tensor: Tensor | None) -> Any:
    return None if tensor is None else (tensor._version, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
