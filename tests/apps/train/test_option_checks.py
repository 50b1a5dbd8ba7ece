from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from pyg_topomask.apps.train import train
from pyg_topomask.apps.train.checks import check_options, warn_of_unread_options
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.configuration import load_config

CONFIGS = Path(__file__).parents[3] / 'graphgps_configs'

pytestmark = pytest.mark.usefixtures('few_digits')


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ('gt.n_heads 5', 'gt.n_heads: got 5'),
        ('gt.layer_type GINE+Masked topomask.mask {sum:[GRF,Tree]}', 'edge_index: got a graph with a cycle'),
        ('gt.layer_type GINE+Masked topomask.mask {heads:[GRF,Hop]}', ''),
        ('gt.layer_type GINE+Masked topomask.mask {hadamard:[GRF,LowRank]}', 'left: got the attribute name'),
        (
            'gt.layer_type GINE+Masked topomask.mask {hadamard:[Hop,HeatKernel]}',
            'topomask.mask: got the entrywise product of HopMask',
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_walking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, message: str
) -> None:
    def walk(*arguments: object) -> None:
        raise RuntimeError('walks')

    monkeypatch.setattr('pyg_topomask.transforms.precomputed.sample_ensembles', walk)
    error, match = (ValueError, message) if message else (RuntimeError, '^walks$')
    with pytest.raises(error, match=match):
        train('digits', [*options.split(), 'topomask.progress', 'False'], out=tmp_path)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    'wrong',
    [
        ('gt.layer_type', 'GINE+Unknown'),
        ('gt.layer_type', 'Unknown+GRF'),
        ('gt.n_heads', '5'),
        ('optim.scheduler', 'unknown'),
        ('topomask.GRF.num_walks', '-1'),
        ('dataset.name', 'unknown'),
        ('dataset.task_type', 'unknown'),
        ('metric_best', 'mae'),
        ('model.graph_pooling', 'unknown'),
        ('custom_metrics', "['unknown']"),
        ('custom_metrics', "['macro_f1']", 'metric_best', 'auto'),
        ('gt.layer_type', 'None+Transformer', 'gt.n_heads', '5'),
        ('model.type', 'gnn', 'dataset.node_encoder_name', 'Unknown+LapPE'),
        ('model.type', 'gnn', 'dataset.node_encoder', 'False', 'gnn.layer_type', 'unknown'),
        ('model.type', 'gnn', 'dataset.node_encoder', 'False', 'gnn.stage_type', 'unknown'),
        ('num_threads', '0'),
        ('optim.batch_accumulation', '0'),
        ('optim.max_epoch', '0'),
        ('topomask.redraw_period', '-1'),
        ('train.eval_period', '0'),
        ('gt.layers', '0'),
        ('optim.num_warmup_epochs', '-1'),
        ('optim.base_lr', '-1.0'),
        ('optim.clip_grad_norm', 'True', 'optim.clip_grad_norm_value', '0.0'),
        # What shows in the first step alone.
        ('gt.layer_type', 'SAGE+Tree'),
        ('gt.layer_type', 'GINE+Toeplitz', 'topomask.transforms', '[]'),
        ('model.loss_fun', 'foo'),
        ('gnn.head', 'node'),
        ('dataset.task', 'node'),
        ('dataset.task_type', 'classification_binary'),
    ],
)
def test_a_mistake_leaves_the_earlier_run_as_it_is(
    tmp_path: Path, digits: Path, small: list[str], wrong: tuple[str, ...]
) -> None:
    folder = tmp_path / 'digits' / '0'
    (folder / 'checkpoints').mkdir(parents=True)
    kept = {folder / name: name for name in ('metrics.csv', 'checkpoints/last.pt', 'checkpoints/best.pt')}
    for path, text in kept.items():
        path.write_text(text)
    # The message begins with the last option, or with what the graph lacks.
    named = {'SAGE+Tree': 'edge_index', '[]': 'grid_shape', 'node': 'dataset.task, gnn.head'}.get(wrong[-1], wrong[-2])
    with pytest.raises(ValueError, match=rf'^{re.escape(named)}\b[^:]*: got '):
        train(digits, [*small, *wrong], out=tmp_path)
    assert {path: path.read_text() for path in folder.rglob('*') if path.is_file()} == kept


def test_errors_name_the_option_and_what_is_accepted(digits: Path, subtests: pytest.Subtests) -> None:
    for options, message in [
        ('gt.dropout 1.5', 'gt.dropout: got 1.5; accepted: probabilities'),
        ('seed 4294967296', 'seed: got 4294967296; accepted: whole numbers from 0 to 4294967295'),
        ('num_workers -1', 'num_workers: got -1; accepted: whole numbers from 0 to'),
        ('gnn.layers_mp -2147483649', 'gnn.layers_mp: got -2147483649; accepted: whole numbers from -2147483648'),
    ]:
        with subtests.test(options=options, message=message):
            load_config(digits, options.split())
            with pytest.raises(ValueError, match=f'^{message}'):
                check_options()


