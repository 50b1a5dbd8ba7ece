r"""What a trained k-MIP-GT attends to: its attention graphs, out-degrees, and how close it is to full attention."""

from __future__ import annotations

import csv
import shutil
import statistics
import tempfile
from pathlib import Path

from benchmarks.harness import write_table
from pyg_topomask.apps.inspect.attention_report import inspect_attention
from pyg_topomask.apps.train import train

__all__ = ['run']

CONFIG = Path(__file__).parents[1] / 'graphgps_configs' / 'digits.yaml'
K = 10
PICTURES = ('attention-0', 'degrees', 'cumulative-full', 'distance')


def run(quick: bool, folder: Path) -> None:
    options = ['gt.layer_type', 'GINE+KMIP', 'topomask.KMIP.k', str(K)]
    options += ['topomask.transforms', '[]', 'optim.max_epoch', '1' if quick else '40']
    graphs = 2 if quick else 20
    with tempfile.TemporaryDirectory() as out:
        train(CONFIG, options, out=out)
        rows = inspect_attention(CONFIG, options, graphs=graphs, out=out)
        folder.mkdir(parents=True, exist_ok=True)
        written = Path(out) / CONFIG.stem / 'attention'
        for name in PICTURES:
            shutil.copy(written / f'{name}.png', folder / f'kmip_inside_{name}.png')
        rows = [{**row, **_weight_in_full(written / 'full.csv', row['layer'])} for row in rows]
    note = (
        f'The digits as 8x8 grid graphs, the model of the README with k-MIP attention (k = {K}) in place of GRF, seed 0'
        f'{", a smoke run of one epoch" if quick else ""}; the first {graphs} graphs of the test split. The pictures beside '
        f'this table are those of the thesis: attention graphs (Fig. 6.9) and out-degrees (Fig. 6.10), there on superpixels of '
        f'CIFAR10; weight in full attention of the keys with the largest inner products (Fig. 6.7) and distance to full '
        f'attention (Fig. 6.6), there on MalNet-Tiny. "of the first" are the weights of the largest coefficients of a node, '
        f'"in full attention" those with these queries and keys that softmax over all nodes would have.'
    )
    write_table('kmip_inside', 'Inside k-MIP attention', note, rows, folder)


def _weight_in_full(path: Path, layer: object) -> dict[str, float]:
    r"""Returns the share of full attention that goes to the first keys of a layer, over graphs and heads."""
    with path.open(newline='') as file:
        rows = [row for row in csv.DictReader(file) if row['layer'] == str(layer)]
    return {
        f'of the first {k} in full attention': statistics.mean(
            float(row['weight in full attention']) for row in rows if row['k'] == str(k)
        )
        for k in (1, K)
    }
