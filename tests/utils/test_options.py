"""Signatures and docstrings of classes that hand keyword arguments on."""

import inspect

import pytest

from pyg_topomask import masks, nn
from pyg_topomask.utils.options import options_of


class Walks:
    r"""Walks.

    Args:
        length (int): How long, in hops;
            or nothing. (default: :obj:`4`)
        seed (int): The seed. (default: :obj:`0`)
        kind (str): The kind. (default: :obj:`"a"`)

    Example:
        >>> 1 + 1
        2
    """

    def __init__(self, length: int = 4, seed: int = 0, kind: str = 'a') -> None:
        self.given = length, seed, kind


@options_of(Walks, without=['kind'])
class Layer:
    r"""A layer.

    Args:
        channels (int): Size.
        seed (int): Another seed. (default: :obj:`1`)

    Raises:
        ValueError: Never.
    """

    def __init__(self, channels: int, seed: int = 1, **options: int) -> None:
        self.channels, self.walks = channels, Walks(seed=seed, kind='b', **options)


@options_of(Layer)
class Model:
    r"""A model.

    Args:

    Raises:
        ValueError: Never.
    """

    def __init__(self, *, channels: int = 8, **options: int) -> None:
        self.layer = Layer(channels, **options)


def test_signatures_show_every_option_with_its_default() -> None:
    assert str(inspect.signature(Layer)) == '(channels: int, seed: int = 1, *, length: int = 4)'
    assert str(inspect.signature(Model)) == '(*, channels: int = 8, seed: int = 1, length: int = 4)'


def test_docstrings_describe_every_option_once() -> None:
    assert inspect.getdoc(Layer) == (
        'A layer.\n\nArgs:\n    channels (int): Size.\n    seed (int): Another seed. (default: :obj:`1`)\n'
        '    length (int): How long, in hops;\n        or nothing. (default: :obj:`4`)\n\nRaises:\n    ValueError: Never.'
    )
    entries = [
        line.split()[0] for line in (inspect.getdoc(Model) or '').splitlines() if line.startswith('    ') and '(' in line
    ]
    assert entries[:3] == ['channels', 'seed', 'length']


def test_calls_are_plain_calls() -> None:
    assert Layer(2, 3, length=5).walks.given == (5, 3, 'b')
    assert Model(length=6).layer.walks.given == (6, 1, 'b')
    with pytest.raises(TypeError, match='unknown'):
        Model(unknown=1)
    with pytest.raises(TypeError, match='kind'):
        Layer(2, kind=3)


def test_arguments_that_a_class_does_not_show_are_refused_in_its_name(subtests: pytest.Subtests) -> None:
    for call, message in [
        (lambda: nn.GRFAttention(8, 2, mask=masks.PackingMask()), r"^GRFAttention: .*unexpected keyword argument 'mask'"),
        (lambda: nn.GRFAttention(8, 2, num_walk=3), r"^GRFAttention: .*unexpected keyword argument 'num_walk'"),
        (lambda: masks.GRFMask(num_walk=3), r"^GRFMask: .*unexpected keyword argument 'num_walk'"),
        (lambda: nn.AsymmetricGRFAttention(8, 2, asymmetric=True), r"^AsymmetricGRFAttention: .*'asymmetric'"),
    ]:
        with subtests.test(message=message), pytest.raises(TypeError, match=message):
            call()
