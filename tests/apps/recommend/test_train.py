from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from csv_tables import rows_of

pytest.importorskip('yacs')
pytest.importorskip('pytorch_lightning')

from pyg_topomask.__main__ import main
from pyg_topomask.apps.recommend.interaction_files import read_interactions
from pyg_topomask.apps.recommend.options import load_config
from pyg_topomask.apps.recommend.runner import load_run, recommend, train
from pyg_topomask.apps.runs.checkpoint import save_checkpoint
from pyg_topomask.apps.runs.run import locked
from pyg_topomask.utils.configs import is_recommendation

CONFIGS = Path(__file__).parents[3] / 'graphgps_configs'


def test_training_changes_every_kind_of_parameter(run_cfg: Path) -> None:
    out = run_cfg.parent / 'out' / 'small' / 'MGFormer' / '3'
    [result] = train(run_cfg, ['recommend.max_epoch', '2'])
    assert 0 <= result['test_recall@5'] <= 1
    assert {'test_unpopular recall@5', 'val_ndcg@5', 'seconds_per_epoch'} <= set(result)
    assert json.loads((out / 'result.json').read_text())['test_ndcg@5'] == result['test_ndcg@5']
    assert [row['epoch'] for row in rows_of(out / 'metrics.csv')] == ['0', '1']
    best, last = (torch.load(out / 'checkpoints' / f'{name}.pt', weights_only=True)['model'] for name in ('best', 'last'))
    assert set(best) == set(last)
    short = run_cfg.parent / 'short'
    train(run_cfg, ['recommend.max_epoch', '1'], out=short)
    once = torch.load(short / 'small' / 'MGFormer' / '3' / 'checkpoints' / 'last.pt', weights_only=True)['model']
    changed = {key for key in last if last[key].is_floating_point() and not torch.equal(last[key], once[key])}
    for kind in ('embedding', 'lin_q', 'lin_k', 'mask'):
        assert any(kind in key for key in changed)


def test_learns(run_cfg: Path) -> None:
    [result] = train(run_cfg, ['recommend.max_epoch', '15', 'recommend.MGFormer.lr', '0.01'])
    assert result['test_recall@5'] > 0.5  # of 8 to 10 items that are left in the community, 5; at random it is 0.2


def test_resumed_run_ends_as_an_uninterrupted_one(run_cfg: Path) -> None:
    options = ['recommend.MGFormer.dropout', '0.1', 'recommend.MGFormer.sign_flip', 'True']
    [whole] = train(run_cfg, options, out=run_cfg.parent / 'whole')
    train(run_cfg, [*options, 'recommend.max_epoch', '2'])
    [resumed] = train(run_cfg, options, resume=True)
    timeless = [{key: value for key, value in row.items() if key != 'seconds_per_epoch'} for row in (whole, resumed)]
    assert timeless[0] == timeless[1]
    paths = [run_cfg.parent / name / 'small' / 'MGFormer' / '3' / 'metrics.csv' for name in ('whole', 'out')]
    losses = [[row['loss'] for row in rows_of(path)] for path in paths]
    assert len(losses[0]) == 4
    assert losses[0] == losses[1]


def test_resume_refuses_another_experiment(run_cfg: Path) -> None:
    options = ['recommend.max_epoch', '1']
    train(run_cfg, options)
    train(run_cfg, ['recommend.max_epoch', '2', 'recommend.progress', 'True'], resume=True)
    with pytest.raises(ValueError, match=r'cannot resume .*recommend.MGFormer.lr was 0.01 and is 0.02'):
        train(run_cfg, [*options, 'recommend.MGFormer.lr', '0.02'], resume=True)


def test_early_stopping_keeps_the_best(run_cfg: Path) -> None:
    options = ['recommend.max_epoch', '60', 'recommend.patience', '3', 'recommend.MGFormer.lr', '0.1']
    [result] = train(run_cfg, options)
    assert result['epochs'] < 60
    history = rows_of(run_cfg.parent / 'out' / 'small' / 'MGFormer' / '3' / 'metrics.csv')
    values = [float(row['val_recall@5']) for row in history]
    assert result['best_epoch'] == int(np.argmax(values)) == len(values) - 4
    assert result['val_recall@5'] == max(values)


