r"""Full attention, as fast and lean as PyTorch has it."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

__all__ = ['full_attention']


def full_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    r"""Returns :func:`torch.nn.functional.scaled_dot_product_attention` of queries and keys that are padded with zeros to the
    size of the values: the kernel that never forms the scores takes equal sizes alone.

    Args:
        q (torch.Tensor): Queries, :obj:`[batch, heads, N, d]`.
        k (torch.Tensor): Keys, :obj:`[batch, heads, N, d]`.
        v (torch.Tensor): Values, :obj:`[batch, heads, N, d_v]` with :obj:`d_v >= d`.
    """
    missing = (0, v.size(-1) - q.size(-1))
    out: Tensor = scaled_dot_product_attention(pad(q, missing), pad(k, missing), v, scale=q.size(-1) ** -0.5)
    return out
