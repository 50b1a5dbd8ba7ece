"""The protocol of accuracy: its tasks against plain versions, its controls, its store and its tables."""

import csv
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from csv_tables import rows_of, stored_rows
from grids import covering
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch_geometric.data import Data
from torch_geometric.utils import from_networkx, to_networkx

from benchmarks.accuracy import store
from benchmarks.accuracy.encodings import encode_nodes
from benchmarks.accuracy.generated import distances_to_infected, match_on_trees, transfer_on_rings
from benchmarks.accuracy.interpolation import normals_of_meshes, speed_of_traffic
from benchmarks.accuracy.molecules import functions_of_peptides
from benchmarks.accuracy.networks import ATTENTIONS, MASKS, Network, Setting, make_attention
from benchmarks.accuracy.plans import BESIDE_UNMASKED, MASKED, PLANS
from benchmarks.accuracy.roads import volume_on_roads
from benchmarks.accuracy.tables import write_task
from benchmarks.accuracy.tasks import AUROC, EXPLAINED, PRECISION, TASKS
from benchmarks.accuracy.training import Run, make_example, train
from pyg_topomask.graphs.graph import Graph

SMALL = Setting('sage', 'hop', 1, 8, 2, epochs=1, heads=2)


def small_batch() -> Data:
    edges = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    batch = torch.tensor([0, 0, 0, 1, 1])
    return Data(x=torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), edge_index=edges, batch=batch, num_nodes=5)


@pytest.mark.parametrize(
    ('attention', 'local'), covering(['none', 'linear', *ATTENTIONS, *MASKS, 'mean hop'], ['none', 'sage', 'gcn', 'gat'])
)
def test_no_network_looks_into_another_graph(local: str, attention: str) -> None:
    torch.manual_seed(0)
    data = small_batch()
    model = Network(SMALL._replace(local=local, attention=attention), 3, 2).eval()
    before = model(make_example(data))
    data.x[3:] += 1.0
    torch.testing.assert_close(model(make_example(data))[:3], before[:3])
    assert before.isfinite().all()


def two_random_graphs() -> Data:
    graphs = [nx.gnp_random_graph(size, 0.4, seed=size) for size in (14, 11)]
    both = nx.disjoint_union_all(graphs)
    data = from_networkx(both)
    data.x = torch.randn(25, 3, generator=torch.Generator().manual_seed(0))
    data.batch = torch.tensor([0] * 14 + [1] * 11)
    return data


def test_encodings_are_returns_of_walks_and_eigenvectors() -> None:
    data = two_random_graphs()
    encodings = encode_nodes(data).double().numpy()
    adjacency = nx.to_numpy_array(to_networkx(data, to_undirected=True))
    degree = adjacency.sum(1)
    step = adjacency / degree[:, None]
    returns = [np.linalg.matrix_power(step, steps).diagonal() for steps in range(1, 21)]
    np.testing.assert_allclose(encodings[:, :20], np.stack(returns, 1), atol=1e-6)
    laplacian = np.eye(25) - adjacency / np.sqrt(np.outer(degree, degree))
    for nodes in (slice(0, 14), slice(14, 25)):
        vectors, block = encodings[nodes, 20:], laplacian[nodes, nodes]
        smallest = np.linalg.eigvalsh(block)[1:9]
        np.testing.assert_allclose(block @ vectors, vectors * smallest, atol=1e-5)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(8), atol=1e-5)


@pytest.mark.parametrize('attention', ['transformer', 'performer'])
def test_gps_learns_from_encodings_and_not_from_another_graph(attention: str) -> None:
    torch.manual_seed(0)
    data = two_random_graphs()
    model = Network(SMALL._replace(attention=attention, variant='gps'), 3, 2).eval()
    example = make_example(data, encode=True)
    before = model(example)
    changed = example.x.clone()
    changed[14:] += 1.0
    torch.testing.assert_close(model(example._replace(x=changed))[:14], before[:14])
    assert before.isfinite().all()
    model.train()
    first, second = model(example), model(example)
    assert not torch.equal(first, second)  # the signs of eigenvectors
    (gradient,) = torch.autograd.grad(first[0].sum(), [model.lin_in.weight])
    column = gradient.abs().sum(0)
    assert column[3] == 0  # no walk returns after one step
    assert (column[4:] > 1e-3).all()