def test_labels_of_nodes_in_several_graphs_need_another_head(tmp_path: Path, digits: Path, small: list[str]) -> None:
    with pytest.raises(ValueError, match=r'in several graphs: dataset.task graph gnn.head inductive_node$'):
        train(digits, [*small, 'dataset.task', 'node', 'gnn.head', 'node'], out=tmp_path)


@pytest.mark.parametrize(
    ('option', 'value'),
    [
        ('run_multiple_splits', '[0,1]'),
        ('posenc_LapPE.pass_as_var', 'True'),
        ('dataset.split_mode', 'random'),
        ('train.ckpt_period', '7'),
        ('train.enable_ckpt', 'False'),
        ('dataset.split', '[0.6,0.2,0.2]'),
        ('dataset.edge_train_mode', 'disjoint'),
        ('dataset.edge_message_ratio', '0.5'),
        ('dataset.resample_negative', 'True'),
        ('dataset.resample_disjoint', 'True'),
        ('gt.full_graph', 'False'),
        ('train.ckpt_best', 'True'),
        ('train.mode', 'log-attn-weights'),
        ('gnn.layers_mp', '8'),
        ('gnn.layer_type', 'gatconv'),
        ('gnn.stage_type', 'skipsum'),
        ('train.skip_train_eval', 'True'),
        ('wandb.use', 'True'),
        ('wandb.project', 'mine'),
        ('dataset.to_undirected', 'True'),
        ('dataset.remove_feature', 'True'),
        ('gt.gamma', '5.0'),
        ('gt.residual', 'False'),
    ],
)
def test_options_that_are_not_read_are_warned_of(digits: Path, option: str, value: str) -> None:
    load_config(digits, [option, value])
    with pytest.warns(UserWarning, match=f'^{option}: got .*, which train does not read: '):
        warn_of_unread_options()


def test_training_warns_of_options_that_are_not_read(tmp_path: Path, digits: Path, small: list[str]) -> None:
    options = [*small, 'optim.max_epoch', '1', 'gt.layer_type', 'GINE+None', 'topomask.transforms', '[]', 'wandb.use', 'True']
    with pytest.warns(UserWarning, match='^wandb.use: got True, which train does not read: '):
        train(digits, options, out=tmp_path)


def test_options_that_are_read_after_all(digits: Path) -> None:
    load_config(digits, ['train.mode', 'custom'])
    warn_of_unread_options()
    load_config(digits, ['train.iter_per_epoch', '3', 'train.sampler', 'saint_rw'])
    warn_of_unread_options()
    load_config(digits, ['dataset.split', '[0.6,0.2,0.2]', 'dataset.format', 'PyG-TUDataset'])
    warn_of_unread_options()
    links = ['dataset.split', '[0.6,0.2,0.2]', 'dataset.resample_negative', 'True', 'dataset.edge_message_ratio', '0.5']
    load_config(digits, [*links, 'dataset.task', 'link_pred', 'dataset.edge_train_mode', 'disjoint'])
    warn_of_unread_options()
    load_config(digits, ['gnn.head', 'inductive_edge', 'dataset.resample_negative', 'True'])
    warn_of_unread_options()
    load_config(digits, ['dataset.task', 'link_pred', 'dataset.edge_message_ratio', '0.5'])
    with pytest.warns(UserWarning, match='^dataset.edge_message_ratio: .*edge_train_mode disjoint'):
        warn_of_unread_options()


def test_shipped_configurations_state_nothing_that_is_not_read() -> None:
    for path in (path for folder in ('.', 'models', 'kmip') for path in sorted((CONFIGS / folder).glob('*.yaml'))):
        load_config(path)
        warn_of_unread_options()


@pytest.mark.parametrize('group', ['train', 'val'])
def test_samplers_are_for_a_single_graph(tmp_path: Path, digits: Path, small: list[str], group: str) -> None:
    options = [*small, 'optim.max_epoch', '1', 'gt.layer_type', 'GINE+None', 'topomask.transforms', '[]']
    with pytest.warns(UserWarning, match=rf"^{group}.sampler: got 'saint_rw', which is for a single graph"):
        train(digits, [*options, f'{group}.sampler', 'saint_rw'], out=tmp_path)


