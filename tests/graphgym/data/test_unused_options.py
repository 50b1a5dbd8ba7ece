"""Options that nothing reads are warned of when data is loaded, and walks that nothing reads are not stored."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from disk_graphs import Graphs
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.transforms import BaseTransform

from pyg_topomask.graphgym.data import datasets
from pyg_topomask.graphgym.data.datasets import load_dataset
from pyg_topomask.graphgym.names.masks import MASKS
from pyg_topomask.transforms import AddGraphRandomFeatures

Run = Callable[[str], None]


@pytest.fixture
def run(tmp_path: Path, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Loads data as a process does whose command line gives these options."""
    monkeypatch.setitem(register.loader_dict, 'graphs', lambda *args: Graphs(tmp_path))

    def load(options: str) -> None:
        monkeypatch.setattr(sys, 'argv', ['main.py', *options.split()])
        configure(options)
        load_dataset('any', 'name', '.')

    return load


@pytest.mark.parametrize(
    'options',
    [
        'gt.layer_type GINE+AsymmetricGRF',  # walks by its own options
        'gt.layer_type GINE+Linear',
        'gt.layer_type GINE+Masked topomask.Masked.mask {GRF:{"num_walks":9}}',
        'model.type gnn gt.layer_type GINE+GRF gnn.layer_type asymmetricgrf_attention',
        'model.type gnn gt.layer_type GINE+GRF gnn.layer_type gcnconv topomask.transforms []',
        'gt.layer_type GINE+Linear gnn.layer_type grf_attention topomask.transforms []',
    ],
)
def test_options_of_another_attention_on_the_command_line_are_warned_of(
    run: Run, recwarn: pytest.WarningsRecorder, options: str
) -> None:
    run(options)
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r'^topomask.GRF.num_walks: got an option that nothing reads with (gt|gnn)\.'):
        run(f'{options} topomask.GRF.num_walks 7')


@pytest.mark.parametrize(
    ('option', 'user'),
    [
        ('topomask.GRF.num_walks 7', 'gt.layer_type GINE+GRF'),
        ('topomask.GRF.num_walks 7', 'model.type gnn gnn.layer_type grf_attention'),
        ('topomask.mask GRF', 'gt.layer_type GINE+Masked'),
        ('topomask.mask GRF', 'model.type gnn gnn.layer_type masked_attention'),
        ('topomask.Masked.mask GRF', 'gt.layer_type GINE+Masked'),
        ('gt.sparse.k 3', 'gt.layer_type GINE+SparseAttention'),
    ],
)
def test_options_of_the_attention_are_read(run: Run, recwarn: pytest.WarningsRecorder, option: str, user: str) -> None:
    run(f'{user} {option}')
    assert not recwarn.list
    with pytest.warns(UserWarning, match=f'^{option.split()[0]}: got an option that nothing reads'):
        run(f'gt.layer_type GINE+Linear {option}')


def test_options_of_another_attention_wait_in_a_yaml(run: Run, recwarn: pytest.WarningsRecorder) -> None:
    run('gt.layer_type GINE+Linear')  # the file has a mask, and options of GRF
    assert cfg.topomask.mask
    assert not recwarn.list


def test_encodings_that_nothing_reads(run: Run, recwarn: pytest.WarningsRecorder) -> None:
    run('dataset.node_encoder_name LinearNode+SVDSE topomask.svd.rank 1')
    run("topomask.svd.rank 1 topomask.transforms ['AddSVDEncoding']")
    assert not recwarn.list
    with pytest.warns(
        UserWarning, match="topomask.svd: got rank, which nothing reads with dataset.node_encoder_name 'LinearNode'"
    ):
        run('topomask.svd.rank 1')


@pytest.mark.parametrize('name', ['LapPE', 'RWSE'])
def test_positional_encodings_that_nothing_reads(run: Run, recwarn: pytest.WarningsRecorder, name: str) -> None:
    options = f'posenc_{name}.enable True posenc_RWSE.kernel.times [1,2]'.split()[: 4 if name == 'RWSE' else 2]
    run(' '.join(['dataset.node_encoder_name', f'LinearNode+{name}', *options]))
    assert not recwarn.list
    with pytest.warns(
        UserWarning, match=f"^posenc_{name}: got enable.*, which nothing reads with dataset.node_encoder_name 'L"
    ):
        run(' '.join(options))


@pytest.mark.parametrize(
    ('options', 'stored'),
    [
        ('gt.layer_type GINE+GRF', True),
        ('gt.layer_type GINE+RWGNK', True),
        ('gt.layer_type GINE+HeatKernel', False),
        ('gt.layer_type GINE+None', False),
        ('gt.layer_type GINE+Masked', True),  # the mask in the file walks
        ('gt.layer_type GINE+Masked topomask.mask SinDegree', False),
        ('gt.layer_type GINE+Masked topomask.mask {sum:[{"scale":[2.0,"RWGNK"]},"SinDegree"]}', True),
        ('gt.layer_type GINE+Mine', True),  # of a user's own it is not known
        ('model.type gnn gnn.layer_type gcnconv', True),
    ],
)
def test_walks_are_stored_for_attentions_that_read_them(
    run: Run, monkeypatch: pytest.MonkeyPatch, options: str, stored: bool
) -> None:
    monkeypatch.setitem(MASKS, 'Mine', MASKS['SinDegree'])
    applied: list[BaseTransform] = []
    monkeypatch.setattr(datasets, 'apply_in_memory', lambda dataset, transform: applied.extend(transform.transforms))
    run(options)
    assert [isinstance(transform, AddGraphRandomFeatures) for transform in applied] == [True] * stored


def test_redrawing_outside_of_our_runner(
    tmp_path: Path, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(register.loader_dict, 'graphs', lambda *args: Graphs(tmp_path))
    configure('topomask.redraw_period 2')
    with pytest.warns(UserWarning, match=r'^topomask.redraw_period: got 2, which only pyg-topomask train reads$'):
        load_dataset('any', 'name', '.')
