r"""States that are resampled in every forward pass."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

import torch

from pyg_topomask.utils.functorch import outside_transforms

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
