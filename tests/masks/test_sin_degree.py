"""Masks of degrees: Eq. 10, and what they make of degrees that are large, given or new."""

import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from forked import Forked
from graphs import GRAPH_NAMES, GRAPHS, small_graph
from grids import covering
from numpy.typing import NDArray
from oracles import as_numpy, same_graph
from torch_geometric.data import Batch, Data

from pyg_topomask.masks import AdjacencyMask, GRFMask
from pyg_topomask.masks.sin_degree import SinDegreeMask
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.testing import assert_mask_operator

Matrix = NDArray[np.float64]


def degrees(data: Data, flow: str | None) -> NDArray[np.int64]:
    edges, _, num_nodes, _ = as_numpy(data, 'target_to_source')
    degree = np.zeros(num_nodes, dtype=np.int64)
    for source, target in edges.T:
        degree[source] += flow in ('target_to_source', None)
        degree[target] += flow in ('source_to_target', None)
    return degree


def row(degree: int, max_degree: int) -> int:
    """The row of the table: one for each degree, then one for each doubling."""
    index = max_degree
    bound = max_degree + 1
    while degree >= bound:
        index, bound = index + 1, 2 * bound
    return min(degree, max_degree) if index == max_degree else index


def matrix(mask: SinDegreeMask, degree: NDArray[np.int64], rows: Callable[[int], int] = lambda index: index) -> Matrix:
    """sin(pi / 4 (z_i + z_j)) for every head."""
    embedding, weight = mask.embedding.detach().double().numpy(), mask.weight.detach().double().numpy()
    indices = [rows(row(int(d), mask.max_degree)) for d in degree]
    z = 1 / (1 + np.exp(-embedding[indices] @ weight.T)) if indices else np.zeros((0, len(weight)))
    return np.sin(np.pi / 4 * (z.T[:, :, None] + z.T[:, None, :]))


