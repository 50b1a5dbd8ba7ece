#!/usr/bin/env bash
# egnn-pytorch 0.2.8, se3-transformer-pytorch 0.9.0: num_adj_degrees counts nodes of distance 4 as third neighbours.
#
# Expected: num_adj_degrees=3 "fetches up to 3rd degree neighbors" (README), and embeds this degree for each pair of nodes, the distance
# in the graph. Farther nodes have degree 0.
# Seen: the matrix is squared at each step, in place of being multiplied by the one of the graph. Degree 3 are distances 3 and 4, degree 4
# are distances 5 to 8. Without self-loops in the matrix, neighbours in a path have degree 2, as no walk of length 2 joins them: pairs
# which the square does not contain are overwritten as well. All odd distances are lost. The README has self-loops in its matrix, and does
# not name them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps egnn-pytorch==0.2.8 se3-transformer-pytorch==0.9.0 einops==0.8.2
cd "$folder"
HOME="$folder" OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from egnn_pytorch import EGNN_Network
from se3_transformer_pytorch import SE3Transformer

print(f'egnn-pytorch {version("egnn-pytorch")}, se3-transformer-pytorch {version("se3-transformer-pytorch")}')
n, degrees = 7, 3
distance = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))  # A path.
right = np.where(distance <= degrees, distance, 0)
torch.manual_seed(0)
feats, coors = torch.randn(1, n, 4), torch.randn(1, n, 3)
mask = torch.ones(1, n, dtype=torch.bool)
models = {
    'egnn': EGNN_Network(depth=1, dim=4, num_adj_degrees=degrees, adj_dim=2),
    'se3': SE3Transformer(
        dim=4, depth=1, heads=1, dim_head=2, num_degrees=1, output_degrees=1, num_adj_degrees=degrees, adj_dim=2, num_neighbors=2
    ),
}


@torch.no_grad()
def embedded(name, adjacency):
    """Which degree is embedded for each pair. Those of a node with itself are not in SE3Transformer."""
    kept = []
    handle = models[name].adj_emb.register_forward_hook(lambda _, inputs, __: kept.append(inputs[0][0].numpy()))
    models[name](feats, coors, adj_mat=adjacency, mask=mask)
    handle.remove()
    return kept[0] if name == 'egnn' else np.array([np.insert(row, i, right[i, i]) for i, row in enumerate(kept[0])])


away = ~np.eye(n, dtype=bool)
for loops in (True, False):
    adjacency = torch.from_numpy((distance == 1) | (loops & (distance == 0)))
    for name in models:
        seen = embedded(name, adjacency)
        print(f'{name}, {"with" if loops else "without"} self-loops: degrees from the first node of a path {seen[0].tolist()}, '
              f'expected {right[0].tolist()}. Wrong pairs: {(seen != right)[away].sum()} of {away.sum()}')  # fmt: skip
        if loops:  # The distance 4 is in degree 3, everything else is right.
            assert (seen == np.where(distance == 4, 3, right))[away].all(), 'this has changed'
        else:
            assert (seen[distance == 1] != 1).all() and (seen != right)[away].sum() > n, 'this has changed'
PY
