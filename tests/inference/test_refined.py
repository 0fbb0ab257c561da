"""Localization with a segmenter: its masks, their boxes, and the tables made of them."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from colocam.boxes import rle
from colocam.config.options import Options
from colocam.errors import ColocamError
from colocam.inference import Localizer
from colocam.inference.localize import localize_file
from colocam.inference.localizer import open_network
from colocam.inference.network import OutputShape
from colocam.inference.passes import Passes
from colocam.inference.rows import SeveralMasks
from colocam.labels import export
from colocam.labels.table import read_table
from colocam.segment import load_segmenter
from colocam.segment.refine import extents, refine
from colocam.segment.segmenter import Masks
from colocam.video.fence import decode

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"
MODELS = {"torch": STORED / "run", "onnx": STORED / "model.onnx"}
SHOTS = [40, 13]


@pytest.fixture
def video(tmp_path, make_video, square_video):
    """Two shots of different colors; the first is longer than a window."""
    cat, owl = (square_video(tag, n, n)[0] for tag, n in zip(("cat", "owl"), SHOTS, strict=True))
    return make_video(tmp_path / "video.mkv", [*cat, *(255 - frame for frame in owl)], codec="ffv1", pix_fmt="bgr0")


@pytest.mark.parametrize("engine", MODELS)
def test_the_table_of_a_refined_video_does_not_depend_on_the_batch(video, tmp_path, engine, box_segmenter_files):
    options = {"refine": box_segmenter_files}
    usual = localize_file(
        MODELS[engine], video, tmp_path / "usual", annotate=False, options=Options(**options)
    ).table.read_bytes()
    for batch in (1, 7, 128):
        table = localize_file(
            MODELS[engine], video, tmp_path / str(batch), annotate=False, options=Options(batch=batch, **options)
        ).table
        assert table.read_bytes() == usual


def test_boxes_are_extents_of_the_masks_of_each_shot(video, box_segmenter_files):
    """Against the same maps, refined by hand window by window."""
    localizer = Localizer.load(STORED / "run", "cpu", refine=box_segmenter_files)
    found = list(localizer(video))
    assert len(found) == sum(SHOTS)
    levels = np.stack([(255 * one.heatmap).astype(np.uint8) for one in found])
    images = [frame.image for frame in decode(video)]
    segmenter, expected, before = load_segmenter(box_segmenter_files), [], None
    for start, end in ((0, 32), (32, 40), (40, 53)):
        before = None if start == 40 else before
        expected += refine(segmenter, images[start:end], levels[start:end], before)
        before = next(one.box for one in reversed(expected) if one is not None)
    for one, wanted in zip(found, expected, strict=True):
        assert one.refined == "boxes"
        assert (one.mask == wanted.mask).all()
        assert list(one.box) == extents(one.mask).tolist() == wanted.box.tolist()
        assert one.track is not None
    assert len({one.track for one in found[:40]} & {one.track for one in found[40:]}) == 0


@pytest.mark.parametrize("instances", [False, True], ids=["one", "several"])
def test_progress_moves_within_a_window(video, instances, box_segmenter_files):
    localizer = Localizer.load(MODELS["onnx"], refine=box_segmenter_files, instances=instances)
    passed = []
    for _ in localizer.stream(decode(video), passed=passed.append):
        pass
    assert sum(passed) == sum(SHOTS)
    assert max(passed) <= 8


def test_masks_reach_the_table_and_the_labels(video, tmp_path, box_segmenter_files):
    table = localize_file(
        STORED / "run", video, tmp_path, annotate=False, options=Options("cpu", refine=box_segmenter_files)
    ).table
    rows = read_table(table)
    there = ~np.isnan(rows.box[:, 0])
    assert there.all()
    assert set(rows.refined) == {"boxes"}
    height, width = next(iter(decode(video))).image.shape[:2]
    for text, box in zip(rows.mask, rows.box, strict=True):
        assert extents(rle.decode(text, height, width)).tolist() == box.tolist()
    again = export([table], "csv", tmp_path / "csv")
    assert read_table(again / "video.csv").refined == rows.refined


@pytest.mark.parametrize("smooth", ["online", "none"])
def test_modes_that_a_segmenter_does_not_fit(box_segmenter_files, smooth):
    with pytest.raises(ColocamError, match=f"chooses masks over the whole shot: it needs smooth offline, got {smooth}"):
        Localizer.load(STORED / "run", "cpu", refine=box_segmenter_files, smooth=smooth)


@pytest.fixture
def run(colocam, video, tmp_path):
    """``run("--refine", …)``: localize the video in the folder ``out``."""
    words = ["localize", STORED / "run", video, "-o", tmp_path / "out", "--no-video", "--device", "cpu"]
    return lambda *more: colocam(*words, *more)


def test_the_command_refines_once_for_the_same_segmenter(run, tmp_path, box_segmenter_files):
    assert run("--refine", box_segmenter_files).code == 0
    first = (tmp_path / "out" / "video.csv").read_bytes()
    assert "kept" in run("--refine", box_segmenter_files).err
    assert "kept" not in run().err
    assert (tmp_path / "out" / "video.csv").read_bytes() != first
    failed = run("--refine", tmp_path / "nothing.safetensors")
    assert failed.code == 1
    assert "no segmenter at" in failed.err


class SquareSegmenter:
    """The mask of a point is the square of a grid that holds it, or its left half."""

    name, side = "Squares", 64

    def embed(self, images):
        return len(images)

    def masks(self, embedded, prompts):
        frames, count = prompts.points.shape[:2]
        assert embedded == frames
        logits = np.full((frames, count, 2, 32, 32), -4.0, np.float32)
        for index in np.ndindex(frames, count):
            if prompts.labels[index][0] == 1:
                x, y = (prompts.points[index][0] // 16 * 8).astype(int)
                logits[(*index, 0, slice(y, y + 8), slice(x, x + 8))] = 4
                logits[(*index, 1, slice(y, y + 8), slice(x, x + 4))] = 4
        return Masks(logits, np.tile(np.float32([0.9, 0.6]), (frames, count, 1)))


def test_several_objects_have_masks_of_their_own(video):
    """Box and mask belong together, tracks do not pass the cut, and neither batch nor neighbors matter."""
    network, card = open_network(STORED / "run", "cpu")
    localizer = Localizer(network, card, segmenter=SquareSegmenter(), options=Options(instances=True))
    found = list(localizer(video))
    assert {one.frame for one in found} == set(range(sum(SHOTS)))
    assert max(Counter(one.frame for one in found).values()) > 1
    whole = [one for one in found if one.mask is not None]
    assert whole
    for one in whole:
        assert one.refined == "Squares"
        assert list(one.box) == extents(one.mask).tolist()
        assert 0 < one.score < 1
        assert one.margin is None
    for one in found:
        assert (one.mask is None) == (one.refined is None)
    numbers = [{one.track for one in found if begin <= one.frame < end} for begin, end in ((0, 40), (40, 53))]
    assert not numbers[0] & numbers[1]
    again = list(localizer.with_options(batch=5)(video))
    assert [(one.frame, one.box, one.track, one.score) for one in again] == [
        (one.frame, one.box, one.track, one.score) for one in found
    ]
    for one in (card.tags[0], None):  # what presence hides is hidden, masks or not
        hidden = list(localizer.with_options(tag=one, presence=1.0)(video))
        assert all(one.box is None and one.mask is None for one in hidden)


def test_where_a_segmenter_has_no_mask_blobs_remain(run, tmp_path, box_segmenter_files):
    tables = []
    for more in (["--refine", box_segmenter_files], []):
        outcome = run("--instances", *more)
        assert outcome.code == 0, outcome.err
        tables.append(read_table(tmp_path / "out" / "video.csv"))
    assert set(tables[0].refined) == {""}
    np.testing.assert_array_equal(tables[0].box, tables[1].box)


class SeesColor:
    """A network that finds the first class in green crops and is unsure of all else; keeps what it was shown."""

    rows, on_gpu, crop_rows = 4, False, 4

    def classify(self, images, boxes):
        self.images, self.boxes = images, boxes
        logits = np.zeros((len(images), 2), np.float32)
        logits[:, 0] = np.where(images[:, 16, 16, 1] == 250, 4, -4)
        return logits


def test_masks_are_classified_alone_on_gray():
    network = SeesColor()
    image = np.zeros((60, 80, 3), np.uint8)
    image[:, :40], image[:, 40:] = (250, 0, 0), (0, 250, 0)
    masks = np.zeros((2, 48, 64), np.uint8)
    masks[0, 12:36, 16:48], masks[1, 12:36, 40:64] = 1, 1
    several = SeveralMasks(None, Passes(network, OutputShape(2, 32, 32)), 0)
    found = several._shows(several._network, 0, image, masks)
    np.testing.assert_allclose(found, [1 / (1 + np.exp(-4)), 1 / (1 + np.exp(4))], rtol=1e-5)
    np.testing.assert_allclose(network.boxes[:2], [[0.25, 0.25, 0.75, 0.75], [0.625, 0.25, 1, 0.75]])
    gray = (network.images == (124, 116, 104)).all(3)
    assert gray[0, :8].all()
    assert not gray[0, 8:24, 8:24].any()
    assert gray[1, :, :20].all()
    assert not gray[1, 8:24, 20:].any()
    assert network.images[1, 16, 28].tolist() == [0, 250, 0]
