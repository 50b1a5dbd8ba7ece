#!/usr/bin/env bash
# textstat 0.7.13: dale_chall_readability_score_v2 adds 3.6365 to texts of easy words as well.
#
# Expected: the docstring says "Calculate New Dale Chall Readability formula". This is 0.1579 times the percentage of
# difficult words plus 0.0496 times the words per sentence, and 3.6365 more only if more than 5 % of the words are difficult.
# dale_chall_readability_score has it in its documentation: "If the percentage of difficult words is > 5, 3.6365 is added to
# the score".
# Seen: the score itself is compared with 0.05, instead of the percentage with 5. Every text with two or more words per
# sentence is above it. A text without any difficult word scores about 4.1 instead of 0.5. The difference between easy and
# hard texts shrinks, as the second get what they should.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet textstat==0.7.13 pyphen==0.18.1 nltk==3.10.4 setuptools==80.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import textstat
from textstat.backend.utils import get_lang_easy_words

print(f'textstat {version("textstat")}')
easy = get_lang_easy_words('en_US')
for text in ('The cat sat on the mat and saw the dog. The dog ran to the tree in the yard. It was a good day for all of them.',
             'She came to the house to see the girl. Her mother and father were at the table.',
             'We will go to the farm and see the cow, the pig and the horse before we come back to school.'):  # fmt: skip
    words, sentences = text.lower().replace('.', '').replace(',', '').split(), text.count('.')
    percentage = 100 * sum(word not in easy for word in words) / len(words)
    right = 0.1579 * percentage + 0.0496 * len(words) / sentences + (3.6365 if percentage > 5 else 0)
    seen, other = textstat.dale_chall_readability_score_v2(text), textstat.dale_chall_readability_score(text)
    print(f'{percentage:.0f} % difficult words, {len(words) / sentences:.1f} words per sentence: '
          f'dale_chall_readability_score_v2 {seen:.3f}, dale_chall_readability_score {other:.3f}, '
          f'by the definition {right:.3f}')  # fmt: skip
    assert percentage == 0 and abs(other - right) < 1e-9 and abs(seen - right - 3.6365) < 1e-9, 'this has changed'
PY
