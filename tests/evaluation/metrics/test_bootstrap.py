import numpy as np
import pytest

from colocam.evaluation.metrics import Frames
from colocam.evaluation.metrics.protocols import resampled_means


def frames_of(tags, videos, names=("cat", "dog")):
    return Frames(names, np.asarray(tags), np.asarray(videos))


def drawn_by_hand(values, frames, draws, seed):
    """Videos drawn one by one, their frames put together: the definition."""
    generator = np.random.default_rng(seed)
    averages, overall = [], []
    for _ in range(draws):
        of_classes, everything = [], []
        for tag in np.unique(frames.tags):
            videos = np.unique(frames.videos[frames.tags == tag])
            chosen = generator.choice(videos, len(videos))
            together = np.concatenate([values[(frames.tags == tag) & (frames.videos == v)] for v in chosen])
            of_classes.append(together.mean())
            everything.append(together)
        averages.append(np.mean(of_classes))
        overall.append(np.concatenate(everything).mean())
    return np.array(averages), np.array(overall)


def test_same_distribution_as_drawing_videos_one_by_one():
    generator = np.random.default_rng(0)
    tags = np.repeat([0, 1], [60, 30])
    videos = np.where(tags == 0, generator.integers(0, 9, 90), 100 + generator.integers(0, 5, 90))
    values = (generator.random(90) < 0.2 + 0.6 * (videos % 2)).astype(float)
    frames = frames_of(tags, videos)
    ours = resampled_means(values, frames, samples=4000, seed=1)
    theirs = drawn_by_hand(values, frames, 4000, 2)
    for a, b in zip(ours, theirs, strict=True):
        assert a.mean() == pytest.approx(b.mean(), abs=0.01)
        assert a.std() == pytest.approx(b.std(), rel=0.06)
        assert np.allclose(np.quantile(a, [0.025, 0.5, 0.975]), np.quantile(b, [0.025, 0.5, 0.975]), atol=0.02)


def test_videos_of_one_name_in_two_classes_are_two_videos():
    values = np.array([1.0, 0.0, 0.0, 1.0])
    same = resampled_means(values, frames_of([0, 0, 1, 1], ["a", "b", "a", "b"]))[0]
    other = resampled_means(values, frames_of([0, 0, 1, 1], ["a", "b", "c", "d"]))[0]
    assert np.array_equal(same, other)


def test_class_means_of_rows_and_of_an_absent_class():
    frames = frames_of([2, 0, 2], [0, 1, 2], ("a", "b", "c"))
    means = frames.class_means(np.array([[1, 0], [0, 1], [0, 0]], bool))
    assert means[[0, 2]].tolist() == [[0, 1], [0.5, 0]]
    assert np.isnan(means[1]).all()
