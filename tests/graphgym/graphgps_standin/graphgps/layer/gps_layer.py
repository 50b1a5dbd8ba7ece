"""The GPS layer: a local and a global model, residuals and norms, summed, and a feed-forward block."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Dropout, Linear, Module, MultiheadAttention, ReLU, Sequential
from torch_geometric.data import Batch
from torch_geometric.nn import GATConv, GCNConv, GENConv, GINConv, GINEConv, LayerNorm, PNAConv, ResGatedGraphConv
from torch_geometric.utils import to_dense_batch


def mlp(dim: int) -> Sequential:
    return Sequential(Linear(dim, dim), ReLU(), Linear(dim, dim))


class GatedGCN(Module):
    """Updates nodes and edges, and does its own residuals."""

    def __init__(self, dim: int, equivstable_pe: bool) -> None:
        super().__init__()
        self.conv = ResGatedGraphConv(dim, dim, edge_dim=dim)
        self.edge = Linear(dim, dim)
        self.equivstable_pe = equivstable_pe

    def forward(self, batch: Batch) -> Batch:
        if self.equivstable_pe:
            batch.x = batch.x + batch.pe_EquivStableLapPE.mean(1, keepdim=True)
        source, target = batch.edge_index
        edge_attr = batch.edge_attr + self.edge(batch.x[source] * batch.x[target])
        batch.x = batch.x + self.conv(batch.x, batch.edge_index, batch.edge_attr)
        batch.edge_attr = edge_attr
        return batch


class GINEWithPositions(GINEConv):
    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, positions: Tensor) -> Tensor:
        return super().forward(x + positions.mean(1, keepdim=True), edge_index, edge_attr)


class GPSLayer(Module):
    def __init__(
        self,
        dim_h: int,
        local_gnn_type: str,
        global_model_type: str,
        num_heads: int,
        act: str = 'relu',
        pna_degrees: Any = None,
        equivstable_pe: bool = False,
        dropout: float = 0.0,
        attn_dropout: float = 0.0,
        layer_norm: bool = False,
        batch_norm: bool = True,
        bigbird_cfg: Any = None,
        log_attn_weights: bool = False,
    ) -> None:
        super().__init__()
        if log_attn_weights and global_model_type not in ('Transformer', 'BiasedTransformer'):
            raise NotImplementedError(f"Logging is not supported for '{global_model_type}' global attention")
        self.local_gnn_type, self.global_model_type = local_gnn_type, global_model_type
        self.attn_dropout, self.equivstable_pe = attn_dropout, equivstable_pe
        self.layer_norm, self.batch_norm = layer_norm, batch_norm
        self.log_attn_weights = log_attn_weights
        local = {
            'None': lambda: None,
            'GCN': lambda: GCNConv(dim_h, dim_h),
            'GIN': lambda: GINConv(mlp(dim_h)),
            'GENConv': lambda: GENConv(dim_h, dim_h),
            'GINE': lambda: (GINEWithPositions if equivstable_pe else GINEConv)(mlp(dim_h)),
            'GAT': lambda: GATConv(dim_h, dim_h // num_heads, num_heads, edge_dim=dim_h),
            'PNA': lambda: PNAConv(dim_h, dim_h, ['mean'], ['identity'], torch.tensor(pna_degrees), edge_dim=dim_h),
            'CustomGatedGCN': lambda: GatedGCN(dim_h, equivstable_pe),
        }
        if local_gnn_type not in local:
            raise ValueError(f'Unsupported local GNN model: {local_gnn_type}')
        self.local_model = local[local_gnn_type]()
        if global_model_type == 'None':
            self.self_attn = None
        elif global_model_type == 'Transformer':
            self.self_attn = MultiheadAttention(dim_h, num_heads, dropout=attn_dropout, batch_first=True)
        else:
            raise ValueError(f'Unsupported global x-former model: {global_model_type}')
        if layer_norm and batch_norm:
            raise ValueError('Cannot apply two types of normalization together')
        if layer_norm or batch_norm:
            norm = LayerNorm if layer_norm else BatchNorm1d
            self.norm1_local, self.norm1_attn, self.norm2 = norm(dim_h), norm(dim_h), norm(dim_h)
        self.dropout_local, self.dropout_attn = Dropout(dropout), Dropout(dropout)
        self.feed_forward = Sequential(Linear(dim_h, 2 * dim_h), ReLU(), Linear(2 * dim_h, dim_h))

    def _normalize(self, norm: str, h: Tensor, batch: Batch) -> Tensor:
        if self.layer_norm:
            return getattr(self, norm)(h, batch.batch)
        return getattr(self, norm)(h) if self.batch_norm else h

    def forward(self, batch: Batch) -> Batch:
        h, outputs = batch.x, []
        if self.local_gnn_type == 'CustomGatedGCN':
            positions = batch.pe_EquivStableLapPE if self.equivstable_pe else None
            inner = Batch(
                batch=batch, x=h, edge_index=batch.edge_index, edge_attr=batch.edge_attr, pe_EquivStableLapPE=positions
            )
            inner = self.local_model(inner)
            batch.edge_attr = inner.edge_attr
            outputs.append(self._normalize('norm1_local', inner.x, batch))
        elif self.local_model is not None:
            extra = [] if self.local_gnn_type in ('GCN', 'GIN') else [batch.edge_attr]
            extra += [batch.pe_EquivStableLapPE] if extra and self.equivstable_pe else []
            local = self.dropout_local(self.local_model(h, batch.edge_index, *extra))
            outputs.append(self._normalize('norm1_local', h + local, batch))
        if self.self_attn is not None:
            dense, mask = to_dense_batch(h, batch.batch)
            attended, weights = self.self_attn(dense, dense, dense, key_padding_mask=~mask, average_attn_weights=False)
            if self.log_attn_weights:
                self.attn_weights = weights.detach().cpu()
            outputs.append(self._normalize('norm1_attn', h + self.dropout_attn(attended[mask]), batch))
        h = sum(outputs)
        h = h + self._ff_block(h)
        batch.x = self._normalize('norm2', h, batch)
        return batch

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.feed_forward(x)
