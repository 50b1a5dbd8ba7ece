"""State dictionaries as safetensors stores them, which takes contiguous tensors that share no memory, and nothing else."""

from collections import Counter

import torch
from public_modules import MODULES
from torch import Tensor


def test_state_dicts() -> None:
    for name, make in MODULES.items():
        state = make().state_dict()
        assert all(isinstance(value, Tensor) and value.is_contiguous() for value in state.values()), name
        stored = Counter(value.untyped_storage().data_ptr() for value in state.values() if value.numel() > 0)
        assert set(stored.values()) <= {1}, name
        loaded = make()
        loaded.load_state_dict({key: value.clone() for key, value in state.items()})
        assert all(torch.equal(value, state[key]) for key, value in loaded.state_dict().items()), name
