#!/usr/bin/env bash
# TopoNetX 0.2.0 (0.4.0 has the same code): adjacency_matrix and coadjacency_matrix of a CellComplex ignore signed and weight.
#
# Expected: signed is documented as "whether the returned adjacency matrix should be signed (i.e., respect orientations) or unsigned", and
# weight as the attribute "to use as weights". Two edges that a cell runs through in the same direction have another sign than
# two in opposite directions. SimplicialComplex has both arguments: signed works, and a weight raises an error.
# Seen: all entries are 1, whatever signed and weight say: the signed incidence matrix is passed to a function that only asks whether
# entries are zero. The Laplacians of CellComplex are signed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet toponetx==0.2.0 numpy==1.26.4 scipy==1.13.1 networkx==3.6.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import toponetx

print(f'TopoNetX {version("toponetx")}')
cells = toponetx.CellComplex([[0, 1, 2], [1, 2, 3]])
simplices = toponetx.SimplicialComplex([[0, 1, 2], [1, 2, 3]])
for name in ('adjacency_matrix', 'coadjacency_matrix'):
    for kind, complex_ in (('CellComplex', cells), ('SimplicialComplex', simplices)):
        signed, unsigned = (getattr(complex_, name)(1, signed=value).toarray() for value in (True, False))
        print(f'{name} of a {kind}: signed {sorted(set(signed.ravel().tolist()))}, unsigned {sorted(set(unsigned.ravel().tolist()))}')
        assert np.array_equal(signed, unsigned) == (kind == 'CellComplex'), 'this has changed'
incidence = cells.incidence_matrix(2).toarray()
product = incidence @ incidence.T
right = product - np.diag(product.diagonal())
print(f'entries of B B^T beside the diagonal: {sorted(set(right.ravel().tolist()))}')
assert -1 in right and 1 in right, 'the definition is wrong'
cells.set_edge_attributes({edge: 5.0 for edge in cells.edges}, name='strength')
seen = cells.coadjacency_matrix(1, weight='strength').toarray()
print(f'with a weight of 5 on each edge: {sorted(set(seen.ravel().tolist()))}')
assert set(seen.ravel().tolist()) == {0, 1}, 'this has changed'
PY
