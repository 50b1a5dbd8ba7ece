r"""Runs benchmarks: :obj:`python -m benchmarks [--quick] [NAME ...]`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    asymmetric,
    ball_tree,
    citation,
    digits,
    estimation,
    gkat_ablations,
    gkat_speed,
    graphgps,
    grf_features,
    heat,
    images,
    interlacer,
    kmip_accuracy,
    kmip_efficiency,
    kmip_inside,
    memory,
    motifs,
    recommend,
    sampler,
    scaling,
    toeplitz,
    topk_search,
    tree,
    tu,
    video,
)

BENCHMARKS: dict[str, Callable[[bool, Path], None]] = {
    'scaling': scaling.run,
    'memory': memory.run,
    'sampler': sampler.run,
    'grf_features': grf_features.run,
    'asymmetric': asymmetric.run,
    'toeplitz': toeplitz.run,
    'tree': tree.run,
    'heat': heat.run,
    'gkat_speed': gkat_speed.run,
    'estimation': estimation.run,
    'digits': digits.run,
    'images': images.run,
    'video': video.run,
    'interlacer': interlacer.run,
    'motifs': motifs.run,
    'citation': citation.run,
    'tu': tu.run,
    'gkat_ablations': gkat_ablations.run,
    'topk_search': topk_search.run,
    'ball_tree': ball_tree.run,
    'kmip_efficiency': kmip_efficiency.run,
    'kmip_batches': kmip_efficiency.small_graphs,
    'kmip_million': kmip_efficiency.million,
    'kmip_accuracy': kmip_accuracy.run,
    'kmip_influence': kmip_accuracy.influence,
    'kmip_inside': kmip_inside.run,
    'recommend': recommend.run,
    'graphgps': graphgps.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog='python -m benchmarks', description='Runs benchmarks and writes tables and plots.')
    parser.add_argument('names', nargs='*', metavar='NAME', help=f'one or more of: {", ".join(BENCHMARKS)} (default: all)')
    parser.add_argument('--quick', action='store_true', help='small sizes, few repetitions: a smoke run, not a result')
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results', help='where to write')
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f'unknown benchmark {sorted(unknown)}; known are {sorted(BENCHMARKS)}')
    for name in arguments.names or BENCHMARKS:
        BENCHMARKS[name](arguments.quick, arguments.out)


if __name__ == '__main__':
    main()
