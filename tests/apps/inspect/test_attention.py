from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from csv_tables import rows_of
from grids import at_night
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.nn import global_mean_pool

from pyg_topomask.__main__ import main
from pyg_topomask.apps.datasets import DigitsGrid
from pyg_topomask.apps.inspect import attention_report
from pyg_topomask.apps.inspect.attention_report import inspect_attention, record_attention
from pyg_topomask.apps.runs.checkpoint import load_checkpoint, save_checkpoint
from pyg_topomask.graphgym.configuration import load_config
from pyg_topomask.graphgym.names.networks import TopoGPSModel
from pyg_topomask.nn import AsymmetricGRFAttention, GRFSoftmaxAttention, KMIPAttention, TopoGPSConv


def configuration(small: list[str], attention: str) -> list[str]:
    return [*small, 'gt.layers', '2', 'gt.layer_type', f'GINE+{attention}', 'topomask.transforms', '[]']


def saved_model(cfg_file: Path, options: list[str], path: Path) -> TopoGPSModel:
    """A new model, saved as training saves it."""
    load_config(cfg_file, options)
    config = cfg.dump()
    cfg.share.dim_in, cfg.share.dim_edge, cfg.share.dim_out, cfg.share.num_splits = 3, 2, 10, 3
    torch.manual_seed(3)
    model = TopoGPSModel(3, 10).eval()
    path.parent.mkdir(parents=True, exist_ok=True)
    save_checkpoint(path, {'model': model.state_dict(), 'config': config, 'epoch': 1, 'best': None})
    return model


@pytest.mark.parametrize('attention', ['KMIP', at_night('GRFSoftmax')])
def test_tables_and_pictures(
    tmp_path: Path, digits: Path, small: list[str], capsys: pytest.CaptureFixture[str], attention: str
) -> None:
    options = configuration(small, attention) + (['topomask.KMIP.k', '3'] if attention == 'KMIP' else [])
    checkpoint = tmp_path / 'model.pt'
    model = saved_model(digits, options, checkpoint)
    arguments = ['--cfg', str(digits), '--checkpoint', str(checkpoint), '--graphs', '2', '--out', str(tmp_path / 'out')]
    assert main(['inspect', 'attention', *arguments, *options]) == 0
    folder = tmp_path / 'out' / digits.stem / 'attention'
    printed = capsys.readouterr().out
    assert printed.startswith('| layer |')
    assert str(folder) in printed

    data = DigitsGrid(split='test')[1]
    data.batch = torch.zeros(64, dtype=torch.long)
    with torch.no_grad(), record_attention(model) as records:
        model(data.clone())
    names = [f'layers.{layer}.attn' for layer in range(2)]
    assert list(records) == names
    written = rows_of(folder / 'attention-1.csv')
    for layer, name in enumerate(names):
        rows = [row for row in written if row['layer'] == str(layer + 1)]
        assert [[int(row['source']), int(row['target'])] for row in rows] == records[name].edge_index.t().tolist()
        weights = torch.tensor([[float(row['head 1']), float(row['head 2'])] for row in rows])
        torch.testing.assert_close(weights, records[name].alpha, rtol=1e-4, atol=1e-6)

    degrees = rows_of(folder / 'degrees.csv')
    for layer in '12':
        assert sum(int(row['nodes']) for row in degrees if row['layer'] == layer and row['head'] == '1') == 128
        edges = sum(int(row['edges']) for row in degrees if row['layer'] == layer)
        (summary,) = (row for row in rows_of(folder / 'layers.csv') if row['layer'] == layer)
        assert float(summary['keys a node']) == pytest.approx(edges / 256)
        unattended = sum(int(row['nodes']) for row in degrees if (row['layer'], row['out-degree']) == (layer, '0'))
        assert float(summary['nobody attends to']) == pytest.approx(unattended / 256)
        if attention == 'KMIP':
            assert edges == 2 * 2 * 64 * 3
    curves = rows_of(folder / 'cumulative.csv')
    assert {row['k'] for row in curves} == {'1', '2', '5', '10', '20', '50'}
    assert all(float(row['weight']) == pytest.approx(1, abs=1e-5) for row in curves if row['k'] == '50')
    for summary in rows_of(folder / 'layers.csv'):
        first = [float(row['weight']) for row in curves if (row['layer'], row['k']) == (summary['layer'], '1')]
        assert float(summary['weight of the first 1']) == pytest.approx(sum(first) / 4)  # of two graphs and two heads
    pictures = {'attention-0.png', 'attention-1.png', 'degrees.png', 'cumulative.png'}
    if attention == 'KMIP':
        pictures |= {'distance.png', 'cumulative-full.png'}
        full = rows_of(folder / 'full.csv')
        assert len(full) == 2 * 2 * 2 * 6
        assert all(float(row['distance']) > 0 for row in full if row['k'] == '1')
    assert {path.name for path in folder.glob('*.png')} == pictures
    assert all((folder / name).stat().st_size > 0 for name in pictures)
    assert not list(folder.glob('.*'))


