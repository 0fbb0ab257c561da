"""Reading real files, among them hostile ones."""

import os
from dataclasses import replace
from fractions import Fraction

import av
import cv2
import numpy as np
import PIL.Image
import pytest
from av.stream import Disposition

from colocam.errors import ColocamError
from colocam.video.fence import decode, estimate_frames, probe
from colocam.video.frame_choice import ALL, FrameChoice
from colocam.video.input import UnreadableError
from colocam.video.reader import VideoInfo, VideoReader


def mean_error(image, expected):
    assert image.shape == expected.shape
    return float(np.abs(image.astype(int) - expected.astype(int)).mean())


def test_every_frame_in_order_with_its_number_and_time(tmp_path, make_video, number_of):
    frames = list(decode(make_video(tmp_path / "a.mp4", 30)))
    assert [frame.index for frame in frames] == list(range(30))
    assert [number_of(frame.image) for frame in frames] == list(range(30))
    assert [frame.pts for frame in frames] == [number / 25 for number in range(30)]
    assert all(frame.image.dtype == np.uint8 and frame.image.shape == (48, 64, 3) for frame in frames)


def test_probe_says_what_the_file_holds(tmp_path, make_video):
    path = make_video(tmp_path / "a.mp4", 30, size=(80, 60), fps=Fraction(30000, 1001))
    assert probe(path) == VideoInfo(80, 60, Fraction(30000, 1001), pytest.approx(30 * 1001 / 30000))


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_rotation_and_mirroring_are_applied(tmp_path, make_video, quadrants, rotation, mirrored):
    path = make_video(tmp_path / "a.mp4", [quadrants()] * 3, rotation=rotation, mirrored=mirrored)
    image, turned = next(decode(path)).image, np.rot90(quadrants(), rotation // 90)
    assert mean_error(image, turned[:, ::-1] if mirrored else turned) < 4
    if not mirrored:  # OpenCV turns pictures upright by itself; with plain FFmpeg frames the two would differ
        assert mean_error(image, cv2.VideoCapture(str(path)).read()[1][..., ::-1]) < 1
    info = probe(path)
    assert (info.height, info.width) == image.shape[:2]


def test_orientation_in_exif(tmp_path, quadrants):
    """Of the frames of a video, and of images in a folder."""
    exif = PIL.Image.Exif()
    exif[0x0112] = 6  # the camera was turned: show the picture turned clockwise
    PIL.Image.fromarray(quadrants()).save(tmp_path / "a.jpg", exif=exif, quality=95)
    (tmp_path / "a.mjpeg").write_bytes((tmp_path / "a.jpg").read_bytes() * 3)
    for source in (tmp_path / "a.mjpeg", tmp_path):
        assert mean_error(next(decode(source)).image, np.rot90(quadrants(), -1)) < 8


@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt"),
    [
        ("ten bits.mp4", "libx264", "yuv420p10le"),
        ("ten bits hevc.mp4", "libx265", "yuv420p10le"),
        ("full color.mp4", "libx264", "yuv444p"),
        ("full range.avi", "mjpeg", "yuvj420p"),
        ("lossless.mkv", "ffv1", "bgr0"),
        ("gray.mkv", "ffv1", "gray16le"),
        ("palette.gif", "gif", "rgb8"),
        ("professional.mov", "prores_ks", "yuva444p10le"),
        ("web.webm", "libvpx-vp9", "yuv420p"),
    ],
)
def test_pixel_formats_and_containers(tmp_path, make_video, name, codec, pix_fmt):
    options = {"x265-params": "log-level=none:pools=none"} if codec == "libx265" else {}
    path = make_video(tmp_path / name, 8, codec=codec, pix_fmt=pix_fmt, options=options)
    frames = list(decode(path))
    assert [frame.index for frame in frames] == list(range(8))
    tolerance = 20 if pix_fmt == "rgb8" else 3  # 3 bits a channel
    for frame in frames:
        assert frame.image.dtype == np.uint8
        assert frame.image.mean() == pytest.approx(10 + 4 * frame.index, abs=tolerance)
    assert probe(path).width == 64


