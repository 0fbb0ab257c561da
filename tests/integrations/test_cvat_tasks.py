"""CVAT's own loader and driver run the function; its own client pushes labels; the server is a stand-in."""

import io
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("cvat_sdk", reason="needs the extra [cvat]")

import cvat_sdk.auto_annotation as cvat
from cvat_sdk.core.client import AccessTokenCredentials, Client, Config
from cvat_sdk.masks import decode_mask
from PIL import Image

from colocam import Localizer
from colocam.integrations.cvat_tasks import CvatFunction, create
from colocam.types import Box, Localization, VideoFrame
from tests.helpers.fake_cvat import FakeCvat, serving
from tests.helpers.label_scenes import row, write_table

MODULE = "colocam.integrations.cvat_tasks"
MODEL = str(Path(__file__).parents[1] / "stored" / "version-0.1.0" / "model.onnx")
ONE_TAG = {"version": 0, "tags": [{"frame": 0, "label_id": 1}], "shapes": [], "tracks": []}


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def pictures(square_video):
    return square_video("cat", 3)[0][1:3]


@pytest.fixture
def task(pictures, tmp_path):
    """A task of two images, and a client that is logged in."""
    fake = FakeCvat(("a.png", "b.png"), 2, (48, 40), ("owl", "cat", "bus", "more"), [png(one) for one in pictures])
    with serving(fake) as address, Client(address, config=Config(cache_dir=tmp_path)) as client:
        client.login(AccessTokenCredentials(fake.token))
        yield fake, client


def found_by(localizer, pictures):
    return [next(localizer.stream([VideoFrame(0, 0.0, one)]))[1] for one in pictures]


def test_the_loader_of_cvat_cli_makes_the_function():
    common = pytest.importorskip("cvat_cli._internal.common", reason="needs cvat-cli")
    parsed = {"model": MODEL, "masks": True}
    function = common.FunctionLoader(MODULE, None, parsed).load()
    assert isinstance(function.spec, cvat.DetectionFunctionSpec)
    assert [label.name for label in function.spec.labels] == ["bus", "cat", "owl"]


def test_the_driver_adds_a_rectangle_to_each_image(task, pictures):
    fake, client = task
    cvat.annotate_task(client, 12, create(MODEL), allow_unmatched_labels=False)
    expected = found_by(Localizer.load(MODEL, smooth="none"), pictures)
    (sent,) = fake.patched
    assert [shape["frame"] for shape in sent["shapes"]] == [0, 1]
    for shape, found in zip(sent["shapes"], expected, strict=True):
        assert (shape["type"], shape["source"]) == ("rectangle", "auto")
        assert shape["label_id"] == 70 + fake.labels.index(found.tag)
        np.testing.assert_allclose(shape["points"], found.box, atol=1e-3)


def test_masks_polygons_and_the_confidence_threshold(task, pictures):
    fake, client = task
    function = create(MODEL, masks=True)
    found = found_by(function.localizer, pictures)
    cvat.annotate_task(client, 12, function)
    for shape, one in zip(fake.patched[0]["shapes"], found, strict=True):
        np.testing.assert_array_equal(decode_mask(shape["points"], image_width=48, image_height=40), one.mask)
    cvat.annotate_task(client, 12, function, conv_mask_to_poly=True)
    assert [shape["type"] for shape in fake.patched[1]["shapes"]] == ["polygon", "polygon"]
    least = np.mean([one.score for one in found])
    cvat.annotate_task(client, 12, function, conf_threshold=float(least))
    assert len(fake.patched[2]["shapes"]) == sum(one.score >= least for one in found) == 1


def test_several_objects_and_none(task):
    fake, client = task
    heat = np.zeros((4, 4), np.float32)
    boxes = iter([(Box(1, 2, 3, 4), Box(5, 6, 7, 8.5)), (None,)])

    def stream(frames, **_):
        (frame,) = frames
        for box in next(boxes):
            yield frame, Localization(0, 0.0, "owl", 0.9, box, 0.5, heat)

    cvat.annotate_task(client, 12, CvatFunction(SimpleNamespace(tags=("bus", "owl"), columns=[], stream=stream)))
    (sent,) = fake.patched
    assert [(shape["frame"], shape["points"]) for shape in sent["shapes"]] == [(0, [1, 2, 3, 4]), (0, [5, 6, 7, 8.5])]