def test_without_validation_the_last_epoch_counts(run_cfg: Path) -> None:
    [result] = train(run_cfg, ['recommend.val_ratio', '0.0'])
    assert (result['epochs'], result['best_epoch']) == (4, 3)
    assert not any(key.startswith('val') for key in result)
    assert not (run_cfg.parent / 'out' / 'small' / 'MGFormer' / '3' / 'checkpoints' / 'best.pt').exists()


def test_seeds_in_one_command(run_cfg: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['train', '--cfg', str(run_cfg), '--repeat', '2', 'recommend.max_epoch', '1']) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith('InteractionDataset(users=40, items=30')
    assert [line.partition(':')[0] for line in lines[-3:-1]] == ['seed 3', 'seed 4']
    folder = run_cfg.parent / 'out' / 'small' / 'MGFormer'
    values = [json.loads((folder / seed / 'result.json').read_text()) for seed in '34']
    assert values[0]['test_ndcg@5'] != values[1]['test_ndcg@5']
    means = [np.mean([row[f'test_{name}@5'] for row in values]) for name in ('recall', 'ndcg')]
    assert lines[-1] == 'test Recall@5 {:.4f} NDCG@5 {:.4f}'.format(*means)


def test_without_test_interactions_nothing_is_trained(run_cfg: Path) -> None:
    (run_cfg.parent / 'test.txt').write_text('\n'.join((run_cfg.parent / 'train.txt').read_text().splitlines()[:3]) + '\n')
    with pytest.raises(ValueError, match=r"recommend.files.test: got \['test.txt'\] with no test interaction left; accepted"):
        train(run_cfg, ['recommend.val_ratio', '0.0'])
    assert not (run_cfg.parent / 'out').exists()


def test_groups_without_test_interactions_are_null(run_cfg: Path) -> None:
    items = torch.bincount(read_interactions(run_cfg.parent / 'train.txt')[1])
    (run_cfg.parent / 'test.txt').write_text(''.join(f'{user} {int(items.argmax())}\n' for user in range(100, 180, 2)))
    [result] = train(run_cfg, ['recommend.max_epoch', '1', 'recommend.val_ratio', '0.0'])
    assert np.isnan(result['test_unpopular recall@5'])

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    text = (run_cfg.parent / 'out' / 'small' / 'MGFormer' / '3' / 'result.json').read_text()
    written = json.loads(text, parse_constant=refuse)
    assert written['test_unpopular recall@5'] is written['test_unpopular ndcg@5'] is None
    assert written['test_popular recall@5'] == written['test_recall@5'] == result['test_recall@5']


