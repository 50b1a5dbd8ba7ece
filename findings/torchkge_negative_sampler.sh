#!/usr/bin/env bash
# torchkge 0.17.7: the negative samplers never replace an entity by entity 0, so that models learn to rank it among the best everywhere.
#
# Expected: UniformNegativeSampler documents "Either the head or the tail of a triplet is replaced by another entity at random". Entities
# are numbered from 0 to n_ent - 1, in alphabetical order. In a random graph where each is as often a head as a tail, none is favoured.
# Seen: uniform and Bernoulli sampler both draw from 1 to n_ent - 1. All scores of entity 0 are pulled up by true triplets, and none is
# ever pushed down. After training, it is the best tail for a third of all heads, where a twentieth is its share.
# The lines are shown, but not this effect, in https://github.com/torchkge-team/torchkge/issues/211
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torchkge==0.17.7 pandas==2.3.3 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import pandas as pd
import torch
from torchkge.data_structures import KnowledgeGraph
from torchkge.models import ComplExModel
from torchkge.sampling import BernoulliNegativeSampler, UniformNegativeSampler
from torchkge.utils import MarginLoss

print(f'torchkge {version("torchkge")}')
torch.manual_seed(0)
n = 20
links = [(i, int(j), 0) for _ in range(8) for i, j in enumerate(torch.randperm(n))]  # Each entity is a tail eight times.
kg = KnowledgeGraph(pd.DataFrame(links, columns=['from', 'to', 'rel']))
for kind in (UniformNegativeSampler, BernoulliNegativeSampler):
    sampler, drawn = kind(kg, n_neg=1000), torch.zeros(n, dtype=torch.long)
    heads, tails = sampler.corrupt_batch(kg.head_idx, kg.tail_idx, kg.relations)
    for new, old in ((heads, kg.head_idx.repeat(1000)), (tails, kg.tail_idx.repeat(1000))):
        drawn += torch.bincount(new[new != old], minlength=n)
    print(f'{kind.__name__}: entity 0 is drawn {drawn[0]} times, the others at least {drawn[1:].min()} times')
    assert drawn[0] == 0 and drawn[1:].min() > 5000, 'this has changed'
heads, tails = torch.meshgrid(torch.arange(n), torch.arange(n), indexing='ij')
first = torch.zeros(n, dtype=torch.long)
for _ in range(5):
    model, sampler, loss = ComplExModel(16, n, 1), UniformNegativeSampler(kg), MarginLoss(1.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(300):
        negatives = sampler.corrupt_batch(kg.head_idx, kg.tail_idx, kg.relations)
        optimizer.zero_grad()
        loss(*model(kg.head_idx, kg.tail_idx, kg.relations, *negatives)).backward()
        optimizer.step()
    scores = model.scoring_function(heads.flatten(), tails.flatten(), torch.zeros(n * n, dtype=torch.long)).view(n, n)
    first += torch.bincount(scores.argmax(1), minlength=n)
print(f'how often each entity is the best tail, in 5 trainings for 20 heads: {first.tolist()}')
assert first[0] > 2 * first[1:].max(), 'this has changed'
PY
