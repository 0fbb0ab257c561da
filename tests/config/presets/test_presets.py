"""Every shipped preset, with all its settings but the size, goes through every command as a user types it.

Faults of the recommended models stay unseen where tests use models of their own.
"""

import json
import shutil
import time

import numpy as np
import pytest
from starlette.testclient import TestClient

from colocam.config import Config, load_config, preset_names, read_config
from colocam.config.card import parse_card
from colocam.data.truth import read_truth
from colocam.labels import Correction, write_corrections
from colocam.serve.store import MARKER
from colocam.types import Box
from colocam.video.fence import decode
from tests.helpers.counting import inclusive_iou
from tests.helpers.csv_tables import csv_rows
from tests.helpers.run_files import journal

SIZES = {
    "start.model",
    "start.decoder",
    "backbone.mean",
    "backbone.std",
    "frames.resize",
    "frames.crop",
    "frames.map_size",
    "backbone.weights",
    "classifier.size",
    "classifier.epochs",
    "classifier.frames_per_clip",
    "localizer.epochs",
    "localizer.batch",
    "localizer.sequences_per_clip",
}
"""Settings that may differ from the preset's: they make a run longer or shorter, and switch nothing on or off.

A model to start from brings the mean and the deviation of its frames. Whether its decoder is trained further depends
on the videos, so tests of the preset say so; ``tests/training/test_start.py`` has both."""
LENGTHS = {"bus/short": 3, "cat/middle": 5, "owl/long": 34}
"""Videos and their frames; a pass of the network has 32 rows."""
CORNERS = ("x1", "y1", "x2", "y2")


def settings_of(config: Config) -> dict[str, object]:
    """All settings by their full names."""

    def flat(values, prefix=""):
        for key, value in values.items():
            if isinstance(value, dict) and key not in {"args", "extra"}:
                yield from flat(value, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}", value

    return dict(flat(config.model_dump(mode="json")))


def tables_of(folder):
    """Rows of all tables below a folder, by the names of their videos."""
    return {path.relative_to(folder).with_suffix("").as_posix(): csv_rows(path) for path in folder.rglob("*.csv")}


def numbers(rows, *columns):
    """(N, columns) values; NaN for empty cells."""
    return np.array([[float(row[column] or "nan") for column in columns] for row in rows])


@pytest.fixture(scope="module", params=preset_names())
def preset(request):
    return request.param


@pytest.fixture(scope="module")
def run(preset, preset_run, tmp_path_factory):
    """A copy of the preset's run that may be written to."""
    return shutil.copytree(preset_run(preset), tmp_path_factory.mktemp(preset) / "run")


@pytest.fixture(scope="module")
def card(run):
    return parse_card((run / "model.json").read_text(encoding="utf-8"), "model.json")


@pytest.fixture(scope="module")
def videos(tmp_path_factory, make_video, square_video):
    """Videos, and an index of the second alone: ``videos/<tag>/<name>.mp4``, ``manifest.csv`` and ``truth.csv``."""
    folder = tmp_path_factory.mktemp("videos")
    for number, (name, length) in enumerate(LENGTHS.items()):
        pictures, boxes = square_video(name.partition("/")[0], 50 + number, length, (64, 48))
        make_video(folder / "videos" / f"{name}.mp4", pictures)
        if name == "cat/middle":
            truth = [f"{name},{frame},1,{','.join(map(str, box))}" for frame, box in enumerate(boxes) if box]
    (folder / "manifest.csv").write_text("path,tag,split,clip\nvideos/cat/middle.mp4,cat,test,cat/middle\n")
    (folder / "truth.csv").write_text("\n".join(["clip,frame,present,x1,y1,x2,y2", *truth]) + "\n")
    return folder / "videos"


@pytest.fixture
def command(colocam, untraced):
    """``command("localize", …)`` runs a command that must succeed."""

    def succeed(*arguments):
        with untraced():  # PyTorch's exporter is twice as slow otherwise
            outcome = colocam(*arguments)
        assert outcome.code == 0, outcome.err
        return outcome

    return succeed


@pytest.fixture
def localized(run, videos, command):
    """Rows of all videos, localized one after the other; annotated videos are written too."""
    out = run.parent / "one after the other"
    if not out.exists():
        command("localize", run, videos, "-o", out, "--workers", "1")
    return tables_of(out)


