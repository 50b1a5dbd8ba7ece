#!/usr/bin/env bash
# textdistance 4.6.3: the Monge-Elkan similarity is divided by the number of words twice.
#
# Expected: MongeElkan cites papers where the similarity of two lists of words is the mean, over the words of the first list,
# of the largest similarity to a word of the second list. With a similarity of words from 0 to 1, such as Jaro-Winkler, it is
# from 0 to 1. With symmetric=True, it is the mean of both directions.
# Seen: the sum is divided by the number of words, and then by the number of all maxima. For two lists of text, that is the
# number of words once more. A list of two words and the same words in another order have a similarity of 0.5, and of four
# words 0.25. Only lists in the same order get 1, as these are compared before. A list of one word has the right value.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet textdistance==4.6.3 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from textdistance import JaroWinkler, MongeElkan

print(f'textdistance {version("textdistance")}')
words = JaroWinkler()


def by_definition(first, second):
    return np.mean([max(words.similarity(a, b) for b in second) for a in first])


for first, second in (
    (['paul'], ['paule', 'johnson']),
    (['paul', 'johnson'], ['johnson', 'paul']),
    (['paul', 'johnson'], ['johson', 'paule']),
    (['a', 'simple', 'small', 'test'], ['simple', 'test', 'small', 'a']),
    (['one', 'two', 'three'], ['two', 'tree', 'on', 'four']),
):
    right, back = by_definition(first, second), by_definition(second, first)
    seen = MongeElkan(algorithm=words)(first, second)
    both = MongeElkan(algorithm=words, symmetric=True)(first, second)
    print(f'{first} and {second}: {seen:.3f}, by the definition {right:.3f}. '
          f'Symmetric {both:.3f}, by the definition {(right + back) / 2:.3f}')  # fmt: skip
    assert np.isclose(seen, right / len(first)), 'this has changed'
    assert np.isclose(both, (right / len(first) + back / len(second)) / 2), 'this has changed'
PY
