from __future__ import annotations

from pathlib import Path

import pytest
import torch

YAML = """
out_dir: {out}
seed: 3
recommend:
  dataset: files
  dir: {folder}
  files: {{train: [train.txt], test: [test.txt]}}
  embedding_dim: 8
  batch_size: 128
  max_epoch: 4
  k: 5
  device: cpu
  progress: False
  MGFormer: {{svd_dim: 4}}
"""


@pytest.fixture
def run_cfg(tmp_path: Path) -> Path:
    """A YAML beside a small data set of two communities, with ids that have gaps and start at 100."""
    likes = torch.rand(40, 30) < torch.where((torch.arange(40)[:, None] < 20) == (torch.arange(30) < 15), 0.7, 0.05)
    test = torch.rand(40, 30) < 0.2
    for name, known in (('train', likes & ~test), ('test', likes & test)):
        lines = [' '.join(map(str, [100 + 2 * user, *(5 * known[user].nonzero()[:, 0]).tolist()])) for user in range(40)]
        (tmp_path / f'{name}.txt').write_text('\n'.join(lines) + '\n')
    path = tmp_path / 'small.yaml'
    path.write_text(YAML.format(out=tmp_path / 'out', folder=tmp_path))
    return path
