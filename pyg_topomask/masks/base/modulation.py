r"""Graph node kernels as power series, and their modulations."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import reduce
from itertools import accumulate

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.utils.checks import check_not_negative, check_size

# The number of terms that a warning considers, and the share of their sum that may be omitted without a warning.
_TERMS, _LEFT_OUT = 256, 0.1


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


def deconvolve(alpha: Tensor, factors: int = 2) -> Tensor:
    r"""Returns the series :math:`f` of the :math:`n`-th root, for which :math:`\alpha_k = \sum_{p_1 + \dots + p_n = k} f_{p_1}
    \cdots f_{p_n}` for every given :math:`k`, by the iterative formula

    .. math::
        f_0 = \alpha_0^{1/n}, \qquad
        f_k = \frac{\alpha_k - \sum_{p_1 + \dots + p_n = k, \; p_i < k} f_{p_1} \cdots f_{p_n}}{n f_0^{n - 1}}

    For :math:`n = 2`, it is that of `"General Graph Random Features" <https://arxiv.org/abs/2310.04859>`_ (Eq. 6).

    Args:
        alpha (torch.Tensor): :math:`\alpha`, :obj:`[*, K + 1]`, with :math:`\alpha_0 > 0`.
        factors (int): The number of equal factors :math:`n`. (default: :obj:`2`)

    Returns:
        torch.Tensor: :math:`f`, :obj:`[*, K + 1]`.

    Raises:
        ValueError: If an :math:`\alpha_0` is not positive beyond rounding errors, :obj:`alpha` has no dimension, or
            :obj:`factors` is not a positive whole number.

    Example:
        >>> deconvolve(torch.tensor([1.0, 2.0, 1.0]))
        tensor([1., 1., 0.])
        >>> deconvolve(torch.tensor([1.0, 3.0, 3.0, 1.0]), factors=3)
        tensor([1., 1., 0., 0.])
    """
    check_size(1, factors=factors)
    if alpha.dim() == 0:
        raise ArgumentError('alpha', f'shape {tuple(alpha.shape)}', '[*, K + 1]')
    return deconvolved('alpha', alpha, factors)


def deconvolved(argument: str, alpha: Tensor, factors: int = 2) -> Tensor:
    r"""Calls :func:`deconvolve` for an argument of a different name."""
    refusal = ArgumentError(
        argument, alpha.tolist(), 'series whose first coefficient is above 0, beyond rounding, since f_0 is a root of alpha_0'
    )
    if alpha.size(-1) == 0 or not bool((alpha[..., 0] > 0).all()):
        raise refusal
    f = [alpha[..., 0] ** (1 / factors)]
    for k in range(1, alpha.size(-1)):
        crossed = _power(torch.stack([*f, torch.zeros_like(f[0])], dim=-1), factors)[..., k]
        f.append((alpha[..., k] - crossed) / (factors * f[0] ** (factors - 1)))
    series = torch.stack(f, dim=-1)
    # The first coefficient may be this small if f is not large.
    rounding, largest = torch.finfo(series.dtype).eps, alpha.abs().amax(-1)
    if bool(((alpha[..., 0] <= rounding * largest) & ~(rounding * series.abs().amax(-1) ** factors <= largest)).any()):
        raise refusal
    return series


def _power(series: Tensor, exponent: int) -> Tensor:
    r"""Returns the beginning of the series of a power, as long as the given series."""
    return reduce(lambda power, _: convolve(power, series)[..., : series.size(-1)], range(exponent - 1), series)


def _exponential(order: int, scale: float, first: float = 1.0) -> list[float]:
    r"""The first coefficient times :math:`s^k / k!`, term by term: powers and factorials alone would overflow."""
    return list(accumulate(range(1, order + 1), lambda term, k: term * scale / k, initial=first))


def _heat(order: int, scale: float = 1.0) -> list[float]:
    r"""The heat kernel :math:`\exp(-t \tilde{\mathbf{L}})` with scale :math:`t`."""
    check_not_negative(scale=scale)
    return _exponential(order, scale, math.exp(-scale))


def _diffusion(order: int, scale: float = 1.0) -> list[float]:
    r"""The diffusion kernel :math:`\exp(-\sigma^2 \tilde{\mathbf{L}} / 2)` with scale :math:`\sigma`."""
    check_not_negative(scale=scale)
    return _heat(order, scale**2 / 2)


def _regularized_laplacian(order: int, scale: float = 1.0, d: float = 1.0) -> list[float]:
    r"""The d-regularized Laplacian kernel :math:`(\mathbf{I} + \sigma^2 \tilde{\mathbf{L}})^{-d}` with scale
    :math:`\sigma`. The series converges for spectral radii below :math:`1 + \sigma^{-2}`.
    """
    check_not_negative(scale=scale, d=d)
    ratio = scale**2 / (1 + scale**2)
    return [(1 + scale**2) ** -d * math.prod((d + i) / (i + 1) for i in range(k)) * ratio**k for k in range(order + 1)]


def _random_walk(order: int, scale: float = 2.0, p: float = 2) -> list[float]:
    r"""The p-step random walk kernel :math:`(a \mathbf{I} - \tilde{\mathbf{L}})^p` with scale :math:`a \ge 2`."""
    check_not_negative(scale=scale, p=p)
    if scale < 2:
        raise ArgumentError('scale', scale, 'finite numbers from 2')
    if p != int(p):
        raise ArgumentError('p', p, 'whole numbers')
    p = int(p)
    return [math.comb(p, k) * (scale - 1) ** max(p - k, 0) for k in range(order + 1)]


def _cosine(order: int, scale: float = math.pi / 4) -> list[float]:
    r"""The kernel :math:`\cos(s \tilde{\mathbf{L}})` with scale :math:`s`. With :math:`s = \pi / 4`, it is the inverse cosine
    kernel of Smola and Kondor, who name it after its regularizer.
    """
    check_not_negative(scale=scale)
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
    <https://people.cs.uchicago.edu/~risi/papers/SmolaKondor.pdf>`_): with :math:`\tilde{\mathbf{L}}` the symmetric normalized
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

    Parameters are finite and nonnegative, :math:`a` is at least 2, and :math:`p` is an integer.

    Args:
        name (str): The kernel. The name may include the scale and other parameters, as in :obj:`"heat:0.5"` and
            :obj:`"random_walk:2:p=3"`.
        order (int): The largest power :math:`K`.
        **parameters: The kernel's parameters.

    Returns:
        torch.Tensor: :obj:`[K + 1]`, in float64.

    Raises:
        ValueError: If the kernel or a parameter is unknown, or the order or a parameter is outside its range.

    Example:
        >>> kernel_series('random_walk', order=2, scale=3.0)
        tensor([4., 4., 1.], dtype=torch.float64)
        >>> kernel_series('random_walk:3:p=1', order=2)
        tensor([2., 1., 0.], dtype=torch.float64)
    """
    check_size(0, order=order)
    return _series('name', name, order, parameters)


