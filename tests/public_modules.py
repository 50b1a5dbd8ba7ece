"""All public masks, layers and models, made small."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import Module, Parameter
from torch_geometric.nn import GCNConv

from pyg_topomask import masks, nn
from pyg_topomask.masks import (
    AdjacencyMask,
    DenseMask,
    HadamardMask,
    HopMask,
    LowRankMask,
    MultiHeadMask,
    PowerSeriesMask,
    ScaledMask,
    SinDegreeMask,
    SumMask,
    TransposedMask,
)
from pyg_topomask.nn import (
    GatedGCNConv,
    GRFAttention,
    MaskedLinearAttention,
    MaskedSoftmaxAttention,
    MaskEncoding,
    TopoGPSConv,
    models,
)
from pyg_topomask.nn.models import GKAT, Interlacer, MGFormer, TopologicalViT, ViViT

_GIVEN: dict[type, Callable[[], Module]] = {
    DenseMask: lambda: DenseMask(2, Parameter(torch.ones(2, 3, 3))),
    LowRankMask: lambda: LowRankMask(2, Parameter(torch.ones(3, 2, 2)), Parameter(torch.ones(3, 2, 2))),
    SumMask: lambda: AdjacencyMask(2) + PowerSeriesMask(2),
    HadamardMask: lambda: AdjacencyMask(2) * SinDegreeMask(2),
    MultiHeadMask: lambda: MultiHeadMask(AdjacencyMask(1), PowerSeriesMask(1)),
    ScaledMask: lambda: ScaledMask(PowerSeriesMask(2), 0.5),
    TransposedMask: lambda: PowerSeriesMask(2).T,
    MaskedLinearAttention: lambda: MaskedLinearAttention(8, 2, PowerSeriesMask(2), feature_map='favor'),
    MaskedSoftmaxAttention: lambda: MaskedSoftmaxAttention(8, 2, AdjacencyMask(2)),
    GatedGCNConv: lambda: GatedGCNConv(8),
    MaskEncoding: lambda: MaskEncoding(HopMask(2), 8),
    TopoGPSConv: lambda: TopoGPSConv(8, GCNConv(8, 8), attn=GRFAttention(8, 2)),
    GKAT: lambda: GKAT(8, 4, 2, heads=(2, 1)),
    Interlacer: lambda: Interlacer(8, 4, 8),
    MGFormer: lambda: MGFormer(5, 7, 8, svd_dim=0, heads=2),
    TopologicalViT: lambda: TopologicalViT(8, 4, 1, 2, 8, 1, 2, 16, attention='linear', dense_limit=1),
    ViViT: lambda: ViViT(8, 4, 2, 1, 1, 2, 8, 1, 1, 2, 16),
}


def _modules() -> dict[str, Callable[[], Module]]:
    made: dict[str, Callable[[], Module]] = {}
    for module in (masks, nn, models):
        for name in module.__all__:
            kind: Any = getattr(module, name)
            if inspect.isclass(kind) and issubclass(kind, Module) and not inspect.isabstract(kind):
                sizes = (8, 2) if module is nn else (2,)
                made[name] = _GIVEN.get(kind, lambda kind=kind, sizes=sizes: kind(*sizes))
    return made


#: Each public module by name, with 2 heads, and layers with 8 channels.
MODULES = _modules()
