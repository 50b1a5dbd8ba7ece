#!/usr/bin/env bash
# lexicalrichness 0.5.1: msttr drops a full segment, if the length of the text is a multiple of the window.
#
# Expected: msttr is the mean of the type-token ratios of segments. "If True, discard the remaining segment (e.g. for a text
# size of 105 and a segment_window of 100, the last 5 tokens will be discarded)". A text of 200 words has two full segments of
# 100, and nothing remains.
# Seen: with discard=True, which is the default, the last segment is always deleted. So half of a text of 200 words is not
# used, and one more word at the end changes the result to the right one. With discard=False, the result for 200 words is
# right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet lexicalrichness==0.5.1 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 matplotlib==3.11.2
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from lexicalrichness import LexicalRichness

print(f'lexicalrichness {version("lexicalrichness")}')
rng = np.random.default_rng(0)
# The first hundred words are of 20 kinds, the others of 200 kinds.
words = [f'word{k}' for k in np.concatenate([rng.integers(0, 20, 100), rng.integers(0, 200, 205)])]
for size in (105, 200, 201, 300, 305):
    text = words[:size]
    ratios = [len(set(text[k : k + 100])) / 100 for k in range(0, size // 100 * 100, 100)]
    right = np.mean(ratios)
    lexicon = LexicalRichness(text, preprocessor=None, tokenizer=None)
    seen, kept = lexicon.msttr(segment_window=100, discard=True), lexicon.msttr(segment_window=100, discard=False)
    print(f'{size} words: msttr {seen:.4f}, with discard=False {kept:.4f}, mean of the {len(ratios)} full segments {right:.4f}')
    if size % 100:
        assert np.isclose(seen, right), 'this has changed'
    else:
        assert np.isclose(kept, right)
        assert np.isclose(seen, np.mean(ratios[:-1])) and abs(seen - right) > 0.03, 'this has changed'
PY
