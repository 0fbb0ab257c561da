"""Motion in ``localize``: when it is used, that boxes change and heat maps do not, and that nothing else matters."""

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from colocam.config.options import Options
from colocam.errors import ArgumentError
from colocam.inference import Localizer
from colocam.inference.engine import Model
from colocam.inference.localize import localize_file
from colocam.inference.parts import Parts
from colocam.inference.task import FrameRange, LocalizeVideo, Worker
from colocam.inference.videos import Video, stored_source
from colocam.labels.label_folder import part_path
from colocam.video.frame_choice import ALL

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"
RUN = STORED / "run"
COLORS = ((220, 60, 40), (60, 200, 80), (70, 90, 230))
SHOTS = [37, 12, 33, 1, 20]
"""Longer than a window by a few frames; shorter; longer by one frame; a single frame."""


def pictures_of_shot(shot: int, frames: int) -> list[np.ndarray]:
    """A colored square that moves over a textured wall, and one that is painted on it."""
    rng = np.random.default_rng(shot)
    wall = cv2.GaussianBlur(rng.normal(0, 1, (48, 96, 3)).astype(np.float32), (0, 0), 1.5)
    wall = cv2.normalize(wall, None, 0, 40 + 80 * (shot % 3), cv2.NORM_MINMAX).astype(np.uint8) + 40 * shot
    wall[28:44, 60:76] = COLORS[shot % 3]
    pictures = []
    for at in range(frames):
        picture = wall[:, 16:80].copy()
        picture[6:22, at : at + 16] = COLORS[shot % 3]
        picture[10:14, at + 2 : at + 8] = 250  # so that the square has something to follow
        pictures.append(picture)
    return pictures


@pytest.fixture(scope="module")
def video(tmp_path_factory, make_video):
    """Five shots of different walls; read only."""
    frames = [picture for shot, count in enumerate(SHOTS) for picture in pictures_of_shot(shot, count)]
    return make_video(tmp_path_factory.mktemp("video") / "video.mkv", frames, codec="ffv1", pix_fmt="bgr0")


@pytest.mark.parametrize(
    ("options", "used"),
    [
        ({"chooser": "consensus"}, True),
        ({"chooser": "consensus", "smooth": "online"}, True),
        ({"chooser": "consensus", "smooth": "none"}, False),
        ({"chooser": "consensus", "instances": True}, False),
        ({"chooser": "consensus", "motion": False}, False),
        ({}, False),  # the chooser of the paper, which models of 0.1.0 have
        ({"motion": True}, True),
        ({"chooser": "consensus", "refine": "any"}, True),
    ],
    ids=str,
)
def test_motion_is_used_where_the_frames_of_a_shot_choose_together(options, used):
    base = Localizer.load(STORED / "model.onnx")
    segmenter = options.get("refine")
    assert Localizer(base.network, base.card, Options(**options), segmenter=segmenter).settings.motion == used


def test_frames_by_themselves_have_no_motion():
    with pytest.raises(ArgumentError, match="motion compares frames, so it needs smooth offline or online, got none"):
        Localizer.load(STORED / "model.onnx", smooth="none", motion=True)


@pytest.mark.parametrize("smooth", ["offline", "online"])
def test_boxes_change_and_heat_maps_do_not(video, smooth):
    asked = Localizer.load(RUN, "cpu", chooser="consensus", smooth=smooth)
    with_motion, without = (list(one(video)) for one in (asked, asked.with_options(motion=False)))
    for one, two in zip(with_motion, without, strict=True):
        np.testing.assert_array_equal(one.raw_map, two.raw_map)
        assert one.presence == two.presence
    assert [one.box for one in with_motion] != [two.box for two in without]


@pytest.mark.parametrize("smooth", ["offline", "online"])
@pytest.mark.parametrize("model", [RUN, STORED / "model.onnx"], ids=["torch", "onnx"])
def test_the_table_does_not_depend_on_the_batch(video, tmp_path, model, smooth):
    options = {"smooth": smooth, "motion": True}
    tables = [
        localize_file(
            model, video, tmp_path / str(batch), annotate=False, options=Options(batch=batch, **options)
        ).table
        for batch in (None, 1, 7)
    ]
    assert len({table.read_bytes() for table in tables}) == 1


@pytest.mark.parametrize("looks", [1, 2])
@pytest.mark.parametrize("smooth", ["offline", "online"])
def test_ranges_of_a_long_video_have_the_rows_of_the_whole(video, tmp_path, smooth, looks):
    asked = Model(STORED / "model.onnx", Options(motion=True, smooth=smooth, looks=looks))
    worker = Worker(asked.load()[0])
    parts = []
    for long in (10_000, 20):
        task = LocalizeVideo(Video(stored_source(video), "video"), Parts(tmp_path / str(long), long), asked.key(ALL))
        ranges = [FrameRange(*one) for one in task(worker).get("ranges", [])]
        for one in ranges:
            replace(task, range=one)(worker)
        parts.append(part_path(task.sink.labels, task(worker)["key"]).read_bytes())
        assert (len(ranges) > 2) == (long == 20)
    assert parts[0] == parts[1]
