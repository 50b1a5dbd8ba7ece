r"""How many public YAML files of GraphGPS and its forks the standalone runner takes unchanged.

Needs :obj:`YAMLS_DIR`, a folder with a checkout of each repository, called :obj:`<owner>+<name>`. No data are needed: the
network of each file is built with stand-in sizes. The package of an earlier commit reads the same files in another process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import yaml  # type: ignore[import-untyped]

from benchmarks.before_after import ROOT, unpack
from benchmarks.harness import Unavailable, write_table

__all__ = ['run']

#: The commit to compare with, the last before the first pass over these files.
BEFORE = '82ad568'
BUILT = 'the network is built'


def run(quick: bool, folder: Path) -> None:
    root = Path(os.environ.get('YAMLS_DIR', ''))
    if 'YAMLS_DIR' not in os.environ or not root.is_dir():
        raise Unavailable('YAMLS_DIR is not set to a folder of checkouts of repositories')
    files = sorted(path for path in root.rglob('*.yaml') if _is_configuration(path))[:: 40 if quick else 1]
    commit = os.environ.get('PYG_TOPOMASK_BEFORE', BEFORE)
    with tempfile.TemporaryDirectory() as earlier:
        unpack(commit, Path(earlier))
        before, now = (_outcomes(tree, files) for tree in (Path(earlier), ROOT))
    counts = Counter((_repository(path, root), outcome, instead) for path, (outcome, instead) in now.items())
    built = Counter((_repository(path, root), *now[path]) for path, (outcome, _) in before.items() if outcome == BUILT)
    repositories = sorted({repository for repository, *_ in counts})
    rows = [
        {
            'repository': repository.replace('+', '/'),
            'commit': _commit(root / repository),
            'outcome': outcome,
            'instead': instead,
            'files': count,
            f'of these built at {commit}': built[repository, outcome, instead],
        }
        for repository in repositories
        for (name, outcome, instead), count in sorted(counts.items(), key=lambda item: (item[0][1] != BUILT, -item[1], item[0]))
        if name == repository
    ]
    total = sum(count for (_, outcome, _), count in counts.items() if outcome == BUILT)
    note = (
        f'All YAML files with a model and a data set in these repositories, unchanged, in the standalone runner: {total} of '
        f'{len(files)} networks are built, and {sum(outcome == BUILT for outcome, _ in before.values())} at commit {commit}. '
        'Sizes of the data are stand-ins, and so is the package ogb where it is not installed. The other files end in one '
        'error, which names the option in the column "outcome" and what may take its place. No file was trained.'
    )
    write_table('yamls', 'Public YAML files in the standalone runner', note, rows, folder)


def _is_configuration(path: Path) -> bool:
    content = yaml.safe_load(path.read_text(encoding='utf-8'))
    return isinstance(content, dict) and {'model', 'dataset'} <= content.keys()


def _repository(path: str, root: Path) -> str:
    return Path(path).relative_to(root).parts[0]


def _commit(checkout: Path) -> str:
    r"""Returns the commit of a checkout, or an empty text if it has no history."""
    if not (checkout / '.git').exists():
        return ''
    return subprocess.run(
        ['git', 'rev-parse', '--short', 'HEAD'], cwd=checkout, check=True, capture_output=True, text=True
    ).stdout.strip()


def _outcomes(tree: Path, files: list[Path]) -> dict[str, tuple[str, str]]:
    r"""Returns the outcome of each file with the package in a folder, and what its error recommends instead."""
    path = os.pathsep.join([str(tree), str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])])
    names = '\n'.join(map(str, files))
    command, environment = [sys.executable, '-W', 'ignore', '-m', 'benchmarks.yamls'], {**os.environ, 'PYTHONPATH': path}
    done = subprocess.run(command, input=names, cwd=tree, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return {path: (outcome, instead) for path, (outcome, instead) in json.loads(done.stdout.splitlines()[-1]).items()}


def _try(path: str) -> tuple[str, str]:
    r"""Builds the network of a file, and returns the outcome as :func:`_outcomes` does."""
    from torch_geometric.graphgym.config import cfg

    from pyg_topomask.apps.train.metrics import check_metric_best
    from pyg_topomask.apps.train.module import RunModule
    from pyg_topomask.graphgym.configuration import load_config
    from pyg_topomask.graphgym.data import pyg_datasets
    from pyg_topomask.graphgym.data.datasets import FORMATS

    name = 'checks' if find_spec('pyg_topomask.apps.train.checks') else 'option_checks'  # at BEFORE
    check_options = import_module(f'pyg_topomask.apps.train.{name}').check_options
    try:
        load_config(path)
        check_options()
        if cfg.dataset.format not in FORMATS:
            return f'dataset.format {cfg.dataset.format}', ''
        names = getattr(pyg_datasets, 'OGB_NAMES', ())
        if cfg.dataset.format == 'OGB' and not cfg.dataset.name.startswith('ogb') and cfg.dataset.name not in names:
            return f'dataset.name {cfg.dataset.name}', ''
        cfg.share.dim_in, cfg.share.dim_edge = 14, 2
        two = cfg.metric_best == 'auc' or cfg.dataset.task == 'link_pred' or cfg.gnn.head == 'inductive_edge'
        cfg.share.dim_out = 2 if two else 10  # classes
        check_metric_best()
        RunModule()
        for name in {'LapPE', 'RWSE', 'EquivStableLapPE'} & set(cfg.dataset.node_encoder_name.split('+')):
            if cfg.dataset.node_encoder and not cfg[f'posenc_{name}'].enable:  # an error of the first batch
                return f'posenc_{name}.enable False', f'posenc_{name}.enable True'
    except (AssertionError, AttributeError, ImportError, LookupError, RuntimeError, TypeError, ValueError) as error:
        given = str(getattr(error, 'given', '')).strip("'")
        what = f'{getattr(error, "argument", type(error).__name__)} {given if len(given.split()) == 1 else ""}'.strip()
        instead, _, _ = str(getattr(error, 'remedy', '')).partition(';')
        return what, instead.removeprefix('instead: ') if instead.startswith('instead: ') else ''
    return BUILT, ''


def _stand_in_for_ogb() -> None:
    r"""Has GraphGym's encoders of atoms and bonds find the numbers of categories of each feature."""
    for name in ('ogb', 'ogb.utils', 'ogb.utils.features'):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__spec__ = ModuleSpec(name, None)
    features = sys.modules['ogb.utils.features']
    features.get_atom_feature_dims = lambda: [119, 5, 12, 12, 10, 6, 6, 2, 2]  # type: ignore[attr-defined]
    features.get_bond_feature_dims = lambda: [5, 6, 2]  # type: ignore[attr-defined]


if __name__ == '__main__':
    if find_spec('ogb') is None:
        _stand_in_for_ogb()
    print(json.dumps({path: _try(path) for path in sys.stdin.read().splitlines()}))
