r"""The edge weights of data, under the names that users give them."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.errors import warn
from pyg_topomask.utils.checks import INTEGERS


def edge_weights_of(data: Data) -> tuple[str, Any]:
    r"""Returns the name and the value of the edge weights: :obj:`edge_weight`; or else :obj:`weight`, the name of NetworkX; or
    else :obj:`edge_attr` of one floating point number for each edge, with a warning. The value is :obj:`None` without weights.
    """
    name = name_of_weights(data)
    if name == 'weight' and data.num_edges == data.num_nodes:
        warn(
            f'data: got weight of {data.num_edges} numbers for as many edges as nodes, which are used as edge weights. '
            'Name weights of edges edge_weight, and weights of nodes node_weight.'
        )
    if name == 'edge_attr':
        warn(
            'data: got edge_attr of one number for each edge, which is used as edge weights. Name weights edge_weight, '
            'and give features of edges the shape [E, 1].'
        )
    return name, attribute_of(data, name)


def name_of_weights(data: Data) -> str:
    r"""Returns the name of the attribute that has the edge weights, :obj:`"edge_weight"` if there are none."""
    if attribute_of(data, 'edge_index') is not None and attribute_of(data, 'edge_weight') is None:
        if _is_of_edges(data, 'weight'):
            return 'weight'
        if _is_of_edges(data, 'edge_attr') and data['edge_attr'].is_floating_point():
            return 'edge_attr'
    return 'edge_weight'


def attribute_of(data: Data, name: str) -> Any:
    r"""Returns an attribute, or :obj:`None` if the data lacks it."""
    return data.stores[0].get(name)  # data lists all its attributes to find one


def _is_of_edges(data: Data, name: str) -> bool:
    value = attribute_of(data, name)
    numbers = isinstance(value, Tensor) and (value.is_floating_point() or value.dtype in INTEGERS)
    return numbers and value.shape == (data.num_edges,)
