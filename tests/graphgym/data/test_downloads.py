"""Data that are not there: where they come from, and nothing is left behind."""

from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg

from pyg_topomask.apps.datasets import DATASETS
from pyg_topomask.graphgym.data.datasets import explained_downloads, load_dataset
from pyg_topomask.graphgym.data.loaders import create_loaders
from pyg_topomask.graphs.graph import Graph


@pytest.mark.parametrize(
    ('format', 'name', 'source'),
    [
        ('PyG-WikipediaNetwork', 'chameleon', 'https://raw.githubusercontent.com/'),
        ('PyG-TUDataset', 'ENZYMES', 'https://www.chrsmrrs.com/graphkerneldatasets'),
        ('PyG-LRGBDataset', 'PascalVOC-SP', 'https://www.dropbox.com/s/8x722ai272wqwl4/pascalvocsp.zip'),
        ('PyG-ModelNet', 'ModelNet10', 'http://3dvision.princeton.edu/projects/2014/3DShapeNets/ModelNet10.zip'),
    ],
)
@pytest.mark.parametrize('existed', [False, True])
def test_a_failed_download_says_where_the_data_come_from(
    tmp_path: Path, format: str, name: str, source: str, existed: bool
) -> None:
    root, kept = tmp_path / 'data', tmp_path / 'data' / 'other' / 'file'
    raw = root / name / 'raw'
    if existed:
        kept.parent.mkdir(parents=True)
        kept.write_text('')

    def load() -> None:
        with explained_downloads(format, name, str(root)):
            raw.mkdir(parents=True)
            raise URLError('no route to host')

    message = rf'no route to host>; the data set comes from .*{source}.*, and its files belong in {raw}$'
    with pytest.raises(OSError, match=message):
        load()
    assert [path for path in tmp_path.rglob('*') if path.is_file()] == ([kept] if existed else [])
    assert root.exists() == existed
    assert not raw.parent.exists()


@pytest.mark.parametrize('name', [name for name, kind in DATASETS.items() if hasattr(kind, 'read') and name != 'file'])
def test_missing_files_of_our_data_sets_say_where_they_come_from(
    tmp_path: Path, configure: Callable[..., None], name: str
) -> None:
    root = tmp_path / 'data'
    configure(f'dataset.format topomask dataset.name {name} dataset.dir {root} topomask.transforms []')
    with pytest.raises(
        OSError, match=rf'^dataset.dir: .* in {root}; put them there. The data come from https://.*, and the doc'
    ):
        create_loaders()
    assert list(tmp_path.iterdir()) == []


def test_unknown_data_sets_and_formats_name_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match=r"^dataset.name: got 'KarateClub'; accepted: Cora, .*, TU_<name>; did you mean Karate\?$"
    ):
        load_dataset('PyG', 'KarateClub', '.')
    with pytest.raises(ValueError, match=r"^dataset.format: got 'PyG-Wiki'; .*; other data sets need a loader of your own"):
        load_dataset('PyG-Wiki', 'chameleon', '.')


@pytest.mark.parametrize('encoder', [False, True])
@pytest.mark.filterwarnings('ignore:data. got edge_attr')
def test_one_number_for_each_edge_is_a_feature_with_an_encoder_and_else_a_weight(
    configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch, encoder: bool
) -> None:
    from torch_geometric.data import InMemoryDataset

    class Own(InMemoryDataset):
        def __init__(self) -> None:
            super().__init__()
            edges = torch.tensor([[0, 1], [1, 0]])
            graphs = [Data(x=torch.ones(2, 1), edge_index=edges, edge_attr=torch.tensor([0.5, 2.0]), y=torch.tensor([0]))]
            self.data, self.slices = self.collate(graphs * 3)

    configure(f'dataset.format own dataset.name own dataset.edge_encoder {encoder} topomask.transforms []')
    monkeypatch.setitem(register.loader_dict, 'own', lambda *args: Own() if args[0] == 'own' else None)
    dataset = load_dataset('own', 'own', '.')
    assert cfg.share.dim_edge == 1
    weight = Graph.from_data(dataset[1]).edge_weight
    assert weight is None if encoder else weight.tolist() == [0.5, 2.0]
