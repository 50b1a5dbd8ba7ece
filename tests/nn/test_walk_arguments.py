import inspect

import pytest
import torch

from pyg_topomask.masks import GRFMask, Mask, RWGNKMask
from pyg_topomask.nn import AsymmetricGRFAttention, GRFAttention, GRFSoftmaxAttention, RWGNKAttention

CHANNELS, HEADS = 8, 2


def state_of(mask: Mask) -> tuple[dict[str, object], dict[str, object]]:
    """Settings and parameters of a mask, to compare."""
    settings = {name: value for name, value in vars(mask).items() if not name.startswith('_')}
    settings = {name: value.tolist() if isinstance(value, torch.Tensor) else value for name, value in settings.items()}
    return settings, {name: (parameter.requires_grad, parameter.tolist()) for name, parameter in mask.named_parameters()}


@pytest.mark.parametrize(
    ('layer', 'mask', 'decided'),
    [
        (GRFAttention, GRFMask, set()),
        (AsymmetricGRFAttention, GRFMask, {'independent_ensembles', 'asymmetric', 'stitch'}),  # its keys never walk
        (GRFSoftmaxAttention, GRFMask, {'positive', 'stitch'}),  # softmax needs positive entries
        (RWGNKAttention, RWGNKMask, set()),
    ],
)
def test_layers_under_walks_take_every_argument_of_their_mask(
    layer: type[torch.nn.Module], mask: type[Mask], decided: set[str]
) -> None:
    layer_arguments, mask_arguments = (inspect.signature(kind).parameters for kind in (layer, mask))
    shared = [name for name in mask_arguments if name not in decided]
    assert [name for name in layer_arguments if name in mask_arguments] == shared
    assert {name: layer_arguments[name].default for name in shared} == {name: mask_arguments[name].default for name in shared}
    assert decided.isdisjoint(layer_arguments)


WALK_ARGUMENTS = {
    'num_walks': 6,
    'p_halt': 0.2,
    'max_walk_length': 5,
    'independent_ensembles': True,
    'asymmetric': 'pairs',
    'sampler': 'antithetic',
    'transition': 'weight',
    'resample': 'forward',
    'seed': 4,
    'walk_length': 'poisson:1.5',
    'flow': 'target_to_source',
}
GRF_ARGUMENTS = WALK_ARGUMENTS | {
    'modulation': 'heat',
    'normalization': 'rw',
    'importance': False,
    'share_modulation': True,
    'positive': False,
}
RWGNK_ARGUMENTS = WALK_ARGUMENTS | {'lam': 0.5, 'alpha': 0.25, 'learnable': False}


@pytest.mark.parametrize(
    ('layer', 'mask', 'arguments', 'decided'),
    [
        (GRFAttention, GRFMask, GRF_ARGUMENTS, {}),
        (AsymmetricGRFAttention, GRFMask, GRF_ARGUMENTS, {'asymmetric': True}),
        (GRFSoftmaxAttention, GRFMask, GRF_ARGUMENTS, {'positive': True}),
        (RWGNKAttention, RWGNKMask, RWGNK_ARGUMENTS, {}),
    ],
)
def test_arguments_of_walks_reach_the_mask(
    layer: type[torch.nn.Module], mask: type[Mask], arguments: dict[str, object], decided: dict[str, object]
) -> None:
    for name, value in arguments.items():
        if name in inspect.signature(layer).parameters:
            given = layer(CHANNELS, HEADS, **{name: value}).mask
            expected = mask(HEADS, **{name: value} | decided)
            assert state_of(given) == state_of(expected), name
            assert state_of(given) != state_of(mask(HEADS, **decided)), name
