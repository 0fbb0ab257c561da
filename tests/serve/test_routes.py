"""The routes: videos, exact frames, ranges of the proxy, uploads, corrections, export and import."""

import json
import re

import cv2
import numpy as np
import pytest

from colocam.labels import FORMATS, readable
from colocam.labels.formats import cvat as from_cvat
from colocam.serve import video_routes
from colocam.serve.correction_routes import ARCHIVES
from colocam.serve.guard import MOST_JSON
from tests.helpers.served_library import LeavesAndReturns, gray_video, serving


def test_a_video_from_start_to_export(served):
    listed = served.client.get("/api/videos").json()
    assert listed["tags"] == ["cat", "dog"]
    video = listed["videos"][0]
    assert (video["name"], video["state"], video["frames"], video["found"]) == ("video", "ready", 40, "cat")
    root = str(served.workspace.root.parent)
    assert root not in served.client.get("/api/videos").text

    detail = served.client.get(f"/api/videos/{served.video}").json()
    assert detail["cuts"] == [25]
    assert detail["results"]["box"][3] == [8, 6, 28, 30]
    assert {at % 7 for at, _ in detail["results"]["queue"][:5]} == {3}
    assert root not in served.client.get(f"/api/videos/{served.video}").text

    maps = served.client.get(f"/api/videos/{served.video}/maps?start=38&count=8").content
    assert len(maps) == 2 * 64 * 64
    assert np.frombuffer(maps, np.uint8).reshape(2, 64, 64)[0, 24, 24] == 255
    assert served.client.get(f"/api/videos/{served.video}/thumbnail").content[:2] == b"\xff\xd8"
    assert served.client.get(f"/api/videos/{served.video}/stills/39").content[:2] == b"\xff\xd8"
    missing = served.client.get(f"/api/videos/{served.video}/stills/40")
    assert missing.status_code == 404
    assert missing.json()["error"] == "video has no frame 40 that can be decoded"

    assert served.edit(kind="box", start=2, stop=3, box=[1, 2, 11, 12]).json()["version"] == 1
    assert served.edit(kind="none", start=30, stop=40).status_code == 200
    assert served.edit(kind="class", start=0, stop=25, tag="dog").status_code == 200
    rows = served.rows()
    assert [float(rows[2][side]) for side in ("x1", "y1", "x2", "y2")] == [1, 2, 11, 12]
    assert [row["class"] for row in rows] == ["dog"] * 25 + ["cat"] * 15
    assert [row["x1"] == "" for row in rows] == [False] * 30 + [True] * 10
    said = served.rows("corrections", "corrections.csv")
    assert [row["kind"] for row in said] == ["class"] * 25 + ["none"] * 10
    assert {row["origin"] for row in said} == {"page"}


def test_boxes_over_frames_where_the_model_sees_no_object_are_exported_as_shown_but_said_by_nobody(
    make_video, tmp_path
):
    video = gray_video(make_video, tmp_path / "video.mp4", range(60, 92))
    with serving(tmp_path / "page", [video], model=LeavesAndReturns) as server:
        server.edit(kind="box", start=28, stop=29, box=[30, 8, 50, 28])
        server.edit(kind="box", start=7, stop=8, box=[10, 8, 30, 28])

        def said():
            rows = server.rows("corrections", "corrections.csv")
            return [(int(row["frame"]), row["kind"], row["key"]) for row in rows]

        rows = server.rows()
        assert [float(row["x1"]) for row in rows[9:26]] == pytest.approx(
            [10 + 20 * (at - 7) / 21 for at in range(9, 26)]
        )
        answer = server.client.post("/api/exports", json={"to": "yolo"}).json()
        assert answer["frames"] == {"checked": 2, "interpolated": 0, "asked": 17, "unchecked": 13}
        answer = server.client.post("/api/exports", json={"to": "csv", "leave_out": ["asked"]}).json()
        assert answer["frames"]["asked"] == 0
        assert [int(row["frame"]) for row in server.rows(leave_out=["asked"])] == [*range(9), *range(26, 32)]
        assert [int(row["frame"]) for row in server.rows(leave_out=["asked", "unchecked"])] == [7, 28]
        assert said() == [(7, "box", "1"), (28, "box", "1")]
        (card,) = server.client.get("/api/videos").json()["videos"]
        assert (card["checked"], card["interpolated"]) == (2 / 32, 0)
        assert server.client.get("/api/lessons").json()["corrections"] == 2
        # A person says that it was away: the frames before and after keep their predictions.
        server.edit(kind="none", start=9, stop=26)
        assert [float(server.rows()[at]["x1"]) for at in (7, 8, 26, 28)] == [10, 13, 31, 30]