def test_answers_of_graphs_are_those_of_each_graph_alone() -> None:
    torch.manual_seed(0)
    data = small_batch()
    model = Network(SMALL, 3, 2, graphs=True).eval()
    alone = [
        model(make_example(Data(x=data.x[nodes], edge_index=edges, batch=torch.zeros(len(nodes), dtype=torch.long))))
        for nodes, edges in (([0, 1, 2], data.edge_index[:, :4]), ([3, 4], data.edge_index[:, 4:] - 3))
    ]
    torch.testing.assert_close(model(make_example(data)), torch.cat(alone))
    of_nodes = Network(SMALL, 3, 2).eval()
    of_nodes.load_state_dict(model.state_dict())
    torch.testing.assert_close(alone[0], of_nodes(make_example(data))[:3].mean(0, keepdim=True))


def test_atoms_of_peptides_are_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    molecules = {
        split: [
            Data(torch.randint(3, (size, 9), generator=generator).float(), torch.tensor([[0], [1]]), y=torch.ones(1, 10))
            for size in sizes
        ]
        for split, sizes in (('train', (2, 3, 4)), ('val', (5,)), ('test', (6,)))
    }
    module = 'benchmarks.accuracy.molecules'
    monkeypatch.setattr(f'{module}.write_dataset', lambda folder, sizes: None)
    monkeypatch.setattr(f'{module}.PeptidesFunctional', lambda root, split: molecules[split])
    monkeypatch.setattr(f'{module}.BATCH', 2)
    parts = functions_of_peptides.__wrapped__((3, 1, 1))
    assert [[batch.num_graphs for batch in part] for part in parts] == [[2, 1], [1], [1]]
    for part, (split, graphs) in zip(parts, molecules.items(), strict=True):
        x = torch.cat([batch.x for batch in part])
        assert torch.equal(x.view(-1, 9, 3).argmax(-1).float(), torch.cat([data.x for data in graphs])), split
        assert (x.view(-1, 9, 3).sum(-1) == 1).all()
        assert all(batch.mask.shape == (batch.num_graphs,) and batch.mask.all() for batch in part)


def test_equal_scores_are_the_mean_under_the_mask() -> None:
    torch.manual_seed(0)
    data = small_batch()
    control = make_attention(SMALL._replace(attention='mean hop', width=6))
    assert control is not None
    x = torch.randn(5, 6)
    mask = control.mask(data).to_dense()
    values = control.lin_v(x).view(5, 2, 3)
    mean = torch.einsum('hij,jhc->ihc', mask / mask.sum(-1, keepdim=True), values)
    torch.testing.assert_close(control(x, graph=Graph.from_data(data)), control.lin_out(mean.flatten(1)))


def test_infected_nodes_and_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('benchmarks.accuracy.generated.INFECTED_NODES', 600)
    for (data,) in distances_to_infected(0):
        graph = to_networkx(data, to_undirected=True)
        infected = set(data.x[:, 1].nonzero().flatten().tolist())
        length = nx.multi_source_dijkstra_path_length(graph, infected)
        assert len(infected) == 12
        assert data.y.tolist() == [min(length.get(node, 5), 5) for node in range(data.num_nodes)]


@pytest.mark.parametrize('crossed', [False, True])
def test_the_node_opposite_on_a_ring_has_the_answer(crossed: bool) -> None:
    for data in (part[0][0] for part in transfer_on_rings(0, crossed)):
        graph = to_networkx(data, to_undirected=True)
        assert sorted(dict(graph.degree).values()) == ([2] * 40 if not crossed else [2] * 2 + [3] * 4 + [4] * 34)
        (target,) = data.mask.nonzero().flatten().tolist()
        (source,) = [node for node in range(40) if data.x[node].sum() == 1]
        assert nx.shortest_path_length(graph, source, target) == 20
        assert data.x[source].argmax() == data.y[target]
        assert data.x[target].sum() == 0


def test_the_root_asks_for_the_class_of_one_leaf() -> None:
    parts = match_on_trees(0)
    assert [sum(batch.num_graphs for batch in part) for part in parts] == [4000, 1000, 2000]
    for data in (part[0][0] for part in parts):
        graph = to_networkx(data, to_undirected=True)
        depth = nx.single_source_shortest_path_length(graph, 0)
        assert nx.is_tree(graph)
        assert data.mask.nonzero().flatten().tolist() == [0]
        leaves = [node for node in graph if graph.degree(node) == 1]
        assert [depth[node] for node in leaves] == [4] * 16
        key, label = data.x[leaves].view(16, 2, 16).argmax(2).unbind(1)
        assert sorted(key.tolist()) == list(range(16))
        assert label[key == data.x[0].argmax()] == data.y[0]


