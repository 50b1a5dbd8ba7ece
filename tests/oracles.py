"""Plain NumPy versions of the equations. Nothing here imports the package."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path
from scipy.special import softmax
from scipy.stats import norm

Array = NDArray[Any]


def as_numpy(data: Any, flow: str = 'source_to_target') -> tuple[Array, Array, int, Array]:
    """Rows and columns of the edges in the adjacency matrix, weights, number of nodes and graph ids of a PyG data object. As
    messages flow in PyG, the row of an edge is its target.
    """
    num_nodes = data.num_nodes or 0
    has_edges = 'edge_index' in data
    edges = data.edge_index.numpy() if has_edges else np.zeros((2, 0), dtype=np.int64)
    weight = data.edge_weight.double().numpy() if 'edge_weight' in data else np.ones(edges.shape[1])
    batch = data.batch.numpy() if 'batch' in data else np.zeros(num_nodes, dtype=np.int64)
    if flow == 'source_to_target':
        edges = np.stack([edges[1], edges[0]])
    return edges, weight, num_nodes, batch


def edge_weights(edges: Array, weight: Array, num_nodes: int, normalization: str | None) -> Array:
    """The entry of W at every edge, parallel edges apart."""
    row_sum, col_sum = np.zeros(num_nodes), np.zeros(num_nodes)
    for (i, j), w in zip(edges.T, weight, strict=True):
        row_sum[i] += abs(w)
        col_sum[j] += abs(w)
    result = np.zeros(len(weight))
    for e, ((i, j), w) in enumerate(zip(edges.T, weight, strict=True)):
        scale = {'sym': np.sqrt(row_sum[i] * col_sum[j]), 'rw': row_sum[i], None: 1.0}[normalization]
        result[e] = 0.0 if scale == 0 else w / scale
    return result


def weight_matrix(data: Any, normalization: str | None, flow: str = 'source_to_target') -> Array:
    edges, weight, num_nodes, _ = as_numpy(data, flow)
    matrix = np.zeros((num_nodes, num_nodes))
    for (i, j), w in zip(edges.T, edge_weights(edges, weight, num_nodes, normalization), strict=True):
        matrix[i, j] += w
    return matrix


def same_graph(data: Any) -> Array:
    batch = as_numpy(data)[3]
    return (batch[:, None] == batch[None, :]).astype(float)


def power_series(matrix: Array, coefficients: Array) -> Array:
    """sum_l f_l W^l."""
    total, power = np.zeros_like(matrix), np.eye(len(matrix))
    for coefficient in coefficients:
        total = total + coefficient * power
        power = power @ matrix
    return total


def hop_matrix(f: Any, data: Any, flow: str = 'source_to_target') -> Array:
    """f of the number of edges on shortest paths, with zeros beyond the last."""
    edges, _, num_nodes, _ = as_numpy(data, flow)
    matrix = np.zeros((num_nodes, num_nodes))
    matrix[edges[0], edges[1]] = 1
    table = np.pad(np.asarray(f.detach().double()), ((0, 0), (0, 1)))
    if num_nodes == 0:
        return np.zeros((len(table), 0, 0))
    distance = shortest_path(matrix, unweighted=True)
    return table[:, np.minimum(distance, table.shape[1] - 1).astype(int)]


def path_products(data: Any, max_hops: int, reduce: Any, flow: str = 'source_to_target') -> Array:
    """The mean or maximum over all shortest paths from i to j of the product of their weights, one path at a time."""
    edges, weight, num_nodes, _ = as_numpy(data, flow)
    leaving: list[list[tuple[int, float]]] = [[] for _ in range(num_nodes)]
    for (i, j), w in zip(edges.T, weight, strict=True):
        leaving[i].append((int(j), float(w)))
    matrix = np.zeros((num_nodes, num_nodes))
    for i in range(num_nodes):
        seen, paths = {i}, [(i, 1.0)]
        matrix[i, i] = 1.0
        for _ in range(max_hops):
            paths = [(k, product * w) for j, product in paths for k, w in leaving[j] if k not in seen]
            seen |= {node for node, _ in paths}
            for node in {node for node, _ in paths}:
                matrix[i, node] = reduce([product for last, product in paths if last == node])
    return matrix


def masked_attention(q: Array, k: Array, v: Array, mask: Array) -> Array:
    """Masked linear attention, one query and one head at a time; rows without weight give zero."""
    num_nodes, heads, _ = q.shape
    out = np.zeros((num_nodes, heads, v.shape[2]))
    for h in range(heads):
        matrix = mask[h if len(mask) > 1 else 0]
        for i in range(num_nodes):
            weight = matrix[i] * (k[:, h] @ q[i, h])
            if np.any(weight != 0):
                out[i, h] = weight @ v[:, h] / weight.sum()
    return out


def linear(module: Any, x: Array) -> Array:
    return x @ module.weight.detach().numpy().T + module.bias.detach().numpy()


def softmax_attention(q: Array, k: Array, v: Array, mask: Array) -> tuple[Array, Array]:
    """Softmax attention with the bias log M, row by row, and its coefficients [H, N, N]; rows without entries give zero."""
    num_nodes, heads, channels = q.shape
    out, coefficients = np.zeros((num_nodes, heads, v.shape[2])), np.zeros((heads, num_nodes, num_nodes))
    for h in range(heads):
        matrix = mask[h if len(mask) > 1 else 0]
        for i in range(num_nodes):
            seen = np.flatnonzero(matrix[i])
            if len(seen) > 0:
                coefficients[h, i, seen] = softmax(k[seen, h] @ q[i, h] / np.sqrt(channels) + np.log(matrix[i, seen]))
                out[i, h] = coefficients[h, i] @ v[:, h]
    return out, coefficients


def asymmetric_attention(
    q: Array, k: Array, v: Array, edges: Array, edge_weight: Array, walks: list[list[list[int]]], survival: Array, f: Array
) -> Array:
    """Algorithm 2 (App. D) for one head, with given query and key features and the edges that each walk takes."""
    degree = np.bincount(edges[0], minlength=len(q))
    out = np.zeros_like(v)
    for i, node_walks in enumerate(walks):
        normalisation = 0.0
        for taken in node_walks:
            visited = [i, *edges[1, taken]]
            for t, j in enumerate(visited):
                product = np.prod(edge_weight[taken[:t]])
                probability = survival[t] * np.prod(1.0 / degree[edges[0, taken[:t]]])
                share = q[i] @ k[j] * f[t] * product / probability
                out[i] += share * v[j]
                normalisation += share
        out[i] = out[i] / normalisation if normalisation != 0 else 0.0
    return out


def explicit_walks(
    edges: Array,
    num_nodes: int,
    num_walks: int,
    survival: Array,
    uniform: Callable[[int, int], float],
    weight: Array | None = None,
) -> list[list[list[int]]]:
    """The edges that every walk takes, from a uniform number for its length (step 0) and for each of its hops, which choose
    among the edges of a row in the order of their columns, and parallel ones of their weights.
    """
    edges_of: list[list[int]] = [[] for _ in range(num_nodes)]
    for e in np.lexsort((np.zeros(edges.shape[1]) if weight is None else weight, edges[1])):
        edges_of[edges[0, e]].append(e)
    walks: list[list[list[int]]] = []
    for start in range(num_nodes):
        node_walks = []
        for walk in range(num_walks):
            walker = start * num_walks + walk
            length = sum(1 for s in survival[1:] if s > uniform(0, walker))
            node, taken = start, []
            for step in range(1, length + 1):
                if not edges_of[node]:
                    break
                edge = edges_of[node][int(uniform(step, walker) * len(edges_of[node]))]
                taken.append(edge)
                node = int(edges[1, edge])
            node_walks.append(taken)
        walks.append(node_walks)
    return walks


def walk_loads(edges: Array, edge_weight: Array, num_nodes: int, walks: list[list[list[int]]], survival: Array) -> Array:
    """P_l of Eq. 10 (with Eq. 9 for every length >= 1), [L + 1, N, N]: each prefix deposits its weight over its probability."""
    degree = np.bincount(edges[0], minlength=num_nodes)
    loads = np.zeros((len(survival), num_nodes, num_nodes))
    for start, node_walks in enumerate(walks):
        for taken in node_walks:
            for length in range(len(taken) + 1):
                product, probability, node = 1.0, survival[length], start
                for edge in taken[:length]:
                    product *= edge_weight[edge]
                    probability /= degree[edges[0, edge]]
                    node = edges[1, edge]
                loads[length, start, node] += product / probability / len(node_walks)
    return loads


def splitmix(x: int) -> int:
    """splitmix64 (Steele, Lea and Flood, 2014): the output after the state x."""
    bits = (1 << 64) - 1
    x = (x + 0x9E3779B97F4A7C15) & bits
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = ((x ^ (x >> shift)) * factor) & bits
    return x ^ (x >> 31)


def grf_loads(
    data: Any,
    num_walks: int,
    p_halt: float,
    hops: int,
    normalization: str | None = 'sym',
    seed: int = 0,
    keys: bool = False,
    flow: str = 'source_to_target',
) -> Array:
    """P_l of the walks of a mask with this seed, whose random numbers are a hash of the seed, the position of the start node in
    its graph, the walk and the step.
    """
    edges, weight, num_nodes, batch = as_numpy(data, flow)
    position = [int(np.sum(batch[:i] == batch[i])) for i in range(num_nodes)]

    def uniform(step: int, walker: int) -> float:
        start, walk = divmod(walker, num_walks)
        counter = position[start] * num_walks + walk + (2 * seed + keys) * 0x9E3779B9
        return float((splitmix(splitmix(counter) + step) >> 11) * 2.0**-53)

    survival = (1 - p_halt) ** np.arange(hops + 1)
    walks = explicit_walks(edges, num_nodes, num_walks, survival, uniform, weight)
    return walk_loads(edges, edge_weights(edges, weight, num_nodes, normalization), num_nodes, walks, survival)


def softmax_kernel(q: Array, k: Array) -> Array:
    """exp(q.k / sqrt(d))."""
    return np.exp(q @ k.T / np.sqrt(q.shape[1]))


def confidence(comparisons: int, false_alarm: float = 1e-4) -> float:
    """Standard errors that all of this many comparisons stay within, but for the given probability (Bonferroni)."""
    return float(norm.isf(false_alarm / comparisons / 2))


def standard_scores(samples: Array, expected: Array) -> Array:
    """(mean - expected) / standard error; exactly constant samples must be exact."""
    mean, error = samples.mean(0), samples.std(0, ddof=1) / np.sqrt(len(samples))
    constant = samples.std(0) < 1e-9
    exact = np.where(np.abs(mean - expected) < 1e-5, 0.0, np.inf)
    return np.where(constant, exact, (mean - expected) / np.where(constant, 1.0, error))
