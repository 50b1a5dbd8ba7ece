import pytest
import torch
from graphs import ring
from torch_geometric.data import Data

from pyg_topomask.apps.viz import plot_mask
from pyg_topomask.masks import AdjacencyMask, DenseMask, MultiHeadMask, PackingMask


def test_a_mask_and_its_distances_are_drawn() -> None:
    data = Data(edge_index=ring(6), num_nodes=6)
    figure = plot_mask(MultiHeadMask(PackingMask(), AdjacencyMask()), data, node=2, max_hops=2, head=1)
    block = figure.axes[0].images[0].get_array()
    nodes = [2, 1, 3, 0, 4, 5]
    adjacency = AdjacencyMask()(data).to_dense()[0].detach()
    torch.testing.assert_close(torch.from_numpy(block.data), adjacency[nodes][:, nodes])
    heights = [bar.get_height() for bar in figure.axes[1].patches]
    assert heights == pytest.approx([1 / 3, 2 / 3, 0, 0])


def test_a_mask_is_multiplied_by_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    forward = PackingMask.forward
    monkeypatch.setattr(PackingMask, 'forward', lambda *given: calls.append(given) or forward(*given))
    data = Data(edge_index=ring(6), num_nodes=6)
    plot_mask(PackingMask(), data)
    assert len(calls) == 1
    plot_mask(PackingMask(), data, nodes=torch.tensor([3]))
    assert len(calls) == 3


def test_negative_entries_have_a_colour_of_their_own() -> None:
    matrix = torch.tensor([[[0.5, -2.0], [1.0, 0.0]]])
    (image,) = plot_mask(DenseMask(1, matrix), Data(edge_index=ring(2), num_nodes=2), node=0).axes[0].images
    assert image.get_array().tolist() == matrix[0].tolist()
    assert image.get_clim() == (-2.0, 2.0)


@pytest.mark.parametrize(
    ('settings', 'message'),
    [({'head': 1}, 'head: got 1'), ({'node': 6}, 'node: got 6'), ({'max_hops': -1}, 'max_hops: got -1')],
)
def test_bad_arguments(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=f'^{message}'):
        plot_mask(PackingMask(), Data(edge_index=ring(6), num_nodes=6), **settings)
