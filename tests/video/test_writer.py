"""Written videos: what a browser needs, exact times, whole or absent."""

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from colocam.errors import ColocamError
from colocam.video.fence import decode, probe
from colocam.video.input import VideoError
from colocam.video.writer import VideoWriter


def names(folder):
    return [path.name for path in folder.iterdir()]


def write(path, pictures, fps=25, times=None):
    height, width = pictures[0].shape[:2]
    with VideoWriter(path, width, height, fps) as video:
        for number, picture in enumerate(pictures):
            video.write(picture, None if times is None else times[number])
    return path


class Interrupted(list):
    """Pictures, then Ctrl-C."""

    def __iter__(self):
        yield from super().__iter__()
        raise KeyboardInterrupt


def test_a_browser_plays_it(tmp_path, numbered):
    path = write(tmp_path / "a.mp4", numbered(10))
    data = path.read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")  # playback starts before the download ends
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert (stream.codec_context.colorspace, stream.codec_context.color_range) == (1, 1)


def test_colors_survive(tmp_path):
    colors = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (200, 40, 20), (20, 60, 190), (250, 250, 10), (128, 128, 128)]
    pictures = [np.full((48, 64, 3), color, np.uint8) for color in colors]
    for frame, picture in zip(decode(write(tmp_path / "a.mp4", pictures)), pictures, strict=True):
        assert np.abs(frame.image.astype(int) - picture).max() <= 6


@pytest.mark.parametrize(
    "fps",
    [None, 25, 29.97, Fraction(30000, 1001), Fraction(24000, 1001), Fraction(15), Fraction(1, 2), 120, 59.94, 7.5],
)
def test_constant_frame_rates_are_exact(tmp_path, numbered, number_of, fps):
    path = write(tmp_path / "a.mp4", numbered(20), fps)
    rate = Fraction(fps or 25).limit_denominator(1001)
    assert probe(path).fps == rate
    frames = list(decode(path))
    assert [frame.pts for frame in frames] == [float(number / rate) for number in range(20)]
    assert [number_of(frame.image) for frame in frames] == list(range(20))


@pytest.mark.parametrize("start", [0.0, 3.5])
def test_variable_times_survive(tmp_path, numbered, number_of, start):
    times = [start + time for time in (0.0, 0.033, 0.0412, 0.5, 0.50002, 2.25, 100.125)]
    frames = list(decode(write(tmp_path / "a.mp4", numbered(7), times=times)))
    assert [frame.pts for frame in frames] == pytest.approx(times, abs=1.2e-5)
    assert [number_of(frame.image) for frame in frames] == list(range(7))


def test_times_that_stand_still_or_run_back_lose_no_frame(tmp_path, numbered, number_of):
    times = [0.0, 0.5, 0.5, 0.4, 1.0]
    frames = list(decode(write(tmp_path / "a.mp4", numbered(5), times=times)))
    assert [number_of(frame.image) for frame in frames] == list(range(5))
    assert [frame.pts for frame in frames] == pytest.approx([0.0, 0.5, 0.5, 0.5, 1.0], abs=1e-4)


def test_long_gaps_are_shortened_and_told(tmp_path, numbered, number_of, capsys):
    """mp4 holds the time between two frames in 31 bits of 1/90,000 s: a frame per day does not fit."""
    day = 86_400.0
    times = [0.0, day, day + 0.5, 3 * day, 3 * day + 1, *(2e9 * number for number in range(1, 56))]
    path = write(tmp_path / "a.mp4", numbered(60), times=times)
    frames = list(decode(path))
    assert [number_of(frame.image) for frame in frames] == list(range(60))
    gap = 2**31 / 6 / 90_000
    found = np.diff([frame.pts for frame in frames])
    assert found == pytest.approx([gap, 0.5, gap, 1, *[gap] * 55], abs=1e-3)
    assert capsys.readouterr().err == f"warning: {path}: long gaps between frames are shortened to 3977 s\n"


def test_a_start_beyond_all_limits(tmp_path, numbered):
    assert len(list(decode(write(tmp_path / "a.mp4", numbered(3), times=[1e18, 1e18 + 512, 1e18 + 1024])))) == 3


