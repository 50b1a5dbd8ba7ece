#!/usr/bin/env bash
# GraKeL 0.1.11: the default method of RandomWalkLabeled computes another kernel than method_type="baseline".
#
# Expected: the documentation lists "fast" (the default) and "baseline" as two ways to compute the same sum over common walks, of
# different cost. They agree for RandomWalk, without labels. With all labels equal, the labelled kernel is the unlabelled one.
# Seen: "fast" multiplies by the adjacency matrix of the second graph from the label a to the label b, where its transpose, from b to
# a, belongs. Both are equal only if a = b. So common walks of two and more steps over edges between different labels are lost.
# "baseline" agrees with the sum.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet GraKeL==0.1.11 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
"$folder/venv/bin/python" - <<'PY'
from importlib.metadata import version

import numpy as np
from grakel import Graph, RandomWalk, RandomWalkLabeled

print(f'GraKeL {version("GraKeL")}')
clique = np.ones((4, 4)) - np.eye(4)
lamda = 0.1


def graph(labels):
    return Graph(clique, node_labels=dict(enumerate(labels)), graph_format='adjacency')


def common_walks(labels):
    same = np.array([a == b for a in labels for b in labels])
    product = np.kron(clique, clique) * np.outer(same, same)
    return np.linalg.solve(np.eye(16) - lamda * product, np.ones(16)).sum()


seen = {}
for labels in ('aaaa', 'aabb', 'abcd'):
    for method in ('fast', 'baseline'):
        kernel = RandomWalkLabeled(lamda=lamda, method_type=method)
        seen[labels, method] = kernel.fit_transform([graph(labels)]).item() - common_walks(labels)
    plain = RandomWalk(lamda=lamda, method_type='fast').fit_transform([graph(labels)]).item() - common_walks('aaaa')
    print(f'labels {labels}: sum {common_walks(labels):.5f}, error of fast {seen[labels, "fast"]:.5f},', end=' ')
    print(f'of baseline {seen[labels, "baseline"]:.5f}, without labels {plain:.5f}')
assert all(abs(error) < 1e-5 for (_, method), error in seen.items() if method == 'baseline'), 'this has changed'
assert abs(seen['aaaa', 'fast']) < 1e-4 and seen['abcd', 'fast'] < -0.3, 'this has changed'
PY
