"""The options that GraphGPS declares, as far as configurations of this package use them."""

from torch_geometric.graphgym.register import register_config
from yacs.config import CfgNode


@register_config('cfg_gt')
def set_cfg_gt(cfg: CfgNode) -> None:
    cfg.gt = CfgNode(
        {
            'layer_type': 'SANLayer',
            'layers': 3,
            'n_heads': 8,
            'dim_hidden': 64,
            'pna_degrees': [],
            'dropout': 0.0,
            'attn_dropout': 0.0,
            'layer_norm': False,
            'batch_norm': True,
            'bigbird': {},
        }
    )


@register_config('posenc')
def set_cfg_posenc(cfg: CfgNode) -> None:
    common = {'enable': False, 'model': 'none', 'dim_pe': 16, 'layers': 3, 'n_heads': 4, 'raw_norm_type': 'none'}
    cfg.posenc_LapPE = CfgNode({**common, 'eigen': {'laplacian_norm': 'sym', 'eigvec_norm': 'L2', 'max_freqs': 10}})
    cfg.posenc_RWSE = CfgNode({**common, 'kernel': {'times': [], 'times_func': ''}})
    cfg.posenc_EquivStableLapPE = CfgNode({'enable': False})


@register_config('extended_optim')
def extended_optim_cfg(cfg: CfgNode) -> None:
    cfg.optim.num_warmup_epochs = 50
    cfg.optim.clip_grad_norm = False


@register_config('dataset_cfg')
def dataset_cfg(cfg: CfgNode) -> None:
    cfg.dataset.node_encoder_num_types = 0
    cfg.dataset.edge_encoder_num_types = 0
    cfg.dataset.slic_compactness = 10


@register_config('split')
def set_cfg_split(cfg: CfgNode) -> None:
    cfg.dataset.split_mode = 'standard'


@register_config('overwrite_defaults')
def overwrite_defaults_cfg(cfg: CfgNode) -> None:
    cfg.train.mode = 'custom'


@register_config('cfg_wandb')
def set_cfg_wandb(cfg: CfgNode) -> None:
    cfg.wandb = CfgNode({'use': True})


@register_config('cfg_prep')
def set_cfg_prep(cfg: CfgNode) -> None:
    cfg.prep = CfgNode({'num_virt_node': 0})
