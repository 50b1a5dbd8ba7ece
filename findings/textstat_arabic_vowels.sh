#!/usr/bin/env bash
# textstat 0.7.13: no vowel mark of an Arabic text is ever counted, so that Osman scores have neither syllables nor complex
# words.
#
# Expected: "Complex arabic words are word with more than 5 instances between" the marks fatha, damma, kasra, their tanween
# forms and shadda. count_arabic_syllables counts syllables by the marks fatha, damma and kasra: "Long and stressed syllables
# are counted double". osman() has both in its formula. A word with six marks is complex.
# Seen: both functions first remove punctuation with [^\w\s], and marks are no \w in Python. So the number of complex words is
# 0 for every text. The list of vowel marks also has raw strings of six characters, r"\u064E", which no character equals. So
# the number of syllables is the fallback for texts without marks, which counts letters and marks alike. osman() is higher or
# lower by tens of points.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet textstat==0.7.13 pyphen==0.18.1 nltk==3.10.4 setuptools==80.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import textstat
from textstat.backend.counts import count_faseeh

print(f'textstat {version("textstat")}')
FATHA, DAMMA, KASRA, SHADDA = '\u064e\u064f\u0650\u0651'
TANWEEN_FATH, TANWEEN_DAMM, TANWEEN_KASR = '\u064b\u064c\u064d'
# mutafarriqatun (dispersed), yatakallamuna (they speak), and kataba (he wrote), with all their marks
dispersed = f'\u0645{DAMMA}\u062a{FATHA}\u0641{FATHA}\u0631{SHADDA}{KASRA}\u0642{FATHA}\u0629{TANWEEN_DAMM}'
speak = f'\u064a{FATHA}\u062a{FATHA}\u0643{FATHA}\u0644{SHADDA}{FATHA}\u0645{DAMMA}\u0648\u0646{FATHA}'
wrote = f'\u0643{FATHA}\u062a{FATHA}\u0628{FATHA}'


def complex_words(text):
    marks = {FATHA, TANWEEN_FATH, DAMMA, TANWEEN_DAMM, KASRA, TANWEEN_KASR, SHADDA}
    return sum(sum(letter in marks for letter in word) > 5 for word in text.split())


def syllables(text):  # a short vowel before alef, waw or yeh is long
    long = short = 0
    for word in text.split():
        for letter, after in zip(word, word[1:] + ' '):
            if letter in (FATHA, DAMMA, KASRA):
                long, short = (long + 1, short) if after in '\u0627\u0648\u064a' else (long, short + 1)
    return short + 2 * (long + sum(text.count(mark) for mark in (TANWEEN_FATH, TANWEEN_DAMM, TANWEEN_KASR, SHADDA)))


for name, text in (('mutafarriqatun', dispersed), ('yatakallamuna', speak), ('kataba', wrote),
                   ('a sentence of nine words', ' '.join([dispersed, speak, wrote] * 3) + '.')):  # fmt: skip
    clean = text.rstrip('.')
    seen = textstat.count_complex_arabic_words(text), textstat.count_arabic_syllables(text)
    right = complex_words(clean), syllables(clean)
    print(f'{name}: complex words {seen[0]}, by the definition {right[0]}, syllables {seen[1]}, by the definition {right[1]}')
    assert seen[0] == 0 and (right[0] > 0) == (name != 'kataba') and seen[1] != right[1], 'this has changed'
words, letters = len(clean.split()), [sum(letter.isalpha() for letter in word) for word in clean.split()]
long_words = sum(count > 5 for count in letters)
rates = [count / words for count in (right[0], right[1], long_words, count_faseeh(text))]
seen, score = textstat.osman(text), 200.791 - 1.015 * words - 24.181 * sum(rates)
print(f'Osman score of the sentence: {seen:.1f}, with the right numbers of complex words and syllables {score:.1f}')
assert abs(seen - score) > 10, 'this has changed'
PY
