"""Folders of pictures as videos: order, times, damage, sizes."""

import struct
import zlib

import cv2
import numpy as np
import pytest

from colocam.video.fence import decode, probe, probe_source
from colocam.video.images import image_size, is_upright, read_image
from colocam.video.input import UnreadableError


@pytest.fixture
def write_pictures(numbered):
    """``write_pictures(folder, names)``: numbered pictures of 64×48 without loss, under these names in this order."""

    def write(folder, names):
        folder.mkdir(parents=True, exist_ok=True)
        for name, picture in zip(names, numbered(len(names)), strict=True):
            cv2.imwrite(str(folder / name), picture[..., ::-1])
        return folder

    return write


def test_pictures_in_natural_order_25_a_second(tmp_path, write_pictures, number_of):
    folder = write_pictures(tmp_path / "shot.1", [f"frame{number}.png" for number in range(12)])
    (folder / "notes.txt").write_text("no picture")
    frames = list(decode(folder))
    assert [number_of(frame.image) for frame in frames] == list(range(12))
    assert [frame.index for frame in frames] == list(range(12))
    assert [frame.pts for frame in frames] == [number / 25 for number in range(12)]
    found = probe(folder)
    assert (found.width, found.height, found.fps, found.duration) == (64, 48, None, pytest.approx(0.48))
    assert probe_source(folder).frames == 12


def test_a_damaged_picture_is_left_out_and_keeps_its_number(tmp_path, write_pictures, number_of):
    folder = write_pictures(tmp_path / "a", ["0.png", "1.png", "2.png"])
    (folder / "1.png").write_bytes(b"torn")
    assert [(frame.index, number_of(frame.image)) for frame in decode(folder)] == [(0, 0), (2, 2)]
    for name in ("0.png", "2.png"):
        (folder / name).write_bytes(b"")
    with pytest.raises(UnreadableError, match="none of its 3 images can be decoded"):
        list(decode(folder))


def test_pictures_of_two_sizes_are_no_video(tmp_path, write_pictures):
    folder = write_pictures(tmp_path / "a", ["0.png", "1.png"])
    cv2.imwrite(str(folder / "2.png"), np.zeros((10, 20, 3), np.uint8))
    with pytest.raises(UnreadableError) as raised:
        list(decode(folder))
    assert str(raised.value).startswith(f"{folder / '2.png'} is 20×10, but the images before it are 64×48: ")


def png_header(width, height):
    """The beginning of a PNG file of one bit per pixel."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(999)))


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")  # pytest resets the filter of the module
@pytest.mark.parametrize("side", [12_000, 60_000])
def test_an_image_of_too_many_pixels_costs_one_image(tmp_path, write_pictures, capsys, side):
    folder = write_pictures(tmp_path / "a", ["0.png", "1.png", "2.png"])
    (folder / "1.png").write_bytes(png_header(side, side))
    assert [frame.index for frame in decode(folder)] == [0, 2]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"warning: cannot read {folder / '1.png'}: ")
    assert line.endswith(": scale it down")
    assert image_size(folder / "1.png") is None
    assert not is_upright(folder / "1.png")


def test_a_damaged_image_prints_nothing_of_opencv(tmp_path, capfd):
    data = cv2.imencode(".tiff", np.zeros((40, 48, 3), np.uint8))[1].tobytes()
    (tmp_path / "0.tiff").write_bytes(data[: len(data) // 2])
    read_image(tmp_path / "0.tiff")
    if hasattr(cv2.utils, "logging"):  # in earlier versions libpng writes to standard error by itself
        (tmp_path / "1.png").write_bytes(cv2.imencode(".png", np.zeros((40, 48, 3), np.uint8))[1].tobytes()[:60])
        read_image(tmp_path / "1.png")
    assert capfd.readouterr().err == ""
