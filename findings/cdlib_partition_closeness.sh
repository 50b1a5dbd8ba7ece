#!/usr/bin/env bash
# cdlib 0.4.1: partition_closeness_simple does not count how often a size of communities occurs.
#
# Expected: the documented equation has "the multiplicity of community sizes", and compares the shares of nodes or communities in each size.
# Partitions with other shares are less close than identical ones.
# Seen: the sizes are put into a set before they are counted, so that each has the multiplicity 1. A partition into 10 pairs and one
# triple is as close to one into one pair and 10 triples as to itself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet cdlib==0.4.1 networkx==3.6.1 numpy==1.26.4 scipy==1.13.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
from cdlib import NodeClustering, evaluation

print(f'cdlib {version("cdlib")}')


def partition(sizes):
    nodes = iter(range(sum(sizes)))
    return NodeClustering([[next(nodes) for _ in range(size)] for size in sizes], nx.empty_graph(sum(sizes)))


def shares(sizes, weight):
    total = sum(weight(size) for size in sizes)
    return {size: sizes.count(size) * weight(size) / total for size in set(sizes)}


pairs, triples = [2] * 10 + [3], [2] + [3] * 10
seen = {}
for name, first, other in (('itself', pairs, pairs), ('many triples', pairs, triples)):
    seen[name] = evaluation.partition_closeness_simple(partition(first), partition(other)).score
    # Half of the common share, of communities (as documented) and of nodes:
    right = [
        sum(min(shares(first, weight)[size], shares(other, weight)[size]) for size in set(first) & set(other)) / 2
        for weight in (lambda size: 1, lambda size: size)
    ]
    print(f'many pairs and {name}: {seen[name]:.3f} instead of {right[0]:.3f} (shares of nodes: {right[1]:.3f})')
assert max(right) < 0.15, 'the definition is wrong'
assert seen['itself'] == seen['many triples'] == 0.5, 'this has changed'
PY