@pytest.mark.parametrize("fps", [Fraction(1, 2003), Fraction(1, 2**32 - 1), Fraction(2**32 - 1), Fraction(10**9, 7)])
def test_absurd_rates(tmp_path, numbered, fps):
    path = write(tmp_path / "a.mp4", numbered(5), fps, times=[0.0, 1.0, 2.0, 3.0, 4.0])
    assert [frame.pts for frame in decode(path)] == pytest.approx([0.0, 1.0, 2.0, 3.0, 4.0], abs=1e-3)
    assert len(list(decode(write(tmp_path / "b.mp4", numbered(5), fps)))) == 5


@pytest.mark.parametrize("size", [(63, 48), (64, 47), (33, 35), (1, 1)])
def test_odd_sizes_repeat_the_last_row_and_column(tmp_path, size):
    width, height = size
    picture = np.full((height, width, 3), 60, np.uint8)
    picture[-1], picture[:, -1] = 220, 220
    frame = next(decode(write(tmp_path / "a.mp4", [picture] * 3)))
    assert frame.image.shape == (height + height % 2, width + width % 2, 3)
    assert frame.image[-1].mean() == pytest.approx(220, abs=8)
    assert frame.image[:, -1].mean() == pytest.approx(220, abs=8)


def test_equal_frames_give_equal_bytes(tmp_path, quadrants):
    pictures = [np.roll(quadrants(), number, axis=1) for number in range(30)]
    first = write(tmp_path / "a.mp4", pictures).read_bytes()
    assert write(tmp_path / "b.mp4", pictures).read_bytes() == first
    assert write(tmp_path / "c.mp4", pictures[::-1]).read_bytes() != first


@pytest.mark.parametrize(
    "name",
    ["two words.mp4", 'it\'s "quoted".mp4', "köttur 猫 кошка.mp4", "a:b.mp4", "50%03d.mp4", "-dash.mp4", "#1?.mp4"],
)
def test_awkward_names_are_written_and_read(tmp_path, numbered, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    write(Path(name), numbered(3))
    assert names(tmp_path) == [name]
    for path in (Path(name), tmp_path / name):
        assert len(list(decode(path))) == 3


def test_an_error_leaves_nothing_and_keeps_the_old_file(tmp_path, numbered):
    old = write(tmp_path / "a.mp4", numbered(5)).read_bytes()
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "a.mp4", Interrupted(numbered(30)))
    assert names(tmp_path) == ["a.mp4"]
    assert (tmp_path / "a.mp4").read_bytes() == old


def test_a_video_without_frames_is_refused(tmp_path):
    with pytest.raises(ColocamError, match="at least one frame"), VideoWriter(tmp_path / "a.mp4", 64, 48, 25):
        pass
    assert names(tmp_path) == []


def test_a_frame_of_another_size_is_refused(tmp_path, numbered):
    with (
        pytest.raises(ColocamError, match=r"image must be \(48, 64, 3\), got"),
        VideoWriter(tmp_path / "a.mp4", 64, 48, 25) as video,
    ):
        video.write(numbered(1, 48, 64)[0])
    assert names(tmp_path) == []


def test_a_full_disk_is_one_clear_line(tmp_path, full_disk):
    full_disk("a.mp4")
    noise = np.random.default_rng(0).integers(0, 256, (100, 48, 64, 3), np.uint8)
    with pytest.raises(ColocamError, match=r"cannot write .*a\.mp4: the disk is full"):
        write(tmp_path / "a.mp4", noise)
    assert names(tmp_path) == []


@pytest.mark.parametrize("size", [(20_000, 2), (2, 20_000)])
def test_more_pixels_per_side_than_h264_holds(tmp_path, size):
    with (
        pytest.raises(VideoError, match=r"a\.mp4: H\.264 holds at most 16384 pixels per side, got .*`no_video`"),
        VideoWriter(tmp_path / "a.mp4", *size, 25),
    ):
        pass
    assert names(tmp_path) == []
