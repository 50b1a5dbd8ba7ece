"""The command, on trees so small that a training takes a second."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx
import numpy as np
import pytest
import torch
import yaml
from csv_tables import rows_of
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg

from pyg_topomask.__main__ import main
from pyg_topomask.apps.advise import advise, trials
from pyg_topomask.apps.advise.advise import _graphs, own_config
from pyg_topomask.apps.advise.candidates import GraphProfile, candidates, profile
from pyg_topomask.apps.advise.report import Chance
from pyg_topomask.apps.runs.run import locked
from pyg_topomask.apps.train import train
from pyg_topomask.graphgym.configuration import load_config

SMALL = ['optim.max_epoch', '2', 'topomask.dataset', '{num_graphs: 10, size: 12, radius: 2, num_keys: 2}']
SMALL += ['topomask.progress', 'False', 'gt.dim_hidden', '8', 'gnn.dim_inner', '8', 'gt.layers', '1']

#: Trees of 100 nodes.
TREES: dict[str, Any] = {
    'graphs': 10,
    'nodes': 300,
    'largest': 300,
    'degree': 2.0,
    'one_way': 0.0,
    'weighted': False,
    'symmetric': True,
    'forest': True,
    'grid': False,
    'within': tuple(min(2.0**hops, 300.0) for hops in range(17)),
    'reaching': 300.0,
    'farthest': 20,
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def names(options: tuple[str, ...] = (), **changed: Any) -> list[str]:
    load_config('lookup-trees', options)
    return [model.name.removeprefix('SAGE+') for model in candidates(GraphProfile(**{**TREES, **changed}))[0]]


def test_masks_fit_the_graphs() -> None:
    plain = ['None', 'None, 6 layers', 'Linear']
    assert names() == [*plain, 'Hop', 'Tree', 'PowerSeries', 'None+Hop']
    assert names(largest=100) == [*plain, 'Transformer', 'Hop', 'Tree', 'PowerSeries', 'None+Hop']
    assert names(forest=False) == [*plain, 'Hop', 'PowerSeries', 'HeatKernel', 'None+Hop']
    assert names(forest=False, grid=True) == [*plain, 'Hop', 'Toeplitz', 'PowerSeries', 'None+Hop']
    assert names(forest=False, one_way=0.5, symmetric=False, farthest=5) == [
        *plain,
        'Hop',
        'PowerSeries',
        'AsymmetricGRF',
        'None+Hop',
    ]
    assert names(one_way=0.5, symmetric=False) == [
        *plain,
        'Hop',
        'PowerSeries',
        'HeatKernel',
        'None+Hop',
    ]  # directed trees are no Tree
    dense = {'forest': False, 'degree': 90.0, 'within': (1.0, *[91.0] * 16)}
    assert names(**dense) == [*plain, 'GRF', 'None+GRF']
    assert candidates(GraphProfile(**{**TREES, **dense}))[1][:2] == [
        'Hop, because a node has 90 neighbors',
        'PowerSeries, because a product goes along 90 edges a node',
    ]


def test_options_of_the_configuration_are_kept_and_others_fit() -> None:
    load_config('lookup-trees')  # which states the options of Hop, and none of PowerSeries
    hop, _, series = (model for model in candidates(GraphProfile(**TREES))[0] if model.masked and 'None' not in model.name)
    assert not any('Hop' in word for word in hop.options[2:])
    assert '4 hops' in hop.why
    assert series.options[2:4] == ('topomask.PowerSeries.order', '4')
    load_config('digits')
    models, left_out = candidates(GraphProfile(**{**TREES, 'largest': 1000}))
    hop = next(model for model in models if model.masked)
    assert hop.options == ('gt.layer_type', 'GINE+Hop', 'topomask.Hop.max_hops', '6')  # 2**6 = 64 nodes within 6 hops
    assert left_out == [
        'Transformer (all pairs), because a graph has more than 256 nodes',
        'GRF of gt.layer_type, because other masks come first',
    ]


def test_an_option_that_is_stated_fixes_no_other() -> None:
    load_config('digits', ['topomask.Hop.feature_map', 'square'])
    hop = next(model for model in candidates(GraphProfile(**TREES))[0] if model.masked)
    assert hop.options == ('gt.layer_type', 'GINE+Hop', 'topomask.Hop.max_hops', '6')


def test_heat_kernels_of_asymmetric_graphs_are_those_of_random_walks() -> None:
    one_way = Data(edge_index=torch.tensor([[0, 1, 1], [1, 0, 2]]), num_nodes=3)
    both = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), edge_weight=torch.tensor([1.0, 2.0]), num_nodes=2)
    equal = Data(edge_index=both.edge_index, edge_weight=torch.ones(2), num_nodes=2)
    assert [profile([data], classes=False).symmetric for data in (one_way, both, equal)] == [False, False, True]
    load_config('lookup-trees')
    changed = {**TREES, 'forest': False, 'symmetric': False}  # hardly any edge leads one way
    models, _ = candidates(GraphProfile(**changed))
    heat = next(model for model in models if 'HeatKernel' in model.name)
    assert heat.options[4:6] == ('topomask.HeatKernel.kind', 'random_walk_laplacian')


def test_loops_are_no_edges_between_equal_labels_and_empty_graphs_have_a_profile() -> None:
    loops = torch.tensor([[0, 1, 0, 1], [1, 0, 0, 1]])
    assert profile([Data(edge_index=loops, y=torch.tensor([0, 1]), num_nodes=2)], classes=True).equal_labels == 0.0
    assert profile([Data(edge_index=loops[:, :0], num_nodes=0)], classes=False).largest == 0


def test_a_verdict_from_trainings_and_a_resume(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    report = advise('lookup-trees', SMALL, seeds=2)
    assert [model['seeds'] for model in report['models']].count([0, 1]) == 5
    assert [model['seeds'] for model in report['models']].count([0]) == len(report['models']) - 5
    folder = Path('results/advise-lookup-trees')
    stored = json.loads((folder / 'advise.json').read_text())
    assert stored['verdict'] == report['verdict']
    for model in report['models']:
        results = [json.loads(path.read_text()) for path in sorted(folder.glob(f'{_folder(model["model"])}/*/result.json'))]
        assert model['test'] == [result['test_accuracy'] for result in results]
        assert model['parameters'] == results[0]['parameters']
    page = (folder / 'advise.html').read_text()
    assert report['verdict']['sentence'] in page
    assert not re.search(r'(src|href)="(?!data:)', page)  # it loads nothing
    assert (folder / 'advise.png').stat().st_size > 0
    shown = capsys.readouterr().out
    assert report['verdict']['sentence'] in shown
    best = yaml.safe_load((folder / 'best.yaml').read_text())
    load_config(folder / 'best.yaml')
    word = report['winner'].split(',')[0]
    assert best['gt']['layer_type'] == cfg.gt.layer_type == word
    assert cfg.topomask.dataset.size == 12
    assert_a_resume_trains_only_what_is_missing(report, monkeypatch)


def _folder(name: str) -> str:
    return name.replace('+', '-').replace(', ', '-').replace(' ', '-')


def assert_a_resume_trains_only_what_is_missing(first: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path('results/advise-lookup-trees')
    removed = next(model['model'] for model in first['models'] if len(model['seeds']) == 2)
    shutil.rmtree(folder / _folder(removed) / '1')
    trained: list[str] = []
    original = trials.train_seed

    def record(run: Path, *rest: Any) -> Any:
        trained.append(run.relative_to(folder).as_posix())
        return original(run, *rest)

    monkeypatch.setattr(trials, 'train_seed', record)
    again = advise('lookup-trees', SMALL, seeds=2, resume=True)
    assert trained == [f'{_folder(removed)}/1']
    assert [model['test'] for model in again['models']] == [model['test'] for model in first['models']]
    assert again['verdict'] == first['verdict']


def test_losers_stop_early_and_the_best_train_as_without_a_stop() -> None:
    options, part = [*SMALL, 'optim.max_epoch', '9', 'train.eval_period', '4'], 4  # from 3 on, the first with a validation
    report = advise('lookup-trees', options, seeds=1)
    folder = Path('results/advise-lookup-trees')
    epochs = {model['model']: model['epochs'] for model in report['models']}
    assert sorted(epochs.values()) == [part] * 3 + [9] * 5
    for masked, count in ((True, 3), (False, 2)):
        reached = {}
        for name in (model['model'] for model in report['models'] if model['masked'] == masked):
            rows = rows_of(folder / _folder(name) / '0' / 'metrics.csv')[:part]
            reached[name] = max(float(row['val_accuracy']) for row in rows if row['val_accuracy'])
        last = sorted(reached.values(), reverse=True)[count - 1]
        assert all(epochs[name] == 9 for name in reached if reached[name] > last)
        assert all(epochs[name] == part for name in reached if reached[name] < last)
    winner = next(model for model in report['models'] if model['model'] == report['winner'])
    (whole,) = train(folder / 'best.yaml', ['topomask.progress', 'False'], out='alone')
    assert winner['test'] == [whole['test_accuracy']]


def _pretend(
    monkeypatch: pytest.MonkeyPatch,
    accuracy: Callable[[Path, int], float] = lambda run, epoch: 0.5,
    metric: str = 'accuracy',
    trained: str | None = None,
) -> list[str]:
    """Pretended trainings, but of one model if it is given, which take 10 seconds and 20 for each epoch, on a clock that
    nothing else moves. Returns their folders.
    """
    clock, done, train_seed = [0.0], list[str](), trials.train_seed
    monkeypatch.setattr(time, 'perf_counter', lambda: clock[0])

    def pretend(run: Path, resume: bool, label: str, epochs: int) -> None:
        if trained == run.parent.name:
            train_seed(run, resume, label, epochs)
            return
        table = run / 'metrics.csv'
        before = len(table.read_text().splitlines()) - 1 if resume and table.exists() else 0
        run.mkdir(parents=True, exist_ok=True)
        values = [accuracy(run, epoch) for epoch in range(epochs)]
        table.write_text(f'epoch,val_{metric}\n' + ''.join(f'{epoch},{value}\n' for epoch, value in enumerate(values)))
        result = {f'val_{metric}': max(values), f'test_{metric}': max(values), 'epochs': epochs, 'seconds_per_epoch': 20.0}
        (run / 'result.json').write_text(json.dumps({**result, 'parameters': 1, 'memory': None}))
        clock[0] += 10 + 20 * (epochs - before)
        done.append(str(run))

    monkeypatch.setattr(trials, 'train_seed', pretend)
    return done


def test_a_time_decides_the_epochs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _pretend(monkeypatch)
    options = [*SMALL, 'optim.max_epoch', '12', 'optim.num_warmup_epochs', '6']
    report = advise('lookup-trees', options, seeds=2, minutes=30)
    # Eight first epochs take 240 s. Of the 1,560 s that are left, 90 % are 1,404 s. With six epochs, three before losers stop,
    # the trainings take 8 * (10 + 60) + 5 * (10 + 60) + 5 * (10 + 120) = 1,560 s, and with five, 1,360 s.
    assert report['epochs'] == 5
    assert 'To end in 30 minutes, trainings have 5 of 12 epochs.' in capsys.readouterr().out
    assert yaml.safe_load(Path('results/advise-lookup-trees/best.yaml').read_text())['optim']['num_warmup_epochs'] == 2
    assert any('left 5 of 12 epochs' in note for note in report['notes'])
    trained = _pretend(monkeypatch)
    again = advise('lookup-trees', options, seeds=2, minutes=1, resume=True)
    assert (trained, again['verdict']) == ([], report['verdict'])
    with pytest.raises(ValueError, match=r'minutes: got 9, .* fewer than 3 epochs of each training; accepted: numbers'):
        advise('lookup-trees', options, seeds=2, minutes=9, out='short')


def test_a_warm_up_is_at_most_half_of_a_training(monkeypatch: pytest.MonkeyPatch) -> None:
    _pretend(monkeypatch)
    report = advise('lookup-trees', [*SMALL, 'optim.max_epoch', '12', 'optim.num_warmup_epochs', '7'], seeds=1, minutes=600)
    assert yaml.safe_load(report['yaml'])['optim']['num_warmup_epochs'] == 1


@pytest.mark.parametrize(('name', 'counts'), [('test_mask', [1, 2]), ('unused_mask', [1, 1])])
def test_the_labels_that_count_are_those_of_the_test_split_or_else_of_validation(
    monkeypatch: pytest.MonkeyPatch, name: str, counts: list[int]
) -> None:
    val, last = torch.tensor([1, 1, 0, 0, 0]).bool(), torch.tensor([0, 0, 1, 1, 1]).bool()
    data = Data(y=torch.tensor([0, 1, 0, 1, 1]), val_mask=val, **{name: last})
    monkeypatch.setitem(_graphs.__globals__, 'create_loaders', lambda: [SimpleNamespace(dataset=[data])])
    load_config('lookup-trees', ['dataset.task', 'node'])
    assert _graphs() == ([data], Chance(counts))


@pytest.mark.parametrize(('metric', 'constant'), [('mae', [1.5, 20.0]), ('mse', [2.0, 20.0])])
def test_the_error_of_a_constant_is_that_of_the_best_in_training(
    monkeypatch: pytest.MonkeyPatch, metric: str, constant: list[float]
) -> None:
    nan = float('nan')
    train = [[1.0, nan], [1.0, 10.0], [2.0, 30.0], [4.0, 20.0], [nan, nan]]
    test = [[3.0, 20.0], [nan, 23.0]]
    datasets = [[Data(y=torch.tensor([y])) for y in labels] for labels in (train, train[:1], test)]
    monkeypatch.setitem(_graphs.__globals__, 'create_loaders', lambda: [SimpleNamespace(dataset=each) for each in datasets])
    load_config('graph-properties', ['metric_best', metric])
    errors = [np.abs(np.array([3.0]) - constant[0]), np.abs(np.array([20.0, 23.0]) - constant[1])]
    expected = np.mean([np.mean(error if metric == 'mae' else error**2) for error in errors])
    assert _graphs()[1] == Chance(error=pytest.approx(expected))


def test_a_constant_for_whole_numbers_and_graphs_without_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = [[1, 2, 4], []], [[], [3, 5]]
    datasets = [[Data(y=torch.tensor(y).long()) for y in labels] for labels in (train, test)]
    monkeypatch.setitem(_graphs.__globals__, 'create_loaders', lambda: [SimpleNamespace(dataset=each) for each in datasets])
    load_config('graph-properties', ['metric_best', 'mae'])
    assert _graphs()[1] == Chance(error=2.0)


def test_labels_that_are_missing_are_no_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    y = torch.tensor([1.0, float('nan'), 0.0, float('nan'), 1.0, float('nan')])
    graphs = [Data(y=y, edge_index=torch.tensor([[0], [1]]), num_nodes=6)]
    assert profile(graphs, classes=True).majority == pytest.approx(2 / 3)
    monkeypatch.setitem(_graphs.__globals__, 'create_loaders', lambda: [SimpleNamespace(dataset=graphs)] * 3)
    for task in ('classification', 'classification_binary'):
        load_config('lookup-trees', ['dataset.task_type', task])
        assert _graphs()[1] == Chance([1, 2])


def test_no_seed_begins_after_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials.Trials, '_chosen_epochs', lambda self: self.planned)
    trained = _pretend(monkeypatch)
    report = advise('lookup-trees', SMALL, seeds=3, minutes=20)
    # No model stops before the end of two epochs. The first seed takes 8 * 50 = 400 s, and each other 5 * 50 = 250 s, of which
    # 200 s are epochs.
    assert report['seeds'] == [0, 1, 2]
    assert len(trained) == 8 + 5 + 5
    report = advise('lookup-trees', SMALL, seeds=3, minutes=12, out='short')
    assert report['seeds'] == [0, 1]
    assert any('The time was over after 2 of 3 seeds' in note for note in report['notes'])
    assert any(note.endswith('With 2 seeds, 30 % of equal models differ by two standard errors.') for note in report['notes'])
    again = advise('lookup-trees', SMALL, seeds=3, minutes=12, out='short', resume=True)
    assert again['seeds'] == [0, 1, 2]


def test_a_gain_while_the_others_still_learn_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    def accuracy(run: Path, epoch: int) -> float:
        masked = not run.parent.name.endswith(('-None', '-layers', '-Linear', '-Transformer'))
        return 0.97 + 0.001 * int(run.name) if masked else 0.15 * epoch

    _pretend(monkeypatch, accuracy)
    verdict = advise('lookup-trees', [*SMALL, 'optim.max_epoch', '6'], seeds=3, minutes=60)['verdict']
    # Without a mask, 0.15 * 5 = 0.75 in the end, and 0.15 * 3 after four of six epochs.
    assert verdict['word'] == 'undecided'
    assert 'has +0.221 ± 0.001 accuracy' in verdict['sentence']
    assert verdict['sentence'].endswith('it would gain 0.300 at the rate of its last epochs. Train longer.')
    verdict = advise('lookup-trees', [*SMALL, 'optim.max_epoch', '12'], seeds=2, minutes=30, out='short')['verdict']
    # Time leaves 5 of 12 epochs, as above. The last third is one epoch, and seven more would follow.
    assert verdict['sentence'].endswith('it would gain 1.200 at the rate of its last epochs. Train longer.')


def test_a_mask_that_fails_is_a_row(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _pretend(monkeypatch)
    original = trials.train_seed

    def fail(run: Path, *rest: Any) -> Any:
        if 'Tree' in str(run):
            raise FloatingPointError('the training loss became nan')
        return original(run, *rest)

    monkeypatch.setattr(trials, 'train_seed', fail)
    report = advise('lookup-trees', SMALL, seeds=1)
    (tree,) = (model for model in report['models'] if 'Tree' in model['model'])
    assert (tree['test'], tree['failure']) == ([], 'the training loss became nan')
    assert 'failed: the training loss became nan' in capsys.readouterr().out


def test_a_file_of_ones_own(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    _pretend(monkeypatch, trained='SAGE-None')
    names = [f'n{index}' for index in range(30)]
    Path('all roads.csv').write_text('source,target\n' + ''.join(f'{a},{b}\n' for a, b in pairwise(names)))
    Path('towns.csv').write_text('id,kind,height\n' + ''.join(f'{name},{"ab"[i // 15]},{i}\n' for i, name in enumerate(names)))
    arguments = ['--data', 'all roads.csv', '--nodes', 'towns.csv', '--label', 'kind', '--seeds', '1', '--out', 'here']
    assert main(['advise', *arguments, 'optim.max_epoch', '2', 'topomask.progress', 'False']) == 0
    assert 'One graph of 30 nodes, 1.9 edges a node: undirected trees' in capsys.readouterr().out
    report = json.loads(Path('here/advise-all roads/advise.json').read_text())
    assert report['verdict']['word'] == 'undecided'
    assert main([*shlex.split(report['command'])[1:], 'topomask.progress', 'False', 'optim.max_epoch', '1']) == 0


@pytest.mark.parametrize('kind', ['regression', 'several labels', 'labels of nodes'])
def test_other_labels(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    labels = {
        'regression': lambda i: torch.tensor([i / 7]),
        'several labels': lambda i: torch.tensor([[i % 2, float(i % 3 > 0)]]),
        'labels of nodes': lambda i: torch.tensor([0, i % 2, 1]),
    }[kind]
    edges = {'edge_attr': torch.ones(4, 2)} if kind == 'regression' else {}
    torch.save([Data(edge_index=path, num_nodes=3, y=labels(i), **edges) for i in range(40)], 'mine.pt')
    metric = {'regression': 'mae', 'several labels': 'average_precision'}.get(kind, 'accuracy')
    local = 'GINE+None' if kind == 'regression' else 'SAGE+None'
    _pretend(monkeypatch, metric=metric, trained=_folder(local))
    report = advise(None, ['optim.max_epoch', '1', 'topomask.progress', 'False'], data='mine.pt', seeds=1)
    assert (report['metric'], report['maximize']) == (metric, kind != 'regression')
    assert report['models'][0]['model'] == local
    assert report['models'][0]['test'] != [0.5]  # it is trained


@pytest.mark.parametrize('labels', [[0], [0.5]])
def test_labels_of_graphs_of_which_the_first_has_one_node(labels: list[float]) -> None:
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graphs = [Data(edge_index=path, num_nodes=3, y=torch.tensor(labels) + i % 2) for i in range(20)]
    graphs[0] = Data(edge_index=path[:, :0], num_nodes=1, y=torch.tensor(labels))
    torch.save(graphs, 'mine.pt')
    assert own_config('mine.pt', Path('stored'), {})['gnn']['head'] == 'graph'


def test_whole_numbers_of_graphml_as_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    _pretend(monkeypatch, metric='mae', trained='SAGE-None')
    graph = networkx.path_graph(30)
    networkx.set_node_attributes(graph, {node: node % 7 for node in graph}, 'age')
    networkx.write_graphml(graph, 'mine.graphml')
    arguments = ['--data', 'mine.graphml', '--label', 'age', '--regression', '--seeds', '1']
    assert main(['advise', *arguments, 'optim.max_epoch', '1', 'topomask.progress', 'False']) == 0
    report = json.loads(Path('results/advise-mine/advise.json').read_text())
    assert (report['metric'], report['maximize'], report['profile']['majority']) == ('mae', False, None)


class Finalized:
    """What interrupts its own end, in a circle that only a garbage collection finds."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_during_a_garbage_collection_is_not_lost() -> None:
    Finalized()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run where it is ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            trials._collect()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_collect_garbage_without_signals() -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(trials._collect).result()


