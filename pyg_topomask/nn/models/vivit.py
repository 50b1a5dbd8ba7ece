r"""A video vision Transformer with topological masks in its spatial encoder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch_geometric.nn.inits import reset

from pyg_topomask.errors import ArgumentError
from pyg_topomask.feature_maps import FeatureMap
from pyg_topomask.nn.inputs import check_dtype
from pyg_topomask.nn.models.grid_encoder import GridEncoder, LayerMask
from pyg_topomask.nn.models.patch_embedding import PatchEmbedding
from pyg_topomask.utils.checks import check_size
from pyg_topomask.utils.options import described_by


@described_by(GridEncoder)
class ViViT(torch.nn.Module):
    r"""The factorized encoder of `"ViViT: A Video Vision Transformer" <https://arxiv.org/abs/2103.15691>`_ (Sec. 3.3, model 2)
    with topologically masked attention between patches, from `"Linear Transformer Topological Masking with Graph Random
    Features" <https://arxiv.org/abs/2410.03462>`_ (App. C.4).

    The tokens are tubelets, which are patches of several successive frames. The spatial encoder is that of
    :class:`~pyg_topomask.nn.models.TopologicalViT`. It encodes the tubelets of each time index as one vector. The temporal
    encoder attends between these vectors. It has the same architecture without a mask. A linear head follows the mean of its
    outputs.

    Args:
        image_size (int or (int, int)): Height and width of the frames.
        patch_size (int or (int, int)): Height and width of the tubelets, which divide those of the frames.
        num_frames (int): The number of frames :math:`T`.
        tubelet_frames (int): The frames of a tubelet, a divisor of :obj:`num_frames`.
        in_channels (int): The channels of the frames.
        num_classes (int): The number of classes.
        depth (int): The number of spatial layers, which :obj:`mask` counts.
        temporal_depth (int): The number of temporal layers.
        attention (str): :obj:`"softmax"` or :obj:`"linear"`, in both encoders. Softmax attention needs nonnegative masks.
            (default: :obj:`"softmax"`)

    Shapes:
        - **input:** videos :math:`(B, T, C_{in}, H, W)`
        - **output:** logits :math:`(B, \text{classes})`

    Example:
        >>> from pyg_topomask.masks import GRFMask
        >>> mask = lambda layer: GRFMask(heads=4, seed=layer, positive=True)
        >>> model = ViViT(8, 4, 6, 2, 1, 10, 16, 2, 1, heads=4, mlp_channels=32, mask=mask)
        >>> model(torch.rand(3, 6, 1, 8, 8)).shape
        torch.Size([3, 10])
    """

    def __init__(
        self,
        image_size: int | tuple[int, int],
        patch_size: int | tuple[int, int],
        num_frames: int,
        tubelet_frames: int,
        in_channels: int,
        num_classes: int,
        channels: int,
        depth: int,
        temporal_depth: int,
        heads: int,
        mlp_channels: int,
        mask: LayerMask | None = None,
        feature_map: str | Callable[[int], FeatureMap] = 'relu',
        attention: str = 'softmax',
        dropout: float = 0.0,
        dense_limit: int = 256,
    ) -> None:
        super().__init__()
        check_size(num_frames=num_frames, tubelet_frames=tubelet_frames, in_channels=in_channels)
        check_size(num_classes=num_classes, temporal_depth=temporal_depth)
        if num_frames % tubelet_frames != 0:
            raise ArgumentError(
                'tubelet_frames', f'{tubelet_frames} for num_frames={num_frames}', 'numbers that divide the frames'
            )
        self.num_indices = num_frames // tubelet_frames
        # A tubelet is a patch of an image with the channels of all of its frames.
        self.embedding = PatchEmbedding(image_size, patch_size, tubelet_frames * in_channels, channels)
        self.shape = (num_frames, in_channels, *self.embedding.shape[1:])
        encoder = partial(
            GridEncoder,
            channels=channels,
            heads=heads,
            mlp_channels=mlp_channels,
            feature_map=feature_map,
            attention=attention,
            dropout=dropout,
            dense_limit=dense_limit,
        )
        self.spatial = encoder(*self.embedding.grid, depth=depth, mask=mask)
        self.temporal = encoder(1, self.num_indices, depth=temporal_depth)
        self.head = torch.nn.Linear(channels, num_classes)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters, and redraws random features."""
        for module in (self.embedding, self.spatial, self.temporal, self.head):
            reset(module)

    def forward(self, videos: Tensor) -> Tensor:
        r"""Returns the logits, :obj:`[B, num_classes]`, of videos of shape :obj:`[B, T, in_channels, height, width]`."""
        if videos.shape[1:] != self.shape:
            raise ArgumentError('videos', f'shape {tuple(videos.shape)}', f'[B, {", ".join(map(str, self.shape))}]')
        check_dtype(self.head.weight.dtype, videos=videos)
        images = videos.unflatten(1, (self.num_indices, -1)).flatten(2, 3).flatten(0, 1)
        frames = self.spatial(self.embedding(images)).unflatten(0, (videos.size(0), self.num_indices))
        return self.head(self.temporal(frames))
