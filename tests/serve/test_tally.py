"""Counts of corrections are kept, not computed anew; what the class of a video changes."""

from dataclasses import replace

import numpy as np
import pytest

from colocam.serve import library, tally
from colocam.serve.marks import Action, objects_of
from tests.helpers.served_library import MovingBox, serving


@pytest.fixture
def replays(monkeypatch):
    """How often histories were replayed."""
    counted = []

    def counting(*arguments):
        counted.append(arguments)
        return objects_of(*arguments)

    for module in (library, tally):
        monkeypatch.setattr(module, "objects_of", counting)
    return counted


def test_a_poll_replays_no_history(served, replays):
    served.edit(kind="box", start=3, stop=4, box=[1, 2, 11, 12])
    assert served.client.get("/api/lessons").json()["corrections"] == 1
    served.client.get("/api/videos")
    assert len(replays) == 1
    for path in ("lessons", "videos") * 3:
        served.client.get(f"/api/{path}")
    assert len(replays) == 1
    served.edit(kind="none", start=9, stop=10)
    answer = served.client.get("/api/lessons").json()
    assert (answer["corrections"], answer["corrected_videos"], len(replays)) == (2, 1, 2)
    served.post({"kind": "undo"})
    assert served.client.get("/api/lessons").json()["corrections"] == 1


def test_actions_of_single_frames_are_replayed_together_as_one_by_one():
    rng, frames = np.random.default_rng(4), np.flatnonzero(np.arange(40) % 3)
    cuts, listed = np.isin(frames, [10]), []
    for at in rng.integers(0, 40, 300).tolist():
        box = [at, 1, at + 9, 12] if rng.random() < 0.7 else None
        track = int(rng.integers(1, 3))
        listed.append(Action(kind="box" if box else "none", start=at, stop=at + 1, box=box, track=track))
    together = objects_of(listed, frames, cuts)
    apart = objects_of(
        [part for one in listed for part in (one, Action(kind="class", start=0, stop=1, tag="cat"))], frames, cuts
    )
    for number, marks in together.items():
        for name, column in marks._asdict().items():
            np.testing.assert_array_equal(column, getattr(apart[number], name), err_msg=name)


def test_the_class_of_a_video_counts_in_every_frame_and_can_be_undone(served):
    served.edit(kind="class", start=0, stop=25, tag="cat")
    key = served.client.get(f"/api/videos/{served.video}").json()["results_key"]
    answer = served.client.post("/api/tags", json={"tags": {served.video: "dog"}})
    assert answer.json()["videos"][0]["class"] == "dog"
    served.wait()
    for to, name in (("csv", "video.csv"), ("parquet", None)):
        if name:
            assert {row["class"] for row in served.rows(to, name)} == {"dog"}
    (card,) = served.client.get("/api/videos").json()["videos"]
    assert (card["found"], card["class"]) == ("dog", "dog")
    history = served.client.get(f"/api/videos/{served.video}/history").json()
    assert [edit["actions"][0]["kind"] for edit in history["done"]] == ["class", "video"]
    undone = served.post({"kind": "undo"}).json()
    assert undone["results_key"] == key
    served.wait()
    assert {row["class"] for row in served.rows()} == {"cat"}
    assert served.client.get("/api/videos").json()["videos"][0]["class"] == ""
    assert served.post({"kind": "redo"}).json()["results_key"] != key


def test_an_export_with_one_class_per_track_says_so(served):
    served.edit(kind="class", start=0, stop=10, tag="dog")
    for to in ("mot", "cvat", "label-studio"):
        (note,) = served.client.post("/api/exports", json={"to": to}).json()["notes"]
        assert note == f"video: 1 track changes its class; {to} holds one, the most frequent: 10 boxes got it"
    assert served.client.post("/api/exports", json={"to": "coco"}).json()["notes"] == []


def test_an_export_without_a_box_says_so(served):
    served.edit(kind="none", start=0, stop=40)
    answer = served.client.post("/api/exports", json={"to": "coco"})
    assert (answer.status_code, answer.json()["error"]) == (422, "no frame to export has a box: draw one first")


def test_a_class_that_was_set_before_version_0_3_is_still_used(served):
    served.workspace.tags = {served.video: "dog"}
    assert served.library.wanted(served.library.videos()[0]).tag == "dog"
    served.client.post("/api/tags", json={"tags": {served.video: ""}})
    assert served.library.wanted(served.library.videos()[0]).tag is None
    served.post({"kind": "undo"})
    assert served.library.wanted(served.library.videos()[0]).tag == "dog"


class Unsure(MovingBox):
    """Frames do not look like the class that was found."""

    def stream(self, frames, *, images, **more):
        for frame, found in super().stream(frames, images=images, **more):
            yield frame, replace(found, probability=0.3)


def test_a_video_whose_class_is_in_doubt_is_doubtful_as_a_whole_until_somebody_says_it(make_video, tmp_path):
    with serving(tmp_path / "page", [make_video(tmp_path / "video.mp4", 6)], model=Unsure) as server:
        card = lambda: server.client.get("/api/videos").json()["videos"][0]  # noqa: E731
        assert (card()["class_in_doubt"], card()["doubtful"]) == (True, 1)
        server.client.post("/api/tags", json={"tags": {server.video: "dog"}})
        server.wait()
        assert card()["class_in_doubt"] is False
        assert card()["doubtful"] < 1
        server.post({"kind": "undo"})
        server.wait()
        assert card()["class_in_doubt"] is True
        server.edit(kind="box", start=0, stop=1, box=[1, 2, 11, 12])  # which says nothing about the class
        assert (card()["class_in_doubt"], card()["doubtful"]) == (True, pytest.approx(5 / 6, abs=1e-3))
        server.edit(kind="accepted", start=1, stop=2, tag="cat")
        assert card()["class_in_doubt"] is False
