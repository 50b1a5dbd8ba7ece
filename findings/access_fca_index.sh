#!/usr/bin/env bash
# access 1.1.10.post3: functions for floating catchment areas ignore supply_index and normalize, so that all access may be 0.
#
# Expected: in access.fca, supply_index is "the name of the column that holds the IDs" of supply_df, as demand_index is for demand_df.
# normalize is "True to normalize the FCA series", as in the methods of Access, which divide by the mean weighted with the demand.
# Seen: supply is joined by the row labels of its table, whatever supply_index says. With IDs in a column, and rows from 0 as pandas has
# them, no site is found, and access is 0 everywhere. If IDs are numbers which are row labels of other sites as well, each site has the
# supply of another one. normalize changes nothing. two_stage_fca and three_stage_fca have both, fca_ratio the second. The class Access
# does both itself, and is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet access==1.1.10.post3 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 geopandas==1.2.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import pandas as pd
from access import Access, fca

print(f'access {version("access")}')
people = pd.DataFrame({'geoid': [10, 20, 30], 'demand': [10, 20, 30]})
trips = pd.DataFrame([(10, 1, 5), (20, 1, 5), (20, 2, 8), (30, 2, 5)], columns=['origin', 'dest', 'cost'])


def weight(cost):
    return 1.0 if cost < 6 else 0.5


def by_definition(supply, three):
    """Each site divides its supply by the weighted demand around it, and each origin adds the weighted ratios."""
    w = np.zeros((3, 2))
    for origin, dest, cost in trips.itertuples(index=False):
        w[origin // 10 - 1, dest - 1] = weight(cost)
    w = w * w / w.sum(1, keepdims=True) if three else w
    return w @ (np.array(supply) / (w.T @ people['demand'].to_numpy()))


for name, three in (('two_stage_fca', False), ('three_stage_fca', True)):
    right = by_definition([2, 6], three)
    weighted = right / (right @ people['demand'] / people['demand'].sum())

    def run(sites, **options):
        return getattr(fca, name)(people, sites, trips.copy(), max_cost=10, weight_fn=weight, **options).to_numpy()

    column = pd.DataFrame({'site': [1, 2], 'supply': [2, 6]})
    away = run(column.set_axis([7, 8]), supply_index='site')
    swapped = run(column.set_axis([2, 1]), supply_index='site')
    labels = run(column.set_index('site'))
    normal = run(column.set_index('site'), normalize=True)
    print(f'{name}: IDs in the column of supply_index {away.round(3)}, with the labels of rows swapped {swapped.round(3)}, '
          f'IDs as labels {labels.round(3)}, by the definition {right.round(3)}')  # fmt: skip
    print(f'    with normalize=True {normal.round(3)}, by the definition {weighted.round(3)}')
    assert np.allclose(labels, right) and not away.any() and np.allclose(swapped, by_definition([6, 2], three)), 'this has changed'
    assert np.allclose(normal, labels) and not np.allclose(weighted, right), 'this has changed'

    whole = Access(demand_df=people, demand_index='geoid', demand_value='demand', supply_df=column, supply_index='site',
                   supply_value='supply', cost_df=trips.copy(), cost_origin='origin', cost_dest='dest', cost_name='cost')  # fmt: skip
    plain, scaled = (getattr(whole, name)(max_cost=10, weight_fn=weight, normalize=on).to_numpy()[:, -1] for on in (False, True))
    assert np.allclose(plain, right) and np.allclose(scaled, weighted), 'this has changed'

near = pd.DataFrame([(i, i, 0) for i in (10, 20, 30)], columns=['origin', 'dest', 'cost'])
tables = {'demand_df': people, 'supply_df': column, 'demand_cost_df': near, 'supply_cost_df': trips, 'supply_index': 'site', 'max_cost': 10}
ratios = [fca.fca_ratio(**tables, normalize=on) for on in (False, True)]
print(f'fca_ratio {ratios[0].to_numpy().round(3)}, with normalize=True {ratios[1].to_numpy().round(3)}')
assert ratios[0].any() and ratios[0].equals(ratios[1]), 'this has changed'
PY
