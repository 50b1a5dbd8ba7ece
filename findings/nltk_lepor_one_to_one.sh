#!/usr/bin/env bash
# nltk 3.10.4: LEPOR matches several words of the hypothesis to one word of the reference, and its recall exceeds 1.
#
# Expected: sentence_lepor is "LEPOR score a sentence from Han, A. L.-F. (2017)". There, words of the output and of the
# reference are aligned one to one, and recall is the number of aligned words divided by the length of the reference. So it is
# at most 1.
# Seen: each word of the hypothesis that is in the reference counts as a match, also when that word of the reference is used
# already. "the the the" has precision and recall 1 for "the cat sat", as the perfect sentence. Five times "the" has a recall
# of 5/3.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet nltk==3.10.4 numpy==2.4.6 regex==2026.11.19 joblib==1.6.0 tqdm==4.70.1 \
    click==8.5.1 defusedxml==0.7.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from collections import Counter
from importlib.metadata import version

import numpy as np
from nltk.translate.lepor import harmonic, length_penalty, ngram_positional_penalty, sentence_lepor

print(f'nltk {version("nltk")}')
for reference, hypothesis in (('the cat sat', 'the cat sat'), ('the cat sat', 'the the the'), ('a dog ran to me', 'a a a a a'),
                              ('a dog ran to me', 'a dog ran a dog')):  # fmt: skip
    first, second = reference.split(), hypothesis.split()
    matched = ngram_positional_penalty(first, second)[1]
    right = sum((Counter(first) & Counter(second)).values())  # the size of the largest one to one alignment of equal words
    seen = harmonic(matched, len(first), len(second), 1, 1)
    mean = 2 / (len(first) / right + len(second) / right)
    score = sentence_lepor([reference], hypothesis, tokenizer=str.split)[0]
    print(f'"{reference}" and "{hypothesis}": {matched} words matched, precision and recall {seen:.2f}, LEPOR {score:.3f}. '
          f'One to one, {right} words, precision and recall {mean:.2f}, so LEPOR at most {mean:.2f}')  # fmt: skip
    assert length_penalty(first, second) == 1
    assert (matched == right) == (first == second) and matched == sum(word in first for word in second), 'this has changed'
    assert np.isclose(seen, 1) and (score > mean + 0.1) == (first != second), 'this has changed'
long = harmonic(ngram_positional_penalty(['the', 'cat', 'sat'], ['the'] * 5)[1], 3, 5, 1, 0)
print(f'five times "the" for "the cat sat": recall {long:.3f}, one to one {1 / 3:.3f}')
assert np.isclose(long, 5 / 3), 'this has changed'
PY
