r"""Runs benchmarks, and writes the report: :obj:`python -m benchmarks [NAME ...] [--full | --quick] [--out FOLDER]`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import draw_figures
from benchmarks.registry import BENCHMARKS
from benchmarks.report import RESULTS, write_report
from benchmarks.runner import read_durations, run

__all__ = ['main']

REPORT = 'report'


def main(arguments: Sequence[str] | None = None) -> int:
    r"""Runs what the arguments name, and returns the exit status: 1 if a benchmark has failed."""
    options = _parse(arguments)
    if options.list:
        print(_list())
        return 0
    if options.before:
        os.environ['PYG_TOPOMASK_BEFORE'] = options.before
    full = options.full or (bool(options.names) and not options.quick and all(map(_needs_gpu, options.names)))
    folder = options.out or (RESULTS if full or options.names == [REPORT] else RESULTS / 'quick')
    folder.mkdir(parents=True, exist_ok=True)
    names = [name for name in options.names or BENCHMARKS if name != REPORT]
    failed = []
    for index, name in enumerate(names, 1):
        print(f'[{index}/{len(names)}] {name}: {BENCHMARKS[name].purpose}', flush=True)
        if not run(name, not full, folder):
            failed.append(name)
    draw_figures(folder)
    write_report(folder, quick=bool(names) and not full)
    print(f'report: {folder / "REPORT.md"}')
    if failed:
        print(f'failed: {", ".join(failed)}', file=sys.stderr)
    return 1 if failed else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m benchmarks',
        description='Runs benchmarks, writes tables and plots, and then REPORT.md from all that lie in the folder.',
        epilog=f'benchmarks:\n{_list()}\n"{REPORT}" as the only name writes the report alone.',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('names', nargs='*', metavar='NAME', help='what to run (default: all)')
    size = parser.add_mutually_exclusive_group()
    size.add_argument('--full', action='store_true', help='real sizes, the default of benchmarks that need a GPU')
    size.add_argument(
        '--quick', action='store_true', help='a smoke run of small sizes and few repetitions, the default of all others'
    )
    parser.add_argument('--out', type=Path, help=f'where to write (default: {RESULTS.name}, or {RESULTS.name}/quick)')
    parser.add_argument('--before', metavar='COMMIT', help='what before_after and targets compare with (PYG_TOPOMASK_BEFORE)')
    parser.add_argument('--list', action='store_true', help='what each benchmark is for, and how long it took in full')
    options = parser.parse_args(arguments)
    unknown = set(options.names) - {*BENCHMARKS, REPORT}
    if unknown:
        parser.error(f'NAME: got {", ".join(sorted(unknown))}; accepted: {", ".join([*BENCHMARKS, REPORT])}')
    return options


def _needs_gpu(name: str) -> bool:
    return name in BENCHMARKS and BENCHMARKS[name].needs_gpu


def _list() -> str:
    durations = read_durations(RESULTS)
    return '\n'.join(
        f'  {name:16} {benchmark.purpose}' + (f' ({durations[name]} minutes)' if name in durations else '')
        for name, benchmark in BENCHMARKS.items()
    )


if __name__ == '__main__':
    sys.exit(main())
