"""Counter-examples to equations of the papers as printed, in plain NumPy. docs/errors_in_papers.md shows each of them."""

from collections.abc import Callable
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm
from scipy.sparse.csgraph import shortest_path

Array = NDArray[np.float64]

LINKS = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)]  # a tree with root 0; the parent of a node comes before it


def adjacency(pairs: list[tuple[int, int]], num_nodes: int) -> Array:
    matrix = np.zeros((num_nodes, num_nodes))
    for i, j in pairs:
        matrix[i, j] = matrix[j, i] = 1
    return matrix


def laplacian(matrix: Array) -> Array:
    return np.diag(matrix.sum(1)) - matrix


def grid(size: int) -> Array:
    line = adjacency([(i, i + 1) for i in range(size - 1)], size)
    return np.kron(line, np.eye(size)) + np.kron(np.eye(size), line)


def test_passes_over_a_tree() -> None:
    a, b, x = -0.7, 0.3, np.array([1.0, -2.0, 0.5, 3.0, -1.0, 2.0])
    length = {(0, 1): 0.5, (0, 2): 2.0, (1, 3): 1.5, (1, 4): 0.2, (2, 5): 1.0}
    lengths = np.zeros((6, 6))
    for (i, j), weight in length.items():
        lengths[i, j] = lengths[j, i] = weight
    expected = np.exp(a * shortest_path(lengths) + b) @ x

    def two_passes(factor: Callable[[float], float]) -> Array:
        s = np.exp(b) * x
        for parent, child in reversed(LINKS):
            s[parent] += factor(length[parent, child]) * s[child]  # Eq. 11
        w = s.copy()
        for parent, child in LINKS:
            decay = factor(length[parent, child])
            w[child] = decay * w[parent] + (1 - decay**2) * s[child]  # Eq. 16
        return w

    as_printed = two_passes(lambda weight: np.exp(weight))
    corrected = two_passes(lambda weight: np.exp(a * weight))
    np.testing.assert_allclose(corrected, expected, rtol=1e-12)
    assert abs(as_printed - expected).max() > 10 * abs(expected).max()


def test_rings_around_the_nodes_of_a_tree() -> None:
    f, x = np.array([1.0, 0.5, -0.3, 0.2, 0.7]), np.array([1.0, -2.0, 0.5, 3.0, -1.0, 2.0])
    expected = f[shortest_path(adjacency(LINKS, 6)).astype(int)] @ x
    below = np.zeros((6, 7))  # g: the sums over a node's descendants at each distance, and two columns of zeros for l < 0
    below[:, 0] = x
    for parent, child in reversed(LINKS):
        below[parent, 1:5] += below[child, :4]

    def outputs(of_the_parent: Callable[[Array, int], Array]) -> Array:
        around = below.copy()  # the sums over all nodes at each distance
        for parent, child in LINKS:
            for distance in range(1, 5):
                around[child, distance] += of_the_parent(around, parent)[distance - 1] - below[child, distance - 2]
        return around[:, :5] @ f

    as_printed = outputs(lambda around, parent: below[parent])  # Eq. 29
    corrected = outputs(lambda around, parent: around[parent])
    np.testing.assert_allclose(corrected, expected, rtol=1e-12)
    assert abs(as_printed - expected)[:3].max() < 1e-12  # exact at depth 1
    assert abs(as_printed - expected)[3:].max() > 0.1


def test_hankel_matrix_of_a_separator() -> None:
    f = 0.5 ** np.arange(8)
    left, right = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, -1.0])  # sums over the nodes at 0, 1, 2 edges of the separator
    expected = sum(left[i] * right[j] * f[i + j] for i, j in product(range(3), range(3)))
    i, j = np.indices((3, 3))
    assert np.isclose(left @ f[i + j] @ right, expected)
    assert not np.isclose(left @ (2 + i + j) @ right, expected)  # the matrix with the first row 2, 3, 4


def test_heat_kernel_of_a_grid_is_no_power_of_tanh() -> None:
    time = 0.5

    def largest_ratio(matrix: Array) -> float:
        ratio = expm(-time * laplacian(matrix)) / np.tanh(time) ** shortest_path(matrix)
        return ratio.max() / ratio.min()

    bits = np.array([*product([0, 1], repeat=4)])
    hypercube = (abs(bits[:, None] - bits).sum(-1) == 1).astype(float)
    assert np.isclose(largest_ratio(hypercube), 1)
    assert largest_ratio(grid(4)) > 30


