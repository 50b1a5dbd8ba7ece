import pytest
import torch

from pyg_topomask.apps.datasets import MovingDigits
from pyg_topomask.apps.datasets.images import moving_digits

load_digits = pytest.importorskip('sklearn.datasets').load_digits

STEPS = {0: (1, 0), 1: (-1, 0), 2: (0, 1), 3: (0, -1)}


def images() -> torch.Tensor:
    return torch.from_numpy(load_digits().images).float() / 16


def place(frame: torch.Tensor, image: torch.Tensor) -> list[tuple[int, int]]:
    """Every place where the frame holds exactly the image, and nothing beside it."""
    places = []
    for row in range(frame.size(0) - 7):
        for column in range(frame.size(1) - 7):
            patch = frame[row : row + 8, column : column + 8]
            if torch.equal(patch, image) and patch.sum() == frame.sum():
                places.append((row, column))
    return places


def test_each_video_is_one_digit_that_moves_and_bounces() -> None:
    size, known = 13, {image.numpy().tobytes(): image for image in images()}
    videos, labels = moving_digits(num_frames=12, size=size)['val']
    speeds = set()
    for video, label in zip(videos[:20, :, 0], labels[:20].tolist(), strict=True):
        # The digit is the dataset of the first frame that is one of the images.
        starts = [
            (row, column)
            for row in range(size - 7)
            for column in range(size - 7)
            if video[0, row : row + 8, column : column + 8].contiguous().numpy().tobytes() in known
            and video[0, row : row + 8, column : column + 8].sum() == video[0].sum()
        ]
        row, column = starts[0]
        image = video[0, row : row + 8, column : column + 8]
        down, right = STEPS[label % 4]
        for speed in (1, 2):
            at, velocity, matches = [row, column], [down * speed, right * speed], True
            for frame in video:
                matches &= tuple(at) in place(frame, image)
                for axis in range(2):
                    at[axis] += velocity[axis]
                    if not 0 <= at[axis] <= size - 8:
                        at[axis] = -at[axis] if at[axis] < 0 else 2 * (size - 8) - at[axis]
                        velocity[axis] = -velocity[axis]
            if matches:
                break
        assert matches
        speeds.add(speed)
    assert speeds == {1, 2}


def test_splits_hold_the_digits_of_the_images_apart() -> None:
    splits = moving_digits(num_frames=2)
    assert [len(labels) for _, labels in splits.values()] == [1257, 270, 270]
    brightness = images().sum(dim=(1, 2))
    together = torch.cat([videos[:, 0].sum(dim=(1, 2, 3)) for videos, _ in splits.values()])
    torch.testing.assert_close(together.sort().values, brightness.sort().values)


def test_targets() -> None:
    (videos, both), (same, digit), (_, direction) = (
        moving_digits(target=target)['train'] for target in ('both', 'digit', 'direction')
    )
    assert torch.equal(videos, same)
    assert torch.equal(both, 4 * digit + direction)
    assert digit.unique().tolist() == list(range(10))
    assert direction.unique().tolist() == list(range(4))


def test_seed_decides_the_motion() -> None:
    first, again, other_seed = (moving_digits(seed=seed)['test'] for seed in (1, 1, 2))
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    assert not torch.equal(first[0], other_seed[0])
    assert not torch.equal(first[1] % 4, other_seed[1] % 4)  # directions too, not only places and speeds


def test_pixels_lie_between_0_and_1() -> None:
    videos, _ = moving_digits()['test']
    assert videos.shape == (270, 8, 1, 16, 16)
    assert videos.min() == 0
    assert videos.max() == 1


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ({'num_frames': 0}, 'num_frames: got 0; accepted: whole numbers from 1'),
        ({'size': 11}, 'size: got 11; accepted: whole numbers from 12'),
        ({'target': 'speed'}, "target: got 'speed'; accepted:"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        moving_digits(**arguments)


def test_graphs_hold_the_frames_of_each_pixel() -> None:
    splits = moving_digits(num_frames=3, size=12, target='digit', seed=4)
    dataset = MovingDigits(num_frames=3, size=12, target='digit', seed=4)
    for split, indices in dataset.split_indices().items():
        videos, labels = splits[split]
        assert dataset[indices].y.tolist() == labels.tolist()
        subset = MovingDigits(split=split, num_frames=3, size=12, target='digit', seed=4)
        for data, video in zip(subset[:3], videos, strict=False):
            for row, column in ((0, 5), (7, 11)):
                assert data.x[12 * row + column].tolist() == video[:, 0, row, column].tolist()
        source, target = subset[0].edge_index
        assert subset[0].num_edges == 2 * 2 * 12 * 11
        assert ((target - source).abs() == 1).logical_or((target - source).abs() == 12).all()


def test_unknown_split() -> None:
    with pytest.raises(ValueError, match=r"^split: got 'dev'"):
        MovingDigits(split='dev')
