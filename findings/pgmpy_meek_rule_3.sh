#!/usr/bin/env bash
# pgmpy 1.1.2: apply_meeks_rules applies rule 3 where its two parents are adjacent, and orients edges which are open.
#
# Expected: rule 3 of Meek (1995) orients X - W as X -> W, if X - Y -> W and X - Z -> W, and Y and Z are not adjacent. An edge is oriented if
# it has this direction in all DAGs with the same edges, the same known directions and no new collider between nodes that are not adjacent.
# Seen: the condition that Y and Z are not adjacent is missing. With Y - Z, 6 of 8 DAGs have X -> W, 2 have W -> X, and it is said to be
# X -> W. The pattern of a DAG alone does not lead there, but directions known before do, such as those of expert knowledge. Of random DAGs
# with some known directions, a few get directions which are open. None misses one with apply_r4=True.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pgmpy==1.1.2 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 \
  scikit-learn==1.9.1 statsmodels==0.15.0 scikit-base==1.2.0 opt_einsum==3.4.0 pyparsing==3.3.3 joblib==1.6.0 tqdm==4.70.1 \
  huggingface_hub==2.4.0
cd "$folder"
PYTHONHASHSEED=0 OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import random
from importlib.metadata import version
from itertools import product

import networkx as nx
from pgmpy.base import PDAG

print(f'pgmpy {version("pgmpy")}')


def colliders(arrows, skeleton):
    """Pairs of arrows into the same node, from nodes that are not adjacent."""
    return {frozenset((e, f)) for e in arrows for f in arrows if e[0] != f[0] and e[1] == f[1] and {e[0], f[0]} not in skeleton}


def dags(known, rest):
    skeleton = {frozenset(edge) for edge in known + rest}
    for flips in product((1, -1), repeat=len(rest)):
        arrows = known + [edge[::flip] for edge, flip in zip(rest, flips)]
        if nx.is_directed_acyclic_graph(nx.DiGraph(arrows)) and colliders(arrows, skeleton) == colliders(known, skeleton):
            yield set(arrows)


def oriented(known, rest, **options):
    return set(PDAG(directed_ebunch=known, undirected_ebunch=rest).apply_meeks_rules(**options).directed_edges) - set(known)


known, rest = [('Y', 'W'), ('Z', 'W')], [('X', 'Y'), ('X', 'Z'), ('X', 'W'), ('Y', 'Z')]
found = list(dags(known, rest))
counts = {(u, v): sum((u, v) in dag for dag in found) for a, b in rest for u, v in ((a, b), (b, a))}
seen = oriented(known, rest)
print(f'Y -> W <- Z and X - W, X - Y, X - Z, Y - Z: oriented {seen}, which {counts["X", "W"]} of {len(found)} DAGs have')
assert seen == {('X', 'W')} and counts['X', 'W'] == 6 and len(found) == 8, 'this has changed'
assert oriented(known, rest[:3]) >= {('X', 'W')} == set.intersection(*dags(known, rest[:3])) - set(known), 'this has changed'

rng = random.Random(0)
wrong = missing = total = 0
for _ in range(300):
    order = rng.sample('ABCDE', 5)
    dag = [(u, v) for i, u in enumerate(order) for v in order[i + 1 :] if rng.random() < 0.6]
    fixed = set().union(*colliders(dag, {frozenset(edge) for edge in dag}))
    known = [edge for edge in dag if edge in fixed or rng.random() < 0.35]
    rest = [edge for edge in dag if edge not in known]
    if known and rest:
        right, seen = set.intersection(*dags(known, rest)) - set(known), oriented(known, rest, apply_r4=True)
        wrong, missing, total = wrong + bool(seen - right), missing + bool(right - seen), total + 1
print(f'{total} random DAGs with some known directions: {wrong} have an oriented edge that is open, '
      f'{missing} an open one that is not')  # fmt: skip
assert wrong > 0 == missing, 'this has changed'
PY