def test_diffusion_time_is_lambda() -> None:
    heat, lam = np.array([1.0, 0.0, 0.0]), 2.0
    matrix = laplacian(adjacency([(0, 1), (1, 2)], 3))
    steps = 20000

    def diffused(time: float) -> Array:
        u = heat
        for _ in range(steps):
            u = u - time / steps * matrix @ u  # du / dt = -L u
        return u

    np.testing.assert_allclose(expm(-lam * matrix) @ heat, diffused(lam), atol=1e-3)
    assert abs(expm(-lam * matrix) @ heat - diffused(1 / lam)).max() > 0.1


def test_random_walk_laplacian_is_not_symmetric() -> None:
    path = adjacency([(0, 1), (1, 2)], 3)
    degree = path.sum(1)
    matrix = laplacian(path) / degree  # L D^-1
    assert not np.allclose(matrix, matrix.T)
    normalized = laplacian(path) / np.sqrt(np.outer(degree, degree))
    np.testing.assert_allclose(matrix, np.diag(degree**0.5) @ normalized @ np.diag(degree**-0.5))


def test_kernel_of_walks_on_a_regular_graph() -> None:
    ring, p_halt, lam = adjacency([(i, (i + 1) % 5) for i in range(5)], 5), 0.5, 0.8
    step = (1 - p_halt) * lam * ring / 2
    bound = np.linalg.matrix_power(np.linalg.inv(np.eye(5) - step), 2)  # sum of (i + 1) step^i

    def kernel(hops: int) -> Array:
        visits = sum(np.linalg.matrix_power(step, hop) for hop in range(hops + 1))
        return visits @ visits.T

    np.testing.assert_allclose(kernel(60), bound)  # equality, in expectation and without a largest length
    assert (kernel(3) < bound - 0.01).all()  # walks that end after 3 hops lie below the lower bound


def test_estimates_of_normalized_kernels_are_biased() -> None:
    # One hop from node 0 to node 1 or 2: visits of 0 always, of 1 or 2 with probability 1/2. Node 3 looks at 1 alone.
    outcomes = [np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 1, 0])]
    other = np.array([0.0, 1, 0, 1])

    def cosine(u: Array, v: Array) -> float:
        return u @ v / np.sqrt(u @ u * (v @ v))

    exact = cosine(np.mean(outcomes, 0), other)
    assert np.mean([cosine(outcome, other) for outcome in outcomes]) < 0.9 * exact
    assert np.isclose(np.mean([outcome @ other for outcome in outcomes]), np.mean(outcomes, 0) @ other)


def test_diagonal_is_biased_with_one_ensemble() -> None:
    # Two nodes, one edge of weight 1, f = (1, 1), one walk that makes its hop with probability 1/2.
    outcomes = [np.array([1.0, 0.0]), np.array([1.0, 2.0])]  # the feature of node 0; a hop weighs 1 / (1/2)
    exact = np.array([1.0, 1.0]) @ np.array([1.0, 1.0])
    one_ensemble = np.mean([feature @ feature for feature in outcomes])
    two_ensembles = np.mean([first @ second for first in outcomes for second in outcomes])
    assert (exact, two_ensembles, one_ensemble) == (2, 2, 3)


def test_weight_of_a_walk_of_one_hop() -> None:
    weight, probability = 0.25, 0.5

    def expected_load(hops: int, least: int) -> float:
        product_of_weights = weight**hops if hops >= least else 1.0
        return probability * product_of_weights / probability

    assert expected_load(1, least=1) == weight  # len >= 1
    assert expected_load(1, least=2) == 1  # len > 1, as printed


def test_number_of_walks_cancels() -> None:
    rng = np.random.default_rng(0)
    walks, values = 4, np.full(10, 7.0)  # all values are 7, and so must be every average
    loads, visited = rng.random(walks * 3), rng.integers(10, size=walks * 3)
    f, s = (loads * values[visited]).sum(), loads.sum()
    assert np.isclose(f / s, 7)
    assert np.isclose(f / (s * walks), 7 / walks)


def test_elu_feature_map_is_positive() -> None:
    x = np.linspace(-5, 5, 101)
    elu = np.where(x > 0, x, np.expm1(x))
    assert (elu + 1 > 0).all()
    assert (elu + x < 0).any()


def test_features_of_a_directed_graph() -> None:
    w, f = np.array([[0.0, 1, 0], [0, 0, 1], [0, 0, 0]]), np.array([1.0, 0.5])
    alpha = np.convolve(f, f)
    series = sum(a * np.linalg.matrix_power(w, k) for k, a in enumerate(alpha))
    features = sum(c * np.linalg.matrix_power(w, k) for k, c in enumerate(f))
    assert not np.allclose(features @ features.T, series)
    np.testing.assert_allclose(features @ features, series)
    undirected = w + w.T
    features = sum(c * np.linalg.matrix_power(undirected, k) for k, c in enumerate(f))
    np.testing.assert_allclose(
        features @ features.T, sum(a * np.linalg.matrix_power(undirected, k) for k, a in enumerate(alpha))
    )


