"""Several objects: through the routes to tables, corrections and labels, and back."""

import json

import numpy as np
import pytest


def span(first, last):
    return {"start": first, "stop": last}


def boxes(rows):
    """Of each track the boxes by frame."""
    found = {}
    for row in rows:
        if row["x1"]:
            corners = [float(row[side]) for side in ("x1", "y1", "x2", "y2")]
            found.setdefault(row["track"], {})[int(row["frame"])] = corners
    return found


DOG = [
    {"kind": "box", **span(3, 4), "track": 2, "box": [40, 10, 50, 20]},
    {"kind": "class", **span(0, 40), "track": 2, "tag": "dog"},
]


def test_a_second_object_reaches_table_corrections_and_every_format(served):
    before = served.rows()
    assert served.edit(*DOG).status_code == 200
    served.edit({"kind": "box", **span(7, 8), "track": 2, "box": [44, 10, 54, 20]})
    rows = served.rows()
    assert {row["class"] for row in rows if row["track"] == "1"} == {"dog"}
    assert boxes(rows)["1"] == {at: [37 + at, 10, 47 + at, 20] for at in range(3, 8)}
    assert boxes(rows)["0"] == boxes(before)["0"]
    assert [row["score"] for row in rows if row["track"] == "0"] == [row["score"] for row in before]
    coco = json.loads(served.exported("coco")["annotations/instances_default.json"])
    names = {one["id"]: one["name"] for one in coco["categories"]}
    assert [names[one["category_id"]] for one in coco["annotations"]].count("dog") == 5
    said = served.rows("corrections", "corrections.csv")
    # The frames that nobody checked are no key frames, and what else is in a frame is listed as it is shown.
    assert [(int(row["frame"]), row["track"], row["kind"], row["key"]) for row in said] == [
        (at, track, kind, key)
        for at in range(3, 8)
        for track, kind, key in (("1", "accepted", "0"), ("2", "class", "1" if at in {3, 7} else "0"))
    ]
    (card,) = served.client.get("/api/videos").json()["videos"]
    assert (card["checked"], card["interpolated"]) == (0, 0)
    served.edit({"kind": "accepted", **span(3, 8)})
    (card,) = served.client.get("/api/videos").json()["videos"]
    assert (card["checked"], card["interpolated"]) == (2 / 40, 3 / 40)


def test_split_join_delete_and_undo(served):
    before = served.rows()
    served.edit({"kind": "move", **span(10, 40), "track": 1, "into": 2})
    rows = served.rows()
    assert list(boxes(rows)["0"]) == list(range(10))
    assert boxes(rows)["1"] == {at: box for at, box in boxes(before)["0"].items() if at >= 10}
    # What is said of the second one stays, when it becomes a part of the first one again.
    served.edit({"kind": "box", **span(12, 13), "track": 2, "box": [1, 2, 11, 12]})
    served.edit({"kind": "move", **span(0, 40), "track": 2, "into": 1})
    rows = served.rows()
    assert list(boxes(rows)) == ["0"]
    assert boxes(rows)["0"] == {**boxes(before)["0"], 12: [1, 2, 11, 12]}
    served.edit(*DOG)
    assert len(boxes(served.rows())) == 2
    served.edit({"kind": "clear", **span(0, 40), "track": 2})
    assert len(boxes(served.rows())) == 1
    for _ in range(5):
        served.post({"kind": "undo"})
    assert served.rows() == before


def test_corrections_of_several_objects_come_back(served):
    served.edit(*DOG)
    served.edit({"kind": "none", **span(5, 6), "track": 2})
    served.edit({"kind": "box", **span(7, 8), "track": 2, "box": [44, 10, 54, 20]})
    served.edit({"kind": "accepted", **span(3, 4), "tag": "cat", "boxes": [[8, 6, 28, 30]]})
    rows, files = served.rows(), served.exported("corrections")
    served.edit({"kind": "clear", **span(0, 40)}, {"kind": "clear", **span(0, 40), "track": 2})
    assert len(boxes(served.rows())) == 1
    assert served.take("corrections", files).status_code == 200
    assert served.rows() == rows


