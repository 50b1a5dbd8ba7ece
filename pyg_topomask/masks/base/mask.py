r"""The base class of masks, and the algebra of masks."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from copy import copy
from functools import singledispatch
from typing import Any, cast

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.edges import FLOWS
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.stored import StoredBlocks
from pyg_topomask.masks.base.heads_of_layer import HeadsOfLayer
from pyg_topomask.operators.base import Arithmetic, Heads, MaskOperator, check_scale
from pyg_topomask.operators.sparse import ENTRYWISE_PRODUCTS, sparse_product
from pyg_topomask.utils.checks import as_numbers, check_size
from pyg_topomask.utils.functorch import is_exporting
from pyg_topomask.utils.options import instance_of

#: The masks that take edge weights of each head, for errors.
WEIGHTS_BY_HEAD = (
    'AdjacencyMask, PowerSeriesMask, HeatKernelMask, HopMask, TreeMask, GRFMask, RWGNKMask, ExpanderMask, and compositions of '
    'them'
)


class Mask(Arithmetic, HeadsOfLayer, ABC):
    r"""A topological mask :math:`\mathbf{M}(\mathcal{G})`, which multiplies attention scores entrywise.

    A mask works in two steps. :meth:`prepare` computes everything that does not depend on parameters (walks, orders, bounds).
    Its result may be stored, or shared between layers. :meth:`bind` applies the learnable parameters, one set per head, and
    returns a :class:`~pyg_topomask.operators.MaskOperator` of shape :math:`H \times N \times N`. :obj:`mask(data)` does both.

    You can add, scale and transpose (:attr:`T`) masks. You can multiply two masks entrywise if one has low rank or both are
    sparse.

    Args:
        heads (int): The number of heads :math:`H`. A layer with more heads gives them to a mask made without
            :obj:`heads`, if it learns something for each head. (default: :obj:`1`)

    Raises:
        ValueError: If :obj:`heads` is not a positive whole number.

    Shapes:
        - **input:** a :class:`~torch_geometric.data.Data`, a batch, or a :class:`~pyg_topomask.graphs.Graph` with
          :math:`|\mathcal{V}|` nodes
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
    """

    #: The form of the operators of this mask: :obj:`"sparse"` for entries, :obj:`"low_rank"` for factors,
    #: :obj:`"product"` for neither. :obj:`None` if it is unknown until the mask is bound.
    form: str | None = None
    #: How the mask is prepared on a graph with other node numbers, see :meth:`~pyg_topomask.graphs.Graph.near`: on the
    #: :obj:`"graph"`, or by the :obj:`"state"`, whose node numbers are replaced. :obj:`None` if not at all. Subclasses do not
    #: inherit it, because they may read data of the nodes.
    renumbers: str | None = None
    #: What the mask does with the direction of edges, a word of :obj:`DIRECTIONS`, or :obj:`None` if it is unknown.
    direction: str | None = None
    #: Whether edge weights change the mask. They do not if the direction is :obj:`"unused"`.
    weighted: bool = True
    #: The argument by which edge weights change the mask where they do not, for warnings.
    reads_weights_by: str = ''
    #: Whether nodes attend only to nodes that edges join to them, so that graphs stay apart without a batch vector. They do
    #: not if the direction is :obj:`"unused"`.
    local: bool = True
    #: Whether edge weights may differ between heads: all that differs between the heads is in parameters of shape
    #: :obj:`[heads, *]`.
    weights_by_head: bool = False
    #: Plain arguments that the text of a mask shows even with their defaults.
    shown: tuple[str, ...] = ()
    #: Whether the mask has warned that a graph is directed.
    told_of_direction: bool = False
    #: Whether the mask has warned that edge weights get no gradient.
    told_of_gradient: bool = False

    def __init__(self, heads: int = 1) -> None:
        super().__init__()
        check_size(heads=heads)
        self.heads = int(heads)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.renumbers = cls.__dict__.get('renumbers')
        cls.weights_by_head = cls.__dict__.get('weights_by_head', False)
        if cls.__dict__.get('direction') == 'unused':
            cls.weighted = cls.local = False

    @abstractmethod
    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> Any:
        r"""Computes everything that does not depend on parameters.

        Args:
            graph (Graph): The graphs.
            generator (torch.Generator, optional): The source of random numbers, if the mask uses any. (default: :obj:`None`)
        """

    @abstractmethod
    def bind(self, graph: Graph, state: Any) -> MaskOperator:
        r"""Applies the parameters to a prepared state."""

    @property
    def learns_weights(self) -> bool:
        r"""Whether gradients reach edge weights that require them."""
        return self.weighted

    @property
    def parts(self) -> Sequence[Mask]:
        r"""The masks that this one is composed of. Each has its own state."""
        return ()

    @property
    def fresh(self) -> bool:
        r"""Whether every call prepares a new state, for example new walks."""
        return False

    def settings(self) -> Hashable:
        r"""Returns a key of the state. Masks with equal keys share a state on a common
        :class:`~pyg_topomask.graphs.Graph`. By default, masks share nothing.
        """
        return self

    @property
    def stored_blocks(self) -> StoredBlocks | None:
        r"""How :class:`~pyg_topomask.transforms.PrepareMasks` stores the blocks of the mask, or :obj:`None` if it does not."""
        return None

    def forward(self, graph: Graph | Data, generator: torch.Generator | None = None) -> MaskOperator:
        r"""Prepares the mask, unless :obj:`graph` already holds the state, and binds it.

        Args:
            graph (Graph or torch_geometric.data.Data): The graphs.
            generator (torch.Generator, optional): The source of random numbers. If given, the mask prepares a new state, which
                is not shared. (default: :obj:`None`)
        """
        graph = Graph.of(graph)
        if graph.edge_weight is not None and graph.edge_weight.dim() > 1:
            return self._bound_by_head(graph, graph.edge_weight, generator)
        with torch.autocast(device_type=graph.edge_index.device.type, enabled=False):
            try:
                return bound(self, graph, graph.state(self, generator))
            except RuntimeError as error:
                if not is_exporting():
                    raise
                accepted = 'masks that torch.export traces, or a Graph that was used before, for which the program is then made'
                raise ArgumentError('mask', f'{type(self).__name__} on a new graph', accepted) from error

    @torch.compiler.disable  # torch.compile does not copy modules
    def _bound_by_head(self, graph: Graph, weight: Tensor, generator: torch.Generator | None) -> MaskOperator:
        r"""Binds the mask of each head to the graph with the weights of this head."""
        heads = [self.of_head(head) for head in range(self.heads)]
        if weight.size(1) != self.heads:
            given = f'weights of {weight.size(1)} heads for a {type(self).__name__} of {self.heads}'
            remedy = f'make the mask with heads={weight.size(1)}'
            raise ArgumentError('edge_weight', given, f'shape [E, {self.heads}]' if self.heads > 1 else 'shape [E]', remedy)
        pairs = zip(heads, weight.unbind(1), strict=True)
        return Heads(tuple(mask(graph.with_weights(each), generator) for mask, each in pairs))

    def of_head(self, head: int) -> Mask:
        r"""Returns the mask of one of several heads, whose parameters are views of those of this mask."""
        if not self.weights_by_head:
            remedy = f'EdgeWeights without heads learns such weights; these masks take weights of heads: {WEIGHTS_BY_HEAD}'
            raise ArgumentError('edge_weight', f'weights of heads for {type(self).__name__}', 'weights of shape [E]', remedy)
        parameters = dict(self.named_parameters(recurse=False))
        shared = {name for name, each in parameters.items() if each.size(0) == 1}  # as with share_modulation=True
        return self._copy({name: parameters[name][head : head + 1] for name in parameters.keys() - shared})

    def _copy(self, parameters: dict[str, Tensor]) -> Mask:
        r"""Returns the same mask for one head with other parameters."""
        mask = copy(self)
        vars(mask).update(_parameters={**self._parameters, **parameters}, heads=1, whole=self.whole)
        return mask

    @property
    def whole(self) -> Mask:
        r"""The mask of all heads, if this one is of one of its heads, see :meth:`of_head`. It remembers warnings."""
        return cast('Mask', vars(self).get('whole', self))

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters."""

    @property
    def T(self) -> Mask:
        r"""The transposed mask."""
        return TransposedMask(self)

    def __add__(self, other: Mask) -> Mask:
        return SumMask(self, other) if isinstance(other, Mask) else NotImplemented

    def __mul__(self, other: Mask | Tensor | float) -> Mask:
        return HadamardMask(self, other) if isinstance(other, Mask) else ScaledMask(self, other)

    __rmul__ = __mul__
    #: NumPy then leaves the product of an array and a mask to the mask.
    __array_ufunc__ = None

    def extra_repr(self) -> str:
        return f'heads={self.heads}{self._changed()}{self._directed()}'

    @property
    def flow_of_attention(self) -> str | None:
        r"""The direction in which attention follows edges, or :obj:`None` if it follows none, or if several masks differ."""
        return None if self.direction in ('unused', 'counted') else getattr(self, 'flow', None)

    def _directed(self) -> str:
        return '' if self.direction is None else f', edges {self.direction}'

    def _changed(self) -> str:
        r"""The arguments that are plain values and differ from their defaults, or that are always :attr:`shown`."""
        changed = {}
        for name, argument in inspect.signature(type(self)).parameters.items():
            value = vars(self).get(name, argument.default)
            differs = isinstance(value, str | int | float | tuple | None) and value != argument.default
            if name in self.shown or (name != 'heads' and differs):
                changed[name] = value
        return ''.join(f', {name}={value!r}' for name, value in changed.items())