def test_recommend_command(run_cfg: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['train', '--cfg', str(run_cfg), 'recommend.max_epoch', '6']) == 0
    run = str(run_cfg.parent / 'out' / 'small' / 'MGFormer' / '3')
    capsys.readouterr()
    assert main(['recommend', '--run', run, '--user', '178']) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + 5  # recommend.k
    assert main(['recommend', '--run', run, '--user', '178', '100', '--k', '30']) == 0
    lines = [line.split(',') for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ['user', 'rank', 'item', 'score']
    known = {tuple(pair) for pair in read_interactions(run_cfg.parent / 'train.txt').t().tolist()}
    recommended = {(int(user), int(item)) for user, _, item, _ in lines[1:]}
    assert {user for user, _ in recommended} == {100, 178}
    assert not recommended & known
    # The lists end after the items that the users do not know.
    assert len(recommended) == 2 * 30 - sum(user in (100, 178) for user, _ in known)
    scores = [float(line[3]) for line in lines[1:] if line[0] == '178']
    assert scores == sorted(scores, reverse=True)

    files = [str(run_cfg.parent / name) for name in ('top.csv', 'vectors.npz')]
    assert main(['recommend', '--run', run, '--user', '100', '--k', '3', '--out', files[0], '--embeddings', files[1]]) == 0
    assert capsys.readouterr().out == ''
    top = rows_of(Path(files[0]))
    with np.load(files[1]) as archive:
        score = archive['users'][0] @ archive['items'].T
        assert archive['user_ids'][0] == 100
        index = np.searchsorted(archive['item_ids'], [int(row['item']) for row in top])
    np.testing.assert_allclose(score[index], [float(row['score']) for row in top], atol=1e-5)
    for _ in range(2):  # nothing is left of the first call
        assert main(['recommend', '--run', run, '--user', '100', '102', '--user', '178', '--k', '1']) == 0
        assert [line.split(',')[0] for line in capsys.readouterr().out.splitlines()] == ['user', '100', '102', '178']


def copy_data(source: Path, target: Path, more_users: int = 0, shift: int = 0) -> None:
    """The files of a run in another folder, with other users."""
    target.mkdir()
    for name in ('train.txt', 'test.txt'):
        lines = [line.split() for line in (source / name).read_text().splitlines()]
        lines += [[str(200 + user), '0'] for user in range(more_users)]
        (target / name).write_text(''.join(' '.join([str(int(user) + shift), *items]) + '\n' for user, *items in lines))


def test_other_data_is_refused(run_cfg: Path) -> None:
    options = ['recommend.max_epoch', '1']
    train(run_cfg, options)
    folder = run_cfg.parent
    run = folder / 'out' / 'small' / 'MGFormer' / '3'
    copy_data(folder, folder / 'same')
    copy_data(folder, folder / 'larger', more_users=1)
    copy_data(folder, folder / 'shifted', shift=1)
    _, users, items = load_run(run)
    _, *again = load_run(run, folder / 'same')
    torch.testing.assert_close(again, [users, items])
    for name, size in (('larger', 41), ('shifted', 40)):
        message = (
            rf"recommend\.dir: got '.*{name}' with InteractionDataset\(users={size}, .*\); accepted: the users and items "
            rf"that \S*MGFormer/3\S* was trained on, those of '{folder}'"
        )
        with pytest.raises(ValueError, match=message):
            load_run(run, folder / name)
        with pytest.raises(ValueError, match=message):
            train(run_cfg, [*options, 'recommend.dir', str(folder / name)], resume=True)
    # The same users and items with other interactions: the run does not resume, but its model serves them.
    copy_data(folder, folder / 'changed')
    lines = (folder / 'changed' / 'train.txt').read_text().splitlines()
    (folder / 'changed' / 'train.txt').write_text('\n'.join([lines[0].rpartition(' ')[0], *lines[1:]]) + '\n')
    assert load_run(run, folder / 'changed')[0].fingerprint == load_run(run)[0].fingerprint
    with pytest.raises(ValueError, match=r"^recommend.dir: got '.*changed'; accepted: the interactions that \S*last\.pt"):
        train(run_cfg, [*options, 'recommend.dir', str(folder / 'changed')], resume=True)


def test_folder_named_by_a_number(run_cfg: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    copy_data(run_cfg.parent, run_cfg.parent / '2024')
    monkeypatch.chdir(run_cfg.parent)
    train(run_cfg, ['recommend.max_epoch', '1', 'recommend.dir', '2024'])
    capsys.readouterr()
    assert main(['recommend', '--run', 'out/small/MGFormer/3', '--user', '100', '--k', '1', '--data', '2024']) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(['recommend', '--run', 'out/small/MGFormer/3', '--user', '100', '--k', '1', '--data', 'nowhere']) == 2


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['train', 'recommend.model', 'GCN'], "recommend.model: got 'GCN'; accepted: MGFormer"),
        (['train', 'recommend.dir', ''], "recommend.dir: got ''; accepted: the folder"),
        (['train', 'recommend.dataset', 'netflix'], "recommend.dataset: got 'netflix'; accepted: beauty, gowalla"),
        (['train', 'recommend.files.train', '[]'], 'recommend.files.train: got no file'),
        (['train', 'recommend.k', '31'], 'recommend.k: got 31; accepted: 1 to 30, the number of items'),
        (['train', 'recommend.val_ratio', '1.5'], 'recommend.val_ratio: got 1.5; accepted: numbers from 0 to below 1, or'),
        (
            ['train', 'recommend.val_ratio', '0.9', 'recommend.files.test', '[]'],
            'recommend.val_ratio: got 0.9; accepted: numbers from 0 to below 1, or below 0.9 without files of test',
        ),
        (['train', 'recommend.batch_size', '0'], 'recommend.batch_size: got 0'),
        (['train', 'recommend.patience', '-1'], 'recommend.patience: got -1'),
        (['train', 'recommend.device', 'tpu'], "recommend.device: got 'tpu'; accepted: auto, cpu, cuda"),
        (
            ['train', 'recommend.MGFormer.layer', '2'],
            'recommend.MGFormer.layer: got an unknown option; accepted: average',
        ),
        (['train', 'recommend.k'], 'accepted: pairs of a key'),
        (['train', 'recommend.k', 'many'], 'recommend.k'),
        (['train', '--repeat', '0'], 'repeat: got 0'),
        (
            ['train', 'recommend.MGFormer.svd_dim', '-1'],
            'recommend.MGFormer.svd_dim: got -1; accepted: whole numbers from 0',
        ),
        (
            ['train', 'recommend.MGFormer.mask', 'foo'],
            "recommend.MGFormer.mask: got 'foo'; accepted: sin_degree, adjacency, none",
        ),
        (
            ['train', 'recommend.MGFormer.heads', '7'],
            'recommend.MGFormer.heads: got 7 for',
        ),
        (
            ['train', 'recommend.MGFormer.max_degree', '-1'],
            'recommend.MGFormer.max_degree: got -1; accepted: whole numbers from 0',
        ),
        (
            ['train', 'recommend.MGFormer.layers', '0'],
            'recommend.MGFormer.layers: got 0; accepted: whole numbers from 1',
        ),
        (['train', 'recommend.MGFormer.weight', '-1'], 'recommend.MGFormer.weight: got -1.0; accepted: finite numbers'),
    ],
)
def test_bad_input_is_one_line(run_cfg: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main([arguments[0], '--cfg', str(run_cfg), *arguments[1:]]) == 2
    error = capsys.readouterr().err
    assert error.startswith('error: ')
    assert message in error
    assert error.count('\n') == 1


def test_bad_input_of_recommend(run_cfg: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(run_cfg, ['recommend.max_epoch', '1'])
    run = ['recommend', '--run', str(run_cfg.parent / 'out' / 'small' / 'MGFormer' / '3')]
    folder = run_cfg.parent
    files = ['--out', str(folder / 'top.csv'), '--embeddings', str(folder / 'vectors.npz')]
    other = folder / 'other'
    (other / 'checkpoints').mkdir(parents=True)
    (other / 'checkpoints' / 'best.pt').touch()
    (other / 'config.yaml').write_text('gt: {layers: 2}')
    before = set(folder.iterdir())
    for arguments, message in (
        (['recommend', '--run', str(other), '--user', '1'], 'accepted: the folder of a recommender that `train` wrote'),
        (['recommend', '--run', str(run_cfg.parent), '--user', '1'], 'run: got'),
        (run, 'user, embeddings: got neither'),
        ([*run, '--user', '100', '101'], 'user: got [101]; accepted: the 40 users from 100 to 178'),
        ([*run, '--user', '100', '--k', '31'], 'k: got 31; accepted: 1 to 30'),
        ([*run, '--embeddings', 'vectors.csv'], 'embeddings: got'),
        ([*run, '--embeddings', str(folder / 'absent' / 'e.npz')], "e.npz'; accepted: names of files in folders"),
        ([*run, '--user', '100', '--out', str(folder / 'absent' / 'x.csv')], "out: got '"),
        ([*run, '--user', '100', '--out', str(folder)], "out: got '"),
        ([*run, '--user', '100', '--out', str(folder / 'x.csv'), '--embeddings', 'vectors.csv'], 'embeddings: got'),
        ([*run, '--user', '100', '--out', files[3], *files[2:]], "vectors.npz', the file for embeddings; accepted: another"),
        ([*run, '--user', '101', *files], 'user: got [101]'),
        ([*run, '--user', '100', '--k', '0', *files], 'k: got 0; accepted: 1 to 30'),
        ([*run, '--user', '100', '99999999999999999999', *files], 'user: got [99999999999999999999]; accepted: the 40'),
        ([*run, *files], "top.csv' without user; accepted: a file for the items of users"),
    ):
        capsys.readouterr()
        assert main(arguments) == 2
        assert message in capsys.readouterr().err
    assert set(folder.iterdir()) == before


def test_a_second_run_in_the_folder(run_cfg: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ['recommend.max_epoch', '1']
    run = run_cfg.parent / 'out' / 'small' / 'MGFormer' / '3'
    foreign = [run / 'mine.txt', run / 'checkpoints' / 'mine.txt']
    for path in foreign:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('mine')
    train(run_cfg, options)
    assert 'replacing' not in capsys.readouterr().err
    train(run_cfg, options)
    assert f'replacing the run in {run}' in capsys.readouterr().err
    assert [path.read_text() for path in foreign] == ['mine', 'mine']
    before = {path: path.read_bytes() for path in run.rglob('*') if path.is_file()}
    with locked(run):
        for resume in (False, True):
            with pytest.raises(ValueError, match=f'^out: got {run}, where another process trains'):
                train(run_cfg, options, resume=resume)
    assert {path: path.read_bytes() for path in run.rglob('*') if path.is_file()} == before
    path = run / 'checkpoints' / 'best.pt'
    best = torch.load(path)
    save_checkpoint(path, {**best, 'best': {**best['best'], 'loss': 0.0}})
    with pytest.raises(ValueError, match=f'^{path}: got the model of another run'):
        train(run_cfg, options, resume=True)


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('recommend: {}', True),
        ('"recommend" : {k: 3}', True),
        ('{seed: 1, recommend: {}}', True),
        ('note: |\n  a\nrecommend: {}', True),
        ('note: "a\nrecommend: b"', False),
        ('gt: {recommend: 1}', False),
        ('recommend', False),
        ('recommend: [', False),
    ],
)
def test_what_is_a_recommendation(tmp_path: Path, text: str, expected: bool) -> None:
    (tmp_path / 'a.yaml').write_text(text)
    assert is_recommendation(tmp_path / 'a.yaml') == expected


def test_broken_yaml(run_cfg: Path) -> None:
    run_cfg.write_text(run_cfg.read_text() + '  nonsense: 1\n')
    with pytest.raises(ValueError, match=r'recommend.nonsense: got an unknown option; accepted: MGFormer'):
        load_config(run_cfg)
    run_cfg.write_text('recommend: [\n')
    with pytest.raises(ValueError, match='is not YAML'):
        load_config(run_cfg)


def test_diverging_run_fails(run_cfg: Path) -> None:
    options = ['recommend.MGFormer.lr', '1e36', 'recommend.max_epoch', '5']
    with pytest.raises(FloatingPointError, match='MGFormer: the loss of epoch'):
        train(run_cfg, options)


@pytest.mark.parametrize('val_ratio', ['0.1', '0.0'])
def test_run_that_diverges_in_its_last_step_fails(run_cfg: Path, capsys: pytest.CaptureFixture[str], val_ratio: str) -> None:
    options = ['recommend.MGFormer.lr', '1e30', 'recommend.max_epoch', '1', 'recommend.batch_size', '4096']
    assert main(['train', '--cfg', str(run_cfg), *options, 'recommend.val_ratio', val_ratio]) == 1
    assert 'error: MGFormer: the embeddings have NaN or infinite numbers; try a lower lr' in capsys.readouterr().err


def test_a_missing_best_model_is_not_replaced_by_the_last(run_cfg: Path) -> None:
    train(run_cfg, ['recommend.max_epoch', '1'])
    run = run_cfg.parent / 'out' / 'small' / 'MGFormer' / '3'
    (run / 'checkpoints' / 'best.pt').unlink()
    with pytest.raises(ValueError, match=r'best.pt: got no file; accepted: the model of the best epoch'):
        load_run(run)


def test_shipped_configurations() -> None:
    shipped = sorted(CONFIGS.glob('recommend/*.yaml'))
    assert [path.stem for path in shipped] == ['beauty', 'gowalla', 'lastfm', 'yelp']
    for path in shipped:
        assert is_recommendation(path)
        assert load_config(path).recommend.dataset == path.stem
    assert not is_recommendation(CONFIGS / 'digits.yaml')
    assert not is_recommendation(CONFIGS / 'absent.yaml')


def test_api(run_cfg: Path) -> None:
    train(run_cfg, ['recommend.max_epoch', '1'])
    dataset, users, items = load_run(run_cfg.parent / 'out' / 'small' / 'MGFormer' / '3')
    assert (users.shape, items.shape) == ((40, 12), (30, 12))
    assert recommend(dataset, users, items, [], k=3) == []


def test_all_seeds_are_checked_before_training(run_cfg: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['train', '--cfg', str(run_cfg), '--repeat', '2', 'seed', str(2**32 - 1)]) == 2
    assert 'seed: got 4294967295; accepted: whole numbers from 0 to 4294967294' in capsys.readouterr().err
    assert not (run_cfg.parent / 'out').exists()
