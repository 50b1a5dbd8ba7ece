#!/usr/bin/env bash
# torch-geometric 2.8.1: TGNMemory applies a message again and again to a node which is both a source and a destination.
#
# Expected: in the cited paper (Rossi et al. 2020), the messages of a node from one batch are aggregated, and its memory is
# updated with them once: "for each event involving the node itself". Events of later batches bring their own messages.
# Seen: messages stay in the two stores, one for sources and one for destinations, until the node has newer ones in the same
# role. A node that was a destination once, and a source in later batches, gets its first message in each of their updates.
# With MeanAggregator, this old message has half of the weight. If the node is a source in all batches, all is right.
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
from torch_geometric.nn.models.tgn import MeanAggregator, TGNMemory

print(f'torch-geometric {torch_geometric.__version__}')


class RawMessage(torch.nn.Module):
    out_channels = 3

    def forward(self, z_src, z_dst, raw_msg, t_enc):
        return raw_msg


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(cell, message, state):  # the equations of torch.nn.GRUCell without biases
    inputs, hidden = (part.detach().numpy() for part in (cell.weight_ih, cell.weight_hh))
    (r1, z1, n1), (r2, z2, n2) = np.split(inputs @ message, 3), np.split(hidden @ state, 3)
    update = sigmoid(z1 + z2)
    return (1 - update) * np.tanh(n1 + sigmoid(r1 + r2) * n2) + update * state


later = [(0, 2), (0, 3), (0, 4)]
events = {'source in all batches': [(0, 1), *later], 'destination, then source': [(1, 0), *later]}
messages = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
for name, pairs in events.items():
    torch.manual_seed(0)
    memory = TGNMemory(5, 3, 2, 2, RawMessage(), MeanAggregator())
    memory.train()
    with torch.no_grad():  # without biases, an update of zero memory by no message is zero
        memory.gru.bias_ih.zero_()
        memory.gru.bias_hh.zero_()
    right, repeated = np.zeros(2), np.zeros(2)
    for time, ((source, target), message) in enumerate(zip(pairs, messages)):
        memory.update_state(torch.tensor([source]), torch.tensor([target]), torch.tensor([time]), torch.tensor(message[None]))
        right = gru(memory.gru, message, right)
        old = messages[:1] if time and name.startswith('destination') else []
        repeated = gru(memory.gru, np.mean([message, *old], axis=0), repeated)
    seen = memory(torch.tensor([0]))[0].detach().numpy()[0]
    print(f'node 0, {name}: memory {seen.round(4)}. Each message once: {right.round(4)}. The first again: {repeated.round(4)}')
    assert np.allclose(seen, repeated, atol=1e-5), 'this has changed'
    assert np.allclose(seen, right, atol=1e-5) == name.startswith('source'), 'this has changed'
PY
