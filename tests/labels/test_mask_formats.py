"""Masks in the formats of detectors and annotation tools, read by other programs or by the formats' own rules."""

import json
from xml.etree import ElementTree as ET

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from label_studio_tools.core.label_config import parse_config

from colocam.boxes import rle
from colocam.errors import ColocamError
from colocam.labels import Options, export
from colocam.labels.formats.label_studio import packed
from colocam.labels.formats.writing import polygon_of
from colocam.segment.refine import extents
from tests.helpers.label_scenes import row, write_table

SIZE = (64, 48)


def masks_of(count=12, seed=0):
    """Masks (48, 64) of two ellipses each, the second sometimes apart from the first."""
    rng = np.random.default_rng(seed)
    found = np.zeros((count, 48, 64), np.uint8)
    for mask in found:
        for _ in range(2):
            center, axes = rng.integers((12, 10), (50, 36)).tolist(), rng.integers(3, 9, 2).tolist()
            cv2.ellipse(mask, center, axes, float(rng.uniform(0, 180)), 0, 360, 1, cv2.FILLED)
    return found.astype(bool)


@pytest.fixture
def masked(tmp_path, make_video, numbered):
    """A video with a mask in each frame but 4 (nothing) and 5 (a box alone), its table and the masks."""
    path = make_video(tmp_path / "my video.mp4", numbered(12))
    masks = masks_of()
    rows = []
    for frame, mask in enumerate(masks):
        box = None if frame == 4 else extents(mask)
        text = "" if frame in {4, 5} else rle.encode(mask)
        rows.append(row(frame, box, score=0.5, mask=text, refined="MobileSAM" if text else ""))
    return write_table(tmp_path / "my video.csv", rows, size=SIZE, frames=12, video=path.name), masks


def filled(points):
    image = np.zeros((48, 64), np.uint8)
    cv2.fillPoly(image, [points.astype(np.int32)], 1)
    return image.astype(bool)


@given(seed=st.integers(0, 1000))
def test_a_polygon_is_the_mask_without_holes_and_with_thin_bridges(seed):
    (mask,) = masks_of(1, seed)
    outer, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    whole = cv2.drawContours(np.zeros(mask.shape, np.uint8), outer, -1, 1, cv2.FILLED).astype(bool)
    again = filled(polygon_of(mask))
    assert (again >= whole).all()
    if len(outer) == 1:
        assert (again == whole).all()
    bridges = again & ~whole
    assert not cv2.erode(bridges.astype(np.uint8), np.ones((3, 3), np.uint8)).any()


@pytest.mark.parametrize("pixels", [[(3, 4)], [(3, 4), (3, 5)], [(3, 4), (3, 5), (3, 6)], [(3, 4), (30, 40)]])
def test_a_polygon_of_few_pixels_has_at_least_three_points(pixels):
    mask = np.zeros((48, 64), bool)
    for x, y in pixels:
        mask[y, x] = True
    points = polygon_of(mask)
    assert len(points) >= 3
    assert (filled(points) >= mask).all()


def test_supervision_reads_yolo_segments(masked, tmp_path, read_by_supervision):
    table, masks = masked
    out = export([table], "yolo-segments", tmp_path / "out", options=Options(images=True))
    data = read_by_supervision(out, "yolo-segments")
    assert data.classes == ["cat"]
    assert len(data) == 12
    for path, _, found in data:
        frame = int(path[-10:-4])
        assert len(found) == (frame != 4)
        if frame == 5:
            np.testing.assert_allclose(found.xyxy[0], extents(masks[5]), atol=1e-3)
        elif frame != 4:
            assert (found.mask[0] >= masks[frame]).all()
            assert (found.mask[0] & ~masks[frame]).sum() <= 40  # bridges between parts
            np.testing.assert_allclose(found.xyxy[0], extents(masks[frame]), atol=0.76)


