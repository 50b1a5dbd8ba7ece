from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
import yaml
from graphs import small_graph
from torch_geometric.graphgym.config import cfg, set_cfg
from yacs.config import CfgNode

from pyg_topomask.graphgym.configuration import load_config, yaml_overrides
from pyg_topomask.graphgym.data.transforms import build_transforms
from pyg_topomask.graphgym.names.attentions import ATTENTIONS, GROUPS, build_attention, register_mask
from pyg_topomask.graphgym.names.masks import MASKS, build_mask, read_tree
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import (
    AdjacencyMask,
    GRFMask,
    HeatKernelMask,
    HopMask,
    LearnedFeaturesMask,
    PackingMask,
    PowerSeriesMask,
)
from pyg_topomask.nn import MaskedSoftmaxAttention

CONFIGS = Path(__file__).parents[3] / 'graphgps_configs'
GRAPH = Graph.from_data(small_graph())


def dense(tree: Any) -> torch.Tensor:
    torch.manual_seed(0)
    return build_mask(tree, 2)(GRAPH).to_dense()


def test_names_and_arguments() -> None:
    torch.testing.assert_close(dense('Adjacency'), AdjacencyMask(2)(GRAPH).to_dense())
    torch.testing.assert_close(dense({'GRF': {'num_walks': 8}}), GRFMask(2, 8)(GRAPH).to_dense())
    torch.testing.assert_close(dense({'PowerSeries': None}), PowerSeriesMask(2)(GRAPH).to_dense())


def test_numbers_that_pyyaml_takes_for_text() -> None:
    tree = yaml.safe_load('{scale: [5e-1, {GRF: {p_halt: 1e-1, num_walks: "8", walk_length: null}}]}')
    assert isinstance(tree['scale'][0], str)
    torch.testing.assert_close(dense(tree), 0.5 * GRFMask(2, num_walks=8, p_halt=0.1)(GRAPH).to_dense())


class RadiusMask(PackingMask):
    def __init__(self, heads: int = 1, radius: float = 1) -> None:
        super().__init__(heads)
        self.radius = radius


class RequiredMask(PackingMask):
    def __init__(self, heads: int, hops: int) -> None:
        super().__init__(heads)


class HeadlessMask(PackingMask):
    def __init__(self, hops: int = 1) -> None:
        super().__init__(1)


class RouteMask(PackingMask):
    def __init__(self, heads: int = 1, route: str = 'short') -> None:
        super().__init__(heads)


class SumsMask(PackingMask):
    def __init__(self, heads: int = 1, sums: bool = True) -> None:
        super().__init__(heads)


class KeywordsMask(PackingMask):
    def __init__(self, hops: int = 1, **options: int) -> None:
        super().__init__(**options)
        self.hops = hops


def test_heads_may_be_among_the_keywords_of_a_mask() -> None:
    with mock.patch.dict(ATTENTIONS), mock.patch.dict(MASKS):
        register_mask('Keywords', KeywordsMask)
        load_config(CONFIGS / 'digits.yaml', ['gt.layer_type', 'GINE+Keywords', 'topomask.Keywords.hops', '3'])
        mask = build_attention('Keywords', channels=8, heads=2).mask
    assert (type(mask), mask.heads, mask.hops) == (KeywordsMask, 2, 3)


def test_bad_registrations_register_nothing(subtests: pytest.Subtests) -> None:
    for name, mask, message in [
        ('Mine', SumsMask, "mask: got SumsMask, whose argument 'sums' is one of the attention; accepted:"),
        ('Mine', RouteMask, "mask: got RouteMask, whose argument 'route' is one of the attention; accepted:"),
        ('Mine', HeadlessMask, 'mask: got HeadlessMask, which has no argument heads; accepted:'),
        ('Mine', RequiredMask, "mask: got RequiredMask, whose argument 'hops' has no default; accepted:"),
        ('Mine', PackingMask(), 'mask: got PackingMask'),
        ('Mine', lambda heads: PackingMask(heads), 'mask: got <function'),
        ('dataset', PackingMask, "name: got 'dataset', which is taken"),
        ('sum', PackingMask, "name: got 'sum', which is taken"),
        ('A+B', PackingMask, r"name: got 'A\+B'; accepted: identifiers"),
        ('A__B', PackingMask, "name: got 'A__B'; accepted: identifiers"),
        (None, PackingMask, 'name: got None; accepted: identifiers'),
    ]:
        with subtests.test(name=name, mask=mask, message=message):
            before = {**ATTENTIONS}, {**MASKS}
            with pytest.raises(ValueError, match=f'^{message}'):
                register_mask(name, mask)
            assert before == ({**ATTENTIONS}, {**MASKS})


