r"""What the mask is worth on digits: the same model with GRF, unmasked linear attention, no attention, and GRF alone."""

from __future__ import annotations

import hashlib
import tempfile
from functools import partial
from pathlib import Path

import pyg_topomask
from benchmarks.harness import compare, each, kept_runs, run_all, show, write_table

__all__ = ['CONFIG', 'code_version', 'run']

CONFIG = Path(__file__).parents[1] / 'graphgps_configs' / 'digits.yaml'
VARIANTS = ('GINE+GRF', 'GINE+Linear', 'GINE+None', 'None+GRF')
SEEDS = 5


def run(quick: bool, folder: Path) -> None:
    epochs, seeds = (1, 2) if quick else (None, SEEDS)
    jobs = [(variant, seed) for seed in range(seeds) for variant in VARIANTS]
    results = run_all(jobs, partial(_train, epochs=epochs), code_version(), kept_runs(folder, 'digits', quick))
    accuracy = {variant: [results[variant, seed] for seed in range(seeds)] for variant in VARIANTS}
    reference = accuracy[VARIANTS[0]]
    rows = []
    for variant, values in accuracy.items():
        rows.append(
            {
                'gt.layer_type': variant,
                'test accuracy': show(values, 4),
                **compare(values, reference, f'minus {VARIANTS[0]}, paired by seed', variant == VARIANTS[0], 4),
                'seeds': each(values, 4),
            }
        )
    note = (
        f'graphgps_configs/{CONFIG.name} as shipped ({"1 epoch, a smoke run" if quick else "its epochs"}), {seeds} seeds '
        f'(weights and batches; the split is fixed), test accuracy of the epoch with the best validation accuracy, on 270 test '
        f'images. Mean ± standard error. A difference below two standard errors is "not distinguishable". Message passing on '
        f'8x8 images with coordinates as features needs no global attention: the data show that training works, not that the '
        f'mask helps.'
    )
    write_table('digits', 'Digits as 8x8 grids: what the mask is worth', note, rows, folder)


def code_version() -> str:
    r"""Returns a digest of the code of the package."""
    sources = sorted(Path(pyg_topomask.__file__).parent.rglob('*.py'))
    return hashlib.sha256(b''.join(path.read_bytes() for path in sources)).hexdigest()[:12]


def _train(job: tuple[str, int], epochs: int | None) -> float:
    from pyg_topomask.apps.train import train

    variant, seed = job
    options = ['gt.layer_type', variant, 'seed', str(seed), 'topomask.progress', 'False', 'name_tag', variant.replace('+', '-')]
    if epochs is not None:
        options += ['optim.max_epoch', str(epochs)]
    with tempfile.TemporaryDirectory() as out:
        (row,) = train(CONFIG, options, out=out)
    accuracy: float = row['test_accuracy']
    return accuracy
