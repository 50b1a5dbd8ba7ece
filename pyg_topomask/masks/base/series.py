r"""The series that masks start from: convolutions, graph node kernels by name, and the initial values for each hop."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn.functional import pad

from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.utils.checks import as_numbers, check_not_negative, check_size
from pyg_topomask.utils.options import did_you_mean


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
    shifted = [pad(first * second[..., shift, None], (shift, second.size(-1) - 1 - shift)) for shift in range(second.size(-1))]
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
    accepted = 'series whose first coefficient is above 0, beyond rounding, since f_0 is a root of alpha_0'
    refusal = ArgumentError('alpha', alpha.tolist(), accepted)
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


# The number of terms that a warning considers, and the share of their sum that may be omitted without a warning.
_TERMS, _LEFT_OUT = 256, 0.1


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
#: The accepted names, for errors.
_NAMES = f'{", ".join(KERNELS)}, also as "<name>:<scale>" and "<name>:<scale>:<parameter>=<number>"'


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
    return _Kernel.parse(name, parameters).series(order)


#: The parameters of the kernel that is the root of another one, if it is of the same kind.
_ROOTS: dict[str, Callable[..., dict[str, float]]] = {
    'heat': lambda factors, scale=1.0: {'scale': scale / factors},
    'diffusion': lambda factors, scale=1.0: {'scale': scale / math.sqrt(factors)},
    'regularized_laplacian': lambda factors, scale=1.0, d=1.0: {'scale': scale, 'd': d / factors},
}


@dataclass(frozen=True)
class _Kernel:
    r"""A kernel of :data:`KERNELS` with some of its parameters, and the name that was given for it."""

    given: str
    kind: str
    parameters: Mapping[str, float]

    @classmethod
    def parse(cls, name: str, parameters: Mapping[str, float] | None = None) -> _Kernel:
        r"""Parses a name such as :obj:`"random_walk:2:p=3"`, and adds further parameters."""
        kind, *words = name.split(':')
        pairs = [word.split('=') if '=' in word else ['scale', word] for word in words]
        try:
            named = {key: float(number) for key, number in pairs}
        except ValueError:
            named = {}
        if kind not in KERNELS or len(named) < len(words):
            raise ArgumentError('name', repr(name), _NAMES, '' if kind in KERNELS else did_you_mean(kind, KERNELS))
        parameters = parameters or {}
        if parameters.keys() & named.keys():
            raise ArgumentError('name', f'{name!r} with {dict(parameters)}', 'each parameter once')
        return cls(name, kind, {**parameters, **named})

    def series(self, order: int) -> Tensor:
        r"""Returns the coefficients of the powers up to the given one, in float64."""
        given = f'{self.given!r} with {dict(self.parameters)}'
        try:
            series = KERNELS[self.kind](order, **self.parameters)
        except TypeError as error:
            known = [parameter for parameter in inspect.signature(KERNELS[self.kind]).parameters if parameter != 'order']
            raise ArgumentError('name', given, f'the parameters {known}') from error
        except ArgumentError as error:
            raise ArgumentError('name', given, f'{error.accepted} for its {error.argument}') from error
        except ArithmeticError:
            series = [math.nan]
        if not all(map(math.isfinite, series)) or not any(series):
            raise ArgumentError('name', given, 'parameters whose series is finite and not zero')
        return torch.tensor(series, dtype=torch.float64)

    def root(self, order: int, factors: int) -> Tensor:
        r"""Returns the series whose power with the exponent :obj:`factors` is that of the kernel."""
        series = self.series(order)
        if factors == 1:
            return series
        if self.kind not in _ROOTS:
            return deconvolve(series, factors)
        # Deconvolution would amplify the rounding errors of long series.
        return replace(self, parameters=_ROOTS[self.kind](factors, **self.parameters)).series(order)

    def warn_of_cut(self, kept: Tensor, order: int, limit: str, factors: int) -> None:
        r"""Warns if the kept part of the series lacks a power of a polynomial, or more than a tenth of the sum of the
        coefficients of an infinite series.
        """
        if self.kind == 'random_walk':
            degree = int(self.parameters.get('p', inspect.signature(_random_walk).parameters['p'].default))
            needed = degree // factors if degree % factors == 0 else degree  # otherwise, the root is no polynomial
            if order < needed:
                warn(
                    f'{limit} is {order}, but the kernel {self.given!r} has powers up to {degree}. The highest are left out; '
                    f'{needed} reaches them.'
                )
            return
        whole = self.series(_TERMS + max(2, factors) * order)
        size = whole.abs()
        share = float((whole - pad(kept, (0, whole.numel() - kept.numel()))).abs().sum() / size.sum())
        if share > _LEFT_OUT:
            needed = int((size.flip(0).cumsum(0) > _LEFT_OUT * size.sum()).sum()) - 1
            needed = max(order + 1, math.ceil(needed * min(1.0, 2 / factors)))
            words = 'more than ' if size[-1] > 1e-3 * size.sum() else 'about ' if factors > 2 else ''
            warn(
                f'{limit} is {order}, which leaves out {share:.0%} of the kernel {self.given!r}, by the sum of its '
                f'coefficients; {words}{needed} is needed for {1 - _LEFT_OUT:.0%} of it.'
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
    return _Kernel.parse(name, parameters).root(max_walk_length, 2)


def named_series(argument: str, name: str, order: int, limit: str, factors: int = 1) -> Tensor:
    r"""Returns the series of a named kernel, or its root if the mask multiplies :obj:`factors` equal series. Warns if powers
    are left out. Errors name the argument of the mask, and warnings the one that sets the largest power, :obj:`limit`.
    """
    try:
        kernel = _Kernel.parse(name)
        series = kernel.root(order, factors)
        kernel.warn_of_cut(reduce(convolve, [series] * factors), order, limit, factors)
    except ArgumentError as error:
        raise error.renamed(argument) from None
    return series


def series_parameter(
    argument: str, given: Tensor, heads: int, length: int, dtype: torch.dtype | None = None, each: str = 'power'
) -> Tensor:
    r"""Checks the initial value of a learnable series, and returns a copy of it, :obj:`[heads, length]`. The copy has the data
    type of the value, or the default one if that is not floating point. The numbers must be finite also when converted to
    :obj:`dtype`, in which the series will be learned. :obj:`each` names the index of the series in errors.
    """
    given = as_numbers(**{argument: given})
    if given.shape not in ((length,), (heads, length)):
        accepted = f'[{length}] and [{heads}, {length}], one number for each {each} from 0'
        raise ArgumentError(argument, f'shape {tuple(given.shape)}', accepted)
    if not bool(given.to(dtype or given.dtype).isfinite().all()):
        raise ArgumentError(argument, given.tolist(), 'finite numbers')
    given = given.detach() if given.is_floating_point() else given.to(torch.get_default_dtype())
    return given.expand(heads, -1).clone()


def initial_series(
    argument: str, given: Tensor | str | None, heads: int, length: int, limit: str, factors: int = 1
) -> tuple[Tensor, torch.dtype | None]:
    r"""Returns the initial values of a learnable power series, :obj:`[heads, length]`: the given numbers, by default
    :func:`decaying`, for :obj:`"hops"` :func:`one_hop_per_head`, and for the name of a kernel its series, or the root of it if
    the mask multiplies several. Also returns the data type to learn a kernel in. :obj:`limit` is as in :func:`named_series`.
    """
    if given is None:
        given = decaying(heads, length)
    elif isinstance(given, str) and given == 'hops':
        given = one_hop_per_head(heads, length)
    if not isinstance(given, str):
        return series_parameter(argument, given, heads, length), None
    if given not in KERNELS and ':' not in given:
        raise ArgumentError(argument, repr(given), f'hops, {_NAMES}', did_you_mean(given, ('hops', *KERNELS)))
    dtype = torch.get_default_dtype()  # of a kernel, whose series is in float64
    return series_parameter(argument, named_series(argument, given, length - 1, limit, factors), heads, length, dtype), dtype


def one_hop_per_head(heads: int, length: int) -> Tensor:
    r"""Returns initial values that start each head at a different hop, :obj:`[heads, length]`: 1 for the power
    :math:`h \bmod \text{length}` of head :math:`h`, and 0.02 for all other powers, so that they can grow.
    """
    series = torch.full((heads, length), 0.02)
    series[torch.arange(heads), torch.arange(heads) % length] = 1.0
    return series


def nested_balls(heads: int, length: int) -> Tensor:
    r"""Returns initial values for nested neighborhoods, :obj:`[heads, length]` with :obj:`length` :math:`= K + 1`: 1 up to
    the power :math:`\lfloor K (h + 1) / H \rfloor` in head :math:`h` of :math:`H`, and 0.02 for all other powers, so that they
    can grow.
    """
    farthest = (length - 1) * torch.arange(1, heads + 1) // heads
    return torch.where(torch.arange(length) <= farthest.unsqueeze(1), 1.0, 0.02)


def decaying(heads: int, length: int) -> Tensor:
    r"""Returns the series :math:`2^{-k}` for all heads, :obj:`[heads, length]`."""
    return (0.5 ** torch.arange(length)).expand(heads, -1)


def resolve_positive(argument: str, initial: Tensor, positive: bool | None) -> bool:
    r"""Returns whether to learn the logarithms of a series. :obj:`None` means to learn them if all numbers are above 0.
    :obj:`True` raises a :class:`ValueError` if a number is not.
    """
    possible = bool((initial > 0).all())
    if positive and not possible:
        raise ArgumentError(argument, f'{initial.tolist()} for positive=True', 'numbers above 0')
    return possible if positive is None else positive
