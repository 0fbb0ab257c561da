"""Several objects from a video file to tables and pictures, with a network that sees color."""

import numpy as np
import pytest

from colocam import Localizer
from colocam.boxes.iou import iou
from colocam.config.options import Options
from colocam.errors import ColocamError
from colocam.inference import localizer
from colocam.inference.localize import localize_file
from colocam.inference.network import NetworkOutput, completed
from colocam.labels.labeled_videos import read_videos
from colocam.models.model_file import load_model
from colocam.video.fence import decode
from tests.helpers.csv_tables import csv_rows

SIZE = (80, 60)
FRAMES = 12


class ColorNetwork:
    """Foreground is what is not gray; the classifier is always sure of the first class."""

    rows, on_gpu = 4, False

    def submit(self, images, ids):
        (images,) = images
        wide = images.astype(np.float32)
        maps = np.clip((wide.max(3) - wide.min(3)) / 160, 0, 1)
        sure = np.tile(np.float32([4, -4, -4]), (len(images), 1))
        return completed(NetworkOutput(sure, maps, sure, np.zeros((len(images), 3, 2, 2), np.float32), images, ids))


color_network = ColorNetwork()


def boxes_at(time):
    """Two squares that move apart, the second away in frames 4 and 5 and smaller than the first."""
    boxes = [(8 + time, 6, 36 + time, 30)]
    return boxes if time in {4, 5} else [*boxes, (40, 32 + time, 60, 48 + time)]


@pytest.fixture(scope="module")
def pictures():
    rng = np.random.default_rng(0)
    found = []
    for time in range(FRAMES):
        picture = np.repeat(rng.integers(100, 120, (SIZE[1], SIZE[0], 1)), 3, axis=2).astype(np.uint8)
        for x1, y1, x2, y2 in boxes_at(time):
            picture[y1:y2, x1:x2] = (230, 60, 60)
        found.append(picture)
    return found


@pytest.fixture
def video(tmp_path, make_video, pictures):
    return make_video(tmp_path / "two squares.mp4", pictures, fps=30)


@pytest.fixture
def card(trained):
    return load_model(trained).card.model_copy(update={"threshold": 0.5, "presence": (1.0, 0.0)})


def right(box, time):
    return iou(np.array(box), np.array(boxes_at(time)), inclusive=True).max() > 0.7


@pytest.mark.parametrize("smooth", ["offline", "online", "none"])
def test_every_object_has_a_localization_of_its_own(video, card, smooth):
    found = list(Localizer(color_network, card, options=Options(instances=True, smooth=smooth))(video))
    assert [one.frame for one in found] == sorted(one.frame for one in found)
    assert {one.frame for one in found} == set(range(FRAMES))
    for time in range(FRAMES):
        objects = [one for one in found if one.frame == time]
        filled = smooth != "none" and time in {4, 5}
        assert len(objects) == (2 if filled else len(boxes_at(time)))
        assert len({one.pts for one in objects}) == 1
        assert all(0.2 < one.score < 0.6 for one in objects if not filled)  # 0.9 times a tenth or a fifth to the 0.3
        assert all(one.margin is None for one in objects)
        if not filled:
            assert all(right(one.box, time) for one in objects)
        if smooth != "none":
            assert [one.track for one in objects] == [0, 1]
        else:
            assert {one.track for one in objects} == {None}


def test_a_threshold_of_ones_own(video, card):
    stored = Localizer(
        color_network, card.model_copy(update={"threshold": 0.9}), options=Options(instances=True, smooth="none")
    )
    given = Localizer(color_network, card, options=Options(instances=True, smooth="none", threshold=0.9))
    usual = Localizer(color_network, card, options=Options(instances=True, smooth="none"))
    boxes = [[one.box for one in localizer(video)] for localizer in (stored, given, usual)]
    assert boxes[0] == boxes[1] != boxes[2]
    assert (given.settings.threshold, usual.settings.threshold) == (0.9, 0.5)
    with pytest.raises(ColocamError, match=r"threshold must be in 0–1, got 1\.5"):
        Localizer(color_network, card, options=Options(threshold=1.5))


def test_frames_that_presence_hides_have_one_row(video, card):
    hidden = list(
        Localizer(color_network, card, options=Options(instances=True, tag=card.tags[1], presence=0.5))(video)
    )
    assert [(one.frame, one.box, one.track) for one in hidden] == [(time, None, None) for time in range(FRAMES)]


def test_masks_are_those_of_the_own_blob(video, card):
    found = [
        one
        for one in Localizer(color_network, card, options=Options(instances=True, masks=True))(video)
        if one.frame == 2
    ]
    for one in found:
        ys, xs = np.nonzero(one.mask)
        assert right((xs.min(), ys.min(), xs.max(), ys.max()), 2)
    assert not (found[0].mask & found[1].mask).any()


def test_the_command_writes_and_draws_every_object(colocam, trained, video, card, tmp_path, monkeypatch):
    monkeypatch.setattr(localizer, "open_network", lambda *_: (color_network, card))
    outcome = colocam("localize", trained, video, "-o", tmp_path / "out", "--instances", "--masks")
    assert outcome.code == 0, outcome.err
    table = tmp_path / "out" / "two squares.csv"
    rows = csv_rows(table)
    assert [(int(row["frame"]), int(row["track"])) for row in rows] == [(t, k) for t in range(FRAMES) for k in (0, 1)]
    assert "margin" not in rows[0]
    drawn = [frame.image.astype(int) for frame in decode(tmp_path / "out" / "two squares.mp4")]
    alone, _ = localize_file(trained, video, tmp_path / "one")
    single = [frame.image.astype(int) for frame in decode(alone)]
    assert len(drawn) == len(single) == FRAMES
    low = slice(46, 56), slice(40, 60)  # around the second square's lower edge
    assert np.abs(drawn[6][low] - single[6][low]).mean() > 10
    (read,) = read_videos([table], [])
    assert [len(track.rows) for track in read.tracks] == [FRAMES, FRAMES]
