"""Annotated videos: times, sizes and what is drawn on the frames."""

from fractions import Fraction

import av
import numpy as np
import pytest

from colocam.types import Box, Localization
from colocam.video.reader import VideoInfo
from colocam.video.writer import AnnotatedVideo

BOX = Box(10, 8, 40, 30)


def localization(frame=0, pts=0.0, tag="cat", box=BOX, heat=0.0):
    heatmap = np.full((7, 7), heat, np.float32)
    return Localization(frame, pts, tag, 0.1 + 0.2, box, 0.0 if box is None else 1 / 3, heatmap)


def decode(path):
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frames = [
            (float(frame.pts * stream.time_base), frame.to_ndarray(format="rgb24"))
            for frame in container.decode(stream)
        ]
        return stream.codec_context.name, stream.codec_context.pix_fmt, frames


def test_annotated_video_has_the_times_the_size_and_the_boxes(tmp_path):
    path = tmp_path / "out dir" / "annotated.mp4"
    times = [0.5, 0.54, 0.7, 1.0, 1.02]
    image = np.full((120, 160, 3), 128, np.uint8)
    with AnnotatedVideo(path, VideoInfo(160, 120, Fraction(30000, 1001), 2.0)) as video:
        for i, pts in enumerate(times):
            box = None if i == 3 else Box(40 + 4 * i, 50, 100 + 4 * i, 100)
            video.write(image, localization(i, pts, "кошка", box))
    codec, pixels, frames = decode(path)
    assert (codec, pixels) == ("h264", "yuv420p")
    assert [pts for pts, _ in frames] == pytest.approx(times, abs=2e-4)
    for i, (_, frame) in enumerate(frames):
        assert frame.shape == (120, 160, 3)
        left = frame[60:90, 40 + 4 * i : 42 + 4 * i].astype(int).mean((0, 1))
        redness = left[0] - left[1:].max()
        assert redness < 15 if i == 3 else redness > 60
    assert (image == 128).all()


def test_heat_reaches_the_video(tmp_path):
    path = tmp_path / "heat.mp4"
    with AnnotatedVideo(path, VideoInfo(64, 64, None, None)) as video:
        for i, heat in enumerate((0.0, 1.0)):
            video.write(np.full((64, 64, 3), 40, np.uint8), localization(i, i / 25, box=None, heat=heat))
    (_, cold), (_, hot) = decode(path)[2]
    assert hot[40:].mean() - cold[40:].mean() > 80


def test_odd_sizes_play(tmp_path):
    path = tmp_path / "odd.mp4"
    with AnnotatedVideo(path, VideoInfo(97, 71, Fraction(25), None)) as video:
        video.write(np.zeros((71, 97, 3), np.uint8), localization())
    assert decode(path)[2][0][1].shape == (72, 98, 3)