def test_cvat_reads_masks(masked, tmp_path):
    """By the rules of CVAT's importer: the first mask of a track becomes a shape; runs are of its rectangle's rows."""
    table, masks = masked
    out = export([table], "cvat-masks", tmp_path / "out")
    root = ET.parse(out / "my video.xml").getroot()
    assert root.findtext("meta/task/labels/label/type") == "any"
    shown = {}
    for track in root.iterfind("track"):
        assert track.attrib["label"] == "cat"
        shape = track[0]
        assert shape.attrib["keyframe"] == "1"
        frame = int(shape.attrib["frame"])
        if shape.tag == "box":
            assert frame == 5
            assert track[1].attrib["outside"] == "1"
            continue
        left, top, width, height = (int(shape.attrib[name]) for name in ("left", "top", "width", "height"))
        runs = [int(run) for run in shape.attrib["rle"].split(",")]
        pixels = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
        shown[frame] = np.zeros((48, 64), bool)
        shown[frame][top : top + height, left : left + width] = pixels.reshape(height, width)
    assert sorted(shown) == [0, 1, 2, 3, 6, 7, 8, 9, 10, 11]
    for frame, mask in shown.items():
        assert (mask == masks[frame]).all()


def unpacked(numbers):
    """Label Studio's masks, bit by bit as its converter reads them: the last of four channels."""
    bits = "".join(f"{number:08b}" for number in numbers)
    at = 0

    def read(count):
        nonlocal at
        at += count
        return int(bits[at - count : at], 2)

    total, word = read(32), read(5) + 1
    sizes = [read(4) + 1 for _ in range(4)]
    values = []
    while len(values) < total:
        repeated, count = read(1), read(sizes[read(2)]) + 1
        values += [read(word)] * count if repeated else [read(word) for _ in range(count)]
    return np.array(values).reshape(-1, 4)[:, 3]


@pytest.mark.parametrize("first", [False, True])
def test_packed_masks_come_back_also_with_long_runs(first):
    """A run of 4 · 40 000 bytes takes more than the 65 536 of one count."""
    mask = np.zeros((250, 200), bool)
    mask[:3, 5:9] = mask[210:, 100:] = True
    mask ^= first
    assert (unpacked(packed(mask)).reshape(250, 200) == 255 * mask).all()


def test_label_studio_reads_masks(masked, tmp_path):
    table, masks = masked
    with pytest.raises(ColocamError, match="images must be written: Label Studio has no masks in videos, and my video"):
        export([table], "label-studio-masks", tmp_path / "none")
    out = export([table], "label-studio-masks", tmp_path / "out", options=Options(images=True, url="/data/"))
    parsed = parse_config((out / "config.xml").read_text(encoding="utf-8"))
    tasks = json.loads((out / "tasks.json").read_text(encoding="utf-8"))
    assert len(tasks) == 12
    for frame, task in enumerate(tasks):
        name = f"my video_{frame:06d}.jpg"
        assert task["data"]["image"] == f"/data/images/my%20video_{frame:06d}.jpg"
        assert (out / "images" / name).is_file()
        results = task["predictions"][0]["result"]
        assert len(results) == (frame != 4)
        for result in results:
            assert parsed[result["from_name"]]["type"].lower() == result["type"]
            assert parsed[result["from_name"]]["labels"] == ["cat"]
            assert (result["original_width"], result["original_height"]) == SIZE
            if frame != 5:
                assert result["value"]["brushlabels"] == ["cat"]
                assert (unpacked(result["value"]["rle"]).reshape(48, 64) == 255 * masks[frame]).all()
            else:
                assert result["type"] == "rectanglelabels"


@pytest.mark.parametrize("to", ["yolo-segments", "cvat-masks", "label-studio-masks", "masks"])
def test_tables_without_masks(video, tmp_path, to):
    with pytest.raises(ColocamError, match="no table has a mask: run 'colocam localize' with --masks or --refine"):
        export([video], to, tmp_path / "out")
