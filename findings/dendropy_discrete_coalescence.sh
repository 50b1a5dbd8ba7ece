#!/usr/bin/env bash
# DendroPy 5.1.3: discrete_time_to_coalescence raises an error for populations larger than the number of pairs.
#
# Expected: "A random draw from the Kingman distribution (discrete time version)": the "waiting time (in discrete generations)"
# for n_to_coalesce of n_genes genes in a Wright-Fisher population of pop_size genes (docstring, dendropy.model.coalescent). Two
# of k genes coalesce in a generation with a probability of about choose(k, 2) / pop_size, so that 2 genes of 100 wait 100
# generations in the mean. pop_size=None is the default.
# Seen: the probability is turned over, pop_size / choose(k, 2). Above 1 it is a ValueError, which is each population larger
# than the number of pairs, so nearly all. The default is a TypeError. Where it is below 1, the draw is multiplied by the size
# of the population, and does not depend on rng.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dendropy==5.1.3 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import random
from importlib.metadata import version
from math import comb

import numpy as np
from dendropy.model.coalescent import discrete_time_to_coalescence, time_to_coalescence

print(f'DendroPy {version("dendropy")}')
rng, generator = random.Random(0), np.random.default_rng(0)


def wright_fisher(genes, size):
    # Each gene has a random parent of the generation before, until two have the same.
    generations = 1
    while len(set(generator.integers(size, size=genes).tolist())) == genes:
        generations += 1
    return generations


for genes, size in ((2, 100), (5, 1000), (10, 10000), (2, None)):
    if size:
        continuous = np.mean([time_to_coalescence(genes, size, rng=rng) for _ in range(2000)])
        discrete = np.mean([wright_fisher(genes, size) for _ in range(200)])
        print(f'{genes} genes of {size}: time_to_coalescence {continuous:.1f} in the mean, random parents {discrete:.1f}, '
              f'{size / comb(genes, 2):.1f} expected')  # fmt: skip
        assert abs(np.log(continuous / discrete)) < 0.3, 'this has changed'
    try:
        discrete_time_to_coalescence(genes, size, rng=rng)
        raise AssertionError('this has changed')
    except (ValueError, TypeError) as error:
        print(f'discrete_time_to_coalescence({genes}, {size}): {type(error).__name__}: {error}')
        assert isinstance(error, ValueError if size else TypeError), 'this has changed'

# The probability here is 40 / 45. Its mean time, 45 / 40, is multiplied by 40.
seen, right = (np.mean([draw(10, 40) for _ in range(2000)]) for draw in (discrete_time_to_coalescence, wright_fisher))
repeated = {discrete_time_to_coalescence(10, 40, rng=random.Random(0)) for _ in range(100)}
print(f'10 genes of 40: {seen:.1f}, random parents {right:.2f}. With Random(0), 100 times: {sorted(repeated)}')
assert abs(seen - 45) < 3 and right < 2 and len(repeated) > 1, 'this has changed'
PY