def test_a_pixel_format_that_cannot_be_converted(tmp_path):
    path = tmp_path / "a.nut"
    with av.open(str(path), "w") as output:
        stream = output.add_stream("rawvideo", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "rgb4"
        frame = av.VideoFrame(64, 48, "rgb4")
        frame.pts = 0
        output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    with pytest.raises(
        UnreadableError, match=r"a\.nut: FFmpeg cannot convert its pixel format rgb4 to RGB: convert it"
    ):
        probe(path)


@pytest.mark.parametrize("name", ["yaf32le", "yaf32be"])
def test_a_pixel_format_that_would_end_the_process(name):
    from colocam.video import reader  # noqa: PLC0415

    with pytest.raises(UnreadableError, match=f"video: FFmpeg cannot convert its pixel format {name} to RGB"):
        reader._Upright("video")(av.VideoFrame(64, 48, name))


@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt"), [("a.mov", "qtrle", "argb"), ("a.mov", "png", "rgba"), ("a.apng", "apng", "rgba")]
)
def test_transparent_pixels_are_black(tmp_path, make_video, name, codec, pix_fmt):
    picture = np.full((48, 64, 4), 200, np.uint8)
    picture[..., 3] = np.linspace(0, 255, 64).round()
    frames = list(decode(make_video(tmp_path / name, [picture] * 3, codec=codec, pix_fmt=pix_fmt)))
    assert len(frames) == 3
    expected = np.broadcast_to(200 * (picture[..., 3:] / 255), (48, 64, 3))
    assert np.abs(frames[0].image - expected).max() <= 1


def test_vp9_with_alpha(tmp_path, make_video, quadrants):
    opaque = np.dstack([quadrants(), np.full((48, 64), 255, np.uint8)])
    path = make_video(tmp_path / "a.webm", [opaque] * 3, codec="libvpx-vp9", pix_fmt="yuva420p")
    assert mean_error(next(decode(path)).image, quadrants()) < 6


@pytest.mark.parametrize("size", [(63, 48), (64, 47), (33, 35), (1, 1), (2, 97)])
def test_odd_sizes(tmp_path, make_video, number_of, size):
    path = make_video(tmp_path / "a.mkv", 6, size=size, codec="ffv1", pix_fmt="yuv444p")
    frames = list(decode(path))
    assert [number_of(frame.image) for frame in frames] == list(range(6))
    assert frames[0].image.shape == (size[1], size[0], 3)


@pytest.mark.parametrize("suffix", ["mkv", "mp4", "ts"])
def test_a_variable_frame_rate_that_does_not_start_at_zero(tmp_path, make_video, number_of, suffix):
    times = [5.0 + 0.04 * number for number in (0, 1, 1.25, 8, 30, 31, 200)]
    frames = list(decode(make_video(tmp_path / f"a.{suffix}", 7, times=times)))
    assert [frame.pts for frame in frames] == pytest.approx(times)
    assert [number_of(frame.image) for frame in frames] == [frame.index for frame in frames] == list(range(7))


@pytest.mark.parametrize("audio", [None, "first", "last"])
def test_audio_tracks_are_ignored(tmp_path, make_video, number_of, audio):
    path = make_video(tmp_path / "a.mp4", 5, audio=audio)
    with av.open(str(path)) as container:
        assert [stream.type for stream in container.streams] == {
            None: ["video"],
            "first": ["audio", "video"],
            "last": ["video", "audio"],
        }[audio]
    assert [number_of(frame.image) for frame in decode(path)] == list(range(5))


def test_a_cover_picture_is_not_the_video(tmp_path, numbered):
    path = tmp_path / "a.mkv"
    with av.open(str(path), "w", format="mp4") as output:
        cover = output.add_stream("mjpeg", rate=1)
        cover.width, cover.height, cover.pix_fmt = 32, 32, "yuvj420p"
        cover.disposition = Disposition.attached_pic
        sound = output.add_stream("aac", rate=16000, layout="mono")
        output.mux(cover.encode(av.VideoFrame.from_ndarray(numbered(1, 32, 32)[0], "rgb24")))
        output.mux(cover.encode(None))
        silence = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        silence.rate, silence.pts = 16000, 0
        output.mux(sound.encode(silence))
        output.mux(sound.encode(None))
    with pytest.raises(UnreadableError, match="no video track"):
        probe(path)


