"""The network GPSModel: encoders, layers, head."""

from torch import Tensor
from torch.nn import Module, Sequential
from torch_geometric.data import Batch
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.models.gnn import GNNPreMP
from torch_geometric.graphgym.register import register_network

from graphgps.layer.gps_layer import GPSLayer


class FeatureEncoder(Module):
    def __init__(self) -> None:
        super().__init__()
        if cfg.dataset.node_encoder:
            self.node_encoder = register.node_encoder_dict[cfg.dataset.node_encoder_name](cfg.gnn.dim_inner)
        if cfg.dataset.edge_encoder:
            self.edge_encoder = register.edge_encoder_dict[cfg.dataset.edge_encoder_name](cfg.gnn.dim_inner)

    def forward(self, batch: Batch) -> Batch:
        for module in self.children():
            batch = module(batch)
        return batch


@register_network('GPSModel')
class GPSModel(Module):
    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.encoder = FeatureEncoder()
        if cfg.gnn.layers_pre_mp > 0:
            self.pre_mp = GNNPreMP(cfg.gnn.dim_inner if cfg.dataset.node_encoder else dim_in, cfg.gnn.dim_inner, 1)
        local_gnn_type, global_model_type = cfg.gt.layer_type.split('+')
        self.layers = Sequential(
            *(
                GPSLayer(
                    dim_h=cfg.gt.dim_hidden,
                    local_gnn_type=local_gnn_type,
                    global_model_type=global_model_type,
                    num_heads=cfg.gt.n_heads,
                    act=cfg.gnn.act,
                    pna_degrees=cfg.gt.pna_degrees,
                    equivstable_pe=cfg.posenc_EquivStableLapPE.enable,
                    dropout=cfg.gt.dropout,
                    attn_dropout=cfg.gt.attn_dropout,
                    layer_norm=cfg.gt.layer_norm,
                    batch_norm=cfg.gt.batch_norm,
                    bigbird_cfg=cfg.gt.bigbird,
                    log_attn_weights=cfg.train.mode == 'log-attn-weights',
                )
                for _ in range(cfg.gt.layers)
            )
        )
        self.post_mp = register.head_dict[cfg.gnn.head](dim_in=cfg.gnn.dim_inner, dim_out=dim_out)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        for module in self.children():
            batch = module(batch)
        return batch