def test_images_are_exported_and_an_unknown_format_is_refused(served):
    served.edit(kind="accepted", start=0, stop=40)
    images = [name for name in served.exported("voc", images=True) if name.endswith(".jpg")]
    assert len(images) == 40
    wrong = served.client.post("/api/exports", json={"to": "cvta"})
    assert wrong.status_code == 422
    assert "did you mean 'cvat'" in wrong.json()["error"]


def test_labels_that_were_corrected_elsewhere_come_back_as_one_step(served, monkeypatch):
    zipped = served.exported("cvat")
    monkeypatch.setattr(from_cvat, "read", None)  # the process of the server does not read them itself
    hidden = {name: entry for name, entry in FORMATS.items() if name != "cvat"}
    monkeypatch.setattr("colocam.labels.formats.FORMATS", hidden)
    name, text = next((name, data.decode()) for name, data in zipped.items() if name.endswith(".xml"))
    changed = re.sub(r'(frame="0"[^>]*ytl=")6\.00', r"\g<1>9.00", text, count=1)
    assert changed != text
    answer = served.take("cvat", changed.encode(), name)
    assert answer.status_code == 200, answer.json()
    history = served.client.get(f"/api/videos/{served.video}/history").json()
    assert history["version"] == 1
    first = history["done"][0]["actions"][0]
    assert (first["kind"], first["start"], first["box"][1]) == ("box", 0, 9)
    assert served.take("cvat", b"no labels", name).status_code == 422


def test_corrections_of_another_page_come_back(served):
    served.edit(
        {"kind": "box", "start": 3, "stop": 4, "box": [10, 8, 30, 28]},
        {"kind": "box", "start": 8, "stop": 9, "box": [20, 8, 40, 28]},
        {"kind": "none", "start": 12, "stop": 15},
        {"kind": "accepted", "start": 20, "stop": 21, "tag": "cat", "boxes": [[25, 6, 45, 30]]},
        {"kind": "box", "start": 30, "stop": 31, "box": [1, 2, 3, 4]},
        {"kind": "class", "start": 30, "stop": 31, "tag": "dog"},
    )
    first = served.exported("corrections")["corrections.csv"]
    served.post({"kind": "undo"})
    assert served.take("corrections", first, "corrections.csv").json()["changed"] == 7
    assert served.exported("corrections")["corrections.csv"] == first
    by_name = first.replace(served.video.encode(), b"")
    for content, why in (
        (by_name.replace(b"\nvideo,", b"\nother,"), "no correction of video"),
        (by_name.replace(b"video.mp4", b"other/video.mp4"), "belong to a different video with this name"),
        (first.replace(served.video.encode(), 24 * b"0"), "belong to a different video with this name"),
        (first.replace(b"dog", b"emu"), "the class 'emu' is unknown: add it on the page"),
    ):
        refused = served.take("corrections", content, "corrections.csv")
        assert (refused.status_code, why in refused.json()["error"]) == (422, True)


LINE = b"4,-1,10,8,20,20,0.9,-1,-1,-1\n"


