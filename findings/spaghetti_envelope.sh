#!/usr/bin/env bash
# spaghetti 1.7.6: the envelope of GlobalAutoK is the largest and smallest simulation, multiplied by a number. It is no quantile.
#
# Expected: threshold is "the level at which significance is computed. (0.5 would be 97.5% and 2.5%)". A part of the simulations given by
# this level is within the envelope at each distance, and so random points mostly are.
# Seen: the upper envelope is max * (1 - threshold / 2), the lower one min * threshold / 2. By default, that is 0.75 of the maximum and a
# quarter of the minimum. The lower one is below all simulations, so no pattern is ever too regular. At larger distances all simulations
# are nearly equal, and all of them, and any random pattern, are above the upper envelope, as if they were clustered. The smaller the
# threshold, the wider the envelope, down to from 0 to the maximum. numpy.quantile of the attribute sim gives what is expected.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet spaghetti==1.7.6 libpysal==4.14.1 esda==2.9.0 geopandas==1.2.0 pandas==3.1.1 \
  numpy==2.4.6 scipy==1.17.1 shapely==2.2.0 rtree==1.4.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import geopandas as gpd
import numpy as np
import spaghetti
from shapely.geometry import LineString, Point

print(f'spaghetti {version("spaghetti")}')
streets = [LineString([(i, 0), (i, 4)]) for i in range(5)] + [LineString([(0, i), (4, i)]) for i in range(5)]
pieces = gpd.GeoSeries(streets).union_all()  # Cut at the crossings.
network = spaghetti.Network(in_data=gpd.GeoDataFrame(geometry=list(pieces.geoms)))
np.random.seed(0)
random = network.simulate_observations(60)
points = gpd.GeoDataFrame(geometry=[Point(xy) for xy in random.points.values()])
network.snapobservations(points, 'random')
for threshold in (0.5, 0.05):
    np.random.seed(1)
    k = network.GlobalAutoK(network.pointpatterns['random'], nsteps=8, permutations=99, threshold=threshold)
    sim, steps = k.sim[:, 1:], slice(1, None)  # At distance 0, all are 0.
    lower, upper = k.lowerenvelope[steps], k.upperenvelope[steps]
    assert np.allclose(upper, sim.max(0) * (1 - threshold / 2)), 'this has changed'
    assert np.allclose(lower, sim.min(0) * threshold / 2), 'this has changed'
    quantiles = np.quantile(sim, [0.025, 0.975], axis=0)
    above, below = (sim > upper).mean(0), (sim < lower).mean(0)
    between = ((sim >= quantiles[0]) & (sim <= quantiles[1])).mean(0)
    print(f'threshold={threshold}: part of the simulations above the envelope {above.round(2)}, below {below.round(2)}, '
          f'between the quantiles 2.5% and 97.5% {between.round(2)}')  # fmt: skip
    print(f'  envelope {lower.round(1)} to {upper.round(1)}, quantiles {quantiles[0].round(1)} to {quantiles[1].round(1)}, '
          f'random points {k.observed[steps].round(1)}')  # fmt: skip
    assert below.max() == 0 and between.min() > 0.9 and above[-1] == 1, 'this has changed'
    assert (lower < 0.5 * quantiles[0]).all() and k.observed[-1] > upper[-1], 'this has changed'
PY
