r"""The states of masks that a graph keeps: what is prepared once and shared between layers, or resampled in every pass."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from pyg_topomask.utils.checks import check_generator
from pyg_topomask.utils.functorch import kept, outside_transforms

# How many passes keep their seeds: a layer may be called this often in one forward pass with checkpointing.
_PASSES = 64


class _Pass:
    def __init__(self, seed: int) -> None:
        self.calls: dict[tuple[int, int], object] = {}
        self.states: dict[Hashable, Any] = {}
        self.seeds: dict[Hashable, int] = {}
        self.generator = torch.Generator().manual_seed(seed)

    def holds(self, user: object) -> bool:
        return any(identity == id(user) for identity, _ in self.calls)


class ForwardPass:
    r"""States that are resampled in every forward pass, and shared within it.

    A graph cannot detect the start of a forward pass. A new pass starts when a user enters for the second time. Activation
    checkpointing repeats a call of an earlier pass. Such a call draws the same number from torch's global generator again, and
    receives the states of its pass. The last two passes keep their states, and earlier ones the seeds of them.
    """

    #: Whether every user starts a new pass. Reentrant checkpointing repeats a call with other tensors, and so on another graph.
    #: The states must then depend on the number that the call draws alone.
    of_one_call = False

    def __init__(self) -> None:
        self._passes: deque[_Pass] = deque(maxlen=_PASSES)
        self._current = _Pass(0)

    @outside_transforms
    def enter(self, user: object) -> None:
        r"""Enters the pass, before a user, such as a mask, requests states."""
        number = int(torch.randint(2**62, ()))
        call = id(user), number
        repeated = next((each for each in self._passes if call in each.calls), None)
        if repeated is not None:
            self._current = repeated
            return
        if self.of_one_call or not self._passes or self._passes[-1].holds(user):
            self._passes.append(_Pass(number))
            if len(self._passes) > 2:
                self._passes[-3].states.clear()
        self._current = self._passes[-1]
        self._current.calls[call] = user  # kept alive, because its id could be reused otherwise

    @outside_transforms
    def state(self, settings: Hashable, draw: Callable[[torch.Generator], Any]) -> Any:
        r"""Returns the state of :obj:`settings` in this pass, created at the first request."""
        states, seeds, generator = self._current.states, self._current.seeds, self._current.generator
        if settings not in seeds:
            seeds[settings] = int(torch.randint(2**62, (), generator=generator))
        if settings not in states:
            states[settings] = draw(torch.Generator().manual_seed(seeds[settings]))
        return states[settings]


Kept = TypeVar('Kept', bound='States')
Value = TypeVar('Value')


class HasState(Protocol):
    r"""What a graph asks of a mask, see :class:`~pyg_topomask.masks.Mask`."""

    @property
    def renumbers(self) -> str | None: ...

    @property
    def fresh(self) -> bool: ...

    @property
    def parts(self) -> Sequence[HasState]: ...

    def settings(self) -> Hashable: ...

    def prepare(self, graph: Any, generator: torch.Generator | None = None) -> Any: ...


def _renumbers(mask: HasState, ways: Collection[str]) -> bool:
    r"""Returns whether a mask can be prepared on a graph with other node numbers in one of these ways."""
    return mask.renumbers in ways and all(_renumbers(part, ways) for part in mask.parts)


# No ABC, on which torch.compile does not trace functools.singledispatch.
class States:
    r"""The states that a graph keeps. States that gradients flow through, and those of a generator, are not kept."""

    edge_index: Tensor
    edge_weight: Tensor | None
    #: A weak reference to the graph that this one renumbers, the numbers of the nodes there, and the places of those here, see
    #: :meth:`near`.
    given: Any = None
    order: Tensor | None = None
    place: Tensor | None = None
    #: The graph whose edges have other weights here, see :meth:`with_weights`.
    unweighted: Any = None

    def _forget(self) -> None:
        #: States that are resampled in every forward pass.
        self.forward_pass = ForwardPass()
        self._states: dict[Hashable, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Without the graph of near, which refers to this one and is made anew.
        return self.__dict__ | {'_states': {key: state for key, state in self._states.items() if key != 'near'}}

    def near(self: Kept, mask: HasState, generator: torch.Generator | None = None) -> Kept | None:
        r"""Returns the same graph with other node numbers, by which neighbors are near in memory: if the mask can be prepared
        on it, the graph is large, and most of its edges come nearer. Otherwise, and for states that are not kept, returns
        :obj:`None`. torch.compile takes the graph that an earlier call made.
        """
        if generator is not None or self._states.get('near', self) is None:
            return None
        # The state of a head is that of its own weights, and of no graph that is kept.
        ways = ['graph'] if self.edge_weight is not None and self.edge_weight.dim() > 1 else ['graph', 'state']
        if mask.fresh or not _renumbers(mask, ways) or self.edge_index.device.type != 'cpu':
            return None
        if torch.compiler.is_compiling() and not self.has_cached('near'):
            return None
        return self.cached('near', self._renumbered)

    def _renumbered(self: Kept) -> Kept | None:
        raise NotImplementedError

    def state(self, mask: HasState, generator: torch.Generator | None = None) -> Any:
        r"""Returns the state of a mask on this graph: what does not depend on its parameters, such as walks. Masks with equal
        :meth:`~pyg_topomask.masks.Mask.settings` share it, unless a generator is given. The state of a composed mask is the
        list of those of its parts.
        """
        if generator is not None:
            check_generator(generator)
        elif mask.fresh:
            self.forward_pass.enter(mask)
        return self._state(mask, generator)

    def _state(self, mask: HasState, generator: torch.Generator | None = None) -> Any:
        if mask.parts:
            return [self._state(part, generator) for part in mask.parts]
        learned = self.edge_weight is not None and self.edge_weight.requires_grad
        if generator is not None or learned:
            return self._prepared(mask, generator)
        if mask.fresh:
            return self.forward_pass.state(mask.settings(), partial(self._prepared, mask))
        key = mask.settings()
        if key not in self._states:
            self._states[key] = self._prepared(mask)
        return self._states[key]

    @outside_transforms
    def _prepared(self, mask: HasState, generator: torch.Generator | None = None) -> Any:
        # A state may outlive the call. A state created in inference mode could not be used for training later.
        with torch.inference_mode(False):
            return self._prepare(mask, generator)

    def _prepare(self, mask: HasState, generator: torch.Generator | None = None) -> Any:
        if self.given is not None and mask.renumbers == 'state':
            return self.given()._state(mask).renumbered(self.place)
        return mask.prepare(self) if generator is None else mask.prepare(self, generator)

    def has_state(self, mask: HasState) -> bool:
        r"""Returns whether nothing is left to prepare for a mask."""
        return (self.near(mask) or self)._has_state(mask)

    def _has_state(self, mask: HasState) -> bool:
        if mask.parts:
            return all(map(self._has_state, mask.parts))
        return not mask.fresh and self.has_cached(mask.settings())

    def has_cached(self, key: Hashable) -> bool:
        r"""Returns whether the graph has something under a key: a state, or what :meth:`cached` made."""
        return key in self._states

    def cached(self, key: Hashable, make: Callable[[], Value]) -> Value:
        r"""Returns what a function makes, the same at every call with an equal key."""
        return self._states[key] if key in self._states else kept(self._states, key, make)

    def cached_of_edges(self, key: Hashable, make: Callable[[], Value]) -> Value:
        r"""Returns what a function makes of the edges without their weights. Graphs that :meth:`with_weights` returns share it,
        and others do not keep it.
        """
        return make() if self.unweighted is None else self.unweighted.cached(key, make)
