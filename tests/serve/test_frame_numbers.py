"""In Chromium, the number drawn into a frame is the number on the page: paused, after a seek, and while playing."""

from fractions import Fraction

import cv2
import numpy as np
import pytest

from colocam.video.fence import decode
from tests.helpers.served_page import ServedPage

BITS, BLOCK = 4, 32
FRAMES = 14
CUT_AWAY = 4

NUMBER_IN = """
(source) => {
  const canvas = document.createElement("canvas"), { video } = window.colocam;
  canvas.width = video.width; canvas.height = video.height;
  const context = canvas.getContext("2d");
  context.drawImage(source, 0, 0, video.width, video.height);
  let number = 0;
  for (let bit = 0; bit < 4; bit++) {
    const [red] = context.getImageData((bit + 0.5) * video.width / 4, video.height - 16, 1, 1).data;
    number += (red > 128 ? 1 : 0) << bit;
  }
  return number;
}
"""


def numbered_frame(number, width=BITS * BLOCK, height=64):
    """Gray, with the number as black or white blocks along the lower edge."""
    image = np.full((height, width, 3), 90, np.uint8)
    for bit in range(BITS):
        image[-BLOCK:, bit * BLOCK : (bit + 1) * BLOCK] = 255 * (number >> bit & 1)
    return image


def number_in(image):
    """The number of :func:`numbered_frame`, whose pixels may be wider than high."""
    wide = image.shape[1] // BITS
    return sum(int(image[-BLOCK // 2, bit * wide + wide // 2, 0] > 128) << bit for bit in range(BITS))


@pytest.fixture
def videos(tmp_path, make_video):
    """Videos of many kinds whose frames carry their number."""
    frames = [numbered_frame(number) for number in range(FRAMES)]
    even, uneven = np.arange(FRAMES) / 25, np.cumsum(np.random.default_rng(1).choice([0.02, 0.04, 0.1], FRAMES))
    sideways = [np.ascontiguousarray(np.rot90(image, -1)) for image in frames]
    few = {"x265-params": "log-level=none:pools=none:frame-threads=1", "preset": "ultrafast"}
    (tmp_path / "images").mkdir()
    for number, image in enumerate(frames):
        cv2.imwrite(str(tmp_path / "images" / f"{number}.png"), image)
    made = [
        make_video(tmp_path / "constant.mp4", frames, options={"bf": "3"}),
        make_video(tmp_path / "variable.mp4", frames, times=uneven - uneven[0], options={"bf": "3"}),
        make_video(tmp_path / "late.mkv", frames, times=1.5 + uneven),
        make_video(tmp_path / "constant.avi", frames, codec="mpeg4"),
        make_video(tmp_path / "turned.mov", sideways, rotation=90, fps=15),
        make_video(tmp_path / "hevc.mp4", frames, codec="libx265", options=few),
        make_video(
            tmp_path / "late, wide pixels.mp4", frames, times=even + 1.6, shape=Fraction(2), options={"bf": "3"}
        ),
        tmp_path / "images",
        make_video(tmp_path / "edit list.mp4", frames, times=even - CUT_AWAY / 25, options={"bf": "3"}),
    ]
    assert b"elst" in made[-1].read_bytes()
    return made


def test_the_number_in_the_frame_is_the_number_on_the_page(page, videos, shelf):
    for path in videos:
        shelf.library.add(path)
    shelf.wait()
    opened = ServedPage(page, shelf, shelf.address)
    for video in shelf.library.videos():
        assert video.problem == ""
        # The number drawn into each frame, as FFmpeg decodes the video.
        frames = list(decode(video.path))
        drawn = [number_in(frame.image) for frame in frames]
        assert (frames[0].pts > 1) == ("late" in video.name), video.name
        assert drawn == list(range(CUT_AWAY if "edit" in video.name else 0, FRAMES)), video.name
        assert len(video.index.proxy) == len(drawn), video.name
        opened.open(video.id)
        opened.until("window.colocam.parts.media.readyState >= 2")
        page.evaluate(f"() => {{ window.numberIn = {NUMBER_IN}; }}")
        # Paused: the exact frame, forward, backward and far away.
        for number in (1, len(drawn) - 1, 5, 4):
            opened.go(number)
            opened.until("!document.querySelector('.still').hidden")
            assert page.evaluate("numberIn(document.querySelector('.still'))") == drawn[number], video.name
        # The proxy alone, after a seek.
        page.evaluate("() => { window.colocam.player.load = () => new Promise(() => {}); }")
        for number in (7, 2):
            page.evaluate("() => window.colocam.player.bitmaps.clear()")
            opened.go(number)
            assert page.evaluate("numberIn(document.querySelector('video'))") == drawn[number], video.name
        # Playing: each frame that the browser presents.
        opened.go(0)
        told = "Number(document.querySelector('.number').dataset.frame)"
        pairs = [pair for _, pair in opened.play(f"() => [{told}, numberIn(window.colocam.parts.still)]")]
        assert len(pairs) >= 2, video.name
        assert all(drawn[told] == read for told, read in pairs), (video.name, pairs)
