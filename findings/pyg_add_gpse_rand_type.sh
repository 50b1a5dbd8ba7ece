#!/usr/bin/env bash
# torch-geometric 2.8.1: AddGPSE ignores rand_type, and always takes normal random features.
#
# Expected: rand_type is the "type of random features to use. Options are NormalSE, UniformSE, BernoulliSE". Features of
# UniformSE are between 0 and 1, and those of BernoulliSE are 0 or 1, as with gpse_process(rand_type=...).
# Seen: the transform calls gpse_process with the constant 'NormalSE'. So all three options are the same, and a model which was
# trained with uniform or binary features gets inputs from another distribution.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import numpy as np
import torch
import torch_geometric
from torch_geometric.data import Data
from torch_geometric.nn import GPSE
from torch_geometric.nn.models.gpse import IdentityHead, gpse_process
from torch_geometric.transforms import AddGPSE

print(f'torch-geometric {torch_geometric.__version__}')
torch.manual_seed(0)
n, seen = 50, []
a = torch.arange(n)
edges = torch.stack([torch.cat([a, (a + 1) % n]), torch.cat([(a + 1) % n, a])])
model = GPSE(dim_in=6, dim_out=5, dim_inner=8, layers_mp=2).eval()
model.post_mp = IdentityHead()  # as in from_pretrained
model.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].x.clone().numpy()))
results = {}
for kind in ('NormalSE', 'UniformSE', 'BernoulliSE'):
    for name in ('AddGPSE', 'gpse_process'):
        np.random.seed(0)
        data = Data(edge_index=edges, num_nodes=n)
        if name == 'AddGPSE':
            results[kind] = AddGPSE(model, use_vn=False, rand_type=kind)(data).pestat_GPSE
        else:
            gpse_process(model, data, kind, use_vn=False)
        x = seen.pop()
        np.random.seed(0)
        normal, uniform = np.random.normal(size=(n, 6)), np.random.RandomState(0).uniform(size=(n, 6))
        right = {'NormalSE': normal, 'UniformSE': uniform, 'BernoulliSE': uniform < 0.5}[kind]
        print(f'{name}, {kind}: inputs from {x.min():.2f} to {x.max():.2f}, by the documentation from {right.min():.2f} '
              f'to {right.max():.2f}')  # fmt: skip
        assert np.allclose(x, right.astype('float32')) == (kind == 'NormalSE' or name == 'gpse_process'), 'this has changed'
        assert np.allclose(x, normal.astype('float32')) == (kind == 'NormalSE' or name == 'AddGPSE'), 'this has changed'
assert torch.equal(results['NormalSE'], results['UniformSE']) and torch.equal(results['NormalSE'], results['BernoulliSE'])
PY
