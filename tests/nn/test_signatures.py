"""The keyword arguments of classes that hand them on: for type checkers and editors, and when one is wrong."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from pyg_topomask import masks, nn, transforms
from pyg_topomask.masks import options as of_masks
from pyg_topomask.masks import options as of_walks
from pyg_topomask.nn import models
from pyg_topomask.nn import options as of_layers

#: The class, the type of its options, and its own arguments.
CLASSES: list[tuple[type, type, set[str]]] = [
    (nn.GRFAttention, of_layers.GRFAttentionOptions, {'channels', 'heads'}),
    (nn.HopAttention, of_layers.HopAttentionOptions, {'channels', 'heads'}),
    (nn.RWGNKAttention, of_layers.RWGNKAttentionOptions, {'channels', 'heads', 'dynamic'}),
    (nn.SinDegreeAttention, of_layers.SinDegreeAttentionOptions, {'channels', 'heads', 'feature_map'}),
    (nn.ToeplitzAttention, of_layers.ToeplitzAttentionOptions, {'channels', 'heads', 'shape_dims'}),
    (nn.GRFSoftmaxAttention, of_layers.GRFSoftmaxAttentionOptions, {'channels', 'heads'}),
    (nn.AsymmetricGRFAttention, of_layers.AsymmetricGRFAttentionOptions, {'channels', 'heads', 'feature_map'}),
]
OWN = {
    masks.GRFMask: of_walks.FeatureWalkOptions,
    masks.RWGNKMask: of_walks.KernelWalkOptions,
    models.GKAT: of_masks.UnseededRWGNKOptions,
    transforms.AddGraphRandomFeatures: of_walks.FeatureWalkOptions,
    transforms.AddRandomWalkKernel: of_walks.KernelWalkOptions,
}


def annotations(kind: type) -> dict[str, str]:
    """As written in the classes, of which TypedDict makes references."""
    return {
        name: getattr(hint, '__forward_arg__', hint)
        for base in kind.__mro__
        for name, hint in vars(base).get('__annotations__', {}).items()
    }


@pytest.mark.parametrize(('kind', 'options', 'own'), CLASSES)
def test_the_type_of_the_options_is_the_signature(kind: type, options: type, own: set[str]) -> None:
    signature = inspect.signature(kind).parameters
    assert own <= signature.keys()
    assert annotations(options) == {name: each.annotation for name, each in signature.items() if name not in own}


@pytest.mark.parametrize(('kind', 'options'), OWN.items())
def test_options_beside_own_arguments_are_those_of_the_signature(kind: type, options: type) -> None:
    passed_on = {
        name: each.annotation for name, each in inspect.signature(kind).parameters.items() if each.kind is each.KEYWORD_ONLY
    }
    assert annotations(options) == passed_on


def test_a_type_checker_knows_the_options(tmp_path: Path) -> None:
    script = tmp_path / 'script.py'
    script.write_text(
        'from pyg_topomask.masks import GRFMask\n'
        'from pyg_topomask.nn import HopAttention\n'
        'HopAttention(16, 4, max_hop=2)\n'
        'HopAttention(16, 4, max_hops="2")\n'
        'GRFMask(2, sampler="iid", flo="source_to_target")\n'
        'HopAttention(16, 4, max_hops=2, feature_map="square")\n'
    )
    # Libraries are left out, which takes a tenth of the time.
    command = ['mypy', '--follow-imports=silent', '--no-site-packages', '--ignore-missing-imports', f'--cache-dir={tmp_path}']
    printed = subprocess.run([sys.executable, '-m', *command, str(script)], capture_output=True, text=True, check=False).stdout
    lines = [line.split(':')[1] for line in printed.splitlines() if ': error:' in line]
    assert lines == ['3', '4', '5'], printed


@pytest.mark.parametrize(
    ('make', 'message'),
    [
        (lambda: nn.HopAttention(16, 4, max_hop=2), r"^HopAttention: .* 'max_hop'; did you mean max_hops\?$"),
        (lambda: nn.GRFAttention(16, 4, walks=2), r"^GRFAttention: .* 'walks'; did you mean num_walks\?$"),
        (lambda: masks.HopMask(max_hop=2), r"^HopMask: .* 'max_hop'; did you mean max_hops\?$"),
        (lambda: masks.GRFMask(walk=2), r"^GRFMask: .* 'walk'"),
        (lambda: transforms.AddGraphRandomFeatures(num_walk=2), r'^AddGraphRandomFeatures: .*; did you mean num_walks\?$'),
        (
            lambda: nn.HopAttention(16, 4, 0.1),
            r'^HopAttention: too many positional arguments; give names to all but channels, heads$',
        ),
        (lambda: nn.HopAttention(), r"^HopAttention: missing a required argument: 'channels'$"),
    ],
)
def test_a_wrong_argument_names_the_class_and_the_right_one(make: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()
