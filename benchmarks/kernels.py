r"""Masks as graph kernels: Gaussian processes and support vector machines, compared with dense kernels and fast-graph-gp."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import gpytorch
import numpy as np
import torch
from grf_gp.kernels import GeneralGRFKernel
from grf_gp.sampler import GRFSampler
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import laplacian
from sklearn.cluster import KMeans
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Hyperparameter, Kernel, WhiteKernel
from sklearn.metrics import normalized_mutual_info_score
from sklearn.preprocessing import normalize
from sklearn.svm import SVC
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import from_scipy_sparse_matrix

from benchmarks.graphs import random_graph
from benchmarks.harness import compare, data_folder, each, interleaved_medians, kept_runs, run_all, show, write_table
from pyg_topomask.apps.datasets.public_files import cut_patch, read_mesh
from pyg_topomask.apps.kernels import GraphRandomFeatures, MaskKernel, sample_posterior
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask, HeatKernelMask, PowerSeriesMask, modulation

__all__ = ['run', 'speed']

Array = NDArray[Any]

DENSE, MEAN = 'scikit-learn, dense kernel', 'mean of what is known'
EXACT, WALKS, PEER = 'HeatKernelMask', 'GRFMask', 'fast-graph-gp'
FEATURES = 'GraphRandomFeatures'
REGRESSION = ('traffic', 'mesh')
METHODS = {
    'traffic': (DENSE, EXACT, WALKS, PEER, MEAN),
    'mesh': (DENSE, EXACT, WALKS, MEAN),
    'departments': (DENSE, FEATURES),
    'clusters': (DENSE, FEATURES),
}
METRICS = {
    'traffic': 'error in miles per hour',
    'mesh': 'mean cosine',
    'departments': 'accuracy',
    'clusters': 'mutual information',
}
#: Walks per node, hops, the share of walks that halt before a hop, and the initial time of heat kernels, by task.
SETTINGS = {'traffic': (64, 10, 0.1, 2.0), 'mesh': (64, 16, 0.1, 5.0), 'departments': (256, 20, 0.05, 8.0)}
SETTINGS['clusters'] = SETTINGS['departments']
TIMES, VERTICES, KNOWN, STEPS, RATE, SEEDS = 32, 1000, 0.05, 40, 0.15, 3

SIZES, SERIES, REPEATS, KNOWN_AT_MOST = (1_000, 10_000, 100_000, 1_000_000), 'PowerSeriesMask', 3, 50_000
#: The largest number of nodes of each method, by task.
LIMITS = {
    'product': {DENSE: 10_000, WALKS: 1_000_000, SERIES: 100_000, EXACT: 1_000_000, PEER: 10_000},
    'features': {DENSE: 1_000, FEATURES: 1_000_000, PEER: 10_000},
    'posterior': {DENSE: 10_000, WALKS: 100_000},
    'sample': {DENSE: 1_000, WALKS: 100_000},
    'training step': {DENSE: 1_000, WALKS: 100_000},
}
#: The number of walks, hops, and the share of walks that halt before a hop.
SPEED_WALKS = (8, 10, 0.5)


def run(quick: bool, folder: Path) -> None:
    seeds = 2 if quick else SEEDS
    settings = {'steps': 3 if quick else STEPS, 'vertices': 200 if quick else VERTICES}
    jobs = [(task, method, seed) for task, methods in METHODS.items() for method in methods for seed in range(seeds)]
    path = kept_runs(folder, 'kernels', quick)
    scores = run_all(jobs, partial(_score, settings=settings), settings, path, processes=1)
    rows: list[dict[str, object]] = []
    for task, methods in METHODS.items():
        reference = [scores[task, DENSE, seed] for seed in range(seeds)]
        for method in methods:
            values = [scores[task, method, seed] for seed in range(seeds)]
            sign = -1.0 if task == 'traffic' else 1.0  # of an error, less is better
            gap = compare([sign * x for x in values], [sign * x for x in reference], 'gain over dense', method == DENSE)
            rows.append({'task': task, 'metric': METRICS[task], 'method': method, 'value': show(values)})
            rows[-1] |= {**gap, 'seeds': each(values)}
    texts = '; '.join(f'{task} {", ".join(map(str, values))}' for task, values in SETTINGS.items())
    note = (
        f'"traffic": speeds at a quarter of the 207 sensors of Los-loop from those at the others, at {TIMES} times; the kernel '
        f'is learned from {TIMES} earlier times without these sensors. "mesh": normals of {VERTICES:,} vertices of a patch of '
        f'the Stanford bunny, 5 % of which are known. Both are Gaussian processes whose kernel and noise are learned by '
        f'marginal likelihood: GaussianProcessRegressor by L-BFGS, the others by {STEPS} steps of Adam with GPyTorch. Heat '
        f'kernels learn one time; kernels of walks learn a modulation of each hop, which starts at a heat kernel. '
        f'"departments": the 42 departments of email-Eu-core, by SVC with half of the nodes for training. "clusters": the same '
        f'departments by k-means with 42 clusters. The heat kernel is given there, and rows of features have length 1. Walks a '
        f'node, hops, p_halt and time: {texts}. Mean and standard error of {seeds} seeds, which choose what is known and the '
        f'walks. Gains are paired by seed, in the units of the metric; of errors, less is a gain.'
    )
    write_table('kernels', 'Masks as graph kernels: accuracy beside dense kernels', note, rows, folder)


def _score(job: tuple[str, str, int], settings: dict[str, int]) -> float:
    task, method, seed = job
    warnings.simplefilter('ignore')  # of L-BFGS at the end of its line search, and of sums of truncated series
    torch.manual_seed(seed)
    if task in REGRESSION:
        problem = _traffic(seed) if task == 'traffic' else _mesh(seed, settings['vertices'])
        return _regress(problem, method, SETTINGS[task], settings['steps'], seed)
    return _departments(task, method, seed)


@dataclass
class Regression:
    r"""A graph, the nodes whose values are known, earlier values of these or the same, and the values to predict."""

    weight: Any
    known: Array
    asked: Array
    earlier: Array
    given: Array
    target: Array
    score: Callable[[Array, Array], float]


def _traffic(seed: int) -> Regression:
    stored, generator = np.load(data_folder('traffic') / 'los_loop.npz'), np.random.default_rng(seed)
    speed, weight = stored['speed'].astype(np.float64).T, stored['adj'].astype(np.float64)
    weight = np.maximum(weight, weight.T)
    np.fill_diagonal(weight, 0.0)
    order = generator.permutation(len(speed))
    known, asked = np.sort(order[len(order) // 4 :]), np.sort(order[: len(order) // 4])
    half = speed.shape[1] // 2
    early, late = (start + generator.choice(half, TIMES, replace=False) for start in (0, half))
    middle = speed[np.ix_(known, late)].mean(0)
    scale = speed[np.ix_(known, early)].std()

    def error(predicted: Array, target: Array) -> float:
        return float(scale * np.sqrt(((predicted - target) ** 2).mean()))

    earlier = speed[np.ix_(known, early)]
    return Regression(
        csr_array(weight),
        known,
        asked,
        (earlier - earlier.mean(0)) / scale,
        (speed[np.ix_(known, late)] - middle) / scale,
        (speed[np.ix_(asked, late)] - middle) / scale,
        error,
    )


def _mesh(seed: int, vertices: int) -> Regression:
    mesh = read_mesh(data_folder('pointcloud') / 'mesh_bunny.npz')
    patch = cut_patch(*mesh, vertices, KNOWN, np.random.default_rng(seed))
    weight = csr_array((np.ones(patch.num_edges), patch.edge_index.numpy()), shape=(vertices, vertices))
    known, normal = patch.known.numpy(), patch.y.double().numpy()

    def cosine(predicted: Array, target: Array) -> float:
        return float((normalize(predicted + middle) * target).sum(1).mean())

    middle = normal[known].mean(0)
    given = normal[known] - middle
    return Regression(weight, np.flatnonzero(known), np.flatnonzero(~known), given, given, normal[~known], cosine)


def _regress(problem: Regression, method: str, walks: tuple[int, int, float, float], steps: int, seed: int) -> float:
    if method == MEAN:
        return problem.score(np.zeros_like(problem.target), problem.target)
    if method == DENSE:
        values, vectors = np.linalg.eigh(laplacian(problem.weight, normed=True).toarray())
        kernel = ConstantKernel(1.0, (1e-3, 1e3)) * _HeatKernel(_Spectrum(values, vectors), walks[3]) + WhiteKernel(0.1)
        fitted = GaussianProcessRegressor(kernel).fit(problem.known[:, None], problem.earlier)
        process = GaussianProcessRegressor(fitted.kernel_, optimizer=None).fit(problem.known[:, None], problem.given)
        return problem.score(process.predict(problem.asked[:, None]), problem.target)
    kernel = gpytorch.kernels.ScaleKernel(_kernel(method, problem.weight, walks, seed)).double()
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = 0.1
    known, asked = (torch.from_numpy(nodes).unsqueeze(1) for nodes in (problem.known, problem.asked))
    earlier, given = torch.from_numpy(problem.earlier), torch.from_numpy(problem.given)
    optimizer = torch.optim.Adam([*kernel.parameters(), *likelihood.parameters()], RATE)
    for _ in range(steps):
        optimizer.zero_grad()
        noisy = _covariance(kernel, known, known) + likelihood.noise * torch.eye(len(known), dtype=torch.float64)
        quadratic, log_determinant = gpytorch.inv_quad_logdet(noisy, earlier, logdet=True)
        (0.5 * (quadratic + earlier.size(1) * log_determinant) / earlier.numel()).backward()
        optimizer.step()
    with torch.no_grad():
        noisy = _covariance(kernel, known, known) + likelihood.noise * torch.eye(len(known), dtype=torch.float64)
        predicted = _covariance(kernel, asked, known) @ torch.linalg.solve(noisy, given)
    return problem.score(predicted.numpy(), problem.target)


def _covariance(kernel: Any, rows: Tensor, cols: Tensor) -> Tensor:
    covariance: Tensor = kernel(rows, cols).to_dense()
    return covariance


def _kernel(method: str, weight: Any, walks: tuple[int, int, float, float], seed: int) -> Any:
    num_walks, hops, p_halt, time = walks
    if method == PEER:
        half = laplacian(weight, normed=True)
        adjacency = torch.from_numpy((weight.toarray() > 0) * -half.toarray()).to_sparse_csr()
        sampler = GRFSampler(adjacency, num_walks, p_halt, hops + 1, seed=10_000 * (seed + 1), use_tqdm=False, n_processes=1)
        kernel = GeneralGRFKernel([matrix.double() for matrix in sampler()], hops + 1)
        kernel.raw_modulation_function.data = modulation('heat', hops, scale=time)
        return kernel
    edge_index, edge_weight = from_scipy_sparse_matrix(weight)
    data = Data(edge_index=edge_index, edge_weight=edge_weight, num_nodes=weight.shape[0])
    if method == EXACT:
        return MaskKernel(HeatKernelMask(kind='normalized_laplacian', lam=time), data)
    return MaskKernel(GRFMask(1, num_walks, p_halt, hops, f'heat:{time}', seed=seed), data)


@dataclass(eq=False)
class _Spectrum:
    r"""The eigenvalues and eigenvectors of a Laplacian, which clones of a kernel share."""

    values: Array
    vectors: Array

    def __deepcopy__(self, memo: dict[int, Any]) -> _Spectrum:
        return self


class _HeatKernel(Kernel):  # type: ignore[misc]
    r"""The dense heat kernel between nodes, with the gradient in the logarithm of its time."""

    def __init__(self, spectrum: _Spectrum, time: float, time_bounds: tuple[float, float] = (1e-2, 1e3)) -> None:
        self.spectrum = spectrum
        self.time = time
        self.time_bounds = time_bounds

    @property
    def hyperparameter_time(self) -> Hyperparameter:
        return Hyperparameter('time', 'numeric', self.time_bounds)

    def __call__(self, X: Array, Y: Array | None = None, eval_gradient: bool = False) -> Any:
        left, right = (self.spectrum.vectors[nodes[:, 0].astype(int)] for nodes in (X, X if Y is None else Y))
        decay = np.exp(-self.time * self.spectrum.values)
        kernel: Array = (left * decay) @ right.T
        if not eval_gradient:
            return kernel
        slope = -self.time * self.spectrum.values * decay
        return kernel, ((left * slope) @ right.T)[:, :, None]

    def diag(self, X: Array) -> Array:
        rows = self.spectrum.vectors[X[:, 0].astype(int)]
        diagonal: Array = (rows**2 * np.exp(-self.time * self.spectrum.values)).sum(1)
        return diagonal

    def is_stationary(self) -> bool:
        return False


def _departments(task: str, method: str, seed: int) -> float:
    folder = data_folder('email_eu_core') / 'raw'
    edges, labels = (np.loadtxt(path, dtype=np.int64) for path in _email_files(folder))
    labels = labels[labels[:, 0].argsort(), 1]
    size = len(labels)
    weight = csr_array((np.ones(len(edges)), edges.T), shape=(size, size))
    weight = ((weight + weight.T) > 0).astype(np.float64)
    weight.setdiag(0)
    num_walks, hops, p_halt, time = SETTINGS[task]
    if method == DENSE:
        values, vectors = np.linalg.eigh(laplacian(weight, normed=True).toarray())
        features: Any = normalize(vectors * np.exp(-time * values / 2))
    else:
        made = GraphRandomFeatures(f'heat:{time}', num_walks, p_halt, hops, random_state=seed)
        features = normalize(made.fit_transform(weight))
    if task == 'clusters':
        clusters = KMeans(len(set(labels)), n_init=5, random_state=seed).fit_predict(features)
        return float(normalized_mutual_info_score(labels, clusters))
    order = np.random.default_rng(seed).permutation(size)
    train, test = order[: size // 2], order[size // 2 :]
    if method == DENSE:
        model = SVC(kernel='precomputed', C=10.0).fit(features[train] @ features[train].T, labels[train])
        return float(model.score(features[test] @ features[train].T, labels[test]))
    return float(SVC(kernel='linear', C=10.0).fit(features[train], labels[train]).score(features[test], labels[test]))


def _email_files(folder: Path) -> list[Path]:
    return [next(folder.glob(f'*{name}*')) for name in ('core.txt', 'labels')]


def speed(quick: bool, folder: Path) -> None:
    sizes = SIZES[:1] if quick else SIZES
    jobs = [(task, size) for size in sizes for task in LIMITS if size <= max(LIMITS[task].values())]
    path = kept_runs(folder, 'kernels_speed', quick)
    measured = run_all(jobs, _measure, sizes, path, processes=1)
    rows: list[dict[str, object]] = []
    for task, size in sorted(jobs, key=lambda job: job[0]):
        seconds = measured[task, size]
        for method, value in seconds.items():
            ratio: object = value / seconds[DENSE] if DENSE in seconds else ''
            rows.append({'task': task, 'nodes': size, 'method': method, 'ms': value * 1e3, 'time / dense': ratio})
    walks, hops, p_halt = SPEED_WALKS
    note = (
        f'Random graphs with 4 neighbors a node, one thread, medians of {REPEATS} calls in turns by the clock of the process, '
        f'on a machine that other programs used at the same time. GRFMask, GraphRandomFeatures and fast-graph-gp have {walks} '
        f'walks a node of at most {hops} hops (p_halt {p_halt}), PowerSeriesMask has order {hops}, HeatKernelMask the '
        f'normalized Laplacian and lambda 2. "product": the kernel matrix times a vector, dense with NumPy; the matrix, the '
        f'walks and the operator are made before. "features": from the graph to the features, or to the dense heat kernel by '
        f'eigenvectors. The other tasks are of a Gaussian process that knows half of the nodes, at most {KNOWN_AT_MOST:,}, '
        f'from the walks or the given dense matrix on: "posterior", the mean at all nodes by conjugate gradients to a residual '
        f'of 1e-3; "sample", a sample at all nodes, which sample_posterior and sample_y draw; "training step", the marginal '
        f'likelihood and its gradients, by GPyTorch without Cholesky factors. Dense kernels are GaussianProcessRegressor. '
        f'Methods end at different numbers of nodes. Memory was not measured.'
    )
    write_table('kernels_speed', 'Masks as graph kernels: time beside dense kernels', note, rows, folder)


def _measure(job: tuple[str, int]) -> dict[str, float]:
    task, size = job
    warnings.simplefilter('ignore')  # of truncated series
    make, methods = MAKERS[task], [method for method, most in LIMITS[task].items() if size <= most]
    for method in methods:
        make(method, 100)()  # what is imported and compiled at the first call does not count
    return interleaved_medians({method: make(method, size) for method in methods}, REPEATS, process_time)


def _mask(method: str) -> Any:
    walks, hops, p_halt = SPEED_WALKS
    if method == WALKS:
        return GRFMask(1, walks, p_halt, hops, 'heat:2')
    return PowerSeriesMask(1, hops, 'heat:2', 'f') if method == SERIES else HeatKernelMask(1, 'normalized_laplacian', 2.0)


def _product(method: str, size: int) -> Callable[[], object]:
    r"""Makes a kernel matrix, and returns its product with a vector."""
    x = torch.randn(size, 1, generator=torch.Generator().manual_seed(0))
    if method == DENSE:
        matrix, column = np.full((size, size), 0.5, dtype=np.float32), x.numpy()
        return lambda: matrix @ column
    edge_index = random_graph(size)
    if method == PEER:
        phi = _peer_features(edge_index, size)
        return lambda: phi @ (phi.mT @ x)
    covariance = _mask(method)(Graph.from_tensors(edge_index, size)).to_linear_operator(check=False).detach()
    return lambda: covariance @ x


def _peer_features(edge_index: Tensor, size: int) -> Any:
    walks, hops, p_halt = SPEED_WALKS
    weight = Graph.from_tensors(edge_index, size).normalized_weight('sym').float()
    adjacency = torch.sparse_coo_tensor(edge_index, weight, (size, size), check_invariants=False).coalesce().to_sparse_csr()
    sampled = GRFSampler(adjacency, walks, p_halt, hops + 1, seed=1, use_tqdm=False, n_processes=1)()
    return GeneralGRFKernel([matrix.float() for matrix in sampled], hops + 1)._get_feature_matrix().detach()


def _features(method: str, size: int) -> Callable[[], object]:
    edge_index = random_graph(size)
    if method == PEER:
        return partial(_peer_features, edge_index, size)
    if method == FEATURES:
        walks, hops, p_halt = SPEED_WALKS
        made = GraphRandomFeatures('heat:2', walks, p_halt, hops)
        return lambda: made.fit_transform(Data(edge_index=edge_index, num_nodes=size))
    weight = csr_array((np.ones(edge_index.size(1)), edge_index.numpy()), shape=(size, size))

    def kernel() -> Array:
        values, vectors = np.linalg.eigh(laplacian(weight, normed=True).toarray())
        heat: Array = (vectors * np.exp(-2 * values)) @ vectors.T
        return heat

    return kernel


class _GivenKernel(_HeatKernel):
    r"""A kernel whose matrix is given, and has a gradient that takes as long as that of a heat kernel to use."""

    def __call__(self, X: Array, Y: Array | None = None, eval_gradient: bool = False) -> Any:
        rows, cols = (nodes[:, 0].astype(int) for nodes in (X, X if Y is None else Y))
        matrix: Array = self.spectrum.values[np.ix_(rows, cols)]
        return (matrix, matrix[:, :, None]) if eval_gradient else matrix

    def diag(self, X: Array) -> Array:
        return np.ones(len(X))


def _process(task: str, method: str, size: int) -> Callable[[], object]:
    r"""Makes the covariance matrix of a Gaussian process, and returns what is to be done with it."""
    generator = np.random.default_rng(0)
    known = np.sort(generator.choice(size, min(size // 2, KNOWN_AT_MOST), replace=False))
    y = generator.standard_normal(len(known))
    if method == DENSE:
        matrix = np.full((size, size), 0.4)  # the time does not depend on the numbers
        np.fill_diagonal(matrix, 1.0)
        process = GaussianProcessRegressor(_GivenKernel(_Spectrum(matrix, matrix), 1.0), alpha=0.1, optimizer=None)
        every = np.arange(size)[:, None]
        if task == 'training step':
            process.fit(known[:2, None], y[:2])
            process.X_train_, process.y_train_ = known[:, None], y
            return lambda: process.log_marginal_likelihood(process.kernel_.theta, eval_gradient=True)
        read = process.predict if task == 'posterior' else process.sample_y
        return lambda: (process.fit(known[:, None], y), read(every))
    nodes, target = torch.from_numpy(known), torch.from_numpy(y).float()
    mask, graph = _mask(method), Graph.from_tensors(random_graph(size), size)
    mask(graph)

    def call() -> None:
        settings = gpytorch.settings
        with settings.max_cholesky_size(0), settings.cg_tolerance(1e-3), settings.max_cg_iterations(1000):
            covariance = mask(graph).to_linear_operator(check=False)
            if task == 'sample':
                sample_posterior(covariance, nodes, target, noise=0.1, num_samples=1)
                return
            noisy = covariance[nodes][:, nodes].add_jitter(0.1)
            if task == 'training step':
                quadratic, log_determinant = gpytorch.inv_quad_logdet(noisy, target, logdet=True)
                (quadratic + log_determinant).backward()
                return
            with torch.no_grad():
                covariance[:, nodes] @ noisy.solve(target)

    return call


MAKERS: dict[str, Callable[[str, int], Callable[[], object]]] = {
    'product': _product,
    'features': _features,
    **{task: partial(_process, task) for task in ('posterior', 'sample', 'training step')},
}
