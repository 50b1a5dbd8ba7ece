r"""Attention layers with the signature of a PyG convolution, and a GPS layer that takes any of them."""

from pyg_topomask.nn.asymmetric_grf_attention import AsymmetricGRFAttention
from pyg_topomask.nn.explicit_attention import ExplicitAttention
from pyg_topomask.nn.gated_gcn_conv import GatedGCNConv
from pyg_topomask.nn.gps_conv import TopoGPSConv
from pyg_topomask.nn.grf_attention import GRFAttention
from pyg_topomask.nn.hop_attention import HopAttention
from pyg_topomask.nn.kmip_attention import KMIPAttention
from pyg_topomask.nn.masked_linear_attention import MaskedLinearAttention
from pyg_topomask.nn.masked_softmax_attention import GRFSoftmaxAttention, MaskedSoftmaxAttention
from pyg_topomask.nn.rwgnk_attention import RWGNKAttention
from pyg_topomask.nn.sin_degree_attention import SinDegreeAttention
from pyg_topomask.nn.toeplitz_attention import ToeplitzAttention

__all__ = [
    'AsymmetricGRFAttention',
    'ExplicitAttention',
    'GRFAttention',
    'GRFSoftmaxAttention',
    'GatedGCNConv',
    'HopAttention',
    'KMIPAttention',
    'MaskedLinearAttention',
    'MaskedSoftmaxAttention',
    'RWGNKAttention',
    'SinDegreeAttention',
    'ToeplitzAttention',
    'TopoGPSConv',
]
