r"""The models of :mod:`pyg_topomask.nn.models` as networks of GraphGym, with their arguments in :obj:`topomask.model`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.names.encoders import FeatureEncoder
from pyg_topomask.graphgym.names.lookup import construct, decoded
from pyg_topomask.graphgym.names.masks import build_mask, configured_tree
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import ExpanderMask, GRFMask, Mask, RWGNKMask
from pyg_topomask.nn.models import GKAT, Interlacer, TopologicalViT, ViViT
from pyg_topomask.utils.checks import is_whole
from pyg_topomask.utils.random import wrapped_seed


def _build(model: Callable[..., Module], **sizes: Any) -> Any:
    r"""Builds the model :obj:`cfg.model.type` with the arguments :obj:`cfg.topomask.model`, and the sizes of the data."""
    return construct('topomask.model', model, cfg.topomask.model, **sizes)


def _layer_mask() -> Callable[[int], Mask] | None:
    r"""Returns a function that creates the mask :obj:`cfg.topomask.mask` of each layer, with separate walks, or :obj:`None`."""
    tree = configured_tree(cfg.topomask.Masked.mask)
    if not tree:
        return None
    heads = decoded(cfg.topomask.model.get('heads', 1))
    if not is_whole(heads, 1):
        raise ArgumentError('topomask.model.heads', repr(heads), 'whole numbers from 1')

    def make(layer: int) -> Mask:
        mask = build_mask(tree, heads)
        for module in mask.modules():
            if isinstance(module, ExpanderMask | GRFMask | RWGNKMask):
                module.seed = wrapped_seed(module.seed + (layer << 48))  # far from those of other masks and of factors
        return mask

    return make


def _images(batch: Data, height: int, width: int) -> Tensor:
    r"""Returns the features of graphs of pixels, row by row, as images of shape :obj:`[B, channels, height, width]`."""
    sizes = batch.ptr.diff()
    wrong = sizes[sizes != height * width]
    shapes = batch.grid_shape.unique(dim=0).tolist() if 'grid_shape' in batch else []
    if wrong.numel() > 0:
        given = f'a graph of {int(wrong[0])} nodes'
        accepted = 'the height and the width of the grid that every graph is, one node for each pixel, row by row'
        raise ArgumentError('topomask.model.image_size', f'{[height, width]} for {given}', accepted)
    if any(shape != [height, width] for shape in shapes):
        given = f'{[height, width]} for grids of the shapes {shapes}'
        raise ArgumentError('topomask.model.image_size', given, 'the height and the width of every grid')
    return batch.x.view(sizes.numel(), height, width, -1).permute(0, 3, 1, 2)


class ImageModel(Module):
    r"""A :class:`~pyg_topomask.nn.models.TopologicalViT` on graphs of pixels. The features of a pixel are the channels of the
    image. Edges are ignored, because masks use the grid of patches.
    """

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.model: TopologicalViT = _build(TopologicalViT, in_channels=dim_in, num_classes=dim_out, mask=_layer_mask())

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        return self.model(_images(batch, *self.model.embedding.shape[1:])), batch.y


class VideoModel(Module):
    r"""A :class:`~pyg_topomask.nn.models.ViViT` on graphs of pixels with the concatenated features of all frames."""

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        frames = decoded(cfg.topomask.model.get('num_frames', 1))
        if not is_whole(frames, 1) or dim_in % frames != 0:
            raise ArgumentError('topomask.model.num_frames', f'{frames!r} for {dim_in} features of a pixel', 'divisors of that')
        self.model: ViViT = _build(ViViT, in_channels=dim_in // frames, num_classes=dim_out, mask=_layer_mask())

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        frames, channels, *size = self.model.shape
        return self.model(_images(batch, *size).unflatten(1, (frames, channels))), batch.y


class ParticleModel(Module):
    r"""An :class:`~pyg_topomask.nn.models.Interlacer` on graphs of particles in the format of
    :class:`~pyg_topomask.apps.datasets.ClothRollouts`. It predicts the positions :obj:`target` step by step.
    """

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.model: Interlacer = _build(Interlacer, in_channels=dim_in + cfg.share.dim_history)

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        for key in ('pos', 'history', 'target'):
            if key not in batch:
                raise ArgumentError(f'model.type {cfg.model.type}', f'data without {key}', 'data with it, such as cloth')
        steps = batch.target.size(1)
        predicted = self.model.rollout(batch.pos, batch.history, steps, batch.x, batch.batch)
        return predicted.flatten(1), batch.target.flatten(1)


class GKATModel(Module):
    r"""A :class:`~pyg_topomask.nn.models.GKAT`, with :obj:`readout: null` for tasks on nodes, after any node encoder."""

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.encoder = FeatureEncoder(dim_in)
        self.model: GKAT = _build(GKAT, in_channels=self.encoder.dim_out, out_channels=dim_out)
        readout = self.model.readout
        if (readout is None) != (cfg.dataset.task == 'node'):
            raise ArgumentError(
                'topomask.model.readout',
                f'{readout!r} for dataset.task {cfg.dataset.task!r}',
                'null for the task node, and a readout for the task graph',
            )

    def forward(self, batch: Data) -> tuple[Tensor, Tensor]:
        batch = self.encoder(batch)
        out = self.model(batch.x, batch.edge_index, graph=Graph.from_data(batch))
        mask = f'{batch.split}_mask'
        return (out[batch[mask]], batch.y[batch[mask]]) if mask in batch else (out, batch.y)


#: Networks by the value of :obj:`model.type`, built with the sizes of the raw node features and of the prediction.
MODELS: dict[str, type[Module]] = {
    'TopologicalViT': ImageModel,
    'ViViT': VideoModel,
    'Interlacer': ParticleModel,
    'GKAT': GKATModel,
}


for _name, _model in MODELS.items():
    register.network_dict.setdefault(_name, _model)
