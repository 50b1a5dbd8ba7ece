"""Files that hold the tables of all processes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from pyg_topomask.distributed.storage import Storage


class FirstOfTwo:
    """What the first of two processes sees."""

    size, rank = 2, 0

    def together(self, compute: Callable[[], Any]) -> Any:
        return compute()

    def gather(self, value: Any) -> list[Any]:
        return [value, None]


def test_tables_share_nothing_with_other_files_and_runs(tmp_path: Path) -> None:
    (tmp_path / 'edges.bin').write_bytes(b'an edge list')

    def table() -> torch.Tensor:
        return Storage(tmp_path).table('edges', (4,), torch.long, FirstOfTwo(), torch.device('cpu'))

    first, second = table().fill_(7), table().fill_(9)
    assert first.tolist() == [7, 7, 7, 7]
    assert second.tolist() == [9, 9, 9, 9]
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [('edges.bin', b'an edge list')]
