r"""The command line: ``pyg-topomask``, or ``python -m pyg_topomask``."""

from __future__ import annotations

import argparse
import errno
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pyg_topomask import __version__
from pyg_topomask.utils.configs import check_overrides, find_config, is_recommendation
from pyg_topomask.utils.garbage import importing
from pyg_topomask.utils.options import did_you_mean


class _Parser(argparse.ArgumentParser):
    r"""A parser without abbreviations, by which :obj:`advise --seed 3` would train with three seeds."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, 'allow_abbrev': False})


def _parser() -> _Parser:
    parser = _Parser('pyg-topomask', description='Linear attention with topological masks.')
    parser.add_argument('--version', action='version', version=f'pyg-topomask {__version__}')
    commands = parser.add_subparsers(dest='command', required=True, metavar='COMMAND')

    common = _Parser(parser.prog, add_help=False)
    common.add_argument('--cfg', required=True, metavar='NAME', help='a YAML file, or one of `list configs`')
    common.add_argument('--out', metavar='DIR', help='the output folder (default: out_dir of the YAML)')
    common.add_argument('options', nargs='*', metavar='KEY VALUE', help='override options, such as gt.layers 2')

    advice = commands.add_parser('advise', help='say whether a mask helps on built-in data, on a YAML, or on a file of graphs')
    advice.add_argument('--cfg', metavar='NAME', help='a YAML file, or one of `list configs` (default: random trees)')
    advice.add_argument('--data', metavar='FILE', help='graphs instead: a .pt of torch.save, .graphml, or edges in .csv')
    advice.add_argument('--nodes', metavar='FILE', help='the table of nodes of a table of edges, with ids and labels')
    advice.add_argument('--label', metavar='NAME', help='the name of the labels in the file (default: y or label)')
    advice.add_argument('--directed', action='store_true', help='edges of the table lead one way')
    advice.add_argument('--regression', action='store_true', help='labels that are whole numbers are numbers to predict')
    advice.add_argument('--seeds', type=int, default=3, metavar='N', help='train with N seeds (default: 3)')
    words = 'the time for all trainings; if it is short, they have fewer epochs (default: 20)'
    advice.add_argument('--minutes', type=float, default=20.0, metavar='N', help=words)
    advice.add_argument('--out', metavar='DIR', help='the output folder (default: out_dir of the YAML)')
    advice.add_argument('--resume', action='store_true', help='keep what an earlier call has trained')
    advice.add_argument('options', nargs='*', metavar='KEY VALUE', help='override options, such as optim.max_epoch 10')

    train = commands.add_parser('train', parents=[common], help='train the model of a YAML')
    train.add_argument('--resume', action='store_true', help='continue after the last checkpoint')
    train.add_argument('--repeat', type=int, default=1, metavar='N', help='train with N seeds (default: 1)')

    compare = commands.add_parser('compare', help='compare finished runs over their seeds')
    compare.add_argument('runs', nargs='+', metavar='DIR', help='folders of runs, such as results/digits')
    compare.add_argument('--metric', metavar='NAME', help='a metric in result.json (default: the test metric)')

    serve = commands.add_parser('recommend', help='print top items of users, or export embeddings, of a trained model')
    serve.add_argument('--run', required=True, metavar='DIR', help='the folder of the run')
    words = 'the users, by their ids in the data'
    serve.add_argument('--user', nargs='+', action='extend', default=[], metavar='ID', help=words)
    serve.add_argument('--k', type=int, metavar='N', help='the number of items (default: recommend.k of the run)')
    serve.add_argument('--out', metavar='FILE', help='write them as CSV to a file, instead of printing them')
    serve.add_argument('--embeddings', metavar='FILE.npz', help='write the embeddings of all users and items')
    serve.add_argument('--data', metavar='DIR', help='the folder of the data (default: recommend.dir of the run)')

    inspect = commands.add_parser('inspect', parents=[common], help='measure the mask of a YAML, and the error of its walks')
    inspect.add_argument('--graphs', type=int, default=8, metavar='N', help='the first N graphs (default: 8)')
    inspect.add_argument('--html', metavar='FILE', help='also write an interactive page of the mask')

    attention = commands.add_parser(
        'inspect-attention', parents=[common], help='show the attention of a trained model (or: inspect attention)'
    )
    attention.add_argument('--checkpoint', metavar='FILE', help='a checkpoint of train (default: the best model of this YAML)')
    attention.add_argument('--graphs', type=int, default=1, metavar='N', help='the first N test graphs (default: 1)')

    graphgps = commands.add_parser('graphgps', help='in a GraphGPS checkout: run its main.py with our attentions')
    graphgps.add_argument('options', nargs='*', metavar='...', help='the arguments of main.py')

    names = commands.add_parser('list', help='print the names that a YAML can use, with descriptions')
    names.add_argument(
        'words', nargs='*', metavar='WORD', help='a section, such as masks or configs, or part of a name, such as Hop'
    )
    return parser


def _call(arguments: argparse.Namespace) -> Callable[[], object]:
    r"""Returns the call of a command. It imports only what this one needs, because imports take seconds."""
    match arguments.command:
        case 'train':
            if is_recommendation(arguments.cfg):
                from pyg_topomask.apps.recommend.runner import train
            else:
                from pyg_topomask.apps.train import train

            return partial(train, arguments.cfg, arguments.options, arguments.resume, arguments.repeat, arguments.out)
        case 'advise':
            from pyg_topomask.apps.advise import advise

            given = {key: value for key, value in vars(arguments).items() if key not in ('command', 'cfg')}
            return partial(advise, arguments.cfg, **given)
        case 'compare':
            from pyg_topomask.apps.runs.compare import compare
            from pyg_topomask.apps.runs.tables import markdown_table

            return lambda: print(markdown_table(compare(arguments.runs, arguments.metric)))
        case 'recommend':
            from pyg_topomask.apps.recommend.runner import serve

            return partial(
                serve, arguments.run, arguments.user, arguments.k, arguments.out, arguments.embeddings, arguments.data
            )
        case 'inspect':
            from pyg_topomask.apps.inspect.mask_report import inspect

            return partial(inspect, arguments.cfg, arguments.options, arguments.graphs, arguments.out, html=arguments.html)
        case 'inspect-attention':
            from pyg_topomask.apps.inspect.attention_report import inspect_attention

            return partial(
                inspect_attention,
                arguments.cfg,
                arguments.options,
                arguments.checkpoint,
                arguments.graphs,
                arguments.out,
            )
    from pyg_topomask.apps.catalog import format_catalog, stored_sections

    if 'pyg_topomask.graphgym' in sys.modules:  # a script that calls main may have registered names
        from pyg_topomask.apps.inspect.make_catalog import catalog as sections
    else:
        sections = stored_sections
    return lambda: print(format_catalog(sections(), arguments.words))


def _graphgps(argv: Sequence[str]) -> int:
    from pyg_topomask.apps.launch import find_main, launch, with_config

    try:
        script, argv = find_main(Path.cwd()), with_config(argv)
    except (OSError, ValueError) as error:
        print(f'error: {error}', file=sys.stderr)
        return 2
    launch(script, argv)  # errors end with a traceback, as in GraphGPS
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    r"""Runs one command and returns the exit status: 0, 1 if training failed or the disk is full, 2 for bad input, 130 after
    Ctrl-C.

    Args:
        argv (list, optional): The arguments, instead of those of the process. (default: :obj:`None`)
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    if argv[:1] == ['graphgps'] and argv[1:] not in (['-h'], ['--help']):
        return _graphgps(argv[1:])  # GraphGPS parses the rest
    if argv[:2] == ['inspect', 'attention']:
        argv = ['inspect-attention', *argv[2:]]
    parser = _parser()
    # Overrides may appear before, between and after flags, but argparse accepts only one group.
    arguments, rest = parser.parse_known_args(argv)
    if rest and ('options' not in arguments or any(word.startswith('--') for word in rest)):
        wrong = next((word for word in rest if word.startswith('--')), rest[0])
        flags = vars(arguments).keys() - {'command', 'options', 'runs', 'words'}  # without what has no flag
        meant = did_you_mean(wrong.split('=')[0], [f'--{name}' for name in sorted(flags)])
        parser.error(f'unrecognized arguments: {" ".join(rest)}' + (f'; {meant}' if meant else ''))
    if rest:
        arguments.options += rest
    try:
        if 'options' in arguments:  # before imports, which take seconds
            check_overrides(arguments.options)
        if getattr(arguments, 'cfg', None) is not None:
            find_config(arguments.cfg)
        with importing():
            call = _call(arguments)
        call()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has closed the pipe: flush nothing at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, ImportError, OSError) as error:
        print(f'error: {" ".join(str(error).split())}', file=sys.stderr)  # messages of yacs have many lines
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        return 1 if full else 2
    except FloatingPointError as error:
        print(f'error: {error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        if arguments.command not in ('train', 'advise'):
            print('\ninterrupted', file=sys.stderr)
            return 130
        again = shlex.join(argv if '--resume' in argv else [argv[0], '--resume', *argv[1:]])
        print(f'\ninterrupted; to go on from the last checkpoint: {_command()} {again}', file=sys.stderr)
        return 130
    return 0


def _command() -> str:
    r"""Returns the command that started this process, without arguments. It may be a user's script that registers names."""
    script = Path(getattr(sys.modules['__main__'], '__file__', None) or __file__)
    if script.stem == 'pyg-topomask':
        return script.stem
    is_module = script.resolve() == Path(__file__).resolve()
    return 'python -m pyg_topomask' if is_module else f'python {shlex.quote(sys.argv[0])}'


if __name__ == '__main__':
    sys.exit(main())