@singledispatch
def bind_on(graph: Graph, mask: Mask, state: Any) -> MaskOperator:
    r"""Binds a mask to a state. Graphs of several processes bind it otherwise."""
    return mask.bind(graph, state)


def bound(mask: Mask, graph: Graph, state: Any) -> MaskOperator:
    r"""Binds a mask to a prepared state. Raises an error unless the result is an operator with the heads of the mask, or with
    one head, which is then repeated for all heads.
    """
    operator = bind_on(graph, mask, state)
    if not isinstance(operator, MaskOperator):
        raise ArgumentError(
            f'{type(mask).__name__}.bind',
            f'a {type(operator).__name__}',
            'a MaskOperator, for example from sparse_operator or low_rank_operator',
            'DenseMask takes a matrix' if isinstance(operator, Tensor) else '',
        )
    if operator.heads not in (1, mask.heads):
        raise ArgumentError(
            f'{type(mask).__name__}.bind', f'an operator of {operator.heads} heads', f'the {mask.heads} of the mask, or 1'
        )
    if operator.heads < mask.heads:
        return operator.scaled(torch.ones(mask.heads, dtype=operator.dtype, device=graph.device))
    return operator


class ComposedMask(Mask):
    r"""A mask composed of other masks. Each of them has a separate state, shared with masks of equal settings, and does with
    directions and weights of edges what it does alone.
    """

    def __init__(self, *masks: Mask) -> None:
        _check_masks(masks, 1)
        heads = {mask.heads for mask in masks} - {1}
        if len(heads) > 1:
            raise ArgumentError('heads', f'masks with {sorted(heads)} heads', 'equal numbers, or 1')
        super().__init__(max(mask.heads for mask in masks))
        self.masks = torch.nn.ModuleList(masks)
        self.form = self._form(masks)

    def _form(self, masks: tuple[Mask, ...]) -> str | None:
        forms = {mask.form for mask in masks}
        return forms.pop() if len(forms) == 1 else None if None in forms else 'product'

    @property
    def parts(self) -> Sequence[Mask]:
        return cast('list[Mask]', list(self.masks))

    @property
    def fresh(self) -> bool:
        return any(mask.fresh for mask in self.parts)

    @property
    def direction(self) -> str | None:  # type: ignore[override]
        r"""The common word of the masks, of those that read edges if there are any, or :obj:`None` if they differ."""
        words = {mask.direction for mask in self.parts}
        words = words - {'unused'} or words
        return words.pop() if len(words) == 1 else None

    @property
    def weighted(self) -> bool:  # type: ignore[override]
        return any(mask.weighted for mask in self.parts)

    @property
    def learns_weights(self) -> bool:
        return any(mask.learns_weights for mask in self.parts)

    @property
    def local(self) -> bool:  # type: ignore[override]
        return all(mask.local for mask in self.parts)

    @property
    def flow(self) -> str | None:
        r"""The common direction of attention along edges, or :obj:`None` if the directions of the masks differ."""
        flows = {flow for mask in self.parts if (flow := mask.flow_of_attention) is not None}
        return flows.pop() if len(flows) == 1 else None

    def _directed(self) -> str:
        if self.direction != 'followed' or self.flow == FLOWS[0]:
            return super()._directed()
        return '' if self.flow is None else f', flow={self.flow!r}{super()._directed()}'

    def settings(self) -> Hashable:
        return (type(self), *(mask.settings() for mask in self.parts))

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> list[Any]:
        return [mask.prepare(graph, generator) for mask in self.parts]

    def _bound(self, graph: Graph, state: list[Any]) -> list[MaskOperator]:
        return [bound(mask, graph, prepared) for mask, prepared in zip(self.parts, state, strict=True)]

    def of_head(self, head: int) -> Mask:
        mask = self._copy({})
        vars(mask)['_modules'] = {'masks': [part.of_head(head) if part.heads > 1 else part for part in self.parts]}
        return mask

    def reset_parameters(self) -> None:
        for mask in self.parts:
            mask.reset_parameters()

    def take_heads(self, heads: int) -> None:
        for mask in self.parts:
            mask.take_heads(heads)
        self.heads = max(self.heads, *(mask.heads for mask in self.parts))