@pytest.mark.parametrize("name", ["gt.txt", "det.txt", "my boxes.txt"])
def test_a_single_file_of_mot_is_of_the_open_video(served, name):
    answer = served.take("mot", LINE, name)
    assert answer.status_code == 200, answer.json()
    (row,) = [row for row in served.rows() if row["frame"] == "3"]
    assert [float(row[side]) for side in ("x1", "y1", "x2", "y2")] == [10, 8, 30, 28]
    assert row["class"] == "cat"


def test_labels_of_one_video_by_another_name_are_of_the_open_video(served):
    assert served.take("mot", {"MOT17-02/gt/gt.txt": LINE}).status_code == 200
    several = {"MOT17-02/gt/gt.txt": LINE, "MOT17-04/gt/gt.txt": LINE.replace(b"10,8", b"12,9")}
    version = served.store.history(served.video)[0]
    asked = served.take("mot", several)
    assert (asked.status_code, asked.json()["videos"]) == (409, ["MOT17-02", "MOT17-04"])
    assert served.store.history(served.video)[0] == version
    assert served.take("mot", several, labels_of="MOT17-04").status_code == 200
    assert {row["x1"] for row in served.rows() if row["frame"] == "3"} == {"12.0"}


def test_labels_of_another_video_of_the_library_are_asked_about(served, make_video, tmp_path):
    served.library.add(gray_video(make_video, tmp_path / "harbor.mp4", range(40, 48)))
    served.wait()
    harbor = {"harbor/gt/gt.txt": LINE}
    asked = served.take("mot", harbor)
    assert (asked.status_code, asked.json()["videos"]) == (409, ["harbor"])
    assert "another video of the library" in asked.json()["error"]
    assert served.take("mot", harbor, labels_of="harbor").status_code == 200


@pytest.fixture
def namesakes(make_video, tmp_path):
    """kite/test-00 and snail/test-00: files of one name, size and length."""
    videos = []
    for tag, first in (("kite", 0), ("snail", 4)):
        path = gray_video(make_video, tmp_path / tag / "test-00.mp4", range(first, 250, 9))
        videos.append((path, f"{tag}/test-00"))
    with serving(tmp_path / "page", videos) as server:
        server.kite, server.snail = (video.id for video in server.library.videos())
        yield server


def annotated(server, to, **more):
    """An export as it comes back from a tool; Label Studio has made annotations of the predictions."""
    files = server.exported(to, **more)
    return {name: data.replace(b'"predictions"', b'"annotations"') for name, data in files.items()}


def test_videos_of_one_name_keep_their_folders_everywhere(namesakes):
    listed = namesakes.client.get("/api/videos").json()["videos"]
    assert [video["name"] for video in listed] == ["kite/test-00", "snail/test-00"]
    assert list(namesakes.exported("cvat")) == ["kite_test-00.xml", "snail_test-00.xml"]
    coco = json.loads(namesakes.exported("coco")["annotations/instances_default.json"])
    assert [listed["file_name"] for listed in coco["videos"]] == ["kite/test-00.mp4", "snail/test-00.mp4"]
    assert list(namesakes.exported("cvat", videos=[namesakes.snail])) == ["snail_test-00.xml"]


def test_every_video_has_a_name_of_its_own_whatever_it_is_called(make_video, tmp_path):
    def video(name, value):
        return gray_video(make_video, tmp_path / name, range(value, value + 3))

    first, second = video("a/x.mp4", 10), video("b/x.mp4", 40)
    with serving(tmp_path / "page", [first, second]) as server:
        digits = server.library.videos()[1].id[:8]
        others = [video(f"c/x-{digits}.mp4", 70), video("a_b/c.mp4", 100), video("a/b_c.mp4", 130)]
        for path, name in zip(others, (f"x-{digits}", "a_b/c", "a/b_c"), strict=True):
            server.library.add(path, name)
        upload = video("d/x.mp4", 160).read_bytes()
        server.client.post("/api/videos", content=upload, headers={"x-video-name": "x.mp4"})
        names = [one.name for one in server.library.videos()]
        assert names == ["x", "b/x", f"x-{digits}", "a_b/c", f"{tmp_path.name}/a/b_c", "x-2"]
        assert len({name.replace("/", "_").casefold() for name in names}) == len(names)
    with serving(tmp_path / "page") as server:
        assert [one.name for one in server.library.videos()] == names


