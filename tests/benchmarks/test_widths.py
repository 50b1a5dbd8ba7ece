"""Models that are compared have as many parameters."""

import pytest
import torch

from benchmarks.harness import count_parameters, nearest_width
from benchmarks.kmip_accuracy import CLOUDS
from benchmarks.kmip_models import ATTENTIONS, CONVOLUTIONS, REFERENCE, Job, make_model
from benchmarks.kmip_objects import objects
from benchmarks.kmip_peptides import peptides


def test_nearest_width():
    def make(width: int) -> torch.nn.Linear:
        return torch.nn.Linear(width, width)

    assert count_parameters(make(3)) == 12
    assert [nearest_width(make, target, range(1, 9)) for target in (0, 12, 15, 17, 10_000)] == [1, 3, 3, 4, 8]
    # 16 lies between 12 and 20: the smaller width.
    assert nearest_width(make, 16, range(1, 9)) == 3


@pytest.mark.parametrize('task', [CLOUDS, objects(''), peptides('')], ids=['clouds', 'objects', 'peptides'])
def test_models_beside_k_mip_are_as_large(task):
    sizes = {name: count_parameters(make_model(Job(name), task)) for name in (*CONVOLUTIONS, *ATTENTIONS)}
    assert max(sizes.values()) < 1.1 * sizes[REFERENCE]
    assert min(sizes.values()) > 0.9 * sizes[REFERENCE]
