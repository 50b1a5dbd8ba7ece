"""Every command with arguments of every kind, in this process: what is wrong is one line, never a traceback."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fuzz.strategies import fuzz
from grids import covering
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip('yacs')

from sklearn.datasets import load_digits

from pyg_topomask.__main__ import _parser, main

pytestmark = pytest.mark.filterwarnings('ignore')  # Lightning has advice on such runs

DIGITS = Path(__file__).parents[2] / 'graphgps_configs' / 'digits.yaml'
SMALL = """
gt.layers 1 gt.n_heads 2 gt.dim_hidden 4 gnn.dim_inner 4 train.batch_size 64 optim.max_epoch 1 optim.num_warmup_epochs 0
topomask.progress False topomask.transforms []
"""
COMMANDS = {'advise', 'train', 'compare', 'recommend', 'inspect', 'inspect-attention', 'graphgps', 'list'}
FILES: dict[str, bytes] = {
    'empty.yaml': b'',
    'list.yaml': b'- 1\n- 2\n',
    'number.yaml': b'3',
    'broken.yaml': b'gt: [1, {',
    'tab.yaml': b'gt:\n\tlayers: 1',
    'binary.yaml': bytes(range(256)),
    'unknown.yaml': b'nonsense: 1\n',
    'kind.yaml': b'gt: 3\n',
    'text.yaml': b'gt:\n  layers: three\n',
    'python.yaml': b'gt: !!python/object:os.system {}\n',
    'recommend.yaml': b'recommend: 3\n',
    'recommend-none.yaml': b'recommend:\n',
    'recommend-unknown.yaml': b'recommend:\n  nonsense: 1\n',
    'recommend-absent.yaml': b'recommend:\n  dataset: files\n  dir: absent\n  files: {train: [a.txt], test: [b.txt]}\n',
}
KEYS = """
gt gt.layer_type gt.layers gt.n_heads gt.dim_hidden gt.dropout gt.nonsense gnn.dim_inner gnn.head train.batch_size
train.eval_period train.sampler train.mode optim.max_epoch optim.optimizer optim.scheduler optim.base_lr
optim.batch_accumulation optim.num_warmup_epochs dataset.name dataset.format dataset.task dataset.task_type
dataset.node_encoder_name dataset.edge_encoder_name model.type model.loss_fun model.graph_pooling metric_best topomask
topomask.GRF topomask.GRF.num_walks topomask.GRF.p_halt topomask.transforms topomask.mask topomask.svd.rank seed accelerator
devices num_threads nonsense nonsense.key .
"""
VALUES = [
    '-1',
    '0',
    '1',
    '1.5',
    'nan',
    'nonsense',
    '[]',
    '{}',
    'None',
    'True',
    '',
    '[1',
    "['Nonsense']",
    'GINE+Linear',
    'None+X',
]
OVERRIDES = st.lists(st.tuples(st.sampled_from(KEYS.split()), st.sampled_from(VALUES)), max_size=2).map(
    lambda pairs: [word for pair in pairs for word in pair]
)
NUMBERS = st.sampled_from(['-1', '0', '1', '2', '1000000', '1.5', 'x', ''])
FLAGS = st.sampled_from([[], ['--resume'], ['--nonsense'], ['--repeat', '0'], ['--repeat', 'x'], ['--help'], ['word']])


@pytest.fixture(autouse=True)
def _few_digits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    everything = load_digits()
    few = SimpleNamespace(images=everything.images[:100], target=everything.target[:100])
    monkeypatch.setattr('sklearn.datasets.load_digits', lambda: few)
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / 'folder').mkdir()


@pytest.fixture(scope='module')
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained recommender of six users and items."""
    folder = tmp_path_factory.mktemp('recommend')
    for name, template in (('train', '{u} {u} {v}'), ('test', '{u} {w}')):
        lines = [template.format(u=u, v=(u + 1) % 6, w=(u + 2) % 6) for u in range(6)]
        (folder / f'{name}.txt').write_text('\n'.join(lines) + '\n')
    (folder / 'small.yaml').write_text(
        f'out_dir: {folder}/out\nrecommend:\n  dataset: files\n  dir: {folder}\n'
        '  files: {train: [train.txt], test: [test.txt]}\n  embedding_dim: 2\n  batch_size: 4\n  max_epoch: 1\n  k: 2\n'
        '  device: cpu\n  progress: False\n  MGFormer: {svd_dim: 2}\n'
    )
    assert main(['train', '--cfg', str(folder / 'small.yaml')]) == 0
    return folder / 'out' / 'small' / 'MGFormer' / '0'


def test_every_command_is_fuzzed() -> None:
    (commands,) = (action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction))
    assert set(commands.choices) == COMMANDS


def status(capsys: pytest.CaptureFixture[str], arguments: Sequence[str]) -> Any:
    """The exit status of a command; what went wrong stands in one line, argparse's after the usage."""
    threads = torch.get_num_threads()
    try:
        code = main(arguments)
    except SystemExit as exit:
        code = exit.code
    finally:
        torch.set_num_threads(threads)
    err = capsys.readouterr().err
    assert code in (0, 1, 2), f'status {code}: {err}'
    assert 'Traceback' not in err
    assert code == 0 or 'error: ' in err.splitlines()[-1], err
    return code