def test_full_attention_of_the_recorded_vectors() -> None:
    """The recorded queries and keys are those of the coefficients: here a softmax over all pairs."""
    kmip = pytest.importorskip('pyg_topomask.nn.kmip_attention').KMIPAttention
    attention = kmip(8, heads=2, k=100, kq_dim=3, val_dim=5).eval()
    x, edge_index = torch.randn(6, 8), torch.tensor([[0], [1]])
    with torch.no_grad(), record_attention(attention) as records:
        out = attention(x, edge_index)
    torch.testing.assert_close(out, attention(x, edge_index))
    record = records['']
    q, k, v = record.vectors
    assert v.shape == (6, 2, 5)
    scores = torch.einsum('ihd,jhd->hij', q, k) / 3**0.5
    dense = torch.zeros(2, 6, 6)
    dense[:, record.edge_index[1], record.edge_index[0]] = record.alpha.t()
    torch.testing.assert_close(dense, scores.softmax(-1))


def test_recording_changes_nothing_and_ends() -> None:
    layer = TopoGPSConv(8, None, attn=GRFSoftmaxAttention(8, heads=2, resample='forward'), norm=None).eval()
    x, edge_index = torch.randn(4, 8), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])

    def run() -> torch.Tensor:
        torch.manual_seed(1)
        return layer(x, edge_index)

    expected = run()
    with record_attention(layer) as records:
        recorded = run()
    torch.testing.assert_close(recorded, expected)
    record = records.pop('attn')
    assert record.alpha.shape == (record.edge_index.size(1), 2)
    run()
    assert records == {}
    hooks = [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in layer.modules()]
    assert sum(hooks) == 0
    with pytest.raises(ValueError, match='x: got shape'), record_attention(layer):
        layer(x[:, :3], edge_index)
    assert sum(len(module._forward_hooks) for module in layer.modules()) == 0


def test_queries_keys_and_values_are_recorded_as_the_projections_give_them() -> None:
    layer = AsymmetricGRFAttention(8, heads=2).eval()
    x, edge_index = torch.randn(4, 8), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    with torch.no_grad(), record_attention(layer) as records:
        layer(x, edge_index)
    for vectors, lin in zip(records[''].vectors, (layer.lin_q, layer.lin_k, layer.lin_v), strict=True):
        torch.testing.assert_close(vectors, (x @ lin.weight.t() + lin.bias).detach().view(4, 2, 4))
        assert (vectors < 0).any()


def test_the_best_checkpoint_of_training_is_the_default(tmp_path: Path, digits: Path, small: list[str]) -> None:
    options = configuration(small, 'GRFSoftmax')
    path = tmp_path / digits.stem / '0' / 'checkpoints' / 'best.pt'
    saved_model(digits, options, path)
    assert set(load_checkpoint(path)) >= {'model', 'config'}
    rows = inspect_attention(digits, options, out=tmp_path)
    assert [row['layer'] for row in rows] == [1, 2]
    assert rows[0]['attention'] == 'GRFSoftmaxAttention'
    path.unlink()
    with pytest.raises(ValueError, match=r'^checkpoint: got .*best\.pt.*train'):
        inspect_attention(digits, options, out=tmp_path)


