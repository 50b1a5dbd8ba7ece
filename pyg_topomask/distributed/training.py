r"""The loss, gradients and norms over all nodes for training on a sharded graph."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import BatchNorm, LayerNorm

from pyg_topomask.distributed.communication import Processes, linear, sum_over_processes
from pyg_topomask.distributed.layers import check_sees_all_nodes
from pyg_topomask.distributed.sharded_graph import ShardedGraph
from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.precision import widened


def mean_over_nodes(values: Tensor, graph: ShardedGraph) -> Tensor:
    r"""Returns the mean over the nodes of all processes, the same number in each process. Use it as the loss. After
    :obj:`backward` in all processes, features have their full gradient, and parameters have the share of the process, see
    :func:`sum_gradients`.

    Args:
        values (torch.Tensor): One number per node, such as the cross-entropy of the labeled nodes of this process, or whether a
            prediction is right, :obj:`[n]`.
        graph (ShardedGraph): The graph.

    Example:
        >>> graph = ShardedGraph.from_graph(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> mean_over_nodes(torch.tensor([1.0, 2.0]), graph)
        tensor(1.5000)
    """
    number = torch.tensor(float(values.numel()), dtype=torch.float64, device=values.device)
    count = graph.group.sum(number).clamp(min=1.0)
    # As a loss, this number of all processes counts once: the backward pass sends nothing.
    dtype = values.dtype if values.is_floating_point() else torch.get_default_dtype()
    total = widened(values.to(dtype)).sum()
    (mean,) = linear(lambda x: (graph.group.sum(x),), lambda grad: (grad,), total / count.to(total.dtype))
    return mean.to(dtype)


def sum_gradients(module: Module, graph: ShardedGraph) -> None:
    r"""Sums the gradients of the parameters over the processes, in one message per data type. Call it once before
    each :obj:`optimizer.step()`, after the last :obj:`loss.backward()`, because a second call would add up sums.
    :class:`torch.nn.parallel.DistributedDataParallel` averages gradients. If you use it, multiply the loss by the number of
    processes, and do not call this function.

    Args:
        module (torch.nn.Module): The model.
        graph (ShardedGraph): The graph.
    """
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    for dtype in dict.fromkeys(parameter.dtype for parameter in parameters):
        group = [parameter for parameter in parameters if parameter.dtype == dtype]
        # A parameter that a process does not use has a zero gradient there.
        grads = [torch.zeros_like(each) if each.grad is None else each.grad for each in group]
        total = graph.group.sum(torch.cat([grad.flatten() for grad in grads]))
        for parameter, grad in zip(group, total.split([grad.numel() for grad in grads]), strict=True):
            parameter.grad = grad.view_as(parameter).clone()


def check_parameters(module: Module, graph: ShardedGraph) -> None:
    r"""Raises an error in all processes unless they have the same model, for example from the same seed.

    Args:
        module (torch.nn.Module): The model.
        graph (ShardedGraph): The graph.

    Raises:
        ValueError: If parameters or buffers differ. The message names the first of them.
    """
    state = {name: value for name, value in module.state_dict().items() if isinstance(value, Tensor)}
    graph.group.check_equal('module', [(name, tuple(value.shape), value.dtype) for name, value in state.items()])
    hashes = graph.group.gather([_hash(value) for value in state.values()])
    for name, *values in zip(state, *hashes, strict=True):
        if len(set(values)) > 1:
            raise ArgumentError('module', f'{name} of different numbers in the processes', 'a model with the same seed in all')


def _hash(value: Tensor) -> str:
    whole = value.detach() if value.layout == torch.strided else value.detach().to_dense()
    bits = whole.cpu().resolve_conj().contiguous().view(-1).view(torch.uint8)
    return hashlib.sha256(bits.numpy().tobytes()).hexdigest()


class GlobalBatchNorm(torch.nn.BatchNorm1d):
    r"""Batch normalization with the mean and the variance of the nodes of all processes. Its parameters and buffers are those
    of :class:`torch.nn.BatchNorm1d`. It sends :math:`2 C + 1` numbers in the forward pass and in the backward pass.

    Args:
        norm (torch.nn.BatchNorm1d): The normalization whose parameters and buffers it uses.
        graph (ShardedGraph): The graph.
    """

    def __init__(self, norm: torch.nn.BatchNorm1d, graph: ShardedGraph) -> None:
        super().__init__(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
        self._parameters = norm._parameters
        self._buffers = norm._buffers
        self.group = graph.group
        self.train(norm.training)

    def forward(self, input: Tensor) -> Tensor:
        if not self.training and self.running_mean is not None:
            return super().forward(input)
        x, mean, variance, count = _moments(input, self.group, 0)
        if self.training and self.running_mean is not None:
            self._update(mean.detach(), variance.detach() * count / (count - 1).clamp(min=1.0))
        out = (x - mean) * (variance + self.eps).rsqrt()
        if self.weight is not None:
            out = out * self.weight + self.bias
        return out.to(input.dtype)

    @torch.no_grad()
    def _update(self, mean: Tensor, variance: Tensor) -> None:
        buffers: Any = self._buffers
        count = buffers['num_batches_tracked'].add_(1)
        share = 1.0 / float(count) if self.momentum is None else self.momentum
        for name, moment in (('running_mean', mean), ('running_var', variance)):
            buffers[name].lerp_(moment.to(buffers[name].dtype), share)


class GlobalLayerNorm(LayerNorm):
    r"""PyG's layer normalization in the mode :obj:`"graph"`, with the mean and the deviation of all features of the nodes of
    all processes. Its parameters are those of :class:`torch_geometric.nn.LayerNorm`. It sends 3 numbers in the forward pass and
    in the backward pass.

    Args:
        norm (torch_geometric.nn.LayerNorm): The normalization whose parameters it uses.
        graph (ShardedGraph): The graph.
    """

    def __init__(self, norm: LayerNorm, graph: ShardedGraph) -> None:
        super().__init__(norm.in_channels, norm.eps, norm.affine, norm.mode)
        self._parameters = norm._parameters
        self.group = graph.group
        self.train(norm.training)

    def forward(self, x: Tensor, batch: Tensor | None = None, batch_size: int | None = None) -> Tensor:
        centered, mean, variance, _ = _moments(x, self.group, None)
        # The square root has no gradient at 0, where every feature equals the mean.
        deviation = variance.masked_fill(variance == 0, 1.0).sqrt().masked_fill(variance == 0, 0.0)
        out: Tensor = (centered - mean) / (deviation + self.eps)
        if self.weight is not None:
            out = out * self.weight + self.bias
        return out.to(x.dtype)


def _moments(x: Tensor, group: Processes, dim: int | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""Returns the features, at least in float32, and their mean, variance and number over all processes."""
    x = widened(x)
    count = x.new_full((1,), float(x.numel() if dim is None else x.size(0)))
    sums = sum_over_processes(torch.cat([x.sum(dim).view(-1), count]), group)
    count = sums[-1].detach()
    mean = sums[:-1] / count
    variance = sum_over_processes((x - mean).square().sum(dim).view(-1), group) / count
    return x, mean, variance, count


def convert_norms(module: Module, graph: ShardedGraph) -> Module:
    r"""Replaces every normalization over nodes in a model by one over the nodes of all processes, in place, and returns the
    model. :class:`GlobalBatchNorm` replaces :class:`torch.nn.BatchNorm1d`, also within :class:`torch_geometric.nn.BatchNorm`.
    :class:`GlobalLayerNorm` replaces :class:`torch_geometric.nn.LayerNorm` in its mode :obj:`"graph"`. The state dictionary
    does not change.

    Args:
        module (torch.nn.Module): The model.
        graph (ShardedGraph): The graph.

    Raises:
        ValueError: If the model has an unsupported normalization over nodes.

    Example:
        >>> graph = ShardedGraph.from_graph(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> convert_norms(torch.nn.BatchNorm1d(4), graph)
        GlobalBatchNorm(4, eps=1e-05, momentum=0.1, affine=True, ...)
    """
    return _converted(module, graph, {})


def _converted(module: Module, graph: ShardedGraph, known: dict[Module, Module]) -> Module:
    r"""Converts a module, once if it stands at several places."""
    if module not in known:
        check_sees_all_nodes(module, converted=False)
        known[module] = module
        if type(module) is torch.nn.BatchNorm1d:
            known[module] = GlobalBatchNorm(module, graph)
        elif type(module) is LayerNorm and module.mode == 'graph':
            known[module] = GlobalLayerNorm(module, graph)
        elif isinstance(module, BatchNorm):
            module.allow_single_element = False  # with one node, the process would leave out the norm, for which others wait
        for name, child in module._modules.items():
            if child is not None:
                module.add_module(name, _converted(child, graph, known))
    return known[module]