class SumMask(ComposedMask):
    r"""The sum of masks.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes, with the data that the masks need
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
    """

    renumbers = 'graph'

    def bind(self, graph: Graph, state: list[Any]) -> MaskOperator:
        first, *rest = self._bound(graph, state)
        return sum(rest, start=first)


class HadamardMask(ComposedMask):
    r"""The entrywise product of masks. Of any two factors, one must have low rank, or both must be sparse.

    Args:
        *masks (Mask): The factors.

    Raises:
        ValueError: If two factors have neither low rank nor entries. If this is unknown, the check happens when the mask is
            bound.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes, with the data that the masks need
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
    """

    renumbers = 'graph'

    @property
    def local(self) -> bool:  # type: ignore[override]
        return any(mask.local for mask in self.parts)

    def _form(self, masks: tuple[Mask, ...]) -> str | None:
        form = masks[0].form
        for mask in masks[1:]:
            if 'low_rank' in (form, mask.form):
                form = mask.form if form == 'low_rank' else form
            elif form != mask.form or form != 'sparse':
                if None not in (form, mask.form):
                    names = [type(factor).__name__ for factor in masks]
                    remedy = 'use ToeplitzMask(causal=0)' if {'CausalMask', 'ToeplitzMask'} == set(names) else ''
                    raise ArgumentError('masks', f'the entrywise product of {" and ".join(names)}', ENTRYWISE_PRODUCTS, remedy)
                form = None
        return form

    def bind(self, graph: Graph, state: list[Any]) -> MaskOperator:
        product, *rest = self._bound(graph, state)
        for operator in rest:
            low_rank = product.is_low_rank or operator.is_low_rank
            product = product * operator if low_rank else sparse_product(product, operator)
        return product