def test_a_stream_that_changes_size_keeps_its_first(tmp_path, make_video, number_of, monkeypatch):
    """Frames that become too large are skipped."""
    small = make_video(tmp_path / "small.h264", 5, size=(64, 48)).read_bytes()
    large = make_video(tmp_path / "large.h264", 5, size=(96, 80)).read_bytes()
    (tmp_path / "a.h264").write_bytes(small + large)
    frames = list(decode(tmp_path / "a.h264"))
    assert [frame.image.shape for frame in frames] == [(48, 64, 3)] * 10
    assert [number_of(frame.image) for frame in frames] == [0, 1, 2, 3, 4] * 2
    assert [frame.pts for frame in frames] == [number / 25 for number in range(10)]
    monkeypatch.setattr("colocam.video.input.MAX_PIXELS", 64 * 48)
    with VideoReader(tmp_path / "a.h264") as reader:
        assert 1 <= len(list(reader.frames())) <= 5  # the decoder loses those it still holds


def test_a_name_that_is_no_text(tmp_path, make_video):
    path = make_video(tmp_path / "plain.mp4", 3).rename(tmp_path / os.fsdecode(b"\xff\xfe.mp4"))
    assert len(list(decode(path))) == 3


def test_start_and_end(tmp_path, make_video, number_of):
    path = make_video(tmp_path / "a.mp4", 50, options={"g": "10"})
    frames = list(decode(path, start=0.4, end=1.0))
    assert [frame.index for frame in frames] == list(range(10, 25))
    assert [number_of(frame.image) for frame in frames] == list(range(10, 25))
    assert [frame.index for frame in decode(path, start=1.9)] == [48, 49]
    assert list(decode(path, start=7.0)) == []


def test_number_of_threads_changes_nothing(tmp_path, make_video, quadrants):
    path = make_video(tmp_path / "a.mp4", [np.roll(quadrants(), 3 * number, axis=1) for number in range(20)])
    one, many = list(decode(path, threads=1)), list(decode(path, threads=4))
    assert [frame.index for frame in one] == [frame.index for frame in many]
    assert all(np.array_equal(a.image, b.image) for a, b in zip(one, many, strict=True))


def test_estimated_number_of_frames(tmp_path, make_video):
    path = make_video(tmp_path / "a.mp4", 50)
    assert estimate_frames(path) == 50
    assert estimate_frames(path, start=0.4, end=1.0) == pytest.approx(15, abs=1)
    assert estimate_frames(path, start=1.0, end=99.0) == pytest.approx(25, abs=1)
    assert estimate_frames(path, start=7.0) == 0
    assert estimate_frames(make_video(tmp_path / "a.webm", 50, codec="libvpx-vp9")) == pytest.approx(50, abs=1)
    assert estimate_frames(make_video(tmp_path / "a.h264", 50)) == 0  # a bare stream does not say


@pytest.mark.parametrize("choice", [ALL, FrameChoice(end=90.0), FrameChoice(start=1.0), FrameChoice(fps=2.0)], ids=str)
def test_a_time_base_is_no_frame_rate(tmp_path, make_video, choice):
    """Such files state 1000 frames per second, since their times are in milliseconds."""
    path = make_video(tmp_path / "a.webm", 12, fps=1000, codec="libvpx", times=range(0, 132, 11))
    assert estimate_frames(path, start=choice.start or 0.0, end=choice.end) == 0
    with VideoReader(path) as reader:
        assert reader.estimate(choice) == 0


@pytest.mark.parametrize("stated", [1300, 132_000_001])
def test_more_frames_than_the_duration_or_the_file_can_hold(tmp_path, make_video, stated):
    with VideoReader(make_video(tmp_path / "a.mp4", 30)) as reader:
        assert reader.estimate() == 30
        reader.total = stated
        assert reader.estimate() == 0
        reader.info = replace(reader.info, duration=None)
        assert reader.estimate() == (stated if stated < reader.source.path.stat().st_size else 0)


