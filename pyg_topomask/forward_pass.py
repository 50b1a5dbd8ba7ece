r"""What is drawn anew in every forward pass."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch


class ForwardPass:
    r"""States that are drawn anew in every forward pass. All users of the pass share them.

    A graph is not told when a forward pass begins. A new pass begins when a user enters for the second time. Activation
    checkpointing repeats a call within a pass. Such a call draws the same number from torch's global generator as before, which
    is how it is told from a second call.
    """

    def __init__(self) -> None:
        self._calls: dict[int, tuple[int, object]] = {}
        self._states: dict[Hashable, Any] = {}
        self._generator = torch.Generator()

    def enter(self, user: object) -> None:
        r"""Takes part in the pass, before asking for states.

        Args:
            user (object): The mask that asks.
        """
        number = int(torch.randint(2**62, ()))
        known = self._calls.get(id(user))
        if known is not None and known[0] != number:
            self._calls.clear()
            self._states.clear()
        if not self._calls:
            self._generator.manual_seed(number)
        self._calls[id(user)] = number, user  # kept alive, or else its id might be another's

    def state(self, settings: Hashable, draw: Callable[[torch.Generator], Any]) -> Any:
        r"""Returns the state of :obj:`settings` in this pass, drawn when it is first asked for."""
        if settings not in self._states:
            self._states[settings] = draw(self._generator)
        return self._states[settings]
