r"""Attention layers with the signature of a PyG convolution, and a GPS layer that takes any of them."""

from pyg_topomask.nn.explicit_attention import AsymmetricGRFAttention, GRFSoftmaxAttention, MaskedSoftmaxAttention
from pyg_topomask.nn.gps_conv import TopoGPSConv
from pyg_topomask.nn.grf_attention import GRFAttention
from pyg_topomask.nn.masked_linear_attention import MaskedLinearAttention
from pyg_topomask.nn.rwgnk_attention import RWGNKAttention

__all__ = [
    'AsymmetricGRFAttention',
    'GRFAttention',
    'GRFSoftmaxAttention',
    'MaskedLinearAttention',
    'MaskedSoftmaxAttention',
    'RWGNKAttention',
    'TopoGPSConv',
]
