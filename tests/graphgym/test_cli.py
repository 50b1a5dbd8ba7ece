from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import pytest
from csv_tables import rows_of
from torch_geometric.graphgym.config import cfg

import pyg_topomask
from pyg_topomask.__main__ import main
from pyg_topomask.apps.catalog import stored_sections
from pyg_topomask.apps.inspect.make_catalog import catalog, first_sentence
from pyg_topomask.graphgym import register_mask
from pyg_topomask.graphgym.names.attentions import ATTENTIONS
from pyg_topomask.graphgym.names.masks import MASKS
from pyg_topomask.masks import PackingMask

ROOT = Path(pyg_topomask.__file__).parents[1]


def start(*arguments: str) -> subprocess.Popen[str]:
    paths = [str(ROOT), os.environ.get('PYTHONPATH', '')]
    return subprocess.Popen(
        [sys.executable, '-m', 'pyg_topomask', *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background jobs ignore Ctrl-C, and hand that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(paths), 'OMP_NUM_THREADS': '1'},
    )


@pytest.mark.parametrize('arguments', [['--help'], ['train', '--help'], ['list'], ['list', 'configs']])
def test_help_and_list_wait_for_no_library(arguments: list[str]) -> None:
    code = (
        f'import sys; import pyg_topomask.__main__ as command\ntry:\n    command.main({arguments})\nexcept SystemExit: pass\n'
    )
    code += "print({name for name in sys.modules if name in ('torch', 'numpy', 'yacs', 'pytorch_lightning')}, file=sys.stderr)"
    result = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.stderr == 'set()\n'
    assert 'digits' in result.stdout or 'Linear attention' in result.stdout or 'NAME' in result.stdout


def test_list_prints_what_the_docstrings_say(capsys: pytest.CaptureFixture[str]) -> None:
    sections = catalog()
    assert stored_sections() == sections, 'run python -m pyg_topomask.apps.inspect.make_catalog'
    assert set(sections['masks']) == set(MASKS)
    assert {'DenseMask', 'SumMask'} <= set(sections['masks in Python'])
    assert main(['list']) == 0
    printed = capsys.readouterr().out
    words = ' '.join(printed.split())
    for section, lines in sections.items():
        assert f'\n{section}:\n' in f'\n{printed}'
        for name, line in lines.items():
            assert line.endswith('.'), (name, line)
            assert f'{name} {line}' in words
    assert max(map(len, printed.splitlines())) <= 100


def test_list_holds_names_that_a_script_registers(capsys: pytest.CaptureFixture[str]) -> None:
    with mock.patch.dict(ATTENTIONS), mock.patch.dict(MASKS):
        register_mask('Mine', type('MineMask', (PackingMask,), {'__doc__': 'A mask of mine.'}))
        assert main(['list', 'mine']) == 0
    assert capsys.readouterr().out == 'attentions:\n  Mine  A mask of mine.\n\nmasks:\n  Mine  A mask of mine.\n'


def test_list_to_a_reader_that_stops() -> None:
    with start('list') as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=60) == 1
        assert process.stderr is not None
        assert 'BrokenPipeError' not in process.stderr.read()


