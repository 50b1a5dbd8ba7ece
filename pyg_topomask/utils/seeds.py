r"""Seeds of torch's global generators."""

from __future__ import annotations

import torch


def seed_torch(seed: int) -> None:
    r"""Seeds torch's global generators as :func:`torch.manual_seed` does. Without an accelerator, it is fast enough for every
    graph: :func:`torch.manual_seed` formats the Python stack until one starts.
    """
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)