def _series(argument: str, name: str, order: int, parameters: Mapping[str, float]) -> Tensor:
    kernel, named_parameters = _parse_kernel(argument, name)
    given = f'{name!r} with {dict(parameters)}'
    if parameters.keys() & named_parameters.keys():
        raise ArgumentError(argument, given, 'each parameter once')
    parameters = {**parameters, **named_parameters}
    try:
        series = KERNELS[kernel](order, **parameters)
    except TypeError as error:
        known = [parameter for parameter in inspect.signature(KERNELS[kernel]).parameters if parameter != 'order']
        raise ArgumentError(argument, given, f'the parameters {known}') from error
    except ArgumentError as error:
        raise ArgumentError(argument, given, f'{error.accepted} for its {error.argument}') from error
    except ArithmeticError:
        series = [math.nan]
    if not all(map(math.isfinite, series)) or not any(series):
        raise ArgumentError(argument, given, 'parameters whose series is finite and not zero')
    return torch.tensor(series, dtype=torch.float64)


#: The parameters of the kernel that is the root of another one, if it is of the same kind.
_ROOTS: dict[str, Callable[..., dict[str, float]]] = {
    'heat': lambda factors, scale=1.0: {'scale': scale / factors},
    'diffusion': lambda factors, scale=1.0: {'scale': scale / math.sqrt(factors)},
    'regularized_laplacian': lambda factors, scale=1.0, d=1.0: {'scale': scale, 'd': d / factors},
}


