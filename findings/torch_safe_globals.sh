#!/usr/bin/env bash
# torch 2.13.0 and torch-geometric 2.8.1: leaving torch.serialization.safe_globals forbids what was allowed before it.
#
# Expected: a context manager restores the state that it found.
# Seen: at its end, it removes all classes that it was given, also those that somebody had allowed with add_safe_globals. PyG allows
# its Data when it is imported. After one "with safe_globals([Data])" around a torch.load, Data is forbidden in the whole process, so
# that a file which loaded before does not load any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import pickle

import torch
import torch_geometric
from torch_geometric.data import Data

torch.save({'kind': Data}, 'kind.pt')


def loads():
    try:
        return torch.load('kind.pt', weights_only=True)['kind'] is Data
    except pickle.UnpicklingError:
        return False


before = loads()
with torch.serialization.safe_globals([Data]):
    inside = loads()
after = loads()
print(f'torch {torch.__version__}, torch-geometric {torch_geometric.__version__}')
print(f'loads before the context: {before}; inside: {inside}; after: {after}')
assert (before, inside, after) == (True, True, False), 'this has changed'
PY
