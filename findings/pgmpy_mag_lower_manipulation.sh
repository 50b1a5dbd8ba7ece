#!/usr/bin/env bash
# pgmpy 1.1.2: lower_manipulation of MAG removes invisible edges, and makes the other edges of their ends bidirected.
#
# Expected: the lower manipulation deletes the visible edges out of X, replaces the invisible ones by bidirected edges, and keeps
# all others (Zhang 2008, definition 11, which the class cites). "All other edges remain unchanged", says the documentation, too.
# Seen: an invisible edge X -> Y is deleted, and all edges of Y become bidirected. X -> Y -> Z, where X -> Y is invisible, becomes X, Y <-> Z
# instead of X <-> Y -> Z: a confounder of X and Y, which is possible, is lost, and Y no longer causes Z. Visible edges are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pgmpy==1.1.2 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 \
  scikit-learn==1.9.1 statsmodels==0.15.0 scikit-base==1.2.0 opt_einsum==3.4.0 pyparsing==3.3.3 joblib==1.6.0 tqdm==4.70.1 \
  huggingface_hub==2.4.0
cd "$folder"
PYTHONHASHSEED=0 OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

from pgmpy.base import MAG

print(f'pgmpy {version("pgmpy")}')
names = {('-', '>'): '->', ('>', '-'): '<-', ('>', '>'): '<->'}


def edges(graph):
    return {(*sorted((u, v)), *(data['marks'][end] for end in sorted((u, v)))) for u, v, data in graph.edges(data=True)}


def text(found):
    return sorted(f'{u} {names[at_u, at_v]} {v}' for u, v, at_u, at_v in found)


def lower(graph, cut):
    """By the definition, with visible edges as the library says."""
    done = set()
    for u, v, at_u, at_v in edges(graph):
        if at_u == '>' and at_v == '-' and v in cut or at_u == '-' and at_v == '>' and u in cut:
            if not graph.is_visible_edge(*((u, v) if u in cut and at_u == '-' else (v, u))):
                done.add((u, v, '>', '>'))
        else:
            done.add((u, v, at_u, at_v))
    return done


cases = {
    'visible': [('A', 'X', '-', '>'), ('X', 'Y', '-', '>'), ('Y', 'Z', '-', '>')],
    'invisible': [('X', 'Y', '-', '>'), ('Y', 'Z', '-', '>')],
    'invisible, with a parent of Y': [('X', 'Y', '-', '>'), ('B', 'Y', '-', '>')],
}
for name, ebunch in cases.items():
    graph = MAG(ebunch=ebunch)
    assert graph.is_visible_edge('X', 'Y') == (name == 'visible'), 'this has changed'
    seen, right = edges(graph.lower_manipulation({'X'})), lower(graph, {'X'})
    print(f'{name}: {text(edges(graph))} gives {text(seen)}, by the definition {text(right)}')
    assert (seen == right) == (name == 'visible'), 'this has changed'
assert seen == {('B', 'Y', '>', '>')}, 'this has changed'
PY
