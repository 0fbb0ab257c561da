"""Which frames are chosen: against brute force over all moments and all frames."""

import re
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.errors import ColocamError
from colocam.video.frame_choice import FrameChoice, every_nth, nearest, parse_frames


@dataclass(frozen=True)
class Frame:
    index: int
    pts: float


def video(times):
    return [Frame(index, float(time)) for index, time in enumerate(times)]


def numbers(frames):
    return [frame.index for frame in frames]


@pytest.mark.parametrize(
    ("choice", "found"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"start": 1.0}, [2, 3, 4, 5]),
        ({"end": 1.0}, [0, 1]),
        ({"start": 0.5, "end": 2.0}, [1, 2, 3]),
        ({"start": 0.6, "end": 2.1}, [2, 3, 4]),
        ({"frames": (2, 4)}, [2, 3]),
        ({"frames": (None, 2)}, [0, 1]),
        ({"frames": (4, None)}, [4, 5]),
        ({"frames": (2, None), "end": 2.0}, [2, 3]),
        ({"start": 9.0}, []),
        ({"frames": (17, 20)}, []),
        ({"every": 2}, [0, 2, 4]),
        ({"every": 2, "frames": (1, None)}, [1, 3, 5]),
        ({"every": 100}, [0]),
        ({"fps": 1}, [0, 2, 4]),
        ({"fps": 1, "start": 0.5}, [1, 3, 5]),
        ({"fps": 1000}, [0, 1, 2, 3, 4, 5]),
    ],
)
@pytest.mark.parametrize("begin", [0.0, 100.0])
def test_ranges_and_steps_of_two_frames_a_second(choice, found, begin):
    """Times are those of the video, also where it does not begin at 0."""
    choice = {name: begin + value if name in {"start", "end"} else value for name, value in choice.items()}
    assert numbers(FrameChoice(**choice)(video([begin + time for time in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)]))) == found


def test_nothing_is_read_beyond_the_range():
    def frames():
        yield from video([0, 1, 2])
        raise AssertionError("the camera took another picture")

    assert numbers(FrameChoice(frames=(1, 3))(frames())) == [1, 2]


def test_frames_that_are_missing_do_not_shift_the_others():
    """Damaged frames 10 and 11 of every tenth: the next one stands in, and 20 is still taken."""
    frames = [frame for frame in video(range(31)) if frame.index not in {10, 11}]
    assert numbers(every_nth(frames, 10)) == [0, 12, 20, 30]


def brute_force(times, fps):
    """For each moment the nearest frame, the earlier of two, in exact arithmetic."""
    exact = [Fraction(time) for time in times]
    end = exact[-1] + (exact[-1] - exact[-2]) / 2 if len(exact) > 1 else exact[-1]
    chosen, moment, step = set(), exact[0], 1 / Fraction(fps)
    while moment <= end:
        chosen.add(min(range(len(exact)), key=lambda i: (abs(exact[i] - moment), i)))
        moment += step
    return sorted(chosen)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(1, 64), max_size=30),
    st.integers(-200, 2000),
    st.sampled_from([0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]),
)
def test_frames_per_second_take_the_nearest_of_any_times(gaps, start, fps):
    """Times in 64ths of a second and rates that are powers of two: floats hold them exactly, also the ties."""
    times = [start / 64]
    for gap in gaps:
        times.append(times[-1] + gap / 64)
    assert numbers(nearest(video(times), fps)) == brute_force(times, fps)


def test_a_clock_that_is_set_back_starts_anew():
    times = [0.0, 0.5, 1.0, 1.5, 0.0, 0.5, 1.0, 1.5]
    assert numbers(nearest(video(times), 1)) == [0, 2, 4, 6]
    assert numbers(nearest(video([3.0, 3.0, 3.0]), 1)) == [0]
    assert numbers(nearest([], 1)) == []


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ({"every": 0}, "every must be 1 or more frames, got 0"),
        ({"fps": 0.0}, "fps must be more than 0 frames per second, got 0"),
        ({"fps": -2.0}, "fps must be more than 0 frames per second, got -2"),
        ({"fps": float("nan")}, "fps .*, got nan"),
        ({"fps": float("inf")}, "fps .*, got inf"),
        ({"fps": 1e308}, r"fps must be at most 1000000 frames per second, got 1e\+308"),
        ({"start": float("nan")}, "start must be a finite number of seconds, got nan"),
        ({"end": float("nan")}, "end must be a finite number of seconds, got nan"),
        ({"end": float("inf")}, "end must be a finite number of seconds, got inf"),
        ({"fps": 2.0, "every": 3}, "fps and `every` cannot be used together"),
        ({"start": 3.0, "end": 3.0}, "end must be after the start at 3 s, got 3 s"),
        ({"frames": (5, 5)}, "frames must be A:B with 0 ≤ A < B, or A: or :B, got 5:5"),
        ({"frames": (-5, None)}, "frames must be .*, got -5:"),
        ({"frames": (None, 0)}, "frames must be .*, got :0"),
    ],
)
def test_impossible_choices_are_refused(choice, told):
    with pytest.raises(ColocamError) as error:
        FrameChoice(**choice)
    assert re.match(told, str(error.value))


def test_ranges_as_text():
    assert parse_frames("100:200") == (100, 200)
    assert parse_frames(":200") == (None, 200)
    assert parse_frames("100:") == (100, None)
    assert parse_frames(":") == (None, None)
    for text in ("", "100", "1:2:3", "a:b", "-1:4", "1.5:2", "²:9"):
        with pytest.raises(ColocamError, match=r"frames must be A:B, .*, got "):
            parse_frames(text)
    for text in ("9" * 5000 + ":", ":" + "9" * 5000):
        with pytest.raises(ColocamError, match=r"^frames must be A:B with at most 18 digits each, got [:9]{18}…$"):
            parse_frames(text)


@pytest.mark.parametrize("choice", [{}, {"every": 7}, {"fps": 3.0}, {"start": 2.0, "end": 7.5}, {"frames": (40, 99)}])
def test_estimates_are_near_the_count(choice):
    frames = video([index / 25 for index in range(250)])
    chosen = FrameChoice(**choice)
    assert chosen.estimate(250, 25.0) == pytest.approx(len(list(chosen(frames))), abs=1)
    assert FrameChoice(every=2).estimate(0, 25.0) == 0
    assert FrameChoice(end=4.0).estimate(0, 25.0) == 100