def test_nothing_but_the_size_differs_from_what_is_shipped(preset, run):
    shipped, trained = settings_of(load_config(preset)), settings_of(read_config(run / "config.yaml"))
    changed = {name for name in shipped if trained[name] != shipped[name]}
    assert trained.keys() == shipped.keys()
    others = {"lite0": {"localizer.teacher"}, "paper": {"backbone.args"}}
    assert changed - SIZES == others.get(preset, set())
    switches = {name for name, value in settings_of(Config()).items() if shipped.get(name, value) != value}
    assert not (changed - SIZES) & switches
    for name in ("frames.map_size", "classifier.size"):  # the same share of the frame, or none
        assert (shipped[name] is None) == (trained[name] is None)
        if shipped[name] is not None:
            assert trained["frames.crop"] / trained[name] == shipped["frames.crop"] / shipped[name]


def test_every_switch_reaches_the_training_and_the_model(preset, run, card):
    """What the run and its model have, against the preset's file."""
    shipped = load_config(preset)
    stage1, stage2 = shipped.classifier, shipped.localizer
    assert (card.focus, card.chooser) == (stage2.focus, stage2.chooser)
    if stage2.color_mean == "auto":
        assert card.color_mean == ("clip" if card.color_growth >= 1 else "off")
    else:
        assert (card.color_mean, card.color_growth) == (stage2.color_mean, None)
    for reading in ("crop_head", "class_in_map"):
        if getattr(stage2, reading) != "auto":
            assert getattr(card, reading) == getattr(stage2, reading)
    assert card.normalize == (stage1.fit == "logistic")
    built, wanted = card.backbone, shipped.backbone
    assert (built.name, built.output_stride, card.decoder) == (wanted.name, wanted.output_stride, stage2.decoder)
    if stage2.threshold is not None:
        lower = stage2.color_mean == "auto" and card.color_mean == "off"
        assert card.threshold == pytest.approx(stage2.threshold * (0.8 if lower else 1))
    assert (run / "colocam" / "crop_head").is_dir() == bool(stage2.crop_head)  # auto: fitted, then kept or not
    assert (run / "colocam" / "teacher" / "labels.npy").is_file() == (preset == "lite0")
    steps = journal(run)
    terms = {
        step["phase"]: step.keys() & {"seeds", "crf", "size", "coloc"} for step in steps if step["event"] == "train"
    }
    first = "colocam" if stage2.rounds == 1 else "colocam, round 1"
    expected = {"classifier": set(), first: {"seeds", "crf", "size", "coloc"}, "colocam": {"seeds"}}
    if stage2.rounds == 1:
        expected["colocam"] = expected[first] = {"seeds", "crf", "size", "coloc"}
    if preset == "lite0":  # the teacher takes the place of the first round
        del expected[first]
    assert terms == expected
    assert np.isfinite([value for step in steps for value in step.values() if isinstance(value, float)]).all()


def test_evaluate_boxes(run, card, collection, command):
    outcome = command("evaluate", run, "--boxes", collection.truth)
    assert "12 frames of 3 test videos" in outcome.out
    result = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))["methods"]["colocam"]
    assert result["tags-only"]["threshold"] == pytest.approx(card.threshold, abs=1e-3)  # stored weights are rounded
    assert 0 <= result["tags-only"]["average"] <= result["oracle-global"]["average"] <= 100


def test_evaluate_whole_shots(run, videos, localized, command):
    """The IoU of the boxes that ``localize`` wrote, with true boxes."""
    command("evaluate", run, "--dense", videos.parent)
    (shot,) = json.loads((run / "dense.json").read_text(encoding="utf-8"))["shots"]
    truth, rows = read_truth(videos.parent / "truth.csv"), numbers(localized["cat/middle"], *CORNERS)
    overlaps = [inclusive_iou(rows[frame], truth.boxes("cat/middle", frame)[0]) for frame in range(1, 5)]
    assert shot["without_tag"]["mean_iou"] == pytest.approx(np.mean(overlaps), abs=1e-3)
    assert shot["boxed_frames"] == 4


def test_localize_writes_a_row_and_an_annotated_frame_for_each_frame(run, card, localized):
    assert {name: len(rows) for name, rows in localized.items()} == LENGTHS
    for name, rows in localized.items():
        assert {row["class"] for row in rows} <= {*card.tags}
        x1, y1, x2, y2 = numbers(rows, *CORNERS).T
        assert ((x1 >= 0) & (x1 < x2) & (x2 <= 64) & (y1 >= 0) & (y1 < y2) & (y2 <= 48)).all()
        drawn = list(decode(run.parent / "one after the other" / f"{name}.mp4"))
        assert [frame.image.shape for frame in drawn] == [(48, 64, 3)] * len(rows)
    answers = [row["probability"] for rows in localized.values() for row in rows]
    assert len({*answers}) == len(answers)  # rows of another video or frame would be noticed


