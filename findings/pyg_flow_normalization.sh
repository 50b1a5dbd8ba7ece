#!/usr/bin/env bash
# torch-geometric 2.8.1: with flow="target_to_source", ClusterGCNConv and WLConvContinuous normalise by the degree of the wrong node.
#
# Expected: both document an average over the neighbors, so constant features stay constant. flow is an argument of both, and reverses
# the edges: on an undirected graph, it has no effect, as in GCNConv and SAGEConv.
# Seen: the degree is always that of edge_index[1], while messages now arrive at edge_index[0]. ClusterGCNConv turns ones into 1.75 and
# 0.75 on a star. WLConvContinuous does so on directed graphs, here by the factor two and a half.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import torch
import torch_geometric
from torch_geometric.nn import ClusterGCNConv, GCNConv, SAGEConv, WLConvContinuous
from torch_geometric.utils import to_undirected

print(f'torch-geometric {torch_geometric.__version__}')
forward, backward = 'source_to_target', 'target_to_source'
directed = torch.tensor([[1, 2, 3, 4, 0], [0, 0, 0, 0, 1]])
star = to_undirected(torch.tensor([[0, 0, 0], [1, 2, 3]]))


def output(kind, flow, edge_index):
    torch.manual_seed(0)
    conv = kind(flow=flow) if kind is WLConvContinuous else kind(1, 1, flow=flow)
    for name, parameter in conv.named_parameters():
        torch.nn.init.constant_(parameter, float(name.endswith('weight') and 'root' not in name and 'lin_r' not in name))
    return conv(torch.ones(int(edge_index.max()) + 1, 1), edge_index).flatten().tolist()


seen = {}
for kind in (GCNConv, SAGEConv, ClusterGCNConv, WLConvContinuous):
    results = [output(kind, forward, star), output(kind, backward, star)]
    results += [output(kind, forward, directed), output(kind, backward, directed.flip(0))]
    seen[kind.__name__] = [torch.allclose(torch.tensor(a), torch.tensor(b)) for a, b in (results[:2], results[2:])]
    for name, (a, b) in (('star', results[:2]), ('directed', results[2:])):
        print(f'{kind.__name__}, {name}: {[round(v, 3) for v in a]}, reversed twice {[round(v, 3) for v in b]}')
wrong = {'ClusterGCNConv': [False, False], 'WLConvContinuous': [True, False]}
assert seen == {'GCNConv': [True, True], 'SAGEConv': [True, True], **wrong}, 'this has changed'
PY
