r"""Every attention on a GPU, in one call of limited time: tests, times, memory and host synchronisations, beside others."""

from __future__ import annotations

import hashlib
import importlib.util
import math
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from benchmarks.gpu_worker import (
    BASELINE,
    BATCH_DEGREE,
    FLEX,
    KEOPS,
    LAYERS,
    MEASURED,
    NO_MEMORY,
    REPETITIONS,
    SLOW,
    Job,
    Row,
    Worker,
    device,
)
from benchmarks.harness import Unavailable, kept_runs, read_runs, write_runs, write_table
from benchmarks.report.tables import growth_rates
from benchmarks.scale import CHANNELS, DEGREE, HEADS, SDPA

__all__ = ['run']

ROOT = Path(__file__).parents[1]
#: Seconds of a call, and of them what is kept for imports before and for plots and the report after.
BUDGET, RESERVE = 540.0, 40.0
#: Seconds after which a measurement is stopped, and of a step that is not begun.
LIMIT, TOO_LONG = 60.0, 5.0
#: Numbers of graphs and nodes of each, the most telling first.
BATCHES, SIZES, SIZES_BETWEEN = [(128, 23), (32, 100), (16, 400)], (1_000, 10_000, 100_000, 1_000_000), (3_162, 31_623, 316_228)
TESTS, SKIPPED = 'tests/test_cuda.py', 'skipped after'
COLUMNS = (
    *('precision', 'graphs', 'nodes each', 'attention', 'outcome'),
    *('forward ms', 'training ms', 'new graph ms', 'peak MB', 'host syncs'),
)


def run(quick: bool, folder: Path) -> None:
    begin = time.monotonic()
    if device().type == 'cuda' and not torch.cuda.is_available():
        raise Unavailable('there is no GPU; TOPOMASK_DEVICE=cpu runs the quick form without one')
    if device().type != 'cuda' and not quick:
        raise Unavailable(f'the device is {device()}, which runs the quick form only')
    end = begin + float(os.environ.get('TOPOMASK_BUDGET', BUDGET)) - RESERVE
    settings = {'device': describe_device(), 'code': _hash_of_code(), 'torch': torch.__version__, 'quick': quick}
    path = kept_runs(folder, 'gpu', quick)
    rows: dict[str, Row] = read_runs(settings, path)
    jobs, missing = list_jobs(quick)

    def keep(key: str, row: Row) -> None:
        rows[key] = row
        write_runs(rows, settings, path)
        ordered = [rows[key] for key in (TESTS, *map(str, jobs)) if key in rows]
        _write_tables(ordered, f'{settings["device"]}. {_unfinished(jobs, rows)} {missing}'.strip(), folder)

    with Worker() as worker:  # imports while the tests run
        if TESTS not in rows:
            keep(TESTS, {'attention': TESTS, 'outcome': run_tests(quick, 0.4 * (end - time.monotonic()), folder)})
        for job in tqdm(jobs, desc='gpu'):
            if str(job) in rows:
                continue
            if time.monotonic() > end:
                break
            row = dict(zip(('precision', 'graphs', 'nodes each', 'attention'), job, strict=True))
            seconds = min(LIMIT, end - time.monotonic())
            outcome = why_not(job, list(rows.values())) or worker.measure(job, seconds)
            if isinstance(outcome, str) and outcome.startswith(SLOW) and seconds < LIMIT:
                break  # the budget ended, which says nothing of the attention
            keep(str(job), row | ({'outcome': outcome} if isinstance(outcome, str) else outcome))


def list_jobs(quick: bool) -> tuple[list[Job], str]:
    r"""Returns what is measured, the most telling first, and a sentence on what cannot be."""
    needs = {FLEX: 'triton', KEOPS: 'pykeops'}
    names = [name for name in LAYERS if name not in needs or importlib.util.find_spec(needs[name])]
    if device().type != 'cuda':
        names = [name for name in names if name not in needs]
    batches, sizes, between = ([(4, 23)], (64, 256), ()) if quick else (BATCHES, SIZES, SIZES_BETWEEN)
    first, second = [*batches, *((1, size) for size in sizes)], [(1, size) for size in between]
    jobs = [
        (precision, graphs, nodes, name)
        for shapes in (first, second)
        for precision in ('float32', 'bfloat16')
        for graphs, nodes in shapes
        for name in names
    ]
    missing = [name for name in LAYERS if name not in names]
    return jobs, f'Not available here: {", ".join(missing)}.' if missing else ''


