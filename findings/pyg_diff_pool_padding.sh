#!/usr/bin/env bash
# torch-geometric 2.8.1: the two losses of dense_diff_pool depend on the padding and on the size of the batch.
#
# Expected: mask is documented as "the valid nodes for each graph". The entropy loss is documented as a mean over the N nodes, and the
# link loss as a norm per graph. So padding changes neither, and four copies of a graph have the loss of one. The two losses of
# dense_mincut_pool do not depend on the padding.
# Seen: the entropy is divided by the number of rows with the padding. The link loss is one norm over the whole batch, divided by
# adj.numel() (as documented at normalize), which counts the padding too. A graph in a batch with a graph of four times its size
# has a quarter of the entropy, and one sixteenth of the link loss. A batch of four copies has half of the link loss of one.
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
from torch_geometric.nn import dense_diff_pool, dense_mincut_pool

print(f'torch-geometric {torch_geometric.__version__}')
torch.manual_seed(0)
x, s = torch.randn(1, 4, 3), torch.randn(1, 4, 2)
adj = torch.tensor([[[0.0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]])
seen = []
for size in (4, 8, 16):
    more = size - 4
    mask = torch.arange(size).view(1, -1) < 4
    padded = pad(x, (0, 0, 0, more)), pad(adj, (0, more, 0, more)), pad(s, (0, 0, 0, more)), mask
    seen.append(torch.stack(dense_diff_pool(*padded)[2:] + dense_mincut_pool(*padded)[2:]))
    print(f'4 nodes in {size} rows: diff_pool link {seen[-1][0]:.4f}, entropy {seen[-1][1]:.4f}, mincut_pool {seen[-1][2:].tolist()}')
copies = dense_diff_pool(x.repeat(4, 1, 1), adj.repeat(4, 1, 1), s.repeat(4, 1, 1))[2]
print(f'batch of 4 copies: link {copies:.4f}')
assert torch.allclose(seen[0] / seen[2], torch.tensor([16.0, 4.0, 1.0, 1.0])), 'this has changed'
assert torch.allclose(copies, seen[0][0] / 2), 'this has changed'
PY