class MultiHeadMask(ComposedMask):
    r"""Several masks, each for some of the heads. The heads may have masks of different types, or different walks, as in the
    vision Transformers of `"Linear Transformer Topological Masking with Graph Random
    Features" <https://arxiv.org/abs/2410.03462>`_ (Sec. 4.2).

    Walks stored on the data are the same for all heads and any :obj:`seed`.

    Args:
        *masks (Mask): Two or more masks. The heads of the first mask come first.

    Raises:
        ValueError: If there are fewer than two masks.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes, with the data that the masks need
        - **output:** a mask operator :math:`(\sum_m H_m, |\mathcal{V}|, |\mathcal{V}|)` for masks with :math:`H_m` heads

    Example:
        >>> from pyg_topomask.masks import GRFMask
        >>> MultiHeadMask(*(GRFMask(heads=1, seed=head) for head in range(4))).heads
        4
    """

    renumbers = 'graph'

    def __init__(self, *masks: Mask) -> None:
        _check_masks(masks, 2)
        Mask.__init__(self, sum(mask.heads for mask in masks))
        self.masks = torch.nn.ModuleList(masks)
        self.form = self._form(masks)

    def take_heads(self, heads: int) -> None:
        r"""Does nothing: the number of masks decides."""

    def of_head(self, head: int) -> Mask:
        part, *rest = self.parts
        while head >= part.heads:
            head, (part, *rest) = head - part.heads, rest
        return part.of_head(head) if part.heads > 1 else part

    def bind(self, graph: Graph, state: list[Any]) -> MaskOperator:
        return Heads(tuple(self._bound(graph, state)))