@pytest.mark.parametrize("to", ["corrections", *readable()])
def test_labels_are_never_stored_in_another_video_of_the_same_name(namesakes, to):
    for video in (namesakes.kite, namesakes.snail):
        namesakes.video = video
        assert namesakes.edit(kind="box", start=3, stop=4, box=[1, 2, 11, 12]).status_code == 200
    both, kite = annotated(namesakes, to), annotated(namesakes, to, videos=[namesakes.kite])
    for video in (namesakes.kite, namesakes.snail):
        namesakes.video = video
        assert namesakes.post({"kind": "undo"}).status_code == 200
    refused = namesakes.take(to, kite)
    assert refused.status_code == 422, refused.json()
    assert "kite" in refused.json()["error"]
    assert "\n" not in refused.json()["error"]
    assert namesakes.store.history(namesakes.snail)[0] == 2
    namesakes.video = namesakes.kite
    for content in (both, kite):
        taken = namesakes.take(to, content)
        assert taken.status_code == 200, taken.json()
        assert taken.json()["changed"] == 1


def test_labels_that_name_a_video_of_which_there_are_two_are_refused(namesakes):
    text = namesakes.exported("cvat")["kite_test-00.xml"].decode()
    task = re.sub("kite[/_]test-00", "test-00", text).replace('ytl="6.00"', 'ytl="9.00"')
    namesakes.video = namesakes.snail
    refused = namesakes.take("cvat", task.encode(), "task.xml")
    assert (refused.status_code, "several" in refused.json()["error"]) == (422, True)
    # A file that names no video is of the one that is open.
    unnamed = re.sub("<(name|source)>test-00[^<]*</[a-z]+>", "", task)
    assert namesakes.take("cvat", unnamed.encode(), "task.xml").status_code == 200


def test_corrections_know_their_video_by_its_content(namesakes, make_video, tmp_path):
    namesakes.edit(kind="none", start=1, stop=2)
    said = namesakes.exported("corrections")["corrections.csv"]
    path = namesakes.library.video(namesakes.kite).path
    other = gray_video(make_video, tmp_path / "else" / "kite" / "test-00.mp4", [99] * 28)
    with serving(tmp_path / "second", [(path, "renamed"), (other, "kite/test-00")]) as server:
        assert server.take("corrections", said, "c.csv").json()["changed"] == 1
        server.video = server.library.videos()[1].id
        refused = server.take("corrections", said, "c.csv")
        assert (refused.status_code, "a different video" in refused.json()["error"]) == (422, True)


def test_every_listed_format_can_be_exported_and_no_path_of_the_server_reaches_the_page(namesakes, tmp_path):
    namesakes.edit(kind="none", start=1, stop=2)
    for to in namesakes.client.get("/api/formats").json()["export"]:
        files = namesakes.exported(to)
        assert files, to
        for name, data in files.items():
            assert str(tmp_path).encode() not in data, (to, name)
    assert len(list(namesakes.workspace.exports.glob("*.zip"))) <= ARCHIVES
    assert namesakes.rows("corrections", "corrections.csv")[0]["path"] == "kite/test-00.mp4"
    namesakes.library.video(namesakes.kite).path.unlink()
    gone = namesakes.client.post("/api/exports", json={"to": "yolo", "images": True})
    assert gone.status_code == 422
    assert "kite/test-00" in gone.json()["error"]
    assert str(tmp_path) not in gone.text


