"""Frame samplers: their promises for any clip, and their distributions."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.data.batches import SAMPLERS, adjacent, central, gaussian, interval


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def draws(sampler, length, n, count, **options):
    source = generator()
    return torch.stack([sampler(length, n, source, **options) for _ in range(count)])


@pytest.mark.parametrize("name", SAMPLERS)
@settings(max_examples=150, deadline=None)
@given(length=st.integers(1, 400), n=st.integers(1, 40), seed=st.integers(0, 2**31), window=st.floats(0.01, 1.0))
def test_sorted_distinct_frames_of_the_window(name, length, n, seed, window):
    frames = SAMPLERS[name](length, n, generator(seed), window=window)
    first, last = central(length, window)
    assert frames.dtype == torch.int64
    assert 1 <= len(frames) <= n
    assert (frames.diff() > 0).all()
    assert first <= frames[0]
    assert frames[-1] < last
    if name == "adjacent":
        assert (frames.diff() == 1).all()
    if last - first <= n or name != "adjacent":
        assert len(frames) == min(n, last - first)
    assert torch.equal(frames, SAMPLERS[name](length, n, generator(seed), window=window))


@pytest.mark.parametrize(
    ("length", "window", "expected"),
    [(10, 0.6, (2, 8)), (5, 0.6, (1, 4)), (4, 0.6, (0, 4)), (1, 0.6, (0, 1)), (2, 0.01, (0, 2)), (100, 1.0, (0, 100))],
)
def test_the_published_window(length, window, expected):
    assert central(length, window) == expected


def test_adjacent_ends_at_a_uniform_frame_and_is_shorter_at_the_start():
    found = {}
    source = generator()
    for _ in range(3000):
        frames = adjacent(20, 4, source).tolist()
        found[tuple(frames)] = found.get(tuple(frames), 0) + 1
    assert sorted(found) == sorted(tuple(range(max(4, t - 3), t + 1)) for t in range(4, 16))
    assert all(count == pytest.approx(250, abs=70) for count in found.values())


def test_interval_takes_one_uniform_frame_of_each():
    frames = draws(interval, 100, 3, 4000, window=0.6)
    assert (frames.amin(0), frames.amax(0)) == (
        pytest.approx(torch.tensor([20, 40, 60])),
        pytest.approx(torch.tensor([39, 59, 79])),
    )
    counts = torch.bincount(frames.flatten() - 20)
    assert counts.tolist() == pytest.approx([200] * 60, abs=65)


def test_gaussian_prefers_the_middle():
    frames = draws(gaussian, 101, 1, 6000, window=1.0).flatten().double()
    inside = ((frames - 50).abs() <= 101 / 4).double().mean()
    # A normal distribution cut off at ±2σ has 71.5 % of its mass within σ and a deviation of 0.88 σ.
    assert frames.mean() == pytest.approx(50, abs=1.2)
    assert frames.std() == pytest.approx(0.88 * 101 / 4, rel=0.05)
    assert inside == pytest.approx(0.715, abs=0.03)
