#!/usr/bin/env bash
# topomodelx 0.0.1: Conv with aggr_norm divides by the sum of signs, and MessagePassing returns too few rows.
#
# Expected: aggr_norm is "whether to normalize the aggregated message by the neighborhood size", says the documentation: a mean over the
# neighbors. The neighborhood may be a signed incidence matrix, as TopoNetX gives it. A cell without neighbors gets no message. The output
# has one row per target cell.
# Seen: the size is the sum of the entries of the row. For signs, 2 neighbors with -1 have the size -2, which turns the message around, and
# one of each sign have the size 0: the output is infinite. For a cell without neighbors it is NaN. With attention, the sum of the attention
# values is the size, which may be close to 0 or below it: the largest output is many times the largest neighbor. The output of
# MessagePassing ends at the last cell that has neighbors.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 scipy==1.17.1 networkx==3.6.1
"$folder/venv/bin/pip" install --quiet --no-deps topomodelx==0.0.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np
import torch
from topomodelx.base.conv import Conv
from topomodelx.base.message_passing import MessagePassing

print(f'topomodelx {version("topomodelx")}')
graph = nx.path_graph(4)
graph.add_node(4)
signed = torch.tensor(nx.incidence_matrix(graph, oriented=True).toarray(), dtype=torch.float)
x = torch.tensor([[1.0], [2.0], [4.0]])


class Sum(MessagePassing):
    """The defaults. MessagePassing is to be inherited, says the documentation."""


def rows(output):
    return output.detach().flatten().numpy()


def mean(neighborhood, x):
    size = (neighborhood != 0).sum(1, keepdim=True).clamp(min=1)
    return rows(neighborhood @ x / size)


for name, neighborhood in (('incidence without signs', signed.abs()), ('with signs', signed)):
    seen = rows(Conv(1, 1, aggr_norm=True, with_linear_transform=False)(x, neighborhood.to_sparse()))
    right = mean(neighborhood, x)
    print(f'{name}: {seen}, by the number of neighbors {right}')
    assert np.isnan(seen[4]) and right[4] == 0, 'this has changed'
    assert np.allclose(seen[:4], right[:4]) == (neighborhood is not signed), 'this has changed'
assert not np.isfinite(seen[1:3]).any(), 'this has changed'

star = torch.tensor(nx.to_numpy_array(nx.star_graph(3)), dtype=torch.float)
signs = torch.tensor([[-1.0, -1.0, 0.0], [0.0, 1.0, 1.0]])
seen = rows(Conv(1, 1, aggr_norm=True, with_linear_transform=False)(x, signs.to_sparse()))
print(f'two neighbors with -1, two with 1: {seen}, by the number of neighbors {mean(signs, x)}')
assert np.allclose(seen, [1.5, 3]) and np.allclose(mean(signs, x), [-1.5, 3]), 'this has changed'

torch.manual_seed(0)
features = torch.rand(4, 1)
largest = [Conv(1, 1, aggr_norm=True, with_linear_transform=False, att=True)(features, star.to_sparse()).abs().max().item()
           for _ in range(200)]  # fmt: skip
print(f'attention, neighbors up to {features.max():.2f}: largest output of 200 layers {max(largest):.1f}')
assert max(largest) > 3 > features.max(), 'this has changed'

seen = rows(Sum()(x, signed.to_sparse()))
print(f'MessagePassing, {len(graph)} target cells, the last without neighbors: {len(seen)} rows {seen}, by the product {rows(signed @ x)}')
assert len(seen) == 4 and np.allclose(seen, rows(signed @ x)[:4]), 'this has changed'
PY