def test_volumes_are_asked_for_where_no_counter_is(tmp_path: Path) -> None:
    edges = np.stack([np.arange(99), np.arange(1, 100)], 1)
    columns = {'links': np.ones((99, 1)), 'link_columns': np.array(['length']), 'pos': np.zeros((100, 2))}
    np.savez(tmp_path / 'road.npz', edges=edges, volume=np.arange(99.0), **columns)
    train, (val,), (test,) = volume_on_roads(tmp_path / 'road.npz', 0)
    counter = val.x[:, 1].bool()
    assert int(counter.sum()) == 10
    assert torch.equal(test.x, val.x)
    assert not (val.mask & counter).any()
    assert torch.equal(val.mask | test.mask | counter, torch.ones_like(counter))
    for data in train:
        known = data.x[:, 1].bool()
        assert torch.equal(known | data.mask, counter)
        assert not (known & data.mask).any()
        torch.testing.assert_close(data.x[:, :1], torch.where(known.unsqueeze(1), val.y, 0.0))


def test_normals_of_a_cube_point_outwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corner = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    face = np.array([triangle for a, b, c, d in quads for triangle in ((a, b, c), (a, c, d))])
    np.savez(tmp_path / 'cube.npz', pos=corner, face=face)
    monkeypatch.setattr('benchmarks.accuracy.interpolation.VERTICES', 8)
    monkeypatch.setattr('benchmarks.accuracy.interpolation.KNOWN', 0.5)
    parts = normals_of_meshes(tmp_path / 'cube.npz', tmp_path / 'cube.npz', 0)
    assert [sum(data.num_graphs for data in part) for part in parts] == [16, 8, 16]
    for data in (batch for part in parts for batch in part):
        assert ((data.y * (data.pos - 0.5)).sum(1) > 0.7).all()
        assert data.num_edges == 2 * 18 * data.num_graphs
        assert torch.equal(data.x[:, 3] == 0, data.mask)
        assert (data.x[data.mask] == 0).all()
        torch.testing.assert_close(data.x[~data.mask, :3], data.y[~data.mask])


def test_hidden_sensors_are_never_known(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    np.savez(
        tmp_path / 'speed.npz',
        speed=generator.random((800, 8)),
        adj=generator.random((8, 8)) * (generator.random((8, 8)) < 0.4),
    )
    train_part, validation, test = speed_of_traffic(tmp_path / 'speed.npz', 0)
    asked = torch.cat([data.mask.view(-1, 8) for part in (validation, test) for data in part])
    assert (asked.sum(1) == 2).all()
    hidden = asked[0]
    for data in train_part:
        assert (data.x.view(-1, 8, 2)[:, hidden] == 0).all()
        assert not data.mask.view(-1, 8)[:, hidden].any()


def test_metrics_are_those_of_their_definitions() -> None:
    from sklearn.metrics import r2_score, roc_auc_score

    generator = np.random.default_rng(0)
    output, label = generator.random((50, 2)), generator.integers(2, size=50)
    expected = roc_auc_score(label, output[:, 1] - output[:, 0])
    assert AUROC.compute(torch.from_numpy(output), torch.from_numpy(label)) == pytest.approx(expected)
    labels, rank = np.array([0, 1, 1, 0]), np.array([0.9, 0.8, 0.7, 0.1])
    both = np.stack([labels, 1 - labels], 1), np.stack([rank, rank], 1)
    precision = [(1 / 2 + 2 / 3) / 2, (1 + 2 / 4) / 2]
    assert PRECISION.compute(*(torch.from_numpy(array.copy()) for array in reversed(both))) == pytest.approx(np.mean(precision))
    target = generator.random((50, 2))
    explained = r2_score(target, output, multioutput='variance_weighted')
    assert EXPLAINED.compute(torch.from_numpy(output), torch.from_numpy(target)) == pytest.approx(explained)


def test_plans_name_known_tasks_and_differ_by_their_attention_alone() -> None:
    for name, plan in PLANS.items():
        assert name in TASKS
        first = plan.groups[MASKED][0]
        masked = {setting._replace(attention='') for setting in plan.groups[MASKED]}
        assert {setting._replace(attention=first.attention) for setting in plan.groups['no attention']} == {first}
        assert {setting._replace(attention='') for setting in plan.groups['unmasked attention']} <= masked
        equal_scores = plan.groups.get(f'{MASKED}, equal scores', ())
        controlled = plan.groups[MASKED][: len(equal_scores)]
        assert [f'mean {setting.attention}' for setting in controlled] == [setting.attention for setting in equal_scores]
        assert [setting._replace(attention='') for setting in controlled] == [s._replace(attention='') for s in equal_scores]
        assert {setting.attention for setting in plan.groups.get('message passing', ())} <= {'none'}
        settings = list(plan.settings())
        assert len(set(settings)) == len(settings)


def test_finished_runs_are_kept_and_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(0.5, 0.25, 7, 1.5, 99)
    jobs = [('trees', SMALL, 0), ('trees', SMALL._replace(start='balls', rate=1e-3), 1)]
    path = tmp_path / 'runs.csv'
    with path.open('w', newline='') as file:
        csv.writer(file).writerows([store.COLUMNS, *([task, *setting, split, *run] for task, setting, split in jobs)])
    assert store.read_runs(path) == dict.fromkeys(jobs, run)
    monkeypatch.setattr('benchmarks.harness.ProcessPoolExecutor', None)  # cannot be called
    store.run_missing(jobs, path)
    assert store.read_runs(tmp_path / 'none.csv') == {}


def test_runs_are_equal_by_seed_and_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, 'distances', TASKS['distances'])
    monkeypatch.setattr('benchmarks.accuracy.generated.INFECTED_NODES', 60)
    first, second = (train('distances', SMALL, 0) for _ in range(2))
    assert first._replace(seconds=0) == second._replace(seconds=0)
    assert first != train('distances', SMALL, 1)


