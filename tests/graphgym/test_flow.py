"""The direction of attention as an option of a YAML."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import network_dict

from pyg_topomask.masks import Mask
from pyg_topomask.nn import KMIPAttention

DIRECTED = [
    *('GRF', 'AsymmetricGRF', 'GRFSoftmax', 'RWGNK', 'SinDegree', 'KMIP'),
    *('Expander', 'PowerSeries', 'HeatKernel', 'Hop', 'Adjacency'),
]


def flows() -> set[str]:
    """Of the masks and the attention of the configured network."""
    cfg.share.dim_in, cfg.share.dim_edge = 3, 2
    model = network_dict['TopoGPSModel'](3, 10)
    return {module.flow for module in model.modules() if isinstance(module, Mask | KMIPAttention) and hasattr(module, 'flow')}


@pytest.mark.parametrize('name', DIRECTED)
def test_attentions_take_it_by_name(configure: Callable[[str], None], name: str) -> None:
    configure(f'gt.layer_type GINE+{name} topomask.transforms []')
    assert flows() == {'source_to_target'}
    configure(f'gt.layer_type GINE+{name} topomask.transforms [] topomask.{name}.flow target_to_source')
    assert flows() == {'target_to_source'}
    configure(f'gt.layer_type GINE+{name} topomask.transforms [] topomask.{name}.flow out')
    with pytest.raises(ValueError, match=rf"^topomask\.{name}\.flow: got 'out'; accepted: source_to_target, target_to_source"):
        flows()


def test_only_attentions_with_a_direction_have_it(configure: Callable[[str], None]) -> None:
    configure('')
    assert {name for name, options in cfg.topomask.items() if hasattr(options, 'keys') and 'flow' in options} == {*DIRECTED}


def test_composed_masks_take_it(configure: Callable[..., None]) -> None:
    configure('gt.layer_type GINE+Masked topomask.transforms [] topomask.mask {"GRF":{"flow":"target_to_source"}}')
    assert flows() == {'target_to_source'}