def test_names_of_all_groups_of_options_are_taken() -> None:
    set_cfg(cfg)
    assert set(cfg.topomask) == {*ATTENTIONS, *GROUPS}


def test_whole_number_as_default_of_a_float() -> None:
    with mock.patch.dict(ATTENTIONS), mock.patch.dict(MASKS):
        register_mask('Radius', RadiusMask)
        load_config(CONFIGS / 'digits.yaml', ['gt.layer_type', 'GINE+Radius', 'topomask.Radius.radius', '0.5'])
        assert cfg.topomask.Radius.radius == 0.5
        with pytest.raises(ValueError, match=r"^topomask.Radius.radius: got 'half'; accepted: values of type float"):
            load_config(CONFIGS / 'digits.yaml', ['topomask.Radius.radius', 'half'])


def test_compositions() -> None:
    adjacency, series = AdjacencyMask(2)(GRAPH).to_dense(), GRFMask(2, asymmetric=True)(GRAPH).to_dense()
    walks = {'GRF': {'asymmetric': True}}
    torch.testing.assert_close(dense({'sum': ['Adjacency', walks, 'Packing']}), adjacency + series + 1)
    torch.testing.assert_close(dense({'transpose': walks}), series.transpose(1, 2))
    torch.testing.assert_close(dense({'scale': [-2, {'transpose': walks}]}), -2 * series.transpose(1, 2))
    torch.testing.assert_close(dense({'heads': ['Adjacency', walks]}), torch.stack([adjacency[0], series[0]]))
    parts = [AdjacencyMask(2), GRFMask(2, asymmetric=True), PackingMask(2)]
    three = build_mask({'heads': ['Adjacency', walks, 'Packing']}, 6)(GRAPH).to_dense()
    torch.testing.assert_close(three, torch.cat([part(GRAPH).to_dense() for part in parts]))
    torch.manual_seed(0)
    learned = LearnedFeaturesMask(2, 6, 1)(GRAPH).to_dense()
    torch.testing.assert_close(dense({'hadamard': [walks, {'LearnedFeatures': {'num_nodes': 6, 'rank': 1}}]}), series * learned)


def test_bad_trees_are_refused(subtests: pytest.Subtests) -> None:
    for tree, message in [
        ({}, 'topomask.mask: got nothing'),
        (3, 'topomask.mask: got 3'),
        ({'GRF': {}, 'Packing': {}}, 'topomask.mask: got'),
        ({'sum': ['GRF']}, 'topomask.mask: got sum'),
        ({'hadamard': 'GRF'}, 'topomask.mask: got hadamard'),
        ({'heads': ['GRF']}, 'topomask.mask: got heads'),
        ({'GRF': {'heads': 3}}, 'topomask.mask.GRF: got heads; accepted: its other arguments'),
        ({'heads': ['GRF', 'Packing', 'Causal']}, 'topomask.mask: got 3 masks for 2 heads'),
        ({'scale': ['GRF', 2.0]}, 'topomask.mask: got scale'),
        ({'scale': [float('nan'), 'GRF']}, 'topomask.mask: got scale'),
        ('Unknown', "topomask.mask: got 'Unknown'; accepted: Adjacency, .*, and of trees sum, hadamard, heads, transpose"),
        ({'sums': ['GRF', 'Causal']}, "topomask.mask: got 'sums'; accepted: Adjacency, .*, and of trees sum"),
        ({'GRF': {'walks': 3}}, r"topomask.mask.GRF: got \{'walks': 3\} for GRFMask; accepted: the arguments \['num_walks'"),
        ({'GRF': 3}, 'topomask.mask.GRF: got 3 for GRFMask; accepted: the arguments'),
        ({'GRF': {'p_halt': 'abc'}}, r"topomask.mask.GRF.p_halt: got 'abc'; accepted: numbers in \[0, 1\)"),
        ({'Causal': {'order': 5}}, 'topomask.mask.Causal.order: got 5; accepted: the name of an attribute'),
        ({'LowRank': {'right': 5}}, 'topomask.mask.LowRank.right: got 5; accepted: a tensor and the name'),
        ({'scale': [True, 'GRF']}, 'topomask.mask: got scale'),
    ]:
        with subtests.test(tree=tree, message=message), pytest.raises(ValueError, match=message):
            build_mask(tree, 2)


@pytest.mark.parametrize(
    'text', ['{sum: [GRF, SinDegree]}', "{'sum': ['GRF', 'SinDegree']}", '{"sum": ["GRF", "Causal"]}', 'GRF']
)
def test_masks_on_a_command_line(configure: Callable[..., None], digits: Path, text: str) -> None:
    expected = build_mask(yaml.safe_load(text), 2)
    load_config(digits, ['topomask.mask', text])
    assert repr(build_attention('Masked', 8, 2).mask) == repr(expected)
    configure()
    assert cfg.topomask.Masked.mask is None