@pytest.mark.parametrize('variant', ['sum', 'clipped'])
def test_gradients_of_the_variant_clipped_have_a_norm_of_at_most_one(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    norms = []

    def record(optimizer: torch.optim.Optimizer, *_: object) -> None:
        gradients = [each.grad for group in optimizer.param_groups for each in group['params'] if each.grad is not None]
        norms.append(float(torch.cat([gradient.flatten() for gradient in gradients]).norm()))

    task = TASKS['distances']
    steep = replace(task.metric, loss=lambda output, target: 100 * torch.nn.functional.cross_entropy(output, target))
    monkeypatch.setitem(TASKS, 'distances', replace(task, metric=steep))
    monkeypatch.setattr('benchmarks.accuracy.generated.INFECTED_NODES', 60)
    hook = register_optimizer_step_pre_hook(record)
    train('distances', SMALL._replace(variant=variant), 0)
    hook.remove()
    assert (max(norms) <= 1.0001) is (variant == 'clipped')


def test_the_setting_of_a_group_is_chosen_by_validation_alone(tmp_path: Path) -> None:
    plan = PLANS['trees']
    results = {setting: [Run(0.5, 0.6, 1, 1.0, 9), Run(0.5, 0.6, 1, 1.0, 9)] for setting in plan.settings()}
    lucky, best = plan.groups['message passing'][:2]
    results[lucky] = [Run(0.4, 0.9, 1, 1.0, 9), Run(0.4, 0.9, 1, 1.0, 9)]
    results[best] = [Run(0.7, 0.5, 1, 1.0, 9), Run(0.7, 0.4, 1, 1.0, 9)]
    write_task('trees', TASKS['trees'], plan, results, tmp_path)
    rows = rows_of(tmp_path / 'accuracy_trees.csv')
    assert len(rows) == len(results)
    chosen = {row['group']: row for row in rows if row['chosen']}
    assert list(chosen) == list(plan.groups)
    assert chosen['message passing']['seeds'] == '0.5000 0.4000'
    assert chosen['message passing']['verdict'] == 'worse'
    assert (tmp_path / 'accuracy_trees.png').stat().st_size > 0


@pytest.mark.parametrize('task', ['trees', 'lookup', 'meshes', 'sydney', 'chicago'])
def test_readme_states_the_gains_of_the_tables(task: str) -> None:
    rows = stored_rows(f'accuracy_{task}')
    chosen = {row['group']: row for row in rows if row['chosen']}
    column = f'test {TASKS[task].metric.name}'
    groups = (MASKED, 'message passing', 'unmasked attention', BESIDE_UNMASKED)
    numbers = ' | '.join(f'{float(chosen[group][column].split()[0]):.3f}' for group in groups)
    assert f'| {numbers} |' in (Path(__file__).parents[2] / 'README.md').read_text()
    for group in ('no attention', *groups[1:]):
        assert chosen[group]['verdict'] == 'worse'
    longest = max(float(row['seconds']) for row in rows if row['group'] == 'message passing')
    assert float(chosen[MASKED]['seconds']) < 1.1 * longest