@pytest.mark.filterwarnings('ignore:y. got')
def test_a_metric_that_is_not_defined(capsys: pytest.CaptureFixture[str]) -> None:
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    torch.save([Data(edge_index=path, num_nodes=3, y=torch.tensor([[i == 0, i == 1]]).float()) for i in range(20)], 'mine.pt')
    assert main(['advise', '--data', 'mine.pt', 'optim.max_epoch', '1', 'topomask.progress', 'False']) == 2
    assert 'y: got 2 of 2 tasks without a positive or without a negative label in the val split' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['--cfg', 'digits', '--data', 'a.pt'], 'data: got a.pt beside cfg digits'),
        (['--nodes', 'a.csv'], 'nodes: got a.csv; accepted: this only beside data'),
        (['--data', 'a.pt'], "a.pt', which is no file"),
        (['--seeds', '0'], 'seeds: got 0'),
        (['--minutes', '0'], 'minutes: got 0'),
        (['--cfg', 'recommend/lastfm'], 'a configuration of recommendation'),
        (['--cfg', 'models/GKAT'], "model.type: got 'GKAT'"),
        (['seed', str(2**32 - 2)], 'seed: got 4294967294'),
        (['optim.max_epoch'], "options: got 'optim.max_epoch', 1 word"),
    ],
)
def test_bad_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['advise', *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(Path().rglob('*.json'))


def test_a_configuration_of_graphgps_trains_with_our_model(monkeypatch: pytest.MonkeyPatch) -> None:
    _pretend(monkeypatch, trained='SAGE-None')
    config = yaml.safe_load(Path(trials.__file__).parents[3].joinpath('graphgps_configs/lookup-trees.yaml').read_text())
    config['model']['type'], config['gnn']['act'] = 'GPSModel', 'gelu'
    Path('gps.yaml').write_text(yaml.safe_dump(config))
    assert advise('gps.yaml', SMALL, seeds=1)['models'][0]['test'] != [0.5]


def test_trainings_are_never_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    _pretend(monkeypatch, trained='SAGE-None')
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    options = ['optim.max_epoch', '1', 'topomask.progress', 'False']
    for last in (2, 1):
        graphs = [Data(edge_index=path, num_nodes=3, y=torch.tensor([i % 2])) for i in range(20)]
        graphs[0].x = torch.ones(3, last)
        for graph in graphs[1:]:
            graph.x = torch.zeros(3, last)
        torch.save(graphs, 'mine.pt')
        if last == 2:
            advise(None, options, data='mine.pt', seeds=1)
            with pytest.raises(ValueError, match='max_epoch was 1 and is 2'):
                advise(None, ['optim.max_epoch', '2', *options[2:]], data='mine.pt', seeds=1, resume=True)
    with pytest.raises(ValueError, match=r'topomask\.dataset\.digest was'):
        advise(None, options, data='mine.pt', seeds=1, resume=True)
    with locked(Path('results/advise-mine')), pytest.raises(ValueError, match='where another process trains'):
        advise(None, options, data='mine.pt', seeds=1)
