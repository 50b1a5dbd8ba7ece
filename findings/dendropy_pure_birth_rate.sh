#!/usr/bin/env bash
# DendroPy 5.1.3: uniform_pure_birth_tree divides by the birth rate, so that trees with a rate of 10 are of the rate 1/10.
#
# Expected: "Generates a uniform-rate pure-birth process tree" (docstring), for birth_rate. With k lineages, the next birth
# comes after a time of mean 1 / (k * birth_rate). fit_pure_birth_model_to_tree of the same module estimates birth_rate again,
# as it does for the trees of birth_death_tree.
# Seen: the waiting time is expovariate(k / birth_rate) in dendropy/model/birthdeath.py, whose mean is birth_rate / k. A tree of
# a high rate has long edges, and the fitted rate is 1 / birth_rate. Only with the default of 1 it is right. There is no
# warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dendropy==5.1.3 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import random
from importlib.metadata import version

import dendropy
import numpy as np
from dendropy.model.birthdeath import birth_death_tree, fit_pure_birth_model_to_tree, uniform_pure_birth_tree

print(f'DendroPy {version("dendropy")}')
tips, trees = 30, 100
namespace = dendropy.TaxonNamespace([f'T{i}' for i in range(tips)])
rng = random.Random(0)
for rate in (0.1, 1.0, 10.0):
    made = [uniform_pure_birth_tree(namespace, rate, rng) for _ in range(trees)]
    other = [birth_death_tree(rate, 0.0, num_extant_tips=tips, rng=rng) for _ in range(trees)]
    seen, right = (np.median([fit_pure_birth_model_to_tree(tree)['birth_rate'] for tree in kind]) for kind in (made, other))
    length = np.mean([tree.length() for tree in made])
    # With k lineages the tree grows by k times the waiting time, in the mean 1 / rate, for k = 1 to the number of tips.
    print(f'birth_rate {rate}: fitted to uniform_pure_birth_tree {seen:.3g}, to birth_death_tree {right:.3g}. '
          f'Mean length {length:.3g}, by the definition {tips / rate:.3g}')  # fmt: skip
    assert abs(np.log(seen * rate)) < 0.2 and abs(np.log(right / rate)) < 0.2, 'this has changed'
    assert abs(np.log(length / (tips * rate))) < 0.2, 'this has changed'
PY
