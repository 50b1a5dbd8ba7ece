"""The documents: their code runs, and the files, options and names that they mention exist."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
import yaml
from graphs import GRAPH_NAMES, GRAPHS
from torch import Tensor
from torch_geometric.data import Data

pytest.importorskip('yacs')

from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE
from torch_geometric.utils import k_hop_subgraph

from pyg_topomask import masks as masks_module
from pyg_topomask import nn
from pyg_topomask.__main__ import _parser, main
from pyg_topomask.apps.recommend.options import load_config as load_recommendation
from pyg_topomask.graphgym import register_mask
from pyg_topomask.graphgym.configuration import load_config
from pyg_topomask.graphgym.names.attentions import ATTENTIONS, ATTN_TYPES
from pyg_topomask.graphgym.names.masks import MASKS, build_mask
from pyg_topomask.testing import assert_mask_operator
from pyg_topomask.utils.configs import is_recommendation

ROOT = Path(__file__).parents[1]
README = ROOT / 'README.md'
CONFIGS = ROOT / 'graphgps_configs'
#: Where the files are that the README links to: PyPI shows it too, and has no files beside it.
ADDRESSES = tuple(
    f'https://{host}/pyg-topomask/pyg_topomask/{branch}/'
    for host, branch in (('github.com', 'blob/main'), ('raw.githubusercontent.com', 'main'))
)
MASK_TABLE = ROOT / 'docs' / 'masks.md'
TRAINING = ROOT / 'docs' / 'training.md'
GRAPHGPS = ROOT / 'docs' / 'graphgps.md'
RECOMMENDATION = ROOT / 'docs' / 'recommendation.md'
WRITE_A_MASK = ROOT / 'docs' / 'write_a_mask.md'
DOCUMENTS = [README, ROOT / 'CONTRIBUTING.md', *sorted((ROOT / 'docs').glob('*.md')), CONFIGS / 'README.md']

#: What makes a run of the digits short enough for a test.
SHORT = shlex.split("""
optim.max_epoch 1 optim.num_warmup_epochs 0 gt.layers 1 gt.n_heads 2 gt.dim_hidden 8 gnn.dim_inner 8 train.batch_size 256
topomask.progress False
""")

every_document = pytest.mark.parametrize('document', DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


@pytest.fixture(autouse=True)
def _as_found() -> Iterator[None]:
    """Names that a document registers are gone after its test."""
    with mock.patch.dict(ATTENTIONS), mock.patch.dict(MASKS), mock.patch.dict(register.loader_dict):
        yield


class WholeNeighborhoods:
    """In place of NeighborLoader where PyG has no sampler: the nodes to label, and then all nodes within the hops."""

    def __init__(
        self, data: Data, num_neighbors: list[int], batch_size: int, input_nodes: Tensor | None = None, shuffle: bool = False
    ) -> None:
        nodes = torch.arange(data.num_nodes or 0) if input_nodes is None else input_nodes
        self.data, self.hops = data, len(num_neighbors)
        self.seeds = nodes[torch.randperm(len(nodes))] if shuffle else nodes
        self.batch_size = batch_size

    def __iter__(self) -> Iterator[Data]:
        for seeds in self.seeds.split(self.batch_size):
            near, _, _, _ = k_hop_subgraph(seeds, self.hops, self.data.edge_index)
            nodes = torch.cat([seeds, near[~torch.isin(near, seeds)]])
            batch = self.data.subgraph(nodes)
            assert torch.equal(batch.x, self.data.x[nodes])
            batch.n_id, batch.batch_size = nodes, len(seeds)
            yield batch


@pytest.fixture(autouse=True)
def _sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (WITH_PYG_LIB or WITH_TORCH_SPARSE):
        monkeypatch.setattr('torch_geometric.loader.NeighborLoader', WholeNeighborhoods)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, where a picture can be saved to docs/."""
    (tmp_path / 'docs').mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(document: Path, language: str) -> list[str]:
    """The fenced blocks of a language, each after as many empty lines as put it where it stands."""
    text = document.read_text()
    matches = re.finditer(rf'^```{language}\n(.*?)^```$', text, re.DOTALL | re.MULTILINE)
    return ['\n' * text.count('\n', 0, match.start(1)) + match[1] for match in matches]


def execute(document: Path) -> dict[str, Any]:
    """Runs the Python blocks of a document one after the other in one namespace."""
    space: dict[str, Any] = {'__name__': document.stem}
    for block in blocks(document, 'python'):
        exec(compile(block, str(document), 'exec'), space)
    return space


