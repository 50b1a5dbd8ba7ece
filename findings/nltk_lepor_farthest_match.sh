#!/usr/bin/env bash
# nltk 3.10.4: LEPOR aligns a repeated word to its farthest copy in the reference, so that a perfect sentence is penalized.
#
# Expected: alignment "takes into account the surrounding context (neighbouring words) of the potential word to select a better
# matching pairs", as Han et al. (2012), which sentence_lepor implements. If the context leaves several or no candidates, the
# nearest one is taken. The code calls it min_distance. A hypothesis equal to the reference has no position differences, and
# its LEPOR is 1.
# Seen: min_distance starts at 0 and is replaced by larger distances, so that the farthest candidate is taken. "it is what it
# is" compared with itself has LEPOR 0.79.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet nltk==3.10.4 numpy==2.4.6 regex==2026.11.19 joblib==1.6.0 tqdm==4.70.1 \
    click==8.5.1 defusedxml==0.7.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from nltk.translate.lepor import alignment, ngram_positional_penalty, sentence_lepor

print(f'nltk {version("nltk")}')
for sentence in ('to be or not to be', 'it is what it is', 'a b a b', 'no word twice'):
    words = sentence.split()
    places, (penalty, matched) = alignment(words, words), ngram_positional_penalty(words, words)
    score = sentence_lepor([sentence], sentence, tokenizer=str.split)[0]
    nearest = [1 + min((i for i, other in enumerate(words) if other == word), key=lambda i: abs(i - place))
               for place, word in enumerate(words)]  # fmt: skip
    difference = np.mean([abs(place / len(words) - a / len(words)) for place, a in enumerate(places, 1)])
    right = np.exp(-np.mean([abs(place - a) / len(words) for place, a in enumerate(nearest, 1)]))
    print(f'"{sentence}" and itself: aligned {places}, nearest {nearest}, LEPOR {score:.3f}, by the definition {right:.3f}')
    assert nearest == list(range(1, len(words) + 1)) and right == 1 and matched == len(words)
    assert np.isclose(score, penalty) and np.isclose(penalty, np.exp(-difference)), 'this has changed'
    assert (score < 0.81) == (sentence != 'no word twice') and (places == nearest) == (score > 0.99), 'this has changed'
PY
