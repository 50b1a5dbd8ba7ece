from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
import torch
from forked import Forked
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.graphgym import register

import pyg_topomask.graphgym
from pyg_topomask.graphgym.data.datasets import load_dataset
from pyg_topomask.graphgym.names.lookup import lookup


def test_our_names_are_registered() -> None:
    assert 'topomask' in register.config_dict
    assert 'TopoGPSModel' in register.network_dict
    assert {'grf_attention', 'linear_attention', 'adjacency_attention'} <= set(register.layer_dict)
    assert next(iter(register.loader_dict.values())) is load_dataset


def test_no_name_of_graphgps_is_registered() -> None:
    assert 'LinearNode' not in register.node_encoder_dict
    assert 'san_graph' not in register.head_dict
    assert 'adamW' not in register.optimizer_dict
    assert 'cfg_gt' not in register.config_dict


#: Registers under the names that GraphGPS uses, as its import does.
FAKE_GRAPHGPS = """
from typing import Any

from torch.nn import Identity
from torch_geometric.graphgym import register
from yacs.config import CfgNode


@register.register_config("cfg_gt")
def set_cfg_gt(cfg: CfgNode) -> None:
    cfg.gt = CfgNode({"layer_type": "theirs", "layers": 3})


@register.register_config("extended_optim")
def extended_optim_cfg(cfg: CfgNode) -> None:
    cfg.optim.num_warmup_epochs = 12345


@register.register_loader("custom_master_loader")
def load_dataset_master(format: str, name: str, dataset_dir: str) -> Any:
    raise ValueError(f"Unknown data format: {format}")


for name in ["LinearNode", "TypeDictNode"]:
    register.register_node_encoder(name, Identity)
for name in ["LinearEdge", "TypeDictEdge"]:
    register.register_edge_encoder(name, Identity)
for name in ["san_graph", "inductive_node"]:
    register.register_head(name, Identity)
for name in ["adamW", "adagrad"]:
    register.register_optimizer(name, Identity)
for name in ["plateau", "reduce_on_plateau", "linear_with_warmup", "cosine_with_warmup", "polynomial_with_warmup"]:
    register.register_scheduler(name, Identity)
register.register_network("GPSModel", Identity)
"""

CHECK = """
import {first}
import {second}
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, set_cfg
set_cfg(cfg)
assert cfg.gt.layer_type == "theirs", cfg.gt.layer_type
assert cfg.optim.num_warmup_epochs == 12345
assert cfg.topomask.GRF.num_walks > 0
assert list(register.loader_dict)[0] == "topomask", list(register.loader_dict)
cfg.dataset.format, cfg.dataset.name = "topomask", "digits"
from torch_geometric.graphgym.loader import load_dataset
assert len(load_dataset()) == 1797
cfg.dataset.format = "nonsense"
try:
    load_dataset()
except ValueError as error:
    assert str(error) == "Unknown data format: nonsense"  # theirs was asked
else:
    raise AssertionError
"""


@pytest.mark.parametrize('order', [('pyg_topomask.graphgym', 'fake_graphgps'), ('fake_graphgps', 'pyg_topomask.graphgym')])
def test_either_import_order(order: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / 'fake_graphgps.py').write_text(FAKE_GRAPHGPS)
    (tmp_path / 'check.py').write_text(CHECK.format(first=order[0], second=order[1]))
    status, _, stderr = Forked(str(tmp_path / 'check.py')).wait()
    assert status == 0, stderr


def test_registering_twice_is_harmless() -> None:
    names = ['configuration', 'names.encoders', 'names.layers', 'names.networks']
    registries = [register.config_dict, register.edge_encoder_dict, register.layer_dict, register.network_dict]
    before = [dict(registry) for registry in registries]
    for name in names:
        importlib.reload(importlib.import_module(f'pyg_topomask.graphgym.{name}'))
    assert [dict(registry) for registry in registries] == before


def test_lookup() -> None:
    assert lookup('thing', 'a', {'a': 1}, {'a': 2, 'b': 3}) == 1
    assert lookup('thing', 'b', {'a': 1}, {'a': 2, 'b': 3}) == 3
    with pytest.raises(ValueError, match=r"^thing: got 'c'; accepted: a, b"):
        lookup('thing', 'c', {'a': 1, None: 0}, {'a': 2, 'b': 3})


def test_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyg_topomask.graphgym, 'find_spec', lambda name: None if 'lightning' in name else object())
    with pytest.raises(ImportError, match=r'needs pytorch-lightning: install pyg_topomask with its extra \[graphgym\]'):
        pyg_topomask.graphgym.require_graphgym()


def test_training_without_a_library_names_the_extra() -> None:
    code = "import sys; sys.modules['yacs'] = sys.modules['pytorch_lightning'] = None; sys.modules['lightning'] = None\n"
    code += "from pyg_topomask.__main__ import main; sys.exit(main(['train', '--cfg', 'digits']))"
    status, _, stderr = Forked('-c', code).wait()
    assert (status, 'install pyg_topomask with its extra [graphgym]' in stderr) == (2, True), stderr


def test_data_sets_that_graphgps_has_stored_are_loaded(tmp_path: Path) -> None:
    """Its classes call torch.load without more, which refuses the parts of PyG's graphs since PyTorch 2.6."""
    stored = InMemoryDataset.collate([Data(x=torch.ones(2, 3), edge_index=torch.tensor([[0], [1]]), y=torch.ones(1, 2))] * 2)
    torch.save(stored, tmp_path / 'stored.pt')
    data, slices = torch.load(tmp_path / 'stored.pt')
    assert data.x.shape == (4, 3)
    assert slices['x'].tolist() == [0, 2, 4]


#: What a folder or a file of graphgym/ imports of the others.
IMPORTS = {
    'names': set(),
    'configuration': {'names'},
    'data': {'names', 'configuration'},
    'graphgps': {'names', 'configuration'},
}


def test_folders_import_one_way() -> None:
    root = Path(pyg_topomask.graphgym.__file__).parent
    imports: dict[str, set[str]] = {}
    for path in root.rglob('*.py'):
        folder = path.relative_to(root).parts[0].removesuffix('.py')
        modules = re.findall(r'^ *(?:from|import) pyg_topomask\.graphgym\.(\w+)', path.read_text(), re.MULTILINE)
        imports.setdefault(folder, set()).update(set(modules) - {folder})
    del imports['__init__']
    assert imports == IMPORTS
