from __future__ import annotations

from pathlib import Path

from PIL import Image

from benchmarks.figures import FIGURES, Lines, draw_figures
from benchmarks.registry import BENCHMARKS
from benchmarks.report import RESULTS
from benchmarks.report.tables import Table


def test_what_is_drawn_is_in_the_table() -> None:
    for name, figure in FIGURES.items():
        assert name in {table for benchmark in BENCHMARKS.values() for table in benchmark.tables}
        table = Table(RESULTS, name)
        named = (figure.size, figure.line) if isinstance(figure, Lines) else figure.labels
        for column in (*named, figure.value, *([figure.panel] if figure.panel else [])):
            assert table.column(column), (name, column)


def test_tables_and_numbers_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    (tmp_path / 'digits.csv').write_text('gt.layer_type,test accuracy\nGINE+GRF,0.97 ± 0.01\nGINE+None,\n')
    (tmp_path / 'sampler.csv').write_text('graph,nodes,method,speed / torch_sparse\nring,10,torch_sparse.random_walk,1.0\n')
    (tmp_path / 'memory.csv').write_text('m = d,method,peak bytes per node and head\n4,edges,8\n16,edges,nan\n16,features,64\n')
    draw_figures(tmp_path)
    assert {path.stem for path in tmp_path.glob('*.png')} == {'digits', 'memory'}
    for name in ('digits', 'memory'):
        with Image.open(tmp_path / f'{name}.png') as image:
            assert min(image.size) > 50


def test_drawn_alike_each_time(tmp_path: Path) -> None:
    (tmp_path / 'digits.csv').write_text('gt.layer_type,test accuracy\nGINE+GRF,0.97 ± 0.01\n')
    pictures = []
    for _ in range(2):
        draw_figures(tmp_path)
        pictures.append((tmp_path / 'digits.png').read_bytes())
    assert pictures[0] == pictures[1]