def test_drawn_boxes_have_no_mask_but_their_rectangle_in_images_of_masks(served):
    served.edit(kind="box", start=3, stop=4, box=[10, 8, 30, 28])
    assert [bool(row["mask"]) for row in served.rows()] == [True] * 3 + [False] + [True] * 36
    images = served.exported("masks")
    drawn = cv2.imdecode(np.frombuffer(images["masks/video_000003.png"], np.uint8), cv2.IMREAD_GRAYSCALE) > 0
    expected = np.zeros((48, 64), bool)
    expected[8:28, 10:30] = True
    np.testing.assert_array_equal(drawn, expected)


def test_conflicts_and_undo(served):
    said, other = ({"kind": "edit", "actions": [{"kind": "none", "start": at, "stop": at + 1}]} for at in (1, 3))
    assert served.post(said, 0).json()["version"] == 1
    conflict = served.post(other, 0, client="another")
    assert conflict.status_code == 409
    assert conflict.json()["conflict"][0]["change"]["actions"][0]["start"] == 1
    assert served.post(said, 0).json()["version"] == 1  # sent twice, stored once
    assert served.store.history(served.video)[0] == 1
    assert served.post({"kind": "redo"}).json()["error"] == "there is nothing to redo"
    assert served.post({"kind": "undo"}).json()["version"] == 2
    history = served.client.get(f"/api/videos/{served.video}/history").json()
    assert (history["done"], len(history["undone"])) == ([], 1)
    assert served.post({"kind": "undo"}).json()["error"] == "there is nothing to undo"
    ahead = served.post(said, 9)
    assert ahead.status_code == 404
    assert "version 9" in ahead.json()["error"]
    assert "conflict" not in ahead.json()


