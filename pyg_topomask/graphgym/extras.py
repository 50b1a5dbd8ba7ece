r"""The check that what the :obj:`graphgym` extra installs is there."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ['require_graphgym']


def require_graphgym() -> None:
    r"""Raises an :class:`ImportError` that names the extra if a library that GraphGym needs is missing.

    GraphGym itself only warns without them, and fails later with errors that do not say why.
    """
    # PyG accepts either of the two names under which PyTorch Lightning is published.
    alternatives = {'yacs': ['yacs'], 'pytorch-lightning': ['lightning', 'pytorch_lightning'], 'tqdm': ['tqdm']}
    alternatives['scikit-learn'] = ['sklearn']
    missing = [name for name, modules in alternatives.items() if not any(map(find_spec, modules))]
    if missing:
        raise ImportError(f'pyg_topomask.graphgym needs {", ".join(missing)}: install pyg_topomask with its extra [graphgym]')
