"""Plants errors of one line in a copy of the package, and tells which of them the tests catch.

    python tests/planted_errors.py caught.json

Each error is planted alone. The tests that are about its module then run until one fails. Results are kept in the JSON file
after every error, and a second call goes on with those that are missing there. Nightly tests run as well with `--nightly`.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numba  # noqa: F401
import pytest
import scipy.stats  # noqa: F401
import torch
import torch_geometric.nn  # noqa: F401

ROOT = Path(__file__).parents[1]
MINUTES = 15


class Error(NamedTuple):
    file: str  # in the package
    text: str  # which occurs there once
    wrong: str  # which stands in its place
    kind: str
    tests: str  # the tests that run, in tests/


def read(path: Path) -> list[Error]:
    """The errors of a file: a line with the file, the kind and the tests, one with the text, and one with what replaces it."""
    lines = path.read_text().splitlines()
    headers = [number for number, line in enumerate(lines) if line.count(' | ') == 2 and lines[number + 1].startswith('- ')]
    errors = []
    for number in headers:
        (file, kind, tests), text, wrong = lines[number].split(' | '), lines[number + 1], lines[number + 2]
        errors.append(Error(file, text.removeprefix('- '), wrong.removeprefix('+ '), kind, tests))
    return errors


ERRORS = read(Path(__file__).with_suffix('.txt'))


def key_of(error: Error) -> str:
    return f'{error.file}: {error.text} -> {error.wrong}'


def plant(error: Error, tree: Path) -> None:
    path = tree / 'pyg_topomask' / error.file
    source = path.read_text()
    if source.count(error.text) != 1:
        raise ValueError(f'{error.file} holds {source.count(error.text)} times: {error.text}')
    path.write_text(source.replace(error.text, error.wrong))


class Failures:
    """The names of tests that fail, as a plugin of pytest."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._add(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._add(report)

    def _add(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if report.failed:
            self.names.append(report.nodeid)


def run_tests(tree: Path, names: str, nightly: bool, sent: Connection) -> None:
    """In a new process: sends the name of the test that fails, or nothing if none does."""
    output = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    os.environ['PYTHONPATH'] = str(tree)
    failures = Failures()
    paths = [str(tree / 'tests' / name) for name in names.split() if (tree / 'tests' / name.partition('::')[0]).exists()]
    pytest.main(['-x', '-q', *(['-m', 'not browser'] if nightly else []), *paths], [failures])
    sent.send(failures.names[0] if failures.names else '')


def run(tree: Path, tests: str, nightly: bool) -> dict[str, Any]:
    fork = multiprocessing.get_context('fork')  # libraries are imported once, and the package by each process
    received, sent = fork.Pipe(duplex=False)
    process = fork.Process(target=run_tests, args=(tree, tests, nightly, sent))
    began = time.monotonic()
    process.start()
    process.join(60 * MINUTES)
    by = 'it did not end'
    if process.is_alive():
        process.kill()
    elif received.poll():
        by = received.recv()
    elif process.exitcode is not None and process.exitcode < 0:
        by = f'signal {-process.exitcode} ended the process'
    else:
        raise RuntimeError('pytest did not run')
    return {'caught': bool(by), 'by': by, 'seconds': round(time.monotonic() - began)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('results', type=Path)
    parser.add_argument('--root', type=Path, default=ROOT, help='the tree whose package and tests are taken')
    parser.add_argument('--only', default='', help='a part of the name of a file')
    parser.add_argument('--first', type=Path, help='results of an earlier call, whose tests run before the others')
    parser.add_argument('--nightly', action='store_true')
    arguments = parser.parse_args()
    results, earlier = (
        json.loads(path.read_text()) if path is not None and path.exists() else {}
        for path in (arguments.results, arguments.first)
    )
    chosen = [error for error in ERRORS if arguments.only in error.file]
    os.environ['TOPOMASK_DEVICE'] = 'cpu'
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / 'tree'
        leave_out = shutil.ignore_patterns('.git', '*.egg-info', 'results')  # but compiled code
        shutil.copytree(arguments.root, tree, ignore=leave_out)
        if run(tree, 'graphs/test_segments.py', nightly=False)['caught']:
            raise RuntimeError('tests fail without a planted error')
        for number, error in enumerate(chosen, 1):
            key = key_of(error)
            if key not in results:
                path = tree / 'pyg_topomask' / error.file
                source, changed = path.read_bytes(), path.stat()
                plant(error, tree)
                try:
                    known = earlier.get(key, {}).get('by', '').removeprefix('tests/').partition('[')[0]
                    result = run(tree, known, arguments.nightly) if '::' in known else {'caught': False}
                    if not result['caught']:
                        result = run(tree, error.tests, arguments.nightly)
                    results[key] = result
                finally:  # with its old time, by which compiled code is found again
                    path.write_bytes(source)
                    os.utime(path, ns=(changed.st_atime_ns, changed.st_mtime_ns))
                arguments.results.write_text(json.dumps(results, indent=1))
            result = results[key]
            words = f'caught by {result["by"]}' if result['caught'] else 'MISSED'
            print(f'{number}/{len(chosen)} {error.file}: {error.kind}: {words} ({result["seconds"]} s)', flush=True)
    caught = [results[key_of(error)]['caught'] for error in chosen]
    for kind in dict.fromkeys(error.kind for error in chosen):
        of_kind = [was for was, error in zip(caught, chosen, strict=True) if error.kind == kind]
        print(f'{kind}: {sum(of_kind)} of {len(of_kind)} caught')
    print(f'{sum(caught)} of {len(caught)} caught')
    return int(not all(caught))


if __name__ == '__main__':
    sys.exit(main())
