"""State dictionaries as safetensors stores them, which takes contiguous tensors that share no memory, and nothing else."""

from collections import Counter

import pytest
import torch
from public_modules import MODULES
from torch import Tensor


@pytest.mark.parametrize('name', MODULES)
def test_state_dict(name: str) -> None:
    state = MODULES[name]().state_dict()
    assert all(isinstance(value, Tensor) and value.is_contiguous() for value in state.values())
    stored = Counter(value.untyped_storage().data_ptr() for value in state.values() if value.numel() > 0)
    assert set(stored.values()) <= {1}
    copied = {key: value.clone() for key, value in state.items()}
    loaded = MODULES[name]()
    loaded.load_state_dict(copied)
    for key, value in loaded.state_dict().items():
        torch.testing.assert_close(value, state[key], rtol=0, atol=0)
