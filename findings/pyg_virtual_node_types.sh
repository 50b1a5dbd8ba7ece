#!/usr/bin/env bash
# torch-geometric 2.8.1: the "special edge types" of VirtualNode are ordinary types of other graphs of the same data set.
#
# Expected: "special edge types will be added both for in-coming and out-going information to and from the virtual node". A model with
# a weight per type, such as RGCNConv, tells a virtual edge from a bond in every graph.
# Seen: the two new types are one and two above the largest type of this one graph. In molecules with the types 0 to 3 for single, double,
# triple and aromatic bonds, the virtual edges of ethane have the types 1 and 2, and those of benzene 4 and 5. So a relational
# model sees a double bond from each atom of ethane to the virtual node. Nothing warns, and no argument sets the number of types.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" -W error::UserWarning - <<'PY'
import torch
import torch_geometric
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import VirtualNode

print(f'torch-geometric {torch_geometric.__version__}')


def molecule(bonds):
    ends = torch.tensor([bond[:2] for bond in bonds]).t()
    kind = torch.tensor([bond[2] for bond in bonds])
    return Data(edge_index=torch.cat([ends, ends.flip(0)], dim=1), edge_type=kind.repeat(2), num_nodes=int(ends.max()) + 1)


molecules = {
    'ethane': molecule([(0, 1, 0)]),
    'ethene': molecule([(0, 1, 1)]),
    'benzene': molecule([(i, (i + 1) % 6, 3) for i in range(6)]),
}
added = {}
for name, data in molecules.items():
    result = VirtualNode()(data.clone())
    added[name] = result.edge_type[data.num_edges :].unique().tolist()
    print(f'{name}: types of bonds {data.edge_type.unique().tolist()}, of virtual edges {added[name]}')
batch = Batch.from_data_list([VirtualNode()(data.clone()) for data in molecules.values()])
print(f'types in the batch: {batch.edge_type.unique().tolist()}, {len({t for types in added.values() for t in types})} of them virtual')
assert added == {'ethane': [1, 2], 'ethene': [2, 3], 'benzene': [4, 5]}, 'this has changed'
PY
