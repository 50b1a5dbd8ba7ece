#!/usr/bin/env bash
# igraph 1.0.0: loops=True counts half of the loops of a dense matrix, all of a sparse one, and get_adjacency and get_adjacency_sparse differ.
#
# Expected: Graph.Adjacency: "When True or "once", the diagonal is assumed to contain the multiplicity of the corresponding loop edge. When
# "twice", the diagonal is assumed to contain twice the multiplicity". get_adjacency "Returns the adjacency matrix of a graph", and
# get_adjacency_sparse does so "as a SciPy CSR matrix" (docstrings, python.igraph.org/en/stable/api/igraph.Graph.html).
# Seen: True is "twice" for an undirected graph from a dense matrix or a list, and "once" from a sparse matrix. Weighted_Adjacency takes it
# as "once" for both. get_adjacency has 2 for a loop, and get_adjacency_sparse in igraph/adjacency.py has 1, so that its row sums are not
# the degrees. Graph.Adjacency of get_adjacency() has two loops for one, as "once" is the default.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet igraph==1.0.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import igraph
import numpy as np
from scipy.sparse import csr_matrix

print(f'igraph {igraph.__version__}')
matrix = np.array([[2, 1], [1, 0]])
seen = {}
for kind, value in (('list', matrix.tolist()), ('dense', matrix), ('sparse', csr_matrix(matrix))):
    for loops in ('once', True, 'twice'):
        graph = igraph.Graph.Adjacency(value, mode='undirected', loops=loops)
        weighted = igraph.Graph.Weighted_Adjacency(value, mode='undirected', loops=loops)
        loop_weight = float(sum(edge['weight'] for edge in weighted.es if edge.source == edge.target))
        seen[kind, loops] = sum(graph.is_loop()), loop_weight
        print(f'{kind}, diagonal 2, loops={loops}: {seen[kind, loops][0]} loops. Weighted_Adjacency: weight of the loop {loop_weight}')
for kind in ('list', 'dense', 'sparse'):
    assert seen[kind, 'once'] == (2, 2) and seen[kind, 'twice'] == (1, 1), 'this has changed'
    assert seen[kind, True] == ((2, 2) if kind == 'sparse' else (1, 2)), 'this has changed'

graph = igraph.Graph([(0, 1), (1, 2), (2, 2)])
dense, sparse = np.array(graph.get_adjacency().data), graph.get_adjacency_sparse().toarray()
print(f'degrees {graph.degree()}, row sums of get_adjacency {dense.sum(1)}, of get_adjacency_sparse {sparse.sum(1)}')
assert dense.sum(1).tolist() == graph.degree() == [1, 2, 3] and sparse.sum(1).tolist() == [1, 2, 2], 'this has changed'
again = {name: igraph.Graph.Adjacency(a, mode='undirected').ecount() for name, a in (('get_adjacency', dense), ('get_adjacency_sparse', sparse))}
print(f'{graph.ecount()} edges. Of Graph.Adjacency of its matrix: {again}')
assert again == {'get_adjacency': 4, 'get_adjacency_sparse': 3}, 'this has changed'
PY
