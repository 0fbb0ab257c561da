"""Maps that a prior weighs, from frames to boxes, against the steps done by hand."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import cv2
import numpy as np
import pytest

from colocam.boxes.candidates import consensus_boxes
from colocam.config.options import Options
from colocam.errors import ColocamError
from colocam.inference import Localizer
from colocam.inference.engine import Model
from colocam.inference.localize import localize_file
from colocam.inference.network import NetworkOutput, completed
from colocam.maps import prior as prior_module
from colocam.maps.prior import open_prior
from colocam.types import VideoFrame
from colocam.video.frame_choice import ALL
from tests.helpers.cards import cat_or_dog
from tests.helpers.red_prior import weighed_by_hand, write_red_prior

SIDE = 64


class BlueNetwork:
    """Its map is the blue channel."""

    rows, on_gpu = 4, False

    def submit(self, images, ids):
        (joined,) = images
        count, maps = len(joined), joined[..., 2].astype(np.float32) / 255
        logits, peaks = np.zeros((count, 2), np.float32), np.ones((count, 2), np.float32)
        return completed(NetworkOutput(logits, maps, peaks, np.ones((count, 2, 4, 4), np.float32), joined, ids))

    def settle(self):
        pass


@pytest.fixture(scope="module")
def red(tmp_path_factory):
    """The file of a prior that sees red, at the size of the network's frames."""
    return write_red_prior(tmp_path_factory.mktemp("prior") / "red.onnx", f"1,3,{SIDE},{SIDE}")


def localizer_of(prior=None, **options):
    opened = None if prior is None else open_prior(prior)
    return Localizer(
        BlueNetwork(), cat_or_dog(SIDE), Options(**{"smooth": "none", "prior": prior, **options}), prior=opened
    )


def picture(x, y):
    """Two blue squares, of which the smaller one is also red."""
    image = np.zeros((SIDE, SIDE, 3), np.uint8)
    image[2:26, 2:26, 2] = 150
    image[y : y + 12, x : x + 12] = (250, 0, 180)
    return image


PLACES = [(34 + at % 9, 36 + at % 11) for at in range(20)]


def found_in(localizer, pictures):
    return [found for _, found in localizer.stream(VideoFrame(at, at / 25, one) for at, one in enumerate(pictures))]


@pytest.mark.parametrize("smooth", ["none", "online", "offline"])
def test_what_the_prior_sees_has_the_box(red, smooth):
    x, y = PLACES[0]
    (without, *_), (found, *_) = (
        found_in(localizer_of(prior, smooth=smooth, motion=False), [picture(x, y)] * 4) for prior in (None, red)
    )
    np.testing.assert_allclose(without.box, (2, 2, 26, 26), atol=1)
    np.testing.assert_allclose(found.box, (x, y, x + 12, y + 12), atol=1)


def test_one_look_is_the_formula(red):
    """The box of the map that was weighed by hand, at τ of the model."""
    for x, y in PLACES[:4]:
        image = picture(x, y)
        image[..., 2] = cv2.GaussianBlur(image[..., 2], (0, 0), 3)
        level = np.floor(image[..., 2] / np.float32(255) * 255)
        weighed = np.rint(weighed_by_hand(level, image[..., 0] / image.max())).astype(np.uint8)
        (expected,) = consensus_boxes(weighed[None], 0.4)
        (found,) = found_in(localizer_of(red), [image])
        box = expected.boxes[0] + [0, 0, 1, 1]
        np.testing.assert_allclose(found.box, box, atol=1)
        np.testing.assert_allclose(found.raw_map, image[..., 2] / 255, atol=1e-3)  # as the network drew it


@pytest.mark.parametrize("smooth", ["none", "online", "offline"])
@pytest.mark.parametrize("looks", [1, 2])
def test_a_prior_that_sees_something_else_changes_nothing(red, smooth, looks):
    """In every second frame red is where nothing is blue; the others are weighed."""
    both, apart = picture(*PLACES[0]), np.zeros((SIDE, SIDE, 3), np.uint8)
    apart[30:42, 30:42, 2], apart[2:20, 40:60, 0] = 200, 250
    pictures = [both, apart] * 6
    options = {"smooth": smooth, "looks": looks, "motion": False}
    if smooth == "none":
        weighed, alone = (found_in(localizer_of(prior, **options), pictures) for prior in (red, None))
        assert [one.box == other.box for one, other in zip(weighed, alone, strict=True)] == [False, True] * 6
    weighed, alone = (found_in(localizer_of(prior, **options), [apart] * 12) for prior in (red, None))
    assert [one.box for one in weighed] == [other.box for other in alone]


