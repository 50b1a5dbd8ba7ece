"""Trains what a YAML describes for a few epochs, in the order of calls of GraphGPS's main.py."""

import graphgps  # noqa: F401
import torch
from torch_geometric import seed_everything
from torch_geometric.graphgym.cmd_args import parse_args
from torch_geometric.graphgym.config import cfg, load_cfg, set_cfg, set_out_dir, set_run_dir
from torch_geometric.graphgym.loader import create_loader
from torch_geometric.graphgym.loss import compute_loss
from torch_geometric.graphgym.model_builder import create_model
from torch_geometric.graphgym.train import GraphGymDataModule, train
from torch_geometric.graphgym.utils.device import auto_select_device

if __name__ == '__main__':
    args = parse_args()
    set_cfg(cfg)
    load_cfg(cfg, args)
    set_out_dir(cfg.out_dir, args.cfg_file)
    set_run_dir(cfg.out_dir)
    seed_everything(cfg.seed)
    auto_select_device()
    loaders = create_loader()
    model = create_model()
    cfg.params = sum(parameter.numel() for parameter in model.parameters())
    if cfg.train.mode == 'standard':
        train(model, GraphGymDataModule())
        raise SystemExit
    optimizer = torch.optim.Adam(model.parameters(), cfg.optim.base_lr)
    for epoch in range(cfg.optim.max_epoch):
        for batch in loaders[0]:
            loss, _ = compute_loss(*model(batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f'epoch {epoch} loss {loss.item():.6f}')
    print(f'layers {[type(layer).__module__ for layer in model.model.layers]}')
