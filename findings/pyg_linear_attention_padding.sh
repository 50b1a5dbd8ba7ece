#!/usr/bin/env bash
# torch-geometric 2.8.1: the linear attentions PerformerAttention, SGFormerAttention and PolynormerAttention count the padding.
#
# Expected: mask is documented as "indicating the valid nodes for each graph". So a graph has the same output alone and in a batch
# with a larger graph, as with GPSConv(attn_type="multihead").
# Seen: mask clears the values of the padding, but not its keys. Each key of the padding stays in the denominator of the attention.
# SGFormerAttention takes N, which its equation adds to both parts, with the padding too. So the output for a graph depends on the
# size of the largest graph in its batch: GPSConv(attn_type="performer") moves by 0.27 beside a graph of 2,000 nodes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import torch
import torch_geometric
from torch.nn.functional import pad
from torch_geometric.nn import GPSConv
from torch_geometric.nn.attention import PerformerAttention, PolynormerAttention, SGFormerAttention

print(f'torch-geometric {torch_geometric.__version__}')
torch.manual_seed(0)
x, no_edges = torch.randn(4, 8), torch.empty(2, 0, dtype=torch.long)
seen = {}
for kind in (PerformerAttention, SGFormerAttention, PolynormerAttention):
    attention = kind(8, heads=2, head_channels=4).eval()
    alone = attention(x[None])[0]
    for size in (4, 32, 256):
        padded = attention(pad(x, (0, 0, 0, size - 4))[None], torch.arange(size)[None] < 4)[0, :4]
        seen[kind.__name__, size] = (padded - alone).abs().max().item()
        print(f'{kind.__name__}: 4 nodes in {size} rows differ by {seen[kind.__name__, size]:.2g}')
for kind in ('multihead', 'performer'):
    conv = GPSConv(8, None, heads=2, attn_type=kind, norm=None).eval()
    alone = conv(x, no_edges, torch.zeros(4, dtype=torch.long))
    for other in (4, 2000):
        batch = torch.tensor([0] * 4 + [1] * other)
        seen[kind, other] = (conv(torch.cat([x, torch.randn(other, 8)]), no_edges, batch)[:4] - alone).abs().max().item()
        print(f'GPSConv, {kind}: 4 nodes beside a graph of {other} nodes differ by {seen[kind, other]:.2g}')
same = [('PerformerAttention', 4), ('SGFormerAttention', 4), ('PolynormerAttention', 4)]
same += [('multihead', 4), ('multihead', 2000), ('performer', 4)]
assert all(seen.pop(key) < 1e-5 for key in same) and min(seen.values()) > 5e-3, 'this has changed'
PY
