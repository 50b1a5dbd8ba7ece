"""Models that are compared have as many parameters."""

import pytest
import torch
from grids import at_night

from benchmarks import kmip_accuracy, kmip_objects, kmip_peptides, tu
from benchmarks.harness import count_parameters, nearest_width
from benchmarks.kmip_accuracy import CLOUDS
from benchmarks.kmip_models import ATTENTIONS, CONVOLUTIONS, REFERENCE, Job, make_model
from benchmarks.kmip_objects import objects
from benchmarks.kmip_peptides import peptides
from pyg_topomask.graphs.graph import Graph


def test_nearest_width():
    def make(width: int) -> torch.nn.Linear:
        return torch.nn.Linear(width, width)

    assert count_parameters(make(3)) == 12
    assert [nearest_width(make, target, range(1, 9)) for target in (0, 12, 15, 17, 10_000)] == [1, 3, 3, 4, 8]
    # 16 lies between 12 and 20: the smaller width.
    assert nearest_width(make, 16, range(1, 9)) == 3


@pytest.mark.parametrize(
    ('task', 'training'),
    [
        at_night(CLOUDS, kmip_accuracy.FULL),
        at_night(CLOUDS, kmip_accuracy.THESIS),
        (objects(''), kmip_objects.FULL),
        at_night(peptides(''), kmip_peptides.FULL),
    ],
    ids=['clouds', 'clouds, as in the thesis', 'objects', 'peptides'],
)
def test_models_beside_k_mip_are_as_large(task, training):
    job = Job(REFERENCE, kq_dim=training.kq_dim)
    sizes = {
        name: count_parameters(make_model(job._replace(model=name), task, training)) for name in (*CONVOLUTIONS, *ATTENTIONS)
    }
    assert max(sizes.values()) < 1.1 * sizes[REFERENCE]
    assert min(sizes.values()) > 0.9 * sizes[REFERENCE]


@pytest.mark.parametrize('name', tu.CONVOLUTIONS)
def test_models_beside_gkat_read_the_edges_but_for_one(name):
    model = tu._model(tu.Job('ENZYMES', name, 0), 3, 2).eval()
    x, edges = torch.rand(5, 3), torch.tensor([[0, 1, 2], [1, 0, 3]])
    with_edges, without = (model(x, graph=Graph(each, 5)) for each in (edges, edges[:, :0]))
    assert torch.equal(with_edges, without) == (name == tu.NO_GRAPH)
