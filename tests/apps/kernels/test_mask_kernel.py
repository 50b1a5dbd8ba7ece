"""Masks as covariance functions of GPyTorch, and samples of posteriors, compared with dense formulas in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from graphs import small_graph
from grids import at_night
from oracles import weight_matrix
from scipy.linalg import expm
from scipy.stats import norm
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import grid

pytest.importorskip('gpytorch')

import gpytorch

from pyg_topomask.apps.kernels import MaskKernel, sample_posterior
from pyg_topomask.masks import AdjacencyMask, GRFMask, HeatKernelMask, LowRankMask, Mask, PowerSeriesMask

TRAIN, TEST = np.array([0, 2, 5, 3]), np.array([1, 4])
Y = np.array([0.5, -1.0, 2.0, 0.3])
FACTORS = torch.randn(40, 3, generator=torch.Generator().manual_seed(1))
LAM, SCALE, NOISE = 0.7, 1.5, 0.2


class Process(gpytorch.models.ExactGP):
    def __init__(self, kernel: Any, x: Tensor, y: Tensor, likelihood: Any) -> None:
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ZeroMean()
        self.kernel = gpytorch.kernels.ScaleKernel(kernel)

    def forward(self, x: Tensor) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


def process(kernel: Any) -> Any:
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = NOISE
    model = Process(kernel, torch.from_numpy(TRAIN), torch.from_numpy(Y), likelihood).double()
    model.kernel.outputscale = SCALE
    return model


def heat() -> Any:
    """The heat kernel from the equation."""
    adjacency = weight_matrix(small_graph(), None)
    return SCALE * expm(-LAM * (np.diag(adjacency.sum(0)) - adjacency))


@pytest.mark.parametrize('cholesky', [True, False], ids=['cholesky', 'cg'])
def test_posterior_of_a_heat_kernel(cholesky: bool) -> None:
    model = process(MaskKernel(HeatKernelMask(lam=LAM).double(), small_graph()))
    model.eval()
    with (
        gpytorch.settings.max_cholesky_size(800 if cholesky else 0),
        gpytorch.settings.eval_cg_tolerance(1e-10),
        torch.no_grad(),
    ):
        posterior = model(torch.from_numpy(TEST))
        mean, covariance = posterior.mean.numpy(), posterior.covariance_matrix.numpy()
    kernel = heat()
    solved = np.linalg.solve(kernel[np.ix_(TRAIN, TRAIN)] + NOISE * np.eye(4), kernel[np.ix_(TRAIN, TEST)])
    np.testing.assert_allclose(mean, solved.T @ Y, atol=1e-6)
    np.testing.assert_allclose(covariance, kernel[np.ix_(TEST, TEST)] - kernel[np.ix_(TEST, TRAIN)] @ solved, atol=1e-6)


def test_marginal_likelihood_and_its_gradient() -> None:
    mask = HeatKernelMask(lam=LAM).double()
    model = process(MaskKernel(mask, small_graph()))
    model.train()
    x, y = torch.from_numpy(TRAIN), torch.from_numpy(Y)
    likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)(model(x), y)
    likelihood.backward()

    def expected(lam: float) -> float:
        adjacency = weight_matrix(small_graph(), None)
        kernel = SCALE * expm(-lam * (np.diag(adjacency.sum(0)) - adjacency))
        noisy = kernel[np.ix_(TRAIN, TRAIN)] + NOISE * np.eye(4)
        return float(-0.5 * (Y @ np.linalg.solve(noisy, Y) + np.linalg.slogdet(noisy)[1] + 4 * np.log(2 * np.pi)) / 4)

    assert float(likelihood.detach()) == pytest.approx(expected(LAM), abs=1e-6)
    slope = (expected(LAM + 1e-5) - expected(LAM - 1e-5)) / 2e-5 * (1 - np.exp(-LAM))  # of the softplus
    assert float(mask.raw_lam.grad) == pytest.approx(slope, abs=1e-5)


def test_training_steps_change_the_mask() -> None:
    mask = GRFMask(num_walks=8).double()
    model = process(MaskKernel(mask, small_graph()))
    x, y = torch.from_numpy(TRAIN), torch.from_numpy(Y)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    before, losses = mask.f.clone(), []
    for _ in range(5):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
    assert ((mask.f - before).abs() > 1e-3).all()


def test_diagonal_and_batch_of_heads() -> None:
    mask = PowerSeriesMask(3, parameterization='f').double()
    kernel, x = MaskKernel(mask, small_graph()), torch.from_numpy(TRAIN)
    dense = mask(small_graph()).to_dense()[:, TRAIN][:, :, TRAIN]
    torch.testing.assert_close(kernel(x).to_dense(), dense)
    torch.testing.assert_close(kernel(x, diag=True), dense.diagonal(dim1=1, dim2=2))
    torch.testing.assert_close(kernel(x.expand(3, 4).unsqueeze(-1)).to_dense(), dense)


@pytest.mark.parametrize('options', [{}, {'batch_shape': torch.Size([3])}], ids=['inputs', 'batch_shape'])
def test_batches_of_the_same_nodes(options: dict[str, Any]) -> None:
    mask = HeatKernelMask(lam=0.5).double()
    x = torch.from_numpy(TRAIN).unsqueeze(-1)
    x = x if options else x.expand(3, *x.shape)
    kernel = MaskKernel(mask, small_graph(), **options)
    dense = mask(small_graph()).to_dense()[:, TRAIN][:, :, TRAIN].expand(3, -1, -1)
    torch.testing.assert_close(kernel(x).to_dense(), dense)
    torch.testing.assert_close(kernel(x, diag=True), dense.diagonal(dim1=1, dim2=2))


@pytest.mark.parametrize('heads', [1, 3])
def test_batches_of_different_nodes(heads: int) -> None:
    """As RBFKernel of GPyTorch 1.15.2: [b, q, q] for inputs [b, q, 1]."""
    mask = PowerSeriesMask(heads, parameterization='f').double()
    kernel, dense = MaskKernel(mask, small_graph()), mask(small_graph()).to_dense().detach().numpy()
    left, right = np.array([[0, 2], [5, 1], [3, 3]]), np.array([[0, 1, 2], [3, 4, 5], [2, 2, 1]])
    expected = np.stack([dense[head % heads][np.ix_(left[head], right[head])] for head in range(3)])
    x1, x2 = (torch.from_numpy(nodes).unsqueeze(-1) for nodes in (left, right))
    np.testing.assert_allclose(kernel(x1, x2).to_dense().detach(), expected)
    same = kernel(x1).to_dense()
    np.testing.assert_allclose(kernel(x1, diag=True).detach(), same.diagonal(dim1=1, dim2=2).detach())
    assert all(gradient.any() for gradient in torch.autograd.grad(same.square().sum(), list(mask.parameters())))
    if heads == 1:  # one of the arguments may have fewer batch dimensions
        np.testing.assert_allclose(
            kernel(x1, x2[0]).to_dense().detach(), np.stack([dense[0][np.ix_(nodes, right[0])] for nodes in left])
        )


def test_posteriors_of_a_batch_of_candidates() -> None:
    """BoTorch 0.18.1's acquisition functions evaluate every candidate alone, [36, 1, 1]. Expected improvement picks what the
    dense kernel picks."""
    edge_index, _ = grid(6, 6)
    data = Data(edge_index=edge_index, num_nodes=36)
    adjacency = weight_matrix(data, None)
    kernel = SCALE * expm(-LAM * (np.diag(adjacency.sum(0)) - adjacency))
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = NOISE
    mask = MaskKernel(HeatKernelMask(lam=LAM).double(), data)
    model = Process(mask, torch.from_numpy(TRAIN).unsqueeze(-1), torch.from_numpy(Y), likelihood).double()
    model.kernel.outputscale = SCALE
    model.eval()
    with torch.no_grad():
        posterior = model(torch.arange(36).view(36, 1, 1))
    solved = np.linalg.solve(kernel[np.ix_(TRAIN, TRAIN)] + NOISE * np.eye(4), kernel[TRAIN])
    mean, variance = solved.T @ Y, kernel.diagonal() - (kernel[TRAIN] * solved).sum(0)
    np.testing.assert_allclose(posterior.mean.squeeze(-1), mean, atol=1e-6)
    np.testing.assert_allclose(posterior.variance.squeeze(-1), variance, atol=1e-6)

    def improvement(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        deviation = np.sqrt(variance)
        better = (mean - Y.max()) / deviation
        return deviation * (better * norm.cdf(better) + norm.pdf(better))

    picked = improvement(posterior.mean.squeeze(-1).numpy(), posterior.variance.squeeze(-1).numpy())
    assert picked.argmax() == improvement(mean, variance).argmax()


def test_errors_name_the_argument(subtests: pytest.Subtests) -> None:
    for mask, x, error in [
        (HeatKernelMask(), torch.tensor([0, 6]), 'x: got numbers from 0 to 6; accepted: nodes, whole numbers from 0 to 5'),
        (HeatKernelMask(), torch.tensor([0.5]), 'x: got fractions; accepted: nodes, whole numbers'),
        (HeatKernelMask(), torch.tensor([True, False]), r'x: got torch.bool; accepted: nodes, whole numbers; for a mask'),
        (HeatKernelMask(), torch.zeros(3, 2), r'x: got shape \(3, 2\); accepted: \[n, 1\]'),
        (
            HeatKernelMask(),
            torch.tensor([[[0], [1]], [[0], [6]]]),
            'x: got numbers from 0 to 6; accepted: nodes, whole numbers',
        ),
        (GRFMask(asymmetric='pairs', independent_ensembles=True), torch.tensor([0]), 'mask: got an asymmetric matrix'),
        (AdjacencyMask(), torch.tensor([0]), 'mask: got a matrix with an eigenvalue of at most'),
    ]:
        with subtests.test(mask=mask, x=x, error=error), pytest.raises(ValueError, match=f'^{error}'):
            MaskKernel(mask, small_graph())(x).to_dense()


def test_without_the_check_any_matrix_is_taken() -> None:
    mask, x = AdjacencyMask(self_loop=None).double(), torch.arange(6)  # with eigenvalues below 0
    dense = MaskKernel(mask, small_graph(), check=False)(x).to_dense()
    np.testing.assert_allclose(dense.detach(), weight_matrix(small_graph(), None))
    with pytest.raises(ValueError, match=r'^mask: got a matrix with an eigenvalue'):
        MaskKernel(mask, small_graph())(x).to_dense()


def test_samples_have_mean_and_covariance_of_the_posterior() -> None:
    covariance = SCALE * GRFMask(num_walks=8).double()(small_graph()).to_linear_operator().detach()
    kernel, number = covariance.to_dense().numpy(), 20_000
    generator = torch.Generator().manual_seed(0)
    samples = sample_posterior(covariance, torch.from_numpy(TRAIN), torch.from_numpy(Y), NOISE, number, generator).numpy()
    solved = np.linalg.solve(kernel[np.ix_(TRAIN, TRAIN)] + NOISE * np.eye(4), kernel[TRAIN])
    expected = kernel - kernel[:, TRAIN] @ solved
    spread = np.sqrt(expected.diagonal() / number)
    assert samples.shape == (number, 6)
    assert (np.abs(samples.mean(0) - solved.T @ Y) < 5 * spread).all()
    # The variance of a sample covariance of normal numbers.
    error = np.sqrt((expected**2 + np.outer(expected.diagonal(), expected.diagonal())) / number)
    assert (np.abs(np.cov(samples.T) - expected) < 5 * error).all()
    again = sample_posterior(covariance, torch.from_numpy(TRAIN), torch.from_numpy(Y), NOISE, 3, generator.manual_seed(1))
    same = sample_posterior(covariance, torch.from_numpy(TRAIN), torch.from_numpy(Y), NOISE, 3, generator.manual_seed(1))
    assert torch.equal(again, same)


@pytest.mark.parametrize(
    ('mask', 'scale'),
    [
        at_night(HeatKernelMask(lam=0.5), 1.0),
        at_night(2.0 * GRFMask(num_walks=8), 0.5),
        (GRFMask(num_walks=8) + HeatKernelMask(lam=0.5), 1.0),
        at_night(PowerSeriesMask(order=2, parameterization='f'), 0.5),
        (LowRankMask(left=FACTORS, right=FACTORS), 1.0),
    ],
    ids=['heat kernel', 'scaled', 'sum', 'power series', 'low rank'],
)
def test_samples_of_large_graphs_have_the_full_variance(mask: Mask, scale: float) -> None:
    edge_index, _ = grid(5, 8)
    covariance = mask(Data(edge_index=edge_index, num_nodes=40)).to_linear_operator() * scale
    kernel = covariance.to_dense().detach().double().numpy()
    number, generator = 4000, torch.Generator().manual_seed(0)
    with gpytorch.settings.max_cholesky_size(0), gpytorch.settings.max_root_decomposition_size(5):
        samples = sample_posterior(covariance, torch.tensor([3]), torch.ones(1), torch.tensor([0.1]), number, generator)
    expected = kernel.diagonal() - kernel[:, 3] ** 2 / (kernel[3, 3] + 0.1)
    assert samples.dtype == torch.float32
    np.testing.assert_allclose(samples.numpy().var(0), expected, rtol=5 * (2 / number) ** 0.5)


def test_wrong_arguments_of_samples(subtests: pytest.Subtests) -> None:
    for change, error in [
        ({'y': torch.ones(3)}, r'y: got shape \(3,\); accepted: \[4\]'),
        ({'y': Y}, 'y: got ndarray; accepted: tensors'),
        ({'y': torch.tensor([0.0, torch.nan, 1.0, torch.inf])}, 'y: got nan; accepted: finite numbers'),
        ({'nodes': [0, 1, 2, 3]}, 'nodes: got list; accepted: tensors'),
        ({'nodes': torch.zeros(4, 1, dtype=torch.long)}, r'nodes: got shape \(4, 1\); accepted: \[n\]'),
        ({'nodes': torch.tensor([0, 1, 2, 6])}, 'nodes: got numbers from 0 to 6; accepted: nodes'),
        ({'nodes': torch.ones(4)}, r'nodes: got torch.float32; accepted: int32 and int64'),
        ({'nodes': torch.ones(4, dtype=torch.bool)}, r'nodes: got torch.bool; .*nonzero'),
        ({'noise': 0.0}, 'noise: got 0.0'),
        ({'noise': torch.ones(2)}, 'noise: got tensor'),
        ({'num_samples': 0}, 'num_samples: got 0'),
        ({'covariance': GRFMask()(small_graph())}, r'covariance: got \w+; accepted: .*to_linear_operator'),
        ({'covariance': GRFMask(2)(small_graph()).to_linear_operator()}, r'covariance: got shape \(2, 6, 6\)'),
    ]:
        with subtests.test(change=change, error=error):
            covariance = GRFMask()(small_graph()).to_linear_operator()
            given = {'covariance': covariance, 'nodes': torch.from_numpy(TRAIN), 'y': torch.from_numpy(Y), 'noise': NOISE}
            with pytest.raises(ValueError, match=f'^{error}'):
                sample_posterior(**given | change)
