"""What rounding to a short type may cost a layer."""

from torch import Tensor

#: In eps, for eight roundings of eps / 2 each: input, weights, queries, keys, values, what they give, bias and output.
BOUND = 4


def relative_error(actual: Tensor, expected: Tensor) -> float:
    """The largest difference from what is expected in float64, relative to the largest number there."""
    expected = expected.detach()
    return float((actual.detach().double() - expected).abs().max() / expected.abs().max())
