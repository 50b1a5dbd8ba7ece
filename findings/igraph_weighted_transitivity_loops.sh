#!/usr/bin/env bash
# igraph 1.0.0: with a self-loop, weighted local transitivities exceed 1, and depend on which vertices are asked for.
#
# Expected: "When the weights argument is given, this function calculates the weighted local transitivity proposed by Barrat et al"
# (docstring of Graph.transitivity_local_undirected, python.igraph.org/en/stable/api/igraph.GraphBase.html). It is in [0, 1]. With equal
# weights, it is the transitivity without weights. Parallel edges raise an error; nothing is said of loops, and without weights they are
# ignored.
# Seen: a loop at a neighbor changes the transitivity of a vertex without loops from 1/3 to 1, with all weights 1. Others are above 1, and
# so is transitivity_avglocal_undirected. With vertices=[2, 3], the values of the same vertices are others than those of all vertices,
# because igraph has two ways to compute them (igraph_transitivity_barrat in src/properties/triangles.c of its C library; the reference of
# that one once said that it is for simple graphs).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet igraph==1.0.0 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import igraph
import numpy as np

print(f'igraph {igraph.__version__}')


def barrat(graph, weights):
    """By the definition, without loops: the mean over pairs of neighbors that are connected, weighted by both edges."""
    n = graph.vcount()
    w = np.zeros((n, n))
    for edge, weight in zip(graph.es, weights):
        if edge.source != edge.target:
            w[edge.source, edge.target] = w[edge.target, edge.source] = weight
    a = (w > 0).astype(float)
    pairs = np.einsum('ij,ik,jk->i', w, a, a)  # (w_ij + w_ik) / 2, over ordered pairs.
    degree = a.sum(1)
    return np.array([p / (s * (k - 1)) if k > 1 else np.nan for p, s, k in zip(pairs, w.sum(1), degree)])


edges = [(0, 1), (1, 2), (2, 0), (2, 3)]
for loops in (0, 1):
    graph = igraph.Graph(edges + [(3, 3)] * loops)
    for weights in (np.ones(4 + loops), np.arange(1.0, 5 + loops)):
        right = barrat(graph, weights)
        seen = np.array(graph.transitivity_local_undirected(weights=weights.tolist()))
        some = np.array(graph.transitivity_local_undirected(vertices=[2, 3], weights=weights.tolist()))
        mean = graph.transitivity_avglocal_undirected(mode='zero', weights=weights.tolist())
        print(f'{loops} loops, weights {weights}: {seen.round(3)}, of vertices [2, 3] {some.round(3)}, mean {mean:.3f}, right {right.round(3)}')
        if loops:
            assert seen[3] > 1 and seen[2] > 2 * right[2] and mean > 1, 'this has changed'
            assert not np.allclose(some, seen[2:]), 'this has changed'
        else:
            assert np.allclose(seen, right, equal_nan=True) and np.allclose(some, right[2:], equal_nan=True), 'this has changed'
    unweighted = graph.transitivity_local_undirected()
    print(f'{loops} loops, without weights: {np.round(unweighted, 3)}')
    assert np.allclose(unweighted, barrat(graph, np.ones(4 + loops)), equal_nan=True), 'this has changed'

try:
    igraph.Graph(edges + [(2, 3)]).transitivity_local_undirected(weights=[1] * 5)
except igraph.InternalError as e:
    print(f'parallel edges: {str(e).splitlines()[0]}')
else:
    raise AssertionError('this has changed')
PY
