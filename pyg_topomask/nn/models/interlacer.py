r"""A point cloud transformer that alternates global attention and local layers, for particle dynamics."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import LayerNorm, Linear, Module, ModuleList, ReLU, Sequential
from torch_geometric.nn.inits import reset
from torch_geometric.utils import scatter

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.nn.inputs import check_dtype, check_input_channels, compiled_if_prepared, input_of, linear
from pyg_topomask.nn.masked_linear_attention import MaskedLinearAttention
from pyg_topomask.nn.named_attention import GRFAttention
from pyg_topomask.ops.anchors import Anchors, farthest_anchors
from pyg_topomask.ops.knn import knn_graph
from pyg_topomask.utils.checks import check_above_zero, check_choice, check_shape, check_size, check_whole
from pyg_topomask.utils.functorch import outside_transforms, unwrapped


class Interlacer(Module):
    r"""The point cloud transformer of `"Linear Transformer Topological Masking with Graph Random Features"
    <https://arxiv.org/abs/2410.03462>`_ (Sec. 4.4, App. C.3), which predicts the motion of particles. Transformer layers with
    unmasked linear attention alternate with local layers on the graph of the :math:`k` nearest neighbors. All layers are
    residual and start with a norm.

    Each forward pass searches for the neighbors once. The local layers are one of:

    - :obj:`"grf"`: attention masked by asymmetric graph random features (App. D) of repelling walks of :obj:`num_hops` hops,
      with :math:`\mathbf{W} = \mathbf{D}_{row}^{-1} \mathbf{A}`. Training mode samples walks in every forward pass, and
      evaluation uses a fixed seed. With the default, :math:`k^{\text{num\_hops}}` walks, each possible walk occurs once. The
      mask then has no variance on graphs of more than :math:`k` particles.
    - :obj:`"message_passing"`: the maximum over the neighbors of an MLP of the features of both particles and their offset.
      With :obj:`num_anchors`, it updates only these *anchors* of a graph, as in the paper's baseline. Any other particle is
      then updated by a second MLP of its features, the new features of its closest anchor, and their offset.
    - :obj:`None`: no local layers.

    A predicted step is :obj:`max_step * tanh(...)`, so no particle moves further along any axis. An untrained model predicts no
    motion. Positions and steps have :obj:`out_channels` coordinates. Particles interact only within their graph.

    The paper states neither how anchors are chosen nor the equation of the second update. Here, each anchor is the particle
    that is farthest from the anchors before it, and the first is the farthest from the mean position.

    Args:
        in_channels (int): Size of the features of each particle, without its position; :obj:`-1` is inferred at the first
            call.
        channels (int): Size of hidden features.
        out_channels (int): The number of coordinates of positions and steps. (default: :obj:`3`)
        num_layers (int): The number of transformer layers, each followed by a local layer. (default: :obj:`2`)
        local (str, optional): :obj:`"grf"`, :obj:`"message_passing"` or :obj:`None`. (default: :obj:`"grf"`)
        num_neighbors (int): The number of neighbors :math:`k`. (default: :obj:`3`)
        num_walks (int): Walks per particle. (default: :obj:`27`)
        num_hops (int): Hops per walk. (default: :obj:`3`)
        heads (int): The number of attention heads of the transformer layers. Masked attention has one head. (default: :obj:`1`)
        max_step (float): The bound on a step along each axis. (default: :obj:`0.25`)
        step_scale (float): The typical length of a step. :meth:`rollout` divides its step features by it.
            (default: :obj:`0.025`)
        num_anchors (int, optional): The number of anchors of a graph, for :obj:`local="message_passing"`. In graphs with at
            most this many particles, all are anchors. (default: :obj:`None`, all particles)

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`, positions :math:`(|\mathcal{V}|, D)`, batch vector
          :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** steps :math:`(|\mathcal{V}|, D)`

    Example:
        >>> model = Interlacer(in_channels=6, channels=16)
        >>> model(torch.randn(10, 6), torch.randn(10, 3)).shape
        torch.Size([10, 3])
    """

    def __init__(
        self,
        in_channels: int,
        channels: int,
        out_channels: int = 3,
        num_layers: int = 2,
        local: str | None = 'grf',
        num_neighbors: int = 3,
        num_walks: int = 27,
        num_hops: int = 3,
        heads: int = 1,
        max_step: float = 0.25,
        step_scale: float = 0.025,
        num_anchors: int | None = None,
    ) -> None:
        super().__init__()
        check_input_channels(in_channels)
        check_size(channels=channels, out_channels=out_channels, num_layers=num_layers)
        check_size(num_neighbors=num_neighbors, num_walks=num_walks, num_hops=num_hops)
        check_choice(('grf', 'message_passing', None), local=local)
        check_above_zero(max_step=max_step, step_scale=step_scale)
        if num_anchors is not None:
            check_size(num_anchors=num_anchors)
            if local != 'message_passing':
                raise ArgumentError(
                    'num_anchors', f'{num_anchors} for local={local!r}', "None, and numbers with local='message_passing'"
                )
        self.in_channels = in_channels
        self.channels = channels
        self.out_channels = out_channels
        self.local = local
        self.num_neighbors = num_neighbors
        self.num_anchors = num_anchors
        self.max_step = max_step
        self.step_scale = step_scale

        self.lin_in = linear(-1 if in_channels == -1 else in_channels + out_channels, channels)
        self.blocks = ModuleList()
        for _ in range(num_layers):
            layer: Module | None = None
            if local == 'grf':
                layer = GRFAttention(
                    channels,
                    heads=1,
                    num_walks=num_walks,
                    p_halt=0.0,
                    max_walk_length=num_hops,
                    asymmetric=True,
                    sampler='repelling',
                    normalization='rw',
                    resample='forward',
                )
            elif local == 'message_passing':
                layer = _NeighborAttender(channels, out_channels, num_anchors is not None)
            self.blocks.append(_Block(channels, heads, layer))
        self.lin_out = Linear(channels, out_channels)
        self._stand_still()

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters."""
        for module in (self.lin_in, self.blocks):
            reset(module)
        self._stand_still()

    @property
    def _num_features(self) -> int | None:
        r"""Size of the features of each particle, or :obj:`None` before the first call of a lazy model."""
        channels, _ = input_of(self.lin_in)
        return None if channels == -1 else channels - self.out_channels

    def _stand_still(self) -> None:
        torch.nn.init.zeros_(self.lin_out.weight)
        torch.nn.init.zeros_(self.lin_out.bias)

    def forward(self, x: Tensor, pos: Tensor, batch: Tensor | None = None) -> Tensor:
        r"""Returns the next step of each particle, :obj:`[N, out_channels]`.

        Args:
            x (torch.Tensor): The features, :obj:`[N, in_channels]`.
            pos (torch.Tensor): The positions, :obj:`[N, out_channels]`.
            batch (torch.Tensor, optional): The graph of each particle, ascending, :obj:`[N]`. (default: :obj:`None`)
        """
        check_shape(('N', self.out_channels), pos=pos)
        check_shape((pos.size(0), self._num_features or 'in_channels'), x=x)
        check_dtype(input_of(self.lin_in)[1], x=x, pos=pos)
        graph, anchors = compiled_if_prepared(self._graph)(unwrapped(pos), batch)
        h = self.lin_in(torch.cat([x, pos], dim=-1))
        for block in self.blocks:
            h = block(h, pos, graph, anchors)
        return self.max_step * self.lin_out(h).tanh()

    @outside_transforms
    def _graph(self, pos: Tensor, batch: Tensor | None) -> tuple[Graph, Anchors | None]:
        if self.local is None:
            edge_index = torch.empty(2, 0, dtype=torch.long, device=pos.device)
        else:
            edge_index = knn_graph(pos, self.num_neighbors, batch)
        graph = Graph.from_tensors(edge_index, pos.size(0), batch=batch)
        if self.num_anchors is None:
            return graph, None
        anchors = farthest_anchors(pos, self.num_anchors, graph.segments)
        edge_index = edge_index[:, anchors.is_anchor[edge_index[1]]]
        return Graph.from_tensors(edge_index, pos.size(0), batch=batch), anchors

    def rollout(self, pos: Tensor, history: Tensor, steps: int, x: Tensor | None = None, batch: Tensor | None = None) -> Tensor:
        r"""Applies the model to its own predictions, with gradients through all steps. The features are the last :math:`h`
        steps in units of :obj:`step_scale`, followed by :obj:`x`.

        Args:
            pos (torch.Tensor): The current positions, :obj:`[N, out_channels]`.
            history (torch.Tensor): The previous steps, the latest last, :obj:`[N, h, out_channels]`.
            steps (int): The number of steps to predict.
            x (torch.Tensor, optional): Constant features, :obj:`[N, in_channels - h * out_channels]`.
                (default: :obj:`None`, none)
            batch (torch.Tensor, optional): The graph of each particle, ascending, :obj:`[N]`. (default: :obj:`None`)

        Returns:
            torch.Tensor: The positions after each step, :obj:`[N, steps, out_channels]`.
        """
        check_whole(1, steps=steps)
        constant = [] if x is None else [x]
        check_dtype(input_of(self.lin_in)[1], pos=pos, history=history, **({} if x is None else {'x': x}))
        num_features = self._num_features or history.shape[1:].numel() + sum(value.size(-1) for value in constant)
        remaining = num_features - sum(value.size(-1) for value in constant)
        if history.dim() != 3 or history.shape[::2] != pos.shape or history.size(1) * self.out_channels != remaining:
            raise ArgumentError(
                'history',
                f'shape {tuple(history.shape)} for pos of shape {tuple(pos.shape)}',
                f'[N, h, {self.out_channels}] with {remaining} numbers per particle, so that these and x fill in_channels',
            )
        positions = []
        for _ in range(steps):
            step = self(torch.cat([history.flatten(1) / self.step_scale, *constant], dim=-1), pos, batch)
            pos = pos + step
            history = torch.cat([history, step.unsqueeze(1)], dim=1)[:, 1:]
            positions.append(pos)
        return torch.stack(positions, dim=1)

    def __repr__(self) -> str:
        anchors = '' if self.num_anchors is None else f', num_anchors={self.num_anchors}'
        return (
            f'{type(self).__name__}({self.in_channels}, {self.channels}, {self.out_channels}, local={self.local!r}, '
            f'num_neighbors={self.num_neighbors}{anchors})'
        )


class _Block(Module):
    r"""A transformer layer and a local layer."""

    def __init__(self, channels: int, heads: int, local: Module | None) -> None:
        super().__init__()
        self.norms = ModuleList(LayerNorm(channels) for _ in range(2 if local is None else 3))
        self.attention = MaskedLinearAttention(channels, heads)
        self.mlp = _mlp(channels, 4 * channels, channels)
        self.local = local

    def forward(self, h: Tensor, pos: Tensor, graph: Graph, anchors: Anchors | None) -> Tensor:
        h = h + self.attention(self.norms[0](h), graph=graph)
        h = h + self.mlp(self.norms[1](h))
        if self.local is not None:
            x = self.norms[2](h)
            if isinstance(self.local, _NeighborAttender):
                h = h + self.local(x, pos, graph.edge_index, anchors)
            else:
                h = h + self.local(x, graph.edge_index, graph=graph)
        return h


class _NeighborAttender(Module):
    r"""The maximum over the neighbors of an MLP of both particles and their offset, for all particles, or for anchors, from
    which the closest particles are updated by another MLP.
    """

    def __init__(self, channels: int, num_coordinates: int, has_anchors: bool) -> None:
        super().__init__()
        self.mlp = _mlp(2 * channels + num_coordinates, channels, channels)
        self.from_anchor = _mlp(2 * channels + num_coordinates, channels, channels) if has_anchors else None

    def forward(self, x: Tensor, pos: Tensor, edge_index: Tensor, anchors: Anchors | None) -> Tensor:
        if anchors is None or self.from_anchor is None:
            return self._update(x, pos, edge_index)
        update, others, closest = self._update(x, pos, edge_index), anchors.others, anchors.closest
        features = [x[others], x[closest] + update[closest], pos[closest] - pos[others]]
        return update.index_copy(0, others, self.from_anchor(torch.cat(features, dim=-1)))

    def _update(self, x: Tensor, pos: Tensor, edge_index: Tensor) -> Tensor:
        neighbor, node = edge_index
        message = self.mlp(torch.cat([x[node], x[neighbor], pos[neighbor] - pos[node]], dim=-1))
        return scatter(message, node, dim_size=x.size(0), reduce='max')


def _mlp(in_channels: int, hidden_channels: int, out_channels: int) -> Sequential:
    return Sequential(Linear(in_channels, hidden_channels), ReLU(), Linear(hidden_channels, out_channels))
