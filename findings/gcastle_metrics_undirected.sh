#!/usr/bin/env bash
# gcastle 1.0.4: MetricsDAG counts undirected edges twice, and gives a true positive rate of 2.
#
# Expected: tpr is TP / (TP + FN), says the documentation: at most 1. An edge -1 is undirected, and "should only appear once", says an error
# message. nnz is the number of edges of the estimate, and fdr the part of them that is wrong, with an undirected edge of the skeleton
# right.
# Seen: each undirected edge is counted in both directions, but a true edge in one. The equivalence class of a chain, with all edges
# undirected, has a tpr of 2, and nnz is twice the number of its edges. In fdr, a wrong undirected edge counts as two wrong ones. precision
# takes one of the two directions for wrong: it is 0.5 where fdr is 0, although both have TP + FP as the denominator. shd counts each edge
# once.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet gcastle==1.0.4 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 networkx==3.6.1 scikit-learn==1.9.1 \
  matplotlib==3.11.2 tqdm==4.70.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import logging
from importlib.metadata import version

logging.disable(logging.CRITICAL)
import numpy as np
from castle.metrics import MetricsDAG

print(f'gcastle {version("gcastle")}')


def matrix(edges, value=1):
    result = np.zeros((5, 5), dtype=int)
    for edge in edges:
        result[edge] = value
    return result


def by_definition(directed, undirected, true):
    """Counts with each edge once. An undirected edge is right, if it is in the skeleton."""
    skeleton = {frozenset(edge) for edge in true}
    right = sum(edge in true for edge in directed) + sum(frozenset(edge) in skeleton for edge in undirected)
    number = len(directed) + len(undirected)
    return {'tpr': right / len(true), 'fdr': (number - right) / number, 'nnz': number}


chain = [(0, 1), (1, 2), (2, 3), (3, 4)]
cases = {  # name: directed, undirected, seen tpr, fdr, nnz, precision and shd
    'the chain': (chain, [], (1, 0, 4, 1, 0)),
    'all edges undirected': ([], chain, (2, 0, 8, 0.5, 0)),
    'half of the edges undirected': (chain[:2], chain[2:], (1.5, 0, 6, 0.6667, 0)),
    'one wrong undirected edge more': (chain, [(0, 4)], (1, 0.3333, 6, 0.6667, 1)),
    'one wrong directed edge more': (chain + [(0, 4)], [], (1, 0.2, 5, 0.8, 1)),
}
for name, (directed, undirected, expected) in cases.items():
    seen = MetricsDAG(matrix(directed) + matrix(undirected, -1), matrix(chain)).metrics
    right = by_definition(directed, undirected, chain)
    shown = {key: float(seen[key]) for key in ('tpr', 'fdr', 'nnz', 'precision', 'shd')}
    print(f'{name}: {shown}. Each edge once: {right}')
    assert tuple(shown.values()) == expected, 'this has changed'
    assert undirected or all(np.isclose(seen[key], right[key]) for key in right), 'this has changed'
    both = MetricsDAG(matrix(directed) + matrix(undirected) + matrix(undirected).T, matrix(chain)).metrics
    assert both == seen, 'this has changed'  # Two directed edges stand for an undirected one, too.
PY