def test_a_command_line_replaces_the_mask_of_a_file() -> None:
    load_config(
        CONFIGS / 'digits.yaml', ['gt.layer_type', 'GINE+Masked', 'topomask.mask', '{scale: [0.5, {GRF: {num_walks: 3}}]}']
    )
    assert 'num_walks=3' in repr(build_attention('Masked', 8, 2).mask)


def test_a_command_line_is_otherwise_as_it_was(digits: Path) -> None:
    words = ['--cfg', 'x.yaml', 'gt.layers', '2', 'topomask.transforms', "['AddGridShape']"]
    assert yaml_overrides(words) == words
    words = ['share.dims', '[2, 1e-1]', 'name_tag', '[(1, 2)]', 'dataset.split', '[0.5, 0.5]']
    assert yaml_overrides(words) == words
    given = ['gt.layers', 2, 'gt.layer_norm', True, 'custom_metrics', ['f1'], 'dataset.dir', '[old] data', 'out_dir', '[a, b]']
    assert yaml_overrides(given) == given
    assert yaml_overrides(['custom_metrics', '[f1, 1e-1]']) == ['custom_metrics', "['f1', 0.1]"]
    load_config(digits, ['custom_metrics', '[accuracy, f1]'])
    assert cfg.custom_metrics == ['accuracy', 'f1']
    long = {'sum': [{'PowerSeries': {'order': order}} for order in range(40)]}
    key, line = yaml_overrides(['topomask.mask', str(long)])
    assert key == 'topomask.Masked.mask'
    assert '\n' not in line
    assert read_tree(line) == long


@pytest.mark.parametrize('text', ['GRF', '"GRF"', '{GRF: {}}'])
def test_a_mask_by_its_name_alone_in_a_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / 'mine.yaml'
    path.write_text(f'topomask: {{mask: {text}}}')
    load_config(path)
    assert repr(build_attention('Masked', 8, 2).mask) == repr(GRFMask(2))


@pytest.mark.parametrize('word', ['Masked', 'Hop'])
def test_softmax_attention_under_the_mask_of_a_word(digits: Path, word: str) -> None:
    load_config(digits, ['topomask.mask', '{sum: [HeatKernel, Hop]}', f'topomask.{word}.feature_map', 'softmax'])
    layer = build_attention(word, 8, 2, dropout=0.5)
    assert isinstance(layer, MaskedSoftmaxAttention)
    assert repr(layer.mask) == repr(HopMask(2) if word == 'Hop' else HeatKernelMask(2) + HopMask(2))
    assert (layer.attention_dropout, layer.dropout) == (0.5, 0.0)


@pytest.mark.parametrize('text', ['{sum: [GRF', 'sum: [GRF]: 3'])
def test_what_is_no_tree_is_refused(digits: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r'topomask.mask: got .*; accepted: trees in YAML'):
        load_config(digits, ['topomask.mask', text])


@pytest.mark.parametrize(
    'text',
    [
        '[NormalizeFeatures, {AddRandomWalkPE: {walk_length: 4}}, {AddForest: }]',
        "['NormalizeFeatures', {'AddRandomWalkPE': {'walk_length': 4}}, {'AddForest': None}]",
    ],
)
def test_transforms_on_a_command_line(digits: Path, text: str) -> None:
    load_config(digits, ['topomask.transforms', text])
    assert [type(transform).__name__ for transform in build_transforms(cfg.topomask.transforms)] == [
        'NormalizeFeatures',
        'AddRandomWalkPE',
        'AddForest',
    ]
    with pytest.raises(ValueError, match=r'topomask.transforms: got .*; accepted: lists in YAML'):
        load_config(digits, ['topomask.transforms', '[AddForest'])
    with pytest.raises(ValueError, match=r'topomask.transforms'):
        load_config(digits, ['topomask.transforms', 'AddForest'])


def test_parts_of_a_mask_on_a_command_line_are_refused() -> None:
    with pytest.raises(ValueError, match=r'^topomask.mask.sum: got an unknown option; accepted: a mask as a whole: topomask'):
        load_config(CONFIGS / 'models' / 'TopologicalViT.yaml', ['topomask.mask.sum', "['GRF', 'SinDegree']"])


@pytest.mark.parametrize('tree', [None, {}, CfgNode()])
def test_no_mask_at_all(tree: object) -> None:
    with pytest.raises(ValueError, match=r'^topomask.mask: got nothing; accepted: the names Adjacency, .* and trees'):
        build_mask(tree, 2)
