"""Options that nothing reads are warned of when data is loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from disk_graphs import Graphs
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg

from pyg_topomask.graphgym.data.datasets import load_dataset


@pytest.fixture(autouse=True)
def settings(configure: Callable[..., None]) -> None:
    configure()


def test_unused_options_are_warned_of(
    tmp_path: Path, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setitem(register.loader_dict, 'graphs', lambda *args: Graphs(tmp_path))
    configure('gt.layer_type GINE+GRF topomask.GRF.num_walks 7')
    load_dataset('any', 'name', '.')
    configure('gt.layer_type GINE+Linear topomask.GRF.num_walks 7')
    load_dataset('any', 'name', '.')  # a YAML that stores walks, for the attention GRF
    assert not recwarn.list
    cfg.topomask.transforms = []
    with pytest.warns(UserWarning, match=r"topomask.GRF: got num_walks, which nothing reads with gt.layer_type 'GINE\+Linear'"):
        load_dataset('any', 'name', '.')


@pytest.mark.parametrize(
    'options',
    [
        'gt.layer_type GINE+AsymmetricGRF',  # walks by its own options
        'gt.layer_type GINE+Masked topomask.Masked.mask {GRF:{"num_walks":9}}',
        'model.type gnn gt.layer_type GINE+GRF gnn.layer_type asymmetricgrf_attention',
        'model.type gnn gt.layer_type GINE+GRF gnn.layer_type gcnconv topomask.transforms []',
        'gt.layer_type GINE+Linear gnn.layer_type grf_attention topomask.transforms []',
    ],
)
def test_options_of_an_attention_that_is_not_built_are_warned_of(
    tmp_path: Path, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    monkeypatch.setitem(register.loader_dict, 'graphs', lambda *args: Graphs(tmp_path))
    configure(f'{options} topomask.GRF.num_walks 7')
    with pytest.warns(UserWarning, match=r'topomask.GRF: got num_walks, which nothing reads with (gt|gnn).layer_type'):
        load_dataset('any', 'name', '.')


@pytest.mark.parametrize(
    ('option', 'value', 'users', 'message'),
    [
        (
            'topomask.mask.GRF',
            {},
            ['gt.layer_type GINE+Masked', 'model.type gnn gnn.layer_type masked_attention'],
            'topomask.mask: got GRF,',
        ),
        ('topomask.Masked.mask', 'GRF', ['gt.layer_type GINE+Masked'], 'topomask.Masked: got mask,'),
        (
            'topomask.svd.rank',
            1,
            ['dataset.node_encoder_name LinearNode+SVDSE', "topomask.transforms ['AddSVDEncoding']"],
            "topomask.svd: got rank, which nothing reads with dataset.node_encoder_name 'LinearNode'",
        ),
        ('gt.sparse.k', 3, ['gt.layer_type GINE+SparseAttention'], 'gt.sparse: got k, .* with gt.layer_type'),
    ],
)
def test_other_unused_options_are_warned_of(
    tmp_path: Path,
    configure: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    recwarn: pytest.WarningsRecorder,
    option: str,
    value: object,
    users: list[str],
    message: str,
) -> None:
    monkeypatch.setitem(register.loader_dict, 'graphs', lambda *args: Graphs(tmp_path))

    def load(options: str) -> None:
        configure(options)
        *path, name = option.split('.')
        group = cfg
        for part in path:
            group = group[part]
        group[name] = value
        load_dataset('any', 'name', '.')

    for user in users:
        load(user)
    assert not recwarn.list
    with pytest.warns(UserWarning, match=message):
        load('gt.layer_type GINE+Linear')


def test_models_without_our_attentions(tmp_path: Path, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(register.loader_dict, 'graphs', lambda *args: Graphs(tmp_path))
    configure('model.type custom_gnn gt.layer_type GINE+GRF topomask.GRF.num_walks 7 topomask.transforms []')
    with pytest.warns(UserWarning, match=r"^topomask.GRF: got num_walks, which nothing reads with model.type 'custom_gnn'$"):
        load_dataset('any', 'name', '.')


def test_redrawing_outside_of_our_runner(
    tmp_path: Path, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(register.loader_dict, 'graphs', lambda *args: Graphs(tmp_path))
    configure('topomask.redraw_period 2')
    with pytest.warns(UserWarning, match=r'^topomask.redraw_period: got 2, which only python -m pyg_topomask train reads$'):
        load_dataset('any', 'name', '.')
