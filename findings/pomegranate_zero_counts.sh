#!/usr/bin/env bash
# pomegranate 1.1.2: BayesianNetwork learns a wrong structure, if a combination of values does not occur in the data.
#
# Expected: 'chow-liu' is a maximal spanning tree of the mutual information. A combination that does not occur adds nothing to the mutual
# information or to a likelihood: 0 log 0 is 0. The same holds for 'exact', which finds the best score.
# Seen: with the default pseudocount of 0, such a combination adds 0 * log(0), which is NaN. 'chow-liu' takes a pair with NaN for the best
# one, and attaches all variables below to the first. 'exact' gives parents without any influence, up to all that come before. There is no
# warning. With a pseudocount of 1e-3 'exact' is right. 'chow-liu' is not, if one variable has fewer values than another: tables are as
# large as the largest, and the cells of values that a variable does not have are divided by 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pomegranate==1.1.2 torch==2.13.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 networkx==3.6.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np
import torch
from pomegranate.bayesian_network import BayesianNetwork

print(f'pomegranate {version("pomegranate")}')
rng = np.random.default_rng(0)


def chain(values, jumps, n=4000):
    """Variables 0, 3, 1 and 2, each of which is the one before, or another value in 2 of 5 cases. Without jumps, it is at most one away."""
    columns = [rng.integers(0, values, n)]
    for _ in range(3):
        other = np.where(rng.random(n) < 0.4, rng.integers(0, values, n), columns[-1])
        columns.append(other if jumps else np.where(abs(other - columns[-1]) > 1, columns[-1], other))
    return np.stack([columns[i] for i in (0, 2, 3, 1)], axis=1)


def information(x, y):
    table = np.zeros((x.max() + 1, y.max() + 1))
    np.add.at(table, (x, y), 1 / len(x))
    product = np.outer(table.sum(1), table.sum(0))
    used = table > 0
    return (table[used] * np.log(table[used] / product[used])).sum()


def best_tree(x):
    graph = nx.Graph()
    graph.add_weighted_edges_from((i, j, information(x[:, i], x[:, j])) for i in range(4) for j in range(i))
    return {tuple(sorted(edge)) for edge in nx.maximum_spanning_edges(graph, data=False)}


def learned(x, algorithm, pseudocount):
    structure = BayesianNetwork(algorithm=algorithm, pseudocount=pseudocount).fit(torch.tensor(x)).structure
    return {tuple(sorted((i, parent))) for i, parents in enumerate(structure) for parent in parents}


complete = chain(4, jumps=True)
binary = complete.copy()
binary[:, 0] = binary[:, 0] > 1
cases = {  # name: data, right results as (algorithm, pseudocount)
    '4 values, all pairs occur': (complete, {('chow-liu', 0), ('chow-liu', 1e-3), ('exact', 1e-3)}),
    '4 values, some pairs do not': (chain(4, jumps=False), {('chow-liu', 1e-3), ('exact', 1e-3)}),
    'variable 0 with 2 values': (binary, {('exact', 1e-3)}),
}
for name, (x, expected) in cases.items():
    tree = best_tree(x)
    assert tree == {(0, 3), (1, 3), (1, 2)}, 'the definition is wrong'
    right = set()
    for algorithm in ('chow-liu', 'exact'):
        for pseudocount in (0, 1e-3):
            edges = learned(x, algorithm, pseudocount)
            print(f'{name}: {algorithm}, pseudocount {pseudocount}: {sorted(edges)}, {"right" if edges == tree else "wrong"}')
            if edges == tree:
                right.add((algorithm, pseudocount))
    assert right == expected, 'this has changed'
assert learned(binary, 'chow-liu', 0) == learned(binary, 'chow-liu', 1) == {(0, 1), (0, 2), (0, 3)}, 'this has changed'
PY
