r"""Attention layers with the signature of a PyG convolution, and a GPS layer that takes any of them.

An argument outside its range, an unknown name, and arguments that conflict raise an
:class:`~pyg_topomask.errors.ArgumentError`, which is a :class:`ValueError`. Layers document only what else they raise.
"""

from pyg_topomask.nn.by_name import attention
from pyg_topomask.nn.edge_weights import EdgeWeights
from pyg_topomask.nn.explicit_attention import ExplicitAttention
from pyg_topomask.nn.gps_conv import TopoGPSConv
from pyg_topomask.nn.kmip_attention import KMIPAttention
from pyg_topomask.nn.local_layers import GatedGCNConv
from pyg_topomask.nn.mask_encoding import MaskEncoding
from pyg_topomask.nn.masked_linear_attention import MaskedLinearAttention
from pyg_topomask.nn.named_attention import GRFAttention, HopAttention, RWGNKAttention, SinDegreeAttention, ToeplitzAttention
from pyg_topomask.nn.sparse_mask_attention import AsymmetricGRFAttention, GRFSoftmaxAttention, MaskedSoftmaxAttention

__all__ = [
    'AsymmetricGRFAttention',
    'EdgeWeights',
    'ExplicitAttention',
    'GRFAttention',
    'GRFSoftmaxAttention',
    'GatedGCNConv',
    'HopAttention',
    'KMIPAttention',
    'MaskEncoding',
    'MaskedLinearAttention',
    'MaskedSoftmaxAttention',
    'RWGNKAttention',
    'SinDegreeAttention',
    'ToeplitzAttention',
    'TopoGPSConv',
    'attention',
]