def test_several_workers_write_the_same_rows(run, videos, localized, command, tmp_path):
    command("localize", run, videos, "-o", tmp_path / "out", "--workers", "3", "--no-video")
    assert tables_of(tmp_path / "out") == localized
    assert not list((tmp_path / "out").rglob("*.mp4"))


@pytest.mark.parametrize("name", ["cat/middle", "owl/long"])
def test_a_video_alone_has_the_same_rows(run, videos, localized, command, tmp_path, name):
    """Those that others came before."""
    command("localize", run, videos / f"{name}.mp4", "-o", tmp_path / "out", "--no-video")
    assert tables_of(tmp_path / "out") == {name.partition("/")[2]: localized[name]}


def test_the_onnx_file_finds_the_same(run, videos, localized, command, tmp_path):
    command("export-model", run, "-o", tmp_path / "model.onnx")
    command("localize", tmp_path / "model.onnx", videos, "-o", tmp_path / "out", "--workers", "1", "--no-video")
    for name, rows in tables_of(tmp_path / "out").items():
        assert [row["class"] for row in rows] == [row["class"] for row in localized[name]]
        ours, theirs = (numbers(one, *CORNERS) for one in (localized[name], rows))
        # where a level of 255 is rounded otherwise, which depends on the CPU, an edge moves by a pixel of the map
        assert (np.abs(theirs - ours) <= 0.05).mean() > 0.8
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=2)
        ours, theirs = (numbers(one, "score") for one in (localized[name], rows))
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=0.05)
        ours, theirs = (numbers(one, "probability", "presence") for one in (localized[name], rows))
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=2e-3)


def test_learn_from_a_few_corrections(run, card, collection, videos, command, tmp_path):
    truth = read_truth(collection.truth)
    made = []
    for tag in card.tags:
        clip = f"{tag}/val-0"
        made.append(Correction(clip, 0, None, "none", tag, (), origin="test"))
        made.append(Correction(clip, 2, None, "box", tag, (Box(*truth.boxes(clip, 2)[0]),), origin="test"))
    said = write_corrections(tmp_path / "corrections.csv", made)
    command("learn", run, said, "-o", tmp_path / "new", "--steps", "1")
    told = json.loads((tmp_path / "new" / "learning.json").read_text(encoding="utf-8"))
    assert {"before", "threshold", "decoder"} <= {stage["name"] for stage in told["stages"]}
    new = parse_card((tmp_path / "new" / "model.json").read_text(encoding="utf-8"), "model.json")
    learned = {"threshold", "threshold_from", "class_thresholds", "presence"}
    assert new.model_dump(exclude=learned) == card.model_dump(exclude=learned)
    command("localize", tmp_path / "new", videos / "cat/middle.mp4", "-o", tmp_path / "out", "--no-video")
    assert len(tables_of(tmp_path / "out")["middle"]) == LENGTHS["cat/middle"]


def test_the_page_shows_the_same_rows(run, videos, localized, command, tmp_path, monkeypatch):
    """``colocam serve`` with requests from here instead of a browser's."""
    names, shown = ("bus/short", "cat/middle"), {}

    def visit(server, sockets):
        client = TestClient(server.config.app, base_url=f"http://127.0.0.1:{sockets[0].getsockname()[1]}")
        stored = (tmp_path / "page" / MARKER).read_text(encoding="utf-8")
        client.get("/", params={"token": json.loads(stored)["token"]})  # its cookie stays
        end = time.monotonic() + 120
        while True:
            known = client.get("/api/videos").json()
            ready = [video for video in known["videos"] if video["state"] in {"ready", "failed"}]
            if len(ready) == len(names):
                break
            assert time.monotonic() < end, known
            time.sleep(0.02)
        for video in ready:
            assert video["state"] == "ready", video["problem"]
            shown[video["frames"]] = client.get(f"/api/videos/{video['id']}").json()["results"]

    monkeypatch.setattr("uvicorn.Server.run", visit)
    command("serve", run, *(videos / f"{name}.mp4" for name in names), "--out", tmp_path / "page", "--no-open")
    for name in names:
        rows, results = localized[name], shown[LENGTHS[name]]
        assert results["tag"] == [row["class"] for row in rows]
        np.testing.assert_array_equal(results["box"], numbers(rows, *CORNERS).round(3))
        assert len(set(results["probability"])) == 1  # of the class in the shot; in tables, of each frame
        for column in ("score", "presence"):
            wanted = numbers(rows, column)[:, 0].round(4)
            np.testing.assert_array_equal(np.array(results[column], float), wanted)