@pytest.mark.parametrize("to", ["cvat", "coco", "yolo", "voc", "mot"])
def test_labels_of_several_objects_come_back_to_their_objects(served, to):
    moving = [{"kind": "box", **span(at, at + 1), "track": 2, "box": [30 + at, 30, 40 + at, 44]} for at in range(3, 9)]
    served.edit(*moving, DOG[1])
    files, rows = served.exported(to), served.rows()
    served.edit({"kind": "clear", **span(0, 40), "track": 2})
    answer = served.take(to, files)
    assert answer.status_code == 200, answer.json()
    again = served.rows()
    assert {row["class"] for row in again if row["track"] != "0"} == {"dog"}
    (new,) = [own for track, own in boxes(again).items() if track != "0"]
    for at, box in boxes(rows)["1"].items():
        np.testing.assert_allclose(new[at], box, atol=1.01)
    for at, box in boxes(rows)["0"].items():
        np.testing.assert_allclose(boxes(again)["0"][at], box, atol=1.01)


def test_objects_that_the_model_finds_are_offered_until_somebody_takes_them(served):
    assert served.client.get(f"/api/videos/{served.video}").json()["results"]["others"] == []
    key = served.client.get(f"/api/videos/{served.video}").json()["results_key"]
    answer = served.client.post("/api/settings", json={"presence": None, "threshold": None, "instances": True})
    assert answer.status_code == 200
    served.wait()
    detail = served.client.get(f"/api/videos/{served.video}").json()
    assert detail["results_key"] != key
    offered = [2, 32, 22, 46]
    assert detail["results"]["box"][5] == [10, 6, 30, 30]  # the one that is longest in the shot
    assert detail["results"]["others"] == [{"tag": "cat", "at": 4, "boxes": [offered] * 8}]
    assert boxes(served.rows())["1"] == dict.fromkeys(range(4, 12), offered)
    assert served.client.get(f"/api/videos/{served.video}/maps?start=0&count=40").status_code == 200
    # Taken, it has a number; deleted, it does not come back.
    taken = {"kind": "add", **span(4, 12), "track": 2, "tag": "dog", "boxes": [offered] * 8}
    served.edit(taken, {"kind": "box", **span(6, 7), "track": 2, "box": [4, 32, 24, 46]})
    rows = served.rows()
    assert boxes(rows)["1"] == {**dict.fromkeys(range(4, 12), offered), 6: [4, 32, 24, 46]}
    assert {row["class"] for row in rows if row["track"] == "1"} == {"dog"}
    served.edit({"kind": "none", **span(4, 12), "track": 2})
    assert list(boxes(served.rows())) == ["0"]


def test_classes_are_added_and_kept(served, tmp_path):
    assert served.client.post("/api/classes", json={"name": " red \n fox"}).json() == {
        "name": "red fox",
        "classes": ["cat", "dog", "red fox"],
    }
    assert served.client.post("/api/classes", json={"name": "CAT"}).json()["name"] == "cat"
    for name in ("", " \n", "x" * 201, 7):
        assert served.client.post("/api/classes", json={"name": name}).status_code == 422
    detail = served.client.get(f"/api/videos/{served.video}").json()
    assert detail["classes"] == ["cat", "dog", "red fox"]
    assert served.client.get("/api/videos").json()["tags"] == ["cat", "dog"]
    stored = json.loads((tmp_path / "page" / "colocam-serve.json").read_text())
    assert stored["classes"] == ["red fox"]
    served.edit({"kind": "class", **span(0, 25), "tag": "red fox"})
    assert {row["class"] for row in served.rows()} == {"red fox", "cat"}
    files = served.exported("corrections")
    assert served.take("corrections", files).status_code == 200
    served.workspace.classes = []
    assert "add it on the page" in served.take("corrections", files).json()["error"]
