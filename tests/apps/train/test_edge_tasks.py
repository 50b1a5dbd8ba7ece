"""Runs that predict edges, and labels of pairs of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from configured_step import Held
from csv_tables import without_seconds
from digits_run import CONFIGS
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, set_cfg

from pyg_topomask.apps.train import module, train
from pyg_topomask.apps.train.metrics import EpochMeter
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.names.objectives import average_precision, hits_at, mean_auc

OPTIONS = """
dataset.format mine dataset.name mine dataset.node_encoder True dataset.node_encoder_name LinearNode dataset.edge_encoder False
topomask.transforms [] gt.layer_type GCN+Hop gt.layers 1 gt.n_heads 2 gt.dim_hidden 8 gnn.dim_inner 8 gnn.layers_pre_mp 0
optim.num_warmup_epochs 0 topomask.progress False optim.base_lr 0.01
"""
LINKS = f'{OPTIONS} dataset.task link_pred gnn.head link_pred train.batch_size 1'
OF_GRAPHS = f'{OPTIONS} dataset.task graph gnn.head inductive_edge train.batch_size 4 optim.max_epoch 3'

Run = Callable[..., dict[str, float]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(data: list[Data], options: str, out: str = 'results', resume: bool = False) -> dict[str, float]:
        dataset = Held(data)
        if len(data) > 1:
            for split, index in zip(('train', 'val', 'test'), np.split(np.arange(len(data)), [8, 12]), strict=True):
                dataset._data[f'{split}_graph_index'] = torch.from_numpy(index)
                dataset.slices[f'{split}_graph_index'] = torch.tensor([0, len(index)])
        monkeypatch.setitem(register.loader_dict, 'mine', lambda format, *args: dataset if format == 'mine' else None)
        (row,) = train(CONFIGS / 'cora.yaml', options.split(), out=tmp_path / out, resume=resume)
        return row

    return run


def communities() -> Data:
    """Four groups of ten nodes, with most pairs of a group as edges, and features that say the group, but for noise."""
    torch.manual_seed(0)
    group = torch.arange(40) // 10
    near = (group[:, None] == group) & (torch.rand(40, 40) < 0.7)
    return Data(
        x=torch.eye(4)[group] + 0.3 * torch.randn(40, 4), edge_index=(near | near.t()).fill_diagonal_(False).nonzero().t()
    )


def test_edges_are_learned_from_others(run: Run) -> None:
    row = run([communities()], f'{LINKS} metric_best auc optim.max_epoch 40 dataset.edge_train_mode disjoint')
    assert row['test_auc'] > 0.85
    assert row['val_auc'] > 0.85


@pytest.mark.parametrize('metric', ['ap', 'hits@20'])
def test_metrics_by_name(run: Run, monkeypatch: pytest.MonkeyPatch, metric: str) -> None:
    seen: list[tuple[np.ndarray, np.ndarray]] = []
    update = module.EpochMeter.update

    def recording(self: module.EpochMeter, true: torch.Tensor, pred: torch.Tensor, *args: object) -> None:
        if self.logger.name == 'test':
            seen.append((true.numpy(), pred.numpy().ravel()))
        update(self, true, pred, *args)

    monkeypatch.setattr(module.EpochMeter, 'update', recording)
    row = run([communities()], f'{LINKS} metric_best {metric} optim.max_epoch 2 dataset.edge_negative_sampling_ratio 3.0')
    label, score = seen[-1]
    if metric == 'ap':
        order = np.argsort(-score, kind='stable')
        hits = label[order]
        expected = float(((hits.cumsum() / np.arange(1, len(hits) + 1)) * hits).sum() / hits.sum())
    else:
        expected = float((score[label == 1] > np.sort(score[label == 0])[-20]).mean())
    assert row[f'test_{metric}'] == pytest.approx(expected, abs=1e-3)


def test_order_of_scores_of_which_sigmoids_are_all_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    far, seen, outputs = communities(), list[tuple[np.ndarray, np.ndarray]](), module.outputs_of_splits
    far.x *= 30

    def recording(*args: object) -> Iterator[tuple[str, torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]]:
        for split, pred, true, measured in outputs(*args):  # type: ignore[arg-type]
            if split == 'test':
                seen.append((true.numpy(), pred.numpy()))
            yield split, pred, true, measured

    monkeypatch.setattr(module, 'outputs_of_splits', recording)
    row = run([far], f'{LINKS} metric_best ap optim.max_epoch 2')
    label, score = seen[-1]
    assert (torch.from_numpy(score).sigmoid() == 1).sum() > 10
    linked, others = score[label == 1][:, None], score[label == 0]
    assert row['test_auc'] == pytest.approx(float(((linked > others) + 0.5 * (linked == others)).mean()), abs=1e-4)


@pytest.mark.parametrize('others', [[0.7, 0.2], [0.9, 0.9]])
def test_hits(others: list[float]) -> None:
    true, pred = [torch.tensor([1, 1, 0, 0])], [torch.tensor([0.9, 0.8, *others])]
    expected = sum(score > sorted(others)[-2] for score in (0.9, 0.8)) / 2
    assert hits_at(2)(true, pred, '') == expected
    assert hits_at(3)(true, pred, '') == 1.0  # of too few pairs without an edge


@pytest.mark.parametrize('decoding', ['dot', 'concat'])
def test_validation_and_testing_take_one_pass(run: Run, monkeypatch: pytest.MonkeyPatch, decoding: str) -> None:
    options = f'{LINKS} dataset.split [0.6,0.1,0.3] optim.max_epoch 2 model.edge_decoding {decoding}'
    seen, forward = list[bool](), module.RunModule.forward

    def counted(self: module.RunModule, batch: Data) -> object:
        seen.append(self.training)
        return forward(self, batch)

    def apart(self: module.RunModule, loaders: list[object]) -> list[object]:
        self._evaluated = [('val',), ('test',)]
        return loaders

    monkeypatch.setattr(module.RunModule, 'forward', counted)
    at_once = run([communities()], options)
    assert seen == [True, False, True, False, False]
    monkeypatch.setattr(module.RunModule, 'loaders_of_evaluation', apart)
    assert run([communities()], options, 'apart') == at_once
    assert at_once['val_loss'] != at_once['test_loss']


def test_a_resumed_run_draws_the_same_pairs(run: Run, tmp_path: Path) -> None:
    options = f'{LINKS} dataset.resample_negative True optim.scheduler none optim.max_epoch'
    whole = run([communities()], f'{options} 4', 'whole')
    run([communities()], f'{options} 2', 'parts')
    assert run([communities()], f'{options} 4', 'parts', resume=True) == whole
    histories = [without_seconds(next((tmp_path / name).rglob('metrics.csv'))) for name in ('whole', 'parts')]
    assert histories[0] == histories[1]
    assert len({row['train_loss'] for row in histories[0]}) == 4


def labelled(labels: torch.Tensor) -> Data:
    """A path of 40 nodes, whose edges have labels, every third of each split."""
    nodes = torch.arange(39)
    edge_index = torch.cat([torch.stack([nodes, nodes + 1]), torch.stack([nodes + 1, nodes])], dim=1)
    torch.manual_seed(0)
    data = Data(x=torch.randn(40, 4), edge_index=edge_index)
    for place, split in enumerate(('train', 'val', 'test')):
        data[f'{split}_edge_index'], data[f'{split}_edge_label'] = edge_index[:, :39][:, place::3], labels[place::3]
    return data


def test_labels_of_edges(run: Run) -> None:
    task = f'{OPTIONS} dataset.task edge gnn.head edge train.batch_size 1 optim.max_epoch 3'
    classes, numbers = labelled(torch.arange(39) // 3 % 3), labelled(torch.arange(39.0))
    assert 0 <= run([classes], f'{task} model.edge_decoding concat')['test_accuracy'] <= 1
    regression = 'dataset.task_type regression model.loss_fun mse metric_best mae'
    row = run([numbers], f'{task} {regression}', 'numbers')
    assert row['test_mae'] > 0
    with pytest.raises(ArgumentError, match=r"^model.edge_decoding: got 'dot' for 3 classes .*; accepted: 'concat'"):
        run([classes], task, 'dot')
    with pytest.raises(ArgumentError, match=r"^model.edge_decoding: got 'dot' for 3 classes"):
        run([labelled(torch.arange(39) // 3 % 2 * 2)], task, 'without class 1')
    two = torch.arange(39) // 3 % 2
    assert run([labelled(two.unsqueeze(1))], task, 'column') == run([labelled(two)], task, 'plain')
    multi = f'{task} model.edge_decoding concat dataset.task_type classification_multi'
    assert 'test_accuracy' in run([labelled(two)], multi, 'multi')
    with pytest.raises(ArgumentError, match=r'^test_edge_label: got shape \[13, 2\] for classification; accepted: shape \[n\]'):
        run([labelled(torch.stack([two, two], 1))], task, 'two columns')
    late = labelled(two)
    late.val_edge_label[0] = 2
    with pytest.raises(ArgumentError, match=r"^model.edge_decoding: got 'dot' for 3 classes"):
        run([late], task, 'a class of validation alone')
    late.val_edge_label = late.val_edge_label[1:]
    with pytest.raises(ArgumentError, match=r'^val_edge_label: got shape \[12\] for pairs of shape \[2, 13\]'):
        run([late], task, 'one label less')
    with pytest.raises(ArgumentError, match=r"^model.edge_decoding: got 'sum'; accepted: concat, cosine_similarity, dot"):
        run([classes], f'{task} model.edge_decoding sum', 'sum')
    del classes.train_edge_label
    with pytest.raises(
        ArgumentError, match=r"^dataset.task, gnn.head: got 'edge', 'edge' for data set 'mine' without train_edge"
    ):
        run([classes], task, 'missing')


def contacts(count: int = 16) -> list[Data]:
    """Paths whose ends are in contact, both ways, in a feature that tells them; one has no contact."""
    graphs = []
    for number in range(count):
        size = 6 + number % 5
        nodes = torch.arange(size - 1)
        edge_index = torch.cat([torch.stack([nodes, nodes + 1]), torch.stack([nodes + 1, nodes])], dim=1)
        x = torch.zeros(size, 2)
        x[[0, -1], 0], x[1:-1, 1] = 1.0, 1.0
        pairs = torch.tensor([[0, size - 1], [size - 1, 0]])[:, : 0 if number == 9 else 2]
        graphs.append(Data(x=x, edge_index=edge_index, edge_label_index=pairs, edge_label=torch.ones(pairs.size(1)).long()))
    return graphs


def test_pairs_of_several_graphs(run: Run) -> None:
    options = f'{OF_GRAPHS} metric_best mrr_filtered dataset.resample_negative True optim.max_epoch 60'
    row = run(contacts(), options)
    assert row['val_mrr_filtered'] == 1.0  # the contact is before all pairs of others
    # By loops over the graphs: among all pairs, the node itself has as high a score as its contact.
    assert row['test_mrr'] == pytest.approx(1 / 1.5, abs=1e-3)
    assert row['test_hits@1'] == 0
    assert row['test_hits@3'] == 1.0


#: What GraphGPS's file for PCQM-Contact says beside the sizes of the network, and encoders that do not need OGB.
PCQM = """
dataset.format OGB dataset.name PCQM4Mv2Contact-shuffle dataset.task graph dataset.resample_negative True
dataset.transductive False dataset.node_encoder True dataset.node_encoder_name SmilesNode+LapPE
dataset.node_encoder_bn False dataset.edge_encoder True dataset.edge_encoder_name SmilesEdge
dataset.edge_encoder_bn False posenc_LapPE.enable True posenc_LapPE.eigen.laplacian_norm none
posenc_LapPE.eigen.eigvec_norm L2 posenc_LapPE.eigen.max_freqs 10 posenc_LapPE.model DeepSet posenc_LapPE.dim_pe 4
posenc_LapPE.layers 2 posenc_LapPE.raw_norm_type none topomask.transforms [] gnn.head inductive_edge
model.edge_decoding dot gt.layer_type CustomGatedGCN+Transformer gt.layers 1 gt.n_heads 2 gt.dim_hidden 16
gnn.dim_inner 16 gnn.layers_pre_mp 0 metric_best mrr train.batch_size 4 optim.max_epoch 2 topomask.progress False
"""


def test_contacts_of_molecules(tmp_path: Path) -> None:
    """Files as those of the Long Range Graph Benchmark: features of atoms and bonds, bonds, contacts and their labels."""
    raw = tmp_path / 'data' / 'LRGBDataset' / 'pcqm-contact' / 'raw'
    raw.mkdir(parents=True)
    for split, count in (('train', 8), ('val', 4), ('test', 4)):
        graphs = []
        for data in contacts(count):
            atoms, bonds = (torch.ones(size, kinds).long() for size, kinds in ((data.num_nodes, 9), (data.num_edges, 3)))
            graphs.append((atoms, bonds, data.edge_index, data.edge_label_index, data.edge_label))
        torch.save(graphs, raw / f'{split}.pt')
    options = [*PCQM.split(), 'dataset.dir', str(tmp_path / 'data')]
    (row,) = train(CONFIGS / 'cora.yaml', options, out=tmp_path / 'results')
    assert 0 < row['test_mrr'] <= 1
    assert 0 < row['test_mrr_filtered'] <= 1
    assert 0 <= row['test_hits@1'] <= row['test_hits@3'] <= row['test_hits@10'] <= 1


def test_ranks_do_not_depend_on_batches(run: Run) -> None:
    untrained = 'optim.max_epoch 1 optim.base_lr 0.0 dataset.node_encoder_bn False'
    options = f'{OF_GRAPHS} {untrained} dataset.resample_negative True train.batch_size'
    one, four = (run(contacts(), f'{options} {size}', f'of {size}') for size in (1, 4))
    ranks = {key: value for key, value in one.items() if 'mrr' in key or 'hits' in key}
    assert len(ranks) == 10
    assert ranks == {key: four[key] for key in ranks}


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ('', r"^dataset.task, gnn.head: got 'graph', 'inductive_edge' for data set 'mine' without edge_label"),
        ('metric_best mrr gnn.head graph', r"^metric_best: got 'mrr'; accepted: "),
    ],
)
def test_graphs_without_labelled_pairs(run: Run, options: str, message: str) -> None:
    graphs = contacts()
    for number, graph in enumerate(graphs):
        del graph.edge_label_index
        graph.y = torch.tensor([number % 2])
    with pytest.raises(ArgumentError, match=message):
        run(graphs, f'{OF_GRAPHS} {options}')


def test_labels_of_linked_pairs_alone(run: Run) -> None:
    with pytest.raises(ArgumentError, match=r'^edge_label: got the label 1 for every pair .*dataset.resample_negative True'):
        run(contacts(), OF_GRAPHS)


@pytest.mark.parametrize('sizes', ['features', 'numbers'])
def test_pairs_with_nodes_of_no_graph(run: Run, sizes: str) -> None:
    graphs = contacts()
    graphs[3].edge_label_index = torch.tensor([[0, 9], [9, 0]])  # in a batch, a node of the next graph
    options = f'{OF_GRAPHS} dataset.resample_negative True'
    if sizes == 'numbers':
        for graph in graphs:
            graph.num_nodes = graph.x.size(0)
            del graph.x
        options += ' dataset.node_encoder False topomask.transforms [Constant]'
    message = r"^edge_label_index: got the pair \[0, 9\] in a graph of 9 nodes of data set 'mine'; accepted: whole numbers"
    with pytest.raises(ArgumentError, match=message):
        run(graphs, options)
    one = labelled(torch.arange(39) // 3 % 2)
    one.val_edge_index = one.val_edge_index - 2
    with pytest.raises(ArgumentError, match=r'^val_edge_index: got the pair \[-1, '):
        run([one], f'{OPTIONS} dataset.task edge gnn.head edge train.batch_size 1')


def paired(count: int = 16) -> list[Data]:
    """Graphs with pairs of both labels."""
    graphs = contacts(count)
    for graph in graphs:
        graph.edge_label_index = torch.tensor([[0, 1, 0], [1, 2, 3]])
        graph.edge_label = torch.tensor([1, 0, 1])
    return graphs


def test_labels_of_graphs_do_not_matter_to_pairs(run: Run) -> None:
    graphs = paired()
    row = run(graphs, OF_GRAPHS)
    for number, graph in enumerate(graphs):
        graph.y = torch.tensor([number % 4])
    assert run(graphs, OF_GRAPHS, 'with y') == row


def test_pairs_without_a_label(run: Run) -> None:
    graphs = paired()
    for graph in graphs:
        graph.edge_label = torch.tensor([1.0, torch.nan, 0.0])
    assert 0 <= run(graphs, OF_GRAPHS)['test_auc'] <= 1


def test_a_finished_run_has_the_same_result_when_it_is_resumed(run: Run) -> None:
    options = f'{OF_GRAPHS} dataset.resample_negative True'
    whole = run(contacts(), options)
    assert run(contacts(), options, resume=True) == whole


def test_means_over_graphs_of_uneven_batches(run: Run) -> None:
    untrained = 'optim.max_epoch 1 optim.base_lr 0.0 dataset.node_encoder_bn False'
    one, three = (run(paired(), f'{OF_GRAPHS} {untrained} train.batch_size {size}', f'of {size}') for size in (1, 3))
    assert {key: value for key, value in one.items() if 'mrr' in key} == {key: three[key] for key in one if 'mrr' in key}


@pytest.mark.parametrize(
    ('change', 'options', 'message'),
    [
        ({'edge_label': torch.ones(3, 2)}, '', r'^edge_label: got shape \[48, 2\] for classification; accepted: shape \[n\]'),
        ({'edge_label_index': torch.zeros(3, 2).long()}, '', r'^edge_label: got shape \[48\] for pairs of shape \['),
        (
            {'x': torch.full((10, 2), torch.nan)},
            'dataset.resample_negative True',
            r'^x: got NaN or infinite numbers in data set',
        ),
    ],
)
def test_data_that_does_not_fit(run: Run, change: dict[str, torch.Tensor], options: str, message: str) -> None:
    graphs = paired()
    for graph in graphs:
        graph.update(change)
    with pytest.raises(ArgumentError, match=message):
        run(graphs, f'{OF_GRAPHS} {options}')


@pytest.mark.parametrize('options', ['', 'dataset.resample_negative True'])
def test_a_split_without_pairs(run: Run, options: str) -> None:
    graphs = paired()
    for graph in graphs[8:12]:
        graph.edge_label_index, graph.edge_label = graph.edge_label_index[:, :0], graph.edge_label[:0]
    with pytest.raises(ArgumentError, match=r"^dataset.split: got no sample in the val split of data set 'mine'"):
        run(graphs, f'{OF_GRAPHS} {options}')


@pytest.mark.parametrize('metric', [average_precision, mean_auc])
def test_metrics_of_scores_that_are_not_finite(metric: Callable[..., float]) -> None:
    true = [torch.tensor([0.0, 1.0, 1.0])]
    assert metric(true, [torch.tensor([-torch.inf, 2.0, torch.inf])], '') == 1.0
    assert np.isnan(metric(true, [torch.tensor([torch.nan, 2.0, 3.0])], ''))


def test_a_run_that_diverges_says_so(run: Run) -> None:
    for number, data in enumerate(([communities()], paired())):
        options = LINKS if number == 0 else OF_GRAPHS
        with pytest.raises(FloatingPointError, match=r'lower optim\.base_lr'):
            run(data, f'{options} optim.max_epoch 9 optim.base_lr 1e30 optim.scheduler none', f'of {number}')


class OwnHead(torch.nn.Module):
    """A head of the user for edges."""

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.lin = torch.nn.Linear(dim_in, dim_in)

    def forward(self, batch: Data) -> tuple[torch.Tensor, torch.Tensor]:
        first, second = self.lin(batch.x)[batch[f'{batch.split}_edge_index']]
        return (first * second).sum(1), batch[f'{batch.split}_edge_label']


def test_heads_of_the_user(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(register.head_dict, 'own_head', OwnHead)
    assert 0 <= run([communities()], f'{LINKS} gnn.head own_head optim.max_epoch 2')['test_auc'] <= 1


def test_two_scores_of_two_classes() -> None:
    set_cfg(cfg)
    cfg.dataset.task_type, cfg.share.dim_out = 'classification', 2
    true, score = torch.tensor([0, 1, 1]), torch.tensor([[2.0, 1.0], [0.0, 3.0], [2.0, 1.0]]).log_softmax(1)
    meter = EpochMeter('val')
    meter.update(true, score, torch.tensor(0.5), 0.1, 0.0)
    assert meter.finish()['val_accuracy'] == pytest.approx(2 / 3, abs=1e-4)


@pytest.mark.parametrize('options', ['gnn.head node', 'dataset.task node', 'gnn.head graph'])
def test_task_and_head_fit(run: Run, options: str) -> None:
    with pytest.raises(ArgumentError, match=r'^dataset.task, gnn.head: got .*; accepted: edge or link_pred for both'):
        run([communities()], f'{LINKS} {options}')


@pytest.mark.parametrize('task', ['edge', 'link_pred'])
def test_samplers_of_nodes(run: Run, task: str) -> None:
    with pytest.raises(
        ArgumentError, match=rf"^train.sampler, for dataset.task {task}: got 'saint_node'; accepted: full_batch"
    ):
        run([communities()], f'{LINKS} dataset.task {task} train.sampler saint_node')
