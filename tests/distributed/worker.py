"""What each of two processes does: python worker.py FOLDER RANK"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
import torch.distributed as dist
from sharded_cases import CASES, data_of, make_layer, partition_of, run_layer, weights_of_loss

from pyg_topomask.distributed import ShardedGraph, convert_batch_norm, mean_over_nodes, sum_gradients


def run_case(name: str, dtype: torch.dtype) -> dict[str, Any]:
    case, data = CASES[name], data_of(CASES[name].graph)
    data = data.apply(lambda value: value.to(dtype) if value.is_floating_point() else value)
    graph = ShardedGraph.from_data(data, partition_of(case.partition, dist.get_world_size()), timeout=60)
    layer = convert_batch_norm(make_layer(case, dtype), graph)
    x = graph.data.x.clone().requires_grad_()
    out = run_layer(layer, x, graph)
    loss = mean_over_nodes((out * weights_of_loss(graph.nodes, dtype)).sum(1), graph)
    loss.backward()
    sum_gradients(layer, graph)
    grads = {key: parameter.grad for key, parameter in layer.named_parameters()}
    buffers = {key: value for key, value in layer.named_buffers() if 'running' in key}
    return {'nodes': graph.nodes, 'out': out.detach(), 'x': x.grad, 'loss': loss.detach(), 'grads': grads, 'buffers': buffers}


def main(folder: Path, rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        'gloo', init_method=f'file://{folder}/store', rank=rank, world_size=2, timeout=timedelta(seconds=60)
    )
    names = sys.argv[3:] or list(CASES)
    results: dict[str, Any] = {}
    for name in names:
        for dtype in (torch.float64, torch.float32):
            try:
                results[f'{name} {dtype}'] = run_case(name, dtype)
            except Exception as error:
                import traceback
                print(name, dtype, ''.join(traceback.format_exception(error)[-4:]) if rank == 0 else '', flush=True)
                raise
    torch.save(results, folder / f'{rank}.pt')
    dist.destroy_process_group()


if __name__ == '__main__':
    main(Path(sys.argv[1]), int(sys.argv[2]))