@pytest.mark.parametrize(('max_degree', 'flow'), covering([0, 2, 512], ['source_to_target', 'target_to_source', None]))
@pytest.mark.parametrize('graph', GRAPH_NAMES)
def test_mask_is_the_sine_of_the_sum_of_centralities(graph: str, max_degree: int, flow: str | None) -> None:
    data = GRAPHS[graph]()
    mask = SinDegreeMask(2, max_degree, 5, flow).double()
    expected = matrix(mask, degrees(data, flow)) * same_graph(data)
    np.testing.assert_allclose(mask(data).to_dense().detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize('graph', GRAPH_NAMES)
def test_operator_behaves_as_its_matrix(graph: str) -> None:
    assert_mask_operator(SinDegreeMask(2, 3), GRAPHS[graph]())


def test_hadamard_products_with_other_masks() -> None:
    data = small_graph()
    mask, walks = SinDegreeMask(2).double(), GRFMask(2, 8).double()
    for factor in (walks, AdjacencyMask(2).double(), SinDegreeMask(2).double()):
        expected = mask(data).to_dense() * factor(data).to_dense()
        torch.testing.assert_close((mask * factor)(data).to_dense(), expected)
        torch.testing.assert_close((factor * mask)(data).to_dense(), expected)


def test_entries_are_positive_and_at_most_one() -> None:
    mask = SinDegreeMask(3)
    torch.nn.init.normal_(mask.weight, std=20.0)
    dense = mask(GRAPHS['undirected']()).to_dense()
    assert dense.min() > -1e-6
    assert dense.max() <= 1 + 1e-6


@pytest.mark.parametrize('max_degree', [0, 1, 7, 512])
def test_every_degree_up_to_the_largest_has_its_own_embedding_and_larger_ones_share(max_degree: int) -> None:
    degree = torch.tensor([0, 1, 2, 6, 7, 8, 15, 16, 511, 512, 513, 1025, 1026, 10**6, 2**40, 2**62, 2**63 - 1])
    mask = SinDegreeMask(max_degree=max_degree, embedding_dim=1)
    with torch.no_grad():
        mask.weight.fill_(1.0)
        mask.initial.copy_(torch.linspace(-3.0, 3.0, mask.initial.size(0)).unsqueeze(1))
    expected = mask.embedding.sigmoid()[[row(int(d), max_degree) for d in degree]]
    torch.testing.assert_close(mask.centrality(degree), expected)


def star(leaves: int) -> Data:
    edges = torch.stack([torch.arange(1, leaves + 1), torch.zeros(leaves, dtype=torch.long)])
    return Data(edge_index=edges, num_nodes=leaves + 1)


def step(mask: SinDegreeMask, data: Data, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    mask(data).to_dense().sum().backward()
    optimizer.step()


def test_unseen_degrees_take_the_nearest_seen_in_training() -> None:
    unseen = Data(edge_index=torch.tensor([[4] * 78, [0] * 4 + [1] * 5 + [2] * 9 + [3] * 60]), num_nodes=5)
    mask = SinDegreeMask(2, 20).double()
    fresh = copy.deepcopy(mask).eval()
    np.testing.assert_allclose(
        fresh(unseen).to_dense().detach().numpy(), matrix(fresh, degrees(unseen, 'source_to_target')), atol=1e-12
    )
    step(mask, star(9), torch.optim.SGD(mask.parameters(), 0.1))
    assert mask.seen.nonzero().flatten().tolist() == [0, 9]
    mask.eval()
    nearest = {4: 0, 5: 9, 9: 9, 22: 9, 0: 0}
    expected = matrix(mask, degrees(unseen, 'source_to_target'), lambda index: nearest[index])
    np.testing.assert_allclose(mask(unseen).to_dense().detach().numpy(), expected, atol=1e-12)
    restored = SinDegreeMask(2, 20).double().eval()
    restored.load_state_dict(mask.state_dict())
    torch.testing.assert_close(restored(unseen).to_dense(), mask(unseen).to_dense())
    mask.reset_parameters()
    assert not mask.seen.any()


@pytest.mark.parametrize('kind', [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_weight_decay_leaves_embeddings_of_unseen_degrees(kind: type[torch.optim.Optimizer]) -> None:
    mask = SinDegreeMask(1, 20)
    before = mask.embedding.detach().clone()
    optimizer = kind(mask.parameters(), lr=0.1, weight_decay=0.1)
    for leaves in (9, 9, 4):
        step(mask, star(leaves), optimizer)
    assert mask.seen.nonzero().flatten().tolist() == [0, 4, 9]
    assert (mask.embedding != before).any(1).nonzero().flatten().tolist() == [0, 4, 9]


@pytest.mark.parametrize('max_degree', [0, 1, 6, 512])
def test_nearest_is_by_degree_also_in_buckets(max_degree: int) -> None:
    degree = np.array([0, 1, 2, 3, 5, 9, 30, 500, 512, 513, 600, 1000, 2000, 2302, 2303, 3000, 4104, 5000, 10**6, 2**40, 2**62])
    last = row(2**63 - 1, max_degree)
    smallest = [index if index <= max_degree else (max_degree + 1) << (index - max_degree - 1) for index in range(last + 1)]
    largest = [index - 1 for index in smallest[1:]] + [2**63 - 1]
    for seen in ([row(500, max_degree), row(4104, max_degree)], [0], [last], [row(3, max_degree), row(10**6, max_degree)]):
        mask = SinDegreeMask(2, max_degree).double()
        with torch.no_grad():
            mask.offset[seen] = torch.randn(len(seen), 16, dtype=torch.double)
        # Python's integers, which do not overflow; min takes the first of equals, the smaller degree.
        distance = [
            {index: max(smallest[index] - int(d), int(d) - largest[index], 0) for index in sorted(seen)} for d in degree
        ]
        nearest = [min(distance_to, key=lambda place: distance_to[place]) for distance_to in distance]
        z = 1 / (1 + np.exp(-mask.embedding.detach().numpy()[nearest] @ mask.weight.detach().numpy().T))
        np.testing.assert_allclose(mask.eval().centrality(torch.from_numpy(degree)).detach().numpy(), z, atol=1e-12)


#: Each of two processes sees one star, whose leaves number 3 and 6.
SCRIPT = """
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from pyg_topomask.nn import SinDegreeAttention

torch.set_num_threads(1)
rank = int(sys.argv[2])
dist.init_process_group('gloo', init_method=f'file://{sys.argv[1]}/store', rank=rank, world_size=2)
layer = SinDegreeAttention(4)
leaves = torch.arange(1, (4, 7)[rank])
edges = torch.stack([leaves, torch.zeros_like(leaves)])
model = DistributedDataParallel(layer)
optimizer = torch.optim.Adam(model.parameters(), 0.1, weight_decay=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(len(leaves) + 1, 4), torch.cat([edges, edges.flip(0)], dim=1)).square().sum().backward()
    optimizer.step()
degree = torch.tensor([1, 2, 3, 4, 5, 6, 9])
torch.save((layer.mask.seen, layer.mask.eval().centrality(degree).detach()), f'{sys.argv[1]}/{rank}.pt')
del model  # if it outlived the group here, it would free the group with the GIL held, which can deadlock with gloo's threads
dist.destroy_process_group()
"""


def test_degrees_that_any_process_saw_are_seen(tmp_path: Path) -> None:
    (tmp_path / 'script.py').write_text(SCRIPT)
    processes = [Forked(str(tmp_path / 'script.py'), str(tmp_path), str(rank)) for rank in range(2)]
    ends = [process.wait() for process in processes]
    assert [status for status, _, _ in ends] == [0, 0], '\n'.join(stderr for _, _, stderr in ends)
    results = [torch.load(tmp_path / f'{rank}.pt', weights_only=True) for rank in range(2)]
    assert [seen.nonzero().flatten().tolist() for seen, _ in results] == [[1, 3, 6]] * 2
    z = results[0][1]
    assert torch.equal(z, results[1][1])
    assert torch.equal(z, z[[0, 0, 2, 2, 5, 5, 5]])


def test_degrees_of_the_data() -> None:
    mask, data = SinDegreeMask(2, degree_attr='degree').double(), small_graph()
    data.degree = torch.tensor([3, 1, 4, 1, 5, 900])
    np.testing.assert_allclose(mask(data).to_dense().detach().numpy(), matrix(mask, data.degree.numpy()), atol=1e-12)
    batch = Batch.from_data_list([data, data])
    torch.testing.assert_close(mask(batch).to_dense()[0], torch.block_diag(*[mask(data).to_dense()[0]] * 2))


def test_heads_learn_apart_and_gradients_reach_every_parameter() -> None:
    mask, data = SinDegreeMask(2), small_graph()
    dense = mask(data).to_dense()
    assert not torch.allclose(dense[0], dense[1])
    dense.square().sum().backward()
    assert mask.offset.grad[2].any()
    assert mask.weight.grad.any(1).all()
    assert not mask.offset.grad[7].any()


def test_half_precision_and_autocast() -> None:
    data, q = small_graph(), torch.rand(6, 2, 4)
    expected = masked_linear_attention(q, q, q, SinDegreeMask(2)(data))
    with torch.autocast('cpu', torch.bfloat16):
        torch.manual_seed(0)
        mask = SinDegreeMask(2)
        assert mask(data).low_rank.left.dtype == torch.float32
        assert masked_linear_attention(q, q, q, mask(data)).isfinite().all()
    assert expected.isfinite().all()
    assert SinDegreeMask(2).bfloat16()(data).low_rank.left.dtype == torch.float32


def test_bad_degrees_are_named(subtests: pytest.Subtests) -> None:
    for degree in [None, [1] * 6, torch.ones(6), torch.ones(5, dtype=torch.long), torch.tensor([0, 1, 2, 3, 4, -1])]:
        with subtests.test(degree=degree):
            data = small_graph()
            data.degree = degree
            with pytest.raises(ValueError, match=r'^degree_attr: got'):
                SinDegreeMask(degree_attr='degree')(data)


@pytest.mark.parametrize('degree', [torch.tensor([3, -1]), torch.tensor([1.0])])
def test_centrality_of_no_degree_is_refused(degree: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=r'^degree: got degree.*; accepted: integers from 0'):
        SinDegreeMask().centrality(degree)


@pytest.mark.parametrize('kind', [np.int32, np.int64])
def test_largest_degree_may_be_of_numpy(kind: type[np.integer]) -> None:
    degree = torch.tensor([0, 1, 512, 513, 5000, 10**12, 2**62])
    assert torch.equal(SinDegreeMask(max_degree=kind(512))._row(degree), SinDegreeMask(max_degree=512)._row(degree))