def test_a_second_look_is_weighed_by_the_same_part_of_what_was_seen(red):
    """The prior alone tells the object from what touches it, also where it is enlarged."""
    image = np.zeros((SIDE, SIDE, 3), np.uint8)
    image[20:32, 20:32] = (250, 0, 200)
    image[20:32, 32:36, 2] = 150
    once, twice = (found_in(localizer_of(red, looks=looks), [image])[0] for looks in (1, 2))
    alone = found_in(localizer_of(looks=2), [image])[0]
    assert alone.box.x2 > 34.5
    for found in (once, twice):
        np.testing.assert_allclose(found.box, (20, 20, 32, 32), atol=1)


@pytest.mark.parametrize("smooth", ["none", "online", "offline"])
@pytest.mark.parametrize("looks", [1, 2])
def test_boxes_do_not_depend_on_the_batch(red, smooth, looks):
    pictures = [picture(*place) for place in PLACES]
    found = [found_in(localizer_of(red, smooth=smooth, looks=looks, batch=batch), pictures) for batch in (None, 1, 3)]
    for one, *others in zip(*found, strict=True):
        assert all(other.box == one.box for other in others)


def test_streams_in_threads_do_not_disturb_each_other(red):
    localizer = localizer_of(red, smooth="offline")
    videos = [[picture(*place)] * 5 for place in PLACES[:4]]
    alone = [[one.box for one in found_in(localizer, video)] for video in videos]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda video: [one.box for one in found_in(localizer, video)], videos))
    assert together == alone


def test_other_options_keep_the_prior(red):
    localizer = localizer_of(red)
    assert localizer.with_options(tag="cat").prior is localizer.prior is not None
    assert localizer.without_segmenter().prior is localizer.prior


@pytest.mark.parametrize("kind", ["run", "model.onnx"])
def test_tables_of_a_run_and_an_onnx_file(red, model, video, tmp_path, kind, monkeypatch):
    """Another table than without a prior."""
    monkeypatch.setattr(prior_module, "AGREEMENT", -1)  # this model knows nothing of red
    source = model.with_name(kind)
    tables = {}
    for name, options in {"plain": Options(), "prior": Options(prior=red), "named": Options(prior=str(red))}.items():
        tables[name] = localize_file(source, video, tmp_path / name, annotate=False, options=options).table.read_text()
    assert tables["prior"] == tables["named"] != tables["plain"]


def test_workers_give_the_same_rows(red, model, make_videos, tmp_path):
    from colocam.inference.localize import Writing, localize_videos  # noqa: PLC0415

    videos = make_videos(tmp_path / "videos", 3)
    rows = {}
    for workers in (1, 2):
        out = tmp_path / str(workers)
        list(
            localize_videos(
                model, [str(videos)], out, Writing(annotate=False), workers=workers, options=Options(prior=red)
            )
        )
        rows[workers] = {path.name: path.read_bytes() for path in out.rglob("*.csv")}
    assert len(rows[1]) == 3
    assert rows[1] == rows[2]


def test_the_content_of_a_prior_is_part_of_the_key(red, model, tmp_path):
    copy = shutil.copy(red, tmp_path / "other-name.onnx")
    other = write_red_prior(tmp_path / "red.onnx", "1,3,32,32")
    plain, same, again, another = (Model(model, Options(prior=prior)).key(ALL) for prior in (None, red, copy, other))
    assert same == again
    assert len({plain, same, another}) == 3
    with pytest.raises(ColocamError, match="no prior at"):
        Model(model, Options(prior=tmp_path / "missing.onnx")).key(ALL)
    assert replace(Options(prior=red), prior=None).settings() == Options().settings() == Options(prior=red).settings()
