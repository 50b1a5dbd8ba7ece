"""Encoders under the names that GraphGPS registers."""

import torch
from torch import Tensor
from torch.nn import Embedding, Linear, Module
from torch_geometric.data import Batch
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import edge_encoder_dict, node_encoder_dict, register_edge_encoder, register_node_encoder


class LinearNode(Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.encoder = Linear(cfg.share.dim_in, dim)

    def forward(self, batch: Batch) -> Batch:
        batch.x = self.encoder(batch.x)
        return batch


class TypeDictNode(Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.encoder = Embedding(cfg.dataset.node_encoder_num_types, dim)

    def forward(self, batch: Batch) -> Batch:
        batch.x = self.encoder(batch.x[:, 0])
        return batch


class Atom(Module):
    """GraphGym's own needs ogb."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.encoder = Embedding(120, dim)

    def forward(self, batch: Batch) -> Batch:
        batch.x = self.encoder(batch.x).sum(1)
        return batch


class PositionalEncoder(Module):
    """Appends a linear map of what was precomputed, to the node features or to a linear map of them."""

    name = ''

    def __init__(self, dim: int, expand_x: bool = True) -> None:
        super().__init__()
        options = cfg[f'posenc_{self.name}']
        self.expand = Linear(cfg.share.dim_in, dim - options.dim_pe) if expand_x else None
        self.encoder = Linear(self.size(), options.dim_pe)

    def size(self) -> int:
        raise NotImplementedError

    def statistics(self, batch: Batch) -> Tensor:
        raise NotImplementedError

    def forward(self, batch: Batch) -> Batch:
        x = batch.x if self.expand is None else self.expand(batch.x.float())
        batch.x = torch.cat([x, self.encoder(self.statistics(batch))], dim=1)
        return batch


class LapPE(PositionalEncoder):
    name = 'LapPE'

    def size(self) -> int:
        return int(cfg.posenc_LapPE.eigen.max_freqs)

    def statistics(self, batch: Batch) -> Tensor:
        return (batch.EigVecs * batch.EigVals.squeeze(2)).nan_to_num()


class RWSE(PositionalEncoder):
    name = 'RWSE'

    def size(self) -> int:
        return batch_times(cfg.posenc_RWSE.kernel.times_func)

    def statistics(self, batch: Batch) -> Tensor:
        return batch.pestat_RWSE


def batch_times(times_func: str) -> int:
    first, last = times_func.removeprefix('range(').removesuffix(')').split(',')
    return int(last) - int(first)


class Composed(Module):
    encoders: tuple[type[Module], type[PositionalEncoder]]

    def __init__(self, dim: int) -> None:
        super().__init__()
        features, positions = self.encoders
        self.features = features(dim - cfg[f'posenc_{positions.name}'].dim_pe)
        self.positions = positions(dim, expand_x=False)

    def forward(self, batch: Batch) -> Batch:
        return self.positions(self.features(batch))


features = {'LinearNode': LinearNode, 'TypeDictNode': TypeDictNode, 'VOCNode': LinearNode, 'Atom': Atom}
positions = {'LapPE': LapPE, 'RWSE': RWSE}
for name, encoder in {**features, **positions}.items():
    node_encoder_dict.pop(name, None)
    register_node_encoder(name, encoder)
for first in features:
    for second in positions:
        encoders = (features[first], positions[second])
        register_node_encoder(f'{first}+{second}', type(f'{first}{second}', (Composed,), {'encoders': encoders}))


class TypeDictEdge(Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.encoder = Embedding(cfg.dataset.edge_encoder_num_types, dim)

    def forward(self, batch: Batch) -> Batch:
        batch.edge_attr = self.encoder(batch.edge_attr)
        return batch


class DummyEdge(Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.encoder = Embedding(1, dim)

    def forward(self, batch: Batch) -> Batch:
        batch.edge_attr = self.encoder.weight.expand(batch.num_edges, -1)
        return batch


class LinearEdge(Module):
    width = 1

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.encoder = Linear(self.width, dim)

    def forward(self, batch: Batch) -> Batch:
        batch.edge_attr = self.encoder(batch.edge_attr.view(-1, self.width))
        return batch


class VOCEdge(LinearEdge):
    width = 2


class Bond(Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.encoder = Embedding(10, dim)

    def forward(self, batch: Batch) -> Batch:
        batch.edge_attr = self.encoder(batch.edge_attr).sum(1)
        return batch


for edge_encoder in (Bond, TypeDictEdge, DummyEdge, LinearEdge, VOCEdge):
    edge_encoder_dict.pop(edge_encoder.__name__, None)
    register_edge_encoder(edge_encoder.__name__, edge_encoder)
