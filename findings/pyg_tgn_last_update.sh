#!/usr/bin/env bash
# torch-geometric 2.8.1: TGNMemory forgets when nodes were updated, if it is evaluated and then trained further.
#
# Expected: forward "returns, for all nodes n_id, their current memory and their last updated timestamp". Without a new
# interaction, both stay as they are. In the cited paper (Rossi et al. 2020), the memory of a node is updated by events which
# involve it, and is zero before the first one.
# Seen: eval() applies and empties the store of messages. After train(), a node has no message. Its timestamp is then the
# maximum of nothing, which is 0, and its memory is updated by a message of zeros. So both differ from those in eval(), although
# nothing has happened. update_state writes the 0 to the state of a node at its next interaction, so that the time since its
# last update is that since 0. A node without any interaction gets a memory that is not zero.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import torch
import torch_geometric
from torch_geometric.nn.models.tgn import IdentityMessage, LastAggregator, TGNMemory

print(f'torch-geometric {torch_geometric.__version__}')
torch.manual_seed(0)
memory, nodes = TGNMemory(4, 1, 2, 2, IdentityMessage(1, 2, 2), LastAggregator()), torch.arange(3)
source, target, time, message = torch.tensor([0, 1]), torch.tensor([1, 0]), torch.tensor([700, 900]), torch.ones(2, 1)
memory.train()
memory.update_state(source, target, time, message)
seen = {}
for name, mode in (('train() after the interactions', True), ('eval()', False), ('train() again', True)):
    memory.train(mode)
    state, last = memory(nodes)
    seen[name] = state.detach().clone(), last.tolist()
    print(f'{name}: memory {state.detach().numpy().round(3).flatten()}, last updated {last.tolist()}')
states, times = zip(*seen.values())
right = [max(t for s, d, t in zip(source.tolist(), target.tolist(), time.tolist()) if node in (s, d)) for node in (0, 1)] + [0]
print(f'by definition, last updated {right}, and the memory of node 2, which has no interaction, is zero')
assert times[0] == times[1] == right == [900, 900, 0] and times[2] == [0, 0, 0], 'this has changed'
assert torch.allclose(states[0][:2], states[1][:2]) and (states[2] - states[1]).abs().min() > 0.01, 'this has changed'
assert states[1][2].abs().min() > 0.1, 'this has changed'

memory.update_state(torch.tensor([0]), torch.tensor([2]), torch.tensor([950]), torch.ones(1, 1))
written = memory.last_update.tolist()
print(f'last_update after an interaction of nodes 0 and 2, before it is applied: {written}, by definition {[900, 900, 0, 0]}')
assert written == [0, 900, 0, 0], 'this has changed'
PY
