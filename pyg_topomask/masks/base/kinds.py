r"""Kinds of masks: by what they do with edges, by what they learn, and those that sample walks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.utils.checks import check_choice, per_head
from pyg_topomask.utils.precision import widened
from pyg_topomask.walks import WalkSettings

#: What a mask does with the direction of edges, by the word in its :obj:`repr`.
DIRECTIONS = {
    'followed': 'A node attends to nodes from which edges lead to it. The argument flow reverses this.',
    'both ways': 'Walks go against the edges, and nodes whose walks meet attend to each other. Attention has no direction.',
    'undirected': 'An edge counts in both directions, even if only one is given.',
    'symmetric': 'Each edge must be given in both directions, with equal weights. Other graphs raise an error.',
    'counted': 'The degrees of the nodes count the incoming edges, and attention follows no edge. The argument flow decides.',
    'unused': 'The mask reads no edges.',
}

#: The masks that hand gradients on to edge weights, for errors.
LEARNS_WEIGHTS = (
    'AdjacencyMask, PowerSeriesMask, HeatKernelMask, GRFMask, RWGNKMask(transition="weight"), TreeMask(kind="exp"), '
    'HopMask(path_weights="mean"), ExpanderMask(input_weights=True), and compositions with them'
)


def warn_of_directed(mask: Mask, graph: Graph, instead: str) -> None:
    r"""Warns once for each mask whose matrix has no direction, if the graph has one. Names the mask that follows edges."""
    mask = mask.whole
    if mask.told_of_direction or torch.compiler.is_compiling() or not graph.segments.is_whole:
        return
    if graph.is_directed:
        mask.told_of_direction = True
        warn(
            f'edge_index: got a directed graph for {type(mask).__name__}, whose attention has no direction: nodes whose walks '
            f'meet attend to each other. {instead} follows the edges; ToUndirected() of PyG gives a graph without directions.'
        )


def warn_of_lost_gradient(mask: Mask, graph: Graph) -> None:
    r"""Warns once for each mask that edge weights require a gradient, which the mask does not hand on to them."""
    mask, weight = mask.whole, graph.edge_weight
    if weight is None or not weight.requires_grad or mask.told_of_gradient or torch.compiler.is_compiling():
        return
    mask.told_of_gradient = True
    warn(
        f'edge_weight: got weights that require a gradient, which {type(mask).__name__} does not hand on to them. '
        f'These masks do: {LEARNS_WEIGHTS}. Detach weights that are not learned.'
    )


class LogarithmicMask(Mask):
    r"""A mask that learns either numbers or their logarithms. Logarithms keep the numbers above 0. The state dictionary records
    the choice, so a mask with the other choice can load it.
    """

    #: Whether the mask learns logarithms.
    positive: bool
    _begins_positive: bool
    initial: Tensor

    def _begin(self, initial: Tensor, positive: bool) -> None:
        r"""Stores the initial values of all parameters, see :meth:`reset_parameters`."""
        self._begins_positive = self.positive = positive
        self.initial = initial

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.positive = self._begins_positive
        for parameter in self.parameters(recurse=False):
            parameter.copy_(self.initial.log() if self.positive else self.initial)

    def _numbers(self, parameter: Tensor) -> Tensor:
        r"""Returns the numbers that a parameter encodes, at least in float32."""
        numbers = widened(parameter)
        return numbers.exp() if self.positive else numbers

    @torch.no_grad()
    def negative(self) -> str | None:
        r"""Returns the name of a parameter with negative numbers, or :obj:`None`."""
        parameters = () if self.positive else self.named_parameters(recurse=False)
        return next((name for name, parameter in parameters if bool((parameter < 0).any())), None)

    def get_extra_state(self) -> Tensor:
        return torch.tensor(self.positive)

    def set_extra_state(self, state: Tensor) -> None:
        self.positive = bool(state)


class DiffusionMask(Mask):
    r"""A mask with a time :math:`\lambda > 0` per head, the softplus of a parameter. Arguments are those of
    :class:`~pyg_topomask.masks.HeatKernelMask`.
    """

    initial: Tensor

    def __init__(self, heads: int, lam: float | Sequence[float] | Tensor, learnable: bool = True) -> None:
        super().__init__(heads)
        given = per_head(heads, lam=lam)
        if not bool((given > 0).all()):
            raise ArgumentError('lam', given.tolist(), 'numbers above 0')
        self.initial = given + torch.log(-torch.expm1(-given))
        self.raw_lam = torch.nn.Parameter(torch.empty(heads), requires_grad=learnable)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.raw_lam.copy_(self.initial)

    @property
    def lam(self) -> Tensor:
        r""":math:`\lambda`, :obj:`[heads]`."""
        return torch.nn.functional.softplus(widened(self.raw_lam))


class GivenMask(Mask):
    r"""A mask of given tensors. Those that are parameters are learned, and reset to what was given."""

    def __init__(self, heads: int = 1) -> None:
        super().__init__(heads)
        self._initial: dict[str, Tensor] = {}

    def _keep(self, name: str, given: Tensor) -> None:
        given = as_floating_point(name, given)
        check_entries(name, given)
        if isinstance(given, torch.nn.Parameter):
            self.register_parameter(name, given)
            self._initial[name] = given.detach().clone()
        else:
            self.register_buffer(name, given.clone(memory_format=torch.contiguous_format))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        for name, initial in self._initial.items():
            getattr(self, name).copy_(initial)


def as_floating_point(name: str, given: Tensor) -> Tensor:
    r"""Returns a given tensor of whole numbers in the default data type, and one of floating point numbers as it is."""
    if given.is_complex():
        raise ArgumentError(name, f'numbers of {given.dtype}', 'real numbers')
    return given if given.is_floating_point() else given.to(torch.get_default_dtype())


def check_entries(name: str, given: Tensor) -> None:
    r"""Raises a :class:`ValueError` unless all entries of a given tensor are finite."""
    if not given.is_meta and not bool(given.isfinite().all()):
        at = (~given.isfinite()).nonzero()[0].tolist()
        raise ArgumentError(name, f'{given[tuple(at)].item()} at {at}', 'finite numbers')


class WalkingMask(Mask):
    r"""A mask that samples walks, once or in every forward pass of training."""

    walk_settings: WalkSettings
    resample: str
    learns_weights = False  # type: ignore[assignment]

    def _walk(self, settings: WalkSettings, resample: str) -> None:
        check_choice(('never', 'forward'), resample=resample)
        self.walk_settings = settings
        self.resample = resample

    @property
    def flow(self) -> str:
        r"""The direction of attention along edges."""
        return self.walk_settings.flow

    @property
    def fresh(self) -> bool:
        return self.resample == 'forward' and self.training

    @property
    def weighted(self) -> bool:  # type: ignore[override]
        return self.walk_settings.weighted
