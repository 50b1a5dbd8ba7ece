#!/usr/bin/env bash
# POT 0.9.7.post1: ot.batch gives nan for the Euclidean distance of a point to itself, and then nan for the whole transport plan.
#
# Expected: dist_batch is the "batched version of ot.dist", and solve_sample_batch that of ot.solve_sample. Equal points have the distance 0,
# and a point cloud has a transport plan to itself, as in ot.dist and ot.solve_sample.
# Seen: the squared distance is |x|^2 + |y|^2 - 2 xy, which rounding makes slightly negative for equal points, and the square root is taken
# of it. ot.dist sets negative values to 0 first. One nan spreads over the plan and the loss. Distances within a batch of graphs or clouds,
# the default of the argument X2, always have equal points. metric="sqeuclidean", the default, has no nan, but negative distances.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pot==0.9.7.post1 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W ignore - <<'PY'
import numpy as np
import ot
from ot.batch import dist_batch, solve_sample_batch

print(f'POT {ot.__version__}')
x = np.random.default_rng(0).normal(size=(2, 300, 3))
single = np.stack([ot.dist(cloud, metric='euclidean') for cloud in x])
batch = dist_batch(x, metric='euclidean')
squared = dist_batch(x)
broken = np.isnan(batch)
diagonal = np.broadcast_to(np.eye(300, dtype=bool), batch.shape)
print(f'ot.dist: {np.isnan(single).sum()} nan, dist_batch: {broken.sum()} nan of {diagonal.sum()} distances of a point to itself')
print(f'smallest squared distance of dist_batch: {squared.min():.2g}')
plans = solve_sample_batch(x, x, reg=1.0, metric='euclidean').plan
values = [ot.solve_sample(cloud, cloud, reg=1.0, metric='euclidean').value_linear for cloud in x]
print(f'solve_sample_batch: {np.isnan(plans).sum()} nan of {plans.size} entries of the plans, ot.solve_sample: values {np.round(values, 3)}')
assert not np.isnan(single).any() and np.isfinite(values).all(), 'this has changed'
assert broken.sum() > 10 and not broken[~diagonal].any() and squared.min() < 0, 'this has changed'
assert np.allclose(batch[~broken], single[~broken], atol=1e-6) and np.isnan(plans).all(), 'this has changed'
PY