def test_random_splits_are_those_of_the_seed(
    tmp_path: Path, digits: Path, small: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = [*configuration(small, 'GRFSoftmax'), 'seed', '5']
    saved_model(digits, options, tmp_path / 'model.pt')

    def draw() -> list[object]:
        raise LookupError(float(torch.rand(1)))

    monkeypatch.setattr(attention_report, 'create_loaders', draw)
    with pytest.raises(LookupError) as drawn:
        inspect_attention(digits, options, tmp_path / 'model.pt', out=tmp_path)
    assert drawn.value.args == (float(torch.rand(1, generator=torch.Generator().manual_seed(5))),)


@pytest.mark.parametrize('option', [('similarity', 'cosine'), ('edge_attr', 'True')])
def test_only_inner_products_are_compared_with_full_attention(
    tmp_path: Path, digits: Path, small: list[str], option: tuple[str, str]
) -> None:
    options = [*configuration(small, 'KMIP'), 'gt.layers', '1', f'topomask.KMIP.{option[0]}', option[1]]
    saved_model(digits, options, tmp_path / 'model.pt')
    inspect_attention(digits, options, tmp_path / 'model.pt', out=tmp_path)
    assert list(tmp_path.rglob('cumulative.csv'))
    assert not list(tmp_path.rglob('full.csv'))


class OwnNetwork(TopoGPSModel):
    """A network of a user, whose attention no option names."""

    def __init__(self, dim_in: int, dim_out: int) -> None:
        cfg.gt.layer_type = 'GINE+KMIP'
        super().__init__(dim_in, dim_out)


def test_the_attention_of_networks_of_users(tmp_path: Path, digits: Path, small: list[str]) -> None:
    path = tmp_path / 'model.pt'
    saved_model(digits, configuration(small, 'KMIP'), path)
    options = [*configuration(small, 'GRF'), 'model.type', 'mine']
    load_config(digits, options)
    save_checkpoint(path, {**load_checkpoint(path), 'config': cfg.dump()})
    with mock.patch.dict(register.network_dict, {'mine': OwnNetwork}):
        rows = inspect_attention(digits, options, path, out=tmp_path)
    assert [row['attention'] for row in rows] == ['KMIPAttention'] * 2


class Crossed(torch.nn.Module):
    """A network that calls its attentions in another order than it registers them, and one of them not at all."""

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.lin_in, self.lin_out = torch.nn.Linear(dim_in, 8), torch.nn.Linear(8, dim_out)
        self.last, self.unused, self.first = KMIPAttention(8, 4, k=2), KMIPAttention(8), GRFSoftmaxAttention(8, 2)

    def forward(self, batch: Data) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.first(self.lin_in(batch.x), batch.edge_index, batch=batch.batch)
        x = self.last(x, batch.edge_index, batch=batch.batch)
        return self.lin_out(global_mean_pool(x, batch.batch)), batch.y


def test_layers_are_those_that_the_network_calls(tmp_path: Path, digits: Path, small: list[str]) -> None:
    path, options = tmp_path / 'model.pt', [*configuration(small, 'GRF'), 'model.type', 'crossed']
    load_config(digits, options)
    save_checkpoint(path, {'model': Crossed(3, 10).state_dict(), 'config': cfg.dump(), 'epoch': 1, 'best': None})
    with mock.patch.dict(register.network_dict, {'crossed': Crossed}):
        rows = inspect_attention(digits, options, path, out=tmp_path)
    assert [(row['attention'], row['heads']) for row in rows] == [('GRFSoftmaxAttention', 2), ('KMIPAttention', 4)]
    [pairs] = tmp_path.rglob('attention-0.csv')
    assert [[row[f'head {head}'] != '' for head in (1, 4)] for row in (rows_of(pairs)[0], rows_of(pairs)[-1])] == [
        [True, False],
        [True, True],
    ]


def test_attention_without_coefficients_names_those_with(tmp_path: Path, digits: Path, small: list[str]) -> None:
    options = configuration(small, 'Linear')
    saved_model(digits, options, tmp_path / 'model.pt')
    with pytest.raises(ValueError, match=r"^gt.layer_type: got 'GINE\+Linear'.*AsymmetricGRF, GRFSoftmax"):
        inspect_attention(digits, options, tmp_path / 'model.pt', out=tmp_path)


def test_checkpoint_of_another_model(tmp_path: Path, digits: Path, small: list[str], capsys: Any) -> None:
    options = configuration(small, 'GRFSoftmax')
    saved_model(digits, options, tmp_path / 'model.pt')
    deeper = [*options, 'gt.layers', '3']
    arguments = ['--cfg', str(digits), '--checkpoint', str(tmp_path / 'model.pt'), '--out', str(tmp_path)]
    assert main(['inspect-attention', *arguments, *deeper]) == 2
    err = capsys.readouterr().err
    assert err.startswith('error: checkpoint: got ')
    assert 'of another model' in err
    assert 'gt.layers was 2 and is 3' in err
    assert err.count('\n') == 1
    with pytest.raises(ValueError, match=r'^graphs: got 0'):
        inspect_attention(digits, options, tmp_path / 'model.pt', graphs=0)
    (tmp_path / 'text.pt').write_text('nothing')
    with pytest.raises(ValueError, match='is no checkpoint'):
        inspect_attention(digits, options, tmp_path / 'text.pt', out=tmp_path)
