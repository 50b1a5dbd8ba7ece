"""The networks of Exphormer's repository."""

from typing import Any

from torch import Tensor
from torch.nn import Module, Sequential
from torch_geometric.data import Batch
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import register_network

from graphgps.layer.multi_model_layer import MultiLayer, SingleLayer
from graphgps.network.gps_model import FeatureEncoder


class Model(Module):
    """Encoders, layers of a kind, head."""

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.encoder = FeatureEncoder()
        self.layers = Sequential(
            *(
                self.make_layer(
                    dim_h=cfg.gt.dim_hidden,
                    num_heads=cfg.gt.n_heads,
                    dropout=cfg.gt.dropout,
                    attn_dropout=cfg.gt.attn_dropout,
                    layer_norm=cfg.gt.layer_norm,
                    batch_norm=cfg.gt.batch_norm,
                    bigbird_cfg=cfg.gt.bigbird,
                    exp_edges_cfg=cfg.prep,
                )
                for _ in range(cfg.gt.layers)
            )
        )
        self.post_mp = register.head_dict[cfg.gnn.head](dim_in=cfg.gnn.dim_inner, dim_out=dim_out)

    def make_layer(self, **kwargs: Any) -> Module:
        raise NotImplementedError

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        for module in self.children():
            batch = module(batch)
        return batch


@register_network('MultiModel')
class MultiModel(Model):
    def make_layer(self, **kwargs: Any) -> Module:
        return MultiLayer(model_types=cfg.gt.layer_type.split('+'), **kwargs)


@register_network('SingleModel')
class SingleModel(Model):
    def make_layer(self, **kwargs: Any) -> Module:
        return SingleLayer(model_type=cfg.gt.layer_type, **kwargs)
