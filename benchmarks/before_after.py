r"""The hot paths as they are, beside an earlier commit of this repository: what a pass over their speed has gained."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tqdm import tqdm

from benchmarks.harness import Unavailable, interleaved_medians, write_table
from benchmarks.paths import CASES, DEGREE, FEATURES, HEADS, LENGTH, P_HALT, WALKS, make_layers, make_paths

__all__ = ['ROOT', 'run', 'unpack']

ROOT = Path(__file__).parents[1]
#: The commit to compare with; the default is the last one before the first pass over speed.
BEFORE = 'db68ae1'


def run(quick: bool, folder: Path) -> None:
    commit = os.environ.get('PYG_TOPOMASK_BEFORE', BEFORE)
    with tempfile.TemporaryDirectory() as earlier, ExitStack() as stack:
        unpack(commit, Path(earlier))
        before, after = (stack.enter_context(_Package(tree, quick)) for tree in (earlier, str(ROOT)))
        repeats = 1 if quick else 9
        paths: list[dict[str, object]] = []
        for path in tqdm(make_paths(20), desc='before_after'):
            seconds = _compare(before, after, path, repeats)
            paths.append(
                {'path': path, 'before ms': seconds[0], 'after ms': seconds[1], 'before / after': seconds[0] / seconds[1]}
            )
        layers: list[dict[str, object]] = []
        for graph, kind in tqdm(list(make_layers(quick)), desc='before_after_layers'):
            row: dict[str, object] = {'graph': graph, 'layer': kind}
            for case in CASES:
                seconds = _compare(before, after, f'{graph}, {kind}, {case}', repeats)
                row |= {f'{case}, before ms': seconds[0], f'{case}, after ms': seconds[1]}
                row[f'{case}, before / after'] = seconds[0] / seconds[1]
            layers.append(row)
    note = (
        f'The package at commit {commit} beside this one, each in a process of its own, call by call in turns; the paths are '
        f'those of benchmarks/paths.py, for both alike, with gradients where there are any. {HEADS} heads, {FEATURES} '
        f'features and channels each, float32, random graphs with {DEGREE} neighbours a node; walks: {WALKS} a node, p_halt '
        f'{P_HALT}, at most {LENGTH} hops. Medians of 9. PYG_TOPOMASK_BEFORE names another commit. At {BEFORE} '
        f'Toeplitz products kept transforms for the backward pass, which they make again now, and trees were summed in float32 '
        f'by Numba, which lost digits along paths.'
    )
    write_table('before_after', 'Hot paths before and after the passes over their speed', note, paths, folder)
    note = (
        f'Forward and backward of one layer at commit {commit} and now, on the graphs of the table "layers" (64 channels, '
        f'{HEADS} heads, float32, one thread): each in a process of its own, step by step in turns, medians of 9. "prepared" '
        f'is on a graph that the layer has seen, "new graph" prepares it in every step. Hops are left out: {BEFORE} had none.'
    )
    write_table('before_after_layers', 'A training step of every attention before and after', note, layers, folder)


def _compare(before: _Package, after: _Package, path: str, repeats: int) -> tuple[float, float]:
    r"""Returns the milliseconds that a path takes before and after."""
    seconds = interleaved_medians({'before': partial(before.run, path), 'after': partial(after.run, path)}, repeats)
    return seconds['before'] * 1e3, seconds['after'] * 1e3


def unpack(commit: str, folder: Path) -> None:
    r"""Writes the package of a commit to a folder."""
    command = ['git', 'archive', '--format=tar', commit, 'pyg_topomask']
    try:
        archive = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise Unavailable(f'no commit {commit} of this repository: it takes git, and a clone with its history') from error
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter='data')


class _Package:
    r"""A process in which the package of a folder waits for calls."""

    def __init__(self, tree: str, quick: bool) -> None:
        path = os.pathsep.join([tree, str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])])
        command = [sys.executable, '-m', 'benchmarks.paths', *(['--quick'] if quick else [])]
        environment, pipe = {**os.environ, 'PYTHONPATH': path}, subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=tree, env=environment, stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> _Package:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()

    def run(self, path: str) -> None:
        r"""Runs a path once."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(path, file=self.process.stdin, flush=True)
        if not self.process.stdout.readline():
            raise RuntimeError(f'{path}: the process that ran it has ended')