def commands(document: Path) -> list[list[str]]:
    """The words of every command of this package in a document, without those that are cut short."""
    text = document.read_text()
    lines = [line for block in blocks(document, 'bash') for line in block.splitlines()]
    lines += re.findall(r'`([^`\n]+)`', re.sub(r'^```.*?^```$', '', text, flags=re.DOTALL | re.MULTILINE))
    pattern = re.compile(r'(?:python -m pyg_topomask|pyg-topomask|python ball_mask\.py) (.+)')
    command_lines = [match[1] for match in map(pattern.search, lines) if match is not None]
    return [shlex.split(line, comments=True) for line in command_lines if '...' not in line]


def test_the_models_of_the_page_of_layers_train_and_load(checkout: Path) -> None:
    torch.manual_seed(0)
    space = execute(ROOT / 'docs' / 'layers.md')
    large, batch = space['large'], space['batch']
    assert (space['prediction'] == large.y).float().mean() > 0.8
    assert torch.equal(space['loaded'](batch.x, batch.edge_index), space['model'](batch.x, batch.edge_index))
    data = next(iter(space['DataLoader'](space['graphs'], batch_size=40)))
    assert torch.equal(space['restored'](data), space['classifier'].eval()(data))


def test_all_kinds_of_examples_are_found() -> None:
    assert len(blocks(README, 'python')) == len(blocks(README, 'yaml')) == 1
    assert len(blocks(ROOT / 'docs' / 'layers.md', 'python')) >= 2
    assert len(blocks(RECOMMENDATION, 'yaml')) == 1
    assert {words[0] for words in commands(README)} == {'advise', 'train'}
    assert {words[0] for words in commands(ROOT / 'docs' / 'advise.md')} == {'advise'}
    assert {words[0] for words in commands(TRAINING)} == {'train', 'compare', 'inspect', 'list'}
    assert {words[0] for words in commands(RECOMMENDATION)} == {'train', 'recommend'}
    assert {words[0] for words in commands(GRAPHGPS)} == {'graphgps'}


def test_scripts_exit_with_the_status_of_main() -> None:
    scripts = [block for path in DOCUMENTS for block in blocks(path, 'python') if "if __name__ == '__main__':" in block]
    assert len(scripts) == 2
    assert all(script.endswith('\n    raise SystemExit(main())\n') for script in scripts)


def test_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 140


