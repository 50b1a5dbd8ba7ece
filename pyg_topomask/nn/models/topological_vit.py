r"""A vision Transformer with topologically masked attention over the grid of patches."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.nn.inits import reset

from pyg_topomask.feature_maps import FeatureMap
from pyg_topomask.nn.models.grid_encoder import GridEncoder, LayerMask
from pyg_topomask.nn.models.patch_embedding import PatchEmbedding
from pyg_topomask.utils.checks import check_size
from pyg_topomask.utils.options import described_by


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
