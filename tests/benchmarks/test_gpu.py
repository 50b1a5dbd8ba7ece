"""The benchmark of a GPU, on the CPU: what is measured and in which order, what is skipped, kept and written."""

import warnings
from pathlib import Path

import pytest
import torch
from csv_tables import rows_of
from torch.nn.functional import scaled_dot_product_attention

from benchmarks import gpu, gpu_worker
from benchmarks.harness import Unavailable

FEW = ('GATConv', gpu.SDPA, 'Linear')
NOT_HERE = {gpu_worker.FLEX, gpu_worker.KEOPS}


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('TOPOMASK_DEVICE', 'cpu')


class InThisProcess:
    """A worker that measures here, and counts."""

    calls: list[gpu.Job] = []
    outcome: str | None = None

    def __enter__(self) -> 'InThisProcess':
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def measure(self, job: gpu.Job, seconds: float) -> gpu.Row | str:
        self.calls.append(job)
        return self.outcome or gpu_worker.try_to_measure(job)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> type[InThisProcess]:
    monkeypatch.setattr(gpu, 'Worker', InThisProcess)
    monkeypatch.setattr(gpu, 'LAYERS', {name: gpu.LAYERS[name] for name in FEW})
    monkeypatch.setattr(gpu, 'run_tests', lambda *_: '3 passed in 1.00s')
    monkeypatch.setattr(InThisProcess, 'calls', [])
    monkeypatch.setattr(InThisProcess, 'outcome', None)
    return InThisProcess


def read(folder: Path, name: str = 'gpu') -> list[dict[str, str]]:
    return rows_of(folder / f'{name}.csv')


def test_without_a_gpu_it_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unavailable, match='the quick form only'):
        gpu.run(False, tmp_path)
    monkeypatch.delenv('TOPOMASK_DEVICE')
    monkeypatch.setattr('torch.cuda.is_available', lambda: False)
    with pytest.raises(Unavailable, match='TOPOMASK_DEVICE=cpu'):
        gpu.run(True, tmp_path)


def test_a_quick_run(tmp_path: Path, worker: type[InThisProcess]) -> None:
    gpu.run(True, tmp_path)
    first, *rows = read(tmp_path)
    assert (first['attention'], first['outcome']) == ('tests/test_cuda.py', '3 passed in 1.00s')
    assert [(row['precision'], int(row['graphs']), int(row['nodes each']), row['attention']) for row in rows] == worker.calls
    assert len(rows) == 2 * 3 * len(FEW)
    assert {row['outcome'] for row in rows} == {'measured'}
    for gat, full, linear in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        assert float(gat['training / GATConv']) == 1
        assert float(linear['training / GATConv']) == pytest.approx(float(linear['training ms']) / float(gat['training ms']))
        assert float(linear['new graph / GATConv']) == pytest.approx(float(linear['new graph ms']) / float(gat['new graph ms']))
        assert int(full['host syncs']) == 0
    assert {row['attention'] for row in read(tmp_path, 'gpu_crossover')} == {'GATConv', 'Linear'}
    note = (tmp_path / 'gpu.md').read_text()
    assert 'Device: cpu. All of 18 measurements were reached. One layer' in note
    # Everything is kept, until the code is another.
    measured = len(worker.calls)
    gpu.run(True, tmp_path)
    assert len(worker.calls) == measured


def test_other_code_is_measured_again(tmp_path: Path, worker: type[InThisProcess], monkeypatch: pytest.MonkeyPatch) -> None:
    worker.outcome = 'out of memory'
    for code in ('a', 'b'):
        monkeypatch.setattr(gpu, '_hash_of_code', lambda code=code: code)
        gpu.run(True, tmp_path)
    # One batch and one size in each precision; what did not fit is not tried at the larger size.
    assert len(worker.calls) == 2 * 2 * 2 * len(FEW)
    outcomes = [row['outcome'] for row in read(tmp_path)[1:]]
    assert outcomes == 2 * (6 * ['out of memory'] + 3 * ['skipped after 64 nodes'])
    assert not (tmp_path / 'gpu_crossover.csv').exists()