@pytest.fixture
def video(tmp_path):
    rows = [row(frame, None if frame == 4 else (frame, 2.5, frame + 20.25, 40)) for frame in range(12)]
    return write_table(tmp_path / "my video.csv", rows, size=(64, 48), frames=12, video="my video.mp4")


@pytest.fixture
def server(monkeypatch):
    """A task of that video; CVAT_HOST and CVAT_ACCESS_TOKEN lead to it."""
    fake = FakeCvat(("my video.mp4",), 12, (64, 48), ("cat",))
    with serving(fake) as address:
        monkeypatch.setenv("CVAT_HOST", address)
        monkeypatch.setenv("CVAT_ACCESS_TOKEN", fake.token)
        yield fake


def test_push_uploads_what_export_writes(colocam, video, server, tmp_path):
    pushed = colocam("export", video, "--to", "cvat", "--push", 12)
    assert pushed.code == 0, pushed.err
    assert "/tasks/12" in pushed.out + pushed.err
    assert server.format == ["CVAT 1.1"]
    assert colocam("export", video, "--to", "cvat", "-o", tmp_path / "out", "--push", 12).code == 0
    assert server.uploaded["labels.xml"] == (tmp_path / "out" / "my video.xml").read_bytes()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"frames": 11}, "task 12 of CVAT has 11 frames, my video has 12"),
        ({"size": (48, 64)}, "has frames of 48×64, my video has 64×48"),
        ({"labels": ("dog",)}, "task 12 of CVAT has no label 'cat': add it in CVAT"),
        ({"annotations": ONE_TAG}, "has annotations"),
        ({"token": "another"}, "task 12: 401 .*: is CVAT_ACCESS_TOKEN valid?"),
        ({"labels": None}, "install the version of cvat-sdk that the server has"),
        ({"failure": "no such label"}, "task 12: no such label"),
    ],
)
def test_a_task_that_does_not_fit_is_refused(colocam, video, server, change, problem):
    for name, value in change.items():
        setattr(server, name, value)
    assert re.search(problem, colocam("export", video, "--to", "cvat", "--push", 12).error)
    assert bool(server.uploaded) == ("failure" in change)


def test_images_in_another_order_are_refused(colocam, server, tmp_path):
    names = [f"{number}.png" for number in range(12)]
    table = write_table(tmp_path / "shot.csv", [row(0, (1, 2, 3, 4))], size=(64, 48), frames=12, pictures=names)
    server.names = tuple(f"shot/{name}" for name in sorted(names))
    assert "sorted naturally" in colocam("export", table, "--to", "cvat", "--push", 12).error
    server.names = tuple(f"shot/{name}" for name in names)
    assert colocam("export", table, "--to", "cvat", "--push", 12).code == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--to", "cvat", "--push", 13), "task 13: 404 .*: is there such a task?"),
        (("--to", "coco", "--push", 12), "--push only works with the formats cvat and cvat-masks, got coco"),
        (("--to", "cvat", "--push", 12, "--push", 13), "--push must name one task for each table, got 2 for 1"),
        (("--to", "cvat"), "--out must name a folder"),
    ],
)
@pytest.mark.usefixtures("server")
def test_wrong_arguments(colocam, video, words, problem):
    assert re.search(problem, colocam("export", video, *words).error)


def test_without_address_or_server(colocam, video, monkeypatch):
    monkeypatch.delenv("CVAT_HOST", raising=False)
    assert "CVAT_HOST is empty" in colocam("export", video, "--to", "cvat", "--push", 12).error
    monkeypatch.setenv("CVAT_HOST", "http://127.0.0.1:1")
    monkeypatch.setenv("CVAT_ACCESS_TOKEN", "x")
    monkeypatch.setattr("urllib3.util.retry.Retry.sleep", lambda *_: None)
    assert "CVAT at http://127.0.0.1:1, task 12: " in colocam("export", video, "--to", "cvat", "--push", 12).error
