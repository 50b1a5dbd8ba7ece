"""The error for an argument: its message, its attributes, its other names."""

import copy
import pickle
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import Sequential

from pyg_topomask.errors import ArgumentError
from pyg_topomask.masks import GRFMask, HopMask, PowerSeriesMask
from pyg_topomask.nn import MaskedLinearAttention
from pyg_topomask.transforms import AddGraphRandomFeatures
from pyg_topomask.utils.checks import check_choice, check_shape, check_whole

ERROR = ArgumentError('x', 'shape (2,)', '[N, channels]', 'add a dimension')
ATTRIBUTES = {'argument': 'x', 'given': 'shape (2,)', 'accepted': '[N, channels]', 'remedy': 'add a dimension'}


def test_the_message_has_all_attributes() -> None:
    assert vars(ERROR) == ATTRIBUTES
    assert str(ERROR) == 'x: got shape (2,); accepted: [N, channels]; add a dimension'
    assert str(ArgumentError('num', 0, range(1, 3))) == 'num: got 0; accepted: range(1, 3)'


@pytest.mark.parametrize('same', [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_copies_and_pickles_keep_all_attributes(same: Callable[[ArgumentError], ArgumentError]) -> None:
    again = same(ERROR)
    assert type(again) is ArgumentError
    assert vars(again) == ATTRIBUTES
    assert str(again) == str(ERROR)


def test_an_error_has_the_name_of_the_argument_under_its_owner() -> None:
    error = ERROR.under('topomask.GRF')
    assert vars(error) == ATTRIBUTES | {'argument': 'topomask.GRF.x'}
    assert str(error) == 'topomask.GRF.x: got shape (2,); accepted: [N, channels]; add a dimension'
    assert ERROR.renamed('pos').argument == 'pos'
    assert ERROR.argument == 'x'


def test_a_check_names_the_argument_and_not_its_message() -> None:
    with pytest.raises(ArgumentError) as raised:
        check_whole(1, num_walks=0)
    assert (raised.value.argument, raised.value.given, raised.value.accepted) == ('num_walks', '0', 'whole numbers from 1')


def test_choices(subtests: pytest.Subtests) -> None:
    for given in ['c', 1, [], {}, 'a, None', torch.zeros(2)]:
        with subtests.test(given=given):
            check_choice({'a': 1, 'b': 2}, first='a', second='b')
            check_choice(('a', None), first=None)
            with pytest.raises(ArgumentError, match=rf'^second: got {re.escape(repr(given))}; accepted: a, None$'):
                check_choice(('a', None), first='a', second=given)


def test_shapes() -> None:
    x = torch.zeros(2, 3)
    check_shape(x.shape, x=x)
    check_shape((2, 'channels'), x=x)
    check_shape((), x=torch.zeros(()))
    for sizes, accepted in [((2,), '[2]'), ((2, 'channels', 1), '[2, channels, 1]'), ((3, 'channels'), '[3, channels]')]:
        with pytest.raises(ArgumentError, match=rf'^x: got shape \(2, 3\); accepted: {re.escape(accepted)}$'):
            check_shape(sizes, first=torch.zeros([1 if isinstance(size, str) else size for size in sizes]), x=x)
    with pytest.raises(ArgumentError, match=r'^x: got ndarray; accepted: tensors$'):
        check_shape((2, 3), x=x.numpy())


@pytest.mark.parametrize(
    'make',
    [
        lambda: GRFMask(modulation='heat:9', max_walk_length=2),
        lambda: PowerSeriesMask(coefficients='heat:9', order=2),
        lambda: GRFMask(walk_length='fixed:1', max_walk_length=3),
        lambda: MaskedLinearAttention(4, mask=PowerSeriesMask(normalization=None, coefficients=torch.ones(1, 4), order=3))(
            torch.ones(4, 4), torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
        ),
        lambda: Sequential('x, edges, weight', [(MaskedLinearAttention(4, mask=HopMask()), 'x, edges, weight -> x')])(
            torch.ones(2, 4), torch.tensor([[0], [1]]), torch.tensor([2.0])
        ),
    ],
)
def test_warnings_name_the_line_of_the_user(make: Callable[[], object]) -> None:
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter('always')
        make()
    assert [warning.filename for warning in record] == [__file__]


def test_warnings_of_a_worker_name_the_line_of_its_loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def show(message: Warning, category: type[Warning], filename: str, *_: object) -> None:
        with (tmp_path / 'files.txt').open('a') as file:
            file.write(f'{filename}\n' * str(message).startswith('data: got edge_attr'))

    dataset = InMemoryDataset(transform=AddGraphRandomFeatures())
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), edge_attr=torch.rand(2), num_nodes=2)
    dataset.data, dataset.slices = InMemoryDataset.collate([data, data])
    with warnings.catch_warnings():
        warnings.simplefilter('always')
        monkeypatch.setattr(warnings, 'showwarning', show)
        list(DataLoader(dataset, num_workers=1, multiprocessing_context='fork'))
    assert set((tmp_path / 'files.txt').read_text().split()) == {__file__}
