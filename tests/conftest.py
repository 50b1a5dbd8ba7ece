import gc
import sys
import warnings
from pathlib import Path

import pytest
import torch

# Helper modules (graphs, oracles) are imported by name from every test directory.
sys.path.insert(0, str(Path(__file__).parent))

# They register a device in the process that imports them, which pytest would do to find their doctests.
collect_ignore = ['pretended_device.py', 'pretended_run.py']

# The tensors of the tests are tiny: threads would wait for each other more than they compute.
torch.set_num_threads(1)

# torch warns of sparse tensors once in a process. Tests that count warnings do not count this one.
with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    torch.eye(1).to_sparse_csr()


def pytest_collection_finish() -> None:
    """What is imported stays: a collection of garbage, of which a training makes one, takes long to look through it."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)
