#!/usr/bin/env bash
# rexmex 0.1.3: users count as covered by recommendations of unknown items, and items by those to unknown users.
#
# Expected: user_coverage and item_coverage are the share of the possible users with a recommendation, and of the possible items
# that are recommended. "Recommendations over users/items not in possible_users_items are discarded" (docstrings): a
# recommendation counts if both its user and its item are possible.
# Seen: user_coverage looks at the users of all recommendations, and item_coverage at the items. A user who only gets items that
# are not in the catalog is covered, and so is an item that is only recommended to users of a test account. A system that
# recommends nothing of the catalog has a coverage of users of 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 scikit-learn==1.8.0 six==1.17.0
"$folder/venv/bin/pip" install --quiet --no-deps rexmex==0.1.3
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

from rexmex.metrics.coverage import item_coverage, user_coverage

print(f'rexmex {version("rexmex")}')
users, items = ['Ada', 'Ben', 'Cem', 'Dua'], ['apple', 'bread', 'cheese', 'dates']
cases = {
    'all known': [('Ada', 'apple'), ('Ben', 'bread')],
    'Cem gets an unknown item': [('Ada', 'apple'), ('Cem', 'xylophone')],
    'an unknown user gets bread': [('Ada', 'apple'), ('tester', 'bread')],
    'only unknown items': [(user, 'xylophone') for user in users],
}
for name, recommendations in cases.items():
    seen = [measure((users, items), recommendations) for measure in (user_coverage, item_coverage)]
    kept = [(user, item) for user, item in recommendations if user in users and item in items]
    right = [len({user for user, _ in kept}) / len(users), len({item for _, item in kept}) / len(items)]
    print(f'{name}: users and items covered {seen}, by the definition {right}')
    assert (seen == right) == (name == 'all known'), 'this has changed'
    assert seen == [len({user for user, _ in recommendations} & set(users)) / len(users),
                    len({item for _, item in recommendations} & set(items)) / len(items)], 'this has changed'  # fmt: skip
PY