def test_a_request_that_is_too_large_is_refused_while_it_comes(served):
    json = {"content-type": "application/json"}

    def body(blanks):
        return (part for part in (b'{"to":"csv"', *[b" " * (1 << 20)] * (blanks >> 20), b"}"))

    for path in ("/api/exports", f"/api/videos/{served.video}/history", "/api/models"):
        for content in (body(2 * MOST_JSON), b" " * (MOST_JSON + 1)):  # without and with a stated length
            answer = served.client.post(path, content=content, headers=json)
            assert answer.status_code == 413, path
            assert "larger than 8 MiB" in answer.json()["error"]
    assert served.client.post("/api/exports", content=body(MOST_JSON // 2), headers=json).status_code == 201


ONE = {"start": 0, "stop": 1}


NONSENSE = [
    ({"kind": "box", **ONE}, "a box is needed for kind 'box'"),
    ({"kind": "box", **ONE, "box": [5, 5, 5, 9]}, "a box needs x1 < x2"),
    ({"kind": "box", **ONE, "box": [0, 0, 1e9, 1]}, "less than or equal to 65536"),
    ({"kind": "box", **ONE, "box": [0, 0, "1", 1]}, "valid number"),
    ({"kind": "none", "start": 3, "stop": 3}, "stop must be above start"),
    ({"kind": "none", "start": -1, "stop": 3}, "greater than or equal to 0"),
    ({"kind": "none", "start": True, "stop": 3}, "valid integer"),
    ({"kind": "none", **ONE, "extra": 1}, "extra"),
    ({"kind": "none", **ONE, "into": 2}, "moves into"),
    ({"kind": "none", **ONE, "track": 0}, "greater than or equal to 1"),
    ({"kind": "class", **ONE}, "need a tag"),
    ({"kind": "erase", **ONE}, "'box', 'none'"),
    ({"kind": "move", **ONE}, "moves into"),
    ({"kind": "move", **ONE, "track": 2, "into": 2}, "another one"),
    ({"kind": "add", **ONE, "tag": "cat", "boxes": [None]}, "above 1"),
    ({"kind": "add", **ONE, "track": 2, "tag": "cat"}, "needs boxes"),
    ({"kind": "follow", **ONE}, "needs a box for each frame"),
    ({"kind": "follow", **ONE, "boxes": [None]}, "needs a box for each frame"),
]


def test_changes_that_make_no_sense_are_refused_in_a_sentence(served):
    changes = [({"kind": "edit", "actions": [action]}, why) for action, why in NONSENSE]
    changes += [({"kind": "edit"}, "a correction needs actions")]
    changes += [({"kind": "undo", "actions": [{"kind": "none", **ONE}]}, "undo and redo have none")]
    for change, why in changes:
        answer = served.post(change)
        assert answer.status_code == 422, change
        assert answer.json()["error"].startswith("the request is not valid: body.change"), change
        assert why in answer.json()["error"]


def test_uploads_are_limited_stored_under_generated_names_and_removed_when_they_fail(
    served, make_video, tmp_path, monkeypatch
):
    monkeypatch.setattr(video_routes, "MOST_UPLOADED", 1 << 20)
    video = make_video(tmp_path / "more" / "new.mp4", 5)
    name = {"x-video-name": "..%2F..%2Fetc%2F%3Cb%3Ene%E2%80%AEw.mp4"}
    added = served.client.post("/api/videos", content=video.read_bytes(), headers=name)
    assert added.status_code == 201
    assert added.json()["name"] == "<b>new"
    stored = [path.name for path in served.workspace.uploads.iterdir()]
    assert len(stored) == 1
    assert re.fullmatch(r"[0-9a-f]{32}\.mp4", stored[0])
    served.wait()
    assert served.library.video(added.json()["id"]).state == "ready"
    again = served.client.post("/api/videos", content=video.read_bytes())
    assert again.json()["id"] == added.json()["id"]
    large = served.client.post("/api/videos", content=b"x" * ((1 << 20) + 1))
    assert large.status_code == 413
    parts = served.client.post("/api/videos", content=(b"x" * (1 << 19) for _ in range(3)))
    assert parts.status_code == 413
    assert served.client.post("/api/videos", content=b"").status_code == 422
    assert len(list(served.workspace.uploads.iterdir())) == 1
    bad = served.client.post("/api/videos", content=b"no video at all", headers={"x-video-name": "bad.mp4"})
    served.wait()
    broken = served.library.video(bad.json()["id"])
    assert broken.state == "failed"
    assert broken.problem.startswith("cannot read bad:")


def test_videos_and_corrections_are_there_after_a_restart(make_video, tmp_path):
    video = make_video(tmp_path / "video.mp4", 5)
    before = video.read_bytes(), video.stat().st_mtime_ns
    with serving(tmp_path / "page", [video]) as server:
        key = server.video
        server.edit(kind="none", start=1, stop=2)

    class Never:
        tags = ("cat", "dog")

    video.rename(tmp_path / "moved.mp4")
    with serving(tmp_path / "page", model=Never) as server:
        assert server.library.video(key).state == "failed"
    with serving(tmp_path / "page", [tmp_path / "moved.mp4"], model=Never) as server:
        assert server.library.video(key).state == "ready"
        assert server.store.history(key)[0] == 1
        answer = server.client.delete(f"/api/videos/{key}")
        assert answer.json() == {"removed": key}
        assert server.library.videos() == []
        assert server.store.history(key)[0] == 1
    moved = tmp_path / "moved.mp4"
    assert (moved.read_bytes(), moved.stat().st_mtime_ns) == before


def test_ranges_of_the_proxy(served):
    path = f"/api/videos/{served.video}/proxy"
    whole = served.client.get(path)
    assert whole.status_code == 200
    part = served.client.get(path, headers={"range": "bytes=4-7"})
    assert (part.status_code, part.content) == (206, b"ftyp")
    assert part.headers["content-range"] == f"bytes 4-7/{len(whole.content)}"
    for version, status in {part.headers["etag"]: 206, '"another"': 200}.items():
        again = served.client.get(path, headers={"range": "bytes=4-7", "if-range": version})
        assert (again.status_code, again.headers["cache-control"]) == (status, whole.headers["cache-control"])