def test_the_budget_is_kept_and_the_rest_named(
    tmp_path: Path, worker: type[InThisProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('TOPOMASK_BUDGET', str(gpu.RESERVE - 1))
    gpu.run(True, tmp_path)
    assert worker.calls == []
    assert len(read(tmp_path)) == 1
    note = (tmp_path / 'gpu.md').read_text()
    assert '18 of 18 measurements were not reached, of graphs x nodes: 4 x 23 in float32, 1 x 64 in float32' in note
    # A measurement that the budget ends is not one that takes too long.
    monkeypatch.setenv('TOPOMASK_BUDGET', str(gpu.RESERVE + 20))
    worker.outcome = 'longer than 19 s'
    gpu.run(True, tmp_path)
    assert len(worker.calls) == len(read(tmp_path)) == 1


@pytest.mark.parametrize('name', [name for name in gpu.LAYERS if name not in NOT_HERE])
def test_every_layer_is_measured(name: str) -> None:
    row = gpu_worker.try_to_measure(('bfloat16', 2, 23, name))
    assert isinstance(row, dict), row
    assert row['outcome'] == 'measured'
    assert min(row['forward ms'], row['training ms'], row['new graph ms']) > 0


def test_flex_attention_is_full_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, 'compile', lambda function, **_: function)
    gpu_worker._flex.cache_clear()
    q, k, v = torch.randn(3, 2, 4, 23, 16)
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', message='.*flex_attention called without torch.compile')
        out = gpu_worker._flex()(q, k, v)
    gpu_worker._flex.cache_clear()
    torch.testing.assert_close(out, scaled_dot_product_attention(q, k, v))


def test_host_synchronisations_are_counted() -> None:
    """In the backward pass too."""
    x = torch.ones(3, requires_grad=True)

    class Reads(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x * x[0].item()

        @staticmethod
        def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
            return grad * float(grad[0])

    assert gpu_worker._count_syncs(lambda: x * 2) == 0
    assert gpu_worker._count_syncs(lambda: bool(Reads.apply(x).sum() > 0)) == 2
    assert gpu_worker._count_syncs(lambda: Reads.apply(x).sum().backward()) == 2


def test_errors_are_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    job = ('float32', 1, 8, 'Linear')
    for error, outcome in (
        (RuntimeError('CUDA error:\nno kernel image'), 'RuntimeError: CUDA error: no kernel image'),
        (RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB'), 'out of memory'),
        (MemoryError(), 'out of memory'),
    ):

        def fail(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(gpu_worker, 'measure', fail)
        assert gpu_worker.try_to_measure(job) == outcome


@pytest.mark.nightly
def test_a_worker_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    job = ('float32', 1, 8, 'Linear')
    with gpu.Worker() as worker:
        row = worker.measure(job, 60)
        assert isinstance(row, dict)
        assert row['outcome'] == 'measured'
        assert worker.measure(job, 0) == 'longer than 0 s'
        assert not worker.process.is_alive()
        with monkeypatch.context() as patched:
            patched.setattr(gpu_worker, '_work', print)  # ends at once
            worker._start()
        worker.ready = True
        assert worker.measure(job, 60) == 'the process ended with status 0'


def size(nodes: int, name: str = 'GRF', seconds: float | None = None, outcome: str = 'measured', graphs: int = 1) -> gpu.Row:
    row = {'precision': 'float32', 'graphs': graphs, 'nodes each': nodes, 'attention': name, 'outcome': outcome}
    times = dict.fromkeys(('forward ms', 'training ms', 'new graph ms'), (seconds or 0) * 1e3)
    return row | (times if outcome == 'measured' else {})


def test_what_would_take_too_long_is_skipped(subtests: pytest.Subtests) -> None:
    for rows, reason in [
        ([], ''),
        ([size(1_000, seconds=0.04)], ''),
        ([size(1_000, seconds=0.06)], 'skipped after 1,000 nodes'),  # linear: 6 s
        ([size(1_000, seconds=0.001), size(10_000, seconds=0.05)], ''),
        ([size(1_000, seconds=0.001), size(10_000, seconds=0.08)], 'skipped after 10,000 nodes'),  # 6.4 s as it grows
        ([size(1_000, seconds=0.1), size(10_000, seconds=0.05)], ''),
        ([size(10_000, outcome='out of memory')], 'skipped after 10,000 nodes'),
        ([size(10_000, outcome='longer than 60 s')], 'skipped after 10,000 nodes'),
        ([size(10_000, outcome='RuntimeError: no kernel')], ''),
        ([size(1_000_000, outcome='out of memory')], ''),  # larger
        ([size(400, outcome='out of memory', graphs=16)], ''),
        ([size(10_000, 'KMIP', outcome='out of memory')], ''),
    ]:
        with subtests.test(rows=rows, reason=reason):
            assert gpu.why_not(('float32', 1, 100_000, 'GRF'), rows) == reason


def test_crossovers(subtests: pytest.Subtests) -> None:
    for ours, first, largest in [
        ((2, 2, 2, 2), 3_000, 4_000),
        ((0.5, 4, 2, 2), 3_000, 4_000),  # once more slower at 2,000
        ((0.5, 1, 2, 2), 1_000, 4_000),
        ((2, 3, 4, None), 'none', 3_000),  # where both are out of memory nothing is known
        ((2, 3, 2, None), 3_000, 3_000),
    ]:
        with subtests.test(ours=ours, first=first, largest=largest):
            sizes = (1_000, 2_000, 3_000, 4_000)
            full = [size(nodes, gpu.SDPA, seconds) for nodes, seconds in zip(sizes, (1, 2, 3), strict=False)]
            full.append(size(4_000, gpu.SDPA, outcome='out of memory'))
            rows = [
                size(nodes, seconds=seconds) if seconds else size(nodes, outcome='skipped after 3,000 nodes')
                for nodes, seconds in zip(sizes, ours, strict=True)
            ]
            unknown = [size(nodes, 'KMIP', outcome='RuntimeError: no kernel') for nodes in sizes]
            forward, training = gpu.find_crossovers([size(23, seconds=9, graphs=128), *full, *rows, *unknown])
            assert (forward['step'], training['step']) == ('forward', 'training')
            for row in (forward, training):
                assert (row['attention'], row['faster from'], row['smallest'], row['largest']) == ('GRF', first, 1_000, largest)


@pytest.mark.parametrize(
    ('body', 'seconds', 'outcome'), [('assert 0', 60, '1 failed, 1 passed in '), ('', 0.01, 'not finished')]
)
def test_the_outcome_of_the_tests(
    body: str, seconds: float, outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = tmp_path / 'test_made.py'
    tests.write_text(f'def test_a():\n    pass\n\ndef test_b():\n    {body or "pass"}\n')
    monkeypatch.setattr(gpu, 'TESTS', str(tests))
    assert gpu.run_tests(False, seconds, tmp_path).startswith(outcome)
    assert ('FAILED' in (tmp_path / 'gpu_tests.txt').read_text()) == bool(body)
