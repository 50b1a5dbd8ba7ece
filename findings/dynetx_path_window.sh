#!/usr/bin/env bash
# dynetx 0.3.2: time respecting paths go beyond the end of the time window that was asked for, by one snapshot.
#
# Expected: time_respecting_paths, all_time_respecting_paths and temporal_dag take start and end, the least and the greatest time of an
# interaction. For end=3, no path may use a later interaction.
# Seen: end is turned into the position of the first later snapshot, and the slice has one more. So paths use the first interaction
# after the window, however late it is: here, an interaction at time 900 is part of a path within [1, 3]. Nodes are reachable that
# are not. It depends on the rest of the data: end=3 is right if there is no later snapshot.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dynetx==0.3.2 networkx==3.4.2 numpy==2.2.6 tqdm==4.67.1 future==1.0.0 decorator==5.2.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import dynetx
from dynetx.algorithms import temporal_dag, time_respecting_paths

print(f'dynetx {version("dynetx")}')
contacts = [(1, 2, 1), (2, 3, 2), (3, 4, 3), (4, 5, 900), (5, 6, 901)]  # A chain of contacts.


def reachable(contacts, source, start, end):
    # By the definition: each contact in order of time. Here, no two have the same time.
    found = {source}
    for u, v, t in sorted(contacts, key=lambda contact: contact[2]):
        if start <= t <= end and found & {u, v}:
            found |= {u, v}
    return found - {source}


for last in (3, 5):
    graph = dynetx.DynGraph()
    for u, v, t in contacts[:last]:
        graph.add_interaction(u, v, t)
    for end in (2, 3):
        paths = time_respecting_paths(graph, 1, start=1, end=end)
        seen = {target for _, target in paths}
        latest = max(path[-1][2] for group in paths.values() for path in group)
        right = reachable(contacts[:last], 1, 1, end)
        print(f'{last} contacts, window [1, {end}]: reaches {sorted(seen)}, by the definition {sorted(right)}. '
              f'Latest contact used: {latest}')  # fmt: skip
        late = last > end
        assert (seen - right == {end + 2} and latest > end) if late else (seen == right and latest == end), 'this has changed'
dag = temporal_dag(graph, 1, start=1, end=3)[0]
print(f'nodes of temporal_dag for [1, 3]: {list(dag.nodes)}')
assert '5_900' in dag and '6_901' not in dag, 'this has changed'
PY
