#!/usr/bin/env bash
# nltk 3.10.4: the length penalty of LEPOR rewards wrong lengths, as its two cases are exchanged.
#
# Expected: length_penalty is "Penalty of difference in length in reference and hypothesis sentence", with "Refer from Eq (2)
# on https://aclanthology.org/C12-2044". With lengths c of the hypothesis and r of the reference, it is exp(1 - r / c) for c <
# r, 1 for c = r, and exp(1 - c / r) for c > r. So it is at most 1, and so is LEPOR, a product of it, another penalty, and a
# mean of precision and recall.
# Seen: the code has exp(1 - r / c) for r < c, and exp(1 - c / r) for r > c. Both exponents are positive, so that the factor is
# between 1 and e. A hypothesis that lacks half of the words gets 1.65 instead of 0.37. A perfect hypothesis of ten words, with
# eight other words added, has LEPOR 0.97 instead of 0.28.
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
from nltk.translate.lepor import length_penalty, sentence_lepor

print(f'nltk {version("nltk")}')
reference = 'the quick brown fox jumps over a lazy dog today'.split()
hypotheses = {
    'perfect': reference,
    'first nine words': reference[:9],
    'first five words': reference[:5],
    'eight words added': [*reference, *'we were asked to add some other words'.split()],
}
scores = {}
for name, hypothesis in hypotheses.items():
    c, r = len(hypothesis), len(reference)
    right, seen = np.exp(1 - max(r / c, c / r)), length_penalty(reference, hypothesis)
    score = sentence_lepor([' '.join(reference)], ' '.join(hypothesis), tokenizer=str.split)[0]
    # The matched words are the first ones of both, in the same order.
    matched = min(c, r)
    place = np.arange(1, matched + 1)
    difference = np.exp(-np.sum(np.abs(place / c - place / r)) / c)
    defined = right * difference * 2 / (r / matched + c / matched)
    scores[name] = score
    print(f'{name}: length penalty {seen:.3f}, LEPOR {score:.3f}, by the definition {right:.3f} and {defined:.3f}')
    assert right <= 1 and defined <= 1 and (right < 1) == (c != r)
    assert np.isclose(seen, np.exp(1 - min(r / c, c / r))) and np.isclose(score, defined * seen / right), 'this has changed'
assert scores['eight words added'] > 0.95 and scores['first five words'] > 0.8, 'this has changed'
PY
