#!/usr/bin/env bash
# DendroPy 5.1.3: the parsimony score of a tree is that of the first matrix of characters, whatever matrix is scored next.
#
# Expected: parsimony_score(tree, chars) is "the parsimony score of the tree given the data". It "generates a new map each time"
# from the characters of chars (docstring, dendropy.model.parsimony). gaps_as_missing=False makes a gap a state of its own.
# Seen: fitch_down_pass reads the attribute state_sets of a leaf, and only without it the map of the characters, which it then
# stores as the attribute. So the first call leaves its data on the tree. All later calls for this tree score the first data:
# another matrix, another gene, or another choice for gaps does not change the score. There is no warning. With weights, which
# are of the second matrix, the score belongs to neither of both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dendropy==5.1.3
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import product

import dendropy
from dendropy.model.parsimony import parsimony_score

print(f'DendroPy {version("dendropy")}')
names = ['a', 'b', 'c', 'd']
namespace = dendropy.TaxonNamespace(names)
genes = {
    'gene 1': ['AAAA', 'AAAA', 'CCCC', 'CCCC'],
    'gene 2': ['ACGT', 'CATG', 'ACGT', 'CATG'],
    'gene 3': ['AA-A', 'AAA-', 'AA-A', 'AAA-'],
}


def tree():
    return dendropy.Tree.get(data='((a,b),(c,d));', schema='newick', taxon_namespace=namespace)


def matrix(gene):
    data = ''.join(f'>{name}\n{row}\n' for name, row in zip(names, genes[gene]))
    return dendropy.DnaCharacterMatrix.get(data=data, schema='fasta', taxon_namespace=namespace)


def by_definition(gene, gaps_as_missing):
    # The least number of changes on the five edges of the tree, over all states of the two inner nodes.
    score = 0
    for site in zip(*genes[gene]):
        leaves = [set('ACGT') if state == '-' and gaps_as_missing else {state} for state in site]
        score += min(sum(state != inner for state, inner in zip(states, (x, x, y, y))) + (x != y)
                     for x, y in product('ACGT-', repeat=2) for states in product(*leaves))  # fmt: skip
    return score


same, found = tree(), []
for gene, missing in (('gene 1', True), ('gene 2', True), ('gene 3', True), ('gene 3', False)):
    seen = parsimony_score(same, matrix(gene), gaps_as_missing=missing)
    fresh, right = parsimony_score(tree(), matrix(gene), gaps_as_missing=missing), by_definition(gene, missing)
    print(f'{gene}, gaps_as_missing={missing}: on the same tree {seen}, on a tree read anew {fresh}, by the definition {right}')
    assert fresh == right and seen == 4, 'this has changed'
    found.append(right)
assert found == [4, 8, 0, 4], 'this has changed'
PY
