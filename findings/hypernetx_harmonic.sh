#!/usr/bin/env bash
# hypernetx 2.4.3: s_harmonic_centrality(normalized=True) is 2 in a triangle, and 0.25 for a hyperedge that meets all nine others.
#
# Expected: "A value equal to 1 means the s-edge intersects every other s-edge in H. All values range between 0 and 1." The sum of n - 1
# reciprocals of distances is at most n - 1. And source gives "a single value".
# Seen: the sum is divided by (n - 1)(n - 2) / 2, the number of pairs that the betweenness needs. The largest value is 2 / (n - 2),
# so that hypergraphs of different sizes cannot be compared. By default, normalized is False, and the value is the sum, up to n - 1.
# With source=0, a usual name of a node or an edge, s_harmonic_centrality, s_closeness_centrality and s_eccentricity return
# the values of all edges instead of one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet hypernetx==2.4.3 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1 igraph==1.0.0
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import hypernetx as hnx
from hypernetx.algorithms import s_closeness_centrality, s_eccentricity, s_harmonic_centrality

print(f'hypernetx {version("hypernetx")}')


def hub(others):
    # One large hyperedge, and others that meet it in one node each, but not each other:
    return hnx.Hypergraph({'hub': list(range(others)), **{f'edge {i}': [i, 100 + i] for i in range(others)}})


seen = {}
for others in (2, 4, 9):
    seen[others] = s_harmonic_centrality(hub(others), source='hub', normalized=True)
    default = s_harmonic_centrality(hub(others), source='hub')
    print(f'hyperedge that meets all {others} others: normalized {seen[others]:.3f}, by default {default}')
triangle = hnx.Hypergraph({'a': [0, 1], 'b': [1, 2], 'c': [2, 0]})
seen['triangle'] = max(s_harmonic_centrality(triangle, normalized=True).values())
print(f'triangle: {seen["triangle"]}')
assert seen == {2: 2, 4: 2 / 3, 9: 0.25, 'triangle': 2}, 'this has changed'

path = hnx.Hypergraph({0: ['u', 'v'], 1: ['v', 'w'], 2: ['w', 'x']})
for function in (s_harmonic_centrality, s_closeness_centrality, s_eccentricity):
    number = [len(result) if isinstance(result, dict) else 1 for result in (function(path, source=source) for source in (0, 1))]
    print(f'{function.__name__}: {number[0]} values for source=0, {number[1]} for source=1')
    assert number == [3, 1], 'this has changed'
PY