@pytest.mark.parametrize(
    ('command', 'file'),
    covering([['train'], ['inspect'], ['inspect', 'attention'], ['inspect-attention']], [*FILES, 'absent.yaml', 'folder', '']),
)
def test_what_is_no_configuration_is_refused(capsys: pytest.CaptureFixture[str], command: list[str], file: str) -> None:
    # Nothing but defaults is a configuration, of a data set that would have to be downloaded.
    overrides = ['dataset.format', 'nonsense'] if file == 'empty.yaml' else []
    assert status(capsys, [*command, '--cfg', file, '--out', 'out', *overrides]) == 2


@fuzz(5)
@given(OVERRIDES, FLAGS)
def test_train(capsys: pytest.CaptureFixture[str], overrides: list[str], flags: list[str]) -> None:
    status(capsys, ['train', '--cfg', str(DIGITS), '--out', 'out', *SMALL.split(), *overrides, *flags])


@fuzz(10)
@given(st.sampled_from([['inspect'], ['inspect-attention'], ['inspect', 'attention']]), OVERRIDES, NUMBERS, FLAGS)
def test_inspect(
    capsys: pytest.CaptureFixture[str], command: list[str], overrides: list[str], number: str, flags: list[str]
) -> None:
    words = [*command, '--cfg', str(DIGITS), '--out', 'out', f'--graphs={number}', *SMALL.split(), *overrides, *flags]
    if command != ['inspect']:
        words += ['--checkpoint', 'binary.yaml']
    status(capsys, words)


@fuzz(20)
@given(
    st.sampled_from(['run', 'run', 'run', 'absent', 'folder', '']),
    st.lists(st.sampled_from(['0', '5', '6', '-1', '100000000000000000000', 'x']), max_size=2),
    NUMBERS,
    st.sampled_from([[], ['--out', 'out.csv'], ['--out', 'folder'], ['--out', 'absent/out.csv']]),
    st.sampled_from([[], ['--embeddings', 'e.npz'], ['--embeddings', 'e.txt'], ['--embeddings', 'absent/e.npz']]),
    st.sampled_from([[], ['--data', 'absent'], ['--data', 'folder'], ['--data', 'list.yaml'], ['--nonsense'], ['word']]),
)
def test_recommend(
    capsys: pytest.CaptureFixture[str],
    run: Path,
    folder: str,
    users: list[str],
    number: str,
    out: list[str],
    embeddings: list[str],
    rest: list[str],
) -> None:
    words = ['recommend', '--run', str(run) if folder == 'run' else folder, f'--k={number}', *out, *embeddings, *rest]
    status(capsys, [*words, '--user', *users] if users else words)


@pytest.mark.parametrize(
    ('folders', 'code', 'metric', 'known'),
    covering(
        [
            pytest.param(['run'], 0),
            pytest.param(['run', 'run'], 0),
            pytest.param(['run', 'folder'], 2),
            pytest.param(['absent'], 2),
            pytest.param([''], 2),
            pytest.param(['list.yaml'], 2),
        ],
        [pytest.param([], True), pytest.param(['--metric', 'test_ndcg@2'], True), pytest.param(['--metric', 'x'], False)],
    ),
)
def test_compare(
    capsys: pytest.CaptureFixture[str], run: Path, folders: list[str], code: int, metric: list[str], known: bool
) -> None:
    words = [str(run.parent) if folder == 'run' else folder for folder in folders]
    assert status(capsys, ['compare', *words, *metric]) == (code if known else 2)


def test_compare_broken_results(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path('runs') / '0' / 'result.json'
    path.parent.mkdir(parents=True)
    for content in (*FILES.values(), b'{}', b'[]', b'{"metric": 3}', b'{"metric": "test_accuracy"}'):
        path.write_bytes(content)
        assert status(capsys, ['compare', 'runs']) == 2, content


RECOMMEND_KEYS = """
recommend recommend.model recommend.dataset recommend.dir recommend.files recommend.embedding_dim recommend.batch_size
recommend.max_epoch recommend.eval_period recommend.k recommend.patience recommend.device recommend.baselines
recommend.MGFormer recommend.MGFormer.svd_dim recommend.nonsense seed nonsense
"""


@fuzz(10)
@given(st.lists(st.tuples(st.sampled_from(RECOMMEND_KEYS.split()), st.sampled_from(VALUES)), max_size=2), FLAGS)
def test_train_a_recommender(
    capsys: pytest.CaptureFixture[str], run: Path, overrides: list[tuple[str, str]], flags: list[str]
) -> None:
    words = [word for pair in overrides for word in pair]
    status(capsys, ['train', '--cfg', str(run.parents[2].parent / 'small.yaml'), '--out', 'out', *words, *flags])


@pytest.mark.parametrize(
    ('arguments', 'code'), [([], 2), (['--cfg', 'absent.yaml'], 2), (['--help'], 0), (['-h', 'x'], 2), (['nonsense'], 2)]
)
def test_graphgps_outside_a_checkout(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int) -> None:
    assert status(capsys, ['graphgps', *arguments]) == code


@pytest.mark.parametrize(('arguments', 'code'), [([], 0), (['nonsense'], 2), (['--nonsense'], 2), (['--help'], 0)])
def test_list(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int) -> None:
    assert status(capsys, ['list', *arguments]) == code


@pytest.mark.parametrize(
    'arguments',
    [[], [''], ['nonsense'], ['--nonsense'], ['train'], ['compare'], ['recommend'], ['inspect'], ['advise', '--data']],
)
def test_incomplete_commands(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert status(capsys, arguments) == 2
