import numpy as np
import torch
from numpy.typing import NDArray
from oracles import confidence, standard_scores
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask.masks.low_rank import StochasticRPEMask
from pyg_topomask.testing import assert_mask_operator


def sequences() -> Data:
    return Batch.from_data_list([Data(num_nodes=size) for size in (5, 0, 1, 7)])


def randomized(features: int = 6, gain: float = 0.4) -> StochasticRPEMask:
    torch.manual_seed(1)
    mask = StochasticRPEMask(2, 3, features, gain).double()
    torch.nn.init.uniform_(mask.frequency, 0.0, 0.5)
    torch.nn.init.uniform_(mask.phase, -1.0, 1.0)
    return mask


def expectation(mask: StochasticRPEMask, size: int) -> NDArray[np.float64]:
    """exp(sum_k g_k^2 cos(2 pi f_k (i - j) + theta_k))."""
    gain, frequency, phase = (
        parameter.detach().numpy()[:, :, None, None] for parameter in (mask.gain, mask.frequency, mask.phase)
    )
    offset = np.arange(size)[:, None] - np.arange(size)[None]
    return np.exp((gain**2 * np.cos(2 * np.pi * frequency * offset + phase)).sum(1))


def features(mask: StochasticRPEMask, position: Tensor) -> tuple[Tensor, Tensor]:
    """The random features of both sides, [H, N, r]."""
    sides = []
    for phase in (mask.phase, torch.zeros_like(mask.phase)):
        angle = 2 * torch.pi * mask.frequency.unsqueeze(1) * position.view(1, -1, 1) + phase.unsqueeze(1)
        vector = torch.cat([mask.gain.unsqueeze(1) * angle.cos(), mask.gain.unsqueeze(1) * angle.sin()], -1)
        exponent = torch.einsum('hns,rs->hnr', vector, mask.projection) - vector.square().sum(-1, keepdim=True) / 2
        sides.append(exponent.exp() / mask.projection.size(0) ** 0.5)
    return sides[0], sides[1]


def test_mean_over_projections_is_the_exponential() -> None:
    mask, data = randomized(), Data(num_nodes=6)
    samples = []
    for seed in range(400):
        mask.redraw(torch.Generator().manual_seed(seed))
        samples.append(mask(data).to_dense().detach().numpy())
    scores = standard_scores(np.stack(samples), expectation(mask, 6))
    assert np.abs(scores).max() < confidence(scores.size)
    assert np.abs(standard_scores(np.stack(samples), 1.1 * expectation(mask, 6))).max() > confidence(scores.size)


def test_operator_behaves_as_its_matrix() -> None:
    assert_mask_operator(randomized(), sequences())


def test_far_positions_keep_their_phase_in_single_precision() -> None:
    mask, data = randomized().float(), Data(num_nodes=100_001)
    mask.frequency.data.fill_(0.3)  # not a number of float32
    left = mask(data).low_rank.left.detach()
    expected = mask.double()(data).low_rank.left.detach()
    torch.testing.assert_close(left.double(), expected, atol=1e-4, rtol=1e-4)


def test_projections_are_functions_of_the_seed() -> None:
    assert torch.equal(StochasticRPEMask(seed=3).projection, StochasticRPEMask(seed=3).projection)
    assert not torch.equal(StochasticRPEMask(seed=3).projection, StochasticRPEMask(seed=4).projection)


def test_reset_draws_the_projection_of_the_seed() -> None:
    mask = StochasticRPEMask(2, seed=3)
    before = mask.projection.clone()
    mask.redraw()
    assert not torch.equal(mask.projection, before)
    mask.reset_parameters()
    assert torch.equal(mask.projection, before)
