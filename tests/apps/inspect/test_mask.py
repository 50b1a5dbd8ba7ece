from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from csv_tables import rows_of
from graphs import ring
from grids import at_night
from oracles import power_series, weight_matrix
from torch.nn import Identity
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg

from pyg_topomask.__main__ import main
from pyg_topomask.apps.datasets import DATASETS
from pyg_topomask.apps.inspect.mask_report import inspect
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.transforms import AddGraphRandomFeatures

pytestmark = pytest.mark.usefixtures('few_digits')

QUIET = ['topomask.progress', 'False']


def first_digit(root: Path) -> Data:
    data = DATASETS['digits'](root=root)[0]
    return Data(edge_index=data.edge_index, num_nodes=data.num_nodes)


def test_table_and_picture(tmp_path: Path, digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ['topomask.GRF.num_walks', '8', 'topomask.GRF.p_halt', '0.3', 'topomask.GRF.max_walk_length', '3']
    arguments = ['inspect', '--cfg', str(digits), '--graphs', '2', '--out', str(tmp_path), *options, *QUIET]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    folder = tmp_path / digits.stem
    rows = rows_of(folder / 'inspect.csv')
    assert [row['graph'] for row in rows] == ['0', '1']
    row = {key: float(value) for key, value in rows[0].items()}

    data = first_digit(tmp_path)
    mask = GRFMask(num_walks=8, p_halt=0.3, max_walk_length=3)
    series = power_series(weight_matrix(data, 'sym'), 0.5 ** np.arange(4))
    exact, estimate = series @ series.T, mask(data).to_dense()[0].detach().double().numpy()
    off = ~np.eye(64, dtype=bool)
    expected = {
        'nodes': 64,
        'edges': data.num_edges,
        'walks': 8,
        'error': np.linalg.norm(estimate - exact) / np.linalg.norm(exact),
        'error, off the diagonal': np.linalg.norm((estimate - exact)[off]) / np.linalg.norm(exact[off]),
        'largest entry': exact.max(),
        'largest deviation': np.abs(estimate - exact).max(),
        'diagonal bias': np.trace(estimate - exact) / np.trace(exact),
        'mask entries per row': (estimate != 0).sum(1).mean(),
    }
    for key, value in expected.items():
        assert row[key] == pytest.approx(value, rel=1e-4), key
    assert 1 < row['features per row'] <= row['most'] <= row['bound'] == 1 + 8 * 3
    assert row['sampling, s'] > 0

    table = (folder / 'inspect.md').read_text()
    assert '| graph |' in printed
    assert printed.splitlines()[0].count('|') == 1 + 8
    assert all(line in table for line in printed.splitlines()[:4])
    assert 'GINE+GRF' in table.splitlines()[0]
    assert (folder / 'inspect.png').stat().st_size > 0


def test_page_with_the_mask_and_those_of_other_words(tmp_path: Path, digits: Path) -> None:
    arguments = [
        'inspect',
        '--cfg',
        str(digits),
        '--graphs',
        '1',
        '--out',
        str(tmp_path),
        '--html',
        str(tmp_path / 'page.html'),
    ]
    assert main([*arguments, 'gt.n_heads', '2', 'topomask.GRF.modulation', '[[1, 1, 0, 0, 0], [1, 0, 2, 0, 0]]', *QUIET]) == 0
    (content,) = re.findall(r'^const content = (.*);$', (tmp_path / 'page.html').read_text(), re.MULTILINE)
    page = json.loads(content)
    assert page['title'] == f'Mask GRF of {digits.name} on digits, graph 0'
    assert [mask['name'] for mask in page['masks']] == ['GRF', 'PowerSeries', 'Hop', 'HeatKernel', 'Toeplitz', 'Linear']
    assert page['masks'][0]['heads'] == ['1', '2']  # all heads, where the table has the first
    assert page['graph']['nodes'] == len(page['nodes']) == 64


def test_page_in_a_folder_that_does_not_exist(tmp_path: Path, digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (tmp_path / 'no' / 'page.html', tmp_path):
        assert main(['inspect', '--cfg', str(digits), '--out', str(tmp_path / 'out'), '--html', str(path), *QUIET]) == 2
        assert f"html: got '{path}'; accepted: names of files in folders that exist" in capsys.readouterr().err
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize('name', [at_night('AsymmetricGRF'), 'GRFSoftmax'])
def test_every_attention_with_walks(name: str, tmp_path: Path, digits: Path) -> None:
    (row,) = inspect(digits, ['gt.layer_type', f'None+{name}', *QUIET], graphs=1, out=tmp_path, num_rows=4)
    assert row['error'] > 0


def test_bound_of_walkers_that_depend_on_each_other(tmp_path: Path, digits: Path) -> None:
    options = ['topomask.GRF.sampler', 'antithetic', 'topomask.GRF.walk_length', 'fixed:4', *QUIET]
    (row,) = inspect(digits, options, graphs=1, out=tmp_path, num_rows=4)
    assert row['bound'] == 1 + 4 * 4


@pytest.mark.parametrize('arguments', [at_night({'num_walks': 2}), {'num_walks': 16, 'seed': 5, 'p_halt': 0.25}])
def test_walks_are_those_that_a_transform_would_store(tmp_path: Path, digits: Path, arguments: dict[str, float]) -> None:
    """Of other transforms the edges count, which come after."""
    transforms = str([{'AddGraphRandomFeatures': arguments}, 'ToUndirected'])
    (row,) = inspect(digits, ['topomask.transforms', transforms, *QUIET], graphs=1, out=tmp_path, num_rows=64)
    assert cfg.topomask.transforms == ['ToUndirected']
    mask, data = GRFMask(num_walks=4, p_halt=0.5, max_walk_length=4), first_digit(tmp_path)
    stored = mask(AddGraphRandomFeatures(**arguments)(data)).to_dense()[0].detach().double().numpy()
    exact = exact_mask(mask, data)
    assert row['walks'] == arguments['num_walks']
    assert row['largest entry'] == pytest.approx(float(exact.max()), rel=1e-4)
    assert row['error'] == pytest.approx(np.linalg.norm(stored - exact) / np.linalg.norm(exact), rel=1e-4)


def test_walks_that_are_drawn_anew_are_those_of_the_attention(tmp_path: Path, digits: Path) -> None:
    transforms = str([{'AddGraphRandomFeatures': {'num_walks': 2}}])
    options = ['topomask.transforms', transforms, 'topomask.GRF.resample', 'forward', *QUIET]
    (row,) = inspect(digits, options, graphs=1, out=tmp_path, num_rows=64)
    assert row['walks'] == 4
    mask, data = GRFMask(resample='forward').eval(), first_digit(tmp_path)  # with its own seed
    exact = exact_mask(mask, data)
    deviation = mask(data).to_dense()[0].detach().double().numpy() - exact
    assert row['error'] == pytest.approx(np.linalg.norm(deviation) / np.linalg.norm(exact), rel=1e-4)


def test_stored_walks_that_do_not_fit_are_refused_as_in_training(tmp_path: Path, digits: Path) -> None:
    transforms = str([{'AddGraphRandomFeatures': {'max_walk_length': 2}}])
    with pytest.raises(ValueError, match='max_walk_length: got 4, but the stored walks end after 2 hops'):
        inspect(digits, ['topomask.transforms', transforms, *QUIET], graphs=1, out=tmp_path)


@pytest.mark.parametrize('asymmetric', ['False', 'pairs'])
def test_of_heads_with_modulations_of_their_own_the_first_is_measured(tmp_path: Path, digits: Path, asymmetric: str) -> None:
    heads = [[1.0, 0.25, 0.0, 0.0, 0.0], [5.0, 5.0, 5.0, 5.0, 5.0]]
    options = ['gt.n_heads', '2', 'topomask.transforms', '[]', 'topomask.GRF.asymmetric', asymmetric, *QUIET]
    (row,) = inspect(digits, ['topomask.GRF.modulation', str(heads), *options], graphs=1, out=tmp_path, num_rows=64)
    series = power_series(weight_matrix(first_digit(tmp_path), 'sym'), np.array(heads[0]))
    assert row['largest entry'] == pytest.approx(float((series @ series.T).max()), rel=1e-4)
    assert 'head 0 of the untrained attention' in (tmp_path / digits.stem / 'inspect.md').read_text()


def test_attention_of_the_plain_network(tmp_path: Path, digits: Path) -> None:
    plain = ['model.type', 'gnn', 'gnn.att_heads', '2', 'gnn.dim_inner', '8', 'gt.n_heads', '5', *QUIET]
    options = ['gnn.layer_type', 'powerseries_attention', 'topomask.PowerSeries.coefficients', '[1, -0.5, 0.2, 0, 0]']
    (row,) = inspect(digits, [*plain, *options], graphs=1, out=tmp_path)
    assert row['2 hops'] > 0
    series = power_series(weight_matrix(first_digit(tmp_path), 'sym'), np.array([1, -0.5, 0.2]))
    assert row['smallest entry'] == pytest.approx(float(series.min()), rel=1e-4)
    assert 'powerseries_attention on digits' in (tmp_path / digits.stem / 'inspect.md').read_text()
    with pytest.raises(ValueError, match=r"^gnn.layer_type: got 'gcnconv', whose attention is None; accepted: attentions"):
        inspect(digits, [*plain, 'gnn.layer_type', 'gcnconv'], graphs=1, out=tmp_path)


def exact_mask(mask: GRFMask, data: Data) -> np.ndarray:
    series = power_series(weight_matrix(data, 'sym'), mask.f[0].detach().double().numpy())
    return series @ series.T


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ('gt.layer_type GINE+KMIP', 'whose attention is KMIP; accepted: attentions that have a mask'),
        ('gt.layer_type GINE+None', 'whose attention is None; accepted: attentions that have a mask'),
        ('gt.layer_type GINE+GRX', "'GRX'; accepted: Adjacency, AsymmetricGRF, "),
        ('topomask.GRF.importance False', 'importance'),
        ('topomask.GRF.num_walks 0', 'num_walks'),
        ('gt.layer_type GINE+RWGNK topomask.RWGNK.dynamic True', 'topomask.RWGNK.dynamic: got True for inspect'),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, digits: Path, capsys: pytest.CaptureFixture[str], options: str, message: str
) -> None:
    assert main(['inspect', '--cfg', str(digits), '--out', str(tmp_path), *options.split(), *QUIET]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith('error: ')
    assert message in captured.err
    assert captured.err.count('\n') == 1


def test_number_of_graphs(tmp_path: Path, digits: Path) -> None:
    with pytest.raises(ValueError, match=r'^graphs: got 0; accepted: whole numbers from 1'):
        inspect(digits, QUIET, graphs=0, out=tmp_path)


def test_without_matplotlib_there_is_a_table(
    tmp_path: Path, digits: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'matplotlib.figure', None)
    inspect(digits, QUIET, graphs=1, out=tmp_path, num_rows=4)
    assert 'pyg_topomask with its extra [viz]' in capsys.readouterr().err
    assert (tmp_path / digits.stem / 'inspect.md').exists()
    assert not (tmp_path / digits.stem / 'inspect.png').exists()


def test_files_stand_beside_the_runs_and_are_whole(tmp_path: Path, digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ['name_tag', 'tagged', *QUIET]
    inspect(digits, options, graphs=1, out=tmp_path, num_rows=4)
    assert [path.name for path in tmp_path.iterdir()] == [f'{digits.stem}-tagged']
    before = {path.name: path.read_bytes() for path in (tmp_path / f'{digits.stem}-tagged').iterdir()}
    assert sorted(before) == ['inspect.csv', 'inspect.md', 'inspect.png']

    def fail(*args: object) -> None:
        raise OSError('the disk is full')

    monkeypatch.setattr('pyg_topomask.utils.files.os.replace', fail)
    with pytest.raises(OSError, match='the disk is full'):
        inspect(digits, [*options, 'topomask.GRF.num_walks', '2'], graphs=1, out=tmp_path, num_rows=4)
    assert {path.name: path.read_bytes() for path in (tmp_path / f'{digits.stem}-tagged').iterdir()} == before


def test_interrupt(tmp_path: Path, digits: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr('pyg_topomask.apps.inspect.mask_report.inspect', interrupt)
    assert main(['inspect', '--cfg', str(digits)]) == 130
    assert capsys.readouterr().err == '\ninterrupted\n'


@pytest.mark.parametrize(
    'name', ['PowerSeries', 'Linear', *map(at_night, ('HeatKernel', 'RWGNK', 'SinDegree', 'Adjacency')), 'Expander']
)
def test_other_masks(name: str, tmp_path: Path, digits: Path) -> None:
    first, second = inspect(digits, ['gt.layer_type', f'GINE+{name}', *QUIET], graphs=2, out=tmp_path)
    assert first['nodes'] == 64
    hops = ['0 hops', '1 hop', '2 hops', '3 hops', '4 hops', 'over 4 hops']
    assert sum(first[key] for key in hops) == pytest.approx(1, abs=1e-5)
    assert first['smallest entry'] < first['largest entry'] or name == 'Linear'
    reach = {'Adjacency': 1, 'PowerSeries': 4}.get(name, 5)
    assert all(first[key] > 0 for key in hops[: reach + 1] if name != 'Expander')
    assert not any(first[key] for key in hops[reach + 1 :])
    del first['graph'], second['graph'], first['preparing, s'], second['preparing, s']
    assert first == second  # equal graphs
    folder = tmp_path / digits.stem
    text = (folder / 'inspect.md').read_text()
    assert 'The mask of' in text
    assert re.findall('^.*graph.*over 4 hops.*$', text, re.MULTILINE)[0].count('|') == 1 + 8
    assert 'stretch' not in text
    assert (folder / 'inspect.png').stat().st_size > 0


def test_structure_that_a_mask_needs_is_made_by_transforms(tmp_path: Path, digits: Path) -> None:
    with pytest.raises(ValueError, match='AddGridShape'):
        inspect(digits, ['gt.layer_type', 'GINE+Toeplitz', 'topomask.transforms', '[]', *QUIET], graphs=1, out=tmp_path)
    options = ['gt.layer_type', 'GINE+Toeplitz', 'topomask.transforms', "[{'AddGridShape': {'shape': [8, 8]}}]", *QUIET]
    (row,) = inspect(digits, options, graphs=1, out=tmp_path)
    assert row['entries per row'] == 64


def test_stretch_of_spanning_forests(tmp_path: Path, digits: Path) -> None:
    transforms = "[{'AddSpanningForest': {'method': 'minimum', 'num_trees': 2}}]"
    options = ['gt.layer_type', 'GINE+Tree', 'topomask.transforms', transforms, *QUIET]
    (row,) = inspect(digits, options, graphs=1, out=tmp_path)
    # Of 112 edges of the grid, 63 are in a tree, and each other closes a cycle of at least 4.
    assert row['mean stretch'] >= (63 + 49 * 3) / 112
    assert row['largest stretch'] > max(3, row['mean stretch'])
    assert row['entries per row'] == 64
    assert '"stretch" is' in (tmp_path / digits.stem / 'inspect.md').read_text()


class Graphs(list[Data]):
    """A data set of graphs, with nothing stored beside it."""

    _data = Data()


def test_weights_of_the_edges_count(tmp_path: Path, digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weight = torch.tensor([4.0, 4.0, 1.0, 1.0])
    data = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), edge_weight=weight, num_nodes=3)
    monkeypatch.setattr('pyg_topomask.apps.inspect.mask_report.load_dataset', lambda *arguments: Graphs([data]))
    (row,) = inspect(digits, QUIET, graphs=3, out=tmp_path)
    mask = GRFMask(num_walks=4, p_halt=0.5, max_walk_length=4)
    series = power_series(weight_matrix(data, 'sym'), 0.5 ** np.arange(5))
    exact, estimate = series @ series.T, mask(data).to_dense()[0].detach().numpy()
    assert row['error'] == pytest.approx(np.linalg.norm(estimate - exact) / np.linalg.norm(exact), rel=1e-4)


@pytest.mark.parametrize('word', ['GRF', 'Hop'])
def test_the_first_of_the_largest_graphs_is_drawn(
    word: str, tmp_path: Path, digits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = Graphs(Data(edge_index=ring(size), num_nodes=size) for size in (0, 3, 5, 5, 9))
    drawn: list[Graph] = []

    def draw(mask: object, graph: Graph, **options: object) -> None:
        drawn.append(graph)
        raise ImportError('no figure is needed')

    monkeypatch.setattr('pyg_topomask.apps.inspect.mask_report.load_dataset', lambda *arguments: graphs)
    monkeypatch.setattr(f'pyg_topomask.apps.inspect.mask_report.plot_{"inspection" if word == "GRF" else "mask"}', draw)
    page = tmp_path / 'page.html'
    options = ['gt.layer_type', f'GINE+{word}', 'topomask.transforms', '[]', *QUIET]
    inspect(digits, options, graphs=4, out=tmp_path, html=page)
    assert [graph.num_nodes for graph in drawn] == [5]
    assert f'Mask {word} of {digits.name} on digits, graph 2' in page.read_text()


def test_data_that_a_mask_refuses(tmp_path: Path, digits: Path) -> None:
    with pytest.raises(ValueError, match=r'cycle .*; AddSpanningForest'):
        inspect(digits, ['gt.layer_type', 'GINE+Tree', 'topomask.transforms', '[]', *QUIET], graphs=1, out=tmp_path)


def test_models_without_layers_of_a_yaml_are_refused(tmp_path: Path) -> None:
    config = Path(__file__).parents[3] / 'graphgps_configs' / 'models' / 'TopologicalViT.yaml'
    with pytest.raises(ValueError, match=r"^model.type: got 'TopologicalViT' for inspect; accepted: TopoGPSModel and gnn"):
        inspect(config, QUIET, out=tmp_path)


def test_networks_of_users_are_refused(digits: Path, tmp_path: Path) -> None:
    with (
        mock.patch.dict(register.network_dict, {'mine': Identity}),
        pytest.raises(ValueError, match=r"^model.type: got 'mine' for inspect; accepted: TopoGPSModel and gnn"),
    ):
        inspect(digits, ['model.type', 'mine', *QUIET], out=tmp_path)


@pytest.mark.parametrize(('word', 'hint'), [('KMIP', True), ('Transformer', False), ('None', False)])
def test_the_other_command_is_named_only_if_it_works(word: str, hint: bool, digits: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f'whose attention is {word}') as error:
        inspect(digits, ['gt.layer_type', f'GINE+{word}', *QUIET], out=tmp_path)
    assert ('inspect-attention' in str(error.value)) == hint


def test_folders_that_cannot_be_made_are_refused_before_the_work(digits: Path, tmp_path: Path) -> None:
    (tmp_path / 'file').write_text('')
    with pytest.raises(ValueError, match=r'^out: got \S*, but \S*file is a file'):
        inspect(digits, QUIET, out=tmp_path / 'file')
