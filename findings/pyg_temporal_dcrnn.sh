#!/usr/bin/env bash
# torch-geometric-temporal 0.56.2: the diffusion convolution of DCRNN depends on the order of the edges, and is no random walk.
#
# Expected: the layer refers to the paper of DCRNN, whose steps are the random walks D_O^(-1) W and D_I^(-1) W^T. Their rows sum to
# one. Edges listed in another order are the same graph.
# Seen: the numbers for the reverse walk are in the order of edge_index, while its edges are those of the transposed dense matrix,
# in the order of their ends. So each edge gets the number of another one. In both walks, the numbers are 1 / degree where
# weight / degree belongs, and the forward one is transposed. The script loads the file of the layer alone, as the whole
# package needs compiled extensions.
# The directions are asked about in https://github.com/benedekrozemberczki/pytorch_geometric_temporal/issues/50
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
"$folder/venv/bin/pip" install --quiet --no-deps torch-geometric-temporal==0.56.2
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import distribution
from importlib.util import module_from_spec, spec_from_file_location

import torch
import torch_geometric

package = distribution('torch-geometric-temporal')
spec = spec_from_file_location('dcrnn', package.locate_file('torch_geometric_temporal/nn/recurrent/dcrnn.py'))
dcrnn = sys.modules['dcrnn'] = module_from_spec(spec)
spec.loader.exec_module(dcrnn)
print(f'torch-geometric-temporal {package.version}, torch-geometric {torch_geometric.__version__}')

torch.manual_seed(0)
edge_index = torch.tensor([[0, 0, 1, 2, 3, 1], [1, 2, 2, 0, 1, 3]])
weight = torch.tensor([1.0, 3.0, 2.0, 1.0, 0.5, 4.0])
order = torch.tensor([5, 2, 0, 1, 4, 3])
conv = dcrnn.DConv(4, 4, K=2)
adj = torch.zeros(4, 4)
adj[edge_index[0], edge_index[1]] = weight
walks = adj / adj.sum(1, keepdim=True), adj.t() / adj.sum(0).view(-1, 1)
seen = {}
for direction, name in enumerate(('forward', 'reverse')):
    with torch.no_grad():
        conv.weight.zero_()
        conv.weight[direction, 1] = torch.eye(4)
        step, reordered = (conv(torch.eye(4), edge_index[:, p], weight[p]) for p in (torch.arange(6), order))
    change = (reordered - step).abs().max().item()
    right = torch.allclose(step, walks[direction]) or torch.allclose(step, walks[direction].t())
    seen[name] = change, right
    print(f'{name}: the walk of the paper\n{walks[direction]}\nthe layer\n{step}')
    print(f'the same edges in another order: differs by {change:.3f}')
assert seen['forward'] == (0.0, False) and seen['reverse'][0] > 0.1 and not seen['reverse'][1], 'this has changed'
PY
