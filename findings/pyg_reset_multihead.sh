#!/usr/bin/env bash
# torch-geometric 2.8.1: reset_parameters of layers with multi-head attention keeps its output projection, as trained.
#
# Expected: "Resets all learnable parameters of the module" (docstring of GPSConv). Cross-validation resets a model before each
# fold, so that nothing that was learned on one fold's training set is in the next one.
# Seen: GPSConv, SetTransformerAggregation and GraphMultisetTransformer call _reset_parameters of torch.nn.MultiheadAttention.
# That is a part of torch's constructor. It sets the input projections and the biases, and the weight of the output projection
# keeps its numbers: out_proj.weight is as trained in each of these layers. With GPSConv(attn_type='performer') nothing is left.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import torch
import torch_geometric
from torch_geometric.nn import GPSConv
from torch_geometric.nn.aggr import GraphMultisetTransformer, SetTransformerAggregation

print(f'torch {torch.__version__}, torch-geometric {torch_geometric.__version__}')
torch.manual_seed(0)
x, edge_index, index = torch.randn(10, 8), torch.randint(10, (2, 30)), torch.zeros(10, dtype=torch.long)
layers = {
    'GPSConv, multihead': (GPSConv(8, None, heads=2), lambda layer: layer(x, edge_index)),
    'GPSConv, performer': (GPSConv(8, None, heads=2, attn_type='performer'), lambda layer: layer(x, edge_index)),
    'SetTransformerAggregation': (SetTransformerAggregation(8, heads=2), lambda layer: layer(x, index)),
    'GraphMultisetTransformer': (GraphMultisetTransformer(8, 3, heads=2), lambda layer: layer(x, index)),
}
for name, (layer, call) in layers.items():
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
    for _ in range(20):
        optimizer.zero_grad()
        call(layer).square().mean().backward()
        optimizer.step()
    trained = {key: value.clone() for key, value in layer.named_parameters() if value.dim() == 2}
    layer.reset_parameters()
    kept = [key for key, value in layer.named_parameters() if key in trained and torch.equal(value, trained[key])]
    print(f'{name}: {len(kept)} of {len(trained)} matrices are as trained after a reset: {", ".join(kept) or "none"}')
    wanted = [key for key in trained if key.endswith('out_proj.weight')]
    assert kept == wanted and (len(kept) > 0) == ('performer' not in name), 'this has changed'
PY
