#!/usr/bin/env bash
# netlsd 1.0.2: normalization accepts no array, and "complete" does not normalise the heat trace of a complete graph to 1.
#
# Expected: normalization is "str or numpy.ndarray [...] If np.ndarray, they are treated as exact normalization constants". "complete"
# divides by the trace of the complete graph, as the paper has it: with the Laplacian D - A, its eigenvalues are 0, and n for n - 1
# times. So the complete graph itself has the signature 1, as with the normalized Laplacian and with the wave kernel.
# Seen: any array raises "TypeError: unhashable type", since it is first looked for in a set. And the constant of "complete" with
# normalized_laplacian=False counts the eigenvalue n for n times. The complete graph of 4 nodes starts at 0.80 instead of 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet netlsd==1.0.2 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import netlsd
import networkx as nx
import numpy as np

print(f'netlsd {version("netlsd")}')
times = np.array([0.001, 0.3, 1.0])
graph, seen = nx.complete_graph(4), {}
eigenvalues = nx.laplacian_spectrum(graph)
constant = {'heat': np.exp(-np.outer(times, eigenvalues)).sum(1), 'wave': np.cos(np.outer(times, eigenvalues)).sum(1)}
for name, function in (('heat', netlsd.heat), ('wave', netlsd.wave)):
    raw = function(graph, times, normalization='none', normalized_laplacian=False)
    assert np.allclose(raw, constant[name]), 'this has changed'
    seen[name] = function(graph, times, normalization='complete', normalized_laplacian=False)
    print(f'{name}, complete graph over complete graph: {seen[name].round(3)}')
    try:
        function(graph, times, normalization=constant[name], normalized_laplacian=False)
        message = 'works'
    except TypeError as error:
        message = str(error)
    print(f'{name}, normalization by an array: {message}')
    assert message.startswith('unhashable type'), 'this has changed'
assert np.allclose(seen['wave'], 1) and np.allclose(seen['heat'][0], 0.8, atol=0.01), 'this has changed'
PY
