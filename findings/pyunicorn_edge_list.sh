#!/usr/bin/env bash
# pyunicorn 1.0.0: an undirected network from the edge list of an undirected network has twice as many links, and matching indices above 1.
#
# Expected: "Entries [i,0], [i,1] contain the end-nodes of an edge", for Network(edge_list=...), and edge_list(): "Return the network's edge
# list" (docstrings, www.pik-potsdam.de/~donges/pyunicorn/api/core/network.html). Network(edge_list=network.edge_list()) is the same network.
# The adjacency matrix is one of "0s and 1s".
# Seen: edge_list gives each link of an undirected network in both directions, and set_edge_list in core/network.py adds the other direction
# of each, without a warning. Links are summed, and the entries of the adjacency matrix are 2: the number of links, the link density, and
# the degrees are twice the right ones, the Laplacian has other eigenvalues, and matching indices are 2, or infinite. Clustering and path
# lengths are right. An edge that is listed twice makes the same difference.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 igraph==1.0.0 h5netcdf==1.8.2 h5py==3.16.0 tqdm==4.70.1
"$folder/venv/bin/pip" install --quiet --no-deps pyunicorn==1.0.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pyunicorn.core.network import Network

print(f'pyunicorn {version("pyunicorn")}')
network = Network.SmallTestNetwork()
network.silence_level = 3
adjacency = np.array(network.adjacency)
assert set(adjacency.flatten()) == {0, 1} and network.n_links == adjacency.sum() / 2
once = [edge for edge in network.edge_list().tolist() if edge[0] < edge[1]]
common = adjacency @ adjacency
union = adjacency.sum(0) + adjacency.sum(1)[:, None] - common
spectrum = np.linalg.eigvalsh(np.diag(adjacency.sum(1)) - adjacency)

for name, edges in (('each link once', once), ('edge_list() of the network', network.edge_list())):
    copy = Network(edge_list=edges, silence_level=3)
    matching = copy.matching_index()
    eigenvalues = np.linalg.eigvalsh(copy.laplacian())
    print(f'{name}: {copy.n_links} links, right {network.n_links}. Density {copy.link_density:.3f}, right {network.link_density:.3f}. Degrees '
          f'{copy.degree()}, right {adjacency.sum(1)}. Largest matching index {matching.max()}, right {(common / union).max()}. Largest '
          f'eigenvalue of the Laplacian {eigenvalues[-1]:.3f}, right {spectrum[-1]:.3f}')  # fmt: skip
    factor = 1 if edges is once else 2
    assert np.array_equal(copy.adjacency, factor * adjacency) and copy.n_links == factor * network.n_links, 'this has changed'
    assert np.isclose(copy.link_density, factor * network.link_density) and np.allclose(eigenvalues, factor * spectrum), 'this has changed'
    assert np.allclose(matching, common / union) == (factor == 1) and (matching.max() > 1.5) == (factor == 2), 'this has changed'
    assert np.isclose(copy.average_path_length(), network.average_path_length())
    assert np.allclose(copy.local_clustering(), network.local_clustering())

twice = Network(edge_list=once + once[:1], silence_level=3)
print(f'one link listed twice: {twice.n_links} links, degrees {twice.degree()}')
assert twice.n_links == network.n_links + 1 and np.array(twice.adjacency).max() == 2, 'this has changed'
PY
