"""The runner of benchmarks: failures, what cannot run here, names, durations."""

import math
import os
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool

import pytest

from benchmarks import __main__ as command
from benchmarks import runner
from benchmarks.harness import Unavailable, alone
from benchmarks.registry import BENCHMARKS, Benchmark
from benchmarks.report import PAGE, RESULTS, write_report


def test_a_failure_is_reported_after_the_others(tmp_path, monkeypatch, capsys):
    ran = []
    monkeypatch.setattr(command, 'run', lambda name, quick, folder: ran.append((name, quick)) or name != 'heat')
    assert command.main(['heat', 'tree', '--out', str(tmp_path)]) == 1
    assert ran == [('heat', True), ('tree', True)]
    assert 'failed: heat' in capsys.readouterr().err
    assert 'A smoke run' in (tmp_path / 'REPORT.md').read_text()
    assert command.main(['tree', '--full', '--out', str(tmp_path)]) == 0
    assert 'A smoke run' not in (tmp_path / 'REPORT.md').read_text()
    assert ran[-1] == ('tree', False)


@pytest.mark.parametrize(
    ('arguments', 'quick'),
    [
        (['gpu'], False),
        (['gpu', '--quick'], True),
        (['gpu', '--full'], False),
        (['gpu', 'heat'], True),
        (['heat', '--quick'], True),
    ],
)
def test_what_needs_a_gpu_runs_in_full(arguments, quick, tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(command, 'run', lambda name, quick, folder: ran.append(quick) or True)
    assert command.main([*arguments, '--out', str(tmp_path)]) == 0
    assert set(ran) == {quick}
    assert ('A smoke run' in (tmp_path / 'REPORT.md').read_text()) == quick


def test_the_report_alone_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(command, 'run', lambda *_: pytest.fail('ran'))
    assert command.main(['report', '--out', str(tmp_path)]) == 0
    assert (tmp_path / 'REPORT.md').is_file()


def test_an_unknown_name_is_refused(capsys):
    with pytest.raises(SystemExit, match='2'):
        command.main(['heta'])
    assert 'got heta; accepted: scaling' in capsys.readouterr().err


def test_the_list_names_all(capsys):
    assert command.main(['--list']) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in BENCHMARKS)


@pytest.mark.parametrize('error', [Unavailable('no data'), ModuleNotFoundError("No module named 'faiss'", name='faiss')])
def test_what_cannot_run_here_says_so_in_one_line(error, tmp_path, monkeypatch, capsys):
    def unavailable(self):
        raise error

    monkeypatch.setattr(Benchmark, 'load', unavailable)
    with pytest.raises(SystemExit, match=str(runner.UNAVAILABLE)):
        runner.work('heat', True, tmp_path)
    assert capsys.readouterr().err == f'heat: cannot run here: {error}\n'


def test_a_broken_import_of_ours_is_a_failure(tmp_path, monkeypatch):
    def broken(self):
        raise ModuleNotFoundError(name='pyg_topomask.nowhere')

    monkeypatch.setattr(Benchmark, 'load', broken)
    with pytest.raises(ModuleNotFoundError):
        runner.work('heat', True, tmp_path)


@pytest.mark.nightly
def test_a_process_of_its_own(tmp_path):
    # A crash in the first: its table cannot be written.
    (tmp_path / 'toeplitz.csv').mkdir()
    environment = {key: value for key, value in os.environ.items() if key != 'GRAPHGPS_DIR'}
    done = subprocess.run(
        [sys.executable, '-m', 'benchmarks', 'toeplitz', 'graphgps', 'heat', '--out', tmp_path],
        cwd=RESULTS.parents[1],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert 'IsADirectoryError' in done.stderr
    assert 'graphgps: cannot run here: GRAPHGPS_DIR is not set' in done.stderr
    assert done.stderr.endswith('failed: toeplitz\n')
    assert '[3/3] heat' in done.stdout
    assert list(runner.read_durations(tmp_path)) == ['heat']
    assert 'run `python -m benchmarks --full toeplitz`' in (tmp_path / 'REPORT.md').read_text()


def test_other_folders_leave_the_page_alone(tmp_path):
    before = PAGE.read_text()
    write_report(tmp_path)
    assert PAGE.read_text() == before


def test_a_process_that_is_killed_is_an_error():
    assert alone(math.hypot, 3.0, 4.0) == 5.0
    with pytest.raises(BrokenProcessPool):
        alone(os._exit, 1)
