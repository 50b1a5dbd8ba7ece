r"""Graph node kernels as power series, and the modulations whose convolutions they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate

import torch
from torch import Tensor

__all__ = ['KERNELS', 'convolve', 'deconvolve', 'kernel_series', 'modulation', 'naming', 'series_parameter']


def convolve(first: Tensor, second: Tensor) -> Tensor:
    r"""Returns :math:`\alpha_k = \sum_p f^{(1)}_p f^{(2)}_{k - p}`, from `"Linear Transformer Topological Masking with Graph
    Random Features" <https://arxiv.org/abs/2410.03462>`_ (Eq. 26), differentiable.

    Args:
        first (torch.Tensor): :math:`f^{(1)}`, :obj:`[*, L + 1]`.
        second (torch.Tensor): :math:`f^{(2)}`, :obj:`[*, L' + 1]`.

    Returns:
        torch.Tensor: :obj:`[*, L + L' + 1]`.

    Example:
        >>> convolve(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 1.0]))
        tensor([1., 2., 1.])
    """
    shifted = [
        torch.nn.functional.pad(first * second[..., shift, None], (shift, second.size(-1) - 1 - shift))
        for shift in range(second.size(-1))
    ]
    return torch.stack(shifted).sum(0)


def deconvolve(alpha: Tensor) -> Tensor:
    r"""Returns the :math:`f` with :math:`\alpha_k = \sum_p f_p f_{k - p}` for every :math:`k` given, by the iterative formula
    of `"General Graph Random Features" <https://arxiv.org/abs/2310.04859>`_ (Eq. 6):

    .. math::
        f_0 = \sqrt{\alpha_0}, \qquad f_k = \frac{\alpha_k - \sum_{p=1}^{k-1} f_p f_{k-p}}{2 f_0}

    Args:
        alpha (torch.Tensor): :math:`\alpha`, :obj:`[*, K + 1]`, with :math:`\alpha_0 > 0`.

    Returns:
        torch.Tensor: :math:`f`, :obj:`[*, K + 1]`.

    Raises:
        ValueError: If an :math:`\alpha_0` is not positive, so that :math:`f_0` would be zero or not real.

    Example:
        >>> deconvolve(torch.tensor([1.0, 2.0, 1.0]))
        tensor([1., 1., 0.])
    """
    if alpha.size(-1) == 0 or not bool((alpha[..., 0] > 0).all()):
        raise ValueError(
            f'alpha: got {alpha.tolist()}; accepted are series whose first coefficient is above 0, since f_0 = sqrt(alpha_0)'
        )
    f = [alpha[..., 0].sqrt()]
    for k in range(1, alpha.size(-1)):
        crossed = sum((f[p] * f[k - p] for p in range(1, k)), start=torch.zeros_like(f[0]))
        f.append((alpha[..., k] - crossed) / (2 * f[0]))
    return torch.stack(f, dim=-1)


def _exponential(order: int, scale: float, first: float = 1.0) -> list[float]:
    r"""The first coefficient times :math:`s^k / k!`, term by term: powers and factorials alone would overflow."""
    return list(accumulate(range(1, order + 1), lambda term, k: term * scale / k, initial=first))


def _heat(order: int, scale: float = 1.0) -> list[float]:
    r"""The heat kernel :math:`\exp(-t \tilde{\mathbf{L}})` with time :math:`t` the scale."""
    return _exponential(order, scale, math.exp(-scale))


def _diffusion(order: int, scale: float = 1.0) -> list[float]:
    r"""The diffusion kernel :math:`\exp(-\sigma^2 \tilde{\mathbf{L}} / 2)` with :math:`\sigma` the scale."""
    return _heat(order, scale**2 / 2)


def _regularized_laplacian(order: int, scale: float = 1.0, d: float = 1.0) -> list[float]:
    r"""The d-regularised Laplacian kernel :math:`(\mathbf{I} + \sigma^2 \tilde{\mathbf{L}})^{-d}` with :math:`\sigma` the
    scale; the series converges for spectral radii below :math:`1 + \sigma^{-2}`.
    """
    ratio = scale**2 / (1 + scale**2)
    return [(1 + scale**2) ** -d * math.prod((d + i) / (i + 1) for i in range(k)) * ratio**k for k in range(order + 1)]


def _random_walk(order: int, scale: float = 2.0, p: int = 2) -> list[float]:
    r"""The p-step random walk kernel :math:`(a \mathbf{I} - \tilde{\mathbf{L}})^p` with :math:`a \ge 2` the scale."""
    return [math.comb(p, k) * (scale - 1) ** max(p - k, 0) for k in range(order + 1)]


def _cosine(order: int, scale: float = math.pi / 4) -> list[float]:
    r"""The kernel :math:`\cos(s \tilde{\mathbf{L}})` with :math:`s` the scale; with :math:`s = \pi / 4` it is the inverse
    cosine kernel of Smola and Kondor, who name it after its regulariser.
    """
    # cos(s (1 - w)) = cos(s) cos(s w) + sin(s) sin(s w)
    half = (math.cos(scale), math.sin(scale))
    return [half[k % 2] * (-1) ** (k // 2) * term for k, term in enumerate(_exponential(order, scale))]


#: Coefficients of the powers of :math:`\mathbf{W} = \mathbf{I} - \tilde{\mathbf{L}}`, called with order and parameters.
KERNELS: dict[str, Callable[..., list[float]]] = {
    'heat': _heat,
    'diffusion': _diffusion,
    'regularized_laplacian': _regularized_laplacian,
    'random_walk': _random_walk,
    'cosine': _cosine,
    'inverse_cosine': _cosine,
}


def kernel_series(name: str, order: int, **parameters: float) -> Tensor:
    r"""Returns the coefficients :math:`\alpha_0, \dots, \alpha_K` of a graph node kernel as a power series of
    :math:`\mathbf{W} = \mathbf{I} - \tilde{\mathbf{L}}` (`"Linear Transformer Topological Masking with Graph Random Features"
    <https://arxiv.org/abs/2410.03462>`_, Eq. 4; `"Kernels and Regularization on Graphs"
    <https://people.cs.uchicago.edu/~risi/papers/SmolaKondor.pdf>`_): with :math:`\tilde{\mathbf{L}}` the symmetric normalised
    Laplacian, :math:`\mathbf{W}` has :obj:`normalization="sym"`.

    ========================= =========================================================== =================================
    name                      kernel                                                      parameters, with defaults
    ========================= =========================================================== =================================
    ``heat``                  :math:`\exp(-t \tilde{\mathbf{L}})`                         ``scale`` :math:`t = 1`
    ``diffusion``             :math:`\exp(-\sigma^2 \tilde{\mathbf{L}} / 2)`              ``scale`` :math:`\sigma = 1`
    ``regularized_laplacian`` :math:`(\mathbf{I} + \sigma^2 \tilde{\mathbf{L}})^{-d}`     ``scale`` :math:`\sigma = 1`, ``d=1``
    ``random_walk``           :math:`(a \mathbf{I} - \tilde{\mathbf{L}})^p`               ``scale`` :math:`a = 2`, ``p=2``
    ``cosine``                :math:`\cos(s \tilde{\mathbf{L}})`                          ``scale`` :math:`s = \pi / 4`
    ``inverse_cosine``        the same, under Smola and Kondor's name                     ``scale`` :math:`s = \pi / 4`
    ========================= =========================================================== =================================

    Args:
        name (str): The kernel, also with its scale as in :obj:`"heat:0.5"`.
        order (int): The largest power :math:`K`.
        **parameters: The kernel's parameters.

    Returns:
        torch.Tensor: :obj:`[K + 1]`, in float64.

    Raises:
        ValueError: If the kernel or a parameter is unknown, or the order or a parameter is outside its range.

    Example:
        >>> kernel_series('random_walk', order=2, scale=3.0)
        tensor([4., 4., 1.], dtype=torch.float64)
    """
    if order < 0:
        raise ValueError(f'order: got {order}; accepted are numbers from 0')
    kernel, _, scale = name.partition(':')
    try:
        if scale:
            parameters['scale'] = float(scale)
        series = KERNELS[kernel](order, **parameters)
        if not all(map(math.isfinite, series)):
            raise ValueError('the series is not finite')
        return torch.tensor(series, dtype=torch.float64)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(
            f'name: got {name!r} with {parameters}; accepted are {sorted(KERNELS)}, also as "<name>:<scale>", with the '
            f'parameters of kernel_series'
        ) from error


def modulation(name: str, max_walk_length: int, **parameters: float) -> Tensor:
    r"""Returns the modulation :math:`f` whose convolution with itself is the series of a graph node kernel, so that graph
    random features estimate that kernel.

    Args:
        name (str): The kernel, see :func:`kernel_series`.
        max_walk_length (int): The largest number of hops :math:`L`.
        **parameters: The kernel's parameters.

    Example:
        >>> modulation('random_walk', max_walk_length=2)
        tensor([1., 1., 0.], dtype=torch.float64)
    """
    return deconvolve(kernel_series(name, max_walk_length, **parameters))


@contextmanager
def naming(argument: str) -> Iterator[None]:
    r"""Names the argument of a mask, not that of the functions here, where the kernel given there is refused."""
    try:
        yield
    except ValueError as error:
        _, _, refusal = str(error).partition(': ')
        raise ValueError(f'{argument}: {refusal}') from error


def series_parameter(name: str, given: Tensor, heads: int, length: int) -> Tensor:
    r"""Checks the initial value of a learnable series, and returns it as floats of shape :obj:`[heads, length]`."""
    given = torch.as_tensor(given)
    if given.shape not in ((length,), (heads, length)):
        raise ValueError(
            f'{name}: got shape {tuple(given.shape)}; accepted are [{length}] and [{heads}, {length}], one number for each '
            f'power from 0'
        )
    if not bool(given.isfinite().all()):
        raise ValueError(f'{name}: got {given.tolist()}; accepted are finite numbers')
    given = given.detach() if given.is_floating_point() else given.to(torch.get_default_dtype())
    return given.expand(heads, -1).clone()
