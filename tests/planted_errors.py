"""Plants errors of one line in a copy of the package, and tells which of them the tests catch.

    python tests/planted_errors.py caught.json

Each error is planted alone. The tests that are about its module then run until one fails. Results are kept in the JSON file
after every error, and a second call goes on with those that are missing there. Nightly tests run as well with `--nightly`.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numba  # noqa: F401
import pytest
import scipy.stats  # noqa: F401
import torch
import torch_geometric.nn  # noqa: F401

ROOT = Path(__file__).parents[1]
MINUTES = 15


class Error(NamedTuple):
    file: str  # in the package
    text: str  # which occurs there once
    wrong: str  # which stands in its place
    kind: str
    tests: str  # the tests that run, in tests/


ERRORS = [
    # Graphs
    Error(
        'graphs/graph.py',
        'safe.reciprocal() if normalization',
        'safe.rsqrt() if normalization',
        'formula',
        'graphs machine/test_preparation.py',
    ),
    Error(
        'graphs/graph.py',
        'index_add(0, end, weight.abs())',
        'index_add(0, end, weight)',
        'nodes and edges of special kinds',
        'graphs machine/test_preparation.py',
    ),
    Error('graphs/graph.py', 'edge_index.flip(0), value', 'edge_index, value', 'direction or order', 'graphs'),
    Error(
        'graphs/graph.py',
        'edges = torch.where(weight == 1, edges, splitmix(edges) ^ weight.view(torch.int32))',
        'edges = splitmix(edges)',
        'what is kept or stored',
        'graphs transforms/test_add_graph_random_features.py machine/test_preparation.py',
    ),
    Error(
        'graphs/graph.py',
        'if data.num_graphs > graph.num_graphs:',
        'if data.num_graphs > graph.num_graphs + 1:',
        'nodes and edges of special kinds',
        'graphs masks/test_contract.py',
    ),
    Error(
        'graphs/segments.py',
        'return bounds * self.num_nodes if',
        'return bounds * (self.num_nodes + 1) if',
        'off by one',
        'graphs',
    ),
    Error(
        'graphs/sparse_pattern.py',
        'rows.repeat_interleave(self.rowptr.diff(), output_size=self.nnz)',
        'rows.repeat_interleave(self.rowptr.diff(), output_size=self.nnz).flip(0)',
        'direction or order',
        'graphs',
    ),
    Error(
        'graphs/sparse_pattern.py',
        'return SparsePattern(self.rowptr_t, self.col_t, self.rowptr, self.col, perm)',
        'return SparsePattern(self.rowptr_t, self.col_t, self.rowptr, self.col, self.perm_t)',
        'direction or order',
        'graphs masks/test_contract.py',
    ),
    Error(
        'graphs/sparse_pattern.py',
        "row, col = (torch.cat([getattr(pattern, name) for pattern in patterns]) for name in ('row', 'col'))",
        "row, col = (torch.cat([getattr(pattern, name) for pattern in patterns]) for name in ('row', 'row'))",
        'sums and products of masks',
        'graphs masks/test_contract.py operators',
    ),
    Error(
        'graphs/sparse_pattern.py',
        'left = torch.arange(key.numel(), device=key.device)[shared]',
        'left = torch.arange(key.numel(), device=key.device)[shared].flip(0)',
        'sums and products of masks',
        'graphs masks/base operators',
    ),
    Error(
        'graphs/sparse_pattern.py',
        'order = _half(keys, 0).argsort',
        'order = _half(keys, 16).argsort',
        'direction or order',
        'graphs walks',
    ),
    Error(
        'graphs/forest.py',
        "zero.scatter_reduce(0, below[joins], edge_weight[joins], 'amin', include_self=False)",
        "zero.scatter_reduce(0, below[joins], edge_weight[joins], 'amax', include_self=False)",
        'nodes and edges of special kinds',
        'graphs/test_forest.py masks/test_tree.py',
    ),
    Error(
        'graphs/forest.py',
        'joined = distance[source] + distance[target] - 2 * distance[ancestor]',
        'joined = distance[source] + distance[target] - distance[ancestor]',
        'formula',
        'graphs transforms',
    ),
    Error(
        'graphs/forest.py',
        'span[self.down[inner]] += span[inner]',
        'span[self.down[inner]] = span[inner]',
        'off by one',
        'graphs masks/test_tree.py',
    ),
    Error(
        'graphs/spanning_forest.py',
        'edge = np.flatnonzero(low != high)',
        'edge = np.flatnonzero(low <= high)',
        'nodes and edges of special kinds',
        'graphs transforms',
    ),
    # Walks
    Error('walks/walk.py', '1.0 / num_walks)', '1.0 / (num_walks + 1))', 'formula', 'walks'),
    Error('walks/walk.py', 'survival[step - 1] / survival[step]', 'survival[step] / survival[step - 1]', 'formula', 'walks'),
    Error(
        'walks/walk.py',
        'going = (length >= step) & (degree > 0)',
        'going = (length > step) & (degree > 0)',
        'off by one',
        'walks',
    ),
    Error(
        'walks/uniform.py',
        'return wrapped_seed(2 * seed), wrapped_seed(2 * seed + 1)',
        'return wrapped_seed(2 * seed), wrapped_seed(2 * seed)',
        'random numbers',
        'walks masks/test_grf.py masks/test_contract.py',
    ),
    Error(
        'walks/uniform.py',
        'local_id.index_select(0, start - first) * num_walks',
        'start * num_walks',
        'graphs of a batch',
        'walks',
    ),
    Error(
        'walks/uniform.py',
        '(bits >> 11).bitwise_and_((1 << 53) - 1)',
        '(bits >> 11).bitwise_and_((1 << 52) - 1)',
        'random numbers',
        'walks',
    ),
    Error('walks/samplers.py', 'numbers >= p_halt', 'numbers > 1 - p_halt', 'random numbers', 'walks'),
    Error('walks/samplers.py', '1.0 - 2.0**-53 - numbers, numbers)', 'numbers, numbers)', 'random numbers', 'walks'),
    Error('walks/samplers.py', 'crowded = 2 * size >= degree', 'crowded = 2 * size > 3 * degree', 'random numbers', 'walks'),
    Error(
        'walks/features.py',
        'self.load[one] * self.load[other]',
        'self.load[one] * self.load[one]',
        'formula',
        'walks masks/test_rwgnk.py',
    ),
    Error(
        'walks/features.py',
        'keep = self.length <= max_walk_length',
        'keep = self.length < max_walk_length',
        'off by one',
        'walks transforms',
    ),
    Error(
        'walks/pairs.py',
        'hops, other = np.minimum(hops, other), np.maximum(hops, other)',
        'hops, other = np.minimum(hops, other), np.minimum(hops, other)',
        'formula',
        'walks masks/test_contract.py',
    ),
    Error(
        'walks/pairs.py',
        '(query.visitors * key.visitors).sum()',
        '(query.visitors * key.visitors).sum() // 2',
        'bound of entries or magnitudes',
        'walks masks/test_contract.py',
    ),
    Error(
        'walks/stored.py',
        'return query, walks[1].truncate(hops) if settings.independent_ensembles else query',
        'return query, walks[-1].truncate(hops)',
        'what is kept or stored',
        'transforms walks',
    ),
    Error('walks/stored.py', 'if longest < hops:', 'if longest + 1 < hops:', 'check or warning', 'transforms walks'),
    Error(
        'graphs/stored_rows.py',
        'return position < used.repeat_interleave(stored)',
        'return position <= used.repeat_interleave(stored)',
        'off by one',
        'transforms walks',
    ),
    # Masks
    Error(
        'masks/adjacency.py',
        'weight = torch.cat([weight, weight.new_zeros(graph.num_nodes)])',
        'weight = torch.cat([weight, weight.new_ones(graph.num_nodes)])',
        'nodes and edges of special kinds',
        'masks/test_adjacency.py masks/test_contract.py',
    ),
    Error(
        'masks/adjacency.py',
        'zero.index_add(0, slot, weight)',
        'zero.index_copy(0, slot, weight)',
        'nodes and edges of special kinds',
        'masks/test_adjacency.py masks/test_contract.py',
    ),
    Error(
        'masks/hop.py',
        'steps + (hops + 1) * ring',
        'steps + hops * ring',
        'off by one',
        'masks/test_hop.py masks/test_contract.py',
    ),
    Error(
        'masks/power_series.py',
        'else convolve(coefficients, coefficients)',
        'else coefficients',
        'formula',
        'masks/test_power_series.py masks/test_contract.py',
    ),
    Error(
        'masks/power_series.py',
        'positive = self.positive and graph.cached',
        'positive = self.positive or graph.cached',
        'rounding and range of numbers',
        'masks/test_power_series.py ops/test_prepared_blocks.py',
    ),
    Error(
        'masks/power_series.py',
        'if radius <= 1 or',
        'if radius <= 2 or',
        'check or warning',
        'masks/test_power_series_radius.py',
    ),
    Error(
        'masks/heat_kernel.py',
        'weight = weight / inverse[row].sqrt() / inverse[col].sqrt()',
        'weight = weight / inverse[row].sqrt() / inverse[row].sqrt()',
        'formula',
        'masks/test_heat_kernel.py',
    ),
    Error(
        'masks/heat_kernel.py',
        'weight = weight - loop * used[col]',
        'weight = weight - loop',
        'nodes and edges of special kinds',
        'masks/test_heat_kernel.py',
    ),
    Error(
        'masks/heat_kernel.py',
        'self.tolerance / state.growth), method',
        'self.tolerance * state.growth), method',
        'rounding and range of numbers',
        'masks/test_heat_kernel.py',
    ),
    Error(
        'masks/sin_degree.py',
        'degree.clamp(max=self.max_degree) + torch.bucketize(degree, self.bounds, right=True)',
        'degree.clamp(max=self.max_degree) + torch.bucketize(degree, self.bounds)',
        'off by one',
        'masks/test_sin_degree.py',
    ),
    Error(
        'masks/sin_degree.py',
        'return low_rank_operator(graph, left, left.flip(-1))',
        'return low_rank_operator(graph, left, left)',
        'formula',
        'masks/test_sin_degree.py',
    ),
    Error(
        'masks/causal.py',
        'begins[1:] |= value[1:] != value[:-1]',
        'begins[1:] |= value[1:] > value[:-1] + 1',
        'nodes and edges of special kinds',
        'masks/test_causal.py',
    ),
    Error(
        'masks/causal.py',
        'before = _scan(blocks[:, :-1, -1])',
        'before = blocks[:, :-1, -1].clone()',
        'rounding and range of numbers',
        'masks/test_causal.py',
    ),
    Error(
        'masks/expander.py',
        'torch.where(nodes + 1 == after, first, nodes + 1)',
        'torch.where(nodes + 1 == after, nodes, nodes + 1)',
        'direction or order',
        'masks/test_expander.py',
    ),
    Error('masks/hypercube.py', 'base * pairs.flip(1)', 'base * pairs', 'formula', 'masks/test_hypercube.py'),
    Error(
        'masks/stochastic_rpe.py',
        '- 0.5 * gain.square().sum(-1, keepdim=True)',
        '- gain.square().sum(-1, keepdim=True)',
        'formula',
        'masks/test_stochastic_rpe.py',
    ),
    Error(
        'masks/toeplitz.py',
        'shapes.cpu().numpy(), axis=0, return_inverse=True)',
        'shapes.cpu().numpy()[::-1], axis=0, return_inverse=True)',
        'graphs of a batch',
        'masks/test_toeplitz.py',
    ),
    Error(
        'masks/toeplitz.py',
        'pad(table.flatten(1), (1, 0))',
        'pad(table.flatten(1), (1, 0), value=1.0)',
        'nodes and edges of special kinds',
        'masks/test_toeplitz.py',
    ),
    Error(
        'masks/tree.py',
        'return -softplus(self.raw_a) if self.learnable',
        'return -self.raw_a.exp() if self.learnable',
        'formula',
        'masks/test_tree.py',
    ),
    Error(
        'walks/paired.py',
        "'unordered' if key_modulation is query_modulation else 'ordered'",
        "'unordered'",
        'formula',
        'masks/test_contract.py masks/test_asymmetric_grf.py',
    ),
    Error(
        'masks/grf.py',
        'else seed_of_factor(self.seed, factor)',
        'else seed_of_factor(self.seed, 0)',
        'random numbers',
        'masks/test_stitched_grf.py',
    ),
    Error('masks/rwgnk.py', 'exponent = -self.alpha / 2', 'exponent = -self.alpha', 'formula', 'masks/test_rwgnk.py'),
    Error(
        'masks/rwgnk.py',
        'float(survival[query_hops] * survival[key_hops])',
        'float(survival[query_hops])',
        'formula',
        'masks/test_rwgnk.py ops/test_prepared_blocks.py',
    ),
    Error(
        'masks/base/series.py',
        '(factors * f[0] ** (factors - 1))',
        '(factors * f[0])',
        'formula',
        'masks/base/test_series.py masks/test_stitched_grf.py',
    ),
    Error(
        'masks/base/series.py',
        'return _heat(order, scale**2 / 2)',
        'return _heat(order, scale**2)',
        'formula',
        'masks/base/test_series.py',
    ),
    # Operators
    Error(
        'operators/base.py',
        'return Scaled(self.scale, self.inner.T)',
        'return Scaled(self.scale, self.inner)',
        'direction or order',
        'masks/test_contract.py operators',
    ),
    Error(
        'operators/base.py',
        'return Hadamard(self.right, self.left, self.inner.T)',
        'return Hadamard(self.left, self.right, self.inner.T)',
        'direction or order',
        'masks/test_contract.py operators',
    ),
    Error(
        'operators/chain.py',
        'Chain(tuple(link.T for link in reversed(self.links)))',
        'Chain(tuple(link.T for link in self.links))',
        'direction or order',
        'masks/test_contract.py operators',
    ),
    Error(
        'operators/base.py',
        'self.scale.to(x.dtype).unsqueeze(-1).abs()',
        'self.scale.to(x.dtype).unsqueeze(-1)',
        'bound of entries or magnitudes',
        'masks/test_contract.py operators',
    ),
    Error(
        'operators/base.py',
        '[tensor.abs() if tensor.is_floating_point() else tensor for',
        '[tensor for',
        'bound of entries or magnitudes',
        'masks/test_contract.py operators',
    ),
    Error(
        'operators/base.py',
        'return present if len(present) == len(values) else None',
        'return present or None',
        'sums and products of masks',
        'masks/test_contract.py operators',
    ),
    Error(
        'operators/base.py',
        'if self.ptr.numel() == 2:',
        'if self.ptr.numel() >= 2:',
        'graphs of a batch',
        'masks/test_contract.py operators',
    ),
    Error(
        'operators/base.py',
        '(0, rank - each.size(-1)))',
        '(0, rank - each.size(-1)), value=1.0)',
        'sums and products of masks',
        'masks/test_contract.py operators masks/test_multi_head.py',
    ),
    Error(
        'operators/entries.py',
        'each.value.index_select(1, each.pattern.perm_t)',
        'each.value',
        'direction or order',
        'masks/test_contract.py operators',
    ),
    Error(
        'operators/entries.py',
        'right.index_select(0, col)',
        'right.index_select(0, row)',
        'sums and products of masks',
        'masks/test_contract.py operators',
    ),
    Error(
        'operators/entries.py',
        'max_nnz=sum(known)',
        'max_nnz=max(known)',
        'bound of entries or magnitudes',
        'masks/test_contract.py operators',
    ),
    Error(
        'operators/entries.py',
        'total.index_add(1, slot, value.expand(heads, -1))',
        'total.index_copy(1, slot, value.expand(heads, -1))',
        'sums and products of masks',
        'masks/test_contract.py operators',
    ),
    Error(
        'operators/entries.py',
        'second.value.index_select(1, of_second)',
        'second.value.index_select(1, of_first.clamp(max=second.value.size(1) - 1))',
        'sums and products of masks',
        'masks/test_contract.py operators masks/base',
    ),
    Error(
        'operators/sparse_matmul.py',
        'grad_value = grad_value.sum(0, keepdim=True)',
        'grad_value = grad_value[:1]',
        'formula',
        'masks/test_contract.py operators masks/test_shared_heads.py',
    ),
    Error(
        'operators/tree_mean.py',
        '(q, k, v, grad / self.num_trees)',
        '(q, k, v, grad)',
        'formula',
        'masks/test_tree.py machine',
    ),
    # Attention
    Error(
        'feature_maps.py',
        'x, scale = _single(x), self.channels**-0.25',
        'x, scale = _single(x), self.channels**-0.5',
        'formula',
        'test_feature_maps.py',
    ),
    Error(
        'feature_maps.py',
        'segments is None else segments.maximum(x)',
        'segments is not None else x',
        'graphs of a batch',
        'test_feature_maps.py',
    ),
    Error(
        'feature_maps.py',
        'offset_q - offset_q.detach() - largest_q',
        'offset_q - largest_q',
        'rounding and range of numbers',
        'test_feature_maps.py',
    ),
    Error(
        'feature_maps.py',
        'return unitary * upper.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)',
        'return unitary',
        'random numbers',
        'test_feature_maps.py',
    ),
    Error(
        'ops/normalize.py',
        'empty = denominator.abs() <= floor',
        'empty = denominator <= floor',
        'nodes and edges of special kinds',
        'ops',
    ),
    Error(
        'ops/normalize.py',
        'floor = (16 * limits.eps * magnitude)',
        'floor = (0 * limits.eps * magnitude)',
        'rounding and range of numbers',
        'ops',
    ),
    Error(
        'ops/scaling.py',
        'return q / power_of_two(row_size(q)).unsqueeze(-1), k / of_k, v / of_v, of_v',
        'return q, k / of_k, v / of_v, of_v',
        'rounding and range of numbers',
        'ops/test_scaling.py',
    ),
    Error(
        'ops/masked_softmax_attention.py',
        'weight = score.sub_(highest.gather(1, row)).exp_()',
        'weight = score.exp_()',
        'rounding and range of numbers',
        'ops/test_masked_softmax_attention.py machine',
    ),
    Error(
        'ops/masked_softmax_attention.py',
        'accepted = (entries >= 0) & (entries < math.inf)',
        'accepted = entries < math.inf',
        'check or warning',
        'ops nn/test_explicit_module.py',
    ),
    Error(
        'ops/topk/chunked.py',
        'position += block * width',
        'position += block',
        'direction or order',
        'ops/test_topk_inner_product.py',
    ),
    Error(
        'ops/topk/dense.py',
        'keys = (position + start).masked_fill_(position >= filled, -1)',
        'keys = position + start',
        'graphs of a batch',
        'ops/test_topk_inner_product.py machine',
    ),
    # Layers
    Error(
        'nn/kmip_attention.py',
        'q = q * (q.size(-1) / size) ** 0.5',
        'q = q * (q.size(-1) / size)',
        'formula',
        'nn/test_kmip_attention.py',
    ),
    Error(
        'nn/kmip_attention.py',
        'node = first.view(-1, 1, 1) + (drawn',
        'node = 0 * first.view(-1, 1, 1) + (drawn',
        'graphs of a batch',
        'nn/test_kmip_attention.py',
    ),
    Error(
        'nn/gps_conv.py',
        'self._norm(out + self.mlp(out), self.norm3, index)',
        'self._norm(self.mlp(out), self.norm3, index)',
        'direction or order',
        'nn/test_gps_conv.py',
    ),
    Error(
        'nn/gps_conv.py',
        'hs.append(self._residual(h, x, self.norm2, index))',
        'hs.append(self._residual(h, x, self.norm1, index))',
        'direction or order',
        'nn/test_gps_conv.py',
    ),
    Error(
        'nn/gated_gcn_conv.py',
        'return target_i + source_j + edge_attr',
        'return target_i + target_i + edge_attr',
        'direction or order',
        'nn/test_gated_gcn_conv.py',
    ),
    Error(
        'nn/models/mgformer.py',
        'out = out + (x if nodes is None else x.index_select(0, nodes))',
        'out = out + (x if nodes is None else x[: len(nodes)])',
        'direction or order',
        'nn/models/test_mgformer.py',
    ),
    Error(
        'nn/models/interlacer.py',
        'pos[neighbor] - pos[node]',
        'pos[node] - pos[neighbor]',
        'direction or order',
        'nn/models/test_interlacer.py',
    ),
    Error(
        'nn/models/interlacer.py',
        'history = torch.cat([history, step.unsqueeze(1)], dim=1)[:, 1:]',
        'history = torch.cat([history, step.unsqueeze(1)], dim=1)[:, :-1]',
        'direction or order',
        'nn/models/test_interlacer.py',
    ),
    # Transforms
    Error(
        'transforms/add_svd_encoding.py',
        '.index_add(0, slot, weight) / count',
        '.index_add(0, slot, weight)',
        'nodes and edges of special kinds',
        'transforms/test_add_svd_encoding.py',
    ),
    Error(
        'transforms/add_svd_encoding.py',
        'scale = root * _signs(left)',
        'scale = root',
        'formula',
        'transforms/test_add_svd_encoding.py',
    ),
    Error(
        'transforms/sampling.py',
        'nearest[last] = -1',
        'nearest[last] = 0',
        'nodes and edges of special kinds',
        'transforms/test_sampling.py',
    ),
    Error(
        'transforms/normals.py',
        "step = step - scatter(step, center, dim_size=pos.size(0), reduce='mean')[center]",
        'step = step * 1.0',
        'formula',
        'transforms/test_normals.py',
    ),
    # Several processes
    Error(
        'distributed/convolution.py',
        'inverse[source] * weight * inverse[target]',
        'inverse[source] * weight * inverse[source]',
        'formula',
        'distributed',
    ),
    Error(
        'distributed/halo.py',
        '.index_add(0, halo.send, rows) for x',
        '.index_copy(0, halo.send, rows) for x',
        'off by one',
        'distributed',
    ),
    # Applications
    Error(
        'apps/advise/candidates.py',
        'profile.forest and not profile.directed',
        'profile.forest',
        'check or warning',
        'apps/advise/test_advise.py',
    ),
    Error(
        'apps/advise/candidates.py',
        "walks = 'AsymmetricGRF' if profile.directed",
        "walks = 'AsymmetricGRF' if not profile.directed",
        'direction or order',
        'apps/advise/test_advise.py',
    ),
    Error(
        'apps/advise/trials.py',
        'sorted(models, key=reached, reverse=True)',
        'sorted(models, key=reached)',
        'direction or order',
        'apps/advise/test_advise.py',
    ),
    Error('apps/advise/trials.py', '(self.wanted - 1) *', 'self.wanted *', 'off by one', 'apps/advise/test_advise.py'),
    Error(
        'apps/advise/trials.py',
        "return result if result['epochs'] >= epochs else None",
        'return result',
        'what is kept or stored',
        'apps/advise/test_advise.py',
    ),
    Error(
        'apps/datasets/graph_file.py',
        'labels[~missing] = torch.from_numpy(index.reshape(-1))',
        'labels[~missing] = torch.from_numpy(index.reshape(-1)).flip(0)',
        'direction or order',
        'apps/datasets/test_graph_file.py',
    ),
    Error(
        'apps/datasets/graph_files.py',
        'merge, keys = coalesce if directed else to_undirected',
        'merge, keys = to_undirected if directed else coalesce',
        'direction or order',
        'apps/datasets/test_graph_file.py',
    ),
]


def key_of(error: Error) -> str:
    return f'{error.file}: {error.text} -> {error.wrong}'


def plant(error: Error, tree: Path) -> None:
    path = tree / 'pyg_topomask' / error.file
    source = path.read_text()
    if source.count(error.text) != 1:
        raise ValueError(f'{error.file} holds {source.count(error.text)} times: {error.text}')
    path.write_text(source.replace(error.text, error.wrong))


class Failures:
    """The names of tests that fail, as a plugin of pytest."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._add(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._add(report)

    def _add(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if report.failed:
            self.names.append(report.nodeid)


def run_tests(tree: Path, names: str, nightly: bool, sent: Connection) -> None:
    """In a new process: sends the name of the test that fails, or nothing if none does."""
    output = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    os.environ['PYTHONPATH'] = str(tree)
    failures = Failures()
    paths = [str(tree / 'tests' / name) for name in names.split() if (tree / 'tests' / name.partition('::')[0]).exists()]
    pytest.main(['-x', '-q', *(['-m', 'not browser'] if nightly else []), *paths], [failures])
    sent.send(failures.names[0] if failures.names else '')


def run(tree: Path, tests: str, nightly: bool) -> dict[str, Any]:
    fork = multiprocessing.get_context('fork')  # libraries are imported once, and the package by each process
    received, sent = fork.Pipe(duplex=False)
    process = fork.Process(target=run_tests, args=(tree, tests, nightly, sent))
    began = time.monotonic()
    process.start()
    process.join(60 * MINUTES)
    by = 'it did not end'
    if process.is_alive():
        process.kill()
    elif received.poll():
        by = received.recv()
    elif process.exitcode is not None and process.exitcode < 0:
        by = f'signal {-process.exitcode} ended the process'
    else:
        raise RuntimeError('pytest did not run')
    return {'caught': bool(by), 'by': by, 'seconds': round(time.monotonic() - began)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('results', type=Path)
    parser.add_argument('--root', type=Path, default=ROOT, help='the tree whose package and tests are taken')
    parser.add_argument('--only', default='', help='a part of the name of a file')
    parser.add_argument('--first', type=Path, help='results of an earlier call, whose tests run before the others')
    parser.add_argument('--nightly', action='store_true')
    arguments = parser.parse_args()
    results, earlier = (
        json.loads(path.read_text()) if path is not None and path.exists() else {}
        for path in (arguments.results, arguments.first)
    )
    chosen = [error for error in ERRORS if arguments.only in error.file]
    os.environ['TOPOMASK_DEVICE'] = 'cpu'
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / 'tree'
        leave_out = shutil.ignore_patterns('.git', '*.egg-info', 'results')  # but compiled code
        shutil.copytree(arguments.root, tree, ignore=leave_out)
        if run(tree, 'graphs/test_segments.py', nightly=False)['caught']:
            raise RuntimeError('tests fail without a planted error')
        for number, error in enumerate(chosen, 1):
            key = key_of(error)
            if key not in results:
                path = tree / 'pyg_topomask' / error.file
                source, changed = path.read_bytes(), path.stat()
                plant(error, tree)
                try:
                    known = earlier.get(key, {}).get('by', '').removeprefix('tests/').partition('[')[0]
                    result = run(tree, known, arguments.nightly) if '::' in known else {'caught': False}
                    if not result['caught']:
                        result = run(tree, error.tests, arguments.nightly)
                    results[key] = result
                finally:  # with its old time, by which compiled code is found again
                    path.write_bytes(source)
                    os.utime(path, ns=(changed.st_atime_ns, changed.st_mtime_ns))
                arguments.results.write_text(json.dumps(results, indent=1))
            result = results[key]
            words = f'caught by {result["by"]}' if result['caught'] else 'MISSED'
            print(f'{number}/{len(chosen)} {error.file}: {error.kind}: {words} ({result["seconds"]} s)', flush=True)
    caught = [results[key_of(error)]['caught'] for error in chosen]
    for kind in dict.fromkeys(error.kind for error in chosen):
        of_kind = [was for was, error in zip(caught, chosen, strict=True) if error.kind == kind]
        print(f'{kind}: {sum(of_kind)} of {len(of_kind)} caught')
    print(f'{sum(caught)} of {len(caught)} caught')
    return int(not all(caught))


if __name__ == '__main__':
    sys.exit(main())
