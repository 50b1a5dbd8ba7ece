"""The layers of Exphormer's repository: any number of models, summed, and a feed-forward block; and one model alone."""

from typing import Any

from torch import Tensor
from torch.nn import Dropout, Linear, Module, ModuleList, MultiheadAttention, ReLU, Sequential
from torch_geometric.data import Batch
from torch_geometric.nn import GCNConv, GraphNorm
from torch_geometric.utils import to_dense_batch


class LocalModel(Module):
    def __init__(self, dim_h: int) -> None:
        super().__init__()
        self.conv = GCNConv(dim_h, dim_h)

    def forward(self, batch: Batch) -> Tensor:
        return batch.x + self.conv(batch.x, batch.edge_index)


class GlobalModel(Module):
    def __init__(
        self,
        dim_h: int,
        global_model_type: str,
        edge_type: str,
        use_edge_attr: bool,
        edge_attr_type: str | None,
        num_heads: int,
        dropout: float = 0.0,
        attn_dropout: float = 0.0,
        layer_norm: bool = False,
        batch_norm: bool = True,
        bigbird_cfg: Any = None,
        exp_edges_cfg: Any = None,
    ) -> None:
        super().__init__()
        self.self_attn = MultiheadAttention(dim_h, num_heads, dropout=attn_dropout, batch_first=True)
        self.global_model_type = global_model_type
        self.norm1_attn = GraphNorm(dim_h) if layer_norm else None
        self.dropout_attn = Dropout(dropout)

    def forward(self, batch: Batch) -> Tensor:
        if self.global_model_type == 'Exphormer':
            attended = self.self_attn(batch)
        else:
            dense, mask = to_dense_batch(batch.x, batch.batch)
            attended = self.self_attn(dense, dense, dense, key_padding_mask=~mask)[0][mask]
        h = batch.x + self.dropout_attn(attended)
        return h if self.norm1_attn is None else self.norm1_attn(h, batch.batch)


class MultiLayer(Module):
    def __init__(
        self,
        dim_h: int,
        model_types: list[str],
        num_heads: int,
        dropout: float = 0.0,
        attn_dropout: float = 0.0,
        layer_norm: bool = False,
        batch_norm: bool = True,
        bigbird_cfg: Any = None,
        exp_edges_cfg: Any = None,
    ) -> None:
        super().__init__()
        self.model_types = model_types
        self.attn_dropout = attn_dropout
        models: list[Module] = []
        for name in model_types:
            if name == 'Transformer':
                models.append(
                    GlobalModel(dim_h, name, 'edge_index', True, 'edge_attr', num_heads, dropout, attn_dropout, layer_norm)
                )
            elif name == 'GCN':
                models.append(LocalModel(dim_h))
            else:
                raise ValueError(f'Unsupported layer type: {name}')
        self.models = ModuleList(models)
        self.feed_forward = Sequential(Linear(dim_h, 2 * dim_h), ReLU(), Linear(2 * dim_h, dim_h))
        self.norm2 = GraphNorm(dim_h) if layer_norm else None

    def forward(self, batch: Batch) -> Batch:
        h = sum(model(batch) for model in self.models)
        h = h + self._ff_block(h)
        batch.x = h if self.norm2 is None else self.norm2(h, batch.batch)
        return batch

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.feed_forward(x)


class SingleLayer(Module):
    def __init__(
        self,
        dim_h: int,
        model_type: str,
        num_heads: int,
        dropout: float = 0.0,
        attn_dropout: float = 0.0,
        layer_norm: bool = False,
        batch_norm: bool = True,
        bigbird_cfg: Any = None,
        exp_edges_cfg: Any = None,
    ) -> None:
        super().__init__()
        self.model_type = model_type
        self.attn_dropout = attn_dropout
        if model_type == 'Transformer':
            self.model: Module = GlobalModel(
                dim_h, model_type, 'edge_index', True, 'edge_attr', num_heads, dropout, attn_dropout, layer_norm
            )
        elif model_type == 'GCN':
            self.model = LocalModel(dim_h)
        else:
            raise ValueError(f'Unsupported layer type: {model_type}')
        self.activation = ReLU()

    def forward(self, batch: Batch) -> Batch:
        batch.x = self.activation(self.model(batch))
        return batch
