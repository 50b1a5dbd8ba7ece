r"""Tasks on pairs of nodes: a split of the edges of one graph, and pairs without an edge to tell them from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.graphgym.config import cfg
from torch_geometric.transforms import BaseTransform, Compose

from pyg_topomask.apps.datasets.bases import SPLITS
from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphgym.configuration import defaults
from pyg_topomask.graphgym.data.pyg_datasets import shares_of_splits
from pyg_topomask.graphgym.names.heads import name_of_pairs
from pyg_topomask.utils.checks import check_choice, check_not_negative, check_probability

# The most pairs of nodes of a dense graph, whose pairs without an edge are listed.
_LISTED = 2**26


@dataclass(frozen=True)
class NodePairs:
    r"""The pairs of distinct nodes of a graph, with or without an edge.

    Args:
        linked (torch.Tensor): The numbers :math:`iN + j` of the pairs with an edge, :obj:`[P]`. Pairs without a direction have
            :math:`i < j`.
        num_nodes (int): The number of nodes :math:`N`.
        directed (bool): Whether :math:`(i, j)` and :math:`(j, i)` are two pairs.
    """

    linked: Tensor
    num_nodes: int
    directed: bool

    @staticmethod
    def of(data: Data, ordered: bool) -> tuple[NodePairs, Tensor]:
        r"""Returns the pairs of a graph, and the place of each edge in :attr:`linked`, -1 for self-loops, :obj:`[E]`. Ordered
        pairs have a direction, unless every edge has its reverse.
        """
        (row, col), size = data.edge_index.long(), int(data.num_nodes or 0)
        directed = ordered and not torch.equal((row * size + col).unique(), (col * size + row).unique())
        low, high = (row, col) if directed else (torch.minimum(row, col), torch.maximum(row, col))
        edge = row != col
        linked, slot = (low * size + high)[edge].unique(return_inverse=True)
        place = torch.full_like(row, -1)
        place[edge] = slot
        return NodePairs(linked, size, directed), place

    def without_order(self) -> Tensor:
        r"""Returns numbers that :math:`(i, j)` and :math:`(j, i)` share, :obj:`[P]`."""
        ends = self.ends(self.linked).sort(0).values
        numbers: Tensor = (ends[0] * self.num_nodes + ends[1]).unique(return_inverse=True)[1]
        return numbers

    def ends(self, number: Tensor) -> Tensor:
        r"""Returns the two nodes of pairs, :obj:`[2, n]`."""
        return torch.stack([torch.div(number, self.num_nodes, rounding_mode='floor'), number % self.num_nodes])

    def draw_unlinked(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        r"""Draws distinct pairs without an edge, each as probable as the others, :obj:`[2, count]`."""
        size = self.num_nodes
        most = size * (size - 1) // (1 if self.directed else 2) - self.linked.numel()
        if most == 0:
            given = f"'link_pred' for a graph of {size} nodes with all edges"
            raise ArgumentError('dataset.task', given, 'this for graphs with pairs of nodes without an edge')
        dense = 2 * max(count, self.linked.numel()) > most
        if count > most or (dense and size**2 > _LISTED):
            given = f'{cfg.dataset.edge_negative_sampling_ratio}, for {count} of {most} pairs of nodes without an edge'
            few = f'or fewer than half of them, or graphs of up to {int(_LISTED**0.5):,} nodes' if count <= most else ''
            raise ArgumentError('dataset.edge_negative_sampling_ratio', given, 'ratios for which there are enough pairs', few)
        if dense:
            free = torch.ones(size, size, dtype=torch.bool)
            free.fill_diagonal_(False)
            free = free if self.directed else free.triu_()
            free.view(-1)[self.linked] = False
            number = free.view(-1).nonzero().flatten()
        else:
            number = self.linked.new_empty(0)
            while number.numel() < count:  # at least a quarter of what is drawn is new
                missing = count - number.numel()
                pairs = torch.randint(size, (2, missing + missing // 8 + 64), generator=generator)
                low, high = pairs if self.directed else pairs.sort(0).values
                drawn = (low * size + high)[low != high]
                number = torch.cat([number, drawn[~torch.isin(drawn, self.linked)]]).unique()
        return self.ends(number[torch.randperm(number.numel(), generator=generator)[:count]])


class DrawUnlinked(BaseTransform):
    r"""Replaces the pairs without an edge among those for training by new ones, each time that the graph is loaded. None of
    them is a given pair: one with an edge, or one for validation or testing, whose label a model would learn from them.
    """

    def __init__(self, pairs: NodePairs, count: int) -> None:
        self.pairs, self.count = pairs, count

    def forward(self, data: Data) -> Data:
        linked = data.train_edge_index[:, data.train_edge_label == 1]
        _set_pairs(data, 'train', linked, self.pairs.draw_unlinked(self.count))
        return data


def _set_pairs(data: Data, split: str, linked: Tensor, unlinked: Tensor) -> None:
    data[f'{split}_edge_index'] = torch.cat([linked, unlinked], dim=1)
    data[f'{split}_edge_label'] = torch.cat([torch.ones(linked.size(1)), torch.zeros(unlinked.size(1))]).long()


# Pairs that are drawn for one with the label 1, as in GraphGPS.
_PER_PAIR = 2


class DrawOtherEnds(BaseTransform):
    r"""Replaces the labelled pairs of a graph, each time that it is loaded, by those with the label 1 and, for each of these,
    two other pairs with the same first node, as in GraphGPS. They are distinct, and a node may be paired with itself.

    A graph with a seed in :obj:`draw_seed` that is not negative has the same pairs each time, and if there are pairs with the
    label 0, it keeps those.
    """

    def forward(self, data: Data) -> Data:
        seed = int(data.get('draw_seed', -1))
        if 'draw_seed' in data:
            del data.draw_seed
        generator = None if seed < 0 else torch.Generator().manual_seed(seed)
        if generator is not None and bool((data.edge_label == 0).any()):
            return data
        name = name_of_pairs(data)
        linked = data[name][:, data.edge_label.view(-1) == 1]
        first, slot, count = linked[0].unique(return_inverse=True, return_counts=True)
        free = torch.ones(first.numel(), int(data.num_nodes or 0), dtype=torch.bool)
        free[slot, linked[1]] = False
        wanted = torch.minimum(_PER_PAIR * count, free.sum(1))
        most = int(wanted.max()) if wanted.numel() > 0 else 0
        order = torch.rand(free.shape, generator=generator).masked_fill_(~free, -1.0).topk(most, 1).indices
        chosen = torch.arange(most) < wanted.unsqueeze(1)
        drawn = torch.stack([first.unsqueeze(1).expand_as(order)[chosen], order[chosen]])
        data[name] = torch.cat([linked, drawn], dim=1)
        data.edge_label = torch.cat([torch.ones(linked.size(1)), torch.zeros(drawn.size(1))]).long()
        return data


def draw_pairs(dataset: InMemoryDataset) -> None:
    r"""Has the pairs without an edge drawn anew whenever a graph for training is loaded, with
    :obj:`dataset.resample_negative`, for the head :obj:`inductive_edge`. Those for validation and testing are drawn once.
    """
    if cfg.gnn.head != 'inductive_edge' or not cfg.dataset.resample_negative:
        return
    labels = dataset._data.get('edge_label')
    if isinstance(labels, Tensor) and not bool(((labels == 0) | (labels == 1)).all()):
        given = f'True for other labels of data set {cfg.dataset.name!r} than 0 and 1'
        raise ArgumentError('dataset.resample_negative', given, 'False')
    indices = dataset.indices()
    seeds = torch.full((max(indices, default=-1) + 1,), -1)
    for split in SPLITS[1:]:
        # As PyG takes indices: numbers, in tensors, arrays or lists, or masks.
        index = torch.as_tensor(dataset._data.get(f'{split}_graph_index', torch.empty(0, dtype=torch.long)))
        chosen = torch.arange(len(indices))[index]
        # Seeds of different runs and graphs are far apart.
        seeds[torch.tensor(indices)[chosen]] = (cfg.seed << 31) + chosen
    dataset._data.draw_seed = seeds
    if dataset.slices is not None:
        dataset.slices['draw_seed'] = torch.arange(seeds.numel() + 1)
    dataset._data_list = None
    _append_transform(dataset, DrawOtherEnds())


def draws_pairs(dataset: InMemoryDataset) -> bool:
    r"""Returns whether all that happens to graphs when they are loaded is that pairs are drawn."""
    return isinstance(dataset.transform, (DrawUnlinked, DrawOtherEnds))


def _append_transform(dataset: InMemoryDataset, last: BaseTransform) -> None:
    if cfg.num_workers > 0:
        given = f'{cfg.num_workers} with dataset.resample_negative'
        raise ArgumentError('num_workers', given, '0', 'processes would draw other pairs in a resumed run')
    dataset.transform = last if dataset.transform is None else Compose([dataset.transform, last])


def split_edges(dataset: InMemoryDataset) -> None:
    r"""Splits the edges of a data set of one graph for the task :obj:`link_pred`, unless it has its own
    :obj:`train_edge_index` or others of :obj:`OWN_SPLIT`, and draws pairs without an edge. All edges between two nodes, in both
    directions, are in one split, and self-loops stay as they are, unlike in
    :class:`torch_geometric.transforms.RandomLinkSplit`. Pairs have a direction only for :obj:`model.edge_decoding: concat`,
    because the others give both directions one score.

    Models see the edges for training alone, :obj:`edge_index`, with their features and weights, and self-loops. They predict
    whether there is an edge, the label 1 in :obj:`train_edge_label`, between the pairs :obj:`train_edge_index`, and so for
    :obj:`val` and :obj:`test`. The options have the names of GraphGym:

    * :obj:`dataset.split`: the shares of the pairs with an edge, drawn with :obj:`seed`.
    * :obj:`dataset.edge_negative_sampling_ratio`: how many pairs without an edge each split has for one with an edge.
    * :obj:`dataset.resample_negative`: draw those for training anew in each epoch.
    * :obj:`dataset.edge_train_mode`: with :obj:`all`, models see the edges that they predict in training. With
      :obj:`disjoint`, they see the share :obj:`dataset.edge_message_ratio` of the edges for training, and predict the others.
    """
    if cfg.dataset.task != 'link_pred':
        return
    if any(name in dataset._data for name in OWN_SPLIT):
        _warn_of_options(dataset._data)
        return
    if len(dataset) != 1:
        given = f"'link_pred' for {len(dataset)} graphs"
        raise ArgumentError('dataset.task', given, "this for one graph, and for several 'graph'", 'gnn.head inductive_edge')
    data = dataset.get(dataset.indices()[0])
    if not isinstance(data, Data) or data.edge_index is None:
        given = f"'link_pred' for {type(data).__name__} without edge_index"
        raise ArgumentError('dataset.task', given, 'this for Data with edges, before topomask.transforms')
    shares, ratio = shares_of_splits(), cfg.dataset.edge_negative_sampling_ratio
    check_choice(('all', 'disjoint'), **{'dataset.edge_train_mode': cfg.dataset.edge_train_mode})
    check_not_negative(**{'dataset.edge_negative_sampling_ratio': ratio})
    if ratio == 0:
        raise ArgumentError('dataset.edge_negative_sampling_ratio', ratio, 'numbers above 0')
    check_probability(**{'dataset.edge_message_ratio': cfg.dataset.edge_message_ratio})
    generator = torch.Generator().manual_seed(cfg.seed)

    pairs, place = NodePairs.of(data, ordered=cfg.model.edge_decoding == 'concat')
    joined = pairs.without_order()
    order = torch.randperm(int(joined.max()) + 1 if joined.numel() > 0 else 0, generator=generator)
    bounds = (torch.tensor(shares).cumsum(0)[:2] * order.numel()).round().long().tolist()
    parts = dict(zip(SPLITS, order.tensor_split(bounds), strict=True))
    seen = parts['train']
    if cfg.dataset.edge_train_mode == 'disjoint':
        seen, parts['train'] = seen.tensor_split([round(cfg.dataset.edge_message_ratio * seen.numel())])
    seen, *places = (torch.isin(joined, part).nonzero().flatten() for part in (seen, *parts.values()))
    parts = dict(zip(SPLITS, places, strict=True))
    if min(part.numel() for part in (seen, *parts.values())) == 0:
        given = f'{shares} of {joined.numel()} pairs of nodes with an edge, {cfg.dataset.edge_train_mode!r}'
        raise ArgumentError('dataset.split, dataset.edge_train_mode', given, 'at least one edge in each split, and to see')
    visible = torch.zeros(joined.numel() + 1, dtype=torch.bool)
    visible[seen], visible[-1] = True, True  # the last is the place of self-loops
    shown = data.edge_subgraph(visible[place])
    counts = [max(1, round(ratio * part.numel())) for part in parts.values()]
    unlinked = pairs.draw_unlinked(sum(counts), generator).split(counts, dim=1)
    for (split, part), negative in zip(parts.items(), unlinked, strict=True):
        _set_pairs(shown, split, pairs.ends(pairs.linked[part]), negative)
    dataset.data, dataset.slices = dataset.collate([shown])
    dataset._indices = None
    if cfg.dataset.resample_negative:
        low, high = torch.cat(unlinked[1:], dim=1)
        known = torch.cat([pairs.linked, low * pairs.num_nodes + high])
        _append_transform(dataset, DrawUnlinked(NodePairs(known, pairs.num_nodes, pairs.directed), counts[0]))


#: Names of pairs, of which a data set with any has its own split of the edges of one graph.
OWN_SPLIT = ('train_pos_edge_index', *(f'{split}_edge_index' for split in SPLITS))
#: Names of all labelled pairs, of their labels, and of the seeds by which they are drawn.
LABELLED_PAIRS = (
    *OWN_SPLIT,
    *(f'{split}_edge_label' for split in SPLITS),
    *('edge_label_index', 'edge_index_labeled', 'edge_label', 'draw_seed'),
)


def _warn_of_options(data: Data) -> None:
    before, names = defaults().dataset, ['split', 'edge_train_mode', 'edge_negative_sampling_ratio', 'resample_negative']
    if cfg.dataset.format == 'OGB' or 'train_pos_edge_index' in data:
        names.pop()  # GraphGym itself reads it
    for name in names:
        if cfg.dataset[name] != before[name]:
            warn(f'dataset.{name}: got {cfg.dataset[name]!r}, which nothing reads: the data set has its own split of edges')


def predicts_pairs() -> bool:
    r"""Returns whether the task is about edges or pairs of nodes."""
    return cfg.gnn.head == 'inductive_edge' or cfg.dataset.task in ('edge', 'link_pred')


def _check_nodes(dataset: InMemoryDataset, name: str) -> None:
    r"""Raises an error for pairs with a node that their graph lacks, which in a batch would be one of another graph."""
    data, slices = dataset._data, dataset.slices or {}
    if name not in slices:
        sizes = torch.tensor(int(data.num_nodes or 0))
    elif 'x' in slices or '_num_nodes' in data:
        of_graphs = slices['x'].diff() if 'x' in slices else torch.tensor(data._num_nodes)
        sizes = of_graphs.repeat_interleave(slices[name].diff())
    else:  # PyG takes the number from the edges
        return
    outside = ((data[name] < 0) | (data[name] >= sizes)).any(0)
    if bool(outside.any()):
        place = int(outside.nonzero()[0])
        pair, size = data[name][:, place].tolist(), int(sizes.expand_as(outside)[place])
        given = f'the pair {pair} in a graph of {size} nodes of data set {cfg.dataset.name!r}'
        raise ArgumentError(name, given, 'whole numbers from 0 to the number of nodes - 1')


def size_of_edge_labels(dataset: InMemoryDataset) -> int | None:
    r"""Returns the number of classes of the labels of edges or pairs, or of numbers to predict, and :obj:`None` if the task has
    other labels.
    """
    if not predicts_pairs():
        return None
    data = dataset._data
    if 'train_pos_edge_index' in data:  # of which GraphGym makes labelled pairs
        return 1
    of_graphs = cfg.gnn.head == 'inductive_edge'
    labels = []
    for split in SPLITS[: 1 if of_graphs else cfg.share.num_splits]:
        name, of_pairs = ('edge_label', name_of_pairs(data)) if of_graphs else (f'{split}_edge_label', f'{split}_edge_index')
        label, pairs = data.get(name), data.get(of_pairs)
        if not isinstance(label, Tensor) or not isinstance(pairs, Tensor):
            where = f'data set {cfg.dataset.name!r} without {name if label is None else of_pairs}'
            accepted = f'{of_pairs}, [2, n], and {name}, [n]' + (', and of val and test' if not of_graphs else '')
            raise ArgumentError('dataset.task, gnn.head', f'{cfg.dataset.task!r}, {cfg.gnn.head!r} for {where}', accepted)
        if pairs.dim() != 2 or pairs.shape != (2, label.size(0)):
            given = f'shape {list(label.shape)} for pairs of shape {list(pairs.shape)} in data set {cfg.dataset.name!r}'
            raise ArgumentError(name, given, 'shape [n], and pairs of shape [2, n]')
        _check_nodes(dataset, of_pairs)
        labels.append(label)
    classes = cfg.dataset.task_type in ('classification', 'classification_multi')
    size, several = labels[0].size(1) if labels[0].dim() > 1 else 1, cfg.dataset.task_type == 'classification_multi'
    known = torch.cat([label.flatten() for label in labels])
    known = known[~known.isnan()]
    if classes and size > 1:
        raise ArgumentError(name, f'shape {list(labels[0].shape)} for classification', 'shape [n]')
    if classes and known.numel() > 0 and (several or int(known.max()) > 1):
        size = int(known.max()) + 1
    only_linked = classes and known.numel() > 0 and bool((known == 1).all())
    if of_graphs and only_linked and not cfg.dataset.resample_negative:
        accepted = 'the labels 0 and 1, and dataset.resample_negative True, which draws pairs with the label 0'
        raise ArgumentError(name, f'the label 1 for every pair of data set {cfg.dataset.name!r}', accepted)
    if size > 1 and cfg.model.edge_decoding != 'concat':
        given = f'{cfg.model.edge_decoding!r} for {size} classes or numbers of a pair'
        raise ArgumentError('model.edge_decoding', given, "'concat', and others for one number")
    return size