def _root(argument: str, name: str, series: Tensor, parameters: Mapping[str, float], factors: int) -> Tensor:
    r"""Returns the root of the series of a kernel."""
    kernel, named_parameters = _parse_kernel(argument, name)
    if factors == 1:
        return series
    if kernel not in _ROOTS:
        return deconvolved(argument, series, factors)
    # Deconvolution would amplify the rounding errors of long series.
    return _series(argument, kernel, series.numel() - 1, _ROOTS[kernel](factors, **{**parameters, **named_parameters}))


def _parse_kernel(argument: str, name: str) -> tuple[str, dict[str, float]]:
    r"""Parses a name such as :obj:`"random_walk:2:p=3"` into the kernel and its parameters."""
    kernel, *words = name.split(':')
    pairs = [word.split('=') if '=' in word else ['scale', word] for word in words]
    try:
        parameters = {key: float(number) for key, number in pairs}
    except ValueError:
        parameters = {}
    if kernel not in KERNELS or len(parameters) < len(words):
        forms = '"<name>:<scale>" and "<name>:<scale>:<parameter>=<number>"'
        raise ArgumentError(argument, repr(name), f'{sorted(KERNELS)}, also as {forms}')
    return kernel, parameters


def named_series(argument: str, name: str, order: int, limit: str, factors: int = 1) -> Tensor:
    r"""Returns the series of a named kernel, or its root if the mask multiplies equal series. Warns if the mask omits a
    power of a polynomial, or more than a tenth of the sum of the coefficients of an infinite series.

    Args:
        argument (str): The argument of the mask.
        name (str): The kernel.
        order (int): The largest power.
        limit (str): The argument of the mask that sets the largest power.
        factors (int): The number of equal series that the mask multiplies. (default: :obj:`1`)
    """
    series = _series(argument, name, order, {})
    f = _root(argument, name, series, {}, factors)
    _warn_of_cut(argument, name, order, limit, reduce(convolve, [f] * factors), factors)
    return f


def _warn_of_cut(argument: str, name: str, order: int, limit: str, kept: Tensor, factors: int) -> None:
    kernel, parameters = _parse_kernel(argument, name)
    if kernel == 'random_walk':
        degree = int(parameters.get('p', inspect.signature(_random_walk).parameters['p'].default))
        needed = degree // factors if degree % factors == 0 else degree  # otherwise, the root is no polynomial
        if order < needed:
            warn(
                f'{limit} is {order}, but the kernel {name!r} has powers up to {degree}. The highest are left out; '
                f'{needed} reaches them.'
            )
        return
    whole = _series(argument, name, _TERMS + max(2, factors) * order, {})
    size = whole.abs()
    share = float((whole - torch.nn.functional.pad(kept, (0, whole.numel() - kept.numel()))).abs().sum() / size.sum())
    if share > _LEFT_OUT:
        needed = int((size.flip(0).cumsum(0) > _LEFT_OUT * size.sum()).sum()) - 1
        needed = max(order + 1, math.ceil(needed * min(1.0, 2 / factors)))
        words = 'more than ' if size[-1] > 1e-3 * size.sum() else 'about ' if factors > 2 else ''
        warn(
            f'{limit} is {order}, which leaves out {share:.0%} of the kernel {name!r}, by the sum of its coefficients; '
            f'{words}{needed} is needed for {1 - _LEFT_OUT:.0%} of it.'
        )


def modulation(name: str, max_walk_length: int, **parameters: float) -> Tensor:
    r"""Returns the modulation :math:`f` of a graph node kernel. Graph random features with this modulation estimate the
    kernel, because the convolution of :math:`f` with itself is the series of the kernel.

    Args:
        name (str): The kernel, see :func:`kernel_series`.
        max_walk_length (int): The largest number of hops :math:`L`.
        **parameters: The kernel's parameters.

    Example:
        >>> modulation('random_walk', max_walk_length=2)
        tensor([1., 1., 0.], dtype=torch.float64)
    """
    check_size(0, max_walk_length=max_walk_length)
    return _root('alpha', name, kernel_series(name, max_walk_length, **parameters), parameters, 2)