def test_first_sentence(subtests: pytest.Subtests) -> None:
    for docstring, sentence in [
        ('Short. More.', 'Short.'),
        ('Uses :class:`~a.b.C`, e.g. for\n:math:`[0, 1]` (Eq. 3). More.', 'Uses C, e.g. for [0, 1] (Eq. 3).'),
        ('An operator from the `"Title. More" <https://x.y>`_ paper.\n\n.. math::\n    x', 'An operator.'),
        ('A mask, from `"Title" <https://x.y>`_ (Eq. 2 and 7):\n\n.. math::\n    x', 'A mask.'),
        (r'A map :math:`\mathbf{A} \, \mathbf{B}^{\top}`: fast.', 'A map A B^T: fast.'),
        (
            r'The kernel :math:`(\mathbf{I} + \tilde{\mathbf{L}})^{-d}`, :math:`d \ge 1`. More.',
            'The kernel (I + L~)^{-d}, d >= 1.',
        ),
        ('A model (Sec. 4.4, App. C.3), and more. More.', 'A model (Sec. 4.4, App. C.3), and more.'),
        ('', ''),
    ]:
        with subtests.test(docstring=docstring, sentence=sentence):
            documented = type('Documented', (), {'__doc__': docstring})
            assert first_sentence(documented) == sentence


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['--cfg', 'absent.yaml'], "cfg: got 'absent.yaml', which is no file; accepted: YAML files, and names"),
        (['--cfg', 'old/digits.yaml'], 'the package has digits$'),
        (
            ['--cfg', 'graphgps/zinc', 'dataset.node_encoder_name', 'TypeDictNode+SignNet'],
            'instead: the encoder LapPE .* in a checkout of its repository run pyg-topomask graphgps --cfg <file>',
        ),
        (['--cfg', 'DIGITS', 'gt.nonsense', '1'], 'nonsense'),
        (['--cfg', 'DIGITS', 'gt.layers'], r"options: got 'gt.layers topomask.progress False', 3 words; accepted: pairs"),
        (['--cfg', 'DIGITS', 'gt.layer_type', 'GINE+GRX'], 'accepted: .*GRF'),
        (['--cfg', 'DIGITS', 'gt.layers', 'three'], 'gt.layers'),
        (['--cfg', 'DIGITS', 'gt', '3'], 'gt: got 3; accepted: keys and their values'),
        (['--cfg', 'DIGITS', 'name_tag', '../up'], r"name_tag: got '\.\./up'; accepted: names of files, without /"),
        (['--cfg', 'EVIL'], r"cfg: got '.*evil\.py'; accepted: YAML files, with the suffix"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, digits: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    evil = tmp_path / 'evil.py'
    evil.write_text(f'import os\nos.mkdir({str(tmp_path / "ran")!r})\ncfg = {{}}')
    files = {'DIGITS': str(digits), 'EVIL': str(evil)}
    arguments = [files.get(argument, argument) for argument in arguments]
    assert main(['train', '--out', str(tmp_path), *arguments, 'topomask.progress', 'False']) == 2
    captured = capsys.readouterr()
    assert captured.out == ''
    assert re.search(message, captured.err)
    assert captured.err.startswith('error: ')
    assert captured.err.count('\n') == 1
    assert not (tmp_path / 'ran').exists()


@pytest.mark.parametrize('content', ['- 1\n', '3', '', '# a note\n'])
def test_yaml_without_keys_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    (tmp_path / 'mine.yaml').write_text(content)
    assert main(['train', '--cfg', str(tmp_path / 'mine.yaml')]) == 2
    assert 'got a YAML of no keys' in capsys.readouterr().err


def test_overrides_may_stand_anywhere(tmp_path: Path, digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ['train', 'gt.layers', '1', '--cfg', str(digits), 'seed', '7', '--out', str(tmp_path), 'gt.layer_type', 'X']
    assert main(arguments) == 2
    assert "gt.layer_type: got 'X'" in capsys.readouterr().err
    assert (cfg.gt.layers, cfg.seed) == (1, 7)
    assert not any(tmp_path.iterdir())
    with pytest.raises(SystemExit) as exit:
        main([*arguments, '--nonsense'])
    assert exit.value.code == 2


@pytest.mark.parametrize(
    'arguments', [['advise', '--minutes', '0', '--seed', '3'], ['train', '--cfg', 'absent', '--repea', '3']]
)
def test_flags_are_not_abbreviated(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    assert re.search(r'unrecognized arguments: --(seed|repea); did you mean --\1(s|t)\?$', capsys.readouterr().err.strip())


@pytest.mark.parametrize(
    ('arguments', 'meant'),
    [
        (['train', '--cfg', 'absent', '--options', '3'], ''),
        (['list', '--words'], ''),
        (['train', 'seed', '3', '--cfg', 'absent', 'gt.layers', '1', '--repea', '3'], '; did you mean --repeat?'),
        (['advise', '--minute=5'], '; did you mean --minutes?'),
    ],
)
def test_a_wrong_flag_is_answered_with_a_flag(capsys: pytest.CaptureFixture[str], arguments: list[str], meant: str) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert re.search(rf'unrecognized arguments: [^;]*{re.escape(meant)}$', capsys.readouterr().err.strip())


@pytest.mark.parametrize('flag', ['-h', '--help'])
def test_help_of_graphgps_needs_no_checkout(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(['graphgps', flag])
    assert exit.value.code == 0
    assert capsys.readouterr().out.startswith('usage: pyg-topomask graphgps')


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(['--version'])
    assert exit.value.code == 0
    assert capsys.readouterr().out == f'pyg-topomask {pyg_topomask.__version__}\n'


@pytest.mark.parametrize(
    ('command', 'error', 'status', 'message'),
    [
        ('list', OSError(errno.ENOSPC, 'No space left on device'), 1, 'error: .*No space left on device'),
        ('list', OSError(errno.EDQUOT, 'Disk quota exceeded'), 1, 'error: .*Disk quota exceeded'),
        ('list', OSError(errno.EACCES, 'Permission denied'), 2, 'error: .*Permission denied'),
        ('list', ValueError('bad\ninput'), 2, 'error: bad input'),
        ('list', ImportError('no package'), 2, 'error: no package'),
        ('advise', FloatingPointError('the loss is NaN'), 1, 'error: the loss is NaN'),
        ('advise', KeyboardInterrupt(), 130, 'interrupted; to go on from the last checkpoint: .* advise --resume'),
        ('list', KeyboardInterrupt(), 130, 'interrupted'),
    ],
)
def test_status_and_message_of_errors(
    command: str,
    error: BaseException,
    status: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def call(*arguments: object) -> None:
        raise error

    monkeypatch.setattr('pyg_topomask.__main__._call', call)
    assert main([command]) == status
    assert re.fullmatch(message, capsys.readouterr().err.strip())


@pytest.mark.parametrize('resume', [[], ['--resume']])
@pytest.mark.parametrize('script', [None, 'my scripts/hop_mask.py', '/usr/bin/pyg-topomask'])
def test_the_command_to_go_on_is_one_for_a_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, resume: list[str], script: str | None
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr('pyg_topomask.__main__._call', interrupt)
    monkeypatch.setattr(
        sys.modules['__main__'], '__file__', script or str(ROOT / 'pyg_topomask' / '__main__.py'), raising=False
    )
    monkeypatch.setattr(sys, 'argv', [script])
    monkeypatch.chdir(tmp_path)
    Path('my runs').mkdir()
    Path('my runs/a.yaml').touch()
    words = ['--cfg', 'my runs/a.yaml', 'topomask.mask', '{sum: [GRF, Causal]}', 'name_tag', "it's"]
    assert main(['train', *resume, *words]) == 130
    command = capsys.readouterr().err.partition('last checkpoint: ')[2]
    program = {None: ['python', '-m', 'pyg_topomask'], '/usr/bin/pyg-topomask': ['pyg-topomask']}.get(
        script, ['python', script]
    )
    assert shlex.split(command) == [*program, 'train', '--resume', *words]


def test_interrupt_and_resume(tmp_path: Path, digits: Path, small: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    small += ['topomask.transforms', '[]', 'gt.layer_type', 'GINE+Linear', 'optim.max_epoch', '40']
    arguments = ['train', '--cfg', str(digits), '--out', str(tmp_path), *small]
    arguments[arguments.index('topomask.progress') + 1] = 'True'
    process = start(*arguments)
    metrics = tmp_path / 'digits' / '0' / 'metrics.csv'
    deadline = time.monotonic() + 120
    while not metrics.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=400)
    assert process.returncode == 130, err
    assert 'Traceback' not in err
    assert 'python -m pyg_topomask train --resume --cfg' in err
    finished = len(metrics.read_text().splitlines()) - 1
    assert 1 <= finished < 40

    last = str(finished + 1)
    assert main([*arguments[:-1], last, '--resume']) == 0
    out, err = capfd.readouterr()
    assert out.splitlines()[-1].startswith('test accuracy 0.')
    assert 'train:' in err  # the progress bar
    assert [row['epoch'] for row in rows_of(metrics)] == [str(epoch) for epoch in range(finished + 1)]
