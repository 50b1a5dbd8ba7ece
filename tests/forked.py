"""Processes that start with the libraries imported, which costs each process seconds otherwise."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
import warnings
from pathlib import Path

#: Imported once, by the server that all processes are forked from. Nothing of this package is, and nothing of GraphGym.
LIBRARIES = ['torch', 'torch._dynamo', 'torch_geometric', 'torch_geometric.data', 'pytorch_lightning', 'forked']


class Forked:
    """Starts ``python -W ignore ARGUMENTS``, where the arguments start with a file, with ``-m`` or with ``-c``.

    The process has one thread, imports what this one can import, and knows nothing else of it.
    """

    def __init__(self, *arguments: str, cwd: Path | None = None, **variables: str) -> None:
        context = multiprocessing.get_context('forkserver')
        context.set_forkserver_preload(LIBRARIES)
        self._folder = tempfile.TemporaryDirectory()
        self._streams = [Path(self._folder.name, name) for name in ('stdout', 'stderr')]
        self._process = context.Process(target=_run, args=(arguments, cwd or Path.cwd(), variables, self._streams))
        self._process.start()

    def wait(self, timeout: float = 300) -> tuple[int | None, str, str]:
        """Returns exit status, standard output and standard error.

        After the timeout, the status is None and the error ends with the stack of each thread.
        """
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            assert self._process.pid is not None
            os.kill(self._process.pid, signal.SIGUSR1)
            self._process.join(1)
            self._process.kill()
            self._process.join()
        stdout, stderr = (path.read_text() if path.exists() else '' for path in self._streams)
        self._folder.cleanup()
        return status, stdout, stderr


def _run(arguments: tuple[str, ...], cwd: Path, variables: dict[str, str], streams: list[Path]) -> None:
    import torch

    for descriptor, path in enumerate(streams, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
    faulthandler.register(signal.SIGUSR1)
    os.environ.update(variables)
    os.chdir(cwd)
    warnings.simplefilter('ignore')
    torch.set_num_threads(1)
    if arguments[0] == '-c':
        sys.argv = ['-c', *arguments[2:]]
        exec(compile(arguments[1], '<string>', 'exec'), {'__name__': '__main__'})
    elif arguments[0] == '-m':
        sys.argv = list(arguments[1:])
        sys.path.insert(0, str(cwd))
        runpy.run_module(arguments[1], run_name='__main__', alter_sys=True)
    else:
        sys.argv = list(arguments)
        sys.path.insert(0, str(Path(cwd, arguments[0]).parent))
        runpy.run_path(arguments[0], run_name='__main__')