class TransposedMask(ComposedMask):
    r"""The transpose of a mask.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes, with the data that the mask needs
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
    """

    renumbers = 'graph'

    def __init__(self, mask: Mask) -> None:
        super().__init__(mask)

    @property
    def flow(self) -> str | None:
        flow = super().flow
        return None if flow is None else next(other for other in FLOWS if other != flow)

    def bind(self, graph: Graph, state: list[Any]) -> MaskOperator:
        return self._bound(graph, state)[0].T


class ScaledMask(ComposedMask):
    r"""A mask times a number, or times one number per head.

    Args:
        mask (Mask): The mask.
        scale (float, torch.Tensor or torch.nn.Parameter): The factor; a tensor has no dimensions or shape :obj:`[heads]`. A
            parameter is learned. To let a gradient flow to another tensor, multiply the operator: :obj:`mask(graph) * scale`.

    Raises:
        ValueError: If the factor has a different shape, is not finite, or requires a gradient but is not a parameter.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes, with the data that the mask needs
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
        - **parameters:** :obj:`scale` :math:`()` or :math:`(H)` *(optional)*
    """

    renumbers = 'graph'
    scale: Tensor
    initial: Tensor

    def __init__(self, mask: Mask, scale: Tensor | float) -> None:
        super().__init__(mask)
        scale = as_numbers(None if isinstance(scale, Tensor) else torch.get_default_dtype(), scale=scale)
        check_scale(scale, mask.heads)
        if not scale.is_meta and not bool(scale.isfinite().all()):
            raise ArgumentError('scale', scale.tolist(), 'finite numbers')
        if scale.requires_grad and not isinstance(scale, torch.nn.Parameter):
            raise ArgumentError(
                'scale',
                'a tensor that requires a gradient, which a mask cannot learn',
                'a torch.nn.Parameter, and for other tensors the product with the operator, mask(graph) * scale',
            )
        self.heads = max(mask.heads, scale.numel())
        self.initial = scale.detach().clone()
        if isinstance(scale, torch.nn.Parameter):
            self.scale = scale
        else:
            self.register_buffer('scale', self.initial.clone())

    def of_head(self, head: int) -> Mask:
        mask = cast('ScaledMask', super().of_head(head))
        scale = self.scale if self.scale.dim() == 0 else self.scale[head : head + 1]
        vars(mask).update(_parameters={}, _buffers={'scale': scale})
        return mask

    def reset_parameters(self) -> None:
        super().reset_parameters()
        with torch.no_grad():
            self.scale.copy_(self.initial)

    def bind(self, graph: Graph, state: list[Any]) -> MaskOperator:
        # torch.compile would treat this as a product of two tensors.
        return self._bound(graph, state)[0].scaled(self.scale)


def _check_masks(masks: tuple[Any, ...], least: int) -> None:
    if len(masks) < least or not all(isinstance(mask, Mask) for mask in masks):
        given = [type(mask).__name__ for mask in masks]
        raise ArgumentError('masks', given, f'masks, {least} or more, as separate arguments', instance_of(*masks))
