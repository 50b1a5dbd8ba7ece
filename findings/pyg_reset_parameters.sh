#!/usr/bin/env bash
# torch-geometric 2.8.1: reset_parameters of seven layers and models leaves parameters as trained.
#
# Expected: "Resets all learnable parameters of the module" (docstring of MessagePassing, GPSConv and aggregations).
# Cross-validation resets a model before each fold, so that nothing that was learned on one fold is in the next one.
# Seen: GPSConv, SetTransformerAggregation, GraphMultisetTransformer and PatchTransformerAggregation call _reset_parameters of
# torch.nn.MultiheadAttention, which is a part of torch's constructor and does not set the weight of the output projection.
# RGATConv does not set w and l2. MeshCNNConv inherits an empty reset, and that of GPSE is "pass": nothing is reset.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import torch
import torch_geometric
from torch.nn import Linear
from torch_geometric.nn import GPSE, GATConv, GPSConv, MeshCNNConv, RGATConv
from torch_geometric.nn.aggr import GraphMultisetTransformer, PatchTransformerAggregation, SetTransformerAggregation

print(f'torch {torch.__version__}, torch-geometric {torch_geometric.__version__}')
mesh = torch.nn.ModuleList(Linear(8, 8) for _ in range(5))
layers = {
    'GATConv': (GATConv(8, 8), []),
    'GPSConv, performer': (GPSConv(8, None, heads=2, attn_type='performer'), []),
    'GPSConv': (GPSConv(8, None, heads=2), ['attn.out_proj.weight']),
    'SetTransformerAggregation': (SetTransformerAggregation(8, heads=2), 'out_proj.weight'),
    'GraphMultisetTransformer': (GraphMultisetTransformer(8, 3, heads=2), 'out_proj.weight'),
    'PatchTransformerAggregation': (PatchTransformerAggregation(8, 8, 4, 8, heads=2), 'out_proj.weight'),
    'RGATConv': (RGATConv(8, 8, num_relations=2), ['w', 'l2']),
    'MeshCNNConv': (MeshCNNConv(8, 8, mesh), ''),
    'GPSE': (GPSE(layers_mp=2, num_node_targets=2, num_graph_targets=1, dim_inner=8), ''),
}
for name, (layer, wanted) in layers.items():
    with torch.no_grad():
        for number in layer.parameters():
            number.fill_(5.0)  # as trained
    layer.reset_parameters()
    kept = [key for key, number in layer.named_parameters() if bool((number == 5).all())]
    if isinstance(wanted, str):  # the end of the names
        wanted = [key for key, _ in layer.named_parameters() if key.endswith(wanted)]
    shown = ', '.join(kept[:3]) + (' and others' if len(kept) > 3 else '')
    print(f'{name}: {len(kept)} of {len(list(layer.parameters()))} parameters are as before: {shown or "none"}')
    # Slopes of batch norm begin at 1, and no parameter begins at 5.
    assert kept == wanted and ('GAT' in name or 'performer' in name or kept), 'this has changed'
PY