@pytest.mark.parametrize('document', [path for path in DOCUMENTS if blocks(path, 'yaml')], ids=lambda path: path.name)
def test_yaml_of_a_document_trains(document: Path, checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, block in enumerate(blocks(document, 'yaml')):
        config = given = yaml.safe_load(block)
        if given.keys() & {'dataset', 'recommend'}:  # a file of its own, for data that the document registers or writes
            execute(document)
        else:
            config = yaml.safe_load((CONFIGS / 'digits.yaml').read_text())
            for group, options in given.items():
                config.setdefault(group, {}).update(options)
        path = checkout / f'changed{number}.yaml'
        path.write_text(yaml.safe_dump(config))
        if 'recommend' in given:
            assert main(['train', '--cfg', str(path), 'recommend.max_epoch', '1', 'recommend.progress', 'False']) == 0
            assert re.fullmatch(r'test Recall@2 [01]\.\d{4} NDCG@2 [01]\.\d{4}', capsys.readouterr().out.splitlines()[-1])
            continue
        assert main(['train', '--cfg', str(path), *SHORT]) == 0
        assert cfg.gt.layer_type == config['gt']['layer_type'] != 'GINE+None'
        assert re.fullmatch(r'test accuracy [01]\.\d{4}', capsys.readouterr().out.splitlines()[-1])


@every_document
def test_python_runs_and_commands_name_options_and_files_that_exist(document: Path, checkout: Path) -> None:
    assert (execute(document).keys() > {'__name__'}) == bool(blocks(document, 'python'))
    for words in commands(document):
        if words[0] == 'graphgps':  # its YAMLs lie in GraphGPS, but the option is of both
            load_config('digits', words[3:])
            continue
        arguments, rest = _parser().parse_known_args(words)
        assert not any(word.startswith('--') for word in rest), words
        options = [*getattr(arguments, 'options', []), *rest]
        if getattr(arguments, 'cfg', None) is not None:
            load: Callable[..., Any] = load_recommendation if is_recommendation(arguments.cfg) else load_config
            load(arguments.cfg, options)
        else:
            assert not options, words


def test_the_shell_completes_all_commands() -> None:
    (words,) = re.findall(r'^complete -o default -W "(.*)" pyg-topomask$', TRAINING.read_text(), re.MULTILINE)
    (command,) = (action for action in _parser()._actions if action.dest == 'command')
    assert words.split() == list(command.choices or [])


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a document."""
    headings = re.findall(
        r'^#+ (.*)$', re.sub(r'^```.*?^```$', '', document.read_text(), flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    return {re.sub(r'[^\w-]', '', heading.lower().replace(' ', '-')) for heading in headings}


def test_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        assert_links_lead_somewhere(document)


def assert_links_lead_somewhere(document: Path) -> None:
    text = document.read_text()
    links = re.findall(r'\]\(([^)\s]+)\)', text) + re.findall(r'^\[.+\]: (\S+)$', text, re.MULTILINE)
    for link in links:
        address = next((address for address in ADDRESSES if link.startswith(address)), '')
        assert '://' in link or document != README, link
        if '://' in link and not address:
            continue
        name, _, anchor = link.removeprefix(address).partition('#')
        target = (ROOT if address else document.parent) / name if name else document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_installation_names_extras_that_exist() -> None:
    extras = importlib.metadata.metadata('pyg_topomask').get_all('Provides-Extra')
    text = ''.join(document.read_text() for document in DOCUMENTS)
    named = {name for names in re.findall(r'(?:\.|pyg_topomask)\[([\w,]+)\]', text) for name in names.split(',')}
    assert {'graphgym', 'test'} <= named <= set(extras or [])


def table_cells(document: Path, columns: int) -> list[list[str]]:
    """The cells of the rows of a table, the table being told by its number of columns and rows by a first cell in code."""
    rows = [line.split(' | ') for line in document.read_text().splitlines() if line.startswith('| `')]
    return [row for row in rows if len(row) == columns]


def named(cells: Iterable[str]) -> set[str]:
    return set(re.findall(r'`([\w ]+)`', '\n'.join(cells)))


def test_table_of_the_readme_names_attentions() -> None:
    names = named(row[0] for row in table_cells(README, 4))
    assert 5 <= len(names) <= 8
    assert names <= set(ATTENTIONS)


def test_table_holds_every_attention_and_mask() -> None:
    rows = table_cells(MASK_TABLE, 5)
    assert named(row[0] for row in rows) == {*ATTENTIONS, *ATTN_TYPES, *MASKS}
    classes = set(re.findall(r'`(\w+(?:Mask|Attention))\b', '\n'.join(row[1] for row in rows)))
    # What is made of other masks, and the layers that take any, are no rows of their own.
    masks = {name for name in masks_module.__all__ if name.endswith('Mask')}
    masks -= {'Mask', 'HadamardMask', 'MultiHeadMask', 'ScaledMask', 'SumMask', 'TransposedMask'}
    attentions = {name for name in nn.__all__ if name.endswith('Attention')}
    attentions -= {'ExplicitAttention', 'MaskedLinearAttention', 'MaskedSoftmaxAttention'}
    assert classes == masks | attentions


@cache
def ball_mask() -> Any:
    return execute(WRITE_A_MASK)['BallMask']


@pytest.mark.parametrize('graph', GRAPH_NAMES)
def test_written_mask_is_the_matrix_of_its_distances(graph: str, checkout: Path) -> None:
    mask = ball_mask()(heads=2, hops=2)
    torch.nn.init.normal_(mask.log_weight)
    data = GRAPHS[graph]()
    assert_mask_operator(mask, data)
    num_nodes = data.num_nodes or 0
    adjacency = torch.eye(num_nodes, dtype=torch.long)
    if data.edge_index is not None:
        adjacency[tuple(data.edge_index.flip(0))] = 1
    weight = mask.log_weight.detach().exp()
    for i, row in enumerate(adjacency):
        reached = torch.stack([torch.arange(num_nodes) == i, row > 0, (row @ adjacency) > 0])
        expected = torch.where(reached.any(0), weight[:, reached.int().argmax(0)], 0.0)
        torch.testing.assert_close(mask(data).to_dense()[:, i].detach(), expected)


def test_written_mask_trains_by_its_name(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    execute(WRITE_A_MASK)
    (words,) = (words for words in commands(WRITE_A_MASK) if words[0] == 'train')
    assert 'GINE+Ball' in words
    assert main([*words, *SHORT]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith('test accuracy ')
    assert cfg.topomask.Ball.hops == 3


def test_written_mask_composes_in_a_yaml(checkout: Path) -> None:
    mask = execute(WRITE_A_MASK)['BallMask']
    composed = build_mask({'sum': [{'Ball': {'hops': 1}}, 'Packing']}, heads=2)
    assert [type(each) for each in composed.masks] == [mask, masks_module.PackingMask]


def test_name_of_a_mask_can_be_taken() -> None:
    register_mask('Tree', masks_module.TreeMask)
    with pytest.raises(ValueError, match="name: got 'GRF', which is taken"):
        register_mask('GRF', masks_module.TreeMask)
    with pytest.raises(ValueError, match='taken'):
        register_mask('Transformer', masks_module.TreeMask)
    options = inspect.signature(ATTENTIONS['Tree']).parameters
    assert options['kind'].default == 'exp'