def test_bad_options(tmp_path: Path, digits: Path, small: list[str], subtests: pytest.Subtests) -> None:
    for option, message in [
        ('model.type nonsense', "model.type: got 'nonsense'; accepted: .*TopoGPSModel"),
        ('metric_best nonsense', "metric_best: got 'nonsense'; accepted: auto, accuracy, accuracy-SBM, f1, loss, mIoU"),
        ('accelerator tpu', "accelerator: got 'tpu'; accepted: auto, cpu, cuda"),
        ('gt.layer_type GINE+KMIP topomask.KMIP.k 0', '^topomask.KMIP.k: got 0; accepted: whole numbers from 1'),
        ('gt.layer_type GINE+KMIP topomask.KMIP.k five', "^topomask.KMIP.k: got 'five'; accepted: values of type int"),
        ('gt.n_heads 5', '^gt.n_heads: got 5 for 8 channels; accepted: divisors'),
        ('gt.layers two', "^gt.layers: got 'two'; accepted: values of type int"),
        ('train.batch_size 0', '^train.batch_size: got 0; accepted: whole numbers from 1'),
        ('topomask.GRF.num_walks 0', '^topomask.GRF.num_walks: got 0; accepted: whole'),
        ('devices 2', r'devices: got 2 for 1 process.*torchrun --nproc-per-node 2 -m pyg_topomask train'),
        ('gt.layer_type None', '^gt.layer_type: got None; accepted: values of type str'),
        ('num_workers null', '^num_workers: got None; accepted: values of type int'),
        ('gt.dim_hidden 0', '^gt.dim_hidden: got 0'),
        ('gnn.layers_pre_mp -3', '^gnn.layers_pre_mp: got -3'),
        ('round -1', '^round: got -1'),
        ('optim.momentum -3', '^optim.momentum: got -3'),
        ('gt.attn_dropout 1.5', '^gt.attn_dropout: got 1.5'),
        ('metric_agg max', "^metric_agg: got 'max'; accepted: argmax, argmin"),
        ('train.sampler nonsense', "^train.sampler: got 'nonsense'; accepted: full_batch, saint_edge, saint_node, saint_rw"),
        ('train.sampler neighbor', "^train.sampler: got 'neighbor'; accepted"),
        ("custom_metrics ['nonsense']", "custom_metrics: got 'nonsense'; accepted:"),
        ('model.loss_fun foo', "^model.loss_fun: got 'foo'; accepted: cross_entropy, l1, mse, weighted_cross_entropy, and"),
        # What the data lacks, and where it comes from.
        ('gt.layer_type SAGE+Tree topomask.transforms []', r'^edge_index: .* cycle .*; AddSpanningForest'),
        (
            'gt.layer_type SAGE+Tree topomask.transforms [AddForest]',
            r'^edge_index: .* cycle .*; AddSpanningForest',
        ),
        ('gt.layer_type SAGE+LowRank topomask.transforms []', r"^left: .*; it comes with .* attr_name: 'mask_left'$"),
        (
            'gt.layer_type SAGE+Causal topomask.Causal.order time topomask.transforms []',
            r"^order: .*; it comes with .* topomask.transforms .* attr_name: 'time'$",
        ),
        (
            'model.type gnn gnn.layer_type causal_attention gnn.act relu dataset.node_encoder False dataset.edge_encoder False '
            'topomask.Causal.order time topomask.transforms []',
            r"^order: .*; it comes with .* topomask.transforms .* attr_name: 'time'$",
        ),
    ]:
        with subtests.test(option=option, message=message), pytest.raises(ValueError, match=message):
            train(digits, [*small, *option.split()], out=tmp_path)


@pytest.mark.skipif(torch.cuda.is_available(), reason='needs a machine without CUDA')
def test_accelerator_that_is_not_there(tmp_path: Path, digits: Path, small: list[str]) -> None:
    with pytest.raises(ValueError, match=r"accelerator: got 'cuda', and there is no CUDA device"):
        train(digits, [*small, 'accelerator', 'cuda'], out=tmp_path)


def test_an_order_of_a_transform_of_pyg(tmp_path: Path, digits: Path, small: list[str]) -> None:
    transform = '[{AddLaplacianEigenvectorPE: {k: 1, attr_name: time, is_undirected: True}}]'
    options = ['gt.layer_type', 'SAGE+Causal', 'topomask.Causal.order', 'time', 'topomask.transforms', transform]
    (row,) = train(digits, [*small, *options, 'optim.max_epoch', '1'], out=tmp_path)
    assert 'test_accuracy' in row


def test_redrawing_where_nothing_is_drawn(
    tmp_path: Path, digits: Path, small: list[str], recwarn: pytest.WarningsRecorder
) -> None:
    options = [*small, 'optim.max_epoch', '1', 'gt.layer_type', 'SAGE+Linear', 'topomask.transforms', '[]']
    options += ['topomask.redraw_period', '2', 'topomask.Linear.feature_map']
    train(digits, [*options, 'favor'], out=tmp_path / 'favor')
    assert not recwarn.list
    message = r'^topomask.redraw_period: got 2 for a model in .* the feature maps favor, positive, simplex.* are, and'
    with pytest.warns(UserWarning, match=message):
        train(digits, [*options, 'relu'], out=tmp_path / 'relu')


def test_numbers_that_overflow_are_refused_by_name(subtests: pytest.Subtests) -> None:
    for path, value in [
        ('optim.max_epoch', str(10**12)),
        ('train.batch_size', str(10**24)),
        ('gt.dim_hidden', str(10**13)),
        ('seed', str(2**40)),
        ('topomask.GRF.max_walk_length', str(10**11)),
    ]:
        with subtests.test(path=path, value=value):
            load_config('digits', ['model.type', 'TopoGPSModel', 'gt.layer_type', 'GINE+GRF', path, value])
            with pytest.raises(ArgumentError, match=rf'^{path}: got [\d.e+-]+; accepted:') as error:
                check_options()
            assert error.value.argument == path