def test_largest_load_depends_on_the_probabilities_of_hops() -> None:
    weights, p_halt = np.array([0.9, 0.1]), 0.5  # the two edges of a node
    probabilities = weights**2 / (weights**2).sum()  # hops that prefer heavy edges
    loads = weights / (probabilities * (1 - p_halt))
    as_printed = weights.max() * len(weights) / (1 - p_halt)
    assert loads.max() > 2 * as_printed
    assert np.isclose(loads.max(), (weights / (probabilities * (1 - p_halt))).max())
    uniform = weights / (0.5 * (1 - p_halt))
    assert uniform.max() <= as_printed


def test_number_of_entries_of_a_feature() -> None:
    p_halt, delta = 0.5, 0.3
    bound = np.log(delta) / np.log(1 - p_halt)  # n = 1
    entries = 1 + np.arange(60)
    probability = p_halt * (1 - p_halt) ** (entries - 1)  # of a walk of entries - 1 hops on a long path
    assert probability[entries <= bound].sum() < 1 - delta
    assert probability[entries <= np.ceil(bound)].sum() >= 1 - delta


def test_normalized_attention_with_constant_features_sees_no_graph() -> None:
    hexagon = adjacency([(i, (i + 1) % 6) for i in range(6)], 6)
    triangles = adjacency([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)], 6)
    value = np.full((6, 1), 3.0)
    outputs = []
    for graph in (hexagon, triangles):
        mask = expm(graph)
        scores = mask * np.ones((6, 6))  # equal features: equal scores
        outputs.append(scores @ value / scores.sum(1, keepdims=True))
    np.testing.assert_allclose(outputs[0], outputs[1])
    assert not np.allclose(expm(hexagon), expm(triangles))


def test_random_features_need_the_scale_of_softmax() -> None:
    q, k = np.array([1.0, 0.5, 0.0, 1.0]), np.array([0.8, -0.5, 1.0, 1.0])
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    weights = weights / weights.sum()

    def expectation(q: Array, k: Array) -> float:
        """Of phi(q) phi(k) over w ~ N(0, I), by quadrature."""
        each = [weights @ np.exp(nodes * total) for total in q + k]
        return np.exp(-(q @ q + k @ k) / 2) * np.prod(each)

    softmax = np.exp(q @ k / np.sqrt(4))
    assert expectation(q, k) > 1.5 * softmax
    assert np.isclose(expectation(q * 4**-0.25, k * 4**-0.25), softmax, rtol=1e-4)


def test_uniformity_needs_normalized_embeddings() -> None:
    users = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    items = users  # aligned

    def loss(users: Array, items: Array) -> float:
        return ((users - items) ** 2).sum(1).mean() + uniformity(users) + uniformity(items)

    def uniformity(h: Array) -> float:
        return np.log(np.mean([np.exp(-((h[i] - h[j]) ** 2).sum()) for i, j in combinations(range(3), 2)]))

    # Longer embeddings lower the loss without end, and rank items as before.
    assert loss(10 * users, 10 * items) < loss(users, items) - 100
    normalized = 10 * users / np.linalg.norm(10 * users, axis=1, keepdims=True)
    assert np.isclose(loss(normalized, normalized), loss(users, items))


def test_padding_must_not_be_found() -> None:
    q, keys = np.array([1.0, 1.0]), np.array([[-1.0, -2.0], [-3.0, 0.0]])  # a graph of two nodes
    padded = np.vstack([keys, np.zeros((2, 2))])  # in a dense batch of graphs of up to four
    assert np.argmax(padded @ q) >= len(keys)  # a row of zeros wins over all keys
    scores = np.where(np.arange(4) < len(keys), padded @ q, -np.inf)
    assert np.argmax(scores) == np.argmax(keys @ q)


def test_classes_of_s3dis() -> None:
    classes = [
        'ceiling',
        'floor',
        'wall',
        'beam',
        'column',
        'window',
        'door',
        'table',
        'chair',
        'sofa',
        'bookcase',
        'board',
        'clutter',
    ]
    assert len(classes) == 13


def test_sizes_of_the_efficiency_grid() -> None:
    sizes = 100 * np.sqrt(10) ** np.arange(7)  # i = 0, ..., 6
    assert np.isclose(sizes[-1], 1e5)
    assert np.isclose(100 * np.sqrt(10) ** 8, 1e6)