def noise(count):
    return list(np.random.default_rng(0).integers(0, 256, (count, 48, 64, 3), np.uint8))


@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt"),
    [
        ("a.mp4", "libx264", "yuv420p"),
        ("a.ts", "libx264", "yuv420p"),
        ("a.mkv", "libx264", "yuv420p"),
        ("a.h264", "libx264", "yuv420p"),
        ("a.avi", "mjpeg", "yuvj420p"),
        ("a.webm", "libvpx-vp9", "yuv420p"),
        ("a.apng", "apng", "rgba"),
        ("a.gif", "gif", "rgb8"),
    ],
)
def test_cut_files_yield_their_good_frames_only(tmp_path, make_video, name, codec, pix_fmt):
    front = {"movflags": "+faststart"} if name == "a.mp4" else {}  # with its index at the end it would be lost
    path = make_video(tmp_path / name, noise(40), codec=codec, pix_fmt=pix_fmt, container=front)
    every = list(decode(path))
    os.truncate(path, int(path.stat().st_size * 0.6))
    good = list(decode(path))
    assert 10 < len(good) < 30
    # The very last picture may be half there where the format has no way to tell.
    assert all(np.array_equal(frame.image, every[frame.index].image) for frame in good[:-1])
    assert all(frame.pts == every[frame.index].pts for frame in good)


def test_a_chunk_of_impossible_length(tmp_path, make_video):
    path = make_video(tmp_path / "a.apng", noise(40), codec="apng", pix_fmt="rgba")
    data = bytearray(path.read_bytes())
    chunk = data.index(b"fcTL", len(data) // 2) - 4
    data[chunk : chunk + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(data)
    assert 10 < len(list(decode(path))) < 30


def test_cut_before_the_first_frame(tmp_path, make_video):
    data = make_video(tmp_path / "a.mp4", noise(40), container={"movflags": "+faststart"}).read_bytes()
    (tmp_path / "a.mp4").write_bytes(data[: data.index(b"mdat") + 10])
    with pytest.raises(UnreadableError, match="no frame can be decoded"):
        list(decode(tmp_path / "a.mp4"))
    with pytest.raises(UnreadableError, match="no frame can be decoded"):
        probe(tmp_path / "a.mp4")


def test_damage_in_the_middle_costs_only_the_damaged_frames(tmp_path, make_video):
    path = make_video(tmp_path / "a.mp4", noise(40), options={"g": "5", "bf": "0"})
    sound = list(decode(path))
    data = bytearray(path.read_bytes())
    first = data.index(b"mdat") + 4
    middle = first + (data.index(b"moov") - first) // 2
    data[middle : middle + 2000] = np.random.default_rng(1).bytes(2000)
    path.write_bytes(data)
    frames = list(decode(path))
    assert np.array_equal(frames[0].image, sound[0].image)
    assert np.array_equal(frames[-1].image, sound[-1].image)
    assert frames[-1].pts == sound[-1].pts


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "0 bytes"),
        (b"this is not a video\n" * 50, "not a complete video file"),
        (np.random.default_rng(0).bytes(5000), "not a complete video file"),
        (b"\x00\x00\x00\x20ftypisom", "not a complete video file"),
        (b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://192.0.2.1/a.ts\n", "it is a playlist"),
    ],
)
def test_files_that_are_no_videos(tmp_path, content, reason):
    path = tmp_path / "a b.mp4"
    path.write_bytes(content)
    for read in (probe, estimate_frames, lambda path: list(decode(path))):
        with pytest.raises(UnreadableError, match=reason) as raised:
            read(path)
        assert str(path) in str(raised.value)
        assert "\n" not in str(raised.value)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(ColocamError, match=r"gone\.mp4: there is no such file"):
        probe(tmp_path / "gone.mp4")
    with pytest.raises(ColocamError, match="it is a folder without images"):
        next(decode(tmp_path))
