"""The table of masks in docs/masks.md, each cell computed again by running the mask."""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask import nn
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.names.attentions import ATTENTIONS
from pyg_topomask.graphgym.names.masks import MASKS
from pyg_topomask.nn.by_name import LAYERS
from pyg_topomask.transforms import AddForest, AddGridShape

PAGE = Path(__file__).parents[2] / 'docs' / 'masks.md'
NODES = 16
MATRIX = torch.rand(NODES, NODES, generator=torch.Generator().manual_seed(0))
#: What a mask needs beside the edges.
GIVEN: dict[str, dict[str, Any]] = {
    'Dense': {'matrix': MATRIX},
    'LowRank': {'left': MATRIX, 'right': MATRIX},
    'LearnedFeatures': {'num_nodes': NODES},
    'Hypercube': {'dim': 4},
    'BigBird': {'window': 1, 'ends': 1, 'degree': 2},
    'Expander': {'degree': 2},
    'Toeplitz': {'shape_dims': 1},
}


def path(edges: Tensor, weight: Tensor | None = None) -> Data:
    """A graph with all that any mask reads, but for its forest."""
    data = Data(edge_index=edges, edge_weight=weight, num_nodes=NODES, valid=torch.arange(NODES) < 9)
    return AddGridShape((NODES,))(data)


def matrix(word: str, data: Data) -> Tensor:
    """The mask of a word with random parameters, as a matrix, with the gradients of edge weights."""
    torch.manual_seed(0)
    if word == 'Tree':
        data = AddForest()(data)
    layer: Any = nn.attention(word, 8, **GIVEN.get(word, {}))
    for parameter in layer.mask.requires_grad_(False).parameters():
        torch.nn.init.uniform_(parameter, 0.1, 0.9)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # of directions and weights without effect, which the table tells
        entries: Tensor = layer.mask(data).to_dense()[0]
    return entries


ALONG = torch.stack([torch.arange(NODES - 1), torch.arange(1, NODES)])
NO_EDGES = ALONG[:, :0]
BOTH = torch.cat([ALONG, ALONG.flip(0)], dim=1)


def direction(word: str) -> str:
    try:
        along = matrix(word, path(ALONG))
    except ArgumentError as error:
        return 'error' if error.argument == 'edge_index' else str(error)
    return 'no' if torch.allclose(along, along.t(), atol=1e-6) else 'yes'


def weights(word: str) -> str:
    heavier = torch.ones(NODES - 1)
    heavier[3] = 4.0
    before, after = (matrix(word, path(BOTH, weight.repeat(2))) for weight in (torch.ones(NODES - 1), heavier))
    return 'no' if torch.allclose(before, after, atol=1e-6) else 'yes'


def learns(word: str) -> str:
    """Whether a finite difference is the gradient of a weight."""
    weight = torch.linspace(0.5, 1.5, NODES - 1, dtype=torch.float64).requires_grad_()
    heavier = weight.detach().clone()
    heavier[3] += 1e-4
    before, after = (matrix(word, path(BOTH, each.repeat(2)))[4, 3] for each in (weight, heavier))
    if not before.requires_grad:
        return 'no'
    slope = torch.autograd.grad(before, weight)[0][3]
    return 'yes' if torch.isclose(slope, (after - before.detach()).to(slope) / 1e-4, rtol=1e-2) and bool(slope) else 'wrong'


def features(word: str) -> str:
    """Whether a layer of the word reads edge features."""
    for answer, options in (('yes', {}), ('softmax', {'feature_map': 'softmax'})):
        with contextlib.suppress(ValueError):
            nn.attention(word, 8, **GIVEN.get(word, {}), edge_dim=2, **options)
            return answer
    return 'no'


def cells(word: str) -> list[str]:
    layer: Any = nn.attention(word, 8, **GIVEN.get(word, {}))
    kind = 'softmax' if isinstance(layer, (nn.MaskedSoftmaxAttention, nn.KMIPAttention)) else 'linear'
    alone = 'yes' if word in ATTENTIONS else 'in `Masked`' if word in MASKS else 'in Python'
    if word == 'KMIP' or torch.equal(matrix(word, path(BOTH)), matrix(word, path(NO_EDGES))):
        return [kind, 'reads no edges', 'reads no edges', 'reads no edges', features(word), alone]
    return [kind, direction(word), weights(word), learns(word), features(word), alone]


def rows() -> dict[str, list[str]]:
    """The rows of the table by word, without the class."""
    lines = [line.strip('| ').split(' | ') for line in PAGE.read_text(encoding='utf-8').splitlines() if line.startswith('| `')]
    return {line[0].strip('`'): line[2:] for line in lines if len(line) == 8}


def test_the_table_has_each_word() -> None:
    assert list(rows()) == sorted(LAYERS)


def test_cells() -> None:
    assert rows() == {word: cells(word) for word in LAYERS}
    layers: dict[str, Any] = {word: nn.attention(word, 8, **GIVEN.get(word, {})) for word in LAYERS}
    assert {word for word, layer in layers.items() if layer.learns_weights} == {
        word for word in LAYERS if rows()[word][3] == 'yes'
    }