def run_tests(quick: bool, seconds: float, folder: Path) -> str:
    r"""Runs the tests of what a GPU computes, keeps what they print in :obj:`gpu_tests.txt`, and returns their last line."""
    command = [
        sys.executable,
        '-m',
        'pytest',
        '-q',
        '--tb=short',
        '-m',
        'not browser',
        TESTS,
        *(['-k', 'are_here'] if quick else []),
    ]
    with (folder / 'gpu_tests.txt').open('w+') as file:
        try:
            subprocess.run(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return f'not finished after {seconds:.0f} s'
        file.seek(0)
        return [line for line in file.read().splitlines() if line.strip()][-1].strip('= ')


def why_not(job: Job, rows: Sequence[Row]) -> str:
    r"""Returns why a measurement is not begun, which is empty if it is: at a smaller size memory or time ended, or times grow
    so that a step will take too long.
    """
    precision, graphs, nodes, name = job
    wanted = {'precision': precision, 'graphs': graphs, 'attention': name}
    smaller = [row for row in rows if wanted.items() <= row.items() and row['nodes each'] < nodes and graphs == 1]
    for row in smaller:
        if row['outcome'].startswith((NO_MEMORY, SLOW, SKIPPED)):
            return f'{SKIPPED} {row["nodes each"]:,} nodes'
    times = sorted((row['nodes each'], row['new graph ms']) for row in smaller if row['outcome'] == MEASURED)
    if not times:
        return ''
    growth = max([1.0, *growth_rates(times[-2:])])
    expected = times[-1][1] * (nodes / times[-1][0]) ** growth / 1e3
    return f'{SKIPPED} {times[-1][0]:,} nodes' if expected > TOO_LONG else ''


def find_crossovers(rows: Sequence[Row]) -> list[Row]:
    r"""Returns from how many nodes of one graph on each attention is faster than full attention. One that ended by memory or
    time is slower than one that did not. Sizes where both did, or one had another error, say nothing.
    """
    times: dict[tuple[str, str, str], dict[int, float]] = {}
    for row in rows:
        if row.get('graphs') == 1 and row['outcome'].startswith((MEASURED, NO_MEMORY, SLOW, SKIPPED)):
            for step in ('forward', 'training'):
                key = row['precision'], row['attention'], step
                times.setdefault(key, {})[row['nodes each']] = row.get(f'{step} ms', math.inf)
    crossovers = []
    for (precision, name, step), ours in times.items():
        full = times.get((precision, SDPA, step), {})
        sizes = sorted(size for size in ours.keys() & full.keys() if min(ours[size], full[size]) < math.inf)
        if name != SDPA and sizes:
            slower = max((size for size in sizes if ours[size] >= full[size]), default=0)
            first = min((size for size in sizes if size > slower), default='none')
            row = {'precision': precision, 'attention': name, 'step': step}
            crossovers.append(row | {'faster from': first, 'smallest': sizes[0], 'largest': sizes[-1]})
    return crossovers


def _write_tables(rows: Sequence[Row], remark: str, folder: Path) -> None:
    base = {
        (row['precision'], row['graphs'], row['nodes each']): row
        for row in rows
        if row['attention'] == BASELINE and row['outcome'] == MEASURED
    }
    table = []
    for row in rows:
        gat = base.get((row.get('precision'), row.get('graphs'), row.get('nodes each')), {})
        shown = {column: row.get(column, '') for column in COLUMNS}
        for step in ('training', 'new graph'):
            key = f'{step} ms'
            shown[f'{step} / {BASELINE}'] = row[key] / gat[key] if key in row and gat else ''
        table.append(shown)
    note = (
        f'{remark} One layer of {CHANNELS} channels and {HEADS} heads with default options, in float32 without TensorFloat-32 '
        f'or bfloat16 by autocast. Times are medians of up to 15 calls or about {REPETITIONS} s, each from an idle device to '
        f'an idle device. "training" is forward and backward on a graph that the layer has seen; "new graph" includes what is '
        f'prepared once per graph. Graphs are random, of degree {DEGREE}, or {BATCH_DEGREE} in batches; Toeplitz has square '
        f'grids of about as many nodes, Tree random trees, Causal rings. Full attention, PerformerAttention, FlexAttention and '
        f'KeOps get batches as [graphs, nodes, channels], without padding. "peak MB" is what torch allocates on the GPU for '
        f'features, parameters, graph, preparation and a training step; on a CPU it is the resident memory of the last two. '
        f'"host syncs" are those of a prepared training step that torch.cuda.set_sync_debug_mode reports, maybe not all; '
        f'on a CPU it is how many numbers Python reads. "{SLOW} {LIMIT:.0f} s" refers to a row as a whole. "{SKIPPED}" stands '
        f'where a smaller size ran out of memory or time, or where a step would take more than {TOO_LONG:.0f} s if times grow '
        f'as before. The row {TESTS} has the outcome of these tests; gpu_tests.txt has their output.'
    )
    write_table('gpu', 'Every attention on a GPU', note, table, folder)
    for path in folder.glob('gpu_crossover.*'):
        path.unlink()  # it may be of other code
    if crossovers := find_crossovers(rows):
        note = (
            f'{remark} The smallest size in gpu.csv from which on an attention is faster than {SDPA} on one graph, at all '
            f'larger sizes too, or "none"; of the sizes from "smallest" to "largest" at which either could be measured. An '
            f'attention that ran out of memory or time counts as slower.'
        )
        write_table('gpu_crossover', 'Where each attention overtakes full attention on a GPU', note, crossovers, folder)


def _unfinished(jobs: Sequence[Job], rows: Mapping[str, Row]) -> str:
    left = [job for job in jobs if str(job) not in rows]
    if not left:
        return f'All of {len(jobs)} measurements were reached.'
    shapes = dict.fromkeys(f'{graphs} x {nodes:,} in {precision}' for precision, graphs, nodes, _ in left)
    return f'{len(left)} of {len(jobs)} measurements were not reached, of graphs x nodes: {", ".join(shapes)}.'


def describe_device() -> str:
    if device().type != 'cuda':
        return f'Device: {device()}'
    properties: Any = torch.cuda.get_device_properties(device())
    return f'Device: {properties.name}, {properties.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}'


def _hash_of_code() -> str:
    files = [*(ROOT / 'pyg_topomask').rglob('*.py'), *(ROOT / 'benchmarks').glob('*.py'), *(ROOT / 'tests').glob('*.py')]
    code = b''.join(path.read_bytes() for path in sorted(files))
    return hashlib.sha256(code).hexdigest()[:12]
