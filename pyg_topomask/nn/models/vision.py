r"""Vision Transformers for images and videos, with topologically masked attention over the grid of patches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor
from torch_geometric.nn.inits import reset

from pyg_topomask.errors import ArgumentError
from pyg_topomask.feature_maps.feature_map import FeatureMap
from pyg_topomask.nn.inputs import check_dtype
from pyg_topomask.nn.models.grid_encoder import GridEncoder, LayerMask
from pyg_topomask.utils.checks import check_size, is_whole
from pyg_topomask.utils.options import described_by


class PatchEmbedding(torch.nn.Module):
    r"""Splits images into patches, whose height and width divide those of the images, and projects each patch to a token."""

    def __init__(
        self, image_size: int | tuple[int, int], patch_size: int | tuple[int, int], in_channels: int, channels: int
    ) -> None:
        super().__init__()
        height, width = _pair('image_size', image_size)
        rows, columns = _pair('patch_size', patch_size)
        if height % rows != 0 or width % columns != 0:
            raise ArgumentError('patch_size', f'{patch_size} for image_size={image_size}', 'sizes that divide the images')
        check_size(in_channels=in_channels, channels=channels)
        self.shape = (in_channels, height, width)
        self.grid: tuple[int, int] = (height // rows, width // columns)
        self.conv = torch.nn.Conv2d(in_channels, channels, (rows, columns), (rows, columns))

    def forward(self, images: Tensor) -> Tensor:
        r"""Returns the tokens, row by row, :obj:`[B, patches, channels]`."""
        if images.shape[1:] != self.shape:
            raise ArgumentError('images', f'shape {tuple(images.shape)}', f'[B, {", ".join(map(str, self.shape))}]')
        check_dtype(self.conv.weight.dtype, images=images)
        return self.conv(images).flatten(2).transpose(1, 2)


def _pair(name: str, size: int | tuple[int, int]) -> tuple[int, int]:
    pair = size if isinstance(size, Sequence) else (size, size)
    if len(pair) != 2 or not all(is_whole(size, 1) for size in pair):
        raise ArgumentError(name, repr(size), 'a whole number from 1, and height and width')
    return pair


@described_by(GridEncoder)
class TopologicalViT(torch.nn.Module):
    r"""The vision Transformer of `"An Image is Worth 16x16 Words" <https://arxiv.org/abs/2010.11929>`_ with topologically
    masked attention, from `"Linear Transformer Topological Masking with Graph Random Features"
    <https://arxiv.org/abs/2410.03462>`_ (Sec. 4.2, App. C.1). Patches are the nodes of a grid, with edges to their
    neighbors in x and y and with learned additive position embeddings. Blocks are pre-norm. A linear head follows the mean of
    the patches.

    The grid is fixed. Masks are prepared once for all images. Grids with more than :obj:`dense_limit` patches prepare them
    again when the number of images changes. Layers whose masks have equal settings share the prepared state. Masks with
    different seeds give each layer separate walks. The matrices of :class:`~pyg_topomask.masks.DenseMask` and the factors of
    :class:`~pyg_topomask.masks.LowRankMask` cover the patches of one image, and apply to every image.

    Args:
        image_size (int or (int, int)): Height and width of the images.
        patch_size (int or (int, int)): Height and width of the patches, which divide those of the images.
        in_channels (int): The channels of the images.
        num_classes (int): The number of classes.

    Shapes:
        - **input:** images :math:`(B, C_{in}, H, W)`
        - **output:** logits :math:`(B, \text{classes})`

    Example:
        >>> from pyg_topomask.masks import GRFMask
        >>> model = TopologicalViT(8, 2, 1, 10, 16, depth=2, heads=4, mlp_channels=32, mask=lambda i: GRFMask(4, seed=i))
        >>> model(torch.rand(3, 1, 8, 8)).shape
        torch.Size([3, 10])
    """

    def __init__(
        self,
        image_size: int | tuple[int, int],
        patch_size: int | tuple[int, int],
        in_channels: int,
        num_classes: int,
        channels: int,
        depth: int,
        heads: int,
        mlp_channels: int,
        mask: LayerMask | None = None,
        feature_map: str | Callable[[int], FeatureMap] = 'relu',
        attention: str = 'linear',
        dropout: float = 0.0,
        dense_limit: int = 256,
    ) -> None:
        super().__init__()
        check_size(num_classes=num_classes)
        self.embedding = PatchEmbedding(image_size, patch_size, in_channels, channels)
        self.encoder = GridEncoder(
            *self.embedding.grid,
            channels=channels,
            depth=depth,
            heads=heads,
            mlp_channels=mlp_channels,
            mask=mask,
            feature_map=feature_map,
            attention=attention,
            dropout=dropout,
            dense_limit=dense_limit,
        )
        self.head = torch.nn.Linear(channels, num_classes)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters, and redraws random features."""
        for module in (self.embedding, self.encoder, self.head):
            reset(module)

    def forward(self, images: Tensor) -> Tensor:
        r"""Returns the logits, :obj:`[B, num_classes]`, of images of shape :obj:`[B, in_channels, height, width]`."""
        return self.head(self.encoder(self.embedding(images)))


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
            given = f'{tubelet_frames} for num_frames={num_frames}'
            raise ArgumentError('tubelet_frames', given, 'numbers that divide the frames')
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
