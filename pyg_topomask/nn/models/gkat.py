r"""The graph kernel attention Transformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import MLP, BatchNorm, global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.nn.inits import reset
from torch_geometric.typing import Adj

from pyg_topomask.errors import ArgumentError
from pyg_topomask.feature_maps.random_features import FavorFeatures
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import RWGNKMask
from pyg_topomask.nn.inputs import as_graph, check_features, check_input_channels, compiled_if_prepared, linear
from pyg_topomask.nn.named_attention import RWGNKAttention
from pyg_topomask.nn.sparse_mask_attention import MaskedSoftmaxAttention
from pyg_topomask.utils.checks import check_choice, check_probability, check_size, is_whole
from pyg_topomask.utils.options import options_of
from pyg_topomask.utils.random import wrapped_seed

READOUTS = ('sum', 'mean', 'max', 'mf', 'dm')

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pyg_topomask.masks.options import UnseededRWGNKOptions


@options_of(RWGNKMask, without=['heads'])
class GKAT(torch.nn.Module):
    r"""The graph kernel attention Transformer of `"From block-Toeplitz matrices to differential equations on graphs"
    <https://arxiv.org/abs/2107.07999>`_ (Sec. 4.2, 5.1 to 5.3, App. A.2, A.3, A.5). It has layers of
    :class:`~pyg_topomask.nn.RWGNKAttention`, each with dropout before it and an ELU after it, and a readout. With
    :obj:`feature_map="softmax"`, the layers are :class:`~pyg_topomask.nn.MaskedSoftmaxAttention`, as in the authors' code. All
    layers share one ensemble of walks, which :class:`~pyg_topomask.transforms.AddRandomWalkKernel` can store. As in the paper,
    the kernel ignores edge weights, except with :obj:`transition="weight"`.

    Args:
        in_channels (int): Size of each input sample; :obj:`-1` is inferred at the first call, and does not work with
            :obj:`norm`.
        hidden_channels (int): The channels of a head.
        out_channels (int): Size of each output sample.
        heads (tuple of int): The number of heads of each layer. It also sets the number of layers. (default: :obj:`(8, 1)`)
        readout (str, optional): :obj:`None` for one output per node. For one output per graph, the :obj:`"sum"`, :obj:`"mean"`
            or :obj:`"max"` of its nodes and a linear layer; :obj:`"mf"` for the sum and an MLP, as in molecular fingerprints;
            or :obj:`"dm"` for an additional ReLU layer before the sum, as in deep multisets (Sec. 5.2).
            (default: :obj:`"sum"`)
        readout_channels (int, optional): The hidden channels of :obj:`"mf"` and :obj:`"dm"`; :obj:`None` is 32.
            (default: :obj:`None`)
        feature_map (str): The feature map of all layers, or :obj:`"softmax"` for the softmax kernel itself.
            (default: :obj:`"favor"`, random features of the softmax kernel)
        num_features (int, optional): The number :math:`r` of random features. (default: :obj:`hidden_channels`)
        dropout (float): Dropout probability of the input of each layer. (default: :obj:`0.0`)
        attention_dropout (float): With :obj:`feature_map="softmax"`, dropout probability of the coefficients.
            (default: :obj:`0.0`)
        norm (bool): Apply batch normalization to the input. (default: :obj:`False`)
        lin_channels (int, optional): The channels of a ReLU layer before the attention; :obj:`None` for none.
            (default: :obj:`None`)
        explicit (bool): Form the mask and the attention of each graph as dense matrices, in :math:`O(N^2)`. This is GKAT-0,
            the reference in Table 3. Parameters and outputs are the same. (default: :obj:`False`)
        dynamic (bool): Let the walks of each layer follow its attention, see :class:`~pyg_topomask.nn.RWGNKAttention`.
            (default: :obj:`False`)
        project (bool): Apply a linear layer to the concatenated heads of a layer. With :obj:`False`, the heads are only
            concatenated, as in GAT and App. A.5.2. Without a readout, the last layer then has one head with :obj:`out_channels`
            channels, and no ELU or linear layer follows it. (default: :obj:`True`)

    Shapes:
        - **input:** node features :math:`(|\mathcal{V}|, F_{in})`, edge indices :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*, batch vector :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** :math:`(B, F_{out})`, or :math:`(|\mathcal{V}|, F_{out})` without a readout

    Example:
        >>> model = GKAT(5, 4, 2)
        >>> model(torch.randn(3, 5), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([1, 2])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        heads: Sequence[int] = (8, 1),
        readout: str | None = 'sum',
        readout_channels: int | None = None,
        seed: int = 0,
        feature_map: str = 'favor',
        num_features: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        norm: bool = False,
        lin_channels: int | None = None,
        explicit: bool = False,
        dynamic: bool = False,
        project: bool = True,
        **options: Unpack[UnseededRWGNKOptions],
    ) -> None:
        super().__init__()
        if not isinstance(heads, Sequence) or not heads or not all(is_whole(number, 1) for number in heads):
            raise ArgumentError('heads', heads, 'numbers of heads from 1, one for each layer, such as (8, 1)')
        check_input_channels(in_channels)
        check_choice((False, True), norm=norm, explicit=explicit, dynamic=dynamic, project=project)
        if norm and in_channels == -1:
            raise ArgumentError('norm', 'True for in_channels=-1', 'False')
        check_size(hidden_channels=hidden_channels, out_channels=out_channels)
        check_size(lin_channels=1 if lin_channels is None else lin_channels)
        check_choice((*READOUTS, None), readout=readout)
        if readout_channels is not None and readout not in ('mf', 'dm'):
            raise ArgumentError('readout_channels', f'{readout_channels} for readout={readout!r}', 'None')
        readout_channels = 32 if readout_channels is None else readout_channels
        check_size(readout_channels=readout_channels)
        if num_features is not None and feature_map != 'favor':
            raise ArgumentError('num_features', f'{num_features} for feature_map={feature_map!r}', 'None')
        direct = readout is None and not project
        if direct and heads[-1] != 1:
            raise ArgumentError('heads', f'{tuple(heads)} with readout=None and project=False', '1 head in the last layer')
        check_probability(dropout=dropout, attention_dropout=attention_dropout)
        softmax = feature_map == 'softmax'
        if attention_dropout > 0 and not softmax:
            dropped = f'{attention_dropout} for feature_map={feature_map!r}'
            raise ArgumentError('attention_dropout', dropped, '0.0, and "softmax"')
        for name, given in (('explicit', explicit), ('dynamic', dynamic)):
            if softmax and given:
                raise ArgumentError(name, 'True for feature_map="softmax"', 'False, and other feature maps')
        self.in_channels = in_channels
        self.readout = readout
        self.dropout = dropout
        # A batch of one node has no variance to normalize by.
        self.norm = BatchNorm(in_channels, allow_single_element=True) if norm else torch.nn.Identity()
        self.lin_in = None if lin_channels is None else linear(in_channels, lin_channels)
        channels = in_channels if lin_channels is None else lin_channels
        self.layers = torch.nn.ModuleList()
        for layer, num_heads in enumerate(heads):
            width = out_channels if direct and layer == len(heads) - 1 else hidden_channels
            attention: RWGNKAttention | MaskedSoftmaxAttention
            if softmax:
                mask = RWGNKMask(num_heads, seed=seed, **options)
                attention = MaskedSoftmaxAttention(
                    channels, num_heads, mask, out_channels=num_heads * width, attention_dropout=attention_dropout
                )
            else:
                attention = RWGNKAttention(
                    channels,
                    num_heads,
                    dynamic,
                    seed=wrapped_seed(seed + layer) if dynamic else seed,
                    feature_map=FavorFeatures(width, num_features) if feature_map == 'favor' else feature_map,
                    route='blocks' if explicit else 'auto',
                    out_channels=num_heads * width,
                    **options,
                )
            if not project:
                attention.lin_out = torch.nn.Identity()  # the concatenated heads
            self.layers.append(attention)
            channels = num_heads * width
        self.lin_node = torch.nn.Linear(channels, readout_channels) if readout == 'dm' else None
        hidden = {'mf': [channels, readout_channels], 'dm': [readout_channels, readout_channels]}
        self.lin_out = None if direct else MLP([*hidden.get(readout or '', [channels]), out_channels], norm=None)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters, and redraws random features."""
        for module in (self.norm, self.lin_in, *self.layers, self.lin_node, self.lin_out):
            reset(module)

    def forward(
        self,
        x: Tensor,
        edge_index: Adj | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        graph: Graph | Data | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        r"""Runs the forward pass. The arguments are those of :meth:`MaskedLinearAttention.forward
        <pyg_topomask.nn.MaskedLinearAttention.forward>`, with node features :obj:`[N, in_channels]`. Walks stored on
        :obj:`graph` are used.
        """
        check_features(x, self.in_channels, next(self.parameters()).dtype)
        graph = compiled_if_prepared(as_graph, graph)(x, edge_index, edge_weight, batch, graph)
        x = self._first(x)
        for layer in self.layers:
            x = layer(F.dropout(x, self.dropout, self.training), graph=graph, generator=generator)
            if self.lin_out is not None or layer is not self.layers[-1]:
                x = F.elu(x)
        return x if self.lin_out is None else self.lin_out(self._pool(x, graph))

    def _first(self, x: Tensor) -> Tensor:
        x = self.norm(x)
        return x if self.lin_in is None else self.lin_in(x).relu()

    def _pool(self, x: Tensor, graph: Graph) -> Tensor:
        if self.readout is None:
            return x
        if self.lin_node is not None:
            x = self.lin_node(x).relu()
        batch = graph.batch
        if batch is None:
            batch = torch.zeros(graph.num_nodes, dtype=torch.long, device=x.device)
        pool = {'mean': global_mean_pool, 'max': global_max_pool}.get(self.readout, global_add_pool)
        return pool(x, batch.long(), graph.num_graphs)
