r"""Encoders of kinds: of atoms and bonds as PyG numbers them, and of edges that are all of one kind."""

from __future__ import annotations

from torch import Tensor
from torch.nn import Embedding, Linear, Module, ModuleList
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.utils.smiles import e_map, x_map

from pyg_topomask.graphgym.encoders import EDGE_ENCODERS

__all__ = ['DummyEdgeEncoder', 'SmilesEdgeEncoder', 'SmilesNodeEncoder']


class DummyEdgeEncoder(Module):
    r"""One learned vector for all edges, so that layers that need edge features can be used where there are none.

    Args:
        emb_dim (int): Size of the encoded features.
    """

    def __init__(self, emb_dim: int) -> None:
        super().__init__()
        self.encoder = Embedding(1, emb_dim)

    def forward(self, batch: Data) -> Data:
        batch.edge_attr = self.encoder(batch.edge_index.new_zeros(batch.edge_index.size(1)))
        return batch


class _Kinds(Module):
    r"""The sum of one embedding for each column of numbers."""

    def __init__(self, sizes: list[int], emb_dim: int) -> None:
        super().__init__()
        self.embeddings = ModuleList(Embedding(size, emb_dim) for size in sizes)

    def forward(self, kinds: Tensor) -> Tensor:
        total: Tensor = sum(embedding(kinds[:, column].long()) for column, embedding in enumerate(self.embeddings))
        return total


class SmilesNodeEncoder(Module):
    r"""The sum of an embedding for each of the nine kinds that :func:`torch_geometric.utils.from_smiles` gives an atom, and of
    a linear map of further columns, such as encodings that transforms have appended.

    Args:
        emb_dim (int): Size of the encoded features.
    """

    def __init__(self, emb_dim: int) -> None:
        super().__init__()
        self.kinds = _Kinds([len(values) for values in x_map.values()], emb_dim)
        further = cfg.share.dim_in - len(x_map)
        self.further = Linear(further, emb_dim, bias=False) if further > 0 else None

    def forward(self, batch: Data) -> Data:
        x, count = batch.x, len(x_map)
        batch.x = self.kinds(x)
        if self.further is not None:
            batch.x = batch.x + self.further(x[:, count:].to(batch.x.dtype))
        return batch


class SmilesEdgeEncoder(Module):
    r"""The sum of an embedding for each of the three kinds that :func:`torch_geometric.utils.from_smiles` gives a bond.

    Args:
        emb_dim (int): Size of the encoded features.
    """

    def __init__(self, emb_dim: int) -> None:
        super().__init__()
        self.kinds = _Kinds([len(values) for values in e_map.values()], emb_dim)

    def forward(self, batch: Data) -> Data:
        batch.edge_attr = self.kinds(batch.edge_attr)
        return batch


register.node_encoder_dict.setdefault('SmilesNode', SmilesNodeEncoder)
register.edge_encoder_dict.setdefault('SmilesEdge', SmilesEdgeEncoder)
# A name of GraphGPS: where that registers it, its own is used.
EDGE_ENCODERS['DummyEdge'] = DummyEdgeEncoder
