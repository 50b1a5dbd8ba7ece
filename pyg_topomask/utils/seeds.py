r"""Seeds of torch's global generators."""

from __future__ import annotations

import torch


def seed_torch(seed: int) -> None:
    r"""Seeds torch's global generators as :func:`torch.manual_seed` does. Without a GPU, it is fast enough for every graph:
    :func:`torch.manual_seed` formats the Python stack until an accelerator starts.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)
