#!/usr/bin/env bash
# access 1.1.10.post3: three_stage_fca counts sites beyond max_cost as competitors.
#
# Expected: in the three-stage method, a population shares its demand among the sites within its catchment: G_ij = T_ij / sum_k T_ik, with k
# over the sites within the catchment (Wan, Zou and Sternberg 2012, equation 1, which the documentation cites). max_cost is its edge.
# Costs above max_cost change nothing, as in two_stage_fca.
# Seen: the sum goes over all rows of the cost table, max_cost or not, and the weights G of a catchment do not sum to 1. The table of the
# same places gives other values if it was cut at max_cost before. Demand that goes to sites beyond the catchment is gone, and all that is
# within looks less crowded: a place with sites just beyond its catchment loses a third of its access, to the others. Sites which are in
# the table without any supply take demand, too. The column W3 stays in the table of the caller.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet access==1.1.10.post3 geopandas==1.2.0 pandas==3.1.1 numpy==2.4.6 scipy==1.17.1 \
  shapely==2.2.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import pandas as pd
from access import fca, weights

print(f'access {version("access")}')
cost = np.array([[15.0, 18, 25, 28], [10, 15, 70, 75], [12, 15, 70, 80]])  # Of three places to four sites.
demand, supply = np.array([100.0, 200, 300]), np.array([4.0, 5, 6, 7])
table = pd.DataFrame([(i, j, cost[i, j]) for i in range(3) for j in range(4)], columns=['origin', 'dest', 'cost'])
places = pd.DataFrame({'demand': demand}, index=pd.Index(range(3), name='geoid'))
sites = pd.DataFrame({'supply': supply}, index=pd.Index(range(4), name='geoid'))
weight = weights.gaussian(20)


def three_stages(edge, shared):
    """shared: up to which cost sites share the demand."""
    w = np.exp(-(cost**2) / (2 * 20**2))
    t = w * (cost <= shared)
    g = t / t.sum(1, keepdims=True) * (cost <= edge)
    crowd = demand @ (g * w)
    ratio = np.divide(supply, crowd, out=np.zeros(4), where=crowd > 0)
    return (g * w) @ ratio, g.sum(1)


for edge in (80, 20):
    seen, cut = (fca.three_stage_fca(places, sites, rows.copy(), edge, demand_index=True, weight_fn=weight).to_numpy()
                 for rows in (table, table[table.cost <= edge]))  # fmt: skip
    two, two_cut = (fca.two_stage_fca(places, sites, rows.copy(), edge, demand_index=True, weight_fn=weight).to_numpy()
                    for rows in (table, table[table.cost <= edge]))  # fmt: skip
    (right, _), (other, sums) = three_stages(edge, edge), three_stages(edge, np.inf)
    print(f'max_cost {edge}: three stages {seen.round(4)}, from the table cut at max_cost {cut.round(4)}, by the definition '
          f'{right.round(4)}. Sums of the weights seen {sums.round(3)}')  # fmt: skip
    assert np.allclose(cut, right) and np.allclose(seen, other) and np.allclose(two, two_cut), 'this has changed'
    assert np.allclose(seen, right) if edge == 80 else abs(seen / right - 1).max() > 0.3, 'this has changed'

rows = table.copy()
fca.three_stage_fca(places, sites, rows, 60, demand_index=True, weight_fn=weight)
print(f'columns of the table afterwards: {list(rows.columns)}')
assert 'W3' in rows.columns, 'this has changed'
PY
